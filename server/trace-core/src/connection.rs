//! One connection: its two directions at the data level, and what is known of it.

use crate::bins::Meter;
use crate::mapping::Stretch;
use crate::numbers::{expand, BASE};
use crate::ranges::Ranges;
use crate::waiting::Waiting;

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

#[cfg(test)]
mod tests {
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
