//! What an instruction in PRG-ROM is to the translator: its row, its operand, and how the program goes on from it.
//!
//! Everything here follows from the ROM's bytes alone. Instructions that are rare or change I are `Flow::Left` to the
//! interpreter, and so is whatever reads, changes and writes back a register.

use super::Image;
use crate::emulator::nes::opcodes::{Mnemonic, Mode, OPCODES, Opcode};

/// How the program goes on after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// With the next one; the deadline is as it was.
    Next,
    /// With the next one, after accesses to registers or work RAM: the deadline may be another.
    Bus,
    Branch(u16),
    Jump(u16),
    Call(u16),
    /// Where the stack or a pointer says.
    Computed,
    /// The interpreter executes this instruction.
    Left,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Instruction {
    pub at: u16,
    /// The address behind it.
    pub end: u16,
    pub row: Opcode,
    /// One or two bytes; 0 without.
    pub operand: u16,
    pub flow: Flow,
}

impl Instruction {
    /// The longest that it takes.
    pub(super) fn most_cycles(&self) -> u32 {
        let branch = if self.row.mode == Mode::Rel { 2 } else { 0 };
        u32::from(self.row.cycles + self.row.page_cycles) + branch
    }
}

/// Where accesses at an address go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Area {
    Ram,
    Rom,
    /// Registers, open bus, work RAM; or not the same for every index.
    Bus,
}

/// The area of a fixed address.
pub(super) fn area(address: u16) -> Area {
    match address {
        0..0x2000 => Area::Ram,
        0x8000.. => Area::Rom,
        _ => Area::Bus,
    }
}

/// The area of a fixed address with any index added; dummy reads at a crossed page lie in it too.
pub(super) fn indexed_area(base: u16) -> Area {
    match base {
        0..=0x1F00 => Area::Ram,
        0x8000..=0xFF00 => Area::Rom,
        _ => Area::Bus,
    }
}

/// The instruction at `at` in PRG-ROM.
pub(super) fn decode(image: &Image, at: u16) -> Instruction {
    let row = OPCODES[usize::from(image.read(at))];
    let end = at.wrapping_add(u16::from(row.mode.bytes()));
    let operand = match row.mode.bytes() {
        1 => 0,
        2 => u16::from(image.read(at.wrapping_add(1))),
        _ => u16::from_le_bytes([image.read(at.wrapping_add(1)), image.read(at.wrapping_add(2))]),
    };
    // What runs over the end of the address space goes on in RAM.
    let flow = if end <= at { Flow::Left } else { flow(row, operand, end) };
    Instruction { at, end, row, operand, flow }
}

fn flow(row: Opcode, operand: u16, end: u16) -> Flow {
    let pointer = area(operand) != Area::Bus && area(operand | 0x00FF) == area(operand);
    match (row.mnemonic, row.mode) {
        _ if !row.official => Flow::Left,
        (Mnemonic::Brk | Mnemonic::Sei | Mnemonic::Cli | Mnemonic::Plp, _) => Flow::Left,
        (_, Mode::Rel) => Flow::Branch(end.wrapping_add_signed(i16::from(operand as u8 as i8))),
        (Mnemonic::Jmp, Mode::Abs) => Flow::Jump(operand),
        (Mnemonic::Jmp, _) if !pointer => Flow::Left,
        (Mnemonic::Jmp | Mnemonic::Rts | Mnemonic::Rti, _) => Flow::Computed,
        (Mnemonic::Jsr, _) => Flow::Call(operand),
        (mnemonic, mode) => data_flow(mnemonic, mode, operand),
    }
}

fn data_flow(mnemonic: Mnemonic, mode: Mode, operand: u16) -> Flow {
    let area = match mode {
        Mode::Abs => area(operand),
        Mode::Abx | Mode::Aby => indexed_area(operand),
        _ => return Flow::Next,
    };
    let stores = matches!(mnemonic, Mnemonic::Sta | Mnemonic::Stx | Mnemonic::Sty);
    let modifies = matches!(
        mnemonic,
        Mnemonic::Inc | Mnemonic::Dec | Mnemonic::Asl | Mnemonic::Lsr | Mnemonic::Rol | Mnemonic::Ror
    );
    match area {
        Area::Ram => Flow::Next,
        _ if modifies => Flow::Left,
        Area::Rom if !stores => Flow::Next,
        _ => Flow::Bus,
    }
}

#[cfg(test)]
mod tests {
    use super::{Flow, decode};
    use crate::emulator::fast::jit::Image;

    #[test]
    fn flow_follows_the_operand() {
        let programs: [(&[u8], Flow); 16] = [
            (&[0xA9, 0x01], Flow::Next),
            (&[0xAD, 0x02, 0x20], Flow::Bus),
            (&[0xAD, 0x02, 0x00], Flow::Next),
            (&[0xBD, 0x01, 0x1F], Flow::Bus),
            (&[0xBD, 0x00, 0x1F], Flow::Next),
            (&[0xBD, 0x01, 0xFF], Flow::Bus),
            (&[0xEE, 0x07, 0x20], Flow::Left),
            (&[0x8D, 0x00, 0x80], Flow::Bus),
            (&[0xD0, 0xFE], Flow::Branch(0x8000)),
            (&[0x4C, 0x34, 0x92], Flow::Jump(0x9234)),
            (&[0x20, 0x34, 0x12], Flow::Call(0x1234)),
            (&[0x6C, 0x00, 0x03], Flow::Computed),
            (&[0x6C, 0x00, 0x20], Flow::Left),
            (&[0x60], Flow::Computed),
            (&[0x40], Flow::Computed),
            (&[0x58], Flow::Left),
        ];
        for (bytes, flow) in programs {
            assert_eq!(decode(&Image::of(bytes), 0x8000).flow, flow, "{bytes:02X?}");
        }
    }

    #[test]
    fn an_instruction_over_the_end_of_memory_is_left() {
        let mut prg = vec![0xEA; 0x8000];
        prg[0x7FFE] = 0xAD;
        assert_eq!(decode(&Image::of(&prg), 0xFFFE).flow, Flow::Left);
        assert_eq!(decode(&Image::of(&prg), 0xFFFF).flow, Flow::Left);
    }
}
