//! Neighbouring lines drawn together: the background a tile at a time, then sprites over it.
//!
//! ```text
//! a pixel   0t0s ppcc   cc pattern, pp palette, s sprite, t a sprite was here (maybe behind the background)
//! in a line that the beam drew itself a pixel is its colour, 00cc cccc
//! ```
//! Rows are eight pixels in a 64-bit word, the left one in the lowest byte.

use super::canvas::{Canvas, Line, Note};
use super::{Memories, simd};
use crate::emulator::engine::FRAME_WIDTH;
use crate::emulator::fast::ppu::{BEHIND, SPREAD, SPRITES_PER_LINE, ctrl, mask, sprite_height, sprite_row};
use std::ops::Range;

/// Lines in a strip, at most: those of a tile.
pub(super) const LINES: usize = 8;
/// Tiles that a line touches when it starts within one.
pub(super) const TILES: usize = FRAME_WIDTH / 8 + 1;
/// A row has room for sprites that reach over the right edge.
pub(super) const ROW: usize = 8 * (TILES + 1);
/// One in each byte.
const EACH: u64 = 0x0101_0101_0101_0101;
const SPRITE: u64 = 0x10 * EACH;
const TAKEN: u64 = 0x40 * EACH;
/// Every colour is itself.
const IDENTITY: [u8; 64] = {
    let mut table = [0; 64];
    let mut index = 0;
    while index < 64 {
        table[index] = index as u8;
        index += 1;
    }
    table
};

/// A tile of the background: both planes of its pattern, and its palette in bits 2-3.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub pattern: &'a [u8; 16],
    pub palette: u8,
}

/// Up to eight lines, drawn.
pub struct Strip {
    pixels: [[u8; ROW]; LINES],
    /// The rows in `pixels` that are lines of the strip.
    top: usize,
    lines: usize,
    /// Where column 0 is in a row.
    left: usize,
    colours: [u8; 64],
    coloured: bool,
    emphasis: u8,
}

impl Default for Strip {
    fn default() -> Self {
        Self { pixels: [[0; ROW]; LINES], top: 0, lines: 0, left: 0, colours: IDENTITY, coloured: true, emphasis: 0 }
    }
}

/// 0xFF in each byte whose lowest bit is set.
#[inline(always)]
fn filled(bits: u64) -> u64 {
    (bits & EACH) * 0xFF
}

impl Strip {
    /// Lines that were drawn last.
    #[inline]
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// The pixels of line `at` of the strip; `colours` says what they mean.
    ///
    /// # Panics
    /// Never: a row has that many pixels behind its left one.
    #[inline]
    pub fn row(&self, at: usize) -> &[u8; FRAME_WIDTH] {
        self.pixels[self.top + at][self.left..][..FRAME_WIDTH].try_into().expect("a row is longer")
    }

    /// The palette index for the lower six bits of a pixel.
    #[inline]
    pub fn colours(&self) -> &[u8; 64] {
        &self.colours
    }

    #[inline]
    pub(super) fn colour(&self, pixel: u8) -> u8 {
        self.colours[usize::from(pixel & 0x3F)]
    }

    /// Whether its pixels are colours; else they are below 32, bit 6 aside.
    #[inline]
    pub fn is_coloured(&self) -> bool {
        self.coloured
    }

    /// The emphasis bits of these lines.
    #[inline]
    pub fn emphasis(&self) -> u8 {
        self.emphasis
    }

    pub(super) fn draw(&mut self, canvas: &Canvas, memories: Memories, first: usize, end: usize) {
        let lines = &canvas.lines[first..end];
        let note = match lines[0] {
            Line::Noted(note) => note,
            Line::Drawn => {
                (self.top, self.lines, self.left) = (0, 1, 0);
                self.pixels[0][..FRAME_WIDTH].copy_from_slice(canvas.frame.row(first));
                self.colours = IDENTITY;
                self.coloured = true;
                self.emphasis = canvas.frame.emphasis[first];
                return;
            }
        };
        self.lines = together(note, lines);
        self.coloured = false;
        self.emphasis = note.mask >> 5;
        self.set_colours(memories.palette.colours(if note.mask & mask::GREY == 0 { 0x3F } else { 0x30 }));
        self.left = usize::from(note.fine_x);
        if note.mask & mask::BACKGROUND == 0 {
            self.top = 0;
            self.pixels[..self.lines].as_flattened_mut().fill(0);
        } else {
            self.draw_background(note, memories);
        }
        if let Some(ctrl) = note.sprites.filter(|_| note.mask & mask::SPRITES != 0) {
            self.draw_sprites(ctrl, note.mask, first as u32, memories);
        }
    }

    fn set_colours(&mut self, colours: [u8; 32]) {
        self.colours[..32].copy_from_slice(&colours);
    }

    /// Rows of `pixels` are the rows of the tiles: `top` is the first that belongs to a line.
    fn draw_background(&mut self, note: Note, memories: Memories) {
        self.top = usize::from(note.v >> 12);
        let rows = self.top..self.top + self.lines;
        let tiles = tiles_of(note, memories);
        match memories.avx2 {
            Some(avx2) => simd::draw_tiles(avx2, &tiles, &mut self.pixels),
            None => draw_tiles(&tiles, rows.clone(), &mut self.pixels),
        }
        if note.mask & mask::BACKGROUND_LEFT == 0 {
            self.pixels[rows].iter_mut().for_each(|row| row[self.left..self.left + 8].fill(0));
        }
    }

    /// Puts in each line its first eight sprites, the frontmost first: an opaque pixel of it keeps others away even
    /// where the background hides it.
    fn draw_sprites(&mut self, ctrl: u8, mask: u8, first: u32, memories: Memories) {
        let height = sprite_height(ctrl);
        let end = first + self.lines as u32;
        let mut found = [0; LINES];
        // Most sprites are somewhere else, many below the picture.
        let mut near = match memories.avx2 {
            Some(avx2) => simd::sprites_between(avx2, memories.oam, height, first..end),
            None => sprites_between(memories.oam, height, first..end),
        };
        while near != 0 {
            let sprite = &memories.oam[4 * near.trailing_zeros() as usize..][..4];
            near &= near - 1;
            let [y, tile, attributes, x] = [sprite[0], sprite[1], sprite[2], sprite[3]];
            // A sprite's first line is the one below its Y.
            let top = u32::from(y) + 1;
            for line in top.max(first)..(top + height).min(end) {
                let at = (line - first) as usize;
                if found[at] == SPRITES_PER_LINE {
                    continue;
                }
                found[at] += 1;
                let row = sprite_row(memories.video, [y, tile, attributes, x], line, ctrl);
                let pixels = SPREAD[usize::from(row.low)] | SPREAD[usize::from(row.high)] << 1;
                let mut opaque = filled(pixels | pixels >> 1);
                if x < 8 && mask & mask::SPRITES_LEFT == 0 {
                    opaque &= u64::MAX.checked_shl(8 * (8 - u32::from(x))).unwrap_or(0);
                }
                let colours = pixels | SPRITE | (EACH * u64::from((attributes & 3) << 2));
                let place = &mut self.pixels[self.top + at][self.left + usize::from(x)..][..8];
                let under = u64::from_le_bytes(std::array::from_fn(|byte| place[byte]));
                let put = opaque & !filled(under >> 6);
                let hidden = if attributes & BEHIND == 0 { 0 } else { filled(under | under >> 1) };
                let shown = put & !hidden;
                let over = under & !shown | colours & shown | TAKEN & put;
                place.copy_from_slice(&over.to_le_bytes());
            }
        }
    }
}

/// The tiles of a line, from the left.
fn tiles_of(note: Note, memories: Memories) -> [Tile; TILES] {
    let table = u16::from(note.ctrl & ctrl::BACKGROUND_TABLE) << 8;
    let mut row = note.v;
    let mut x = usize::from(note.v & 0x1F);
    let (mut names, mut attributes) = memories.video.row_of_names(row);
    std::array::from_fn(|_| {
        if x == names.len() {
            // Into the next name table.
            row ^= 0x0400;
            x = 0;
            (names, attributes) = memories.video.row_of_names(row);
        }
        let quarter = row >> 4 & 4 | x as u16 & 2;
        let tile = Tile {
            pattern: memories.video.tile(table | u16::from(names[x]) << 4),
            palette: (attributes[x >> 2] >> quarter & 3) << 2,
        };
        x += 1;
        tile
    })
}

/// Draws these rows of tiles beside each other.
pub(super) fn draw_tiles(tiles: &[Tile; TILES], rows: Range<usize>, pixels: &mut [[u8; ROW]; LINES]) {
    for (place, tile) in tiles.iter().enumerate() {
        let palette = EACH * u64::from(tile.palette);
        let (low, high) = tile.pattern.split_at(8);
        for row in rows.clone() {
            let drawn = SPREAD[usize::from(low[row])] | SPREAD[usize::from(high[row])] << 1 | palette;
            pixels[row][8 * place..][..8].copy_from_slice(&drawn.to_le_bytes());
        }
    }
}

/// A bit for each of the 64 sprites, from the lowest: whether it is in one of these lines.
pub(super) fn sprites_between(oam: &[u8; 256], height: u32, lines: Range<u32>) -> u64 {
    oam.chunks_exact(4).enumerate().fold(0, |near, (n, sprite)| {
        let top = u32::from(sprite[0]) + 1;
        near | u64::from(top < lines.end && lines.start < top + height) << n
    })
}

/// How many of these lines, of which the first one has this note, are of one row of tiles.
pub(super) fn together(first: Note, lines: &[Line]) -> usize {
    // Line by line one row further down, until the tiles' last one.
    let (step, most) = match first.mask & mask::RENDERING {
        0 => (0, LINES),
        _ => (0x1000, LINES - usize::from(first.v >> 12) % LINES),
    };
    let mut word = first.word();
    let rest = lines[1..].iter().take(most - 1).take_while(|line| {
        word += step;
        matches!(line, Line::Noted(note) if note.word() == word)
    });
    1 + rest.count()
}
