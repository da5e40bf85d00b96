//! The beam: scroll counters and background fetches (nesdev wiki, "PPU scrolling", "PPU rendering").
//!
//! While rendering, `v` walks over the name tables as the beam walks over the screen: a tile right every 8 dots, a
//! row down at dot 256, back to the left (from `t`) at dot 257, back to the top in the pre-render line. The first
//! two tiles of a line are fetched at the end of the line before.
//!
//! Whole lines are passed at once. That needs the two tiles fetched ahead to be what `v` says (`ahead_is_plain`);
//! where a register was touched in between, the line goes by dots, with shift registers as the hardware has them.

mod passing;

use super::draw::{EACH_BYTE, SPREAD};
use super::memory::VideoMemory;
use super::{ctrl, mask};
use crate::emulator::nes::timing::{POST_RENDER_LINE, PRE_RENDER_LINE};

/// The bits of `v` and `t` that hold X: coarse X and the horizontal name table.
const X_BITS: u16 = 0x041F;
const Y_BITS: u16 = 0x7BE0;

/// The dot at which the last of a line's own fetches ends, and the row's address goes down.
const LAST_FETCH: u32 = 256;

/// The dot at which the address goes back to the left, and the next line's sprites are fetched.
const BACK_TO_LEFT: u32 = 257;

/// The dots at which the next line's first two tiles are fetched.
const FETCH_AHEAD: u32 = 321;
const LAST_FETCH_AHEAD: u32 = 336;

/// A tile's row: two bit planes and the palette, as the pixels' bits 0, 1, and 2-3.
#[derive(Clone, Copy, Default)]
pub(super) struct TileRow {
    pub low: u8,
    pub high: u8,
    pub palette: u8,
}

/// Everything that the beam needs to go on.
#[derive(Clone, Copy, Default)]
pub(super) struct Beam {
    pub v: u16,
    pub t: u16,
    pub fine_x: u8,
    pub ctrl: u8,
    pub mask: u8,
    /// Shift registers: pattern planes and palette bits, the left pixel in bit 15.
    planes: [u16; 4],
    /// What the current fetches have got so far.
    name: u8,
    fetched: TileRow,
    /// The two tiles ahead can be fetched again from `v` with the same result: the shift registers need not be
    /// filled to be right.
    ahead_is_plain: bool,
}

impl Beam {
    pub(super) fn reset(&mut self) {
        *self = Self { v: self.v, ..Self::default() };
    }

    /// Between two frames nothing of the line is kept.
    pub(super) fn forget_line(&mut self) {
        self.planes = [0; 4];
        self.name = 0;
        self.fetched = TileRow::default();
        self.ahead_is_plain = false;
    }

    pub(super) fn rendering(&self) -> bool {
        self.mask & mask::RENDERING != 0
    }

    /// One tile to the right, into the next name table after 32.
    #[inline]
    pub(super) fn next_tile(&mut self) {
        self.v = right_of(self.v);
    }

    /// One row down; after row 239 the next name table, after row 255 the same one again.
    pub(super) fn next_row(&mut self) {
        if self.v & 0x7000 != 0x7000 {
            self.v += 0x1000;
            return;
        }
        self.v &= 0x0FFF;
        match self.v >> 5 & 0x1F {
            29 => self.v = self.v & !0x03E0 ^ 0x0800,
            31 => self.v &= !0x03E0,
            _ => self.v += 0x0020,
        }
    }

    /// So many rows down, 240 at most.
    fn next_rows(&mut self, rows: u32) {
        // Coarse and fine Y as one number.
        let y = u32::from(self.v >> 2 & 0xF8 | self.v >> 12);
        let wrap = if y < POST_RENDER_LINE { POST_RENDER_LINE } else { 256 };
        let mut to = y + rows;
        if to >= wrap {
            to -= wrap;
            self.v ^= if wrap == POST_RENDER_LINE { 0x0800 } else { 0 };
        }
        self.v = self.v & !0x73E0 | (to as u16 & 7) << 12 | (to as u16 & 0xF8) << 2;
    }

    fn back_to_left(&mut self) {
        self.v = self.v & !X_BITS | self.t & X_BITS;
    }

    /// The address in `v` of a plain line's first tile: `v` at the line's start is two tiles ahead.
    pub(super) fn first_tile(&self) -> u16 {
        left_of(left_of(self.v))
    }

    /// From a plain line's start to the next.
    fn pass_line(&mut self) {
        self.pass_lines(1);
    }

    /// From a plain line's start over so many lines.
    fn pass_lines(&mut self, lines: u32) {
        self.next_rows(lines);
        self.back_to_left();
        self.v = right_of(right_of(self.v));
        self.ahead_is_plain = true;
    }

    /// From the start of the pre-render line to line 0.
    fn pass_pre_render(&mut self) {
        self.v = self.t & (X_BITS | Y_BITS);
        self.v = right_of(right_of(self.v));
        self.ahead_is_plain = true;
    }

    /// The row of the tile that `v` addresses.
    #[inline(always)]
    pub(super) fn tile_row(&self, memory: &VideoMemory, v: u16) -> TileRow {
        let pattern = self.pattern_address(memory.name(0x2000 | v & 0x0FFF), v);
        let [low, high] = memory.pattern_row(pattern);
        TileRow { low, high, palette: palette_bits(memory, v) }
    }

    #[inline(always)]
    fn pattern_address(&self, name: u8, v: u16) -> u16 {
        let table = u16::from(self.ctrl & ctrl::BACKGROUND_TABLE) << 8;
        table | u16::from(name) << 4 | v >> 12
    }

    /// Fills the shift registers at the start of a plain line.
    fn fill(&mut self, memory: &VideoMemory) {
        let first = self.first_tile();
        for v in [first, right_of(first)] {
            self.planes = self.planes.map(|plane| plane << 8);
            self.load(self.tile_row(memory, v));
        }
    }

    fn load(&mut self, row: TileRow) {
        let spread = |bit: u8| if row.palette & bit == 0 { 0 } else { 0x00FF };
        let loaded = [u16::from(row.low), u16::from(row.high), spread(1), spread(2)];
        for (plane, low) in self.planes.iter_mut().zip(loaded) {
            *plane = *plane & 0xFF00 | low;
        }
    }

    /// The background's pixel under the beam, 0-15; 0 is transparent.
    fn background(&self, x: u32) -> u8 {
        if !self.shows_background(x) {
            return 0;
        }
        let pixel = (self.planes.iter().enumerate())
            .fold(0, |pixel, (bit, plane)| pixel | (plane >> (15 - self.fine_x) & 1) << bit);
        if pixel & 3 == 0 { 0 } else { pixel as u8 }
    }

    fn shows_background(&self, x: u32) -> bool {
        let left = if x < 8 { mask::BACKGROUND_LEFT } else { 0 };
        let needs = mask::BACKGROUND | left;
        self.mask & needs == needs
    }

    /// The pixels under the beam in the eight dots of a tile's fetches; the first is at `x`.
    fn background_of_tile(&self, x: u32) -> [u8; 8] {
        if !self.shows_background(x) {
            return [0; 8];
        }
        // Bit 15 of a plane is the left pixel with fine X 0.
        let [low, high, upper, highest] = self.planes.map(|plane| SPREAD[usize::from((plane << self.fine_x) >> 8)]);
        let pattern = low | high << 1;
        let opaque = ((low | high) & EACH_BYTE) * 0x0F;
        ((pattern | upper << 2 | highest << 3) & opaque).to_le_bytes()
    }

    /// Shift registers and fetches as they are when a tile's fetches have just ended.
    fn fetch_again(&mut self, memory: &VideoMemory) {
        let last = left_of(self.v);
        self.name = memory.name(0x2000 | last & 0x0FFF);
        self.fetched = self.tile_row(memory, last);
        self.fill(memory);
    }

    /// From the start of a plain line over whole tiles to the dot that is given, which is not behind `to`.
    fn pass_tiles(&mut self, to: u32, memory: &VideoMemory) -> u32 {
        let tiles = (to.min(LAST_FETCH) - 1) / 8;
        if tiles == 0 {
            self.fill(memory);
        } else {
            (0..tiles).for_each(|_| self.next_tile());
            self.fetch_again(memory);
        }
        8 * tiles + 1
    }

    /// From `dot`, at most `BACK_TO_LEFT`, of a visible line to its end, in which nothing changes.
    fn pass_rest(&mut self, dot: u32, memory: &VideoMemory) {
        if !self.rendering() {
            return;
        }
        // Tiles whose fetches end at or behind this dot.
        let tiles = LAST_FETCH / 8 - dot.saturating_sub(1) / 8;
        (0..tiles).for_each(|_| self.next_tile());
        if dot <= LAST_FETCH {
            self.next_row();
        }
        self.back_to_left();
        self.v = right_of(right_of(self.v));
        self.fetch_again(memory);
        self.ahead_is_plain = true;
    }

    /// Passes the eight dots in which a tile is fetched, from the first one on, while rendering.
    fn pass_tile(&mut self, memory: &VideoMemory) {
        self.name = memory.name(0x2000 | self.v & 0x0FFF);
        self.fetched = self.tile_row(memory, self.v);
        self.planes = self.planes.map(|plane| plane << 8);
        self.load(self.fetched);
        self.next_tile();
    }

    /// Passes the dots from `dot` to `end` of a visible line, where nobody asks any more what the background's pixels are.
    fn pass_address(&mut self, dot: u32, end: u32) {
        if !self.rendering() {
            return;
        }
        // Tiles whose fetches end before a dot.
        let tiles = |dot: u32| dot.saturating_sub(1).min(LAST_FETCH) as u16 / 8;
        self.v = right_by(self.v, tiles(end) - tiles(dot));
        let passed = |at: u32| dot <= at && at < end;
        if passed(LAST_FETCH) {
            self.next_row();
        }
        if passed(BACK_TO_LEFT) {
            self.back_to_left();
        }
        self.ahead_is_plain |= passed(FETCH_AHEAD);
        let ahead = u16::from(passed(FETCH_AHEAD + 7)) + u16::from(passed(LAST_FETCH_AHEAD));
        self.v = right_by(self.v, ahead);
    }

    /// Whether `pass_behind_picture` can pass more than this dot of a visible line, which is behind `BACK_TO_LEFT`.
    fn passes_quickly(&self, dot: u32, end: u32) -> bool {
        !matches!(dot, FETCH_AHEAD..=LAST_FETCH_AHEAD) || dot % 8 == 1 && dot + 8 <= end && self.rendering()
    }

    /// From a dot of a visible line that is behind `BACK_TO_LEFT` to `end` at most: what has no effect on the background, or
    /// one of the two tiles that are fetched ahead.
    fn pass_behind_picture(&mut self, dot: u32, end: u32, memory: &VideoMemory) -> u32 {
        match dot {
            ..FETCH_AHEAD => end.min(FETCH_AHEAD),
            FETCH_AHEAD..=LAST_FETCH_AHEAD => {
                self.pass_tile(memory);
                self.ahead_is_plain |= dot == FETCH_AHEAD;
                dot + 8
            }
            _ => end,
        }
    }

    /// Passes one dot of a visible or the pre-render line.
    fn pass_dot(&mut self, line: u32, dot: u32, memory: &VideoMemory) {
        if !self.rendering() {
            return;
        }
        if matches!(dot, 1..=LAST_FETCH | FETCH_AHEAD..=LAST_FETCH_AHEAD) {
            self.planes = self.planes.map(|plane| plane << 1);
            match dot & 7 {
                2 => self.name = memory.name(0x2000 | self.v & 0x0FFF),
                4 => self.fetched.palette = palette_bits(memory, self.v),
                6 => self.fetched.low = memory.pattern(self.pattern_address(self.name, self.v)),
                0 => {
                    self.fetched.high = memory.pattern(self.pattern_address(self.name, self.v) + 8);
                    self.load(self.fetched);
                    self.next_tile();
                }
                _ => {}
            }
        }
        match dot {
            LAST_FETCH => self.next_row(),
            BACK_TO_LEFT => self.back_to_left(),
            280..=304 if line == PRE_RENDER_LINE => self.v = self.v & !Y_BITS | self.t & Y_BITS,
            FETCH_AHEAD => self.ahead_is_plain = true,
            _ => {}
        }
    }
}

/// The address of the tile to the right.
#[inline(always)]
pub(super) fn right_of(v: u16) -> u16 {
    if v & 0x1F == 0x1F { v & !0x1F ^ 0x0400 } else { v + 1 }
}

/// The address so many tiles to the right, 64 at most.
fn right_by(v: u16, tiles: u16) -> u16 {
    let x = (v >> 5 & 0x20 | v & 0x1F) + tiles;
    v & !X_BITS | (x & 0x20) << 5 | x & 0x1F
}

fn left_of(v: u16) -> u16 {
    if v & 0x1F == 0 { (v | 0x1F) ^ 0x0400 } else { v - 1 }
}

/// The two palette bits of the tile that `v` addresses: an attribute byte covers 4 by 4 tiles.
#[inline(always)]
fn palette_bits(memory: &VideoMemory, v: u16) -> u8 {
    let byte = memory.name(0x23C0 | v & 0x0C00 | v >> 4 & 0x38 | v >> 2 & 0x07);
    byte >> (v >> 4 & 4 | v & 2) & 3
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Beam, VideoMemory, mask};
    use crate::emulator::cart::Cartridge;
    use crate::emulator::nes::timing::DOTS_PER_LINE;

    #[test]
    fn dots_passed_by_address_are_as_many_passed_one_by_one() {
        let mut file = b"NES\x1A\x01\x01\x00\x00\0\0\0\0\0\0\0\0".to_vec();
        file.resize(16 + 0x4000 + 0x2000, 0);
        let memory = VideoMemory::new(&Arc::new(Cartridge::parse(&file).expect("the file is in order")));
        for (v, t) in [(0x0000, 0x0000), (0x73BE, 0x041F), (0x7FFF, 0x0C0A), (0x2C1D, 0x7BE0)] {
            for from in 0..DOTS_PER_LINE {
                let start = Beam { v, t, mask: mask::BACKGROUND, ..Beam::default() };
                let mut one_by_one = start;
                for end in from + 1..=DOTS_PER_LINE {
                    one_by_one.pass_dot(20, end - 1, &memory);
                    let mut at_once = start;
                    at_once.pass_address(from, end);
                    let found = (at_once.v, at_once.ahead_is_plain);
                    assert_eq!(found, (one_by_one.v, one_by_one.ahead_is_plain), "dots {from} to {end} from {v:04X}");
                }
            }
        }
    }

    #[test]
    fn many_rows_down_are_as_many_times_one() {
        for v in (0..0x8000_u16).step_by(0x20) {
            let mut one_by_one = Beam { v: v | 0x13, ..Beam::default() };
            for rows in 0..=240 {
                let mut at_once = Beam { v: v | 0x13, ..Beam::default() };
                at_once.next_rows(rows);
                assert_eq!(at_once.v, one_by_one.v, "{rows} rows from {v:04X}");
                one_by_one.next_row();
            }
        }
    }
}
