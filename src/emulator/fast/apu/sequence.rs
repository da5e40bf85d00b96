//! The frame sequence (nesdev wiki, "APU Frame Counter"): what clocks envelopes and lengths, and the frame IRQ.

use super::super::bus::NEVER;
use super::distance;
use crate::emulator::nes::state::ApuState;

/// What a step of the sequence clocks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Clocks {
    None,
    /// Envelopes and the linear counter.
    Quarter,
    /// Those, and lengths and sweeps.
    Half,
}

/// A step: CPU cycles since the sequence began, what it clocks, whether it raises the IRQ.
struct Step {
    at: u64,
    clocks: Clocks,
    irq: bool,
}

const fn step(at: u64, clocks: Clocks, irq: bool) -> Step {
    Step { at, clocks, irq }
}

/// Bit 7 of $4017 clear: four steps and an IRQ, which is raised in three cycles in a row.
const FOUR: [Step; 6] = [
    step(7457, Clocks::Quarter, false),
    step(14913, Clocks::Half, false),
    step(22371, Clocks::Quarter, false),
    step(29828, Clocks::None, true),
    step(29829, Clocks::Half, true),
    step(29830, Clocks::None, true),
];
/// Bit 7 set: five steps, no IRQ.
const FIVE: [Step; 6] = [
    step(7457, Clocks::Quarter, false),
    step(14913, Clocks::Half, false),
    step(22371, Clocks::Quarter, false),
    step(29829, Clocks::None, false),
    step(37281, Clocks::Half, false),
    step(37282, Clocks::None, false),
];
/// The first step of `FOUR` that raises the IRQ.
const FIRST_IRQ_STEP: usize = 3;
const FIVE_STEPS: u8 = 0x80;
const IRQ_OFF: u8 = 0x40;
/// How far the sequence is when the reset sequence of the CPU begins.
const POWER_ON_AHEAD: u64 = 0;

#[derive(Clone, Copy)]
pub(super) struct Sequence {
    /// $4017 as written last.
    written: u8,
    /// The mode that runs; a write changes it when it restarts the sequence.
    five: bool,
    /// The cycle in which the sequence began.
    origin: u64,
    /// The next step of it.
    next: usize,
    restart_at: u64,
    /// Since when the IRQ flag is set, `NEVER` while it is not.
    irq_since: u64,
}

impl Sequence {
    pub(super) fn power_on() -> Self {
        Self { written: 0, five: false, origin: POWER_ON_AHEAD, next: 0, restart_at: NEVER, irq_since: NEVER }
    }

    fn steps(&self) -> &'static [Step; 6] {
        if self.five { &FIVE } else { &FOUR }
    }

    /// $4017 is written with its last value before `cycle`.
    pub(super) fn restart_for_reset(&mut self, cycle: u64) {
        self.irq_since = NEVER;
        self.five = self.written & FIVE_STEPS != 0;
        self.origin = cycle + POWER_ON_AHEAD;
        self.next = 0;
        self.restart_at = NEVER;
    }

    pub(super) fn write(&mut self, value: u8, cycle: u64) {
        self.written = value;
        if value & IRQ_OFF != 0 {
            self.irq_since = NEVER;
        }
        // The restart waits for the end of an APU cycle, which are two CPU cycles.
        self.restart_at = cycle + if cycle & 1 == 0 { 4 } else { 3 };
    }

    /// The cycle in which the next step happens.
    #[inline(always)]
    pub(super) fn next_at(&self) -> u64 {
        self.restart_at.min(self.origin + self.steps()[self.next].at)
    }

    /// Takes the sequence one step on, if that step happens in `cycle` or before; gives its time and clocks.
    pub(super) fn next_clock(&mut self, cycle: u64) -> Option<(u64, Clocks)> {
        let step = &self.steps()[self.next];
        let at = self.origin + step.at;
        if self.restart_at <= at {
            if self.restart_at > cycle {
                return None;
            }
            let at = std::mem::replace(&mut self.restart_at, NEVER);
            self.five = self.written & FIVE_STEPS != 0;
            self.origin = at;
            self.next = 0;
            return Some((at, if self.five { Clocks::Half } else { Clocks::None }));
        }
        if at > cycle {
            return None;
        }
        if step.irq && self.written & IRQ_OFF == 0 {
            self.irq_since = self.irq_since.min(at);
        }
        self.next += 1;
        if self.next == self.steps().len() {
            self.next = 0;
            self.origin = at;
        }
        Some((at, step.clocks))
    }

    /// Reads and clears the IRQ flag.
    pub(super) fn acknowledge(&mut self, cycle: u64) -> bool {
        let set = self.irq_since <= cycle;
        if set {
            self.irq_since = NEVER;
        }
        set
    }

    /// From when on the IRQ line is held.
    #[inline]
    pub(super) fn irq_at(&self) -> u64 {
        if self.irq_since != NEVER || self.written & IRQ_OFF != 0 {
            return self.irq_since;
        }
        let in_this = if self.five { NEVER } else { self.origin + FOUR[self.next.max(FIRST_IRQ_STEP)].at };
        if in_this < self.restart_at {
            return in_this;
        }
        if self.restart_at == NEVER || self.written & FIVE_STEPS != 0 {
            return NEVER;
        }
        self.restart_at + FOUR[FIRST_IRQ_STEP].at
    }

    pub(super) fn export(&self, state: &mut ApuState, cycle: u64) {
        state.frame_mode = self.written;
        state.frame_five = self.five;
        state.frame_cycle = (cycle - self.origin) as u16;
        state.frame_restart = distance(self.restart_at, cycle).map_or(0, |wait| wait as u8 + 1);
        state.frame_irq = self.irq_since < cycle;
    }

    pub(super) fn import(&mut self, state: &ApuState, cycle: u64) {
        self.written = state.frame_mode;
        self.five = state.frame_five;
        self.origin = cycle.saturating_sub(u64::from(state.frame_cycle));
        self.next = self.steps().iter().position(|step| self.origin + step.at >= cycle).unwrap_or(0);
        self.restart_at = match state.frame_restart {
            0 => NEVER,
            wait => cycle + u64::from(wait) - 1,
        };
        self.irq_since = if state.frame_irq { cycle.saturating_sub(2) } else { NEVER };
    }
}
