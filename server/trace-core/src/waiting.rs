//! How long each packet waits at the data level until all before it is there (RFC 8684 §3.3.1: what a receiver holds back).

use std::collections::{BTreeMap, BTreeSet};

use crate::samples::milliseconds_begun;
use crate::table::Place;

/// A wait that cannot be told.
pub const UNKNOWN: u32 = u32::MAX;

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
            self.count(place.flow, place.side, UNKNOWN);
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
            self.count(first.flow, first.side, now.map_or(UNKNOWN, |now| milliseconds_begun(now.saturating_sub(first.time))));
        }
    }

    fn count(&mut self, flow: u32, side: u8, wait: u32) {
        *self.counts.entry((flow, side, wait)).or_default() += 1;
    }
}
