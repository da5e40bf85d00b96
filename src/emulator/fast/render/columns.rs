//! Lines that are only noted, summed up by columns without drawing them: what an observation that is smaller than the picture
//! is made of.
//!
//! ```text
//! run      up to eight noted lines of one row of tiles
//! parts    the run's lines by the rows of the observation that they belong to
//! sums     a tile's eight columns, added up over the lines of each part: the same for every tile with this pattern and
//!          these four shades, so they are kept (`TileSums`)
//! columns  the sums of all tiles beside each other, a row of the observation each; corrected where sprites are
//! ```
//! A picture has some 750 tiles and some 60 different ones, most of which the last picture had too. Columns that no window
//! shows, the first eight and the last eight of 256, may hold anything.

use super::canvas::{Line, Note};
use super::strip::{self, LINES};
use super::{Avx2, Memories, simd};
use crate::emulator::cart::Cartridge;
use crate::emulator::engine::FRAME_WIDTH;
use crate::emulator::fast::ppu::{
    BEHIND, FLIP_X, FLIP_Y, SPREAD, SPRITES_PER_LINE, VideoMemory, ctrl, mask, sprite_height,
};
use std::array::from_fn;
use std::ops::Range;
use std::sync::Arc;

/// Where column 0 of the frame is in a row of columns.
pub const BEFORE: usize = 8;
/// The sums of a row's columns, with room before and behind for tiles and sprites that reach over the edges.
pub type Columns = [u16; BEFORE + FRAME_WIDTH + 16];
/// Columns to add to.
pub const NO_COLUMNS: Columns = [0; BEFORE + FRAME_WIDTH + 16];
/// Rows of an observation that a run touches at most.
pub const PARTS: usize = 4;

/// Tiles that the window may show, by their number in the line.
pub(super) const SEEN: Range<usize> = 1..32;
/// A bit for each of them.
pub(super) const EVERY_TILE: u32 = u32::MAX >> 1;
/// A line's tiles, and one more for sprites that reach over the edge.
pub(super) const CELLS: usize = 34;
/// Bits of a pattern's number in both tables.
const PATTERN_BITS: u32 = 9;
/// Places of sums: for each pattern with a palette, some for other shades and parts.
const PLACES: usize = 1 << (PATTERN_BITS + PLACE_BITS);
const PLACE_BITS: u32 = 5;
const PATTERNS: usize = 1 << PATTERN_BITS;
pub(super) const PATTERN: u16 = PATTERNS as u16 - 1;
/// A row's bits from right to left.
const MIRRORED: [u8; 256] = {
    let mut out = [0; 256];
    let mut row = 0;
    while row < 256 {
        out[row] = (row as u8).reverse_bits();
        row += 1;
    }
    out
};
/// One in each byte.
const EACH: u64 = 0x0101_0101_0101_0101;
/// The palettes of four neighbouring tiles, by the bits of an attribute byte for two pairs of them.
const PALETTES: [[u8; 4]; 16] = {
    let mut out = [[0; 4]; 16];
    let mut bits = 0;
    while bits < 16 {
        let (left, right) = (bits as u8 & 3, bits as u8 >> 2);
        out[bits] = [left, left, right, right];
        bits += 1;
    }
    out
};
/// Bits of a key for the shades, then for the parts.
const EPOCH_SHIFT: u32 = 32 + 4 + 4 * PARTS as u32;
const LAST_EPOCH: u64 = u64::MAX >> EPOCH_SHIFT;

/// The lines of a run that belong to one row of an observation, counted from the run's first one, and whether nothing was
/// added to the row before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub slot: usize,
    pub first: usize,
    pub end: usize,
    pub fresh: bool,
}

pub(super) type Sums = [[u16; 8]; PARTS];

/// Sums of tiles, kept for the next row, picture and lane: a thread's.
pub struct TileSums {
    /// What the sums in a place are of: shades, parts, epoch.
    keys: Box<[u64; PLACES]>,
    /// Memory that is touched where a tile needs it.
    sums: Box<[Sums; PLACES]>,
    /// Whose patterns they are; `None` for patterns in memory, which may change.
    rom: Option<Arc<Cartridge>>,
    /// Sums of another epoch are of other patterns.
    epoch: u64,
    /// Patterns without a pixel.
    empty: Box<[bool; PATTERNS]>,
}

impl Default for TileSums {
    fn default() -> Self {
        // No key is 0: nothing is found at first.
        Self {
            keys: vec![0; PLACES].try_into().expect("there are that many"),
            sums: vec![[[0; 8]; PARTS]; PLACES].try_into().expect("there are that many"),
            rom: None,
            epoch: 0,
            empty: Box::new([false; PATTERNS]),
        }
    }
}

impl TileSums {
    /// Another picture begins.
    pub(super) fn begin(&mut self, memories: Memories) {
        let rom = memories.video.rom();
        let same = rom.is_some_and(|rom| self.rom.as_ref().is_some_and(|known| Arc::ptr_eq(known, rom)));
        if !same {
            self.rom = rom.cloned();
            self.epoch += 1;
            if self.epoch > LAST_EPOCH {
                self.keys.fill(0);
                self.epoch = 1;
            }
            for (pattern, empty) in self.empty.iter_mut().enumerate() {
                *empty = memories.video.tile(pattern_of(pattern as u16)) == &[0; 16];
            }
        }
    }

    /// A bit for each tile that is seen, from the left: clear for those of one pattern that is empty, if there is one in this row.
    pub(super) fn drawn(&self, cells: &[u16; CELLS], avx2: Option<Avx2>) -> u32 {
        let looked_at = [SEEN.start, SEEN.end / 2, SEEN.end - 1].map(|at| cells[at] & PATTERN);
        let Some(empty) = looked_at.into_iter().find(|&pattern| self.empty[usize::from(pattern)]) else {
            return EVERY_TILE;
        };
        let others = match avx2 {
            Some(avx2) => simd::others(avx2, cells, empty),
            None => others(cells, empty),
        };
        others & EVERY_TILE
    }

    /// The sums of a tile's columns.
    #[inline(always)]
    pub(super) fn of(&mut self, cell: u16, about: &About) -> &Sums {
        let (at, key) = (about.place(cell), about.key(cell));
        if self.keys[at] != key {
            self.keys[at] = key;
            self.sums[at] = about.sums_of(cell);
        }
        &self.sums[at]
    }
}

/// A bit for each of 32 cells from the first one that is seen on: whether its pattern is another one.
pub(super) fn others(cells: &[u16; CELLS], pattern: u16) -> u32 {
    let cells = cells[SEEN.start..][..32].iter().enumerate();
    cells.fold(0, |bits, (at, cell)| bits | u32::from(cell & PATTERN != pattern) << at)
}

/// Where a tile's pattern is.
fn pattern_of(cell: u16) -> u16 {
    cell << 4 & 0x1FF0
}

/// The number of its palette.
fn palette_of(cell: u16) -> usize {
    usize::from(cell >> PATTERN_BITS) % 4
}

/// What the sums of a run's tiles depend on beside their patterns.
pub(super) struct About<'a> {
    tiles: &'a VideoMemory,
    /// The shades of the four palettes.
    greys: [[u8; 4]; 4],
    keys: [u64; 4],
    /// Bits of a place: a pattern has a place for each palette, and finds other ones with other shades or parts, mostly.
    moved: u16,
    top: usize,
    parts: &'a [Part],
}

impl About<'_> {
    /// Where the sums of a tile are kept.
    #[inline(always)]
    fn place(&self, cell: u16) -> usize {
        usize::from(cell ^ self.moved) % PLACES
    }

    #[inline(always)]
    fn key(&self, cell: u16) -> u64 {
        self.keys[palette_of(cell)]
    }

    /// The sums of a tile's columns over the lines of each part; the first line has row `top` of the tile.
    #[inline(never)]
    fn sums_of(&self, cell: u16) -> Sums {
        let mut out = [[0; 8]; PARTS];
        let greys = self.greys[palette_of(cell)];
        let (low, high) = self.tiles.tile(pattern_of(cell)).split_at(8);
        for (part, sums) in self.parts.iter().zip(&mut out) {
            for row in self.top + part.first..self.top + part.end {
                let pixels = SPREAD[usize::from(low[row])] | SPREAD[usize::from(high[row])] << 1;
                for (sum, pixel) in sums.iter_mut().zip(pixels.to_le_bytes()) {
                    *sum += u16::from(greys[usize::from(pixel % 4)]);
                }
            }
        }
        out
    }
}

/// Noted lines that can be summed up together.
pub struct Run<'a> {
    pub(super) note: Note,
    first: usize,
    lines: usize,
    pub(super) memories: Memories<'a>,
}

impl<'a> Run<'a> {
    /// The run that begins with the first of these lines, of which `first` is the number; `None` if it is drawn.
    pub(super) fn at(lines: &[Line], first: usize, memories: Memories<'a>) -> Option<Self> {
        let Line::Noted(note) = lines[0] else { return None };
        Some(Self { note, first, lines: strip::together(note, lines), memories })
    }

    pub fn lines(&self) -> usize {
        self.lines
    }

    /// What decides `colours` and `emphasis`, as long as no memory changes.
    pub fn tint(&self) -> u8 {
        self.note.mask & (mask::GREY | 0xE0)
    }

    /// The palette index of each pixel value: 0-15 background, 16-31 sprites.
    pub fn colours(&self) -> [u8; 32] {
        self.memories.palette.colours(if self.note.mask & mask::GREY == 0 { 0x3F } else { 0x30 })
    }

    pub fn emphasis(&self) -> u8 {
        self.note.mask >> 5
    }

    /// Adds the shades of the lines' pixels to the columns of their parts, which are in their order.
    pub fn add(&self, shades: &[u8; 32], parts: &[Part], slots: &mut [Columns; PARTS], kept: &mut TileSums) {
        let cells = self.cells();
        if self.note.mask & mask::BACKGROUND == 0 {
            for part in parts {
                let sum = (part.end - part.first) as u16 * u16::from(shades[0]);
                let columns = &mut slots[part.slot];
                for column in columns.iter_mut() {
                    *column = sum.wrapping_add(if part.fresh { 0 } else { *column });
                }
            }
        } else {
            self.add_background(&cells, shades, parts, slots, kept);
        }
        self.each_sprite_row(&cells, parts, |slot, x, row| {
            let columns = slots[slot % PARTS][BEFORE + x..].first_chunk_mut().expect("there is room behind");
            match self.memories.avx2 {
                Some(avx2) => simd::replace(avx2, columns, shades, row),
                None => replace(columns, shades, row),
            }
        });
    }

    /// The tiles that are seen, none where no background is.
    pub(super) fn cells(&self) -> [u16; CELLS] {
        let mut cells = [0; CELLS];
        if self.note.mask & mask::BACKGROUND != 0 {
            self.set_cells(&mut cells);
        }
        cells
    }

    /// The tiles that are seen: the pattern's number, and the palette above it.
    fn set_cells(&self, cells: &mut [u16; CELLS]) {
        let (mut names, mut palettes) = ([0; 64], [0; 64]);
        let v = self.note.v;
        for (table, v) in [v, v ^ 0x0400].into_iter().enumerate() {
            let (row, attributes) = self.memories.video.row_of_names(v);
            names[32 * table..][..32].copy_from_slice(row);
            for (four, &byte) in palettes[32 * table..][..32].chunks_exact_mut(4).zip(attributes) {
                four.copy_from_slice(&PALETTES[usize::from(byte >> (v >> 4 & 4) & 15)]);
            }
        }
        let table = u16::from(self.note.ctrl & ctrl::BACKGROUND_TABLE) << 4;
        let first = usize::from(v & 0x1F) + SEEN.start;
        // One more than is seen: in whole registers.
        let (names, palettes) = (&names[first..][..32], &palettes[first..][..32]);
        for ((cell, &name), &palette) in cells[SEEN.start..][..32].iter_mut().zip(names).zip(palettes) {
            *cell = table | u16::from(name) | u16::from(palette) << PATTERN_BITS;
        }
    }

    fn add_background(
        &self,
        cells: &[u16; CELLS],
        shades: &[u8; 32],
        parts: &[Part],
        slots: &mut [Columns; PARTS],
        kept: &mut TileSums,
    ) {
        let about = self.about(shades, parts, kept);
        let left = BEFORE + 8 * SEEN.start - usize::from(self.note.fine_x);
        if let [first, second, third] = parts
            && first.fresh
        {
            // What a row of tiles is in 84 lines: in one go.
            let mut rows = slots.each_mut().map(|columns| Some(columns[left..].chunks_exact_mut(8)));
            let mut row_of = |part: &Part| rows[part.slot % PARTS].take().expect("each part has a row of its own");
            let rows = row_of(first).zip(row_of(second)).zip(row_of(third));
            for (((first, second), third), &cell) in rows.zip(&cells[SEEN]) {
                let sums = kept.of(cell, &about);
                first.copy_from_slice(&sums[0]);
                second.copy_from_slice(&sums[1]);
                third.copy_from_slice(&sums[2]);
            }
            return;
        }
        for (left, &cell) in (left..).step_by(8).zip(&cells[SEEN]) {
            // Each tile is done with before the next one is looked up, which may take its place.
            let sums = kept.of(cell, &about);
            for (part, sums) in parts.iter().zip(sums) {
                let columns = &mut slots[part.slot % PARTS][left..][..8];
                if part.fresh {
                    columns.copy_from_slice(sums);
                } else {
                    columns.iter_mut().zip(sums).for_each(|(column, sum)| *column = column.wrapping_add(*sum));
                }
            }
        }
    }

    /// What the sums of this run's tiles depend on.
    pub(super) fn about<'b>(&'b self, shades: &[u8; 32], parts: &'b [Part], kept: &TileSums) -> About<'b> {
        let top = usize::from(self.note.v >> 12);
        // The bit above the first row tells other numbers of parts apart.
        let parts_in_bits = parts.iter().fold(8 | top as u64, |bits, part| bits << 4 | part.end as u64);
        let about = kept.epoch << (EPOCH_SHIFT - 32) | parts_in_bits;
        let greys: [[u8; 4]; 4] = from_fn(|palette| from_fn(|at| shades[4 * palette + at]));
        let words = greys.map(|greys| u64::from(u32::from_le_bytes(greys)));
        let mixed = words.iter().fold(about, |mixed, word| (mixed ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        About {
            tiles: self.memories.video,
            greys,
            keys: words.map(|word| about << 32 | word),
            moved: (mixed >> (64 - PLACE_BITS) << PATTERN_BITS) as u16,
            top,
            parts,
        }
    }

    /// Puts each line's first eight sprites in the place of the background, the frontmost first: an opaque pixel of it keeps others
    /// away even where the background hides it. `cover` gets a slot, a column and the pixels from there on.
    #[inline(always)]
    pub(super) fn each_sprite_row(
        &self,
        cells: &[u16; CELLS],
        parts: &[Part],
        mut cover: impl FnMut(usize, usize, Covered),
    ) {
        let Some(ctrl) = self.note.sprites.filter(|_| self.note.mask & mask::SPRITES != 0) else { return };
        let (first, height) = (self.first as u32, sprite_height(ctrl));
        let end = first + self.lines as u32;
        let oam = self.memories.oam;
        // Most sprites are somewhere else, many below the picture.
        let mut near = match self.memories.avx2 {
            Some(avx2) => simd::sprites_between(avx2, oam, height, first..end),
            None => strip::sprites_between(oam, height, first..end),
        };
        if near == 0 {
            return;
        }
        let mut slot_of = [0; LINES];
        for part in parts {
            slot_of[part.first..part.end].fill(part.slot);
        }
        // The lines' pixels that are taken, from the left, eight a byte.
        let mut taken = [[0_u8; FRAME_WIDTH / 8 + 1]; LINES];
        let mut found = [0; LINES];
        let below = usize::from(self.note.v >> 12);
        while near != 0 {
            let sprite = &oam[4 * near.trailing_zeros() as usize..][..4];
            near &= near - 1;
            let [y, tile, attributes, x] = [sprite[0], sprite[1], sprite[2], sprite[3]];
            let tiles = sprite_tiles(self.memories.video, tile, ctrl);
            let palette = EACH * u64::from(0x10 | (attributes & 3) << 2);
            let mut behind = None;
            // A sprite's first line is the one below its Y.
            let top = u32::from(y) + 1;
            for line in top.max(first)..(top + height).min(end) {
                let at = (line - first) as usize % LINES;
                if found[at] == SPRITES_PER_LINE {
                    continue;
                }
                found[at] += 1;
                let down = if attributes & FLIP_Y == 0 { line - top } else { height - 1 - (line - top) } as usize;
                let mut row = [0, 8].map(|plane| tiles[down / 8 % 2][plane + down % 8]);
                if row == [0; 2] {
                    continue;
                }
                if attributes & FLIP_X != 0 {
                    row = row.map(|plane| MIRRORED[usize::from(plane)]);
                }
                let [over_low, over_high] = row;
                let put = (over_low | over_high) & !take(&mut taken[at], x, over_low | over_high);
                let behind = behind.get_or_insert_with(|| self.under(cells, usize::from(x)));
                let [low, high] = behind.row(below + at);
                let shown = if attributes & BEHIND == 0 { put } else { put & !(low | high) };
                if shown != 0 {
                    let row = Covered {
                        under: SPREAD[usize::from(low)] | SPREAD[usize::from(high)] << 1 | behind.palettes,
                        over: SPREAD[usize::from(over_low)] | SPREAD[usize::from(over_high)] << 1 | palette,
                        shown: SPREAD[usize::from(shown)],
                    };
                    cover(slot_of[at], usize::from(x), row);
                }
            }
        }
    }

    /// The background behind a sprite at column `x`.
    fn under(&self, cells: &[u16; CELLS], x: usize) -> Under<'a> {
        let across = x + usize::from(self.note.fine_x);
        let under = [cells[across / 8], cells[across / 8 + 1]];
        let shift = across as u32 % 8;
        let [left, right] = under.map(|cell| EACH * (palette_of(cell) << 2) as u64);
        // The right tile begins behind 8 - `shift` pixels.
        let of_left = u64::MAX >> (8 * shift);
        let shown = self.note.mask & mask::BACKGROUND != 0;
        Under {
            patterns: under.map(|cell| if shown { self.memories.video.tile(pattern_of(cell)) } else { &[0; 16] }),
            shift,
            palettes: left & of_left | right & !of_left,
        }
    }
}

/// Both tiles of a sprite under this $2000, of which one is the only one of a low sprite.
fn sprite_tiles(memory: &VideoMemory, tile: u8, ctrl: u8) -> [&[u8; 16]; 2] {
    let first = if ctrl & ctrl::TALL_SPRITES == 0 {
        u16::from(ctrl & ctrl::SPRITE_TABLE) << 9 | u16::from(tile) << 4
    } else {
        u16::from(tile & 1) << 12 | u16::from(tile & 0xFE) << 4
    };
    [first, first | 16].map(|address| memory.tile(address))
}

/// What is behind a sprite: two tiles.
struct Under<'a> {
    patterns: [&'a [u8; 16]; 2],
    /// Pixels of the left tile that are left of the sprite.
    shift: u32,
    /// Bits 2-3 of each pixel.
    palettes: u64,
}

impl Under<'_> {
    /// Both planes in a row of the tiles.
    fn row(&self, row: usize) -> [u8; 2] {
        let [left, right] = self.patterns;
        [row % 8, row % 8 + 8].map(|at| (u16::from_be_bytes([left[at], right[at]]) << self.shift >> 8) as u8)
    }
}

/// Takes the pixels of `wanted`, from column `x` on, for a sprite; gives those of these eight that were taken before.
fn take(taken: &mut [u8; FRAME_WIDTH / 8 + 1], x: u8, wanted: u8) -> u8 {
    let (at, shift) = (usize::from(x / 8), x % 8);
    let before = u16::from_be_bytes([taken[at], taken[at + 1]]);
    [taken[at], taken[at + 1]] = (before | u16::from(wanted) << 8 >> shift).to_be_bytes();
    (before << shift >> 8) as u8
}

/// Pixels of a background, 0 to 15, and those of a sprite over them, 16 to 31, which are seen where `shown` has a 1; a byte each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered {
    pub under: u64,
    pub over: u64,
    pub shown: u64,
}

/// Puts the shades of a sprite's pixels in the place of those under them.
pub(super) fn replace(columns: &mut [u16; 8], shades: &[u8; 32], row: Covered) {
    let pixels = row.under.to_le_bytes().into_iter().zip(row.over.to_le_bytes()).zip(row.shown.to_le_bytes());
    for (column, ((under, over), shown)) in columns.iter_mut().zip(pixels) {
        let [old, new] = [under, over].map(|pixel| u16::from(shades[usize::from(pixel % 32)]));
        *column = column.wrapping_add(new.wrapping_sub(old) * u16::from(shown));
    }
}
