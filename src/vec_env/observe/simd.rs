//! The inner loops of `bins` and `periods` with AVX2, where the processor has it. Equal to the portable ones to the byte.
//!
//! The only `unsafe` of this room: calls of functions that need AVX2, which an `Avx2` proves to be there, and
//! loads and stores, each within a slice whose length was checked before.

use super::periods::{self, READ};
use crate::emulator::fast::Avx2;

/// `bins::add` for pixels below 32 (their bit 6 aside).
pub(super) fn add(_proof: Avx2, sums: &mut [u16], pixels: &[u8], values: &[u8; 64]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: an `Avx2` proves that the processor has it.
    unsafe {
        avx2::add(sums, pixels, values);
    }
    #[cfg(not(target_arch = "x86_64"))]
    super::bins::add(sums, pixels, values);
}

/// `periods::add` for such pixels.
pub(super) fn add_groups(_proof: Avx2, sums: &mut periods::Sums, pixels: &[u8; READ], values: &[u8; 64]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: an `Avx2` proves that the processor has it.
    unsafe {
        avx2::add_groups(sums, pixels, values);
    }
    #[cfg(not(target_arch = "x86_64"))]
    periods::add(sums, pixels, values);
}

/// `periods::divide`; what lies behind the first outputs, some bytes, may become anything.
pub(super) fn divide_groups(_proof: Avx2, sums: &periods::Sums, lines: usize, out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: an `Avx2` proves that the processor has it.
    unsafe {
        avx2::divide_groups(sums, lines, out);
    }
    #[cfg(not(target_arch = "x86_64"))]
    periods::divide(sums, lines, out);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::super::bins::{add as portable_add, short_reciprocal};
    use super::super::periods::{COUNTS, GROUPS, OUTPUTS, PARTS, READ, Sums, start};
    use std::arch::x86_64::{
        __m256i, _mm_loadu_si128, _mm_storel_epi64, _mm256_add_epi16, _mm256_blendv_epi8, _mm256_broadcastsi128_si256,
        _mm256_castsi128_si256, _mm256_castsi256_si128, _mm256_cvtepu8_epi16, _mm256_extracti128_si256,
        _mm256_inserti128_si256, _mm256_loadu_si256, _mm256_maddubs_epi16, _mm256_mulhi_epu16, _mm256_packus_epi16,
        _mm256_set1_epi8, _mm256_set1_epi16, _mm256_shuffle_epi8, _mm256_slli_epi16, _mm256_storeu_si256,
    };

    /// Pixels that are looked up at once.
    const WIDE: usize = 32;

    /// # Safety
    /// The processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn add(sums: &mut [u16], pixels: &[u8], values: &[u8; 64]) {
        let (wide_sums, wide_pixels) = (sums.chunks_exact_mut(WIDE), pixels.chunks_exact(WIDE));
        // SAFETY: 16 bytes from 0 and from 16 on lie within 64 values; each chunk has 32 pixels or sums.
        unsafe {
            let table = |at: usize| _mm256_broadcastsi128_si256(_mm_loadu_si128(values[at..at + 16].as_ptr().cast()));
            let (background, sprites) = (table(0), table(16));
            for (sums, pixels) in wide_sums.zip(wide_pixels) {
                let pixels = _mm256_loadu_si256(pixels.as_ptr().cast());
                // The tables go by bits 0-3 (and by bit 7, which is clear); bit 4, shifted to bit 7, chooses between them.
                let greys = _mm256_blendv_epi8(
                    _mm256_shuffle_epi8(background, pixels),
                    _mm256_shuffle_epi8(sprites, pixels),
                    _mm256_slli_epi16::<3>(pixels),
                );
                let halves = [_mm256_castsi256_si128(greys), _mm256_extracti128_si256::<1>(greys)];
                for (sums, greys) in sums.chunks_exact_mut(WIDE / 2).zip(halves) {
                    let sums = sums.as_mut_ptr().cast();
                    _mm256_storeu_si256(sums, _mm256_add_epi16(_mm256_loadu_si256(sums), _mm256_cvtepu8_epi16(greys)));
                }
            }
        }
        let done = pixels.len().min(sums.len()) / WIDE * WIDE;
        portable_add(&mut sums[done..], &pixels[done..], values);
    }

    /// Where the bytes of two groups' sums come from, by the three ways in which groups make pairs: the first two columns
    /// of each output side by side, the third one or none, and all bits set where there is none. -1 leaves a zero.
    struct Shuffles {
        two: [[i8; 32]; 3],
        third: [[i8; 32]; 3],
        narrow: [[i8; 32]; 3],
    }

    const SHUFFLES: Shuffles = {
        let mut out = Shuffles { two: [[-1; 32]; 3], third: [[-1; 32]; 3], narrow: [[0; 32]; 3] };
        let mut at = 0;
        while at < 6 * 5 {
            let (pair, half, output) = (at / 10, at / 5 % 2, at % 5);
            let (first, columns) = PARTS[(2 * pair + half) % 3][output];
            let place = 16 * half + 2 * output;
            if columns > 0 {
                out.two[pair][place] = first as i8;
                out.two[pair][place + 1] = first as i8 + 1;
            }
            if columns == 3 {
                out.third[pair][place] = first as i8 + 2;
            } else {
                out.narrow[pair][place] = -1;
                out.narrow[pair][place + 1] = -1;
            }
            at += 1;
        }
        out
    };

    /// # Safety
    /// The processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn add_groups(sums: &mut Sums, pixels: &[u8; READ], values: &[u8; 64]) {
        // SAFETY: 16 bytes from 0 and from 16 on lie within 64 values, and from the last group's start on within the pixels;
        // each shuffle has 32 bytes, and so have two groups' sums.
        unsafe {
            let table = |at: usize| _mm256_broadcastsi128_si256(_mm_loadu_si128(values[at..at + 16].as_ptr().cast()));
            let (background, sprites) = (table(0), table(16));
            let load = |group: usize| _mm_loadu_si128(pixels[start(group)..][..16].as_ptr().cast());
            let shuffle = |from: __m256i, places: &[i8; 32]| {
                _mm256_shuffle_epi8(from, _mm256_loadu_si256(places.as_ptr().cast()))
            };
            for pair in 0..GROUPS / 2 {
                let pixels = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(load(2 * pair)), load(2 * pair + 1));
                // As in `add`.
                let greys = _mm256_blendv_epi8(
                    _mm256_shuffle_epi8(background, pixels),
                    _mm256_shuffle_epi8(sprites, pixels),
                    _mm256_slli_epi16::<3>(pixels),
                );
                let two = _mm256_maddubs_epi16(shuffle(greys, &SHUFFLES.two[pair % 3]), _mm256_set1_epi8(1));
                let three = _mm256_add_epi16(two, shuffle(greys, &SHUFFLES.third[pair % 3]));
                let sums = sums[2 * pair..][..2].as_mut_ptr().cast();
                _mm256_storeu_si256(sums, _mm256_add_epi16(_mm256_loadu_si256(sums), three));
            }
        }
    }

    /// # Safety
    /// The processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn divide_groups(sums: &Sums, lines: usize, out: &mut [u8]) {
        // Each store writes eight bytes, of which the next one writes some again.
        let mut last = [0; OUTPUTS + 8];
        let place = if out.len() < last.len() { &mut last[..] } else { &mut out[..OUTPUTS + 8] };
        let [two, three] = [2, 3].map(|columns| _mm256_set1_epi16(short_reciprocal(lines * columns) as i16));
        let mut at = 0;
        // SAFETY: each shuffle has 32 bytes, and so have two groups' sums; each slice of outputs has eight.
        unsafe {
            for pair in 0..GROUPS / 2 {
                let narrow = _mm256_loadu_si256(SHUFFLES.narrow[pair % 3].as_ptr().cast());
                let sums = _mm256_loadu_si256(sums[2 * pair..][..2].as_ptr().cast());
                let divided = _mm256_mulhi_epu16(sums, _mm256_blendv_epi8(three, two, narrow));
                let bytes = _mm256_packus_epi16(divided, divided);
                let halves = [_mm256_castsi256_si128(bytes), _mm256_extracti128_si256::<1>(bytes)];
                for (half, bytes) in halves.into_iter().enumerate() {
                    _mm_storel_epi64(place[at..][..8].as_mut_ptr().cast(), bytes);
                    at += COUNTS[(2 * pair + half) % 3];
                }
            }
        }
        if out.len() < OUTPUTS + 8 {
            out[..OUTPUTS].copy_from_slice(&last[..OUTPUTS]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bins;
    use super::super::periods::{self, GROUPS, OUTPUTS, READ};
    use super::{Avx2, add, add_groups, divide_groups};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn wide_sums_equal_portable_ones(
            pixels in prop::collection::vec((0_u8..32, any::<bool>()), 0..=256),
            values in prop::collection::vec(any::<u8>(), 64),
            before in prop::collection::vec(0_u16..60_000, 256),
        ) {
            let pixels: Vec<u8> = pixels.into_iter().map(|(pixel, taken)| pixel | u8::from(taken) << 6).collect();
            let values: [u8; 64] = values.try_into().expect("64 of them");
            let (mut portable, mut wide) = (before.clone(), before);
            bins::add(&mut portable[..pixels.len()], &pixels, &values);
            if let Some(avx2) = Avx2::found(true) {
                add(avx2, &mut wide[..pixels.len()], &pixels, &values);
                prop_assert_eq!(portable, wide);
            }
        }

        #[test]
        fn wide_groups_equal_portable_ones(
            lines in prop::collection::vec(
                prop::collection::vec((0_u8..32, any::<bool>()), READ), 1..=8),
            values in prop::collection::vec(any::<u8>(), 64),
            behind in 0_usize..20,
        ) {
            let values: [u8; 64] = values.try_into().expect("64 of them");
            let (mut portable, mut wide) = ([[0; 8]; GROUPS], [[0; 8]; GROUPS]);
            let Some(avx2) = Avx2::found(true) else { return Ok(()) };
            for line in &lines {
                let pixels: Vec<u8> = line.iter().map(|&(pixel, taken)| pixel | u8::from(taken) << 6).collect();
                let pixels: [u8; READ] = pixels.try_into().expect("so many were made");
                periods::add(&mut portable, &pixels, &values);
                add_groups(avx2, &mut wide, &pixels, &values);
            }
            prop_assert_eq!(portable, wide);
            let (mut plain, mut quick) = (vec![0; OUTPUTS + behind], vec![0; OUTPUTS + behind]);
            periods::divide(&portable, lines.len(), &mut plain);
            divide_groups(avx2, &wide, lines.len(), &mut quick);
            prop_assert_eq!(&plain[..OUTPUTS], &quick[..OUTPUTS]);
        }
    }
}
