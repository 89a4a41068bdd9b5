//! Numbers that look random and are the same for ever: SplitMix64, written out, so that no version of anything changes them.

use super::at::FrameDirection;

/// A stream of numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The random numbers of one frame. They depend on nothing else, so that removing a fault does not change the others.
    pub(super) fn of_frame(seed: u64, direction: FrameDirection, frame: u64, salt: &str) -> Self {
        let mut random = Self(seed ^ frame.wrapping_mul(0x9e6c_63d0_876a_3f6b));
        // FNV-1a: it need not resist anybody.
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325 ^ (direction.index() as u64);
        for byte in salt.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        random.0 ^= hash;
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `bound`, which is not 0. A hair uneven for bounds near 2^64, of which there are none here.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// From 0 to just below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of these, of which there is at least one.
    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let at = self.below(of.len() as u64);
        of.get(usize::try_from(at).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds stand in reports of failures. They must mean the same in every version.
    #[test]
    fn the_numbers_never_change() {
        let mut random = Random::new(1_234_567);
        let got: Vec<u64> = (0..3).map(|_| random.next()).collect();
        // The first outputs for this seed in the algorithm's published test vectors.
        assert_eq!(
            got,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
        assert_eq!(
            Random::of_frame(1, FrameDirection::Output, 1, "drop").next(),
            2_530_078_187_921_884_881
        );
    }
}
