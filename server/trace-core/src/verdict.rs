//! What is decided when the whole file was read: which connections there are, at which end the capture was made, which RTT counts.

use crate::engine::Engine;
use crate::segment::Sum;

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
