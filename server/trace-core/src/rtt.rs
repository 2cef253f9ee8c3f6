//! Round-trip times: how they are summed up, and how they are measured at the sender and at the receiver.

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

// ---------------------------------------------------------------------------------------------------------------------
// RTT at the sender: from a segment's passing to the acknowledgement of its last byte, with Karn's rule.

/// What was sent and not acknowledged yet, oldest first.
#[derive(Debug, Default)]
pub struct Unacknowledged {
    /// End and time.
    segments: Ring<(u64, i64)>,
    /// Hull of what was sent again and is not acknowledged yet.
    again: Option<(u64, u64)>,
}

impl Unacknowledged {
    /// New data up to `end`. False: there was no room, and the oldest is forgotten.
    #[inline(always)]
    pub fn sent(&mut self, end: u64, time: i64, most: u64) -> bool {
        self.segments.push_back((end, time));
        if self.segments.len() as u64 <= most {
            return true;
        }
        self.segments.pop_front();
        false
    }

    #[cold]
    pub fn sent_again(&mut self, start: u64, end: u64) {
        let (low, high) = self.again.unwrap_or((start, end));
        self.again = Some((low.min(start), high.max(end)));
    }

    /// All that ends at `now` or before it.
    #[cold]
    pub fn forget(&mut self, now: u64) {
        self.acknowledged(0, now);
    }

    /// The acknowledgement went from `before` to `now`; when the last byte that it covers was sent, if that makes a sample.
    #[inline(always)]
    pub fn acknowledged(&mut self, before: u64, now: u64) -> Option<i64> {
        let mut sent = None;
        let mut inside = true;
        while let Some(&(end, time)) = self.segments.front() {
            if end > now {
                if inside {
                    sent = Some(time);
                }
                break;
            }
            sent = Some(time);
            inside = end < now;
            self.segments.pop_front();
        }
        if let Some((low, high)) = self.again {
            if now >= high {
                self.again = None;
            }
            if before < high && now > low {
                return None;
            }
        }
        sent
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// RTT at the receiver: from the first packet with a TSval to the first that echoes it (RFC 7323 §4), and what the echo tells of the
// acknowledgement that the other end had seen.

/// TSvals of one end that the other has not echoed yet, oldest first.
#[derive(Debug, Default)]
pub struct Pending {
    waiting: Ring<Sent>,
    last: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    value: u32,
    time: i64,
    /// Acknowledgement in the last packet with this value, and what its SACK blocks named beyond.
    acknowledgement: (u64, u64),
}

/// What an echo found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// When the value was first sent; None: it was echoed before.
    pub sent: Option<i64>,
    pub acknowledgement: u64,
    pub sacked: u64,
}

impl Pending {
    /// A packet with this TSval passed. False: there was no room, and the oldest is forgotten.
    #[inline(always)]
    pub fn sent(&mut self, value: u32, time: i64, acknowledgement: (u64, u64), most: u64) -> bool {
        match self.last {
            Some(last) if value == last => {
                if let Some(sent) = self.waiting.back_mut() {
                    if acknowledgement.0 >= sent.acknowledgement.0 {
                        sent.acknowledgement = acknowledgement;
                    }
                }
                return true;
            }
            // An older one that comes late makes no sample.
            Some(last) if (value.wrapping_sub(last) as i32) < 0 => return true,
            _ => {}
        }
        self.last = Some(value);
        self.waiting.push_back(Sent { value, time, acknowledgement });
        if self.waiting.len() as u64 <= most {
            return true;
        }
        self.waiting.pop_front();
        false
    }

    /// The other end says that it has this TSval.
    #[inline(always)]
    pub fn echoed(&mut self, value: u32) -> Option<Echo> {
        let mut found = None;
        while let Some(sent) = self.waiting.front() {
            if (value.wrapping_sub(sent.value) as i32) < 0 {
                break;
            }
            let sent_at = (sent.value == value).then_some(sent.time);
            let (acknowledgement, sacked) = sent.acknowledgement;
            found = Some(Echo { sent: sent_at, acknowledgement, sacked });
            self.waiting.pop_front();
        }
        found
    }
}

/// RFC 6298 §2 without its floor of a second: how long the other end may be silent before its next echo tells of a pause, not of the path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    smoothed: i64,
    deviation: i64,
}

const LEAST_DEVIATION_NS: i64 = 20_000_000;
const WITHOUT_ANY_NS: i64 = 1_000_000_000;

impl Patience {
    #[inline(always)]
    pub fn learn(&mut self, rtt: i64) {
        if self.smoothed == 0 {
            self.smoothed = rtt.max(1);
            self.deviation = rtt / 2;
            return;
        }
        self.deviation += ((rtt - self.smoothed).abs() - self.deviation) / 4;
        self.smoothed = (self.smoothed + (rtt - self.smoothed) / 8).max(1);
    }

    /// `gap`: since the packet before.
    #[inline(always)]
    pub fn was_idle(&self, gap: i64) -> bool {
        if self.smoothed == 0 {
            return gap > WITHOUT_ANY_NS;
        }
        gap > self.smoothed + (4 * self.deviation).max(LEAST_DEVIATION_NS)
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// A queue of small values whose places follow from its first by a mask.

/// Grows to powers of two, and never shrinks.
#[derive(Debug)]
pub struct Ring<T> {
    places: Vec<T>,
    first: usize,
    length: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { places: Vec::new(), first: 0, length: 0 }
    }
}

impl<T: Copy + Default> Ring<T> {
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Of the one that is `index` behind the oldest.
    #[inline(always)]
    fn place(&self, index: usize) -> usize {
        self.first.wrapping_add(index) & self.places.len().wrapping_sub(1)
    }

    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        if self.length == 0 {
            return None;
        }
        self.places.get(self.place(0))
    }

    #[inline(always)]
    pub fn back_mut(&mut self) -> Option<&mut T> {
        let at = self.place(self.length.checked_sub(1)?);
        self.places.get_mut(at)
    }

    #[inline(always)]
    pub fn push_back(&mut self, value: T) {
        if self.length == self.places.len() {
            self.grow();
        }
        let at = self.place(self.length);
        if let Some(place) = self.places.get_mut(at) {
            *place = value;
            self.length += 1;
        }
    }

    #[inline(never)]
    fn grow(&mut self) {
        let at = self.first & self.places.len().wrapping_sub(1);
        self.places.rotate_left(at);
        self.first = 0;
        self.places.resize((2 * self.places.len()).max(8), T::default());
    }

    /// Forgets the oldest.
    #[inline(always)]
    pub fn pop_front(&mut self) {
        if self.length > 0 {
            self.first = self.first.wrapping_add(1);
            self.length -= 1;
        }
    }
}

#[cfg(test)]
mod samples_tests {
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

#[cfg(test)]
mod unacknowledged_tests {
    use super::*;

    #[test]
    fn the_last_byte_counts() {
        let mut sent = Unacknowledged::default();
        sent.sent(10, 1, 9);
        sent.sent(20, 2, 9);
        sent.sent(30, 3, 9);
        assert_eq!(sent.acknowledged(0, 20), Some(2));
        assert_eq!(sent.acknowledged(20, 25), Some(3));
        assert_eq!(sent.acknowledged(25, 30), Some(3));
        assert_eq!(sent.acknowledged(30, 40), None);
    }

    #[test]
    fn nothing_that_was_sent_twice_makes_a_sample() {
        let mut sent = Unacknowledged::default();
        for end in 1..6 {
            sent.sent(end * 10, end as i64, 9);
        }
        sent.sent_again(10, 20);
        assert_eq!(sent.acknowledged(0, 10), Some(1));
        assert_eq!(sent.acknowledged(10, 40), None);
        assert_eq!(sent.acknowledged(40, 50), Some(5));
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut sent = Unacknowledged::default();
        assert!(sent.sent(10, 1, 1));
        assert!(!sent.sent(20, 2, 1));
        assert_eq!(sent.acknowledged(0, 20), Some(2));
    }
}

#[cfg(test)]
mod echoes_tests {
    use super::*;

    #[test]
    fn the_first_echo_of_the_first_packet() {
        let mut pending = Pending::default();
        pending.sent(7, 100, (1, 0), 9);
        pending.sent(7, 110, (2, 5), 9);
        pending.sent(9, 120, (3, 0), 9);
        assert_eq!(pending.echoed(6), None);
        assert_eq!(pending.echoed(7), Some(Echo { sent: Some(100), acknowledgement: 2, sacked: 5 }));
        assert_eq!(pending.echoed(7), None);
        // One that was never sent tells only that older ones arrived.
        assert_eq!(pending.echoed(10), Some(Echo { sent: None, acknowledgement: 3, sacked: 0 }));
    }

    #[test]
    fn values_go_over_the_edge() {
        let mut pending = Pending::default();
        pending.sent(0xffff_ffff, 1, (0, 0), 9);
        pending.sent(1, 2, (0, 0), 9);
        assert_eq!(pending.echoed(1).and_then(|echo| echo.sent), Some(2));
    }

    #[test]
    fn patience_follows_the_path() {
        let mut patience = Patience::default();
        assert!(!patience.was_idle(900_000_000));
        for _ in 0..50 {
            patience.learn(50_000_000);
        }
        assert!(!patience.was_idle(60_000_000));
        assert!(patience.was_idle(80_000_000));
    }
}

#[cfg(test)]
mod ring_tests {
    use super::*;

    #[test]
    fn it_is_a_queue() {
        let (mut ring, mut expected) = (Ring::default(), std::collections::VecDeque::new());
        for step in 0..10_000_u64 {
            // Fills up to dozens, and empties again, many times over.
            if step * 7 % 64 < 32 + step % 3 {
                ring.push_back(step);
                expected.push_back(step);
            } else {
                ring.pop_front();
                expected.pop_front();
            }
            assert_eq!(ring.front(), expected.front());
            assert_eq!(ring.back_mut(), expected.back_mut());
            assert_eq!(ring.len(), expected.len());
        }
        assert!(ring.places.len() > 8, "it never grew");
    }
}
