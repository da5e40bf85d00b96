//! The background of a strip, and which sprites are in it, with AVX2, where the processor has it. Equal to the portable way to the byte.
//!
//! The only `unsafe` of this room: the call of a function that needs AVX2, which an `Avx2` proves to be there, and loads and
//! stores, each within an array whose length is known.

use super::columns::{About, CELLS, Covered, TileSums};
use super::joined::{Joined, Tiles};
use super::strip::{LINES, ROW, TILES, Tile};
use std::ops::Range;

/// The proof that the processor has AVX2: only `found` makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx2(());

impl Avx2 {
    /// AVX2, if it is `wanted` and there.
    pub fn found(wanted: bool) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        let there = is_x86_feature_detected!("avx2");
        #[cfg(not(target_arch = "x86_64"))]
        let there = false;
        (wanted && there).then_some(Self(()))
    }
}

/// `strip::draw_tiles`, all rows of the tiles.
pub(super) fn draw_tiles(_proof: Avx2, tiles: &[Tile; TILES], pixels: &mut [[u8; ROW]; LINES]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: an `Avx2` proves that the processor has it.
    unsafe {
        avx2::draw_tiles(tiles, pixels);
    }
    #[cfg(not(target_arch = "x86_64"))]
    super::strip::draw_tiles(tiles, 0..LINES, pixels);
}

/// `strip::sprites_between`.
pub(super) fn sprites_between(_proof: Avx2, oam: &[u8; 256], height: u32, lines: Range<u32>) -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: an `Avx2` proves that the processor has it.
    unsafe {
        avx2::sprites_between(oam, height, lines)
    }
    #[cfg(not(target_arch = "x86_64"))]
    super::strip::sprites_between(oam, height, lines)
}

/// `columns::replace`.
pub(super) fn replace(_proof: Avx2, columns: &mut [u16; 8], shades: &[u8; 32], row: Covered) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: an `Avx2` proves that the processor has it.
    unsafe {
        avx2::replace(columns, shades, row);
    }
    #[cfg(not(target_arch = "x86_64"))]
    super::columns::replace(columns, shades, row);
}

/// `columns::others`.
pub(super) fn others(_proof: Avx2, cells: &[u16; CELLS], pattern: u16) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: an `Avx2` proves that the processor has it.
    unsafe {
        avx2::others(cells, pattern)
    }
    #[cfg(not(target_arch = "x86_64"))]
    super::columns::others(cells, pattern)
}

/// `joined::cover`.
pub(super) fn cover(_proof: Avx2, word: &mut [u8; 8], phase: usize, shades: &[u8; 32], row: Covered) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: an `Avx2` proves that the processor has it.
    unsafe {
        avx2::cover(word, phase, shades, row);
    }
    #[cfg(not(target_arch = "x86_64"))]
    super::joined::cover(word, phase, shades, row);
}

/// `joined::put_tiles`, of three or four parts.
pub(super) fn put_tiles<const N: usize>(
    _proof: Avx2,
    tiles: &Tiles,
    kept: &mut TileSums,
    about: &About,
    rows: &mut [&mut Joined; N],
) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: an `Avx2` proves that the processor has it.
    unsafe {
        avx2::put_tiles(tiles, kept, about, rows);
    }
    #[cfg(not(target_arch = "x86_64"))]
    super::joined::put_tiles(tiles, kept, about, rows);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::super::columns::{PATTERN, SEEN};
    use super::super::joined::{PICKS, Place};
    use super::{About, CELLS, Covered, Joined, LINES, ROW, Range, TILES, Tile, TileSums, Tiles};
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_add_epi16, _mm_and_si128, _mm_castsi128_pd, _mm_cvtepi8_epi16, _mm_cvtepu8_epi16,
        _mm_cvtsi32_si128, _mm_cvtsi64_si128, _mm_extract_epi32, _mm_loadl_epi64, _mm_loadu_si128, _mm_shuffle_epi8,
        _mm_storeh_pd, _mm_storel_epi64, _mm_storeu_si128, _mm_sub_epi16, _mm256_add_epi16, _mm256_and_si256,
        _mm256_broadcastsi128_si256, _mm256_castsi256_ps, _mm256_castsi256_si128, _mm256_cmpeq_epi8,
        _mm256_cmpeq_epi16, _mm256_cmpgt_epi32, _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_movemask_epi8,
        _mm256_movemask_ps, _mm256_mullo_epi16, _mm256_or_si256, _mm256_packs_epi16, _mm256_permute4x64_epi64,
        _mm256_set_epi64x, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_epi64x,
        _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srl_epi64, _mm256_unpacklo_epi64,
    };

    /// Each of four bytes from `first` on eight times: a row's plane for each of its pixels.
    const fn rows(first: u8) -> [u8; 32] {
        let mut bytes = [0; 32];
        let mut place = 0;
        while place < 32 {
            bytes[place] = first + place as u8 / 8;
            place += 1;
        }
        bytes
    }

    /// The rows 0-3 and 4-7 of the low plane, then of the high one.
    const ROWS: [[u8; 32]; 4] = [rows(0), rows(4), rows(8), rows(12)];
    /// A row's bits by pixels: the left one, bit 7, in the lowest byte.
    const BITS: i64 = 0x0102_0408_1020_4080;

    /// Sprites that are looked at at once.
    const SPRITES: usize = 8;

    /// # Safety
    /// The processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn sprites_between(oam: &[u8; 256], height: u32, lines: Range<u32>) -> u64 {
        // With its first line at Y + 1: start < Y + 1 + height, Y + 1 < end.
        let above = _mm256_set1_epi32(lines.start as i32 - height as i32 - 1);
        let below = _mm256_set1_epi32(lines.end as i32 - 1);
        let low = _mm256_set1_epi32(0xFF);
        let mut near = 0;
        for (eight, sprites) in oam.chunks_exact(4 * SPRITES).enumerate() {
            // SAFETY: each chunk has 32 bytes.
            let sprites = unsafe { _mm256_loadu_si256(sprites.as_ptr().cast()) };
            let y = _mm256_and_si256(sprites, low);
            let inside = _mm256_and_si256(_mm256_cmpgt_epi32(y, above), _mm256_cmpgt_epi32(below, y));
            near |= (_mm256_movemask_ps(_mm256_castsi256_ps(inside)) as u64) << (SPRITES * eight);
        }
        near
    }

    /// By how much a sprite's row changes eight columns.
    ///
    /// # Safety
    /// The processor must have AVX2.
    #[target_feature(enable = "avx2")]
    unsafe fn changes(shades: &[u8; 32], row: Covered) -> __m128i {
        // SAFETY: there are 32 shades.
        unsafe {
            let shade = |first: usize, pixels: u64| {
                let table = _mm_loadu_si128(shades[first..][..16].as_ptr().cast());
                // The tables go by bits 0-3.
                _mm_cvtepu8_epi16(_mm_shuffle_epi8(table, _mm_cvtsi64_si128(pixels as i64)))
            };
            let change = _mm_sub_epi16(shade(16, row.over), shade(0, row.under));
            _mm_and_si128(change, _mm_cvtepi8_epi16(_mm_cvtsi64_si128((row.shown * 0xFF) as i64)))
        }
    }

    /// # Safety
    /// The processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn replace(columns: &mut [u16; 8], shades: &[u8; 32], row: Covered) {
        // SAFETY: eight columns have 16 bytes.
        unsafe {
            let place = columns.as_mut_ptr().cast();
            _mm_storeu_si128(place, _mm_add_epi16(_mm_loadu_si128(place), changes(shades, row)));
        }
    }

    /// # Safety
    /// The processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn cover(word: &mut [u8; 8], phase: usize, shades: &[u8; 32], row: Covered) {
        // SAFETY: picks are longer than 16 bytes; a word has eight.
        unsafe {
            let changes = changes(shades, row);
            let [first, second, third] = PICKS[phase % PICKS.len()]
                .each_ref()
                .map(|picks| _mm_shuffle_epi8(changes, _mm_loadu_si128(picks.as_ptr().cast())));
            let place = word.as_mut_ptr().cast();
            let sum = _mm_add_epi16(_mm_add_epi16(first, second), _mm_add_epi16(third, _mm_loadl_epi64(place)));
            _mm_storel_epi64(place, sum);
        }
    }

    /// # Safety
    /// The processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn others(cells: &[u16; CELLS], pattern: u16) -> u32 {
        let cells: &[u16; 32] = cells[SEEN.start..].first_chunk().expect("there are more");
        // SAFETY: 32 cells are 64 bytes.
        unsafe {
            let (low, pattern) = (_mm256_set1_epi16(PATTERN as i16), _mm256_set1_epi16(pattern as i16));
            let [first, second] = [0, 16].map(|at| {
                let cells = _mm256_loadu_si256(cells.as_ptr().add(at).cast());
                _mm256_cmpeq_epi16(_mm256_and_si256(cells, low), pattern)
            });
            // Packed by halves of registers: the middle quarters have to change places.
            let same = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(first, second));
            !_mm256_movemask_epi8(same) as u32
        }
    }

    /// # Safety
    /// The processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn put_tiles<const N: usize>(
        tiles: &Tiles,
        kept: &mut TileSums,
        about: &About,
        rows: &mut [&mut Joined; N],
    ) {
        const { assert!(N == 3 || N == 4, "the parts of a run") };
        // A register has the words of the parts 0, 2, 1 and 3.
        let [a, c, b, d] = tiles.backdrop.map(|column| (0x0001_0001_0001_0001 * u64::from(column)) as i64);
        let column = _mm256_set_epi64x(d, c, b, a);
        let backdrop = |place: &Place| _mm256_mullo_epi16(column, _mm256_set1_epi64x(place.widths() as i64));
        let halves = |words| [_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words)];
        let done = |words, place: &Place| _mm256_srl_epi64(words, _mm_cvtsi32_si128(i32::from(place.done)));
        for stretch in tiles.stretches() {
            let mut carried = stretch.before.map_or(_mm256_setzero_si256(), |place| done(backdrop(place), place));
            for (place, &cell) in stretch.tiles {
                let sums = kept.of(cell, about);
                // SAFETY: a tile has four times 16 bytes of sums, picks have 32 each, and words eight.
                unsafe {
                    let picks: *const __m256i = PICKS[usize::from(place.phase) % PICKS.len()].as_ptr().cast();
                    let sums: *const __m256i = sums.as_ptr().cast();
                    let join = |parts: *const __m256i| {
                        let pick = |number| {
                            _mm256_shuffle_epi8(_mm256_loadu_si256(parts), _mm256_loadu_si256(picks.add(number)))
                        };
                        _mm256_add_epi16(_mm256_add_epi16(pick(0), pick(1)), pick(2))
                    };
                    let words = _mm256_add_epi16(_mm256_unpacklo_epi64(join(sums), join(sums.add(1))), carried);
                    let [low, high] = halves(words);
                    _mm_storel_epi64(rows[0].word_at(place.at).as_mut_ptr().cast(), low);
                    _mm_storel_epi64(rows[1].word_at(place.at).as_mut_ptr().cast(), high);
                    _mm_storeh_pd(rows[2].word_at(place.at).as_mut_ptr().cast(), _mm_castsi128_pd(low));
                    if N == 4 {
                        _mm_storeh_pd(rows[N - 1].word_at(place.at).as_mut_ptr().cast(), _mm_castsi128_pd(high));
                    }
                    carried = done(words, place);
                }
            }
            if let Some(behind) = stretch.behind {
                let [low, high] = halves(_mm256_add_epi16(carried, backdrop(behind)));
                rows[0].put_two(behind.at, _mm_extract_epi32::<0>(low) as u32);
                rows[1].put_two(behind.at, _mm_extract_epi32::<0>(high) as u32);
                rows[2].put_two(behind.at, _mm_extract_epi32::<2>(low) as u32);
                if N == 4 {
                    rows[N - 1].put_two(behind.at, _mm_extract_epi32::<2>(high) as u32);
                }
            }
        }
    }

    /// # Safety
    /// The processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn draw_tiles(tiles: &[Tile; TILES], pixels: &mut [[u8; ROW]; LINES]) {
        // SAFETY: patterns have 16 bytes, rows of ROWS have 32; each store writes 8 bytes from 8 * 32 at most on, and
        // rows of pixels are longer.
        unsafe {
            let [low_upper, low_lower, high_upper, high_lower] =
                ROWS.map(|rows| _mm256_loadu_si256(rows.as_ptr().cast()));
            let bits = _mm256_set1_epi64x(BITS);
            for (place, tile) in tiles.iter().enumerate() {
                let planes = _mm256_broadcastsi128_si256(_mm_loadu_si128(tile.pattern.as_ptr().cast()));
                let palette = _mm256_set1_epi8(tile.palette as i8);
                let plane = |rows: __m256i, value: i8| {
                    let set = _mm256_and_si256(_mm256_shuffle_epi8(planes, rows), bits);
                    _mm256_and_si256(_mm256_cmpeq_epi8(set, bits), _mm256_set1_epi8(value))
                };
                let halves = [(low_upper, high_upper), (low_lower, high_lower)];
                for (half, (low, high)) in halves.into_iter().enumerate() {
                    let drawn = _mm256_or_si256(_mm256_or_si256(plane(low, 1), plane(high, 2)), palette);
                    let pairs = [_mm256_castsi256_si128(drawn), _mm256_extracti128_si256::<1>(drawn)];
                    for (pair, drawn) in pairs.into_iter().enumerate() {
                        let row = 4 * half + 2 * pair;
                        _mm_storel_epi64(pixels[row][8 * place..][..8].as_mut_ptr().cast(), drawn);
                        _mm_storeh_pd(pixels[row + 1][8 * place..][..8].as_mut_ptr().cast(), _mm_castsi128_pd(drawn));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::{others, replace};
    use super::super::joined::{PERIOD, cover};
    use super::super::strip::{draw_tiles, sprites_between};
    use super::{
        Avx2, CELLS, Covered, LINES, ROW, TILES, Tile, cover as wide_cover, draw_tiles as wide_tiles,
        others as wide_others, replace as wide_replace, sprites_between as wide_sprites,
    };
    use proptest::prelude::*;

    #[test]
    fn what_is_not_wanted_is_not_found() {
        assert_eq!(Avx2::found(false), None);
    }

    proptest! {
        #[test]
        fn wide_replacements_equal_portable_ones(
            columns: [u16; 8],
            word: [u8; 8],
            phase in 0..PERIOD,
            shades: [u8; 32],
            pixels in prop::collection::vec((0_u8..16, 16_u8..32, 0_u8..2), 8),
        ) {
            let number = |byte: fn(&(u8, u8, u8)) -> u8| {
                u64::from_le_bytes(std::array::from_fn(|at| byte(&pixels[at])))
            };
            let row =
                Covered { under: number(|pixel| pixel.0), over: number(|pixel| pixel.1), shown: number(|pixel| pixel.2) };
            let (mut portable, mut wide) = ((columns, word), (columns, word));
            replace(&mut portable.0, &shades, row);
            cover(&mut portable.1, phase, &shades, row);
            if let Some(avx2) = Avx2::found(true) {
                wide_replace(avx2, &mut wide.0, &shades, row);
                wide_cover(avx2, &mut wide.1, phase, &shades, row);
                prop_assert_eq!(portable, wide);
            }
        }

        #[test]
        fn wide_looks_at_patterns_equal_portable_ones(
            cells in prop::collection::vec(prop_oneof![0_u16..4, 0x200_u16..0x204, 0_u16..0x800], CELLS),
        ) {
            let cells: [u16; CELLS] = cells.try_into().expect("so many were made");
            for pattern in 0..4 {
                let found = others(&cells, pattern);
                prop_assert_eq!(found & 1 == 0, cells[1] & 0x1FF == pattern);
                if let Some(avx2) = Avx2::found(true) {
                    prop_assert_eq!(wide_others(avx2, &cells, pattern), found);
                }
            }
        }

        #[test]
        fn wide_looks_at_sprites_equal_portable_ones(
            oam in prop::collection::vec(any::<u8>(), 256),
            tall in any::<bool>(),
            first in 0_u32..240,
            lines in 1_u32..=8,
        ) {
            let oam: [u8; 256] = oam.try_into().expect("256 of them");
            let (height, lines) = (if tall { 16 } else { 8 }, first..first + lines);
            let near = sprites_between(&oam, height, lines.clone());
            for n in 0..64 {
                let y = u32::from(oam[4 * n]);
                let inside = lines.clone().any(|line| (y + 1..y + 1 + height).contains(&line));
                prop_assert_eq!(near >> n & 1 == 1, inside, "sprite {} at {}", n, y);
            }
            if let Some(avx2) = Avx2::found(true) {
                prop_assert_eq!(wide_sprites(avx2, &oam, height, lines), near);
            }
        }

        #[test]
        fn wide_tiles_equal_portable_ones(tiles in prop::collection::vec((any::<[u8; 16]>(), 0_u8..4), TILES)) {
            let tiles: [Tile; TILES] =
                std::array::from_fn(|place| Tile { pattern: &tiles[place].0, palette: tiles[place].1 << 2 });
            let (mut portable, mut wide) = ([[0; ROW]; LINES], [[0; ROW]; LINES]);
            draw_tiles(&tiles, 0..LINES, &mut portable);
            if let Some(avx2) = Avx2::found(true) {
                wide_tiles(avx2, &tiles, &mut wide);
                prop_assert_eq!(portable, wide);
            }
        }
    }
}
