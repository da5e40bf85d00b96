//! Passing over loops that only wait for an interrupt.
//!
//! A loop whose body reads memory without side effects and computes registers from nothing else comes to the same
//! registers in every turn: once a turn has run undisturbed and ended by going back, so will all others until an
//! interrupt changes memory. Then time may pass by whole turns, up to the deadline and never beyond; the last turn is
//! executed, so the loop keeps its phase. Branches are told by pattern, not by address.

use super::Core;
use crate::emulator::nes::opcodes::{Mnemonic, Mode, OPCODES};

/// No longer loop is looked at: a branch goes back by so many bytes at most, its own two included.
const LONGEST: i8 = 10;

/// What an opcode does in a waiting loop: nothing lasting, with this many bytes.
const HARMLESS: [bool; 256] = {
    let mut table = [false; 256];
    let mut code = 0;
    while code < 256 {
        let row = &OPCODES[code];
        table[code] = matches!(row.mode, Mode::Imm | Mode::Zp | Mode::Abs)
            && matches!(
                row.mnemonic,
                Mnemonic::Lda
                    | Mnemonic::Ldx
                    | Mnemonic::Ldy
                    | Mnemonic::Cmp
                    | Mnemonic::Cpx
                    | Mnemonic::Cpy
                    | Mnemonic::Bit
                    | Mnemonic::And
                    | Mnemonic::Ora
            );
        code += 1;
    }
    table
};

/// Is the instruction at `at` of a kind that a waiting loop may have? Registers between $2000 and $5FFF do things when
/// they are read.
#[inline(always)]
fn harmless(rom: impl Fn(u16) -> u8, at: u16) -> bool {
    let code = usize::from(rom(at));
    HARMLESS[code] && !(OPCODES[code].mode == Mode::Abs && matches!(rom(at.wrapping_add(2)), 0x20..0x60))
}

/// Cycles of a turn, if the loop from `to` to the branch that ends before `end` only waits. `rom` reads PRG-ROM.
pub(in super::super) fn waiting_period(rom: impl Fn(u16) -> u8, to: u16, end: u16) -> Option<u64> {
    let branch = end.wrapping_sub(2);
    if to < 0x8000 || end <= to || i32::from(end - to) > i32::from(LONGEST) || to == branch {
        return None;
    }
    let mut at = to;
    let mut cycles = if (end ^ to) & 0xFF00 == 0 { 3 } else { 4 };
    while at < branch {
        if !harmless(&rom, at) {
            return None;
        }
        let row = OPCODES[usize::from(rom(at))];
        cycles += u64::from(row.cycles);
        at += u16::from(row.mode.bytes());
    }
    (at == branch).then_some(cycles)
}

impl<const EXACT: bool> Core<'_, EXACT> {
    /// `JMP` to itself has just been executed.
    #[inline(always)]
    pub(super) fn pass_jump_turns(&mut self) {
        self.pass_turns(3);
    }

    /// A branch back to `to` has just been taken; `end` is the address behind it.
    #[inline(always)]
    pub(super) fn pass_branch_turns(&mut self, to: u16, end: u16, distance: i8) {
        // A loop that polls $2002 comes by here at every turn: its first instruction tells it apart.
        if (-LONGEST..=-4).contains(&distance) && to >= 0x8000 && harmless(|at| self.rom(at), to) {
            if let Some(period) = waiting_period(|at| self.rom(at), to, end) {
                // An interrupt within the turn may have changed what the next one will read.
                if self.turn_began == (to, self.cycles - period) {
                    self.pass_turns(period);
                }
                self.turn_began = (to, self.cycles);
            }
        }
    }

    fn rom(&self, address: u16) -> u8 {
        self.windows[usize::from(address >> 13 & 3)][usize::from(address & 0x1FFF)]
    }

    /// Whole turns up to the deadline.
    #[inline(always)]
    fn pass_turns(&mut self, period: u64) {
        let deadline = self.bus.deadline;
        if self.bus.idle_skip && deadline > self.cycles {
            self.cycles += (deadline - self.cycles) / period * period;
        }
    }
}
