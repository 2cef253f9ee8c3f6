//! The tables that come out, as columns; docs/reference/captures.md says what each is.

use std::collections::BTreeMap;

use crate::bins::{assemble, Level, Made, Owner, Row};
use crate::connection::{Connection, UNKNOWN_WAIT};
use crate::engine::Engine;
use crate::flow::Flow;
use crate::out::Packet;
use crate::rtt::Values;
use crate::segment::Sum;

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
    table.add_some("wait_ms", counts.keys().map(|key| (key.3 != UNKNOWN_WAIT).then_some(key.3)));
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

// ---------------------------------------------------------------------------------------------------------------------
// The tables `connections`, `subflows`, `events` and `problems`; docs/reference/captures.md says what each column is.

/// Of who opened the connection, then of the other end, on this subflow.
fn ends(flow: &Flow) -> [([u8; 16], u16); 2] {
    let (source, destination) = (flow.key.source(), flow.key.destination());
    if flow.flip {
        [destination, source]
    } else {
        [source, destination]
    }
}

pub fn connections(engine: &Engine, verdict: &Verdict) -> Table {
    let rows: Vec<(&Connection, &Flow)> = verdict
        .remaining
        .iter()
        .map(|old| &engine.connections[*old as usize])
        .map(|one| (one, &engine.flows[one.first_flow as usize]))
        .collect();
    let members = |one: &Connection| one.members.iter().map(|member| &engine.flows[*member as usize]).collect::<Vec<_>>();
    let mut table = Table::of(rows.len());
    table.add("connection", 0..rows.len() as u32);
    table.add("multipath", rows.iter().map(|row| row.0.multipath));
    table.add_some("version", rows.iter().map(|row| row.0.version));
    table.add("opener_address", rows.iter().map(|row| ends(row.1)[0].0));
    table.add("responder_address", rows.iter().map(|row| ends(row.1)[1].0));
    table.add("opener_port", rows.iter().map(|row| ends(row.1)[0].1));
    table.add("responder_port", rows.iter().map(|row| ends(row.1)[1].1));
    let least = |one: &Connection| members(one).iter().map(|flow| flow.start).min().unwrap_or_default();
    let most = |one: &Connection| members(one).iter().map(|flow| flow.end).max().unwrap_or_default();
    table.add("start_utc_ns", rows.iter().map(|row| least(row.0)));
    table.add("end_utc_ns", rows.iter().map(|row| most(row.0)));
    table.add("opener_known", rows.iter().map(|row| row.1.opener_known));
    table.add("handshake_seen", rows.iter().map(|row| row.1.handshake.syns > 0 && row.1.handshake.established.is_some()));
    table.add_some("handshake_rtt_ns", rows.iter().map(|row| row.1.handshake.rtt()));
    table.add("vantage", verdict.vantages.iter().copied());
    table.add("uncertain", rows.iter().map(|row| row.0.uncertain));
    table.add("disordered", rows.iter().map(|row| row.0.disordered));
    table.add("fallback", rows.iter().map(|row| row.0.fallback));
    table.add("closed_by", rows.iter().map(|row| closed_by(row.0, &members(row.0))));
    table.add("subflows", rows.iter().map(|row| row.0.members.len() as u32));
    table.add_some("opener_token", rows.iter().map(|row| row.0.levels[0].token));
    table.add_some("responder_token", rows.iter().map(|row| row.0.levels[1].token));
    table
}

/// Code of `closed_by` of a connection.
fn closed_by(connection: &Connection, members: &[&Flow]) -> u8 {
    if connection.levels.iter().any(|level| level.fast_closed) {
        return 2;
    }
    if connection.levels.iter().all(|level| level.fin.is_some()) {
        return 1;
    }
    let codes: Vec<u8> = members.iter().map(|flow| flow.closed_by()).collect();
    if codes.contains(&0) {
        return 0;
    }
    codes.iter().copied().max().unwrap_or(0)
}

pub fn subflows(engine: &Engine, verdict: &Verdict) -> Table {
    let rows = &engine.flows;
    let mut table = Table::of(rows.len());
    table.add("subflow", 0..rows.len() as u32);
    table.add("connection", rows.iter().map(|row| verdict.numbers[row.connection as usize].unwrap_or(u32::MAX)));
    table.add("number", rows.iter().map(|row| row.number));
    table.add("opener_address", rows.iter().map(|row| ends(row)[0].0));
    table.add("responder_address", rows.iter().map(|row| ends(row)[1].0));
    table.add("opener_port", rows.iter().map(|row| ends(row)[0].1));
    table.add("responder_port", rows.iter().map(|row| ends(row)[1].1));
    table.add("opened_by_responder", rows.iter().map(|row| row.flip));
    table.add("start_utc_ns", rows.iter().map(|row| row.start));
    table.add("end_utc_ns", rows.iter().map(|row| row.end));
    table.add("joined_by", rows.iter().map(|row| row.joined as u8));
    table.add_some("syn_utc_ns", rows.iter().map(|row| row.handshake.answered.or(row.handshake.last_syn.map(|syn| syn.0))));
    table.add_some("established_utc_ns", rows.iter().map(|row| row.handshake.established));
    table.add_some("syn_to_synack_ns", rows.iter().map(|row| row.handshake.to_answer()));
    table.add_some("synack_to_ack_ns", rows.iter().map(|row| row.handshake.to_established()));
    table.add_some("handshake_rtt_ns", rows.iter().map(|row| row.handshake.rtt()));
    let since = |row: &Flow| {
        let syn = engine.connections[row.connection as usize].syn?;
        row.handshake.established.filter(|_| row.join).map(|time| time.saturating_sub(syn))
    };
    table.add_some("join_delay_ns", rows.iter().map(since));
    table.add("backup", rows.iter().map(|row| row.backup));
    let side = |row: &Flow, end: usize| end ^ usize::from(row.flip);
    table.add_some("opener_address_id", rows.iter().map(|row| row.sides[side(row, 0)].address_id));
    table.add_some("responder_address_id", rows.iter().map(|row| row.sides[side(row, 1)].address_id));
    table.add_some("opener_mss", rows.iter().map(|row| row.sides[side(row, 0)].mss));
    table.add_some("responder_mss", rows.iter().map(|row| row.sides[side(row, 1)].mss));
    table.add("timestamps", rows.iter().map(|row| row.timestamps));
    let again = |row: &Flow| row.handshake.syns.saturating_sub(1) + row.handshake.answers.saturating_sub(1);
    table.add("syn_retransmissions", rows.iter().map(again));
    table.add("closed_by", rows.iter().map(Flow::closed_by));
    table.add_some("reset_reason", rows.iter().map(|row| row.reset_reason));
    table
}

pub fn events(engine: &Engine, verdict: &Verdict) -> Table {
    let rows = &engine.out.events;
    let mut table = Table::of(rows.len());
    table.add("time_utc_ns", rows.iter().map(|row| row.time));
    table.add("packet", rows.iter().map(|row| row.packet));
    let connection = |subflow: u32| verdict.numbers[engine.flows[subflow as usize].connection as usize].unwrap_or(u32::MAX);
    table.add("connection", rows.iter().map(|row| connection(row.subflow)));
    table.add("subflow", rows.iter().map(|row| row.subflow));
    table.add("direction", rows.iter().map(|row| row.side ^ u8::from(engine.flows[row.subflow as usize].flip)));
    table.add("kind", rows.iter().map(|row| row.kind as u8));
    let value = |row: &crate::opening::Event| match row.kind {
        crate::opening::Kind::Likeness => Some(i64::from(connection(row.subflow))),
        _ => row.value,
    };
    table.add_some("value", rows.iter().map(value));
    table.add_some("address", rows.iter().map(|row| row.address.map(|both| both.0)));
    table.add_some("port", rows.iter().map(|row| row.address.and_then(|both| both.1)));
    table
}

pub fn problems(engine: &Engine) -> Table {
    let rows = &engine.out.problems.rows;
    let mut table = Table::of(rows.len());
    table.add("packet", rows.iter().map(|row| row.packet));
    table.add("offset_bytes", rows.iter().map(|row| row.offset));
    table.add("kind", rows.iter().map(|row| row.kind as u8));
    table
}

// ---------------------------------------------------------------------------------------------------------------------
// What is decided when the whole file was read: which connections there are, at which end the capture was made, which RTT counts.

/// Codes of `vantage`.
pub const UNKNOWN: u8 = 0;
pub const OPENER: u8 = 1;
pub const RESPONDER: u8 = 2;

/// Methods of RTTs: places in a bin's pairs, and codes of `rtt_method`.
pub const BY_ACK: usize = 0;
pub const BY_TIMESTAMP: usize = 1;

#[derive(Debug)]
pub struct Verdict {
    /// New number of each connection; None: a part of another.
    pub numbers: Vec<Option<u32>>,
    /// Old numbers of those that remain.
    pub remaining: Vec<u32>,
    pub vantages: Vec<u8>,
    /// Of each direction, the method.
    pub methods: Vec<Option<[usize; 2]>>,
}

pub fn decide(engine: &Engine) -> Verdict {
    let mut numbers = vec![None; engine.connections.len()];
    let mut remaining = Vec::new();
    for (old, connection) in engine.connections.iter().enumerate() {
        if connection.merged.is_none() {
            numbers[old] = Some(remaining.len() as u32);
            remaining.push(old as u32);
        }
    }
    for old in 0..engine.connections.len() {
        if numbers[old].is_none() {
            numbers[old] = numbers[engine.root(old as u32) as usize];
        }
    }
    let vantages: Vec<u8> = remaining.iter().map(|old| vantage(engine, *old)).collect();
    let methods = vantages.iter().map(|vantage| methods(*vantage)).collect();
    Verdict { numbers, remaining, vantages, methods }
}

/// The end towards which the smaller delay was seen, in handshakes or behind them: who is near answers at once. Where delays tell nothing: the
/// end whose checksums the network card fills in behind the capture; whose packets no router has passed on; behind which packets get lost.
fn vantage(engine: &Engine, connection: u32) -> u8 {
    let members = &engine.connections[connection as usize].members;
    let mut towards: [Option<i64>; 2] = [None; 2];
    let [mut begun, mut first_hop, mut loss] = [[false; 2]; 3];
    for flow in members.iter().map(|member| &engine.flows[*member as usize]) {
        let opener = usize::from(flow.flip);
        let mut seen = |end: usize, delay: Option<i64>| {
            towards[end] = towards[end].into_iter().chain(delay).min();
        };
        seen(1 - opener, flow.handshake.to_answer());
        seen(opener, flow.handshake.to_established());
        for (side, one) in flow.sides.iter().enumerate() {
            let own = side ^ opener;
            // Acknowledgements come from the other end, echoes from this one.
            for (method, end) in [(BY_ACK, 1 - own), (BY_TIMESTAMP, own)] {
                seen(end, one.values[method].low());
            }
            begun[own] |= one.checksums[Sum::Begun as usize] > 0;
            first_hop[own] |= matches!(one.hops, 64 | 128 | 255) && flow.sides[1 - side].hops > 0;
            let total = &one.meter.total;
            loss[own] |= total.duplicate > 0 && total.hole_fill == 0;
            loss[1 - own] |= total.hole_fill > 0 && total.duplicate == 0;
        }
    }
    if let [Some(opener), Some(responder)] = towards {
        if opener != responder {
            return if opener < responder { OPENER } else { RESPONDER };
        }
    }
    for near in [begun, first_hop, loss] {
        match near {
            [true, false] => return OPENER,
            [false, true] => return RESPONDER,
            _ => {}
        }
    }
    UNKNOWN
}

/// None: which of them saw the whole path cannot be told.
fn methods(vantage: u8) -> Option<[usize; 2]> {
    match vantage {
        OPENER => Some([BY_ACK, BY_TIMESTAMP]),
        RESPONDER => Some([BY_TIMESTAMP, BY_ACK]),
        _ => None,
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Tables as columns of plain little-endian numbers, with Arrow's validity bitmaps.

/// A number that a column holds.
pub trait Plain: Copy + Default {
    const DTYPE: &'static str;
    fn put(self, into: &mut Vec<u8>);
}

macro_rules! plain {
    ($($kind:ty => $dtype:literal),*) => {
        $(impl Plain for $kind {
            const DTYPE: &'static str = $dtype;

            #[inline(always)]
            fn put(self, into: &mut Vec<u8>) {
                into.extend_from_slice(&self.to_le_bytes());
            }
        })*
    };
}

plain!(u8 => "u1", u16 => "<u2", u32 => "<u4", u64 => "<u8", i64 => "<i8", f64 => "<f8");

impl Plain for bool {
    const DTYPE: &'static str = "u1";

    fn put(self, into: &mut Vec<u8>) {
        into.push(u8::from(self));
    }
}

impl Plain for [u8; 16] {
    const DTYPE: &'static str = "V16";

    fn put(self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self);
    }
}

#[derive(Debug)]
pub struct Column {
    pub name: &'static str,
    pub dtype: &'static str,
    pub data: Vec<u8>,
    pub validity: Option<Vec<u8>>,
}

/// Columns of equal length.
#[derive(Debug, Default)]
pub struct Table {
    pub rows: usize,
    pub columns: Vec<Column>,
}

impl Table {
    pub fn of(rows: usize) -> Self {
        Table { rows, columns: Vec::new() }
    }

    /// Every row has a value.
    pub fn add<T: Plain>(&mut self, name: &'static str, values: impl Iterator<Item = T>) {
        let mut data = Vec::with_capacity(self.rows * std::mem::size_of::<T>());
        values.for_each(|value| value.put(&mut data));
        self.columns.push(Column { name, dtype: T::DTYPE, data, validity: None });
    }

    /// Some rows may have none.
    pub fn add_some<T: Plain>(&mut self, name: &'static str, values: impl Iterator<Item = Option<T>>) {
        let mut data = Vec::with_capacity(self.rows * std::mem::size_of::<T>());
        let mut validity = vec![0_u8; self.rows.div_ceil(8)];
        let mut all = true;
        for (row, value) in values.enumerate() {
            match value {
                Some(_) => validity[row / 8] |= 1 << (row % 8),
                None => all = false,
            }
            value.unwrap_or_default().put(&mut data);
        }
        let validity = (!all).then_some(validity);
        self.columns.push(Column { name, dtype: T::DTYPE, data, validity });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_none_is_zero_under_an_unset_bit() {
        let mut table = Table::of(3);
        table.add_some("a", [Some(7_u16), None, Some(9)].into_iter());
        table.add("b", [true, false, true].into_iter());
        assert_eq!(table.columns[0].data, [7, 0, 0, 0, 9, 0]);
        assert_eq!(table.columns[0].validity, Some(vec![0b101]));
        assert_eq!(table.columns[1].validity, None);
        assert_eq!(table.columns[1].data, [1, 0, 1]);
    }
}
