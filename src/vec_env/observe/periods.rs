//! The sums of 240 columns joined to 84 outputs: 20 columns are 7 outputs, of 2 3 3 3 3 3 3 columns.
//!
//! `simd` has the same again, 16 columns at a time: the sum of three neighbours (two at the narrow outputs) is divided at
//! every column, and the outputs' own columns are picked.

use super::bins::short_reciprocal;
use super::window::WINDOW_WIDTH;

/// More lines than this in an output row do not fit into the short division.
pub(super) const MOST_LINES: usize = 8;
/// Outputs of a line.
pub(super) const OUTPUTS: usize = 84;
/// Columns of a period, and its outputs.
pub(super) const COLUMNS: usize = 20;
pub(super) const OUTPUTS_OF_PERIOD: usize = 7;
/// Columns that are read: wide loads go beyond the window.
pub(super) const READ: usize = WINDOW_WIDTH + 2;

/// The first column of an output.
pub(super) const fn start(output: usize) -> usize {
    output * COLUMNS / OUTPUTS_OF_PERIOD
}

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
