//! Frames in the order of time: those of one file that is not in that order, or of several captures of one machine that are read as one.

use std::mem::size_of;

use crate::engine::{Engine, Frame, Order};
use crate::problems::Kind;
use crate::segment::Sum;
use crate::sink::Sink;

/// What is kept of a frame: more than all headers that are looked at.
const HEADERS: usize = 512;
/// A small window: enough for what is written at once, and for the processor's caches.
const NEAR_BYTES: u64 = 1 << 19;
/// Further back a clock was set, or another capture begins.
const WENT_BACK_NS: i64 = 1_000_000_000;

#[derive(Clone, Copy, Debug)]
struct Kept {
    time: i64,
    start: usize,
    packet: u64,
    offset: u64,
    length: u16,
    link_type: u16,
    original: u32,
    sum: Sum,
}

/// Frames by their headers, within a bound of memory. Of one file: when there is no more room the older ones are given on, and what comes too
/// late for it is told as out of order. Of several files: what there is no room for is left out.
#[derive(Debug)]
pub struct Gathered<'e> {
    engine: &'e mut Engine,
    several: bool,
    frames: Vec<Kept>,
    headers: Vec<u8>,
    /// The headers' place while they are moved.
    spare: Vec<u8>,
    most: u64,
    last: i64,
    full: bool,
}

impl<'e> Gathered<'e> {
    pub fn new(engine: &'e mut Engine, several: bool) -> Self {
        let all = engine.out.limits.together_bytes;
        let most = if engine.reading.order == Order::Near { all.min(NEAR_BYTES) } else { all };
        let (frames, headers, spare) = (Vec::new(), Vec::new(), Vec::new());
        Gathered { engine, several, frames, headers, spare, most, last: 0, full: false }
    }

    /// Gives all to the engine. Frames of one time stay in the order of the files.
    pub fn tell(mut self) {
        if self.several {
            self.engine.out.packet = 0;
        }
        self.give(0);
        if self.full {
            self.engine.out.bounded.reached("together_bytes");
            self.engine.problem_next(Kind::NoRoom);
        }
    }

    /// The oldest, but for as many.
    fn give(&mut self, but: usize) {
        self.frames.sort_by_key(|kept| kept.time);
        let given = self.frames.len() - but;
        let here = (self.engine.out.packet, self.engine.out.offset);
        for kept in &self.frames[..given] {
            let bytes = &self.headers[kept.start..kept.start + usize::from(kept.length)];
            if !self.several {
                (self.engine.out.packet, self.engine.out.offset) = (kept.packet - 1, kept.offset);
            }
            self.engine.sum = kept.sum;
            let Kept { link_type, time, original, .. } = *kept;
            if !self.engine.frame(Frame { link_type, time, bytes, original }) {
                break;
            }
        }
        if !self.several {
            (self.engine.out.packet, self.engine.out.offset) = here;
        }
        self.frames.drain(..given);
        for kept in &mut self.frames {
            let start = std::mem::replace(&mut kept.start, self.spare.len());
            self.spare.extend_from_slice(&self.headers[start..start + usize::from(kept.length)]);
        }
        std::mem::swap(&mut self.headers, &mut self.spare);
        self.spare.clear();
    }

    fn is_full(&self, more: usize) -> bool {
        let bytes = self.headers.len() + more + (self.frames.len() + 1) * size_of::<Kept>();
        bytes as u64 > self.most
    }
}

impl Sink for Gathered<'_> {
    fn begin(&mut self) {
        self.last = 0;
        self.engine.begin();
    }

    fn most_bytes(&self) -> u64 {
        self.engine.most_bytes()
    }

    fn most_bytes_reached(&mut self) {
        self.engine.most_bytes_reached();
    }

    fn link_type(&mut self, link_type: u16) {
        self.engine.link_type(link_type);
    }

    fn frame(&mut self, frame: Frame) -> bool {
        let bytes = &frame.bytes[..frame.bytes.len().min(HEADERS)];
        if !self.several && self.is_full(bytes.len()) {
            self.give(self.frames.len() / 4);
        }
        self.full |= self.several && self.is_full(bytes.len());
        if self.full {
            return true;
        }
        self.engine.out.packet += 1;
        if frame.time.saturating_add(WENT_BACK_NS) < self.last {
            self.engine.problem_here(Kind::TimeWentBack);
        }
        self.last = frame.time;
        let kept = Kept {
            time: frame.time,
            start: self.headers.len(),
            packet: self.engine.out.packet,
            offset: self.engine.out.offset,
            length: bytes.len() as u16,
            link_type: frame.link_type,
            original: frame.original,
            sum: if bytes.len() < frame.bytes.len() { frame.checksum() } else { Sum::Unknown },
        };
        self.headers.extend_from_slice(bytes);
        self.frames.push(kept);
        !self.engine.disordered
    }

    fn last_time(&self) -> i64 {
        self.last
    }

    fn at(&mut self, bytes: u64) {
        self.engine.at(bytes);
    }

    fn problem_here(&mut self, kind: Kind) {
        self.engine.problem_here(kind);
    }

    fn problem_next(&mut self, kind: Kind) {
        self.engine.problem_next(kind);
    }

    fn problem_at(&mut self, offset: u64, kind: Kind) {
        self.engine.problem_at(offset, kind);
    }

    fn unreadable(&mut self, kind: Kind) {
        self.engine.unreadable(kind);
    }
}
