//! What is counted of one direction in one bin of time, and over the whole file.

use crate::limits::{Bounded, Limits};
use crate::samples::Sums;

/// A value of which the largest, the last and the mean are of interest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Level {
    pub count: u32,
    pub least: u64,
    pub most: u64,
    pub last: u64,
    pub sum: u64,
}

impl Level {
    #[inline(always)]
    pub fn add(&mut self, value: u64) {
        self.least = if self.count == 0 { value } else { self.least.min(value) };
        self.add_without_least(value);
        self.sum = self.sum.wrapping_add(value);
    }

    /// For what nobody asks the least of, nor the mean.
    #[inline(always)]
    pub fn add_peak(&mut self, value: u64) {
        self.add_without_least(value);
    }

    /// For what nobody asks the least of.
    #[inline(always)]
    pub fn add_mean(&mut self, value: u64) {
        self.add_without_least(value);
        self.sum = self.sum.wrapping_add(value);
    }

    #[inline(always)]
    fn add_without_least(&mut self, value: u64) {
        self.most = self.most.max(value);
        self.last = value;
        self.count = self.count.wrapping_add(1);
    }

    pub fn merge(&mut self, later: &Level) {
        if later.count == 0 {
            return;
        }
        self.least = if self.count == 0 { later.least } else { self.least.min(later.least) };
        self.most = self.most.max(later.most);
        self.last = later.last;
        self.sum = self.sum.saturating_add(later.sum);
        self.count = self.count.saturating_add(later.count);
    }
}

/// Counts of one bin; columns of `bins` and `totals` come from them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bin {
    pub start: i64,
    pub packets: u64,
    pub payload: u64,
    pub goodput: u64,
    pub acked: u64,
    pub new: u64,
    pub duplicate: u64,
    pub duplicate_packets: u32,
    pub hole_fill_packets: u32,
    pub hole_fill: u64,
    pub reinjected: u64,
    pub unmapped: u64,
    pub unseen: u64,
    /// From acknowledgements, and from timestamps.
    pub rtt: [Sums; 2],
    /// By the same two methods.
    pub flight: [Level; 2],
    pub queue: Level,
    pub window: Level,
}

impl Bin {
    pub fn merge(&mut self, later: &Bin) {
        self.packets += later.packets;
        self.payload = self.payload.saturating_add(later.payload);
        self.goodput = self.goodput.saturating_add(later.goodput);
        self.acked = self.acked.saturating_add(later.acked);
        self.new = self.new.saturating_add(later.new);
        self.duplicate = self.duplicate.saturating_add(later.duplicate);
        self.duplicate_packets = self.duplicate_packets.saturating_add(later.duplicate_packets);
        self.hole_fill_packets = self.hole_fill_packets.saturating_add(later.hole_fill_packets);
        self.hole_fill = self.hole_fill.saturating_add(later.hole_fill);
        self.reinjected = self.reinjected.saturating_add(later.reinjected);
        self.unmapped = self.unmapped.saturating_add(later.unmapped);
        self.unseen = self.unseen.saturating_add(later.unseen);
        for method in 0..2 {
            self.rtt[method].merge(&later.rtt[method]);
            self.flight[method].merge(&later.flight[method]);
        }
        self.queue.merge(&later.queue);
        self.window.merge(&later.window);
    }
}

/// Whose bin it is: a side's of a subflow, or a direction's of a connection. Which connection a subflow belongs to may be found later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Subflow(u32, u8),
    Connection(u32, u8),
}

#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub owner: Owner,
    pub bin: Bin,
}

/// All bins that are over, in order of their ends.
#[derive(Debug)]
pub struct Rows {
    pub rows: Vec<Row>,
    pub width: i64,
}

/// One direction's bin that is not over, and its total.
#[derive(Debug, Default)]
pub struct Meter {
    now: Bin,
    begun: bool,
    pub total: Bin,
}

impl Meter {
    /// The bin that `time` is in.
    #[inline(always)]
    pub fn at(&mut self, time: i64, rows: &mut Rows, owner: Owner, limits: &Limits, bounded: &mut Bounded) -> &mut Bin {
        if !self.begun || (time.wrapping_sub(self.now.start) as u64) >= rows.width as u64 {
            self.turn(time, rows, owner, limits, bounded);
        }
        &mut self.now
    }

    #[inline(never)]
    fn turn(&mut self, time: i64, rows: &mut Rows, owner: Owner, limits: &Limits, bounded: &mut Bounded) {
        self.close(rows, owner, limits, bounded);
        self.begun = true;
        self.now.start = time.div_euclid(rows.width).saturating_mul(rows.width);
    }

    /// What is found out later about a bin that may be over. Rows of one bin are added up.
    pub fn late(&mut self, bin: Bin, time: i64, rows: &mut Rows, owner: Owner, limits: &Limits, bounded: &mut Bounded) {
        let start = time.div_euclid(rows.width).saturating_mul(rows.width);
        if self.begun && self.now.start == start {
            self.now.merge(&bin);
            return;
        }
        self.total.merge(&bin);
        if (rows.rows.len() as u64) < limits.bins {
            rows.rows.push(Row { owner, bin: Bin { start, ..bin } });
        } else {
            bounded.reached("bins");
        }
    }

    /// Ends the bin.
    pub fn close(&mut self, rows: &mut Rows, owner: Owner, limits: &Limits, bounded: &mut Bounded) {
        if !self.begun {
            return;
        }
        self.begun = false;
        self.total.merge(&self.now);
        if (rows.rows.len() as u64) < limits.bins {
            rows.rows.push(Row { owner, bin: self.now });
        } else {
            bounded.reached("bins");
        }
        self.now = Bin::default();
    }
}
