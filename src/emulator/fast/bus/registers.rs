//! What accesses in $2000-$7FFF do, one function a register: the bus picks it by address while the interpreter runs,
//! translated code when it is made. Each is given the cycle of its access and leaves time and data bus to its caller.

use super::super::probe::{Clocked, Part, Probe, Silent};
use super::Bus;

/// A sprite DMA is over this long after the write that begins it, and interrupts were looked at again.
#[cfg(feature = "jit")]
const DMA_IS_OVER: u64 = 528;

impl Bus {
    /// A read in $2000-$7FFF.
    pub(super) fn read_register(&mut self, address: u16) -> u8 {
        let value = match address {
            0x2000..0x4000 => match address & 7 {
                2 => self.read_ppu::<2>(self.cycles),
                4 => self.read_ppu::<4>(self.cycles),
                7 => self.read_ppu::<7>(self.cycles),
                _ => self.read_ppu::<0>(self.cycles),
            },
            0x4015 => {
                let status = self.read_apu(self.cycles) | self.data_bus & 0x20;
                // The status stays inside the 2A03: the data bus keeps its value.
                self.cycles += 1;
                return status;
            }
            0x4016 | 0x4017 => self.data_bus & 0xE0 | self.pads.read(usize::from(address & 1), self.cycles),
            0x6000..0x8000 => self.work_ram.read(address).unwrap_or(self.data_bus),
            _ => self.data_bus,
        };
        self.cycles += 1;
        self.data_bus = value;
        value
    }

    /// A write in $2000-$FFFF.
    pub(super) fn write_register(&mut self, address: u16, value: u8) {
        let cycle = self.cycles;
        match address {
            0x2000..0x4000 => match address & 7 {
                0 => self.write_ppu::<0>(value, cycle),
                1 => self.write_ppu::<1>(value, cycle),
                2 => self.write_ppu::<2>(value, cycle),
                3 => self.write_ppu::<3>(value, cycle),
                4 => self.write_ppu::<4>(value, cycle),
                5 => self.write_ppu::<5>(value, cycle),
                6 => self.write_ppu::<6>(value, cycle),
                _ => self.write_ppu::<7>(value, cycle),
            },
            0x4014 => {
                self.oam_dma = Some(value);
                self.interrupts_changed();
            }
            0x4016 => self.pads.strobe(value & 1 != 0),
            0x4000..=0x400F => self.write_channel(address & 0x0F, value, cycle),
            0x4010..=0x4013 | 0x4015 | 0x4017 => self.write_apu(address, value, cycle),
            0x6000..0x8000 => self.work_ram.write(address, value),
            _ => {}
        }
    }

    /// A read of one of the PPU's registers, $2000 + `REGISTER`.
    #[inline(always)]
    pub(in super::super) fn read_ppu<const REGISTER: u16>(&mut self, cycle: u64) -> u8 {
        let nmi = self.ppu.nmi_at;
        let value = if self.probed {
            Clocked::span(Part::Ppu, || self.ppu.read::<REGISTER>(cycle))
        } else {
            Silent::span(Part::Ppu, || self.ppu.read::<REGISTER>(cycle))
        };
        if self.ppu.nmi_at != nmi {
            self.interrupts_changed();
        }
        value
    }

    /// A write of one of the PPU's registers, $2000 + `REGISTER`.
    #[inline(always)]
    pub(in super::super) fn write_ppu<const REGISTER: u16>(&mut self, value: u8, cycle: u64) {
        let nmi = self.ppu.nmi_at;
        if self.probed {
            Clocked::span(Part::Ppu, || self.ppu.write::<REGISTER>(value, cycle));
        } else {
            Silent::span(Part::Ppu, || self.ppu.write::<REGISTER>(value, cycle));
        }
        if self.ppu.nmi_at != nmi {
            self.interrupts_changed();
        }
    }

    /// A read of $4015 without bit 5, which is the data bus's.
    #[inline(always)]
    pub(in super::super) fn read_apu(&mut self, cycle: u64) -> u8 {
        let times = self.apu_times();
        let status = self.apu.read_status(cycle);
        self.apu_was_touched(times, cycle);
        status
    }

    /// A write of $4000-$400F, which moves no interrupt and no DMA.
    #[inline(always)]
    pub(in super::super) fn write_channel(&mut self, register: u16, value: u8, cycle: u64) {
        self.apu.write_channel(register, value, cycle);
        if !self.kept_deadlines {
            self.interrupts_changed();
        }
    }

    pub(in super::super) fn write_apu(&mut self, address: u16, value: u8, cycle: u64) {
        let times = self.apu_times();
        self.apu.write(address, value, cycle);
        self.apu_was_touched(times, cycle);
    }

    /// When the APU holds the IRQ line, and when it wants a byte.
    #[inline(always)]
    fn apu_times(&self) -> (u64, u64) {
        (self.apu.irq_at(), self.apu.dma_at())
    }

    /// After an access to the APU in `cycle`, with `apu_times` from before: remembers until when the IRQ line was low, if
    /// it was.
    #[inline(always)]
    fn apu_was_touched(&mut self, before: (u64, u64), cycle: u64) {
        let (since, _) = before;
        let after = self.apu_times();
        if since <= cycle && after.0 > cycle {
            self.irq_was = (since, cycle);
        }
        // Most accesses leave both times as they were foretold.
        if !self.kept_deadlines || after != before {
            self.interrupts_changed();
        }
    }

    /// A write of $4014 and, where nothing can come between, the DMA that it begins: as if the CPU had begun its next read,
    /// which is at `next` in PRG-ROM. Else that read is still to be halted.
    #[cfg(feature = "jit")]
    pub(in super::super) fn write_oam_dma(&mut self, value: u8, next: u16) {
        let deadline = self.deadline;
        self.write(0x4014, value);
        // Pages of registers may do anything.
        if deadline > self.cycles + DMA_IS_OVER && !matches!(value, 0x20..0x60) {
            self.halt_for_dma(next);
            // Nothing that the deadline depends on has changed.
            self.deadline = deadline;
        }
    }
}
