//! Seeded random numbers for packet loss: splitmix64, small, fast and the same on every machine and in every version.

use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;

/// One stream of random numbers. Streams of different `(seed, stream)` do not resemble each other.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut random = Random(SplitMix64::seed_from_u64(seed ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03)));
        random.next();
        random
    }

    /// The next number, uniform over all of u64.
    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// True with the probability that `threshold` stands for (see [`threshold`]).
    pub fn hit(&mut self, threshold: u128) -> bool {
        // A link without loss draws nothing, so that switching loss on later does not depend on the traffic before.
        threshold > 0 && u128::from(self.next()) < threshold
    }
}

/// A probability in 0..=1 as a count of the 2^64 numbers that hit.
pub fn threshold(probability: f64) -> u128 {
    (probability * 18_446_744_073_709_551_616.0) as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certain_and_impossible_are_exact() {
        let mut random = Random::new(1, 2);
        assert!((0..10_000).all(|_| random.hit(threshold(1.0))));
        assert!((0..10_000).all(|_| !random.hit(threshold(0.0))));
    }

    #[test]
    fn the_proportion_is_the_probability() {
        for (seed, p) in [(1, 0.5), (2, 0.01), (3, 0.2)] {
            let mut random = Random::new(seed, 0);
            let n = 400_000;
            let hits = (0..n).filter(|_| random.hit(threshold(p))).count() as f64;
            let sigma = (f64::from(n) * p * (1.0 - p)).sqrt();
            assert!((hits - f64::from(n) * p).abs() < 5.0 * sigma, "{hits} of {n} at {p}");
        }
    }

    #[test]
    fn a_seed_gives_the_numbers_that_splitmix64_has_and_streams_differ() {
        let take = |seed, stream| {
            let mut random = Random::new(seed, stream);
            (0..3).map(|_| random.next()).collect::<Vec<_>>()
        };
        // The reference's second to fourth number of this seed.
        assert_eq!(
            take(1_234_567, 0),
            [3_203_168_211_198_807_973, 9_817_491_932_198_370_423, 4_593_380_528_125_082_431]
        );
        assert_ne!(take(7, 0), take(7, 1));
        assert_ne!(take(7, 0), take(8, 0));
    }
}
