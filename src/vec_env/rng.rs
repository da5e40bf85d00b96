//! A lane's own random numbers: xoshiro256++ (Blackman and Vigna, 2019), seeded by SplitMix64 (Steele et al., 2014).
//!
//! One generator a lane, so that what a lane does depends on its seed and its actions alone.

/// The generator; its four words are all of its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LaneRng(pub(super) [u64; 4]);

impl LaneRng {
    pub(super) fn new(seed: u64) -> Self {
        let mut z = seed;
        Self(std::array::from_fn(|_| {
            z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut word = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            word ^ (word >> 31)
        }))
    }

    fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A whole number from 0 to `most`, each as likely as the others to within 2^-32.
    pub(super) fn up_to(&mut self, most: u32) -> u32 {
        ((u128::from(self.next()) * (u128::from(most) + 1)) >> 64) as u32
    }

    /// True with probability `p`; 0 never, 1 always.
    pub(super) fn chance(&mut self, p: f64) -> bool {
        // 53 bits: the fractions that a double holds exactly.
        const UNIT: f64 = 1.0 / (1u64 << 53) as f64;
        ((self.next() >> 11) as f64) * UNIT < p
    }
}

#[cfg(test)]
mod tests {
    use super::LaneRng;

    #[test]
    fn the_first_words_are_those_of_the_published_generators() {
        // SplitMix64 from seed 0 begins E220A8397B1DCDAF 6E789E6AA1B965F4 06C45D188009454F F88BB8A8724C81EC.
        let rng = LaneRng::new(0);
        assert_eq!(rng.0, [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F, 0xF88B_B8A8_724C_81EC]);
    }

    #[test]
    fn every_number_up_to_the_most_is_drawn_and_none_above() {
        let mut rng = LaneRng::new(7);
        let mut seen = [0; 31];
        (0..31_000).for_each(|_| seen[rng.up_to(30) as usize] += 1);
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert_eq!(rng.up_to(0), 0);
    }

    #[test]
    fn a_chance_of_zero_never_comes_and_of_one_always() {
        let mut rng = LaneRng::new(3);
        assert!((0..1000).all(|_| !rng.chance(0.0) && rng.chance(1.0)));
        let quarter = (0..10_000).filter(|_| rng.chance(0.25)).count();
        assert!((2300..2700).contains(&quarter), "{quarter}");
    }
}
