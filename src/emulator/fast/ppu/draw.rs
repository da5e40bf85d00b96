//! Drawing, by whole lines and, in lines that a register write split, by dots.

use super::beam::right_of;
use super::sprites::{SPRITES_PER_LINE, SpriteRow};
use super::{Ppu, mask};
use crate::emulator::engine::FRAME_WIDTH;

/// Tiles that a line touches when it starts within one.
const TILES: usize = FRAME_WIDTH / 8 + 1;
const BEHIND: u8 = 0x20;

/// The eight sprite units, loaded for a line.
#[derive(Default)]
pub(super) struct Units {
    rows: [SpriteRow; SPRITES_PER_LINE],
    used: usize,
}

impl Units {
    pub(super) fn clear(&mut self) {
        self.used = 0;
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
const SPREAD: [u64; 256] = {
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
const EACH_BYTE: u64 = 0x0101_0101_0101_0101;

impl Ppu {
    fn colours(&self) -> [u8; 32] {
        self.palette.colours(if self.beam.mask & mask::GREY == 0 { 0x3F } else { 0x30 })
    }

    fn emphasise(&mut self, line: u32) {
        self.frame.emphasis[line as usize] = self.beam.mask >> 5;
    }

    fn row(&mut self, line: u32) -> &mut [u8] {
        let start = line as usize * FRAME_WIDTH;
        &mut self.frame.pixels[start..start + FRAME_WIDTH]
    }

    /// The colour that is shown while rendering is off: the backdrop. A console shows the palette entry that `v`
    /// points at; FCEUmm does not, and games that write palettes in mid-picture shall look as there.
    fn idle_colour(&self) -> u8 {
        let and = if self.beam.mask & mask::GREY == 0 { 0x3F } else { 0x30 };
        self.palette.read(0x3F00) & and
    }

    /// A line without rendering.
    pub(super) fn draw_backdrop(&mut self, line: u32) {
        let colour = self.idle_colour();
        self.row(line).fill(colour);
        self.emphasise(line);
    }

    /// Fetches the sprites of `line`: the first eight of OAM that touch it.
    pub(super) fn load_units(&mut self, line: u32) {
        self.units.used = 0;
        for n in 0..64 {
            if self.touches(self.oam[4 * n], line) {
                self.units.rows[self.units.used] = self.sprite_row(n, line);
                self.units.used += 1;
                if self.units.used == SPRITES_PER_LINE {
                    break;
                }
            }
        }
    }

    /// A line in which no register changes.
    pub(super) fn draw_line(&mut self, line: u32) {
        let colours = self.colours();
        let background = self.background_line();
        let sprites = self.beam.mask & mask::SPRITES != 0;
        let left = if self.beam.mask & mask::SPRITES_LEFT == 0 { 8 } else { 0 };
        let start = line as usize * FRAME_WIDTH;
        let row = &mut self.frame.pixels[start..start + FRAME_WIDTH];
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
            self.colours()[usize::from(pixel)]
        } else {
            self.idle_colour()
        };
        self.row(line)[x as usize] = colour;
        if x as usize == FRAME_WIDTH - 1 {
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
