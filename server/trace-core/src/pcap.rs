//! Classic pcap files (draft-ietf-opsawg-pcap): the records after the file's header.

use crate::engine::Frame;
use crate::fields::{head, Order};
use crate::problems::Kind;
use crate::sink::Sink;
use crate::source::Source;

/// A record that says more was not written by any capture program.
pub const MOST_CAPTURED: u32 = 1 << 20;
/// How far a next plausible record is looked for.
pub const SEARCHED: usize = 1 << 24;

#[derive(Clone, Copy, Debug)]
pub struct Header {
    order: Order,
    nanoseconds: bool,
    pub link_type: u16,
}

/// The file's header; None for another kind of file.
pub fn header(bytes: &[u8]) -> Option<Header> {
    let (swapped, nanoseconds) = match bytes.get(..4)? {
        [0xd4, 0xc3, 0xb2, 0xa1] => (false, false),
        [0x4d, 0x3c, 0xb2, 0xa1] => (false, true),
        [0xa1, 0xb2, 0xc3, 0xd4] => (true, false),
        [0xa1, 0xb2, 0x3c, 0x4d] => (true, true),
        _ => return None,
    };
    let order = Order { swapped };
    // The upper half has the length of a frame check sequence, or is reserved.
    Some(Header { order, nanoseconds, link_type: (order.u32(bytes, 20)? & 0xffff) as u16 })
}

struct Record {
    seconds: u32,
    fraction: u32,
    captured: u32,
    original: u32,
}

impl Header {
    #[inline(always)]
    fn record(&self, bytes: &[u8]) -> Option<Record> {
        let bytes = head::<16>(bytes)?;
        Some(Record {
            seconds: self.order.u32(bytes, 0)?,
            fraction: self.order.u32(bytes, 4)?,
            captured: self.order.u32(bytes, 8)?,
            original: self.order.u32(bytes, 12)?,
        })
    }

    fn ticks(&self) -> u32 {
        if self.nanoseconds {
            1_000_000_000
        } else {
            1_000_000
        }
    }

    #[inline(always)]
    fn possible(&self, record: &Record) -> bool {
        record.captured <= MOST_CAPTURED && record.fraction < self.ticks()
    }

    /// Stricter: a record in the midst of garbage, near the time of the last one.
    fn plausible(&self, bytes: &[u8], near: u32) -> bool {
        self.record(bytes).is_some_and(|record| {
            self.possible(&record)
                && (14..=MOST_CAPTURED).contains(&record.captured)
                && record.original >= record.captured
                && record.original <= MOST_CAPTURED
                && record.seconds.abs_diff(near) < 86_400
        })
    }
}

/// Every record, to the end or to where nothing can be read.
pub fn read<S: Source, K: Sink>(source: &mut S, header: Header, sink: &mut K) {
    source.skip(24);
    sink.link_type(header.link_type);
    let mut near = None;
    let unit = i64::from(1_000_000_000 / header.ticks());
    loop {
        let bytes = source.look(16);
        if bytes.len() < 16 {
            let left = !bytes.is_empty();
            sink.ended(source, left);
            return;
        }
        let Some(record) = header.record(bytes) else { return };
        let captured = record.captured as usize;
        if !header.possible(&record) {
            sink.problem_at(source.offset(), Kind::BadRecord);
            if !found_again(source, &header, near.unwrap_or(record.seconds)) {
                return;
            }
            continue;
        }
        let whole = source.look(16 + captured);
        let Some(frame) = whole.get(16..16 + captured) else {
            // What is there of it is analysed all the same.
            let had = whole.len();
            let frame = whole.get(16..).unwrap_or_default();
            let time = i64::from(record.seconds) * 1_000_000_000 + i64::from(record.fraction) * unit;
            sink.frame(Frame { link_type: header.link_type, time, bytes: frame, original: record.original });
            source.skip(had);
            sink.ended_inside(source);
            return;
        };
        let time = i64::from(record.seconds) * 1_000_000_000 + i64::from(record.fraction) * unit;
        if !sink.frame(Frame { link_type: header.link_type, time, bytes: frame, original: record.original }) {
            return;
        }
        near = Some(record.seconds);
        source.skip(16 + captured);
        sink.at(16 + captured as u64);
    }
}

/// Goes to the next place where two plausible records follow each other, or one and the end.
fn found_again<S: Source>(source: &mut S, header: &Header, near: u32) -> bool {
    let window = source.look(SEARCHED + 2 * (16 + MOST_CAPTURED as usize));
    let found = (1..window.len().min(SEARCHED)).find(|at| {
        let here = &window[*at..];
        if !header.plausible(here, near) {
            return false;
        }
        let Some(record) = header.record(here) else { return false };
        let after = 16 + record.captured as usize;
        here.len() == after || here.get(after..).is_some_and(|next| header.plausible(next, near))
    });
    match found {
        Some(at) => {
            source.skip(at);
            true
        }
        None => false,
    }
}
