//! What is counted of one direction in one bin of time, and over the whole file; and the rows made of it.

use crate::engine::Engine;
use crate::out::{Bounded, Limits};
use crate::rtt::Sums;
use crate::tables::Verdict;

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

// ---------------------------------------------------------------------------------------------------------------------
// From the counts of subflows' sides and connections' directions to rows: merged, ordered, with what follows from them.

/// A row of `bins` or `totals`.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    pub connection: u32,
    pub subflow: Option<u32>,
    pub direction: u8,
    pub bin: Bin,
    pub method: u8,
    pub rtt: Sums,
    pub flight: Level,
    pub queueing: Option<i64>,
    pub normalised: Option<f64>,
    pub share: Option<f64>,
}

impl Made {
    fn key(&self) -> (u32, u32, u8, i64) {
        (self.connection, self.subflow.map_or(0, |subflow| subflow + 1), self.direction, self.bin.start)
    }
}

/// Sums over a connection's subflows in one bin of what has a mean of its own.
#[derive(Clone, Copy, Default)]
struct Weighted {
    queueing: f64,
    normalised: f64,
    samples: u32,
    normalised_samples: u32,
}

/// Rows of the subflows, then those of the connections from them.
pub fn assemble(engine: &Engine, verdict: &Verdict, rows: &[Row]) -> Vec<Made> {
    let mut own = Vec::new();
    let mut made: Vec<Made> = Vec::with_capacity(rows.len());
    for row in rows {
        match row.owner {
            Owner::Subflow(number, side) => {
                let flow = &engine.flows[number as usize];
                if let Some(connection) = verdict.numbers[flow.connection as usize] {
                    made.push(raw(connection, Some(number), side ^ u8::from(flow.flip), row.bin));
                }
            }
            Owner::Connection(number, direction) => {
                if let Some(connection) = verdict.numbers[number as usize] {
                    own.push(raw(connection, None, direction, row.bin));
                }
            }
        }
    }
    let mut made = merged(made);
    for one in &mut made {
        derive(engine, verdict, one);
    }
    let mut connections = summed(engine, verdict, &made, merged(own));
    share(&mut made, &connections);
    made.append(&mut connections);
    made.sort_by_key(Made::key);
    made
}

fn raw(connection: u32, subflow: Option<u32>, direction: u8, bin: Bin) -> Made {
    Made {
        connection,
        subflow,
        direction,
        bin,
        method: 0,
        rtt: Sums::default(),
        flight: Level::default(),
        queueing: None,
        normalised: None,
        share: None,
    }
}

/// In order, with one row for each bin (a clock that went back may have ended a bin more than once).
fn merged(mut rows: Vec<Made>) -> Vec<Made> {
    rows.sort_by_key(Made::key);
    rows.dedup_by(|later, kept| {
        let same = later.key() == kept.key();
        if same {
            kept.bin.merge(&later.bin);
        }
        same
    });
    rows
}

/// What follows for a subflow's row.
fn derive(engine: &Engine, verdict: &Verdict, one: &mut Made) {
    let Some(flow) = one.subflow.map(|subflow| &engine.flows[subflow as usize]) else { return };
    let Some(methods) = verdict.methods[one.connection as usize] else { return };
    let method = methods[usize::from(one.direction)];
    one.method = method as u8;
    one.rtt = one.bin.rtt[method];
    one.flight = one.bin.flight[method];
    let least = flow.sides[usize::from(one.direction ^ u8::from(flow.flip))].meter.total.rtt[method].least;
    if let Some(mean) = one.rtt.mean() {
        one.queueing = Some(mean.saturating_sub(least).max(0));
        one.normalised = flow.handshake.rtt().filter(|rtt| *rtt > 0).map(|rtt| mean as f64 / rtt as f64);
    }
}

/// A connection's rows: sums of its subflows', and its own where it has a data level of its own.
fn summed(engine: &Engine, verdict: &Verdict, subflows: &[Made], own: Vec<Made>) -> Vec<Made> {
    let mut parts: Vec<(Made, Weighted)> = Vec::with_capacity(subflows.len() + own.len());
    let multipath = |connection: u32| engine.connections[verdict.remaining[connection as usize] as usize].multipath;
    for one in subflows {
        let mut part = *one;
        part.subflow = None;
        if multipath(one.connection) {
            part.bin.acked = 0;
            part.bin.unseen = 0;
            part.bin.queue = Level::default();
            part.flight = Level::default();
        }
        let samples = one.rtt.samples;
        let weight = f64::from(samples);
        let weighted = Weighted {
            queueing: one.queueing.unwrap_or(0) as f64 * weight,
            normalised: one.normalised.unwrap_or(0.0) * weight,
            samples,
            normalised_samples: if one.normalised.is_some() { samples } else { 0 },
        };
        parts.push((part, weighted));
    }
    for mut one in own {
        if let Some(methods) = verdict.methods[one.connection as usize] {
            let method = methods[usize::from(one.direction)];
            one.method = method as u8;
            one.flight = one.bin.flight[method];
        }
        parts.push((one, Weighted::default()));
    }
    parts.sort_by_key(|part| part.0.key());
    parts.dedup_by(|later, kept| {
        let same = later.0.key() == kept.0.key();
        if same {
            kept.0.bin.merge(&later.0.bin);
            kept.0.rtt.merge(&later.0.rtt);
            kept.0.flight.merge(&later.0.flight);
            kept.1.queueing += later.1.queueing;
            kept.1.normalised += later.1.normalised;
            kept.1.samples = kept.1.samples.saturating_add(later.1.samples);
            kept.1.normalised_samples = kept.1.normalised_samples.saturating_add(later.1.normalised_samples);
        }
        same
    });
    parts
        .into_iter()
        .map(|(mut one, weighted)| {
            let mean = |sum: f64, count: u32| (count > 0).then(|| sum / f64::from(count));
            one.queueing = mean(weighted.queueing, weighted.samples).map(|mean| mean as i64);
            one.normalised = mean(weighted.normalised, weighted.normalised_samples);
            one.share = (one.bin.goodput > 0).then_some(1.0);
            one
        })
        .collect()
}

/// Each subflow's part of the connection's goodput in the same bin. `connections` is in order.
fn share(subflows: &mut [Made], connections: &[Made]) {
    for one in subflows {
        let key = (one.connection, 0, one.direction, one.bin.start);
        if let Ok(place) = connections.binary_search_by_key(&key, Made::key) {
            let all = connections[place].bin.goodput;
            one.share = (all > 0).then(|| one.bin.goodput as f64 / all as f64);
        }
    }
}
