//! Stores in a row to the PPU's scroll, address and data: how games fill name tables in vblank. A row is one call, with the
//! stores as data.

use super::decode::{Area, Instruction, area};
use crate::emulator::fast::ppu::{Source, Store};
use crate::emulator::nes::opcodes::{Mnemonic, Mode};

/// Fewer stores are calls of their own.
const FEWEST: usize = 3;
/// When a store with an absolute operand writes, in cycles since it began.
const WRITES_AFTER: u16 = 3;

/// A row of loads into A and stores of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Its instructions.
    pub length: usize,
    pub cycles: u16,
    pub stores: Box<[Store]>,
}

/// Keeps rows where they are, as long as the code that calls with them.
#[derive(Default)]
pub(super) struct Rows(Vec<Box<[Store]>>);

impl Rows {
    pub(super) fn keep(&mut self, row: Box<[Store]>) -> &[Store] {
        self.0.push(row);
        self.0.last().expect("it was pushed")
    }
}

/// The row that these instructions begin with.
pub(super) fn row(instructions: &[Instruction]) -> Option<Row> {
    let mut from = None;
    let mut elapsed = 0;
    let mut stores = Vec::new();
    let mut end = (0, 0);
    for (at, instruction) in instructions.iter().enumerate() {
        match (instruction.row.mnemonic, from) {
            (Mnemonic::Lda, _) if source(instruction).is_some() => from = source(instruction),
            (Mnemonic::Sta, Some(from)) if writes_picture(instruction) => {
                stores.push(Store { cycle: elapsed + WRITES_AFTER, register: (instruction.operand & 7) as u8, from });
                end = (at + 1, elapsed + u16::from(instruction.row.cycles));
            }
            _ => break,
        }
        elapsed += u16::from(instruction.row.cycles);
    }
    let (length, cycles) = end;
    (stores.len() >= FEWEST).then(|| Row { length, cycles, stores: stores.into() })
}

/// Where a load gets its value, if that is its operand or RAM at a fixed address.
fn source(load: &Instruction) -> Option<Source> {
    match load.row.mode {
        Mode::Imm => Some(Source::Value(load.operand as u8)),
        Mode::Zp => Some(Source::Ram(load.operand)),
        Mode::Abs if area(load.operand) == Area::Ram => Some(Source::Ram(load.operand & 0x07FF)),
        _ => None,
    }
}

fn writes_picture(store: &Instruction) -> bool {
    store.row.mode == Mode::Abs && matches!(store.operand, 0x2000..0x4000) && store.operand & 7 >= 5
}

#[cfg(test)]
mod tests {
    use super::super::Image;
    use super::super::decode::decode;
    use super::{Source, Store, row};

    /// Instructions, cycles and stores of the row that a program begins with.
    fn row_of(program: &[u8], instructions: usize) -> Option<(usize, u16, Vec<Store>)> {
        let mut bytes = program.to_vec();
        bytes.resize(0x8000, 0xEA);
        let image = Image::of(&bytes);
        let mut at = 0x8000;
        let mut decoded = Vec::new();
        for _ in 0..instructions {
            decoded.push(decode(&image, at));
            at = decoded[decoded.len() - 1].end;
        }
        row(&decoded).map(|row| (row.length, row.cycles, row.stores.to_vec()))
    }

    #[test]
    fn a_row_ends_with_its_last_store() {
        // LDA #$20, STA $2006, STA $2006, LDA $10, STA $3FFF, LDA $1A34, NOP.
        let program =
            [0xA9, 0x20, 0x8D, 0x06, 0x20, 0x8D, 0x06, 0x20, 0xA5, 0x10, 0x8D, 0xFF, 0x3F, 0xAD, 0x34, 0x1A, 0xEA];
        let value = Source::Value(0x20);
        let store = |cycle, register, from| Store { cycle, register, from };
        let stores = vec![store(5, 6, value), store(9, 6, value), store(16, 7, Source::Ram(0x10))];
        assert_eq!(row_of(&program, 7), Some((5, 17, stores)));
        assert_eq!(row_of(&program, 3), None, "two stores are no row");
        assert_eq!(row_of(&program[2..], 6), None, "A is not known");
    }

    #[test]
    fn other_registers_and_other_operands_end_a_row() {
        // LDA #1, STA $2005, STA $2006, and then STA $2007; what stands in its place ends the row.
        let row_with = |last: [u8; 3]| row_of(&[&[0xA9, 1, 0x8D, 5, 0x20, 0x8D, 6, 0x20][..], &last].concat(), 4);
        assert!(row_with([0x8D, 7, 0x20]).is_some());
        for last in [[0x8D, 0, 0x20], [0x8D, 4, 0x20], [0x8E, 7, 0x20], [0x9D, 7, 0x20], [0x8D, 7, 0x40]] {
            assert_eq!(row_with(last), None, "{last:02X?}");
        }
    }
}
