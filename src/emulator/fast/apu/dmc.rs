//! The delta modulation channel (nesdev wiki, "APU DMC"): plays one-bit samples that its DMA reads from PRG-ROM.

use super::super::bus::NEVER;
use super::distance;
use crate::emulator::nes::state::DmcState;

/// CPU cycles from one output clock to the next.
const PERIODS: [u16; 16] = [428, 380, 340, 320, 286, 254, 226, 214, 190, 160, 142, 128, 106, 84, 72, 54];
/// The output unit is clocked in put cycles: all periods are even.
const FIRST_CLOCK: u64 = 427;
const IRQ_ON: u8 = 0x80;
const LOOP: u8 = 0x40;

#[derive(Clone, Copy)]
pub(super) struct Dmc {
    registers: [u8; 4],
    level: u8,
    address: u16,
    bytes_left: u16,
    buffer: Option<u8>,
    shift: u8,
    bits_left: u8,
    silent: bool,
    /// The cycle of the next output clock.
    clock_at: u64,
    /// From when on a byte is wanted, `NEVER` while the buffer is full or the sample over.
    wanted_at: u64,
    /// Since when the IRQ flag is set.
    pub irq_at: u64,
}

impl Dmc {
    pub(super) fn new() -> Self {
        Self {
            registers: [0; 4],
            level: 0,
            address: 0xC000,
            bytes_left: 0,
            buffer: None,
            shift: 0,
            bits_left: 8,
            silent: true,
            clock_at: FIRST_CLOCK,
            wanted_at: NEVER,
            irq_at: NEVER,
        }
    }

    fn period(&self) -> u64 {
        u64::from(PERIODS[usize::from(self.registers[0] & 0x0F)])
    }

    pub(super) fn is_playing(&self) -> bool {
        self.bytes_left > 0
    }

    pub(super) fn address(&self) -> u16 {
        self.address
    }

    /// From when on the DMA wants to read.
    #[inline]
    pub(super) fn dma_at(&self) -> u64 {
        if self.wanted_at != NEVER || self.bytes_left == 0 {
            return self.wanted_at;
        }
        self.clock_at + u64::from(self.bits_left - 1) * self.period()
    }

    /// Output clocks up to and in `cycle`.
    pub(super) fn catch_up(&mut self, cycle: u64) {
        if self.clock_at > cycle {
            return;
        }
        if self.silent && self.buffer.is_none() {
            let clocks = (cycle - self.clock_at) / self.period() + 1;
            self.bits_left = ((u64::from(self.bits_left) + 7 * clocks - 1) % 8) as u8 + 1;
            self.clock_at += clocks * self.period();
            return;
        }
        while self.clock_at <= cycle {
            self.clock();
            self.clock_at += self.period();
        }
    }

    fn clock(&mut self) {
        if !self.silent {
            match self.shift & 1 {
                1 if self.level <= 125 => self.level += 2,
                0 if self.level >= 2 => self.level -= 2,
                _ => {}
            }
            self.shift >>= 1;
        }
        self.bits_left -= 1;
        if self.bits_left > 0 {
            return;
        }
        self.bits_left = 8;
        self.silent = self.buffer.is_none();
        if let Some(byte) = self.buffer.take() {
            self.shift = byte;
            if self.bytes_left > 0 {
                self.wanted_at = self.clock_at;
            }
        }
    }

    /// The DMA's byte, read in `cycle`.
    pub(super) fn take_sample(&mut self, byte: u8, cycle: u64) {
        self.wanted_at = NEVER;
        if self.bytes_left == 0 {
            return;
        }
        self.buffer = Some(byte);
        self.address = self.address.wrapping_add(1) | 0x8000;
        self.bytes_left -= 1;
        if self.bytes_left == 0 {
            if self.registers[0] & LOOP != 0 {
                self.restart();
            } else if self.registers[0] & IRQ_ON != 0 {
                self.irq_at = self.irq_at.min(cycle);
            }
        }
    }

    fn restart(&mut self) {
        self.address = 0xC000 | u16::from(self.registers[2]) << 6;
        self.bytes_left = u16::from(self.registers[3]) << 4 | 1;
    }

    pub(super) fn write(&mut self, register: u16, value: u8) {
        self.registers[usize::from(register)] = value;
        match register {
            0 if value & IRQ_ON == 0 => self.irq_at = NEVER,
            1 => self.level = value & 0x7F,
            _ => {}
        }
    }

    /// $4015 written in `cycle`.
    pub(super) fn enable(&mut self, on: bool, cycle: u64) {
        self.irq_at = NEVER;
        if !on {
            self.bytes_left = 0;
            self.wanted_at = NEVER;
        } else if self.bytes_left == 0 {
            self.restart();
            if self.buffer.is_none() {
                // The read waits for the end of the APU cycle after the next.
                self.wanted_at = cycle + if cycle & 1 == 0 { 2 } else { 3 };
            }
        }
    }

    pub(super) fn export(&self, state: &mut DmcState, cycle: u64) {
        *state = DmcState {
            registers: self.registers,
            level: self.level,
            address: self.address,
            bytes_left: self.bytes_left,
            buffer: self.buffer,
            shift: self.shift,
            bits_left: self.bits_left,
            silent: self.silent,
            timer: (self.clock_at - cycle) as u16,
            request_in: distance(self.wanted_at, cycle).map_or(0, |wait| wait as u8 + 1),
            irq: self.irq_at < cycle,
        };
    }

    pub(super) fn import(&mut self, state: &DmcState, cycle: u64) {
        *self = Self {
            registers: state.registers,
            level: state.level & 0x7F,
            address: state.address | 0x8000,
            bytes_left: state.bytes_left & 0x0FFF,
            buffer: state.buffer,
            shift: state.shift,
            bits_left: state.bits_left.clamp(1, 8),
            silent: state.silent,
            clock_at: cycle + u64::from(state.timer),
            wanted_at: match state.request_in {
                0 => NEVER,
                wait => cycle + u64::from(wait) - 1,
            },
            irq_at: if state.irq { cycle.saturating_sub(2) } else { NEVER },
        };
    }
}
