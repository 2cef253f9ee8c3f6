//! The tables `connections`, `subflows`, `events` and `problems`; docs/reference/captures.md says what each column is.

use crate::columns::Table;
use crate::connection::Connection;
use crate::engine::Engine;
use crate::flow::Flow;
use crate::verdict::Verdict;

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
    let value = |row: &crate::events::Event| match row.kind {
        crate::events::Kind::Likeness => Some(i64::from(connection(row.subflow))),
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
