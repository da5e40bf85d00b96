//! Grey observations with fewer pixels than the window, summed up from lines as they are drawn: no plane of the window
//! is made first.
//!
//! ```text
//! pixels of a line -> grey values, added to one sum a column -> behind an output row's last line: neighbouring sums joined
//! to outputs and divided by their number of pixels
//! ```
//! The ranges of `resize` cover each source once where there are no more outputs than sources. Other sizes, algorithms, RGB and
//! maxpool stay with planes. Of the whole window's 240 columns in 84 outputs lines are added to a sum an output
//! (`periods`); `simd` has the inner loops again.

use super::resize::{area_ranges, divide, reciprocals};
use super::window::{LEFT, WINDOW_WIDTH, Window};
use super::{periods, simd};
use crate::emulator::engine::FRAME_WIDTH;
use crate::emulator::fast::probe::Probe;
use crate::emulator::fast::{Avx2, Scene, Strip};
use std::ops::Range;

/// One sum a column, with room behind for wide loads.
pub(super) type Sums = [u16; FRAME_WIDTH];

/// More lines than this in an output row do not fit into the products of `periods`.
const MOST_LINES: usize = 8;

/// Sums up observations of one size.
#[derive(Debug, Clone)]
pub(super) struct Bins {
    rows: Vec<Range<usize>>,
    columns: Vec<Range<usize>>,
    /// The window's columns are whole periods, and few lines make a row.
    periodic: bool,
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
        let periodic = (source.1, output.1) == (WINDOW_WIDTH, periods::OUTPUTS) && lines <= MOST_LINES;
        Some(Self { rows, columns, periodic, reciprocals: reciprocals(lines * across), avx2 })
    }

    /// Draws what `window` shows of the scene.
    pub(super) fn draw(&self, window: &Window, scene: &Scene<impl Probe>, strip: &mut Strip, out: &mut [u8]) {
        let (_, columns) = window.seen();
        let wide = |strip: &Strip| self.avx2.filter(|_| !strip.is_coloured());
        if self.periodic && columns == (0..WINDOW_WIDTH) {
            let add = |sums: &mut _, strip: &Strip, at, values: &_| {
                let pixels = periods::columns(strip.row(at), LEFT);
                match wide(strip) {
                    Some(avx2) => simd::add_groups(avx2, sums, pixels, values),
                    None => periods::add(sums, pixels, values),
                }
            };
            let finish = |sums: &mut _, lines, out: &mut [u8]| {
                match self.avx2 {
                    Some(avx2) => simd::divide_groups(avx2, sums, lines, out),
                    None => periods::divide(sums, lines, out),
                }
                *sums = periods::Sums::default();
            };
            self.rows(window, scene, strip, out, periods::Sums::default(), add, finish);
        } else {
            let first = window.corner().1;
            let add = |sums: &mut Sums, strip: &Strip, at, values: &_| {
                let pixels = &strip.row(at)[LEFT + columns.start..LEFT + columns.end];
                let sums = &mut sums[first..][..pixels.len()];
                match wide(strip) {
                    Some(avx2) => simd::add(avx2, sums, pixels, values),
                    None => add(sums, pixels, values),
                }
            };
            let finish = |sums: &mut Sums, lines, out: &mut [u8]| {
                self.divide(sums, lines, out);
                sums.fill(0);
            };
            self.rows(window, scene, strip, out, [0; FRAME_WIDTH], add, finish);
        }
    }

    /// Calls `add` with every line of the strips and `finish` with the output from each row on that lines were added to,
    /// in their order; `finish` fills the row and leaves zeros in `sums`.
    #[allow(clippy::too_many_arguments)] // where from, where to, and what lies between
    #[inline(always)]
    fn rows<S>(
        &self,
        window: &Window,
        scene: &Scene<impl Probe>,
        strip: &mut Strip,
        out: &mut [u8],
        mut sums: S,
        add: impl Fn(&mut S, &Strip, usize, &[u8; 64]),
        finish: impl Fn(&mut S, usize, &mut [u8]),
    ) {
        let (lines, _) = window.seen();
        let first_row = window.corner().0;
        // The output row that is being summed up, and whether nothing was added to it.
        let (mut place, mut black) = (0, true);
        let width = self.columns.len();
        let end_row = |place: usize, sums: &mut S, black: bool, out: &mut [u8]| {
            let out = &mut out[place * width..];
            if black {
                out[..width].fill(0);
            } else {
                finish(sums, self.rows[place].len(), out);
            }
        };
        scene.each_strip(lines.start, lines.end, strip, |line, strip| {
            let values = window.grey_values(strip);
            for at in 0..strip.lines() {
                let y = first_row + line + at - lines.start;
                while self.rows[place].end <= y {
                    end_row(place, &mut sums, black, out);
                    (place, black) = (place + 1, true);
                }
                add(&mut sums, strip, at, &values);
                black = false;
            }
        });
        for place in place..self.rows.len() {
            end_row(place, &mut sums, black, out);
            black = true;
        }
    }

    /// Joins the sums of `lines` lines to the first row of outputs.
    fn divide(&self, sums: &Sums, lines: usize, out: &mut [u8]) {
        for (columns, out) in self.columns.iter().zip(out) {
            let sum = sums[columns.clone()].iter().map(|&sum| u64::from(sum)).sum();
            *out = divide(sum, self.reciprocals[lines * columns.len()]);
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

#[cfg(test)]
mod tests;
