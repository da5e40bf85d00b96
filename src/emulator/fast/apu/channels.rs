//! Pulse, triangle and noise channels: what the frame sequence clocks (nesdev wiki, "APU Length Counter",
//! "APU Envelope", "APU Sweep").

use crate::emulator::nes::state::{ApuState, EnvelopeState, NoiseState, PulseState, TriangleState};

const TRIANGLE: usize = 2;

/// What the top five bits of a channel's last register load into its length counter.
#[rustfmt::skip]
const LENGTHS: [u8; 32] = [
    10, 254, 20,  2, 40,  4, 80,  6, 160,  8, 60, 10, 14, 12, 26, 14,
    12,  16, 24, 18, 48, 20, 96, 22, 192, 24, 72, 26, 16, 28, 32, 30,
];

#[derive(Clone, Copy, Default)]
pub(super) struct Channels {
    /// $4000-$400F as written last.
    registers: [u8; 16],
    /// Pulse 1, pulse 2, triangle, noise.
    lengths: [u8; 4],
    envelopes: [EnvelopeState; 4],
    sweep_reload: [bool; 2],
    sweep_divider: [u8; 2],
    period: [u16; 2],
    linear: u8,
    linear_reload: bool,
    enabled: u8,
    /// When lengths were clocked last, and what they were before.
    clocked_at: u64,
    before_clock: [u8; 4],
}

impl Channels {
    fn holds(&self, channel: usize) -> bool {
        let bit = if channel == TRIANGLE { 0x80 } else { 0x20 };
        self.registers[4 * channel] & bit != 0
    }

    #[inline(always)]
    pub(super) fn write(&mut self, register: u16, value: u8, cycle: u64) {
        let (channel, part) = (usize::from(register >> 2), register & 3);
        self.registers[usize::from(register)] = value;
        match (channel, part) {
            (0 | 1, 1) => self.sweep_reload[channel] = true,
            (0 | 1, 2) => self.period[channel] = self.period[channel] & 0x0700 | u16::from(value),
            (_, 3) => {
                self.load_length(channel, value, cycle);
                if channel < 2 {
                    self.period[channel] = self.period[channel] & 0x00FF | u16::from(value & 7) << 8;
                }
                if channel == TRIANGLE {
                    self.linear_reload = true;
                } else {
                    self.envelopes[channel].start = true;
                }
            }
            _ => {}
        }
    }

    /// A load in the cycle of a clock loses against the clock, unless the counter was at 0.
    fn load_length(&mut self, channel: usize, value: u8, cycle: u64) {
        let clocked_now = self.clocked_at == cycle && self.before_clock[channel] != 0;
        if self.enabled & 1 << channel != 0 && !clocked_now {
            self.lengths[channel] = LENGTHS[usize::from(value >> 3)];
        }
    }

    /// $4015 written: channels that are off have no length.
    pub(super) fn enable(&mut self, value: u8) {
        self.enabled = value & 0x0F;
        for channel in 0..4 {
            if value & 1 << channel == 0 {
                self.lengths[channel] = 0;
            }
        }
    }

    /// Channels with a length above 0, in bits 0-3.
    pub(super) fn sounding(&self) -> u8 {
        (0..4).fold(0, |bits, channel| bits | u8::from(self.lengths[channel] > 0) << channel)
    }

    pub(super) fn quarter_frame(&mut self) {
        for channel in [0, 1, 3] {
            clock_envelope(&mut self.envelopes[channel], self.registers[4 * channel]);
        }
        let control = self.registers[4 * TRIANGLE];
        if self.linear_reload {
            self.linear = control & 0x7F;
        } else {
            self.linear = self.linear.saturating_sub(1);
        }
        if control & 0x80 == 0 {
            self.linear_reload = false;
        }
    }

    pub(super) fn half_frame(&mut self, cycle: u64) {
        self.clocked_at = cycle;
        self.before_clock = self.lengths;
        for channel in 0..4 {
            if !self.holds(channel) {
                self.lengths[channel] = self.lengths[channel].saturating_sub(1);
            }
        }
        self.clock_sweep(0);
        self.clock_sweep(1);
    }

    /// ```text
    /// EPPP NSSS  on, divider period, negate, shift
    /// ```
    fn clock_sweep(&mut self, pulse: usize) {
        let control = self.registers[4 * pulse + 1];
        let (on, shift) = (control & 0x80 != 0, control & 7);
        let period = self.period[pulse];
        if self.sweep_divider[pulse] == 0 && on && shift > 0 && period >= 8 {
            let change = period >> shift;
            // Pulse 1 subtracts one more: its adder has no carry in.
            let target = match (control & 0x08 != 0, pulse) {
                (false, _) => period + change,
                (true, 0) => period.saturating_sub(change + 1),
                (true, _) => period - change,
            };
            if target < 0x0800 {
                self.period[pulse] = target;
            }
        }
        if self.sweep_divider[pulse] == 0 || self.sweep_reload[pulse] {
            self.sweep_divider[pulse] = control >> 4 & 7;
            self.sweep_reload[pulse] = false;
        } else {
            self.sweep_divider[pulse] -= 1;
        }
    }

    fn quad(&self, channel: usize) -> [u8; 4] {
        std::array::from_fn(|part| self.registers[4 * channel + part])
    }

    pub(super) fn export(&self, state: &mut ApuState) {
        state.enabled = self.enabled;
        for pulse in 0..2 {
            state.pulse[pulse] = PulseState {
                registers: self.quad(pulse),
                length: self.lengths[pulse],
                envelope: self.envelopes[pulse],
                sweep_reload: self.sweep_reload[pulse],
                sweep_divider: self.sweep_divider[pulse],
                period: self.period[pulse],
            };
        }
        state.triangle = TriangleState {
            registers: self.quad(2),
            length: self.lengths[2],
            linear: self.linear,
            linear_reload: self.linear_reload,
        };
        state.noise = NoiseState { registers: self.quad(3), length: self.lengths[3], envelope: self.envelopes[3] };
    }

    pub(super) fn import(&mut self, state: &ApuState) {
        let ApuState { pulse, triangle, noise, .. } = state;
        let quads = [pulse[0].registers, pulse[1].registers, triangle.registers, noise.registers];
        *self = Self {
            registers: std::array::from_fn(|at| quads[at / 4][at % 4]),
            lengths: [pulse[0].length, pulse[1].length, triangle.length, noise.length],
            envelopes: [pulse[0].envelope, pulse[1].envelope, EnvelopeState::default(), noise.envelope],
            sweep_reload: [pulse[0].sweep_reload, pulse[1].sweep_reload],
            sweep_divider: [pulse[0].sweep_divider, pulse[1].sweep_divider],
            period: [pulse[0].period & 0x07FF, pulse[1].period & 0x07FF],
            linear: triangle.linear,
            linear_reload: triangle.linear_reload,
            enabled: state.enabled & 0x0F,
            ..Self::default()
        };
    }
}

/// ```text
/// --LC VVVV  loop, constant volume, divider period
/// ```
fn clock_envelope(envelope: &mut EnvelopeState, control: u8) {
    let period = control & 0x0F;
    if envelope.start {
        *envelope = EnvelopeState { start: false, divider: period, decay: 15 };
    } else if envelope.divider > 0 {
        envelope.divider -= 1;
    } else {
        envelope.divider = period;
        if envelope.decay > 0 {
            envelope.decay -= 1;
        } else if control & 0x20 != 0 {
            envelope.decay = 15;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Channels;

    #[test]
    fn a_length_counts_down_unless_held() {
        let mut channels = Channels::default();
        channels.enable(0x0F);
        channels.write(3, 0x18, 1);
        channels.half_frame(10);
        assert_eq!(channels.sounding(), 1);
        channels.write(0, 0x20, 11);
        channels.half_frame(20);
        assert_eq!(channels.sounding(), 1);
        channels.write(0, 0x00, 21);
        channels.half_frame(30);
        assert_eq!(channels.sounding(), 0);
    }

    #[test]
    fn a_channel_that_is_off_takes_no_length() {
        let mut channels = Channels::default();
        channels.write(0x0F, 0x18, 1);
        assert_eq!(channels.sounding(), 0);
    }

    #[test]
    fn pulse_1_sweeps_down_one_further_than_pulse_2() {
        let mut channels = Channels::default();
        for base in [0, 4] {
            channels.write(base + 2, 0x00, 1);
            channels.write(base + 3, 0x01, 1);
            channels.write(base + 1, 0x89, 1);
        }
        channels.half_frame(10);
        assert_eq!(channels.period, [0x7F, 0x80]);
    }
}
