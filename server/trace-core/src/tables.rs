//! The tables `totals`, `bins`, `waits`, `rtts` and `packets`; docs/reference/captures.md says what each column is.

use std::collections::BTreeMap;

use crate::assemble::{assemble, Made};
use crate::bins::{Level, Owner, Row};
use crate::columns::Table;
use crate::engine::Engine;
use crate::out::Packet;
use crate::samples::Values;
use crate::verdict::{Verdict, OPENER, RESPONDER};
use crate::waiting::UNKNOWN;

pub fn bins(engine: &Engine, verdict: &Verdict) -> Table {
    let rows = assemble(engine, verdict, &engine.out.bins.rows);
    let mut table = Table::of(rows.len());
    owners(&mut table, &rows);
    table.add("bin_start_utc_ns", rows.iter().map(|row| row.bin.start));
    table.add("packets", rows.iter().map(|row| u32::try_from(row.bin.packets).unwrap_or(u32::MAX)));
    counts(&mut table, &rows);
    table
}

pub fn totals(engine: &Engine, verdict: &Verdict) -> Table {
    let mut sums = Vec::new();
    for (number, flow) in engine.flows.iter().enumerate() {
        for (side, one) in flow.sides.iter().enumerate() {
            sums.push(Row { owner: Owner::Subflow(number as u32, side as u8), bin: one.meter.total });
        }
    }
    for (number, connection) in engine.connections.iter().enumerate() {
        for (direction, level) in connection.levels.iter().enumerate() {
            sums.push(Row { owner: Owner::Connection(number as u32, direction as u8), bin: level.meter.total });
        }
    }
    let rows = assemble(engine, verdict, &sums);
    let mut table = Table::of(rows.len());
    owners(&mut table, &rows);
    table.add("packets", rows.iter().map(|row| row.bin.packets));
    counts(&mut table, &rows);
    let quantiles: Vec<_> = rows.iter().map(|row| quantiles(engine, verdict, row)).collect();
    table.add_some("rtt_median_ns", quantiles.iter().map(|both| both.0));
    table.add_some("rtt_p95_ns", quantiles.iter().map(|both| both.1));
    table
}

fn quantiles(engine: &Engine, verdict: &Verdict, row: &Made) -> (Option<i64>, Option<i64>) {
    if row.rtt.samples == 0 {
        return (None, None);
    }
    let of = |number: u32| {
        let flow = &engine.flows[number as usize];
        flow.sides[usize::from(row.direction ^ u8::from(flow.flip))].values[usize::from(row.method)].kept()
    };
    let mut values = match row.subflow {
        Some(number) => of(number),
        None => {
            let connection = &engine.connections[verdict.remaining[row.connection as usize] as usize];
            connection.members.iter().flat_map(|number| of(*number)).collect()
        }
    };
    (Values::quantile(&mut values, 50), Values::quantile(&mut values, 95))
}

fn owners(table: &mut Table, rows: &[Made]) {
    table.add("connection", rows.iter().map(|row| row.connection));
    table.add_some("subflow", rows.iter().map(|row| row.subflow));
    table.add("direction", rows.iter().map(|row| row.direction));
}

fn counts(table: &mut Table, rows: &[Made]) {
    table.add("payload_bytes", rows.iter().map(|row| row.bin.payload));
    table.add("goodput_bytes", rows.iter().map(|row| row.bin.goodput));
    table.add_some("share", rows.iter().map(|row| row.share));
    table.add("acked_bytes", rows.iter().map(|row| row.bin.acked));
    table.add("new_bytes", rows.iter().map(|row| row.bin.new));
    table.add("duplicate_bytes", rows.iter().map(|row| row.bin.duplicate));
    table.add("duplicate_packets", rows.iter().map(|row| row.bin.duplicate_packets));
    table.add("hole_fill_bytes", rows.iter().map(|row| row.bin.hole_fill));
    table.add("hole_fill_packets", rows.iter().map(|row| row.bin.hole_fill_packets));
    table.add("reinjected_bytes", rows.iter().map(|row| row.bin.reinjected));
    table.add("unmapped_bytes", rows.iter().map(|row| row.bin.unmapped));
    table.add("unseen_bytes", rows.iter().map(|row| row.bin.unseen));
    table.add_some("rtt_method", rows.iter().map(|row| (row.rtt.samples > 0).then_some(row.method)));
    table.add("rtt_samples", rows.iter().map(|row| row.rtt.samples));
    let some = |row: &Made, value: i64| (row.rtt.samples > 0).then_some(value);
    table.add_some("rtt_min_ns", rows.iter().map(|row| some(row, row.rtt.least)));
    table.add_some("rtt_mean_ns", rows.iter().map(|row| row.rtt.mean()));
    table.add_some("rtt_max_ns", rows.iter().map(|row| some(row, row.rtt.most)));
    table.add_some("queueing_delay_ns", rows.iter().map(|row| row.queueing));
    table.add_some("rtt_normalised", rows.iter().map(|row| row.normalised));
    let most = |level: &Level| (level.count > 0).then_some(level.most);
    let last = |level: &Level| (level.count > 0).then_some(level.last);
    let least = |level: &Level| (level.count > 0).then_some(level.least);
    let mean = |level: &Level| (level.count > 0).then(|| level.sum / u64::from(level.count));
    table.add_some("in_flight_max_bytes", rows.iter().map(|row| most(&row.flight)));
    table.add_some("in_flight_mean_bytes", rows.iter().map(|row| mean(&row.flight)));
    table.add_some("reorder_queue_max_bytes", rows.iter().map(|row| most(&row.bin.queue)));
    table.add_some("reorder_queue_last_bytes", rows.iter().map(|row| last(&row.bin.queue)));
    table.add_some("receive_window_min_bytes", rows.iter().map(|row| least(&row.bin.window)));
    table.add_some("receive_window_last_bytes", rows.iter().map(|row| last(&row.bin.window)));
}

/// How long packets waited at the data level, where the capture was made at their receiver.
pub fn waits(engine: &Engine, verdict: &Verdict) -> Table {
    let mut counts: BTreeMap<(u32, u32, u8, u32), u64> = BTreeMap::new();
    let mut add = |number: u32, side: u8, wait: u32, packets: u64| {
        let flow = &engine.flows[number as usize];
        let direction = side ^ u8::from(flow.flip);
        let Some(connection) = verdict.numbers[flow.connection as usize] else { return };
        let receiver = [RESPONDER, OPENER][usize::from(direction)];
        if packets > 0 && verdict.vantages[connection as usize] == receiver {
            *counts.entry((connection, number, direction, wait)).or_default() += packets;
        }
    };
    for (number, flow) in engine.flows.iter().enumerate() {
        for (side, one) in flow.sides.iter().enumerate() {
            add(number as u32, side as u8, 0, one.prompt);
        }
    }
    for level in engine.connections.iter().flat_map(|connection| &connection.levels) {
        level.waiting.counts.iter().for_each(|((number, side, wait), packets)| add(*number, *side, *wait, *packets));
    }
    let mut table = Table::of(counts.len());
    table.add("connection", counts.keys().map(|key| key.0));
    table.add("subflow", counts.keys().map(|key| key.1));
    table.add("direction", counts.keys().map(|key| key.2));
    table.add_some("wait_ms", counts.keys().map(|key| (key.3 != UNKNOWN).then_some(key.3)));
    table.add("packets", counts.values().copied());
    table
}

/// How often each RTT was sampled: of the values that are kept for the quantiles, so nothing is counted while packets pass.
pub fn rtts(engine: &Engine, verdict: &Verdict) -> Table {
    let mut rows: Vec<(u32, u32, u8, u32, u64)> = Vec::new();
    for (number, flow) in engine.flows.iter().enumerate() {
        let Some(connection) = verdict.numbers[flow.connection as usize] else { continue };
        let Some(methods) = verdict.methods[connection as usize] else { continue };
        for direction in 0..2_u8 {
            let values = &flow.sides[usize::from(direction ^ u8::from(flow.flip))].values[methods[usize::from(direction)]];
            for (rtt, samples) in values.histogram() {
                rows.push((connection, number as u32, direction, rtt, samples));
            }
        }
    }
    rows.sort_unstable();
    let mut table = Table::of(rows.len());
    table.add("connection", rows.iter().map(|row| row.0));
    table.add("subflow", rows.iter().map(|row| row.1));
    table.add("direction", rows.iter().map(|row| row.2));
    table.add("rtt_ms", rows.iter().map(|row| row.3));
    table.add("samples", rows.iter().map(|row| row.4));
    table
}

pub fn packets(engine: &Engine, verdict: &Verdict) -> Table {
    let rows: &[Packet] = engine.out.packets.as_deref().unwrap_or_default();
    let mut table = Table::of(rows.len());
    let flow = |row: &Packet| &engine.flows[row.subflow as usize];
    table.add("packet", rows.iter().map(|row| row.packet));
    table.add("time_utc_ns", rows.iter().map(|row| row.time));
    let connection = |row: &Packet| verdict.numbers[flow(row).connection as usize].unwrap_or(u32::MAX);
    table.add("connection", rows.iter().map(connection));
    table.add("subflow", rows.iter().map(|row| row.subflow));
    table.add("direction", rows.iter().map(|row| row.side ^ u8::from(flow(row).flip)));
    table.add("flags", rows.iter().map(|row| row.flags));
    table.add("sequence", rows.iter().map(|row| row.sequence));
    table.add("acknowledgement", rows.iter().map(|row| row.acknowledgement));
    table.add("payload_bytes", rows.iter().map(|row| row.payload));
    table.add_some("window_bytes", rows.iter().map(|row| row.window));
    table.add_some("dsn", rows.iter().map(|row| row.dsn));
    table.add_some("data_ack", rows.iter().map(|row| row.data_ack));
    table.add("goodput_bytes", rows.iter().map(|row| row.goodput));
    table.add("new_bytes", rows.iter().map(|row| row.new));
    table.add("duplicate_bytes", rows.iter().map(|row| row.duplicate));
    table.add("hole_fill_bytes", rows.iter().map(|row| row.hole_fill));
    table.add("reinjected_bytes", rows.iter().map(|row| row.reinjected));
    table.add_some("ack_rtt_ns", rows.iter().map(|row| row.ack_rtt));
    table.add_some("timestamp_rtt_ns", rows.iter().map(|row| row.timestamp_rtt));
    table.add_some("in_flight_bytes", rows.iter().map(|row| row.flight[0]));
    table.add_some("in_flight_echo_bytes", rows.iter().map(|row| row.flight[1]));
    table.add_some("reorder_queue_bytes", rows.iter().map(|row| row.queue));
    table
}
