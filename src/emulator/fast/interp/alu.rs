//! What operations do to registers and flags. The 2A03's adder has no decimal mode.

use super::Core;

/// The constant that unstable opcodes (ANE, LXA) mix into A; it differs from chip to chip, this is common.
const MAGIC: u8 = 0xFF;

impl<const EXACT: bool> Core<'_, EXACT> {
    #[inline(always)]
    pub(super) fn lda(&mut self, value: u8) {
        self.cpu.a = value;
        self.cpu.set_nz(value);
    }

    #[inline(always)]
    pub(super) fn ldx(&mut self, value: u8) {
        self.cpu.x = value;
        self.cpu.set_nz(value);
    }

    #[inline(always)]
    pub(super) fn ldy(&mut self, value: u8) {
        self.cpu.y = value;
        self.cpu.set_nz(value);
    }

    #[inline(always)]
    pub(super) fn lax(&mut self, value: u8) {
        self.cpu.x = value;
        self.lda(value);
    }

    #[inline(always)]
    pub(super) fn lxa(&mut self, value: u8) {
        self.lax((self.cpu.a | MAGIC) & value);
    }

    #[inline(always)]
    pub(super) fn las(&mut self, value: u8) {
        self.cpu.s &= value;
        self.lax(self.cpu.s);
    }

    #[allow(clippy::unused_self)] // has the shape of an operation
    #[inline(always)]
    pub(super) fn ignore(&mut self, _value: u8) {}

    #[inline(always)]
    pub(super) fn ora(&mut self, value: u8) {
        self.lda(self.cpu.a | value);
    }

    #[inline(always)]
    pub(super) fn and(&mut self, value: u8) {
        self.lda(self.cpu.a & value);
    }

    #[inline(always)]
    pub(super) fn eor(&mut self, value: u8) {
        self.lda(self.cpu.a ^ value);
    }

    #[inline(always)]
    pub(super) fn adc(&mut self, value: u8) {
        let a = self.cpu.a;
        let sum = u16::from(a) + u16::from(value) + u16::from(self.cpu.c);
        let result = sum as u8;
        self.cpu.c = (sum >> 8) as u8;
        self.cpu.v = (a ^ result) & (value ^ result) & 0x80 != 0;
        self.lda(result);
    }

    #[inline(always)]
    pub(super) fn sbc(&mut self, value: u8) {
        self.adc(!value);
    }

    #[inline(always)]
    fn compare(&mut self, register: u8, value: u8) {
        self.cpu.c = u8::from(register >= value);
        self.cpu.set_nz(register.wrapping_sub(value));
    }

    #[inline(always)]
    pub(super) fn cmp(&mut self, value: u8) {
        self.compare(self.cpu.a, value);
    }

    #[inline(always)]
    pub(super) fn cpx(&mut self, value: u8) {
        self.compare(self.cpu.x, value);
    }

    #[inline(always)]
    pub(super) fn cpy(&mut self, value: u8) {
        self.compare(self.cpu.y, value);
    }

    #[inline(always)]
    pub(super) fn bit(&mut self, value: u8) {
        self.cpu.n = value;
        self.cpu.v = value & 0x40 != 0;
        self.cpu.z = self.cpu.a & value;
    }

    #[inline(always)]
    pub(super) fn anc(&mut self, value: u8) {
        self.and(value);
        self.cpu.c = self.cpu.a >> 7;
    }

    #[inline(always)]
    pub(super) fn alr(&mut self, value: u8) {
        self.cpu.a = self.lsr(self.cpu.a & value);
    }

    #[inline(always)]
    pub(super) fn arr(&mut self, value: u8) {
        let result = (self.cpu.a & value) >> 1 | self.cpu.c << 7;
        self.lda(result);
        self.cpu.c = result >> 6 & 1;
        self.cpu.v = (result >> 6 ^ result >> 5) & 1 != 0;
    }

    #[inline(always)]
    pub(super) fn ane(&mut self, value: u8) {
        self.lda((self.cpu.a | MAGIC) & self.cpu.x & value);
    }

    #[inline(always)]
    pub(super) fn sbx(&mut self, value: u8) {
        let both = self.cpu.a & self.cpu.x;
        self.compare(both, value);
        self.cpu.x = both.wrapping_sub(value);
    }

    #[inline(always)]
    pub(super) fn asl(&mut self, value: u8) -> u8 {
        self.cpu.c = value >> 7;
        self.result(value << 1)
    }

    #[inline(always)]
    pub(super) fn lsr(&mut self, value: u8) -> u8 {
        self.cpu.c = value & 1;
        self.result(value >> 1)
    }

    #[inline(always)]
    pub(super) fn rol(&mut self, value: u8) -> u8 {
        let carry = self.cpu.c;
        self.cpu.c = value >> 7;
        self.result(value << 1 | carry)
    }

    #[inline(always)]
    pub(super) fn ror(&mut self, value: u8) -> u8 {
        let carry = self.cpu.c;
        self.cpu.c = value & 1;
        self.result(value >> 1 | carry << 7)
    }

    #[inline(always)]
    pub(super) fn inc(&mut self, value: u8) -> u8 {
        self.result(value.wrapping_add(1))
    }

    #[inline(always)]
    pub(super) fn dec(&mut self, value: u8) -> u8 {
        self.result(value.wrapping_sub(1))
    }

    #[inline(always)]
    fn result(&mut self, value: u8) -> u8 {
        self.cpu.set_nz(value);
        value
    }

    #[inline(always)]
    pub(super) fn slo(&mut self, value: u8) -> u8 {
        let result = self.asl(value);
        self.ora(result);
        result
    }

    #[inline(always)]
    pub(super) fn rla(&mut self, value: u8) -> u8 {
        let result = self.rol(value);
        self.and(result);
        result
    }

    #[inline(always)]
    pub(super) fn sre(&mut self, value: u8) -> u8 {
        let result = self.lsr(value);
        self.eor(result);
        result
    }

    #[inline(always)]
    pub(super) fn rra(&mut self, value: u8) -> u8 {
        let result = self.ror(value);
        self.adc(result);
        result
    }

    #[inline(always)]
    pub(super) fn dcp(&mut self, value: u8) -> u8 {
        let result = value.wrapping_sub(1);
        self.cmp(result);
        result
    }

    #[inline(always)]
    pub(super) fn isc(&mut self, value: u8) -> u8 {
        let result = value.wrapping_add(1);
        self.sbc(result);
        result
    }
}
