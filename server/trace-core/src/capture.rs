//! A capture by its first bytes: which compression, which format; and its packets, out of pcap and pcapng.

use crate::engine::Frame;
use crate::frame::{head, Order};
use crate::out::Kind;
use crate::source::{Fault, Slice, Source, Stream};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    pub format: Option<&'static str>,
    pub compression: Option<&'static str>,
    pub bytes: u64,
}

/// Reads all of it.
pub fn read<K: Sink>(bytes: &[u8], sink: &mut K) -> Form {
    let most = sink.most_bytes();
    match bytes {
        [0x1f, 0x8b, ..] => {
            let stream = Stream::new(flate2::bufread::MultiGzDecoder::new(bytes), most);
            Form { compression: Some("gzip"), ..uncompressed(stream, sink) }
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            let stream = Stream::new(crate::source::Reader::new(bytes), most);
            Form { compression: Some("zstd"), ..uncompressed(stream, sink) }
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => unread(Kind::CompressedByXz, sink),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => unread(Kind::CompressedByBzip2, sink),
        _ => uncompressed(Slice::new(bytes), sink),
    }
}

fn unread<K: Sink>(kind: Kind, sink: &mut K) -> Form {
    sink.begin();
    sink.problem_here(kind);
    Form::default()
}

fn uncompressed<S: Source, K: Sink>(mut source: S, sink: &mut K) -> Form {
    let first = source.look(24);
    let header = pcap_header(first);
    let next_generation = is_pcapng(first);
    let empty = first.is_empty();
    sink.begin();
    let format = if let Some(header) = header {
        sink.at(24);
        read_pcap(&mut source, header, sink);
        Some("pcap")
    } else if next_generation {
        read_pcapng(&mut source, sink);
        Some("pcapng")
    } else {
        if source.fault().is_some() {
            sink.ended(&source, !empty);
        }
        sink.begin();
        sink.problem_here(Kind::NotACapture);
        None
    };
    Form { format, compression: None, bytes: source.offset() }
}

// ---------------------------------------------------------------------------------------------------------------------
// What the reader of a file format gives its frames to.

/// Frames in the order of the file, and what could not be read of it.
pub trait Sink {
    /// A file begins.
    fn begin(&mut self);
    /// How many bytes may be decompressed.
    fn most_bytes(&self) -> u64;
    /// No more of them are.
    fn most_bytes_reached(&mut self);
    fn link_type(&mut self, link_type: u16);
    /// False: no more are wanted.
    fn frame(&mut self, frame: Frame) -> bool;
    /// Of the last frame; 0 before the first one.
    fn last_time(&self) -> i64;
    /// Bytes passed, before the next packet or block.
    fn at(&mut self, bytes: u64);
    fn problem_here(&mut self, kind: Kind);
    /// Of the packet that comes next.
    fn problem_next(&mut self, kind: Kind);
    /// After the last packet that was read, at this place.
    fn problem_at(&mut self, offset: u64, kind: Kind);
    /// A packet that has a number but cannot be read.
    fn unreadable(&mut self, kind: Kind);

    /// The end of the file; `left`: it is inside a record.
    fn ended<S: Source>(&mut self, source: &S, left: bool) {
        match source.fault() {
            Some(Fault::Compression) => self.problem_at(source.offset(), Kind::BadCompression),
            Some(Fault::Limit) => {
                self.most_bytes_reached();
                self.problem_at(source.offset(), Kind::NoRoom);
            }
            None if left => self.problem_at(source.offset(), Kind::CutFile),
            None => {}
        }
    }

    /// The end of the file inside the packet that was last given.
    fn ended_inside<S: Source>(&mut self, source: &S) {
        match source.fault() {
            Some(_) => self.ended(source, true),
            None => self.problem_here(Kind::CutFile),
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Classic pcap files (draft-ietf-opsawg-pcap): the records after the file's header.

/// A record that says more was not written by any capture program.
const MOST_CAPTURED: u32 = 1 << 20;
/// How far a next plausible record is looked for.
const SEARCHED: usize = 1 << 24;

#[derive(Clone, Copy, Debug)]
struct Header {
    order: Order,
    nanoseconds: bool,
    link_type: u16,
}

/// The file's header; None for another kind of file.
fn pcap_header(bytes: &[u8]) -> Option<Header> {
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
fn read_pcap<S: Source, K: Sink>(source: &mut S, header: Header, sink: &mut K) {
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
            if !next_record(source, &header, near.unwrap_or(record.seconds)) {
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
fn next_record<S: Source>(source: &mut S, header: &Header, near: u32) -> bool {
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

// ---------------------------------------------------------------------------------------------------------------------
// pcapng files (draft-ietf-opsawg-pcapng): sections, interfaces and the blocks with packets.

const SECTION: u32 = 0x0a0d_0d0a;
/// Blocks that say more are taken for damage.
const MOST_BLOCK: u32 = 1 << 24;
const MOST_INTERFACES: usize = 65_536;

/// True for the first bytes of a pcapng file.
fn is_pcapng(bytes: &[u8]) -> bool {
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
fn read_pcapng<S: Source, K: Sink>(source: &mut S, sink: &mut K) {
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
            if !next_block(source, order) {
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
fn next_block<S: Source>(source: &mut S, order: Order) -> bool {
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
