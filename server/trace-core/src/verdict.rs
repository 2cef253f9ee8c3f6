//! What is decided when the whole file was read: which connections there are, at which end the capture was made, which RTT counts.

use crate::engine::Engine;

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
    pub methods: Vec<[usize; 2]>,
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
    let methods = remaining.iter().zip(&vantages).map(|(old, vantage)| methods(engine, *old, *vantage)).collect();
    Verdict { numbers, remaining, vantages, methods }
}

/// The end whose part of the handshake is shorter is near; without one, the end towards which the smallest delay was seen.
fn vantage(engine: &Engine, connection: u32) -> u8 {
    let members = &engine.connections[connection as usize].members;
    let flows = || members.iter().map(|member| &engine.flows[*member as usize]);
    for flow in flows() {
        if let Some((answer, established)) = flow.handshake.to_answer().zip(flow.handshake.to_established()) {
            if answer != established {
                return if (answer > established) != flow.flip { OPENER } else { RESPONDER };
            }
        }
    }
    let mut towards: [Option<i64>; 2] = [None; 2];
    for flow in flows() {
        for (side, one) in flow.sides.iter().enumerate() {
            // Acknowledgements come from the other end, echoes from this one.
            for (method, end) in [(BY_ACK, 1 - side), (BY_TIMESTAMP, side)] {
                let sums = one.meter.total.rtt[method];
                if sums.samples > 0 {
                    let end = end ^ usize::from(flow.flip);
                    towards[end] = Some(towards[end].map_or(sums.least, |least| least.min(sums.least)));
                }
            }
        }
    }
    match towards {
        [Some(opener), Some(responder)] if opener < responder => OPENER,
        [Some(opener), Some(responder)] if opener > responder => RESPONDER,
        _ => UNKNOWN,
    }
}

fn methods(engine: &Engine, connection: u32, vantage: u8) -> [usize; 2] {
    match vantage {
        OPENER => [BY_ACK, BY_TIMESTAMP],
        RESPONDER => [BY_TIMESTAMP, BY_ACK],
        _ => std::array::from_fn(|direction| larger(engine, connection, direction)),
    }
}

/// The method whose smallest sample is larger: the other one sees the near end only.
fn larger(engine: &Engine, connection: u32, direction: usize) -> usize {
    let mut least: [Option<i64>; 2] = [None; 2];
    for member in &engine.connections[connection as usize].members {
        let flow = &engine.flows[*member as usize];
        let side = &flow.sides[direction ^ usize::from(flow.flip)];
        for (method, place) in least.iter_mut().enumerate() {
            let sums = side.meter.total.rtt[method];
            if sums.samples > 0 {
                *place = Some(place.map_or(sums.least, |least| least.min(sums.least)));
            }
        }
    }
    usize::from(least[BY_TIMESTAMP] > least[BY_ACK])
}
