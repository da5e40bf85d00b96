//! The beam: scroll counters and background fetches (nesdev wiki, "PPU scrolling", "PPU rendering").
//!
//! While rendering, `v` walks over the name tables as the beam walks over the screen: a tile right every 8 dots, a
//! row down at dot 256, back to the left (from `t`) at dot 257, back to the top in the pre-render line. The first
//! two tiles of a line are fetched at the end of the line before.
//!
//! Whole lines are passed at once. That needs the two tiles fetched ahead to be what `v` says (`ahead_is_plain`);
//! where a register was touched in between, the line goes by dots, with shift registers as the hardware has them.

use super::draw::{EACH_BYTE, SPREAD};
use super::memory::VideoMemory;
use super::timeline::access_dot;
use super::{Ppu, ctrl, mask};
use crate::emulator::nes::timing::{DOTS_PER_LINE, POST_RENDER_LINE, PRE_RENDER_LINE};

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

fn left_of(v: u16) -> u16 {
    if v & 0x1F == 0 { (v | 0x1F) ^ 0x0400 } else { v - 1 }
}

/// The two palette bits of the tile that `v` addresses: an attribute byte covers 4 by 4 tiles.
#[inline(always)]
fn palette_bits(memory: &VideoMemory, v: u16) -> u8 {
    let byte = memory.name(0x23C0 | v & 0x0C00 | v >> 4 & 0x38 | v >> 2 & 0x07);
    byte >> (v >> 4 & 4 | v & 2) & 3
}

impl Ppu {
    /// What the beam depends on has changed: what was foretold is void, and tiles ahead are what they are.
    pub(super) fn beam_changed(&mut self) {
        self.beam.ahead_is_plain = false;
        if self.line != POST_RENDER_LINE {
            self.hit_at = super::UNKNOWN;
        }
    }

    /// Whether the beam is using memory and counters now, after `sync`.
    pub(super) fn beam_is_busy(&self) -> bool {
        self.rendering() && (self.line < POST_RENDER_LINE || self.line == PRE_RENDER_LINE)
    }

    /// Whether anything is rendered from now, after `sync`, to `dot`.
    pub(super) fn renders_before(&self, dot: u64) -> bool {
        self.beam_is_busy() || dot >= self.frame_start + u64::from(PRE_RENDER_LINE * DOTS_PER_LINE)
    }

    /// Lets the beam pass all dots before `to`, which lies in this frame or at its end.
    #[inline]
    pub(super) fn catch_up(&mut self, to: u64) {
        // Most writes come in vblank.
        if self.line == POST_RENDER_LINE && to < self.frame_start + u64::from(PRE_RENDER_LINE * DOTS_PER_LINE) {
            self.done = self.done.max(to);
        } else {
            self.pass_beam(to);
        }
    }

    fn pass_beam(&mut self, to: u64) {
        while self.done < to {
            match self.line {
                0..POST_RENDER_LINE => self.pass_visible(to),
                PRE_RENDER_LINE => self.pass_pre_render(to),
                _ => self.pass_vblank(to),
            }
        }
    }

    /// Lines 240-260, which count as one here.
    fn pass_vblank(&mut self, to: u64) {
        let pre_render = self.frame_start + u64::from(PRE_RENDER_LINE * DOTS_PER_LINE);
        self.done = to.min(pre_render);
        self.line = POST_RENDER_LINE;
        if self.done == pre_render {
            self.line = PRE_RENDER_LINE;
            self.line_start = pre_render;
        }
    }

    fn line_end(&self) -> u64 {
        self.line_start + u64::from(DOTS_PER_LINE)
    }

    fn pass_visible(&mut self, to: u64) {
        let end = self.line_end();
        let whole = self.done == self.line_start && to >= end;
        if whole && self.beam_jumps && !self.drawing && (self.beam.ahead_is_plain || !self.rendering()) {
            return self.pass_unseen_lines(to);
        }
        if whole && self.beam_jumps && self.notes_lines() && self.rendering() && self.beam.ahead_is_plain {
            return self.pass_noted_lines(to);
        }
        if whole && !self.rendering() {
            self.show_line(self.line);
            self.units.clear();
        } else if whole && self.beam.ahead_is_plain {
            self.show_line(self.line);
            self.fetch_units_of(self.line + 1);
            self.oam_addr = 0;
            self.beam.pass_line();
        } else {
            self.pass_dots(to.min(end));
            if self.done < end {
                return;
            }
        }
        self.done = end;
        self.line_start = end;
        self.line += 1;
    }

    /// All whole lines before `to`, which nobody sees and in which nothing changes.
    fn pass_unseen_lines(&mut self, to: u64) {
        let whole = (to - self.line_start) / u64::from(DOTS_PER_LINE);
        let lines = (whole as u32).min(POST_RENDER_LINE - self.line);
        if self.rendering() {
            self.beam.pass_lines(lines);
            self.oam_addr = 0;
        }
        self.units.clear();
        self.line += lines;
        self.line_start += u64::from(lines * DOTS_PER_LINE);
        self.done = self.line_start;
    }

    /// All whole lines before `to`, in which nothing changes: they are written down.
    fn pass_noted_lines(&mut self, to: u64) {
        let whole = (to - self.line_start) / u64::from(DOTS_PER_LINE);
        let end = POST_RENDER_LINE.min(self.line + whole as u32);
        let mut note = self.note();
        if let Some(canvas) = &mut self.canvas {
            for line in self.line..end {
                canvas.note(line as usize, note);
                self.beam.next_row();
                self.beam.back_to_left();
                (note.v, note.sprites) = (self.beam.v, Some(self.beam.ctrl));
            }
        }
        self.beam.v = right_of(right_of(self.beam.v));
        self.line_start += u64::from((end - self.line) * DOTS_PER_LINE);
        self.line = end;
        self.fetch_units_of(end);
        self.oam_addr = 0;
        self.done = self.line_start;
    }

    fn pass_pre_render(&mut self, to: u64) {
        // An odd frame lacks the last dot, in which nothing happens.
        let end = self.line_end();
        if self.done == self.line_start && to + 1 >= end {
            if self.rendering() {
                self.beam.pass_pre_render();
                self.oam_addr = 0;
            }
            self.units.clear();
            self.done = to;
        } else {
            self.pass_dots(to.min(end));
        }
    }

    /// Passes dots of one line one by one, or over whole tiles: up to the first write, and where no more pixels are to be
    /// drawn.
    fn pass_dots(&mut self, to: u64) {
        if self.units.are_for(self.line) {
            self.fill_units();
        }
        let mut dot = (self.done - self.line_start) as u32;
        let end = (to - self.line_start) as u32;
        let jumps = self.beam_jumps && self.line < POST_RENDER_LINE;
        if dot == 0 && self.rendering() && self.beam.ahead_is_plain {
            if jumps {
                if self.drawing && end > 1 {
                    // As if nothing changed; what comes after the write is drawn over it.
                    self.draw_line(self.line);
                }
                dot = self.beam.pass_tiles(end, &self.memory);
            } else {
                self.beam.fill(&self.memory);
            }
        }
        while dot < end {
            if jumps && end == DOTS_PER_LINE && dot <= BACK_TO_LEFT && (!self.drawing || dot > LAST_FETCH) {
                self.beam.pass_rest(dot, &self.memory);
                self.pass_sprite_fetches();
                break;
            }
            if jumps && self.rendering() && dot < LAST_FETCH && dot % 8 == 1 && dot + 8 <= end {
                if self.drawing {
                    self.draw_dots(self.line, dot - 1, self.beam.background_of_tile(dot - 1));
                }
                self.beam.pass_tile(&self.memory);
                dot += 8;
                if dot > LAST_FETCH {
                    self.beam.next_row();
                }
                continue;
            }
            if jumps && dot > BACK_TO_LEFT && self.beam.passes_quickly(dot, end) {
                dot = self.beam.pass_behind_picture(dot, end, &self.memory);
                continue;
            }
            if self.drawing && self.line < POST_RENDER_LINE && matches!(dot, 1..=256) {
                self.draw_dot(self.line, dot - 1, self.beam.background(dot - 1));
            }
            self.beam.pass_dot(self.line, dot, &self.memory);
            if dot == BACK_TO_LEFT {
                self.pass_sprite_fetches();
            }
            dot += 1;
        }
        self.done = to;
    }

    /// Dots 257-320: sprites of the next line.
    fn pass_sprite_fetches(&mut self) {
        if !self.rendering() {
            self.units.clear();
            return;
        }
        self.oam_addr = 0;
        self.fetch_units_of(self.line + 1);
    }

    /// Foretells from here: the first dot, of those before line 240, at which sprite 0 meets the background.
    pub(super) fn foretell_hit(&self) -> u64 {
        let mut beam = self.beam;
        let (mut line, mut line_start, mut done) = (self.line, self.line_start, self.done);
        // Sprite 0 is in no line before this one.
        let first = u32::from(self.oam[0]) + 1;
        while line < POST_RENDER_LINE {
            let plain = done == line_start && beam.ahead_is_plain;
            if plain && line < first && self.beam_jumps {
                let lines = first.min(POST_RENDER_LINE) - line;
                beam.pass_lines(lines);
                line += lines;
                line_start += u64::from(lines * DOTS_PER_LINE);
                done = line_start;
                continue;
            }
            if plain {
                if let Some(x) = self.sprite_zero(line).meets(&beam, &self.memory) {
                    return line_start + u64::from(x) + 1;
                }
                beam.pass_line();
            } else {
                // A line in which something was changed, to its end.
                let sprite = self.sprite_zero(line);
                for dot in (done - line_start) as u32..DOTS_PER_LINE {
                    if matches!(dot, 1..=255) && sprite.covers(dot - 1, &beam) && beam.background(dot - 1) != 0 {
                        return line_start + u64::from(dot);
                    }
                    beam.pass_dot(line, dot, &self.memory);
                }
            }
            line += 1;
            line_start += u64::from(DOTS_PER_LINE);
            done = line_start;
            if line > u32::from(self.oam[0]) + 17 {
                break;
            }
        }
        super::NEVER
    }

    /// Brings the hit flag up to `dot`.
    #[inline]
    pub(super) fn settle_hit(&mut self, dot: u64) {
        if self.hit || dot < self.frame_start + u64::from(DOTS_PER_LINE) {
            return;
        }
        if self.hit_at == super::UNKNOWN {
            self.hit_at = self.next_hit();
        }
        self.hit = self.hit_at <= dot;
    }

    fn next_hit(&self) -> u64 {
        let both = mask::RENDERING;
        let possible = self.beam.mask & both == both && self.line < POST_RENDER_LINE;
        if possible { self.foretell_hit() } else { super::NEVER }
    }

    /// What $2004 gives while the beam is busy: sprite evaluation has the bus.
    pub(super) fn oam_bus(&self) -> Option<u8> {
        let dot = self.done - self.line_start;
        (self.beam_is_busy() && (1..=64).contains(&dot)).then_some(0xFF)
    }

    /// The state's position is set: which line the beam is in.
    pub(super) fn place_beam(&mut self, cycle: u64) {
        self.done = access_dot(cycle);
        if (POST_RENDER_LINE..PRE_RENDER_LINE).contains(&self.line) {
            self.line_start = self.frame_start + u64::from(POST_RENDER_LINE * DOTS_PER_LINE);
            self.line = POST_RENDER_LINE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Beam;

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
