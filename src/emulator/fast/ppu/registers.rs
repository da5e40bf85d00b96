//! The PPU's eight registers at $2000-$2007 (nesdev wiki, "PPU registers", "PPU scrolling", "Open bus behavior").

use super::sprites::EVALUATION_DOT;
use super::timeline::{Event, access_dot, first_cycle_seeing};
use super::{NEVER, Ppu, UNKNOWN, mask};
use crate::emulator::nes::timing::{CPU_HZ, DOTS_PER_LINE};

/// The latch of the PPU's side of the data bus. Each bit keeps for a while what was last driven on it.
#[derive(Clone, Copy, Default)]
pub(super) struct OpenBus {
    pub value: u8,
    /// The cycles at which bits 7-6, 5 and 4-0 were driven.
    pub driven: [u64; 3],
}

/// How long an undriven bit keeps: about 0.6 s; chips differ.
const KEEPS: u64 = CPU_HZ * 6 / 10;
const LINE: u64 = DOTS_PER_LINE as u64;
const GROUPS: [u8; 3] = [0xC0, 0x20, 0x1F];

impl OpenBus {
    #[inline(always)]
    fn drive(&mut self, bits: u8, value: u8, cycle: u64) {
        self.value = self.value & !bits | value & bits;
        for (driven, group) in self.driven.iter_mut().zip(GROUPS) {
            if bits & group != 0 {
                *driven = cycle;
            }
        }
    }

    /// The bits that still hold.
    #[inline(always)]
    fn read(&mut self, cycle: u64) -> u8 {
        for (driven, group) in self.driven.iter().zip(GROUPS) {
            if cycle.saturating_sub(*driven) > KEEPS {
                self.value &= !group;
            }
        }
        self.value
    }
}

/// What $2007 adds to the VRAM address.
const DOWN_STEP: u16 = 32;

impl Ppu {
    /// The CPU reads a register in `cycle`; 0 stands for all that cannot be read.
    #[inline(always)]
    pub(in super::super) fn read<const REGISTER: u16>(&mut self, cycle: u64) -> u8 {
        let latch = self.open_bus.read(cycle);
        match REGISTER {
            2 => {
                let status = self.read_status(cycle);
                self.open_bus.drive(0xE0, status, cycle);
                status | latch & 0x1F
            }
            4 => {
                let value = self.read_oam(cycle);
                self.open_bus.drive(0xFF, value, cycle);
                value
            }
            7 => self.read_data(latch, cycle),
            _ => latch,
        }
    }

    /// ```text
    /// VHO- ----  vblank, sprite 0 hit, sprite overflow
    /// ```
    fn read_status(&mut self, cycle: u64) -> u8 {
        let dot = access_dot(cycle);
        self.pass_events(dot);
        self.settle_hit(dot);
        self.settle_overflow(dot);
        self.second_write = false;
        let vblank = self.take_vblank(cycle);
        u8::from(vblank) << 7 | u8::from(self.hit) << 6 | u8::from(self.overflow) << 5
    }

    /// Whether $2002 was read in `cycle`, if the last access to a register of the PPU was such a read.
    pub(in super::super) fn status_was_read_in(&self, cycle: u64) -> bool {
        self.open_bus.driven[0] == cycle
    }

    /// Before this cycle $2002 reads as in its last read, and reading it changes nothing but the time of its last read; 0
    /// where that is not known. Nothing else at the PPU may have been accessed since.
    pub(in super::super) fn status_steady_until(&self) -> u64 {
        // The last read took the vblank flag away.
        if self.open_bus.value & 0x80 != 0 {
            return 0;
        }
        let comes = |set: bool, at: u64| if set { NEVER } else { at };
        let dot = match self.event {
            Event::Vblank => {
                // No hit is looked for before line 1.
                let hit_at = if self.hit_at == UNKNOWN { self.frame_start + LINE } else { self.hit_at };
                if self.overflow_at == UNKNOWN && !self.overflow {
                    return 0;
                }
                // A read in the dot before vblank is set keeps it away.
                comes(self.hit, hit_at).min(comes(self.overflow, self.overflow_at)).min(self.event_at - 1)
            }
            Event::FlagsCleared => self.event_at,
            // No flag is set before the next frame's first evaluation of sprites; it may begin a dot early.
            Event::LengthSettled | Event::NextFrame => self.time_of(Event::NextFrame) - 1 + EVALUATION_DOT,
        };
        let latch = if self.open_bus.value & 0x1F == 0 { NEVER } else { self.open_bus.driven[2] + KEEPS + 1 };
        first_cycle_seeing(dot).min(latch)
    }

    fn read_oam(&mut self, cycle: u64) -> u8 {
        self.sync(cycle);
        if let Some(value) = self.oam_bus() {
            return value;
        }
        let value = self.oam[usize::from(self.oam_addr)];
        // Attribute bytes have no bits 2-4.
        if self.oam_addr & 3 == 2 { value & 0xE3 } else { value }
    }

    fn read_data(&mut self, latch: u8, cycle: u64) -> u8 {
        // The PPU is still busy with a read of the cycle before and takes no notice of this one.
        if self.data_read_at + 1 == cycle {
            return latch;
        }
        self.data_read_at = cycle;
        self.sync(cycle);
        let address = self.beam.v & 0x3FFF;
        let value = if address < 0x3F00 {
            let value = self.read_buffer;
            self.open_bus.drive(0xFF, value, cycle);
            value
        } else {
            let and = if self.beam.mask & mask::GREY == 0 { 0x3F } else { 0x30 };
            let colour = self.palette.read(address) & and;
            self.open_bus.drive(0x3F, colour, cycle);
            // Bits 7-6 are not driven and keep their age.
            latch & 0xC0 | colour
        };
        self.read_buffer = self.memory.read(address);
        self.step_address();
        value
    }

    /// The CPU writes a register in `cycle`.
    #[inline(always)]
    pub(in super::super) fn write<const REGISTER: u16>(&mut self, value: u8, cycle: u64) {
        self.open_bus.drive(0xFF, value, cycle);
        if REGISTER == 2 {
            return;
        }
        self.sync(cycle);
        if self.warming_up && matches!(REGISTER, 0 | 1 | 5 | 6) {
            return;
        }
        match REGISTER {
            0 => self.write_ctrl(value, cycle),
            1 => self.write_mask(value, cycle),
            3 => self.oam_addr = value,
            4 => self.write_oam(value, cycle),
            5 => self.write_scroll(value),
            6 => self.write_address(value),
            _ => self.write_data(value),
        }
    }

    /// ```text
    /// VPHB SINN  NMI, -, tall sprites, background table, sprite table, step down, name table
    /// ```
    fn write_ctrl(&mut self, value: u8, cycle: u64) {
        if (value ^ self.beam.ctrl) & super::ctrl::TALL_SPRITES != 0 {
            self.sprites_change(cycle);
        }
        self.switch_nmi(value & super::ctrl::NMI != 0, cycle);
        self.beam.ctrl = value;
        self.beam.t = self.beam.t & 0x73FF | u16::from(value & 3) << 10;
        self.beam_changed();
    }

    /// ```text
    /// BGRs bMmG  emphasis blue, green, red; sprites, background, both in the left column; grey
    /// ```
    fn write_mask(&mut self, value: u8, cycle: u64) {
        if (value ^ self.beam.mask) & mask::RENDERING != 0 {
            self.sprites_change(cycle);
        }
        self.beam.mask = value;
        self.beam_changed();
    }

    /// Scroll: coarse and fine X, then Y.
    fn write_scroll(&mut self, value: u8) {
        let (coarse, fine) = (u16::from(value >> 3), u16::from(value & 7));
        if self.second_write {
            self.beam.t = self.beam.t & 0x0C1F | coarse << 5 | fine << 12;
        } else {
            self.beam.t = self.beam.t & 0x7FE0 | coarse;
            self.beam.fine_x = fine as u8;
        }
        self.second_write = !self.second_write;
        self.beam_changed();
    }

    /// The VRAM address: high, then low byte, which makes it count.
    fn write_address(&mut self, value: u8) {
        if self.second_write {
            self.beam.t = self.beam.t & 0x7F00 | u16::from(value);
            self.beam.v = self.beam.t;
        } else {
            self.beam.t = self.beam.t & 0x00FF | u16::from(value & 0x3F) << 8;
        }
        self.second_write = !self.second_write;
        self.beam_changed();
    }

    fn write_data(&mut self, value: u8) {
        self.memories_change();
        let address = self.beam.v & 0x3FFF;
        if address < 0x3F00 {
            self.memory.write(address, value);
        } else {
            self.palette.write(address, value);
        }
        self.step_address();
    }

    /// After an access to $2007. While rendering it disturbs both counters of the beam.
    fn step_address(&mut self) {
        if self.beam_is_busy() {
            self.beam.next_tile();
            self.beam.next_row();
        } else {
            let step = if self.beam.ctrl & super::ctrl::DOWN == 0 { 1 } else { DOWN_STEP };
            self.beam.v = self.beam.v.wrapping_add(step) & 0x7FFF;
        }
        self.beam_changed();
    }

    fn write_oam(&mut self, value: u8, cycle: u64) {
        if self.beam_is_busy() {
            self.oam_addr = self.oam_addr.wrapping_add(4) & 0xFC;
            return;
        }
        self.sprites_change(cycle);
        self.memories_change();
        self.oam[usize::from(self.oam_addr)] = value;
        self.oam_addr = self.oam_addr.wrapping_add(1);
        self.beam_changed();
    }

    /// A whole page goes to OAM from `cycle` on, unless rendering interferes: then `false`, and nothing happened.
    pub(in super::super) fn take_page(&mut self, page: &[u8; 256], cycle: u64, after: u64) -> bool {
        self.sync(cycle);
        if self.rendering() && self.renders_before(access_dot(after)) {
            return false;
        }
        self.sprites_change(cycle);
        self.memories_change();
        let at = usize::from(self.oam_addr);
        self.oam[at..].copy_from_slice(&page[..256 - at]);
        self.oam[..at].copy_from_slice(&page[256 - at..]);
        self.open_bus.drive(0xFF, page[255], after - 1);
        self.beam_changed();
        true
    }
}
