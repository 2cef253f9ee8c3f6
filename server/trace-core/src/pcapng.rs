//! pcapng files (draft-ietf-opsawg-pcapng): sections, interfaces and the blocks with packets.

use crate::engine::Frame;
use crate::fields::Order;
use crate::pcap::{MOST_CAPTURED, SEARCHED};
use crate::problems::Kind;
use crate::sink::Sink;
use crate::source::Source;

const SECTION: u32 = 0x0a0d_0d0a;
/// Blocks that say more are taken for damage.
const MOST_BLOCK: u32 = 1 << 24;
const MOST_INTERFACES: usize = 65_536;

/// True for the first bytes of a pcapng file.
pub fn is(bytes: &[u8]) -> bool {
    bytes.get(..4) == Some(&[0x0a, 0x0d, 0x0d, 0x0a]) && byte_order(bytes).is_some()
}

fn byte_order(block: &[u8]) -> Option<Order> {
    match block.get(8..12)? {
        [0x4d, 0x3c, 0x2b, 0x1a] => Some(Order { swapped: false }),
        [0x1a, 0x2b, 0x3c, 0x4d] => Some(Order { swapped: true }),
        _ => None,
    }
}

#[derive(Clone, Copy)]
struct Interface {
    link_type: u16,
    /// Ticks of its clock in a second.
    ticks: u64,
    offset_seconds: i64,
    snaplen: u32,
}

impl Interface {
    #[inline(always)]
    fn nanoseconds(&self, high: u32, low: u32) -> i64 {
        let count = u64::from(high) << 32 | u64::from(low);
        let from_start = match self.ticks {
            1_000_000_000 => i64::try_from(count).unwrap_or(i64::MAX),
            1_000_000 => i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(1000),
            ticks => i64::try_from(u128::from(count) * 1_000_000_000 / u128::from(ticks.max(1))).unwrap_or(i64::MAX),
        };
        from_start.saturating_add(self.offset_seconds.saturating_mul(1_000_000_000))
    }
}

/// §4.2; the options that matter are if_tsresol (9) and if_tsoffset (14).
fn interface(body: &[u8], order: Order) -> Option<Interface> {
    let mut made = Interface {
        link_type: order.u16(body, 0)?,
        ticks: 1_000_000,
        offset_seconds: 0,
        snaplen: order.u32(body, 4)?,
    };
    let mut at = 8;
    while let (Some(code), Some(length)) = (order.u16(body, at), order.u16(body, at + 2)) {
        match (code, length) {
            (0, _) => break,
            (9, 1) => {
                let resolution = *body.get(at + 4)?;
                let power = u32::from(resolution & 0x7f);
                let base = if resolution & 0x80 != 0 { 2_u64 } else { 10 };
                made.ticks = base.checked_pow(power).unwrap_or(u64::MAX);
            }
            (14, 8) => {
                let (first, second) = (u64::from(order.u32(body, at + 4)?), u64::from(order.u32(body, at + 8)?));
                let both = if order.swapped { first << 32 | second } else { second << 32 | first };
                made.offset_seconds = both as i64;
            }
            _ => {}
        }
        at += 4 + usize::from(length).div_ceil(4) * 4;
    }
    Some(made)
}

/// Every block, to the end or to where nothing can be read.
pub fn read<S: Source, K: Sink>(source: &mut S, sink: &mut K) {
    let mut order = Order { swapped: false };
    let mut interfaces: Vec<Interface> = Vec::new();
    loop {
        let head = source.look(12);
        if head.len() < 12 {
            let left = !head.is_empty();
            sink.ended(source, left);
            return;
        }
        let mut kind = order.u32(head, 0).unwrap_or_default();
        if head[..4] == SECTION.to_be_bytes() {
            kind = SECTION;
            order = byte_order(head).unwrap_or(order);
        }
        let length = order.u32(head, 4).unwrap_or_default();
        // What the order is stands in the block itself; a type's bytes are the same both ways only in a section's.
        if length < 12 || length % 4 != 0 || length > MOST_BLOCK {
            sink.problem_at(source.offset(), Kind::BadRecord);
            if !found_again(source, order) {
                return;
            }
            continue;
        }
        let length = length as usize;
        let block = source.look(length);
        let cut = block.len() < length;
        let body = &block[8..if cut { block.len() } else { length - 4 }];
        match kind {
            SECTION => interfaces.clear(),
            1 => match interface(body, order) {
                Some(_) if interfaces.len() >= MOST_INTERFACES => sink.problem_here(Kind::NoRoom),
                Some(made) => {
                    interfaces.push(made);
                    sink.link_type(made.link_type);
                }
                None => sink.problem_here(Kind::BadRecord),
            },
            2 | 3 | 6 if !packet(kind, body, order, &interfaces, sink) => return,
            _ => {}
        }
        let had = block.len();
        source.skip(had);
        sink.at(had as u64);
        if cut && matches!(kind, 2 | 3 | 6) {
            sink.ended_inside(source);
            return;
        }
        if cut {
            sink.ended(source, true);
            return;
        }
    }
}

/// §4.3 enhanced (6), §4.4 simple (3), and the obsolete packet block (2). False: no more are wanted.
#[inline(always)]
fn packet<K: Sink>(kind: u32, body: &[u8], order: Order, interfaces: &[Interface], sink: &mut K) -> bool {
    let number = match kind {
        6 => order.u32(body, 0).map(|number| number as usize),
        2 => order.u16(body, 0).map(usize::from),
        _ => Some(0),
    };
    let Some(interface) = number.and_then(|number| interfaces.get(number)) else {
        sink.unreadable(Kind::BadRecord);
        return true;
    };
    let (start, time, captured, original) = if kind == 3 {
        let original = order.u32(body, 0).unwrap_or_default();
        let most = if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
        sink.problem_next(Kind::NoTime);
        (4, sink.last_time(), original.min(most).min((body.len() as u32).saturating_sub(4)), original)
    } else {
        let (Some(high), Some(low), Some(captured), Some(original)) =
            (order.u32(body, 4), order.u32(body, 8), order.u32(body, 12), order.u32(body, 16))
        else {
            sink.unreadable(Kind::BadRecord);
            return true;
        };
        (20, interface.nanoseconds(high, low), captured, original)
    };
    if captured > MOST_CAPTURED {
        sink.unreadable(Kind::BadRecord);
        return true;
    }
    let bytes = match body.get(start..start + captured as usize) {
        Some(bytes) => bytes,
        None => {
            sink.problem_next(Kind::BadRecord);
            body.get(start..).unwrap_or_default()
        }
    };
    sink.frame(Frame { link_type: interface.link_type, time, bytes, original })
}

/// Goes to the next place where a block of a known kind has the same length at both its ends.
fn found_again<S: Source>(source: &mut S, order: Order) -> bool {
    let window = source.look(SEARCHED + MOST_CAPTURED as usize);
    let found = (4..window.len().min(SEARCHED)).step_by(4).find(|at| {
        let here = &window[*at..];
        let (Some(kind), Some(length)) = (order.u32(here, 0), order.u32(here, 4)) else { return false };
        matches!(kind, 1..=6 | SECTION)
            && (12..=MOST_CAPTURED).contains(&length)
            && length % 4 == 0
            && order.u32(here, length as usize - 4) == Some(length)
    });
    match found {
        Some(at) => {
            source.skip(at);
            true
        }
        None => false,
    }
}
