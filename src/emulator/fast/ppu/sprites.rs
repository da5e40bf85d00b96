//! Sprite evaluation as far as the flags need it: sprite 0 hit and overflow (nesdev wiki, "PPU sprite evaluation",
//! "PPU OAM").

use super::beam::{Beam, right_of};
use super::memory::VideoMemory;
use super::timeline::access_dot;
use super::{NEVER, Ppu, UNKNOWN, ctrl, mask};
use crate::emulator::nes::timing::{DOTS_PER_LINE, POST_RENDER_LINE};

/// Sprites that a line can have.
pub(in super::super) const SPRITES_PER_LINE: usize = 8;
/// The dot at which evaluation looks at the first sprite.
pub(super) const EVALUATION_DOT: u64 = 65;
/// A sprite that is in the line takes eight dots of evaluation, another two.
const COPY_DOTS: u64 = 8;
const LOOK_DOTS: u64 = 2;

/// Lines that a sprite's Y can name.
const LINES: usize = 256;

pub(in super::super) const FLIP_X: u8 = 0x40;
pub(in super::super) const FLIP_Y: u8 = 0x80;

/// A sprite's row in a line, its left pixel in bit 7 of both planes.
#[derive(Clone, Copy, Default)]
pub(in super::super) struct SpriteRow {
    pub x: u8,
    pub low: u8,
    pub high: u8,
    pub attributes: u8,
}

/// Sprite 0 in a line: nowhere, or its opaque pixels.
#[derive(Clone, Copy, Default)]
pub(super) struct SpriteZero {
    x: u8,
    opaque: u8,
}

impl SpriteZero {
    /// The pixels that may hit: not in a clipped left column, not in column 255.
    fn able(self, beam: &Beam) -> u8 {
        let both_left = mask::BACKGROUND_LEFT | mask::SPRITES_LEFT;
        let mut able = self.opaque;
        if self.x < 8 && beam.mask & both_left != both_left {
            able &= 0xFF_u8.checked_shr(u32::from(8 - self.x)).unwrap_or(0);
        }
        if self.x >= 248 {
            able &= !(0xFF >> (255 - self.x));
        }
        able
    }

    /// Whether it has an opaque pixel at column `x`.
    pub(super) fn covers(self, x: u32, beam: &Beam) -> bool {
        let into = x.wrapping_sub(u32::from(self.x));
        into < 8 && self.able(beam) & (0x80 >> into) != 0
    }

    /// The first column of a plain line in which it meets the background.
    pub(super) fn meets(self, beam: &Beam, memory: &VideoMemory) -> Option<u8> {
        let able = self.able(beam);
        if able == 0 {
            return None;
        }
        let across = u16::from(self.x) + u16::from(beam.fine_x);
        let mut v = beam.first_tile();
        for _ in 0..across / 8 {
            v = right_of(v);
        }
        let opaque = |v: u16| {
            let row = beam.tile_row(memory, v);
            u16::from(row.low | row.high)
        };
        let background = opaque(v) << 8 | opaque(right_of(v));
        let met = (background << (across % 8) >> 8) as u8 & able;
        (met != 0).then(|| self.x + met.leading_zeros() as u8)
    }
}

/// Lines that a sprite has under this $2000.
pub(in super::super) fn sprite_height(ctrl: u8) -> u32 {
    if ctrl & ctrl::TALL_SPRITES == 0 { 8 } else { 16 }
}

/// Whether a sprite with this Y and height touches `line` (which is one below its Y at first).
pub(super) fn touches(y: u8, line: u32, height: u32) -> bool {
    line >= 1 && (line - 1).wrapping_sub(u32::from(y)) < height
}

/// The row that a sprite (its four bytes of OAM) has in `line`, which it must touch, under this $2000.
pub(in super::super) fn sprite_row(memory: &VideoMemory, sprite: [u8; 4], line: u32, ctrl: u8) -> SpriteRow {
    let [y, tile, attributes, x] = sprite;
    let height = sprite_height(ctrl);
    let down = line - 1 - u32::from(y);
    let row = if attributes & FLIP_Y == 0 { down } else { height - 1 - down } as u16;
    let pattern = if height == 8 {
        u16::from(ctrl & ctrl::SPRITE_TABLE) << 9 | u16::from(tile) << 4 | row
    } else {
        u16::from(tile & 1) << 12 | u16::from(tile & 0xFE) << 4 | (row & 8) << 1 | row & 7
    };
    let [low, high] = memory.pattern_row(pattern).map(|plane| match attributes & FLIP_X {
        0 => plane,
        _ => plane.reverse_bits(),
    });
    SpriteRow { x, low, high, attributes }
}

/// To each line's count that of the line so many before.
#[inline(always)]
fn with_lines_before<const BEFORE: usize>(counts: &[u8; LINES]) -> [u8; LINES] {
    let mut sums = *counts;
    for (sum, before) in sums[BEFORE..].iter_mut().zip(counts) {
        *sum += before;
    }
    sums
}

impl Ppu {
    fn sprite_height(&self) -> u32 {
        sprite_height(self.beam.ctrl)
    }

    /// The four bytes of sprite `n`.
    pub(super) fn sprite(&self, n: usize) -> [u8; 4] {
        std::array::from_fn(|part| self.oam[4 * n + part])
    }

    /// Whether a sprite with this Y touches `line`.
    pub(super) fn touches(&self, y: u8, line: u32) -> bool {
        touches(y, line, self.sprite_height())
    }

    /// Sprite 0 in `line`.
    pub(super) fn sprite_zero(&self, line: u32) -> SpriteZero {
        if !self.touches(self.oam[0], line) {
            return SpriteZero::default();
        }
        let row = sprite_row(&self.memory, self.sprite(0), line, self.beam.ctrl);
        SpriteZero { x: row.x, opaque: row.low | row.high }
    }

    /// Before sprites, their size or rendering change in `cycle`.
    pub(super) fn sprites_change(&mut self, cycle: u64) {
        let dot = access_dot(cycle);
        self.settle_overflow(dot);
        if self.line != POST_RENDER_LINE {
            self.overflow_at = UNKNOWN;
            self.overflow_from = dot + 1;
        }
    }

    /// Brings the overflow flag up to `dot`.
    #[inline]
    pub(super) fn settle_overflow(&mut self, dot: u64) {
        if self.overflow || dot < self.frame_start {
            return;
        }
        if self.overflow_at == UNKNOWN {
            self.overflow_at = if self.rendering() { self.foretell_overflow() } else { NEVER };
        }
        self.overflow = self.overflow_at <= dot;
    }

    /// The first dot from `overflow_from` on at which evaluation finds a ninth sprite.
    fn foretell_overflow(&self) -> u64 {
        let crowded = if self.beam_jumps { self.sprites_evaluated() } else { [SPRITES_PER_LINE as u8; LINES] };
        if crowded.iter().fold(0, |most, &count| most.max(count)) < SPRITES_PER_LINE as u8 {
            return NEVER;
        }
        for (line, count) in (0..POST_RENDER_LINE).zip(crowded) {
            if usize::from(count) < SPRITES_PER_LINE {
                continue;
            }
            let line_start = self.frame_start + u64::from(line * DOTS_PER_LINE);
            if let Some(dot) = self.evaluation_overflow(line)
                && line_start + dot >= self.overflow_from
            {
                return line_start + dot;
            }
        }
        NEVER
    }

    /// How many sprites evaluation finds in each line; no line overflows with fewer than eight. The sprites that begin in a
    /// line, and then the sums of those in two, four, eight and sixteen lines that end with it.
    fn sprites_evaluated(&self) -> [u8; LINES] {
        let mut begin = [0; LINES];
        for sprite in self.oam.chunks_exact(4) {
            // Games put sprites that they do not use below the picture.
            if u32::from(sprite[0]) < POST_RENDER_LINE {
                begin[usize::from(sprite[0])] += 1;
            }
        }
        let eight = with_lines_before::<4>(&with_lines_before::<2>(&with_lines_before::<1>(&begin)));
        if self.sprite_height() == 8 { eight } else { with_lines_before::<8>(&eight) }
    }

    /// The dot of `line` at which its evaluation for the next line sets the flag. After eight sprites the hardware
    /// forgets to go back to the Y byte when a sprite is not in the line, and walks through OAM diagonally.
    fn evaluation_overflow(&self, line: u32) -> Option<u64> {
        let in_line = |y: u8| self.touches(y, line + 1);
        let mut dot = EVALUATION_DOT;
        let mut found = 0;
        let mut sprite = 0;
        while sprite < 64 && found < SPRITES_PER_LINE {
            let here = in_line(self.oam[4 * sprite]);
            found += usize::from(here);
            dot += if here { COPY_DOTS } else { LOOK_DOTS };
            sprite += 1;
        }
        (sprite..64).enumerate().find(|&(m, n)| in_line(self.oam[4 * n + m % 4])).map(|(m, _)| {
            // The flag appears in the second dot of the look.
            dot + LOOK_DOTS * m as u64 + 1
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{NEVER, ctrl, mask};
    use super::Ppu;
    use crate::emulator::cart::Cartridge;

    #[test]
    fn overflow_is_foretold_by_counts_as_by_a_look_at_every_line() {
        let mut file = b"NES\x1A\x01\x01\x00\x00\0\0\0\0\0\0\0\0".to_vec();
        file.resize(16 + 0x4000 + 0x2000, 0);
        let mut ppu = Ppu::new(&Arc::new(Cartridge::parse(&file).expect("the file is in order")));
        ppu.beam.mask = mask::SPRITES;
        let mut random = 0x2545_F491_u32;
        let (mut never, mut some) = (0, 0);
        for round in 0..2000 {
            for byte in &mut ppu.oam {
                random ^= random << 13;
                random ^= random >> 17;
                random ^= random << 5;
                // Spread over the picture and below, or near each other.
                *byte = if round & 2 == 0 { random as u8 } else { (random as u8).saturating_sub(8) | 0x81 };
            }
            ppu.beam.ctrl = if round & 1 == 0 { 0 } else { ctrl::TALL_SPRITES };
            ppu.beam_jumps = true;
            let counted = ppu.foretell_overflow();
            ppu.beam_jumps = false;
            assert_eq!(counted, ppu.foretell_overflow(), "round {round}");
            if counted == NEVER { never += 1 } else { some += 1 }
        }
        assert!(never > 100 && some > 100, "{never} without, {some} with overflow");
    }
}
