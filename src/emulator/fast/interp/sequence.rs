//! Instructions with a bus sequence of their own: branches, jumps, stack, interrupts, unstable stores.

use super::super::bus::{Interrupt, SEQUENCE_SLACK};
use super::super::cpu::BREAK;
use super::Core;

const NMI_VECTOR: u16 = 0xFFFA;
const IRQ_VECTOR: u16 = 0xFFFE;

impl<const EXACT: bool> Core<'_, EXACT> {
    /// A branch of two cycles; three when taken, four when that leaves the page. Interrupts are polled before the
    /// second cycle and, on leaving the page, before the fourth, but not before the third.
    #[inline(always)]
    pub(super) fn branch(&mut self, taken: bool) {
        let distance = self.fetch() as i8;
        if !taken {
            return;
        }
        let from = self.cpu.pc;
        let to = from.wrapping_add_signed(i16::from(distance));
        self.cpu.pc = to;
        self.dummy_read(from);
        let stays = (from ^ to) & 0xFF00 == 0;
        if !stays {
            self.dummy_read(from & 0xFF00 | to & 0x00FF);
        }
        if !EXACT {
            self.pass_branch_turns(to, from, distance);
        }
        if stays {
            self.bus.late_poll(self.cycles, 3);
        }
    }

    #[inline(always)]
    pub(super) fn jmp(&mut self) {
        let from = self.cpu.pc.wrapping_sub(1);
        let to = self.fetch_word();
        self.cpu.pc = to;
        if !EXACT && to == from {
            self.pass_jump_turns();
        }
    }

    /// The pointer's high byte comes from the same page as its low byte.
    #[inline(always)]
    pub(super) fn jmp_indirect(&mut self) {
        let at = self.fetch_word();
        let low = self.read(at);
        let high = self.read(at & 0xFF00 | at.wrapping_add(1) & 0x00FF);
        self.cpu.pc = u16::from_le_bytes([low, high]);
    }

    #[inline(always)]
    pub(super) fn jsr(&mut self) {
        let low = self.fetch();
        self.dummy_stack_read();
        let [return_low, return_high] = self.cpu.pc.to_le_bytes();
        self.push(return_high);
        self.push(return_low);
        self.cpu.pc = u16::from_le_bytes([low, self.read(self.cpu.pc)]);
    }

    #[inline(always)]
    fn pull_word(&mut self) -> u16 {
        let low = self.pull();
        u16::from_le_bytes([low, self.pull()])
    }

    #[inline(always)]
    pub(super) fn rts(&mut self) {
        self.dummy_fetch();
        self.dummy_stack_read();
        let from = self.pull_word();
        self.dummy_read(from);
        self.cpu.pc = from.wrapping_add(1);
    }

    #[inline(always)]
    pub(super) fn rti(&mut self) {
        self.dummy_fetch();
        self.dummy_stack_read();
        let p = self.pull();
        let masked = self.cpu.i;
        self.cpu.set_p(p);
        if self.cpu.i != masked {
            self.bus.interrupts_changed();
        }
        self.cpu.pc = self.pull_word();
    }

    #[inline(always)]
    pub(super) fn pla(&mut self) {
        self.dummy_fetch();
        self.dummy_stack_read();
        let value = self.pull();
        self.lda(value);
    }

    #[inline(always)]
    pub(super) fn plp(&mut self) {
        self.dummy_fetch();
        self.dummy_stack_read();
        let p = self.pull();
        let masked = self.cpu.i;
        self.cpu.set_p(p);
        let now_masked = self.cpu.i;
        self.cpu.i = masked;
        self.set_i_late(now_masked);
    }

    /// I changes after the poll of the instruction that changes it.
    #[inline(always)]
    pub(super) fn set_i_late(&mut self, masked: bool) {
        if self.cpu.i != masked {
            self.bus.mask_changed_late(self.cycles, self.cpu.i);
            self.cpu.i = masked;
        }
    }

    pub(super) fn brk(&mut self) {
        self.fetch();
        self.interrupt_from(Interrupt::Irq, BREAK);
    }

    /// The sequence of an interrupt that was polled: an opcode fetch that comes to nothing, then as BRK.
    pub(super) fn interrupt(&mut self, kind: Interrupt) {
        self.dummy_fetch();
        self.dummy_fetch();
        self.interrupt_from(kind, 0);
    }

    /// From the third cycle on. An NMI that comes before P is pushed takes the sequence over.
    fn interrupt_from(&mut self, kind: Interrupt, break_bit: u8) {
        let [low, high] = self.cpu.pc.to_le_bytes();
        self.push(high);
        self.push(low);
        let nmi = self.bus.take_nmi(self.cycles) || kind == Interrupt::Nmi;
        self.push(self.cpu.p() | break_bit);
        self.cpu.i = true;
        let vector = if nmi { NMI_VECTOR } else { IRQ_VECTOR };
        let low = self.read(vector);
        self.cpu.pc = u16::from_le_bytes([low, self.read(vector + 1)]);
        self.bus.late_poll(self.cycles, SEQUENCE_SLACK);
        self.bus.interrupts_changed();
    }

    /// The processor hangs until reset.
    pub(super) fn jam(&mut self) {
        self.dummy_fetch();
        self.cpu.pc = self.cpu.pc.wrapping_sub(1);
        self.cpu.jammed = true;
        self.bus.interrupts_changed();
    }

    pub(super) fn tas(&mut self) {
        self.cpu.s = self.cpu.a & self.cpu.x;
        let base = self.fetch_word();
        self.unstable_store(base, self.cpu.y, self.cpu.s);
    }

    pub(super) fn shy(&mut self) {
        let base = self.fetch_word();
        self.unstable_store(base, self.cpu.x, self.cpu.y);
    }

    pub(super) fn shx(&mut self) {
        let base = self.fetch_word();
        self.unstable_store(base, self.cpu.y, self.cpu.x);
    }

    pub(super) fn sha_aby(&mut self) {
        let base = self.fetch_word();
        self.unstable_store(base, self.cpu.y, self.cpu.a & self.cpu.x);
    }

    pub(super) fn sha_izy(&mut self) {
        let base = self.izy_base();
        self.unstable_store(base, self.cpu.y, self.cpu.a & self.cpu.x);
    }

    /// Stores `value` AND the base's high byte plus one; on a carry that value also becomes the high byte of the
    /// address. A DMA that halts the dummy read leaves the high byte out of it.
    fn unstable_store(&mut self, base: u16, index: u8, value: u8) {
        let address = base.wrapping_add(u16::from(index));
        let before = self.cycles;
        self.dummy_read(base & 0xFF00 | address & 0x00FF);
        let halted = self.cycles - before > 1;
        let stored = if halted { value } else { value & ((base >> 8) as u8).wrapping_add(1) };
        let crossed = (base ^ address) & 0xFF00 != 0;
        let high = if crossed { (address >> 8) as u8 & value } else { (address >> 8) as u8 };
        self.write(u16::from(high) << 8 | address & 0x00FF, stored);
    }
}
