//! What the beam shows: whole lines are written down in the canvas, to be drawn later (`render`); lines that a register
//! write split are drawn here, by dots. With the log of lines switched off whole lines are drawn here too, pixel by pixel
//! in the plainest way.

use super::beam::right_of;
use super::sprites::{SPRITES_PER_LINE, SpriteRow, sprite_height, sprite_row, touches};
use super::{Ppu, mask};
use crate::emulator::engine::FRAME_WIDTH;
use crate::emulator::fast::render::{Memories, Note};
use crate::emulator::nes::timing::POST_RENDER_LINE;

/// Tiles that a line touches when it starts within one.
const TILES: usize = FRAME_WIDTH / 8 + 1;
/// The attribute bit of sprites behind the background.
pub(in super::super) const BEHIND: u8 = 0x20;

/// The eight sprite units.
#[derive(Clone, Copy, Default)]
pub(super) struct Units {
    rows: [SpriteRow; SPRITES_PER_LINE],
    used: usize,
    /// Sprites were fetched for this line with this $2000, and `rows` are still to be filled. Always from the memories as
    /// they are: before one changes, `fill_units` is called.
    fetched: Option<(u32, u8)>,
}

impl Units {
    pub(super) fn clear(&mut self) {
        self.used = 0;
        self.fetched = None;
    }

    /// Whether sprites were fetched for this line and not filled in yet.
    pub(super) fn are_for(&self, line: u32) -> bool {
        self.fetched.is_some_and(|(fetched, _)| fetched == line)
    }

    fn loaded(&self) -> &[SpriteRow] {
        &self.rows[..self.used]
    }
}

impl SpriteRow {
    /// Its pixel at column `x`, 0-3; 0 is transparent.
    fn pixel(self, x: u32) -> u8 {
        let into = x.wrapping_sub(u32::from(self.x));
        if into > 7 {
            return 0;
        }
        self.low >> (7 - into) & 1 | (self.high >> (7 - into) & 1) << 1
    }

    /// The colour of that pixel.
    fn colour(self, pixel: u8) -> u8 {
        0x10 | (self.attributes & 3) << 2 | pixel
    }
}

/// The bits of a plane as bytes of 0 and 1, the left pixel in the lowest byte.
pub(in super::super) const SPREAD: [u64; 256] = {
    let mut spread = [0; 256];
    let mut plane = 0;
    while plane < 256 {
        let mut bit = 0;
        while bit < 8 {
            if plane & 0x80 >> bit != 0 {
                spread[plane] |= 1 << (8 * bit);
            }
            bit += 1;
        }
        plane += 1;
    }
    spread
};
/// One in each byte.
pub(super) const EACH_BYTE: u64 = 0x0101_0101_0101_0101;

impl Ppu {
    /// The memories that pictures are made of.
    pub(in super::super) fn memories(&self) -> Memories<'_> {
        Memories { video: &self.memory, oam: &self.oam, palette: &self.palette, avx2: self.avx2 }
    }

    /// The frame has ended, and with it drawing. `whole` asks for all pixels now: the lines that are only written down
    /// are drawn too.
    pub(in super::super) fn end_picture(&mut self, whole: bool) {
        if whole {
            self.draw_noted();
        }
        self.drawing = false;
        self.draws_from = super::NOBODYS;
    }

    /// Before a memory changes: what is to be drawn from it as it was is drawn.
    #[inline(always)]
    pub(super) fn memories_change(&mut self) {
        if self.drawing {
            self.draw_waiting();
        }
    }

    fn draw_waiting(&mut self) {
        self.fill_units();
        self.draw_noted();
    }

    /// Draws the lines that are only written down.
    fn draw_noted(&mut self) {
        if let Some(mut canvas) = self.canvas.take() {
            canvas.draw_noted(self.memories());
            self.canvas = Some(canvas);
        }
    }

    /// Whether whole lines that pass are only written down.
    pub(super) fn notes_lines(&self) -> bool {
        self.drawing && self.line_log && self.units.used == 0
    }

    /// What a line is made of in which no register changes.
    pub(super) fn note(&self) -> Note {
        let rendering = self.rendering();
        Note {
            v: if rendering { self.beam.first_tile() } else { 0 },
            fine_x: self.beam.fine_x,
            ctrl: self.beam.ctrl,
            mask: self.beam.mask,
            sprites: self.units.fetched.filter(|_| rendering).map(|(_, ctrl)| ctrl),
        }
    }

    /// A line has passed in which no register changed.
    pub(super) fn show_line(&mut self, line: u32) {
        if !self.drawing {
            return;
        }
        let rendering = self.rendering();
        if self.notes_lines() {
            let note = self.note();
            if let Some(canvas) = &mut self.canvas {
                canvas.note(line as usize, note);
            }
        } else if rendering {
            self.fill_units();
            self.draw_line(line);
        } else {
            let colour = self.idle_colour();
            self.row(line).fill(colour);
            self.emphasise(line);
        }
    }

    fn grey_mask(&self) -> u8 {
        if self.beam.mask & mask::GREY == 0 { 0x3F } else { 0x30 }
    }

    fn emphasise(&mut self, line: u32) {
        let emphasis = self.beam.mask >> 5;
        if let Some(canvas) = &mut self.canvas {
            canvas.frame.emphasis[line as usize] = emphasis;
        }
    }

    /// The pixels of a line; none where nothing is drawn.
    fn row(&mut self, line: u32) -> &mut [u8] {
        self.canvas.as_mut().map_or(&mut [], |canvas| canvas.row(line as usize))
    }

    /// The colour that is shown while rendering is off: the backdrop. A console shows the palette entry that `v`
    /// points at; FCEUmm does not, and games that write palettes in mid-picture shall look as there.
    fn idle_colour(&self) -> u8 {
        self.palette.read(0x3F00) & self.grey_mask()
    }

    /// The sprites of `line` are fetched: the first eight of OAM that touch it.
    pub(super) fn fetch_units_of(&mut self, line: u32) {
        self.units.clear();
        if self.drawing && line < POST_RENDER_LINE {
            self.units.fetched = Some((line, self.beam.ctrl));
        }
    }

    /// Fills the units with the sprites that were fetched.
    pub(super) fn fill_units(&mut self) {
        let Some((line, ctrl)) = self.units.fetched.take() else { return };
        let height = sprite_height(ctrl);
        self.units.used = 0;
        for n in 0..64 {
            let sprite = self.sprite(n);
            if touches(sprite[0], line, height) {
                self.units.rows[self.units.used] = sprite_row(&self.memory, sprite, line, ctrl);
                self.units.used += 1;
                if self.units.used == SPRITES_PER_LINE {
                    break;
                }
            }
        }
    }

    /// Draws a line in which no register changes from its start on.
    pub(super) fn draw_line(&mut self, line: u32) {
        let colours = self.palette.colours(self.grey_mask());
        let background = self.background_line();
        let sprites = self.beam.mask & mask::SPRITES != 0;
        let left = if self.beam.mask & mask::SPRITES_LEFT == 0 { 8 } else { 0 };
        let Some(canvas) = &mut self.canvas else { return };
        let row = canvas.row(line as usize);
        for (out, &pixel) in row.iter_mut().zip(&background) {
            *out = colours[usize::from(pixel & 0x0F)];
        }
        if sprites {
            let mut taken = [false; FRAME_WIDTH];
            for unit in self.units.loaded() {
                let right = (usize::from(unit.x) + 8).min(FRAME_WIDTH);
                for x in usize::from(unit.x).max(left)..right {
                    let pixel = unit.pixel(x as u32);
                    if pixel == 0 || taken[x] {
                        continue;
                    }
                    // The first opaque sprite wins, even where it is behind the background.
                    taken[x] = true;
                    if unit.attributes & BEHIND == 0 || background[x] & 3 == 0 {
                        row[x] = colours[usize::from(unit.colour(pixel))];
                    }
                }
            }
        }
        self.emphasise(line);
    }

    /// The background's pixels of a plain line.
    fn background_line(&self) -> [u8; FRAME_WIDTH] {
        let mut line = [0; FRAME_WIDTH];
        if self.beam.mask & mask::BACKGROUND == 0 {
            return line;
        }
        let mut tiles = [0; 8 * TILES];
        let mut v = self.beam.first_tile();
        for pixels in tiles.chunks_exact_mut(8) {
            let row = self.beam.tile_row(&self.memory, v);
            let planes = SPREAD[usize::from(row.low)] | SPREAD[usize::from(row.high)] << 1;
            let palette = EACH_BYTE * u64::from(row.palette << 2);
            pixels.copy_from_slice(&(planes | palette).to_le_bytes());
            v = right_of(v);
        }
        let fine = usize::from(self.beam.fine_x);
        line.copy_from_slice(&tiles[fine..fine + FRAME_WIDTH]);
        if self.beam.mask & mask::BACKGROUND_LEFT == 0 {
            line[..8].fill(0);
        }
        line
    }

    /// One pixel, with the background's value for it.
    pub(super) fn draw_dot(&mut self, line: u32, x: u32, background: u8) {
        let colour = if self.rendering() {
            let pixel = self.mix(x, background);
            self.palette.colour(pixel) & self.grey_mask()
        } else {
            self.idle_colour()
        };
        self.row(line)[x as usize] = colour;
        if x as usize == FRAME_WIDTH - 1 {
            self.emphasise(line);
        }
    }

    /// Eight pixels while rendering, from column `x`, a tile's left one; the background's values for them.
    pub(super) fn draw_dots(&mut self, line: u32, x: u32, background: [u8; 8]) {
        let near = |unit: &SpriteRow| u32::from(unit.x) < x + 8 && x < u32::from(unit.x) + 8;
        if self.units.loaded().iter().any(near) {
            for (x, pixel) in (x..).zip(background) {
                self.draw_dot(line, x, pixel);
            }
            return;
        }
        let grey_mask = self.grey_mask();
        let colours = background.map(|pixel| self.palette.colour(pixel) & grey_mask);
        self.row(line)[x as usize..][..8].copy_from_slice(&colours);
        if x as usize + 8 == FRAME_WIDTH {
            self.emphasise(line);
        }
    }

    fn mix(&self, x: u32, background: u8) -> u8 {
        let left = if x < 8 { mask::SPRITES_LEFT } else { 0 };
        let needs = mask::SPRITES | left;
        if self.beam.mask & needs != needs {
            return background;
        }
        let front = self.units.loaded().iter().find(|unit| unit.pixel(x) != 0);
        match front {
            Some(unit) if unit.attributes & BEHIND == 0 || background == 0 => unit.colour(unit.pixel(x)),
            _ => background,
        }
    }
}
