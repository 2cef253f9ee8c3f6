//! One connection: its two directions at the data level, and what is known of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::bins::Meter;
use crate::flow::Place;
use crate::options::Map;
use crate::ranges::{expand, Ranges, BASE};
use crate::rtt::milliseconds_begun;

/// One direction at the data level. Numbers are relative to `origin` and begin at `BASE`.
#[derive(Debug, Default)]
pub struct Level {
    pub known: bool,
    /// All 64 bits of its numbers are known.
    pub wide: bool,
    origin: u64,
    pub ranges: Ranges,
    pub floor_known: bool,
    pub acked: Option<u64>,
    pub fin: Option<u64>,
    pub token: Option<u32>,
    pub fast_closed: bool,
    pub flight: [u64; 2],
    pub meter: Meter,
    /// Of the other end, before any number of this one is known.
    pub heard_ack: Option<(u64, bool)>,
    /// How many subflows hold payload that cannot be placed before their initial sequence number is known.
    pub waits: u32,
    pub waiting: Waiting,
}

/// Beyond it a number is damage.
const MOST_JUMP: i64 = 1 << 32;

impl Level {
    /// The first data sequence number that comes.
    pub fn begin(&mut self, dsn: u64, wide: bool, floor_known: bool) {
        self.known = true;
        self.wide = wide;
        self.origin = dsn;
        self.floor_known = floor_known;
        self.ranges = Ranges::from(BASE);
    }

    /// Relative number; None where nothing is known or it cannot be.
    #[inline(always)]
    pub fn relative(&self, dsn: u64, wide: bool) -> Option<u64> {
        if !self.known {
            return None;
        }
        let top = self.ranges.top();
        if wide && self.wide {
            let relative = dsn.wrapping_sub(self.origin).wrapping_add(BASE);
            let jump = relative.wrapping_sub(top) as i64;
            return (-MOST_JUMP..MOST_JUMP).contains(&jump).then_some(relative).filter(|one| *one < 1 << 62);
        }
        // Lower halves: relative numbers have the origin's distance in them.
        let low = (dsn as u32).wrapping_sub(self.origin as u32);
        Some(expand(top, low)).filter(|one| *one < 1 << 62)
    }

    /// Takes in what comes next at the data level; the relative number of its first byte. None, and nothing was done: it is something else.
    #[inline(always)]
    pub fn take_next(&mut self, dsn: u64, length: u64) -> Option<u64> {
        let relative = dsn.wrapping_sub(self.origin).wrapping_add(BASE);
        let next = self.known && self.wide && relative < 1 << 62 && self.ranges.take_next(relative, length);
        next.then_some(relative)
    }

    /// This DATA_ACK is the one before.
    #[inline(always)]
    pub fn acknowledged(&self, ack: u64, wide: bool) -> bool {
        wide && self.wide && self.acked == Some(ack.wrapping_sub(self.origin).wrapping_add(BASE))
    }

    /// A stretch of payload: relative number of its first byte, bytes that are new, and bytes that were here. None: it cannot be.
    pub fn place(&mut self, stretch: Stretch) -> Option<(u64, u64, u64)> {
        let relative = self.relative(stretch.dsn, stretch.wide)?;
        // Data from before the capture's first is new, and not remembered.
        let before = if self.floor_known { 0 } else { BASE.saturating_sub(relative).min(stretch.length) };
        let found = self.ranges.insert(relative + before, relative + stretch.length);
        Some((relative, found.new + before, found.seen))
    }

    /// The data sequence number itself.
    pub fn absolute(&self, relative: u64) -> u64 {
        let number = self.origin.wrapping_add(relative.wrapping_sub(BASE));
        if self.wide {
            number
        } else {
            number & 0xffff_ffff
        }
    }

    /// The number that comes next, as it would be sent, or the last that the other end named; and whether it has 64 bits.
    pub fn top(&self) -> Option<(u64, bool)> {
        self.known.then(|| (self.absolute(self.ranges.top()), self.wide)).or(self.heard_ack)
    }
}

#[derive(Debug)]
pub struct Connection {
    /// It was found to be one with this other.
    pub merged: Option<u32>,
    pub first_flow: u32,
    /// Its subflows, in order of their joining.
    pub members: Vec<u32>,
    pub multipath: bool,
    pub version: Option<u8>,
    pub levels: [Level; 2],
    pub fallback: bool,
    pub uncertain: bool,
    /// Packets of it came too late to be put into the order of time.
    pub disordered: bool,
    /// Time of its first SYN.
    pub syn: Option<i64>,
}

impl Connection {
    pub fn new(first_flow: u32) -> Self {
        Connection {
            merged: None,
            first_flow,
            members: Vec::new(),
            multipath: false,
            version: None,
            levels: Default::default(),
            fallback: false,
            uncertain: false,
            disordered: false,
            syn: None,
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// From a subflow's sequence numbers to data sequence numbers. One mapping spans many packets, and all of them carry the same option:
// DSN = mapping's DSN + (sequence − mapping's sequence), never the option's own DSN.

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

// ---------------------------------------------------------------------------------------------------------------------
// How long each packet waits at the data level until all before it is there (RFC 8684 §3.3.1: what a receiver holds back).

/// A wait that cannot be told.
pub const UNKNOWN_WAIT: u32 = u32::MAX;

/// A packet that waits; in the order of what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    /// It waits for all numbers below.
    end: u64,
    packet: u64,
    time: i64,
    flow: u32,
    side: u8,
}

/// One direction's.
#[derive(Debug, Default)]
pub struct Waiting {
    held: BTreeSet<Held>,
    /// Packets by subflow, its end and milliseconds begun.
    pub counts: BTreeMap<(u32, u8, u32), u64>,
}

impl Waiting {
    /// A packet whose last new byte is below `end` came too early; false: there is no room for it.
    pub fn hold(&mut self, end: u64, packet: u64, time: i64, place: Place, most: u64) -> bool {
        let room = (self.held.len() as u64) < most && (self.counts.len() as u64) < most;
        if room {
            self.held.insert(Held { end, packet, time, flow: place.flow, side: place.side });
        } else {
            self.count(place.flow, place.side, UNKNOWN_WAIT);
        }
        room
    }

    /// All numbers below `next` are there, since `now`; None: since when cannot be told.
    #[inline(always)]
    pub fn release(&mut self, next: u64, now: Option<i64>) {
        if !self.held.is_empty() {
            self.release_held(next, now);
        }
    }

    #[inline(never)]
    fn release_held(&mut self, next: u64, now: Option<i64>) {
        while let Some(first) = self.held.first().copied().filter(|first| first.end <= next) {
            self.held.pop_first();
            self.count(first.flow, first.side, now.map_or(UNKNOWN_WAIT, |now| milliseconds_begun(now.saturating_sub(first.time))));
        }
    }

    fn count(&mut self, flow: u32, side: u8, wait: u32) {
        *self.counts.entry((flow, side, wait)).or_default() += 1;
    }
}

#[cfg(test)]
mod connection_tests {
    use super::*;

    #[test]
    fn numbers_of_both_widths_meet() {
        let mut level = Level::default();
        level.begin(0xffff_ffff_ffff_fff0, true, true);
        assert_eq!(level.relative(0xffff_ffff_ffff_fff0, true), Some(BASE));
        assert_eq!(level.relative(0x10, true), Some(BASE + 0x20));
        assert_eq!(level.relative(0x10, false), Some(BASE + 0x20));
        assert_eq!(level.absolute(BASE + 0x20), 0x10);
        assert_eq!(level.relative(0x8000_0000_0000_0000, true), None);
    }

    #[test]
    fn nothing_is_relative_to_nothing() {
        assert_eq!(Level::default().relative(5, true), None);
    }
}

#[cfg(test)]
mod mapping_tests {
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
