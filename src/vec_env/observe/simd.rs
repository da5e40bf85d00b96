//! The inner loops of `bins` with AVX2, where the processor has it. Equal to the portable ones to the byte.
//!
//! The only `unsafe` of this room: calls of functions that need AVX2, which an `Avx2` proves to be there, and
//! loads and stores, each within a slice whose length was checked before.

use super::bins::Sums;
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

/// `bins::divide_canonical`.
pub(super) fn divide_canonical(_proof: Avx2, sums: &Sums, lines: usize, out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: an `Avx2` proves that the processor has it.
    unsafe {
        avx2::divide_canonical(sums, lines, out);
    }
    #[cfg(not(target_arch = "x86_64"))]
    super::bins::divide_canonical(sums, lines, out);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::super::bins::{OUTPUTS, PERIOD, Sums, add as portable_add, short_reciprocal};
    use super::super::window::WINDOW_WIDTH;
    use std::arch::x86_64::{
        __m128i, _mm_add_epi16, _mm_loadu_si128, _mm_mulhi_epu16, _mm_or_si128, _mm_packus_epi16, _mm_setr_epi16,
        _mm_shuffle_epi8, _mm_storel_epi64, _mm256_add_epi16, _mm256_blendv_epi8, _mm256_broadcastsi128_si256,
        _mm256_castsi256_si128, _mm256_cvtepu8_epi16, _mm256_extracti128_si256, _mm256_loadu_si256,
        _mm256_shuffle_epi8, _mm256_slli_epi16, _mm256_storeu_si256,
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

    /// A shuffle that takes 16-bit numbers `from` to their places; -1 leaves a zero.
    const fn places(from: [i8; 8]) -> [i8; 16] {
        let mut bytes = [-1; 16];
        let mut place = 0;
        while place < 8 {
            if from[place] >= 0 {
                bytes[2 * place] = 2 * from[place];
                bytes[2 * place + 1] = 2 * from[place] + 1;
            }
            place += 1;
        }
        bytes
    }

    /// Outputs 0-2 from the numbers 0-7 of a period: the first, second and third that each adds up.
    const FIRST: [[i8; 16]; 3] = [
        places([0, 2, 5, -1, -1, -1, -1, -1]),
        places([1, 3, 6, -1, -1, -1, -1, -1]),
        places([-1, 4, 7, -1, -1, -1, -1, -1]),
    ];
    /// Outputs 3 and 4 from 8-15.
    const SECOND: [[i8; 16]; 3] = [
        places([-1, -1, -1, 0, 3, -1, -1, -1]),
        places([-1, -1, -1, 1, 4, -1, -1, -1]),
        places([-1, -1, -1, 2, 5, -1, -1, -1]),
    ];
    /// Outputs 5 and 6 from 14-21, of which the last two belong to the next period.
    const THIRD: [[i8; 16]; 3] = [
        places([-1, -1, -1, -1, -1, 0, 3, -1]),
        places([-1, -1, -1, -1, -1, 1, 4, -1]),
        places([-1, -1, -1, -1, -1, 2, 5, -1]),
    ];

    /// # Safety
    /// The processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn divide_canonical(sums: &Sums, lines: usize, out: &mut [u8]) {
        let [two, three] = [2, 3].map(|columns| short_reciprocal(lines * columns) as i16);
        let reciprocals = _mm_setr_epi16(two, three, three, three, three, three, three, 0);
        for (period, out) in out.chunks_exact_mut(OUTPUTS).enumerate().take(WINDOW_WIDTH / PERIOD) {
            let mut eight = [0_u8; 8];
            // SAFETY: each load takes 8 sums from at most 11 * 20 + 14 = 234 on, of 256; each constant has 16 bytes.
            unsafe {
                let load =
                    |at: usize| -> __m128i { _mm_loadu_si128(sums[PERIOD * period + at..][..8].as_ptr().cast()) };
                let (first, second, third) = (load(0), load(8), load(14));
                let part = |number: usize| {
                    let pick =
                        |from, places: &[i8; 16]| _mm_shuffle_epi8(from, _mm_loadu_si128(places.as_ptr().cast()));
                    let two = _mm_or_si128(pick(first, &FIRST[number]), pick(second, &SECOND[number]));
                    _mm_or_si128(two, pick(third, &THIRD[number]))
                };
                let joined = _mm_add_epi16(_mm_add_epi16(part(0), part(1)), part(2));
                let divided = _mm_mulhi_epu16(joined, reciprocals);
                _mm_storel_epi64(eight.as_mut_ptr().cast(), _mm_packus_epi16(divided, divided));
            }
            out.copy_from_slice(&eight[..OUTPUTS]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bins;
    use super::{Avx2, Sums, add, divide_canonical};
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
        fn wide_divisions_equal_portable_ones(lines in 1_usize..=8, sums in prop::collection::vec(any::<u16>(), 256)) {
            let sums: Vec<u16> = sums.into_iter().map(|sum| sum % (255 * lines as u16 + 1)).collect();
            let sums: Sums = sums.try_into().expect("256 of them");
            let (mut portable, mut wide) = ([0; 84], [0; 84]);
            bins::divide_canonical(&sums, lines, &mut portable);
            if let Some(avx2) = Avx2::found(true) {
                divide_canonical(avx2, &sums, lines, &mut wide);
                prop_assert_eq!(portable, wide);
            }
        }
    }
}
