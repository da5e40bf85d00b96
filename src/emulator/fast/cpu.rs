//! The CPU's registers as the interpreter keeps them: flags apart, so that an instruction writes only its own.

use crate::emulator::nes::state::CpuState;

/// Bits of P.
pub(super) const CARRY: u8 = 0x01;
pub(super) const ZERO: u8 = 0x02;
pub(super) const IRQ_OFF: u8 = 0x04;
pub(super) const DECIMAL: u8 = 0x08;
pub(super) const BREAK: u8 = 0x10;
pub(super) const UNUSED: u8 = 0x20;
pub(super) const OVERFLOW: u8 = 0x40;
pub(super) const NEGATIVE: u8 = 0x80;

#[derive(Clone, Copy, Default)]
pub(super) struct Cpu {
    pub pc: u16,
    pub a: u8,
    pub x: u8,
    pub y: u8,
    pub s: u8,
    /// N is this value's bit 7.
    pub n: u8,
    /// Z is set while this is 0.
    pub z: u8,
    /// C, 0 or 1.
    pub c: u8,
    pub v: bool,
    pub i: bool,
    pub d: bool,
    pub jammed: bool,
}

impl Cpu {
    /// P with bit 5 set and bit 4 clear.
    #[inline]
    pub(super) fn p(&self) -> u8 {
        let bit = |on: bool, mask: u8| if on { mask } else { 0 };
        UNUSED
            | self.n & NEGATIVE
            | bit(self.v, OVERFLOW)
            | bit(self.d, DECIMAL)
            | bit(self.i, IRQ_OFF)
            | bit(self.z == 0, ZERO)
            | self.c
    }

    #[inline]
    pub(super) fn set_p(&mut self, p: u8) {
        self.n = p & NEGATIVE;
        self.v = p & OVERFLOW != 0;
        self.d = p & DECIMAL != 0;
        self.i = p & IRQ_OFF != 0;
        self.z = !p & ZERO;
        self.c = p & CARRY;
    }

    #[inline]
    pub(super) fn set_nz(&mut self, value: u8) {
        self.n = value;
        self.z = value;
    }

    pub(super) fn from_state(state: &CpuState) -> Self {
        let CpuState { pc, a, x, y, s, jammed, .. } = *state;
        let mut cpu = Self { pc, a, x, y, s, jammed, ..Self::default() };
        cpu.set_p(state.p);
        cpu
    }
}

#[cfg(test)]
mod tests {
    use super::{BREAK, Cpu, UNUSED};

    #[test]
    fn every_status_survives_taking_apart() {
        for p in 0..=255 {
            let mut cpu = Cpu::default();
            cpu.set_p(p);
            assert_eq!(cpu.p(), p & !BREAK | UNUSED);
        }
    }
}
