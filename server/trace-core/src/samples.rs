//! RTT samples: sums for bins, and values for quantiles, in bounded room.

/// Sums of one bin. A sample is below a day.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub samples: u32,
    pub least: i64,
    pub most: i64,
    pub sum: i64,
}

impl Sums {
    #[inline(always)]
    pub fn add(&mut self, value: i64) {
        if self.samples == 0 {
            *self = Sums { samples: 1, least: value, most: value, sum: value };
            return;
        }
        self.samples = self.samples.saturating_add(1);
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        self.sum = self.sum.saturating_add(value);
    }

    pub fn merge(&mut self, other: &Sums) {
        if other.samples == 0 {
            return;
        }
        if self.samples == 0 {
            *self = *other;
            return;
        }
        self.samples = self.samples.saturating_add(other.samples);
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.sum = self.sum.saturating_add(other.sum);
    }

    pub fn mean(&self) -> Option<i64> {
        (self.samples > 0).then(|| self.sum / i64::from(self.samples))
    }
}

/// Longer than any answer: taken for a clock that jumped.
pub const LONGEST_NS: i64 = 86_400_000_000_000;
const KEPT: usize = 16_384;

/// At least one; a time of less than a day fits.
pub fn milliseconds_begun(nanoseconds: i64) -> u32 {
    (nanoseconds.saturating_add(999_999) / 1_000_000).clamp(1, i64::from(u32::MAX - 1)) as u32
}

/// Values of one direction: all up to a number, from then on every second, fourth … of them.
#[derive(Debug)]
pub struct Values {
    kept: Vec<i64>,
    every: u32,
    left: u32,
}

impl Default for Values {
    fn default() -> Self {
        Values { kept: Vec::new(), every: 1, left: 0 }
    }
}

impl Values {
    #[inline(always)]
    pub fn add(&mut self, value: i64) {
        if self.left > 0 {
            self.left -= 1;
            return;
        }
        self.left = self.every - 1;
        if self.kept.len() == KEPT {
            self.thin();
        }
        self.kept.push(value);
    }

    #[cold]
    fn thin(&mut self) {
        let mut index = 0_usize;
        self.kept.retain(|_| {
            index += 1;
            index % 2 == 1
        });
        self.every = self.every.saturating_mul(2);
        self.left = self.every - 1;
    }

    /// Nearest-rank quantiles, in order of what is asked; `percent` of 1 to 100.
    pub fn quantile(values: &mut [i64], percent: usize) -> Option<i64> {
        if values.is_empty() {
            return None;
        }
        let rank = (values.len() * percent).div_ceil(100).max(1) - 1;
        Some(*values.select_nth_unstable(rank).1)
    }

    /// Below it are few: a single sample may be a mistake. Of some hundreds, which are enough.
    pub fn low(&self) -> Option<i64> {
        let mut some: Vec<i64> = self.kept.iter().step_by(self.kept.len() / 512 + 1).copied().collect();
        Values::quantile(&mut some, 5)
    }

    pub fn kept(&self) -> Vec<i64> {
        self.kept.clone()
    }

    /// Milliseconds begun and how many samples had them, in order. Where samples were left out, those that were kept stand for them.
    pub fn histogram(&self) -> Vec<(u32, u64)> {
        let mut begun: Vec<u32> = self.kept.iter().map(|value| milliseconds_begun(*value)).collect();
        begun.sort_unstable();
        let mut counts: Vec<(u32, u64)> = Vec::new();
        for one in begun {
            match counts.last_mut() {
                Some((last, samples)) if *last == one => *samples += u64::from(self.every),
                _ => counts.push((one, u64::from(self.every))),
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_their_merging() {
        let (mut a, mut b) = (Sums::default(), Sums::default());
        a.add(4);
        a.add(2);
        b.add(9);
        a.merge(&b);
        assert_eq!((a.samples, a.least, a.most, a.mean()), (3, 2, 9, Some(5)));
        assert_eq!(Sums::default().mean(), None);
    }

    #[test]
    fn quantiles_by_nearest_rank() {
        let mut values = vec![5, 1, 4, 2, 3];
        assert_eq!(Values::quantile(&mut values, 50), Some(3));
        assert_eq!(Values::quantile(&mut values, 95), Some(5));
        assert_eq!(Values::quantile(&mut [], 50), None);
    }

    #[test]
    fn a_histogram_by_milliseconds_begun_counts_every_sample() {
        let mut values = Values::default();
        [3_000_001, 1, 3_000_000, 2_000_001, 0].into_iter().for_each(|value| values.add(value));
        assert_eq!(values.histogram(), [(1, 2), (3, 2), (4, 1)]);
        assert_eq!(Values::default().histogram(), []);
        let mut many = Values::default();
        (0..3 * KEPT as i64).for_each(|value| many.add(value % 4 * 1_000_000 + 1));
        // Every second, then every fourth is kept: all of one remainder.
        assert_eq!(many.histogram().iter().map(|one| one.1).sum::<u64>(), 3 * KEPT as u64);
    }

    #[test]
    fn room_stays_bounded_and_the_median_stays() {
        let mut values = Values::default();
        for value in 0..1_000_000 {
            values.add(value);
        }
        let mut kept = values.kept();
        assert!(kept.len() <= KEPT);
        let median = Values::quantile(&mut kept, 50).unwrap_or(0);
        assert!((median - 500_000).abs() < 5_000, "{median}");
    }
}
