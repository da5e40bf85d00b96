//! Bus accesses of the CPU and addressing modes (6502 data sheet, appendix A: what is on the bus in each cycle).

use super::Core;

impl<const EXACT: bool> Core<'_, EXACT> {
    #[inline(always)]
    pub(super) fn read(&mut self, address: u16) -> u8 {
        let value = match address >> 13 {
            0 if !EXACT => self.bus.ram[usize::from(address & 0x07FF)],
            4.. if !EXACT => self.windows[usize::from(address >> 13 & 3)][usize::from(address & 0x1FFF)],
            _ => return self.read_at_bus(address),
        };
        self.cycles += 1;
        self.data_bus = value;
        value
    }

    #[inline(always)]
    fn read_at_bus(&mut self, address: u16) -> u8 {
        self.hand_over();
        let value = if EXACT { self.bus.read_with_dma(address) } else { self.bus.read(address) };
        self.take_back();
        value
    }

    #[inline(always)]
    pub(super) fn write(&mut self, address: u16, value: u8) {
        if address < 0x2000 {
            self.bus.ram[usize::from(address & 0x07FF)] = value;
            self.cycles += 1;
            self.data_bus = value;
        } else {
            self.hand_over();
            self.bus.write(address, value);
            self.take_back();
        }
    }

    /// A read whose value nobody wants, at an address that has no side effects.
    #[inline(always)]
    fn idle(&mut self, address: u16) {
        if EXACT {
            self.read_at_bus(address);
        } else {
            self.cycles += 1;
        }
    }

    /// A dummy read that may hit a register.
    #[inline(always)]
    pub(super) fn dummy_read(&mut self, address: u16) {
        if EXACT || matches!(address >> 13, 1..=3) {
            self.read_at_bus(address);
        } else {
            self.cycles += 1;
        }
    }

    /// The dummy read of the byte behind a one-byte instruction.
    #[inline(always)]
    pub(super) fn dummy_fetch(&mut self) {
        self.dummy_read(self.cpu.pc);
    }

    #[inline(always)]
    pub(super) fn dummy_stack_read(&mut self) {
        self.idle(0x0100 | u16::from(self.cpu.s));
    }

    /// The first write of a read-modify-write instruction: the value as it was.
    #[inline(always)]
    pub(super) fn write_back(&mut self, address: u16, value: u8) {
        if address < 0x2000 {
            self.cycles += 1;
        } else {
            self.write(address, value);
        }
    }

    #[inline(always)]
    pub(super) fn fetch(&mut self) -> u8 {
        let value = self.read(self.cpu.pc);
        self.cpu.pc = self.cpu.pc.wrapping_add(1);
        value
    }

    #[inline(always)]
    pub(super) fn fetch_word(&mut self) -> u16 {
        let low = self.fetch();
        u16::from_le_bytes([low, self.fetch()])
    }

    #[inline(always)]
    pub(super) fn push(&mut self, value: u8) {
        self.write(0x0100 | u16::from(self.cpu.s), value);
        self.cpu.s = self.cpu.s.wrapping_sub(1);
    }

    #[inline(always)]
    pub(super) fn pull(&mut self) -> u8 {
        self.cpu.s = self.cpu.s.wrapping_add(1);
        self.read(0x0100 | u16::from(self.cpu.s))
    }

    /// The operand is the byte behind the opcode.
    #[inline(always)]
    pub(super) fn imm(&mut self) -> u16 {
        let address = self.cpu.pc;
        self.cpu.pc = address.wrapping_add(1);
        address
    }

    #[inline(always)]
    pub(super) fn zp(&mut self) -> u16 {
        u16::from(self.fetch())
    }

    #[inline(always)]
    fn zp_indexed(&mut self, index: u8) -> u16 {
        let base = self.fetch();
        self.idle(u16::from(base));
        u16::from(base.wrapping_add(index))
    }

    #[inline(always)]
    pub(super) fn zpx(&mut self) -> u16 {
        self.zp_indexed(self.cpu.x)
    }

    #[inline(always)]
    pub(super) fn zpy(&mut self) -> u16 {
        self.zp_indexed(self.cpu.y)
    }

    #[inline(always)]
    pub(super) fn abs(&mut self) -> u16 {
        self.fetch_word()
    }

    /// base + index; the wrong page is read first when the low byte carries.
    #[inline(always)]
    fn indexed(&mut self, base: u16, index: u8) -> u16 {
        let address = base.wrapping_add(u16::from(index));
        if (base ^ address) & 0xFF00 != 0 {
            self.dummy_read(base & 0xFF00 | address & 0x00FF);
        }
        address
    }

    /// The same for writes, which always read first.
    #[inline(always)]
    fn indexed_write(&mut self, base: u16, index: u8) -> u16 {
        let address = base.wrapping_add(u16::from(index));
        self.dummy_read(base & 0xFF00 | address & 0x00FF);
        address
    }

    #[inline(always)]
    pub(super) fn abx(&mut self) -> u16 {
        let base = self.fetch_word();
        self.indexed(base, self.cpu.x)
    }

    #[inline(always)]
    pub(super) fn aby(&mut self) -> u16 {
        let base = self.fetch_word();
        self.indexed(base, self.cpu.y)
    }

    #[inline(always)]
    pub(super) fn abx_write(&mut self) -> u16 {
        let base = self.fetch_word();
        self.indexed_write(base, self.cpu.x)
    }

    #[inline(always)]
    pub(super) fn aby_write(&mut self) -> u16 {
        let base = self.fetch_word();
        self.indexed_write(base, self.cpu.y)
    }

    /// A pointer in page zero, which wraps within it.
    #[inline(always)]
    fn pointer(&mut self, at: u8) -> u16 {
        let low = self.read(u16::from(at));
        u16::from_le_bytes([low, self.read(u16::from(at.wrapping_add(1)))])
    }

    #[inline(always)]
    pub(super) fn izx(&mut self) -> u16 {
        let base = self.fetch();
        self.idle(u16::from(base));
        self.pointer(base.wrapping_add(self.cpu.x))
    }

    #[inline(always)]
    pub(super) fn izy(&mut self) -> u16 {
        let base = self.izy_base();
        self.indexed(base, self.cpu.y)
    }

    #[inline(always)]
    pub(super) fn izy_write(&mut self) -> u16 {
        let base = self.izy_base();
        self.indexed_write(base, self.cpu.y)
    }

    #[inline(always)]
    pub(super) fn izy_base(&mut self) -> u16 {
        let at = self.fetch();
        self.pointer(at)
    }
}
