//! Two standard pads (nesdev wiki, "Standard controller"): a shift register each, loaded while the strobe is high.

use crate::emulator::nes::state::PadsState;

#[derive(Clone, Copy, Default)]
pub(super) struct Pads {
    held: [u8; 2],
    shift: [u8; 2],
    strobe: bool,
    /// The last read of each port: reads in consecutive cycles are one read to the pad.
    last_read: [u64; 2],
    last_bit: [u8; 2],
}

impl Pads {
    /// Holds these buttons from now on.
    pub(super) fn hold(&mut self, held: [u8; 2]) {
        self.held = held;
        if self.strobe {
            self.shift = held;
        }
    }

    pub(super) fn strobe(&mut self, high: bool) {
        self.strobe = high;
        if high {
            self.shift = self.held;
        }
    }

    /// The next bit: A, B, Select, Start, Up, Down, Left, Right, then ones.
    pub(super) fn read(&mut self, port: usize, cycle: u64) -> u8 {
        let same_read = self.last_read[port] + 1 == cycle;
        self.last_read[port] = cycle;
        if self.strobe {
            return self.held[port] & 1;
        }
        if !same_read {
            self.last_bit[port] = self.shift[port] & 1;
            self.shift[port] = self.shift[port] >> 1 | 0x80;
        }
        self.last_bit[port]
    }

    pub(super) fn export(&self) -> PadsState {
        PadsState { held: self.held, shift: self.shift, strobe: self.strobe }
    }

    pub(super) fn import(&mut self, state: &PadsState) {
        *self = Self { held: state.held, shift: state.shift, strobe: state.strobe, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::Pads;

    #[test]
    fn buttons_come_out_in_order_and_then_ones() {
        let mut pads = Pads::default();
        pads.hold([0b1000_0101, 0]);
        pads.strobe(true);
        pads.strobe(false);
        let bits: Vec<u8> = (0..10).map(|n| pads.read(0, 10 * n)).collect();
        assert_eq!(bits, [1, 0, 1, 0, 0, 0, 0, 1, 1, 1]);
        assert_eq!(pads.read(1, 1000), 0);
    }

    #[test]
    fn a_high_strobe_gives_button_a_again_and_again() {
        let mut pads = Pads::default();
        pads.strobe(true);
        pads.hold([1, 0]);
        assert_eq!((0..3).map(|n| pads.read(0, 10 * n)).collect::<Vec<_>>(), [1, 1, 1]);
    }
}
