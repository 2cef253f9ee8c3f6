//! Numbers of sequence spaces: the exact set of those that were seen, and those that wrap, expanded.

use std::collections::VecDeque;

/// What one insertion found, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Never seen before.
    pub new: u64,
    /// Here before.
    pub seen: u64,
    /// Part of `new`: below the highest that was seen.
    pub filled: u64,
}

/// Numbers are expanded to 64 bits by the caller and never wrap.
#[derive(Debug, Default)]
pub struct Ranges {
    next: u64,
    ahead: VecDeque<(u64, u64)>,
    held: u64,
}

impl Ranges {
    pub fn from(next: u64) -> Self {
        Ranges { next, ahead: VecDeque::new(), held: 0 }
    }

    /// The first that is missing.
    #[inline(always)]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// How many are held beyond the first gap.
    #[inline(always)]
    pub fn held(&self) -> u64 {
        self.held
    }

    /// One beyond the highest.
    #[inline(always)]
    pub fn top(&self) -> u64 {
        self.ahead.back().map_or(self.next, |last| last.1)
    }

    #[cfg(test)]
    pub fn intervals(&self) -> usize {
        self.ahead.len()
    }

    /// Takes `start..end` in.
    #[inline(always)]
    pub fn insert(&mut self, start: u64, end: u64) -> Found {
        if end >= start && self.take_next(start, end - start) {
            return Found { new: end - start, seen: 0, filled: 0 };
        }
        self.insert_anywhere(start, end)
    }

    /// Takes in what begins where all ends that was seen; false, and nothing was done, if it does not.
    #[inline(always)]
    pub fn take_next(&mut self, start: u64, length: u64) -> bool {
        let next = start == self.next && self.ahead.is_empty();
        if next {
            self.next = start.saturating_add(length);
        }
        next
    }

    #[inline(never)]
    fn insert_anywhere(&mut self, start: u64, end: u64) -> Found {
        if end <= start {
            return Found::default();
        }
        let low = start.max(self.next);
        if low >= end {
            return Found { new: 0, seen: end - start, filled: 0 };
        }
        let top = self.top();
        if let Some(last) = self.ahead.back_mut() {
            // Beyond a gap the flow goes on in order: the usual case after a loss.
            if low == last.1 {
                last.1 = end;
                self.held = self.held.saturating_add(end - low);
                return Found { new: end - low, seen: low - start, filled: 0 };
            }
        }
        let first = self.ahead.partition_point(|range| range.1 < low);
        let mut merged = (low, end);
        let mut covered = 0_u64;
        let mut after = first;
        while let Some(range) = self.ahead.get(after) {
            if range.0 > end {
                break;
            }
            covered += range.1.min(end).saturating_sub(range.0.max(low));
            merged = (merged.0.min(range.0), merged.1.max(range.1));
            after += 1;
        }
        if after == first {
            self.ahead.insert(first, merged);
        } else {
            self.ahead[first] = merged;
            if after - first > 1 {
                self.ahead.drain(first + 1..after);
            }
        }
        let new = (end - low).saturating_sub(covered);
        let filled = end.min(top).saturating_sub(low).saturating_sub(covered).min(new);
        self.held = self.held.saturating_add(new);
        self.advance();
        Found { new, seen: (end - start).saturating_sub(new), filled }
    }

    /// The front interval joins what is whole.
    fn advance(&mut self) {
        while let Some(&(start, end)) = self.ahead.front() {
            if start > self.next {
                break;
            }
            self.held = self.held.saturating_sub(end - start);
            self.next = self.next.max(end);
            self.ahead.pop_front();
        }
    }

    /// All below `to` count as seen; says how many were not.
    #[inline(always)]
    pub fn skip_to(&mut self, to: u64) -> u64 {
        if to <= self.next {
            return 0;
        }
        self.skip_beyond(to)
    }

    #[inline(never)]
    fn skip_beyond(&mut self, to: u64) -> u64 {
        let mut unseen = to - self.next;
        while let Some(&(start, end)) = self.ahead.front() {
            if start >= to {
                break;
            }
            let below = end.min(to) - start;
            unseen = unseen.saturating_sub(below);
            self.held = self.held.saturating_sub(below);
            if end > to {
                self.ahead[0].0 = to;
                break;
            }
            self.ahead.pop_front();
        }
        self.next = to;
        self.advance();
        unseen
    }

    /// Keeps at most `most` intervals by taking the lowest gaps for filled; true when it had to.
    #[inline(always)]
    pub fn bound(&mut self, most: u64) -> bool {
        if (self.ahead.len() as u64) <= most {
            return false;
        }
        self.skip_to(self.ahead[0].0);
        true
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Numbers that wrap, expanded to 64 bits near one that is known.

/// Where expanded numbers begin, so that what lies a little before the first is still positive.
pub const BASE: u64 = 1 << 34;

/// The number nearest to `near` whose lower 32 bits are `low`.
#[inline(always)]
pub fn expand(near: u64, low: u32) -> u64 {
    near.wrapping_add(low.wrapping_sub(near as u32) as i32 as i64 as u64)
}

/// The first of a sequence: its lower 32 bits are kept.
#[inline(always)]
pub fn first(low: u32) -> u64 {
    BASE | u64::from(low)
}

#[cfg(test)]
mod ranges_tests {
    use super::*;
    use std::collections::BTreeSet;

    fn found(new: u64, seen: u64, filled: u64) -> Found {
        Found { new, seen, filled }
    }

    #[test]
    fn in_order_holds_nothing() {
        let mut ranges = Ranges::from(10);
        assert_eq!(ranges.insert(10, 20), found(10, 0, 0));
        assert_eq!((ranges.next(), ranges.held(), ranges.intervals()), (20, 0, 0));
    }

    #[test]
    fn a_gap_holds_what_follows_until_it_is_filled() {
        let mut ranges = Ranges::from(0);
        assert_eq!(ranges.insert(10, 20), found(10, 0, 0));
        assert_eq!(ranges.insert(20, 30), found(10, 0, 0));
        assert_eq!(ranges.held(), 20);
        assert_eq!(ranges.insert(0, 15), found(10, 5, 10));
        assert_eq!((ranges.next(), ranges.held()), (30, 0));
    }

    #[test]
    fn what_is_skipped_counts_as_unseen() {
        let mut ranges = Ranges::from(0);
        ranges.insert(10, 20);
        ranges.insert(30, 40);
        assert_eq!(ranges.skip_to(35), 20);
        assert_eq!((ranges.next(), ranges.held()), (40, 0));
    }

    #[test]
    fn the_lowest_gap_is_closed_at_the_bound() {
        let mut ranges = Ranges::from(0);
        ranges.insert(10, 20);
        ranges.insert(30, 40);
        assert!(ranges.bound(1));
        assert_eq!((ranges.next(), ranges.held(), ranges.intervals()), (20, 10, 1));
        assert!(!ranges.bound(1));
    }

    #[test]
    fn equals_a_plain_set() {
        let mut state = 7_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let (mut ranges, mut plain) = (Ranges::from(0), BTreeSet::new());
            for _ in 0..60 {
                let start = draw(200);
                let end = start + draw(20);
                let top = plain.last().map_or(0, |last: &u64| last + 1);
                let found = ranges.insert(start, end);
                let (mut new, mut filled) = (0, 0);
                for number in start..end {
                    if plain.insert(number) {
                        new += 1;
                        filled += u64::from(number < top);
                    }
                }
                assert_eq!(found, Found { new, seen: end - start - new, filled });
                let next = (0..).find(|number| !plain.contains(number)).unwrap_or(0);
                assert_eq!(ranges.next(), next);
                assert_eq!(ranges.held(), plain.len() as u64 - next);
            }
        }
    }
}

#[cfg(test)]
mod numbers_tests {
    use super::*;

    #[test]
    fn goes_over_the_edge_both_ways() {
        let near = first(0xffff_fff0);
        assert_eq!(expand(near, 0x10), near + 0x20);
        assert_eq!(expand(near + 0x20, 0xffff_fff0), near);
        assert_eq!(expand(first(5), 0xffff_ffff), first(5) - 6);
    }
}
