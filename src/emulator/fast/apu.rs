//! The APU as far as software can see it: length counters, the frame sequence with its IRQ, the sample channel with
//! its DMA and IRQ, and the state of envelopes, sweeps and the linear counter (nesdev wiki, "APU").
//!
//! Nothing here runs until somebody looks: `catch_up` brings everything to a cycle, and the times of the next IRQ
//! and DMA are known beforehand. Sound is not made, so the generators' phases are left out.

mod channels;
mod dmc;
mod sequence;

use super::bus::NEVER;
use crate::emulator::nes::state::ApuState;
use channels::Channels;
use dmc::Dmc;
use sequence::{Clocks, Sequence};

#[derive(Clone, Copy)]
pub(super) struct Apu {
    channels: Channels,
    sequence: Sequence,
    dmc: Dmc,
}

impl Apu {
    pub(super) fn new() -> Self {
        Self { channels: Channels::default(), sequence: Sequence::power_on(), dmc: Dmc::new() }
    }

    /// The reset button, pressed before `cycle`: all channels off, $4017 written again.
    pub(super) fn soft_reset(&mut self, cycle: u64) {
        self.write(0x4015, 0, cycle);
        self.catch_up(cycle);
        self.sequence.restart_for_reset(cycle);
    }

    /// Everything that happens up to and in `cycle`.
    pub(super) fn catch_up(&mut self, cycle: u64) {
        self.run_sequence(cycle);
        self.dmc.catch_up(cycle);
    }

    fn run_sequence(&mut self, cycle: u64) {
        while let Some((at, clocks)) = self.sequence.next_clock(cycle) {
            self.clock(clocks, at);
        }
    }

    fn clock(&mut self, clocks: Clocks, at: u64) {
        match clocks {
            Clocks::None => {}
            Clocks::Quarter => self.channels.quarter_frame(),
            Clocks::Half => {
                self.channels.quarter_frame();
                self.channels.half_frame(at);
            }
        }
    }

    /// From which cycle on the IRQ line is low, if no register is touched before.
    #[inline]
    pub(super) fn irq_at(&self) -> u64 {
        self.sequence.irq_at().min(self.dmc.irq_at)
    }

    /// The cycle from which on the sample channel wants a byte.
    #[inline]
    pub(super) fn dma_at(&self) -> u64 {
        self.dmc.dma_at()
    }

    pub(super) fn sample_address(&self) -> u16 {
        self.dmc.address()
    }

    pub(super) fn sample_read(&mut self, sample: u8, cycle: u64) {
        self.dmc.catch_up(cycle);
        self.dmc.take_sample(sample, cycle);
    }

    /// $4015 without its bit 5, which nothing drives:
    /// ```text
    /// IF-D NT21   sample IRQ, frame IRQ, sample bytes left, length counters above 0
    /// ```
    pub(super) fn read_status(&mut self, cycle: u64) -> u8 {
        self.catch_up(cycle);
        let frame_irq = self.sequence.acknowledge(cycle);
        u8::from(self.dmc.irq_at <= cycle) << 7
            | u8::from(frame_irq) << 6
            | u8::from(self.dmc.is_playing()) << 4
            | self.channels.sounding()
    }

    /// $4000-$400F.
    #[inline(always)]
    pub(super) fn write_channel(&mut self, register: u16, value: u8, cycle: u64) {
        // Channels take their registers a cycle late: a clock in the next one still finds the old values.
        if self.sequence.next_at() <= cycle + 1 {
            self.run_sequence(cycle + 1);
        }
        self.channels.write(register, value, cycle + 1);
    }

    pub(super) fn write(&mut self, address: u16, value: u8, cycle: u64) {
        self.catch_up(cycle);
        match address {
            0x4000..=0x400F => self.write_channel(address & 0x0F, value, cycle),
            0x4010..=0x4013 => self.dmc.write(address & 3, value),
            0x4015 => {
                self.channels.enable(value);
                self.dmc.enable(value & 0x10 != 0, cycle);
            }
            0x4017 => self.sequence.write(value, cycle),
            _ => {}
        }
    }

    /// The state at the boundary before `cycle`.
    pub(super) fn export(&self, cycle: u64) -> ApuState {
        let mut state = ApuState::default();
        self.channels.export(&mut state);
        self.sequence.export(&mut state, cycle);
        self.dmc.export(&mut state.dmc, cycle);
        state
    }

    pub(super) fn import(&mut self, state: &ApuState, cycle: u64) {
        self.channels.import(state);
        self.sequence.import(state, cycle);
        self.dmc.import(&state.dmc, cycle);
    }
}

/// `at` as a distance from `from`, `None` when it never comes.
fn distance(at: u64, from: u64) -> Option<u64> {
    (at != NEVER).then(|| at.saturating_sub(from))
}
