//! The inner loops of `bins` and `periods` with AVX2, where the processor has it. Equal to the portable ones to the byte.
//!
//! The only `unsafe` of this room: calls of functions that need AVX2, which an `Avx2` proves to be there, and
//! loads and stores, each within a slice whose length was checked before.

use super::periods::{OUTPUTS, READ};
use crate::emulator::fast::{Avx2, Joined};

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

/// `periods::divide`; what lies behind the first outputs, some bytes, may become anything.
pub(super) fn divide(_proof: Avx2, sums: &[u16; READ], lines: usize, out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: an `Avx2` proves that the processor has it.
    unsafe {
        avx2::divide(sums, lines, out);
    }
    #[cfg(not(target_arch = "x86_64"))]
    super::periods::divide(sums, lines, out);
}

/// `periods::divide_joined`.
pub(super) fn divide_joined(_proof: Avx2, sums: &Joined, lines: usize, out: &mut [u8; OUTPUTS]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: an `Avx2` proves that the processor has it.
    unsafe {
        avx2::divide_joined(sums, lines, out);
    }
    #[cfg(not(target_arch = "x86_64"))]
    super::periods::divide_joined(sums, lines, out);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::super::bins::{add as portable_add, short_reciprocal};
    use super::super::periods::{COLUMNS, OUTPUTS, OUTPUTS_OF_PERIOD, READ, RECIPROCALS, start};
    use super::Joined;
    use std::arch::x86_64::{
        __m256i, _mm_loadu_si128, _mm_packus_epi16, _mm_shuffle_epi8, _mm_storel_epi64, _mm256_add_epi16,
        _mm256_and_si256, _mm256_blendv_epi8, _mm256_broadcastsi128_si256, _mm256_castsi256_si128,
        _mm256_cvtepu8_epi16, _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_mulhi_epu16, _mm256_packus_epi16,
        _mm256_permute4x64_epi64, _mm256_set1_epi16, _mm256_shuffle_epi8, _mm256_slli_epi16, _mm256_storeu_si256,
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

    /// # Safety
    /// The processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn divide_joined(sums: &Joined, lines: usize, out: &mut [u8; OUTPUTS]) {
        let (sums, reciprocals) = (sums.outputs(), &RECIPROCALS[lines]);
        // The last 32 outputs begin with some that were divided before.
        for first in [0, WIDE, OUTPUTS - WIDE] {
            // SAFETY: 32 outputs from each of these on are within 84, of 16 bits as sums and as reciprocals.
            unsafe {
                let sums = sums.as_ptr().add(2 * first).cast();
                let reciprocals = reciprocals.as_ptr().add(first).cast();
                let half = |at: usize| {
                    let (sums, reciprocals): (*const __m256i, *const __m256i) = (sums, reciprocals);
                    _mm256_mulhi_epu16(_mm256_loadu_si256(sums.add(at)), _mm256_loadu_si256(reciprocals.add(at)))
                };
                // Packed by halves of registers: the middle quarters have to change places.
                let bytes = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi16(half(0), half(1)));
                _mm256_storeu_si256(out.as_mut_ptr().add(first).cast(), bytes);
            }
        }
    }

    /// Columns that are divided at once, and how often until they begin like a period again.
    const STEP: usize = 16;
    const STEPS: usize = 5;

    /// By the number of a step modulo `STEPS`: all bits where the third column is no other output's, and the outputs' first columns.
    struct Steps {
        third: [[i16; STEP]; STEPS],
        first: [[i8; STEP]; STEPS],
        outputs: [usize; STEPS],
    }

    const ALL: Steps = {
        let mut out = Steps { third: [[-1; STEP]; STEPS], first: [[-1; STEP]; STEPS], outputs: [0; STEPS] };
        let mut output = 0;
        while output < STEP * STEPS / COLUMNS * OUTPUTS_OF_PERIOD {
            let (step, at) = (start(output) / STEP, start(output) % STEP);
            out.first[step][out.outputs[step]] = at as i8;
            out.outputs[step] += 1;
            if start(output + 1) - start(output) == 2 {
                out.third[step][at] = 0;
            }
            output += 1;
        }
        out
    };

    /// # Safety
    /// The processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn divide(sums: &[u16; READ], lines: usize, out: &mut [u8]) {
        // Each store writes eight bytes, of which the next one writes some again.
        let mut last = [0; OUTPUTS + 8];
        let place: &mut [u8; OUTPUTS + 8] = match out.first_chunk_mut() {
            Some(place) => place,
            None => &mut last,
        };
        let [two, three] = [2, 3].map(|columns| _mm256_set1_epi16(short_reciprocal(lines * columns) as i16));
        let mut at = 0;
        // Known tables would be made into longer instructions than theirs.
        let tables = std::hint::black_box(&ALL);
        // SAFETY: the last step begins 16 sums before the end of the window, behind which there are two more; tables of a step have
        // 16 elements; stores begin at 84 outputs at most, behind which there are eight more bytes.
        unsafe {
            let load = |first: usize| _mm256_loadu_si256(sums.as_ptr().add(first).cast());
            // The steps are written out: places in tables are constants then.
            macro_rules! step {
                ($block:expr, $number:literal) => {
                    let first = $block + STEP * $number;
                    let wide = _mm256_loadu_si256(tables.third[$number].as_ptr().cast());
                    let third = _mm256_and_si256(load(first + 2), wide);
                    let sum = _mm256_add_epi16(_mm256_add_epi16(load(first), load(first + 1)), third);
                    let divided = _mm256_mulhi_epu16(sum, _mm256_blendv_epi8(two, three, wide));
                    let halves = (_mm256_castsi256_si128(divided), _mm256_extracti128_si256::<1>(divided));
                    let bytes = _mm_packus_epi16(halves.0, halves.1);
                    let picked = _mm_shuffle_epi8(bytes, _mm_loadu_si128(tables.first[$number].as_ptr().cast()));
                    _mm_storel_epi64(place.as_mut_ptr().add(at).cast(), picked);
                    at += const { ALL.outputs[$number] };
                };
            }
            for block in [0, STEP * STEPS, 2 * STEP * STEPS] {
                step!(block, 0);
                step!(block, 1);
                step!(block, 2);
                step!(block, 3);
                step!(block, 4);
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
    use super::super::periods::{self, MOST_LINES, OUTPUTS, READ};
    use super::{Avx2, Joined, add, divide, divide_joined};
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
        fn wide_joined_outputs_equal_portable_ones(
            lines in 1..=MOST_LINES,
            sums in prop::collection::vec(0..=255_u16, OUTPUTS),
        ) {
            let Some(avx2) = Avx2::found(true) else { return Ok(()) };
            let sums: Vec<u16> = sums.into_iter().map(|value| 2 * value * lines as u16).collect();
            let sums = Joined::from_sums(&sums.try_into().expect("so many were made"));
            let (mut plain, mut quick) = ([0; OUTPUTS], [0; OUTPUTS]);
            periods::divide_joined(&sums, lines, &mut plain);
            divide_joined(avx2, &sums, lines, &mut quick);
            prop_assert_eq!(plain, quick);
        }

        #[test]
        fn wide_outputs_equal_portable_ones(
            lines in 1..=MOST_LINES,
            sums in prop::collection::vec(0..=255_u16, READ),
            behind in 0_usize..20,
        ) {
            let Some(avx2) = Avx2::found(true) else { return Ok(()) };
            let sums: Vec<u16> = sums.into_iter().map(|value| value * lines as u16).collect();
            let sums: [u16; READ] = sums.try_into().expect("so many were made");
            let (mut plain, mut quick) = (vec![0; OUTPUTS + behind], vec![0; OUTPUTS + behind]);
            periods::divide(&sums, lines, &mut plain);
            divide(avx2, &sums, lines, &mut quick);
            prop_assert_eq!(&plain[..OUTPUTS], &quick[..OUTPUTS]);
        }
    }
}
