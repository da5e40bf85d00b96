//! Lines of 240 columns summed up to 84 outputs, without a sum a column in between: 40 columns are 14 outputs, which three
//! groups of up to 16 neighbouring columns make.
//!
//! ```text
//! group of the 40   columns    outputs
//! 0                  0 to 15   2 3 3 3 3 columns, from column 0 on
//! 1                 14 to 29   3 3 2 3 3
//! 2                 28 to 43   3 3 3 3, and none from the next period
//! ```
//! `simd` has both functions again, two groups at a time.

use super::bins::short_reciprocal;
use super::window::WINDOW_WIDTH;
use crate::emulator::engine::FRAME_WIDTH;

/// Columns from one group to the next, and of three of them.
pub(super) const STEP: usize = 14;
const COLUMNS: usize = 40;
pub(super) const GROUPS: usize = WINDOW_WIDTH / COLUMNS * 3;
/// Columns that are read: the last group's 16 go beyond the window.
pub(super) const READ: usize = WINDOW_WIDTH - COLUMNS + 2 * STEP + 16;
/// Outputs of a line.
pub(super) const OUTPUTS: usize = 84;
/// Outputs of the three groups.
pub(super) const COUNTS: [usize; 3] = [5, 5, 4];
/// The first column and the number of columns of each output, within its group.
pub(super) const PARTS: [[(usize, usize); 5]; 3] = [
    [(0, 2), (2, 3), (5, 3), (8, 3), (11, 3)],
    [(0, 3), (3, 3), (6, 2), (8, 3), (11, 3)],
    [(0, 3), (3, 3), (6, 3), (9, 3), (0, 0)],
];

/// A sum an output: those of a group, then numbers that mean nothing.
pub(super) type Sums = [[u16; 8]; GROUPS];

/// The first column of a group.
pub(super) fn start(group: usize) -> usize {
    group / 3 * COLUMNS + group % 3 * STEP
}

/// The columns of a line that `add` wants, from the window's first one on.
pub(super) fn columns(row: &[u8; FRAME_WIDTH], first: usize) -> &[u8; READ] {
    row[first..].first_chunk().expect("a frame has more columns")
}

/// Adds the values of a line's pixels, looked up by their lower six bits.
pub(super) fn add(sums: &mut Sums, pixels: &[u8; READ], values: &[u8; 64]) {
    for (group, sums) in sums.iter_mut().enumerate() {
        let pixels = &pixels[start(group)..][..16];
        for (sum, (first, count)) in sums.iter_mut().zip(PARTS[group % 3]) {
            *sum += pixels[first..first + count]
                .iter()
                .map(|&pixel| u16::from(values[usize::from(pixel & 0x3F)]))
                .sum::<u16>();
        }
    }
}

/// Divides the sums of `lines` lines, eight at most, by their numbers of pixels, into the first outputs.
pub(super) fn divide(sums: &Sums, lines: usize, out: &mut [u8]) {
    let reciprocals = [2, 3].map(|columns| u32::from(short_reciprocal(lines * columns)));
    let mut places = out.iter_mut();
    for (group, sums) in sums.iter().enumerate() {
        let parts = PARTS[group % 3].iter().take(COUNTS[group % 3]);
        for ((sum, (_, columns)), out) in sums.iter().zip(parts).zip(&mut places) {
            *out = ((u32::from(*sum) * reciprocals[columns - 2]) >> 16) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNTS, GROUPS, OUTPUTS, PARTS, READ, start};
    use crate::vec_env::observe::resize::area_ranges;
    use crate::vec_env::observe::window::{LEFT, WINDOW_WIDTH};

    #[test]
    fn groups_make_the_outputs_of_the_area_in_their_order() {
        let made: Vec<_> = (0..GROUPS)
            .flat_map(|group| {
                let parts = PARTS[group % 3].into_iter().take(COUNTS[group % 3]);
                parts.map(move |(first, count)| start(group) + first..start(group) + first + count)
            })
            .collect();
        assert_eq!(made, area_ranges(WINDOW_WIDTH, OUTPUTS));
        assert!(start(GROUPS - 1) + 16 == READ && LEFT + READ <= 256);
    }
}
