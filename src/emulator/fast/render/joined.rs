//! Noted lines summed up by outputs at once, not by columns: for the window's 240 columns in 84 outputs.
//!
//! ```text
//! period   20 columns are 7 outputs, of 2 3 3 3 3 3 3 columns
//! phase    where a tile begins in a period: with it go the outputs, 4 at most, that the tile's 8 columns belong to
//! word     a tile's sums for these outputs over the lines of a part, 16 bits each
//! ```
//! Neighbouring tiles have an output in common at most: what the left one has for it is carried over in the word, so that nothing
//! that was stored is read again. Outputs before the first one and behind the last one may hold anything.

use super::columns::{About, CELLS, Covered, EVERY_TILE, PARTS, Part, Run, SEEN, TileSums, replace};
use super::simd;
use super::strip::Strip;
use crate::emulator::fast::ppu::mask;
use std::array::from_fn;

/// Columns of a period, and its outputs.
pub const PERIOD: usize = 20;
pub const PERIOD_OUTPUTS: usize = 7;
/// Outputs of a line.
pub const OUTPUTS: usize = 84;
/// The window's first column in the frame.
const LEFT: usize = 8;
/// Where output 0 is in a row: a period begins one output behind the row's start.
const AHEAD: usize = PERIOD_OUTPUTS + 1;
/// Bytes of a row: places are below 128, and a word may be at each of them.
const BYTES: usize = 2 * 128 + 8;

/// The first column of an output.
pub const fn first_column(output: usize) -> usize {
    output * PERIOD / PERIOD_OUTPUTS
}

/// The place in a row for a column of the window, counted from a period before it.
const fn place_of(column: usize) -> usize {
    (PERIOD_OUTPUTS * column + PERIOD_OUTPUTS - 1) / PERIOD + 1
}

/// The output of each of a tile's columns, counted from the first one's, by phase.
const OUTPUT_OF: [[u8; 8]; PERIOD] = {
    let mut out = [[0; 8]; PERIOD];
    let mut phase = 0;
    while phase < PERIOD {
        let mut column = 0;
        while column < 8 {
            out[phase][column] = (place_of(phase + column) - place_of(phase)) as u8;
            column += 1;
        }
        phase += 1;
    }
    out
};

/// Which bytes of eight sums are those of the first column of each output, of the second and of the third: twice, and for 12 more
/// phases that there are not.
pub(super) static PICKS: [[[u8; 32]; 3]; 32] = {
    let mut out = [[[0xFF; 32]; 3]; 32];
    let mut phase = 0;
    while phase < PERIOD {
        let (mut column, mut number) = (0, 0);
        while column < 8 {
            let output = OUTPUT_OF[phase][column] as usize;
            number = if column > 0 && OUTPUT_OF[phase][column - 1] as usize == output { number + 1 } else { 0 };
            let mut byte = 0;
            while byte < 2 {
                out[phase][number][2 * output + byte] = (2 * column + byte) as u8;
                out[phase][number][16 + 2 * output + byte] = (2 * column + byte) as u8;
                byte += 1;
            }
            column += 1;
        }
        phase += 1;
    }
    out
};

/// Where a tile's word goes.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub at: u8,
    pub phase: u8,
    /// Bits of it that belong to no later tile.
    pub done: u8,
}

impl Place {
    /// The columns of each output of the word.
    #[inline(always)]
    pub(super) fn widths(self) -> u64 {
        WIDTHS_AT[usize::from(self.phase) % WIDTHS_AT.len()]
    }
}

/// The places of the tiles that are seen, by fine X.
const PLACES: [[Place; SEEN.end - SEEN.start]; 8] = {
    let mut out = [[Place { at: 0, phase: 0, done: 0 }; SEEN.end - SEEN.start]; 8];
    let mut fine_x = 0;
    while fine_x < 8 {
        let mut tile = 0;
        while tile < SEEN.end - SEEN.start {
            let column = PERIOD + 8 * (SEEN.start + tile) - LEFT - fine_x;
            let at = place_of(column);
            let done = 16 * (place_of(column + 8) - at);
            out[fine_x][tile] = Place { at: at as u8, phase: (column % PERIOD) as u8, done: done as u8 };
            tile += 1;
        }
        fine_x += 1;
    }
    out
};

/// The columns of each output of a tile by phase, as a word.
const WIDTHS_AT: [u64; PERIOD] = {
    let mut out = [0; PERIOD];
    let mut phase = 0;
    while phase < PERIOD {
        let mut column = 0;
        while column < 8 {
            out[phase] += 1 << (16 * OUTPUT_OF[phase][column]);
            column += 1;
        }
        phase += 1;
    }
    out
};

/// The columns of each output.
const WIDTHS: [u16; OUTPUTS] = {
    let mut out = [0; OUTPUTS];
    let mut output = 0;
    while output < OUTPUTS {
        out[output] = (first_column(output + 1) - first_column(output)) as u16;
        output += 1;
    }
    out
};

/// The sums of columns from one of this phase on, joined.
pub(super) fn join(phase: usize, columns: &[u16; 8]) -> [u16; 4] {
    let mut joined = [0_u16; 4];
    for (&sum, &output) in columns.iter().zip(&OUTPUT_OF[phase]) {
        let joined = &mut joined[usize::from(output % 4)];
        *joined = joined.wrapping_add(sum);
    }
    joined
}

fn word_of(sums: [u16; 4]) -> u64 {
    sums.into_iter().rev().fold(0, |word, sum| word << 16 | u64::from(sum))
}

/// The sums of a row of outputs.
#[derive(Clone)]
pub struct Joined([u8; BYTES]);

impl Joined {
    pub const NONE: Self = Self([0; BYTES]);

    /// Writes the first two outputs of a word: no more of an empty tile's can have been touched by the one before it.
    #[inline(always)]
    pub(super) fn put_two(&mut self, place: u8, sums: u32) {
        self.word_at(place)[..4].copy_from_slice(&sums.to_le_bytes());
    }

    /// Makes it a row of columns that have this sum.
    fn fill(&mut self, column: u16) {
        let places = self.0[2 * AHEAD..].chunks_exact_mut(2);
        places.zip(&WIDTHS).for_each(|(place, width)| place.copy_from_slice(&(width * column).to_le_bytes()));
    }

    /// Where the word of a place is.
    #[inline(always)]
    pub(super) fn word_at(&mut self, place: u8) -> &mut [u8; 8] {
        self.0[2 * usize::from(place & 127)..].first_chunk_mut().expect("there is room behind every place")
    }

    fn add_or_become(&mut self, other: &Self, fresh: bool) {
        if fresh {
            self.0 = other.0;
            return;
        }
        for (sums, more) in self.0.chunks_exact_mut(2).zip(other.0.chunks_exact(2)) {
            let [sum, more] = [&*sums, more].map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
            sums.copy_from_slice(&sum.wrapping_add(more).to_le_bytes());
        }
    }

    /// The sums of all outputs.
    pub fn sums(&self) -> impl Iterator<Item = u16> + '_ {
        self.outputs().chunks_exact(2).map(|sum| u16::from_le_bytes([sum[0], sum[1]]))
    }

    /// The same in bytes, the lower one first.
    pub fn outputs(&self) -> &[u8; 2 * OUTPUTS] {
        self.0[2 * AHEAD..].first_chunk().expect("a row is longer")
    }

    /// A row of these sums.
    pub fn from_sums(sums: &[u16; OUTPUTS]) -> Self {
        let mut row = Self::NONE;
        let places = row.0[2 * AHEAD..].chunks_exact_mut(2);
        places.zip(sums).for_each(|(place, sum)| place.copy_from_slice(&sum.to_le_bytes()));
        row
    }

    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Adds the values of a drawn line's pixels, looked up by their lower six bits.
    pub fn add_line(&mut self, strip: &Strip, at: usize, values: &[u8; 64]) {
        let mut line = Self::NONE;
        for (column, &pixel) in strip.row(at)[LEFT..].iter().take(first_column(OUTPUTS)).enumerate() {
            let place = line.word_at(place_of(PERIOD + column) as u8).first_chunk_mut().expect("a sum is shorter");
            let value = u16::from(values[usize::from(pixel & 0x3F)]);
            *place = (u16::from_le_bytes(*place) + value).to_le_bytes();
        }
        self.add_or_become(&line, false);
    }
}

impl Run<'_> {
    /// Adds the shades of the lines' pixels to the rows of their parts, which are in their order.
    pub fn add_joined(&self, shades: &[u8; 32], parts: &[Part], slots: &mut [Joined; PARTS], kept: &mut TileSums) {
        let cells = self.cells();
        if self.note.mask & mask::BACKGROUND == 0 {
            for part in parts {
                let mut row = Joined::NONE;
                row.fill((part.end - part.first) as u16 * u16::from(shades[0]));
                slots[part.slot % PARTS].add_or_become(&row, part.fresh);
            }
        } else if let [first, second, third] = parts
            && first.fresh
        {
            // What a row of tiles is in 84 lines: in one go.
            let mut rows = slots.each_mut().map(Some);
            let mut row_of = |part: &Part| rows[part.slot % PARTS].take().expect("each part has a row of its own");
            self.join_tiles(&mut [row_of(first), row_of(second), row_of(third)], &cells, shades, parts, kept);
        } else {
            let mut rows = [Joined::NONE; PARTS];
            self.join_tiles(&mut rows.each_mut(), &cells, shades, parts, kept);
            for (part, row) in parts.iter().zip(rows) {
                slots[part.slot % PARTS].add_or_become(&row, part.fresh);
            }
        }
        self.each_sprite_row(&cells, parts, |slot, x, row| {
            // Sprites begin in the window's first column at the left, or in the eight before it.
            let column = PERIOD + x - LEFT;
            let (word, phase) = (slots[slot % PARTS].word_at(place_of(column) as u8), column % PERIOD);
            match self.memories.avx2 {
                Some(avx2) => simd::cover(avx2, word, phase, shades, row),
                None => cover(word, phase, shades, row),
            }
        });
    }

    /// Puts the sums of the tiles that are seen into the rows of the first parts. Most tiles are empty in most games: the rows
    /// begin as the backdrop's, and words are put for the others alone.
    fn join_tiles<const N: usize>(
        &self,
        rows: &mut [&mut Joined; N],
        cells: &[u16; CELLS],
        shades: &[u8; 32],
        parts: &[Part],
        kept: &mut TileSums,
    ) {
        let about = self.about(shades, parts, kept);
        let tiles = Tiles {
            cells,
            places: &PLACES[usize::from(self.note.fine_x % 8)],
            drawn: kept.drawn(cells, self.memories.avx2),
            backdrop: from_fn(|at| {
                parts.get(at).map_or(0, |part| (part.end - part.first) as u16 * u16::from(shades[0]))
            }),
        };
        if tiles.drawn != EVERY_TILE {
            rows.iter_mut().zip(tiles.backdrop).for_each(|(row, column)| row.fill(column));
        }
        match self.memories.avx2 {
            Some(avx2) => simd::put_tiles(avx2, &tiles, kept, &about, rows),
            None => put_tiles(&tiles, kept, &about, rows),
        }
    }
}

/// The tiles of a run.
pub(super) struct Tiles<'a> {
    pub cells: &'a [u16; CELLS],
    pub places: &'a [Place; SEEN.end - SEEN.start],
    /// A bit for each that is not known to be empty.
    pub drawn: u32,
    /// What a column is without tiles, by parts.
    pub backdrop: [u16; PARTS],
}

/// Neighbouring tiles that are not empty.
pub(super) struct Stretch<'a> {
    /// The places of the empty ones before and behind them.
    pub before: Option<&'a Place>,
    pub behind: Option<&'a Place>,
    pub tiles: std::iter::Zip<std::slice::Iter<'a, Place>, std::slice::Iter<'a, u16>>,
}

impl Tiles<'_> {
    #[inline(always)]
    pub(super) fn stretches(&self) -> impl Iterator<Item = Stretch<'_>> {
        let mut left = self.drawn;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let first = left.trailing_zeros() as usize % self.places.len();
            let end = (first + (left >> first).trailing_ones() as usize).min(self.places.len());
            left &= (u64::MAX << end) as u32;
            Some(Stretch {
                before: first.checked_sub(1).map(|before| &self.places[before]),
                behind: self.places.get(end),
                tiles: self.places[first..end].iter().zip(self.cells[SEEN][first..end].iter()),
            })
        })
    }
}

/// Puts a sprite's shades in the place of those under them, in the outputs of a word.
pub(super) fn cover(word: &mut [u8; 8], phase: usize, shades: &[u8; 32], row: Covered) {
    let mut changes = [0; 8];
    replace(&mut changes, shades, row);
    for (place, change) in word.chunks_exact_mut(2).zip(join(phase, &changes)) {
        let sum = u16::from_le_bytes([place[0], place[1]]);
        place.copy_from_slice(&sum.wrapping_add(change).to_le_bytes());
    }
}

/// Puts the sums of the tiles into rows of the backdrop.
pub(super) fn put_tiles<const N: usize>(
    tiles: &Tiles,
    kept: &mut TileSums,
    about: &About,
    rows: &mut [&mut Joined; N],
) {
    let backdrop = |place: &Place| -> [u64; N] { from_fn(|part| place.widths() * u64::from(tiles.backdrop[part])) };
    for stretch in tiles.stretches() {
        let mut carried = stretch.before.map_or([0; N], |place| backdrop(place).map(|word| word >> place.done));
        for (place, &cell) in stretch.tiles {
            let sums = kept.of(cell, about);
            for ((row, carried), columns) in rows.iter_mut().zip(&mut carried).zip(sums) {
                let word = *carried + word_of(join(usize::from(place.phase), columns));
                *row.word_at(place.at) = word.to_le_bytes();
                *carried = word >> place.done;
            }
        }
        if let Some(behind) = stretch.behind {
            for ((row, carried), word) in rows.iter_mut().zip(carried).zip(backdrop(behind)) {
                row.put_two(behind.at, (carried + word) as u32);
            }
        }
    }
}
