//! A line of a CPU trace, in the columns of nestest's log (Nintendulator's format):
//!
//! ```text
//! C5FD  20 2D C7  JSR $C72D                       A:00 X:00 Y:00 P:26 SP:FD PPU:  0, 63 CYC:21
//! ```
//!
//! Address, bytes, `*` before unofficial instructions, the instruction with the addresses and the value that it will meet,
//! registers before it, the PPU's line and dot, CPU cycles. Values are peeked: $2000-$401F give the open bus.

use super::opcodes::{Mnemonic, Mode, OPCODES};

/// Where the CPU stands before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub pc: u16,
    pub a: u8,
    pub x: u8,
    pub y: u8,
    pub p: u8,
    pub s: u8,
    /// The PPU's.
    pub line: u16,
    pub dot: u16,
    pub cycles: u64,
}

impl Moment {
    /// The line of the instruction at `pc`.
    pub fn instruction(&self, peek: impl Fn(u16) -> u8) -> String {
        let row = OPCODES[usize::from(peek(self.pc))];
        let bytes: Vec<String> =
            (0..row.mode.bytes()).map(|at| format!("{:02X}", peek(self.pc.wrapping_add(at.into())))).collect();
        let mark = if row.official { ' ' } else { '*' };
        let text = format!("{} {}", name(row.mnemonic), self.operand(row.mnemonic, row.mode, &peek));
        self.columns(&bytes.join(" "), mark, text.trim_end())
    }

    /// The line of an interrupt that is taken instead of the instruction at `pc`.
    #[must_use]
    pub fn interrupt(&self, name: &str) -> String {
        self.columns("", ' ', &format!("[{name}]"))
    }

    fn columns(&self, bytes: &str, mark: char, text: &str) -> String {
        let Self { pc, a, x, y, p, s, line, dot, cycles } = self;
        format!(
            "{pc:04X}  {bytes:<8} {mark}{text:<32}A:{a:02X} X:{x:02X} Y:{y:02X} P:{p:02X} SP:{s:02X} PPU:{line:3},{dot:3} CYC:{cycles}"
        )
    }

    fn operand(&self, mnemonic: Mnemonic, mode: Mode, peek: &impl Fn(u16) -> u8) -> String {
        let at = |offset: u16| peek(self.pc.wrapping_add(offset));
        let byte = at(1);
        let word = u16::from_le_bytes([byte, at(2)]);
        // A pointer's high byte comes from the same page.
        let pointer = |low: u16| u16::from_le_bytes([peek(low), peek(low & 0xFF00 | low.wrapping_add(1) & 0x00FF)]);
        let zero_page = |index: u8| {
            let to = byte.wrapping_add(index);
            format!("@ {to:02X} = {:02X}", peek(to.into()))
        };
        let indexed = |base: u16, index: u8| {
            let to = base.wrapping_add(index.into());
            format!("@ {to:04X} = {:02X}", peek(to))
        };
        match mode {
            Mode::Imp => String::new(),
            Mode::Acc => "A".into(),
            Mode::Imm => format!("#${byte:02X}"),
            Mode::Zp => format!("${byte:02X} = {:02X}", peek(byte.into())),
            Mode::Zpx => format!("${byte:02X},X {}", zero_page(self.x)),
            Mode::Zpy => format!("${byte:02X},Y {}", zero_page(self.y)),
            Mode::Abs if matches!(mnemonic, Mnemonic::Jmp | Mnemonic::Jsr) => format!("${word:04X}"),
            Mode::Abs => format!("${word:04X} = {:02X}", peek(word)),
            Mode::Abx => format!("${word:04X},X {}", indexed(word, self.x)),
            Mode::Aby => format!("${word:04X},Y {}", indexed(word, self.y)),
            Mode::Ind => format!("(${word:04X}) = {:04X}", pointer(word)),
            Mode::Izx => {
                let low = byte.wrapping_add(self.x);
                let to = pointer(low.into());
                format!("(${byte:02X},X) @ {low:02X} = {to:04X} = {:02X}", peek(to))
            }
            Mode::Izy => {
                let base = pointer(byte.into());
                format!("(${byte:02X}),Y = {base:04X} {}", indexed(base, self.y))
            }
            Mode::Rel => {
                let to = self.pc.wrapping_add(2).wrapping_add_signed(i16::from(i8::from_le_bytes([byte])));
                format!("${to:04X}")
            }
        }
    }
}

/// As nestest's log has it: ISC is ISB there.
fn name(mnemonic: Mnemonic) -> String {
    match mnemonic {
        Mnemonic::Isc => "ISB".into(),
        other => format!("{other:?}").to_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::Moment;

    const MOMENT: Moment = Moment { pc: 0x8000, a: 1, x: 2, y: 0xFF, p: 0x24, s: 0xFD, line: 7, dot: 340, cycles: 99 };

    fn text(program: &[u8]) -> String {
        let peek = |at: u16| match at {
            0x8000.. => program.get(usize::from(at - 0x8000)).copied().unwrap_or(0),
            _ => at as u8,
        };
        MOMENT.instruction(peek)[15..48].trim_end().to_owned()
    }

    #[test]
    fn every_mode_has_its_form_and_pointers_stay_in_their_page() {
        for (program, expected) in [
            (&[0xEA][..], " NOP"),
            (&[0x4A], " LSR A"),
            (&[0xA9, 0x0F], " LDA #$0F"),
            (&[0x85, 0x10], " STA $10 = 10"),
            (&[0xB5, 0xFF], " LDA $FF,X @ 01 = 01"),
            (&[0xB6, 0x10], " LDX $10,Y @ 0F = 0F"),
            (&[0xAD, 0x34, 0x12], " LDA $1234 = 34"),
            (&[0xBD, 0xFF, 0x12], " LDA $12FF,X @ 1301 = 01"),
            (&[0xB9, 0x01, 0x12], " LDA $1201,Y @ 1300 = 00"),
            (&[0x6C, 0xFF, 0x02], " JMP ($02FF) = 00FF"),
            (&[0xA1, 0xFD], " LDA ($FD,X) @ FF = 00FF = FF"),
            (&[0xB1, 0x20], " LDA ($20),Y = 2120 @ 221F = 1F"),
            (&[0x20, 0x34, 0x12], " JSR $1234"),
            (&[0xD0, 0xFE], " BNE $8000"),
            (&[0xE7, 0x10], "*ISB $10 = 10"),
            (&[0x04, 0x10], "*NOP $10 = 10"),
        ] {
            assert_eq!(text(program), expected, "{program:02X?}");
        }
    }

    #[test]
    fn an_interrupt_has_the_same_columns() {
        let expected = "8000            [NMI]                           A:01 X:02 Y:FF P:24 SP:FD PPU:  7,340 CYC:99";
        assert_eq!(MOMENT.interrupt("NMI"), expected);
    }
}
