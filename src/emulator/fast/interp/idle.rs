//! Passing over loops that only wait for an interrupt.
//!
//! A loop whose body reads memory without side effects and computes registers from nothing else comes to the same
//! registers in every turn: once a turn has run undisturbed and ended by going back, so will all others until an
//! interrupt changes memory. Then time may pass by whole turns, up to the deadline and never beyond; the last turn is
//! executed, so the loop keeps its phase. Branches are told by pattern, not by address.
//!
//! A loop that polls $2002 does so too as long as the register reads the same and reading it does nothing new; the PPU
//! foretells until when that is.

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

/// A turn of a loop that only waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Turn {
    pub cycles: u64,
    /// It reads $2002, once.
    pub polls: bool,
}

/// Whether the instruction at `at` is of a kind that a waiting loop may have, and then whether it reads $2002. The other
/// registers between $2000 and $5FFF do things when they are read.
#[inline(always)]
fn harmless(rom: impl Fn(u16) -> u8, at: u16) -> Option<bool> {
    let code = usize::from(rom(at));
    if !HARMLESS[code] {
        return None;
    }
    match rom(at.wrapping_add(2)) {
        0x20..0x60 if OPCODES[code].mode == Mode::Abs => {
            (rom(at.wrapping_add(2)) < 0x40 && rom(at.wrapping_add(1)) & 7 == 2).then_some(true)
        }
        _ => Some(false),
    }
}

/// The turn of the loop from `to` to the branch that ends before `end`, if it only waits. `rom` reads PRG-ROM.
pub(in super::super) fn waiting_turn(rom: impl Fn(u16) -> u8, to: u16, end: u16) -> Option<Turn> {
    let branch = end.wrapping_sub(2);
    if to < 0x8000 || end <= to || i32::from(end - to) > i32::from(LONGEST) || to == branch {
        return None;
    }
    let mut at = to;
    let mut turn = Turn { cycles: if (end ^ to) & 0xFF00 == 0 { 3 } else { 4 }, polls: false };
    while at < branch {
        let polls = harmless(&rom, at)?;
        if polls && turn.polls {
            return None;
        }
        turn.polls |= polls;
        let row = OPCODES[usize::from(rom(at))];
        turn.cycles += u64::from(row.cycles);
        at += u16::from(row.mode.bytes());
    }
    (at == branch).then_some(turn)
}

/// The time behind the last whole turn that ends by `end`.
#[inline]
pub(in super::super) fn after_turns(now: u64, end: u64, cycles: u64) -> u64 {
    now + end.saturating_sub(now) / cycles * cycles
}

/// A turn of a loop that polls, as translated code may pass over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Poll {
    pub cycles: u64,
    /// From the cycle in which it reads $2002 to its end.
    pub since_read: u64,
}

/// RTI takes so long.
const RETURN_CYCLES: u64 = 6;

/// The turn of `waiting_turn`, if the time of its read tells that nothing came between: it begins with the read, and ends
/// earlier behind it than a handler could that interrupted it and read $2002 as its last deed but RTI.
pub(in super::super) fn poll(rom: impl Fn(u16) -> u8, to: u16, end: u16) -> Option<Poll> {
    let turn = waiting_turn(&rom, to, end).filter(|turn| turn.polls)?;
    let read = u64::from(OPCODES[usize::from(rom(to))].cycles);
    let branch = if (end ^ to) & 0xFF00 == 0 { 3 } else { 4 };
    let certain = harmless(&rom, to) == Some(true) && turn.cycles - read - branch < RETURN_CYCLES;
    certain.then_some(Poll { cycles: turn.cycles, since_read: turn.cycles - read + 1 })
}

impl<const EXACT: bool> Core<'_, EXACT> {
    /// `JMP` to itself has just been executed.
    #[inline(always)]
    pub(super) fn pass_jump_turns(&mut self) {
        self.pass_turns(Turn { cycles: 3, polls: false });
    }

    /// A branch back to `to` has just been taken; `end` is the address behind it.
    #[inline(always)]
    pub(super) fn pass_branch_turns(&mut self, to: u16, end: u16, distance: i8) {
        // Most loops are told by their first instruction.
        if (-LONGEST..=-4).contains(&distance) && to >= 0x8000 && harmless(|at| self.rom(at), to).is_some() {
            if let Some(turn) = waiting_turn(|at| self.rom(at), to, end) {
                // An interrupt within the turn may have changed what the next one will read.
                if self.turn_began == (to, self.cycles - turn.cycles) {
                    self.pass_turns(turn);
                }
                self.turn_began = (to, self.cycles);
            }
        }
    }

    fn rom(&self, address: u16) -> u8 {
        self.windows[usize::from(address >> 13 & 3)][usize::from(address & 0x1FFF)]
    }

    /// Whole turns, as far as nothing changes.
    #[inline(always)]
    fn pass_turns(&mut self, turn: Turn) {
        if turn.polls && self.bus.poll_skip {
            self.cycles = self.bus.after_polls(self.cycles, turn.cycles);
        } else if !turn.polls && self.bus.idle_skip {
            self.cycles = after_turns(self.cycles, self.bus.deadline, turn.cycles);
        }
    }
}
