//! Grey observations with fewer pixels than the window, summed up by columns: no plane of the window is made first.
//!
//! ```text
//! runs of lines by tiles (`tile_sums`), or lines as they are drawn -> one sum a column -> behind an output row's last line:
//! neighbouring sums joined to outputs and divided by their number of pixels
//! ```
//! The ranges of `resize` cover each source once where there are no more outputs than sources. Other sizes, algorithms, RGB and
//! maxpool stay with planes. `periods` joins the sums of the whole window's 240 columns to 84 outputs; `simd` has the inner
//! loops again. Where none of these columns is masked, tiles are summed up by outputs at once (`joined_sums`).

use super::resize::{area_ranges, divide, reciprocals};
use super::window::{LEFT, WINDOW_WIDTH, Window};
use super::{periods, simd};
use crate::emulator::engine::EngineOptions;
use crate::emulator::fast::probe::{Part, Probe};
use crate::emulator::fast::{
    Avx2, BEFORE, ColumnPart, Columns, Joined, Lines, NO_COLUMNS, PARTS, Run, Scene, Strip, TileSums,
};
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
    /// Tiles are summed up by outputs.
    joined: bool,
    reciprocals: Vec<u64>,
    avx2: Option<Avx2>,
}

/// The rows of an observation that is being made, with what they are summed up in: of row n, slot n modulo their number.
struct Rows<'a, S> {
    bins: &'a Bins,
    /// The row that comes next, and the one before which something was added to all.
    place: usize,
    touched: usize,
    slots: S,
    out: &'a mut [u8],
}

/// What rows are summed up in.
trait Slots {
    fn clear(&mut self, slot: usize);
    /// Adds a drawn line.
    fn add_line(&mut self, bins: &Bins, slot: usize, strip: &Strip, at: usize, values: &[u8; 64]);
    /// Adds lines that are only noted.
    fn add_run(&mut self, run: &Run, shades: &[u8; 32], parts: &[ColumnPart], kept: &mut TileSums);
    /// Divides a slot's sums of so many lines.
    fn end(&mut self, bins: &Bins, slot: usize, lines: usize, out: &mut [u8]);
}

/// Sums of columns.
struct ByColumns {
    slots: [Columns; PARTS],
    /// Columns of the sums that are masked.
    masked: [Range<usize>; 2],
    /// Where the source's first column is in the sums.
    left: usize,
}

/// Sums of outputs.
struct ByOutputs([Joined; PARTS]);

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
        let periodic = (source.1, output.1) == (WINDOW_WIDTH, periods::OUTPUTS) && lines <= periods::MOST_LINES;
        Some(Self {
            tiled: switches.tile_sums && between.is_none_or(|lines| lines >= 7),
            periodic,
            joined: switches.joined_sums && periodic,
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
        let columns = window.seen().1;
        let whole = columns.len() == WINDOW_WIDTH;
        if self.joined && self.tiled && whole {
            self.sum_up(window, scene, strip, kept, ByOutputs([Joined::NONE; PARTS]), out);
            return;
        }
        let cut = window.width() == columns.len();
        let left = BEFORE + LEFT;
        let slots = ByColumns {
            slots: [NO_COLUMNS; PARTS],
            masked: [0..columns.start, columns.end..WINDOW_WIDTH]
                .map(|masked| if cut { 0..0 } else { left + masked.start..left + masked.end }),
            left: if cut { left + columns.start } else { left },
        };
        self.sum_up(window, scene, strip, kept, slots, out);
    }

    fn sum_up<P: Probe>(
        &self,
        window: &Window,
        scene: &Scene<P>,
        strip: &mut Strip,
        kept: &mut Option<TileSums>,
        slots: impl Slots,
        out: &mut [u8],
    ) {
        let lines = window.seen().0;
        let first_row = window.corner().0;
        let mut rows = Rows { bins: self, place: 0, touched: 0, slots, out };
        let row_of = |line: usize| first_row + line - lines.start;
        if self.tiled {
            let mut tint = None;
            // In one place: they would be copied by whole registers while their parts are still being written.
            let mut parts = [ColumnPart::default(); PARTS];
            let kept = kept.get_or_insert_default();
            scene.each_run((lines.start, lines.end), strip, kept, |line, seen, kept| match seen {
                Lines::Drawn(strip) => rows.add_line(row_of(line), strip, 0, &window.grey_values(strip)),
                Lines::Noted(run) => {
                    let shades = match tint {
                        Some((known, shades)) if known == run.tint() => shades,
                        _ => window.shades(&run.colours(), run.emphasis()),
                    };
                    tint = Some((run.tint(), shades));
                    let parts = rows.parts(row_of(line), run.lines(), &mut parts);
                    P::span(Part::Draw, || rows.slots.add_run(run, &shades, parts, kept));
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

impl<S: Slots> Rows<'_, S> {
    /// Ends all rows that lie before source row `y`.
    fn end_before(&mut self, y: usize) {
        while self.bins.rows.get(self.place).is_some_and(|row| row.end <= y) {
            let width = self.bins.columns.len();
            let out = &mut self.out[self.place * width..];
            if self.place < self.touched {
                self.slots.end(self.bins, self.place % PARTS, self.bins.rows[self.place].len(), out);
            } else {
                out[..width].fill(0);
            }
            self.place += 1;
        }
    }

    /// The rows to which so many lines from source row `y` on belong, after the rows before are ended.
    fn parts<'p>(&mut self, y: usize, lines: usize, parts: &'p mut [ColumnPart; PARTS]) -> &'p [ColumnPart] {
        self.end_before(y);
        let (mut count, mut first) = (0, 0);
        while first < lines {
            let place = self.place + count;
            let end = lines.min(self.bins.rows[place].end - y);
            parts[count] = ColumnPart { slot: place % PARTS, first, end, fresh: place >= self.touched };
            (count, first) = (count + 1, end);
        }
        self.touched = self.place + count;
        &parts[..count]
    }

    /// Adds line `at` of a strip, which belongs to source row `y`.
    fn add_line(&mut self, y: usize, strip: &Strip, at: usize, values: &[u8; 64]) {
        self.end_before(y);
        let slot = self.place % PARTS;
        if self.touched <= self.place {
            self.slots.clear(slot);
            self.touched = self.place + 1;
        }
        self.slots.add_line(self.bins, slot, strip, at, values);
    }
}

impl Slots for ByColumns {
    fn clear(&mut self, slot: usize) {
        self.slots[slot].fill(0);
    }

    fn add_line(&mut self, bins: &Bins, slot: usize, strip: &Strip, at: usize, values: &[u8; 64]) {
        let sums = &mut self.slots[slot][BEFORE + LEFT..][..WINDOW_WIDTH];
        let pixels = &strip.row(at)[LEFT..][..WINDOW_WIDTH];
        match bins.avx2.filter(|_| !strip.is_coloured()) {
            Some(avx2) => simd::add(avx2, sums, pixels, values),
            None => add(sums, pixels, values),
        }
    }

    fn add_run(&mut self, run: &Run, shades: &[u8; 32], parts: &[ColumnPart], kept: &mut TileSums) {
        run.add(shades, parts, &mut self.slots, kept);
    }

    fn end(&mut self, bins: &Bins, slot: usize, lines: usize, out: &mut [u8]) {
        let sums = &mut self.slots[slot];
        self.masked.iter().for_each(|masked| sums[masked.clone()].fill(0));
        bins.divide(&sums[self.left..], lines, out);
    }
}

impl Slots for ByOutputs {
    fn clear(&mut self, slot: usize) {
        self.0[slot].clear();
    }

    fn add_line(&mut self, _bins: &Bins, slot: usize, strip: &Strip, at: usize, values: &[u8; 64]) {
        self.0[slot].add_line(strip, at, values);
    }

    fn add_run(&mut self, run: &Run, shades: &[u8; 32], parts: &[ColumnPart], kept: &mut TileSums) {
        run.add_joined(shades, parts, &mut self.0, kept);
    }

    fn end(&mut self, bins: &Bins, slot: usize, lines: usize, out: &mut [u8]) {
        let out = out.first_chunk_mut().expect("a row has that many outputs");
        match bins.avx2 {
            Some(avx2) => simd::divide_joined(avx2, &self.0[slot], lines, out),
            None => periods::divide_joined(&self.0[slot], lines, out),
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
