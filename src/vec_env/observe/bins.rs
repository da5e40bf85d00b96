//! Grey observations with fewer pixels than the window, summed up by columns: no plane of the window is made first.
//!
//! ```text
//! runs of lines by tiles (`tile_sums`), or lines as they are drawn -> one sum a column -> behind an output row's last line:
//! neighbouring sums joined to outputs and divided by their number of pixels
//! ```
//! The ranges of `resize` cover each source once where there are no more outputs than sources. Other sizes, algorithms, RGB and
//! maxpool stay with planes. `periods` joins the sums of the whole window's 240 columns to 84 outputs; `simd` has the inner
//! loops again.

use super::resize::{area_ranges, divide, reciprocals};
use super::window::{LEFT, WINDOW_WIDTH, Window};
use super::{periods, simd};
use crate::emulator::engine::EngineOptions;
use crate::emulator::fast::probe::{Part, Probe};
use crate::emulator::fast::{Avx2, BEFORE, ColumnPart, Columns, Lines, NO_COLUMNS, PARTS, Scene, Strip, TileSums};
use std::ops::Range;

/// Sums up observations of one size.
#[derive(Debug, Clone)]
pub(super) struct Bins {
    rows: Vec<Range<usize>>,
    columns: Vec<Range<usize>>,
    /// Noted lines are summed up by tiles: no run of them touches too many rows.
    tiled: bool,
    /// The columns are whole periods, and few lines make a row.
    periodic: bool,
    reciprocals: Vec<u64>,
    avx2: Option<Avx2>,
}

/// The rows of an observation that is being made.
struct Rows<'a> {
    bins: &'a Bins,
    /// Columns of the sums that are masked.
    masked: [Range<usize>; 2],
    /// Where the source's first column is in the sums.
    left: usize,
    /// The row that comes next, and the one before which something was added to all.
    place: usize,
    touched: usize,
    /// The sums of row n are in slot n modulo their number.
    slots: [Columns; PARTS],
    out: &'a mut [u8],
}

impl Bins {
    /// `None` where an output would share a source with another one.
    pub(super) fn new(source: (usize, usize), output: (usize, usize), switches: EngineOptions) -> Option<Self> {
        if output.0 > source.0 || output.1 > source.1 {
            return None;
        }
        let (rows, columns) = (area_ranges(source.0, output.0), area_ranges(source.1, output.1));
        let widest = |ranges: &[Range<usize>]| ranges.iter().map(Range::len).max().unwrap_or(0);
        let (lines, across) = (widest(&rows), widest(&columns));
        // A run of eight lines begins with the last line of a row at worst, and ends with the first one of another.
        let between = rows.windows(PARTS - 1).map(|rows| rows.iter().map(Range::len).sum::<usize>()).min();
        Some(Self {
            tiled: switches.tile_sums && between.is_none_or(|lines| lines >= 7),
            periodic: (source.1, output.1) == (WINDOW_WIDTH, periods::OUTPUTS) && lines <= periods::MOST_LINES,
            rows,
            columns,
            reciprocals: reciprocals(lines * across),
            avx2: Avx2::found(switches.simd),
        })
    }

    /// Draws what `window` shows of the scene.
    pub(super) fn draw<P: Probe>(
        &self,
        window: &Window,
        scene: &Scene<P>,
        strip: &mut Strip,
        kept: &mut Option<TileSums>,
        out: &mut [u8],
    ) {
        let (lines, columns) = window.seen();
        let first_row = window.corner().0;
        let cut = window.width() == columns.len();
        let left = BEFORE + LEFT;
        let mut rows = Rows {
            bins: self,
            masked: [0..columns.start, columns.end..WINDOW_WIDTH]
                .map(|masked| if cut { 0..0 } else { left + masked.start..left + masked.end }),
            left: if cut { left + columns.start } else { left },
            place: 0,
            touched: 0,
            slots: [NO_COLUMNS; PARTS],
            out,
        };
        let row_of = |line: usize| first_row + line - lines.start;
        if self.tiled {
            let mut tint = None;
            let kept = kept.get_or_insert_default();
            scene.each_run((lines.start, lines.end), strip, kept, |line, seen, kept| match seen {
                Lines::Drawn(strip) => rows.add_line(row_of(line), strip, 0, &window.grey_values(strip)),
                Lines::Noted(run) => {
                    let shades = match tint {
                        Some((known, shades)) if known == run.tint() => shades,
                        _ => window.shades(&run.colours(), run.emphasis()),
                    };
                    tint = Some((run.tint(), shades));
                    let (parts, count) = rows.parts(row_of(line), run.lines());
                    P::span(Part::Draw, || run.add(&shades, &parts[..count], &mut rows.slots, kept));
                }
            });
        } else {
            scene.each_strip(lines.start, lines.end, strip, |line, strip| {
                let values = window.grey_values(strip);
                (0..strip.lines()).for_each(|at| rows.add_line(row_of(line + at), strip, at, &values));
            });
        }
        rows.end_before(usize::MAX);
    }
}

impl Rows<'_> {
    /// Ends all rows that lie before source row `y`.
    fn end_before(&mut self, y: usize) {
        while self.bins.rows.get(self.place).is_some_and(|row| row.end <= y) {
            let width = self.bins.columns.len();
            let out = &mut self.out[self.place * width..];
            if self.place < self.touched {
                let sums = &mut self.slots[self.place % PARTS];
                self.masked.iter().for_each(|masked| sums[masked.clone()].fill(0));
                self.bins.divide(&sums[self.left..], self.bins.rows[self.place].len(), out);
            } else {
                out[..width].fill(0);
            }
            self.place += 1;
        }
    }

    /// The rows to which so many lines from source row `y` on belong, after the rows before are ended; and their number.
    fn parts(&mut self, y: usize, lines: usize) -> ([ColumnPart; PARTS], usize) {
        self.end_before(y);
        let (mut parts, mut count, mut first) = ([ColumnPart::default(); PARTS], 0, 0);
        while first < lines {
            let place = self.place + count;
            let end = lines.min(self.bins.rows[place].end - y);
            parts[count] = ColumnPart { slot: place % PARTS, first, end, fresh: place >= self.touched };
            (count, first) = (count + 1, end);
        }
        self.touched = self.place + count;
        (parts, count)
    }

    /// Adds line `at` of a strip, which belongs to source row `y`.
    fn add_line(&mut self, y: usize, strip: &Strip, at: usize, values: &[u8; 64]) {
        self.end_before(y);
        let sums = &mut self.slots[self.place % PARTS];
        if self.touched <= self.place {
            sums.fill(0);
            self.touched = self.place + 1;
        }
        let (sums, pixels) = (&mut sums[BEFORE + LEFT..][..WINDOW_WIDTH], &strip.row(at)[LEFT..][..WINDOW_WIDTH]);
        match self.bins.avx2.filter(|_| !strip.is_coloured()) {
            Some(avx2) => simd::add(avx2, sums, pixels, values),
            None => add(sums, pixels, values),
        }
    }
}

impl Bins {
    /// Joins the sums of `lines` lines to the first row of outputs.
    fn divide(&self, sums: &[u16], lines: usize, out: &mut [u8]) {
        if self.periodic {
            let sums = sums.first_chunk().expect("there is room behind the window");
            match self.avx2 {
                Some(avx2) => simd::divide(avx2, sums, lines, out),
                None => periods::divide(sums, lines, out),
            }
            return;
        }
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
pub(super) const fn short_reciprocal(count: usize) -> u16 {
    ((1 << 16) / count + if count.is_power_of_two() { 0 } else { 1 }) as u16
}

#[cfg(test)]
mod tests;
