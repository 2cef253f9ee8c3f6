//! RTT at the sender: from a segment's passing to the acknowledgement of its last byte, with Karn's rule.

use crate::ring::Ring;

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

#[cfg(test)]
mod tests {
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
