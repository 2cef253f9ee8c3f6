//! From a subflow's sequence numbers to data sequence numbers. One mapping spans many packets, and all of them carry the same option:
//! DSN = mapping's DSN + (sequence − mapping's sequence), never the option's own DSN.

use std::collections::VecDeque;

use crate::numbers::expand;
use crate::options::Map;

/// Mappings of one direction of a subflow, and its initial sequence number.
#[derive(Debug, Default)]
pub struct Mappings {
    /// Initial sequence number, expanded.
    initial: Option<u64>,
    /// Bounds of it where no SYN was seen: at least, at most.
    bounds: Option<(u64, u64)>,
    /// Until then: the mapping that was heard before, whether packets came that were inside theirs, and what was heard where.
    before: Option<Map>,
    inside: bool,
    early: VecDeque<(Map, u64)>,
    /// The newest, and all, oldest first.
    newest: Option<Mapping>,
    known: VecDeque<Mapping>,
    last: Option<Map>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    dsn: u64,
    wide: bool,
}

impl Mapping {
    #[inline(always)]
    fn holds(&self, number: u64) -> bool {
        self.start <= number && number < self.end
    }
}

/// A stretch of payload with its data sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub dsn: u64,
    pub wide: bool,
    pub length: u64,
}

impl Mappings {
    pub fn with_initial(&mut self, initial: u64) {
        self.initial = Some(initial);
    }

    pub fn knows_initial(&self) -> bool {
        self.initial.is_some()
    }

    pub fn any(&self) -> bool {
        self.last.is_some()
    }

    /// The option came in a packet with the payload `start..end`. True: it is new.
    pub fn heard(&mut self, map: Map, start: u64, end: u64, most: u64) -> bool {
        !self.repeats(&map) && self.heard_new(map, start, end, most)
    }

    /// It is the option of the packet before, and has told all that it tells.
    #[inline(always)]
    pub fn repeats(&self, map: &Map) -> bool {
        self.initial.is_some() && self.last.as_ref() == Some(map)
    }

    fn heard_new(&mut self, map: Map, start: u64, end: u64, most: u64) -> bool {
        let fresh = self.last != Some(map);
        self.last = Some(map);
        if map.length == 0 || map.infinite {
            return fresh;
        }
        if self.initial.is_none() {
            self.narrow(map, start, end);
            if !self.early.iter().any(|(known, _)| *known == map) {
                self.early.push_back((map, start));
            }
            if self.early.len() as u64 > most {
                self.early.pop_front();
            }
        }
        let Some(initial) = self.initial else { return fresh };
        for (early, at) in std::mem::take(&mut self.early) {
            self.add(early, at, initial, most);
        }
        self.add(map, start, initial, most);
        fresh
    }

    fn add(&mut self, map: Map, start: u64, initial: u64, most: u64) {
        // The option's number is relative and has 32 bits: the one nearest to this packet.
        let from = expand(start, (initial as u32).wrapping_add(map.ssn));
        let mapping = Mapping { start: from, end: from.saturating_add(u64::from(map.length)), dsn: map.dsn, wide: map.wide };
        if self.known.back() == Some(&mapping) || self.known.iter().any(|known| *known == mapping) {
            return;
        }
        if self.known.len() as u64 >= most {
            self.known.pop_front();
        }
        self.known.push_back(mapping);
        self.newest = Some(mapping);
    }

    /// A packet with an option lies inside its mapping: that bounds where the mapping begins.
    fn narrow(&mut self, map: Map, start: u64, end: u64) {
        if end <= start {
            return;
        }
        let most = start.wrapping_sub(u64::from(map.ssn));
        let least = end.wrapping_sub(u64::from(map.length)).wrapping_sub(u64::from(map.ssn));
        let (low, high) = match self.bounds {
            // Bounds that exclude each other were of another connection, or damage: begin again.
            Some((low, high)) if least <= high && most >= low => (low.max(least), high.min(most)),
            _ => (least, most),
        };
        self.inside |= self.bounds.is_some_and(|(_, before)| before != most);
        self.bounds = Some((low, high));
        // Version 0 has a mapping on its first packet only: there each says where all begin.
        let again = self.before.replace(map).is_some_and(|before| before != map);
        if low == high || (again && !self.inside) {
            self.initial = Some(high);
        }
    }

    /// The first data sequence number of `start..end`, of 64 bits, if the newest mapping holds all of it.
    #[inline(always)]
    pub fn whole(&self, start: u64, end: u64) -> Option<u64> {
        let newest = self.newest?;
        let holds = newest.wide && newest.start <= start && start < newest.end && end <= newest.end;
        holds.then(|| newest.dsn.wrapping_add(start - newest.start))
    }

    /// The first stretch of `start..end`; None: no mapping holds its first byte.
    #[inline(always)]
    pub fn stretch(&self, start: u64, end: u64) -> Option<Stretch> {
        let mapping = match self.newest {
            Some(newest) if newest.holds(start) => newest,
            _ => self.older(start)?,
        };
        Some(Stretch {
            dsn: mapping.dsn.wrapping_add(start - mapping.start),
            wide: mapping.wide,
            length: end.min(mapping.end) - start,
        })
    }

    #[inline(never)]
    fn older(&self, start: u64) -> Option<Mapping> {
        self.known.iter().rev().find(|known| known.holds(start)).copied()
    }

    /// How many bytes from `start` on no mapping holds.
    #[inline(never)]
    pub fn hole(&self, start: u64, end: u64) -> u64 {
        let next = self.known.iter().filter(|known| known.start > start).map(|known| known.start).min();
        next.unwrap_or(end).min(end) - start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(dsn: u64, ssn: u32, length: u32) -> Map {
        Map { dsn, wide: true, ssn, length, infinite: false }
    }

    #[test]
    fn one_mapping_spans_packets() {
        let mut mappings = Mappings::default();
        mappings.with_initial(999);
        assert!(mappings.heard(map(5000, 1, 300), 1000, 1100, 9));
        assert!(!mappings.heard(map(5000, 1, 300), 1100, 1200, 9));
        assert_eq!(mappings.stretch(1100, 1400), Some(Stretch { dsn: 5100, wide: true, length: 200 }));
        assert_eq!(mappings.stretch(1300, 1400), None);
        assert_eq!(mappings.hole(1300, 1400), 100);
    }

    #[test]
    fn the_initial_number_is_found_at_the_first_border() {
        let mut mappings = Mappings::default();
        mappings.heard(map(5000, 1, 300), 1100, 1200, 9);
        assert_eq!(mappings.stretch(1100, 1200), None);
        mappings.heard(map(5000, 1, 300), 1200, 1300, 9);
        assert!(!mappings.knows_initial());
        mappings.heard(map(9000, 301, 300), 1300, 1400, 9);
        assert_eq!(mappings.stretch(1300, 1400), Some(Stretch { dsn: 9000, wide: true, length: 100 }));
    }
}
