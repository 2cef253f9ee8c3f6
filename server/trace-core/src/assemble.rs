//! From the counts of subflows' sides and connections' directions to rows: merged, ordered, with what follows from them.

use crate::bins::{Bin, Level, Owner, Row};
use crate::engine::Engine;
use crate::samples::Sums;
use crate::verdict::Verdict;

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
