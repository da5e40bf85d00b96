//! The sums of 240 columns joined to 84 outputs: 20 columns are 7 outputs, of 2 3 3 3 3 3 3 columns.
//!
//! `simd` has the same again, 16 columns at a time: the sum of three neighbours (two at the narrow outputs) is divided at
//! every column, and the outputs' own columns are picked.

use super::bins::short_reciprocal;
use super::window::WINDOW_WIDTH;
use crate::emulator::fast::Joined;
/// Outputs of a line; columns of a period, and its outputs; the first column of an output.
pub(super) use crate::emulator::fast::{
    OUTPUTS, PERIOD as COLUMNS, PERIOD_OUTPUTS as OUTPUTS_OF_PERIOD, first_column as start,
};

/// More lines than this in an output row do not fit into the short division.
pub(super) const MOST_LINES: usize = 8;
/// Columns that are read: wide loads go beyond the window.
pub(super) const READ: usize = WINDOW_WIDTH + 2;

/// Divides the sums of `lines` lines, `MOST_LINES` at most, by their numbers of pixels, into the first outputs.
pub(super) fn divide(sums: &[u16; READ], lines: usize, out: &mut [u8]) {
    let reciprocals = [2, 3].map(|columns| u32::from(short_reciprocal(lines * columns)));
    for (output, out) in out.iter_mut().take(OUTPUTS).enumerate() {
        let columns = start(output)..start(output + 1);
        let reciprocal = reciprocals[columns.len() - 2];
        let sum: u32 = sums[columns].iter().map(|&sum| u32::from(sum)).sum();
        *out = ((sum * reciprocal) >> 16) as u8;
    }
}

/// What to multiply the sums of outputs with that have so many lines.
pub(super) static RECIPROCALS: [[u16; OUTPUTS]; MOST_LINES + 1] = {
    let mut out = [[0; OUTPUTS]; MOST_LINES + 1];
    let mut lines = 1;
    while lines <= MOST_LINES {
        let mut output = 0;
        while output < OUTPUTS {
            out[lines][output] = short_reciprocal(lines * (start(output + 1) - start(output)));
            output += 1;
        }
        lines += 1;
    }
    out
};

/// Divides sums of outputs that have so many lines.
pub(super) fn divide_joined(sums: &Joined, lines: usize, out: &mut [u8; OUTPUTS]) {
    for ((out, sum), &reciprocal) in out.iter_mut().zip(sums.sums()).zip(&RECIPROCALS[lines]) {
        *out = ((u32::from(sum) * u32::from(reciprocal)) >> 16) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::{OUTPUTS, start};
    use crate::vec_env::observe::resize::area_ranges;
    use crate::vec_env::observe::window::WINDOW_WIDTH;

    #[test]
    fn outputs_are_those_of_the_area_in_their_order() {
        let made: Vec<_> = (0..OUTPUTS).map(|output| start(output)..start(output + 1)).collect();
        assert_eq!(made, area_ranges(WINDOW_WIDTH, OUTPUTS));
    }
}
