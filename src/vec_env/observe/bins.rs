//! Grey observations with fewer pixels than the window, summed up from lines as they are drawn: no plane of the window
//! is made first.
//!
//! ```text
//! pixels of a line -> grey values, added to one sum a column -> behind an output row's last line: neighbouring sums joined
//! to outputs and divided by their number of pixels
//! ```
//! The ranges of `resize` cover each source once where there are no more outputs than sources. Other sizes, algorithms, RGB and
//! maxpool stay with planes. 240 columns in 84 outputs, 20 in 7, have code of their own; `simd` has both inner loops again.

use super::resize::{area_ranges, divide, reciprocals};
use super::simd;
use super::window::{LEFT, WINDOW_WIDTH, Window};
use crate::emulator::engine::FRAME_WIDTH;
use crate::emulator::fast::probe::Probe;
use crate::emulator::fast::{Avx2, Scene, Strip};
use std::ops::Range;

/// One sum a column, with room behind for wide loads.
pub(super) type Sums = [u16; FRAME_WIDTH];

/// Columns of the canonical period, and the outputs that they make.
pub(super) const PERIOD: usize = 20;
pub(super) const OUTPUTS: usize = 7;
/// Where the outputs of a period begin, i * 20 / 7, and where the last one ends.
const STARTS: [usize; OUTPUTS + 1] = [0, 2, 5, 8, 11, 14, 17, 20];
/// More lines than this in an output row do not fit into the products of the canonical code.
const MOST_LINES: usize = 8;

/// Sums up observations of one size.
#[derive(Debug, Clone)]
pub(super) struct Bins {
    rows: Vec<Range<usize>>,
    columns: Vec<Range<usize>>,
    /// The columns are whole canonical periods, and few lines make a row.
    canonical: bool,
    reciprocals: Vec<u64>,
    avx2: Option<Avx2>,
}

impl Bins {
    /// `None` where an output would share a source with another one.
    pub(super) fn new(source: (usize, usize), output: (usize, usize), avx2: Option<Avx2>) -> Option<Self> {
        if output.0 > source.0 || output.1 > source.1 {
            return None;
        }
        let (rows, columns) = (area_ranges(source.0, output.0), area_ranges(source.1, output.1));
        let widest = |ranges: &[Range<usize>]| ranges.iter().map(Range::len).max().unwrap_or(0);
        let (lines, across) = (widest(&rows), widest(&columns));
        let canonical = (source.1, output.1) == (WINDOW_WIDTH, WINDOW_WIDTH / PERIOD * OUTPUTS) && lines <= MOST_LINES;
        Some(Self { rows, columns, canonical, reciprocals: reciprocals(lines * across), avx2 })
    }

    /// Draws what `window` shows of the scene.
    pub(super) fn draw(&self, window: &Window, scene: &Scene<impl Probe>, strip: &mut Strip, out: &mut [u8]) {
        let (lines, columns) = window.seen();
        let (first_row, first_column) = window.corner();
        let mut sums: Sums = [0; FRAME_WIDTH];
        // The output row that is being summed up, and whether nothing was added to it.
        let (mut place, mut black) = (0, true);
        scene.each_strip(lines.start, lines.end, strip, |line, strip| {
            let values = window.grey_values(strip);
            for at in 0..strip.lines() {
                let y = first_row + line + at - lines.start;
                while self.rows[place].end <= y {
                    self.finish(place, &mut sums, black, out);
                    (place, black) = (place + 1, true);
                }
                let pixels = &strip.row(at)[LEFT + columns.start..LEFT + columns.end];
                let sums = &mut sums[first_column..][..pixels.len()];
                match self.avx2 {
                    Some(avx2) if !strip.is_coloured() => simd::add(avx2, sums, pixels, &values),
                    _ => add(sums, pixels, &values),
                }
                black = false;
            }
        });
        for place in place..self.rows.len() {
            self.finish(place, &mut sums, black, out);
            black = true;
        }
    }

    /// Fills an output row from the sums, which become zeros; `black` says that they are.
    fn finish(&self, place: usize, sums: &mut Sums, black: bool, out: &mut [u8]) {
        let width = self.columns.len();
        let out = &mut out[place * width..][..width];
        if black {
            out.fill(0);
        } else {
            self.divide(sums, self.rows[place].len(), out);
            sums.fill(0);
        }
    }

    /// Joins the sums of `lines` lines to outputs.
    fn divide(&self, sums: &Sums, lines: usize, out: &mut [u8]) {
        match (self.canonical, self.avx2) {
            (true, Some(avx2)) => simd::divide_canonical(avx2, sums, lines, out),
            (true, None) => divide_canonical(sums, lines, out),
            (false, _) => {
                for (columns, out) in self.columns.iter().zip(out) {
                    let sum = sums[columns.clone()].iter().map(|&sum| u64::from(sum)).sum();
                    *out = divide(sum, self.reciprocals[lines * columns.len()]);
                }
            }
        }
    }
}

/// Adds the values of pixels, looked up by their lower six bits.
pub(super) fn add(sums: &mut [u16], pixels: &[u8], values: &[u8; 64]) {
    sums.iter_mut().zip(pixels).for_each(|(sum, &pixel)| *sum += u16::from(values[usize::from(pixel & 0x3F)]));
}

/// What to multiply a sum of `count` bytes with, so that the upper 16 bits of the product are the sum divided by `count`.
/// The tests try all sums of the counts that occur.
pub(super) fn short_reciprocal(count: usize) -> u16 {
    ((1 << 16) / count + usize::from(!count.is_power_of_two())) as u16
}

pub(super) fn divide_canonical(sums: &Sums, lines: usize, out: &mut [u8]) {
    let [two, three] = [2, 3].map(|columns| u32::from(short_reciprocal(lines * columns)));
    for (sums, out) in sums.chunks_exact(PERIOD).zip(out.chunks_exact_mut(OUTPUTS)) {
        for (place, out) in out.iter_mut().enumerate() {
            let joined: u32 = sums[STARTS[place]..STARTS[place + 1]].iter().map(|&sum| u32::from(sum)).sum();
            let reciprocal = if place == 0 { two } else { three };
            *out = ((joined * reciprocal) >> 16) as u8;
        }
    }
}

#[cfg(test)]
mod tests;
