//! Frames in the order of time: those of one file that is not in that order, or of several captures of one machine that are read as one.

use std::mem::size_of;

use crate::engine::{Engine, Frame};
use crate::problems::Kind;
use crate::segment::Sum;
use crate::sink::Sink;

/// What is kept of a frame: more than all headers that are looked at.
const HEADERS: usize = 512;
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

/// Frames by their headers, within a bound of memory. Of one file: when there is no more room the older half is given on, and what comes too
/// late for it is told as out of order. Of several files: what there is no room for is left out.
#[derive(Debug)]
pub struct Gathered<'e> {
    engine: &'e mut Engine,
    several: bool,
    frames: Vec<Kept>,
    headers: Vec<u8>,
    last: i64,
    full: bool,
}

impl<'e> Gathered<'e> {
    pub fn new(engine: &'e mut Engine, several: bool) -> Self {
        Gathered { engine, several, frames: Vec::new(), headers: Vec::new(), last: 0, full: false }
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
        let later = self.frames.split_off(self.frames.len() - but);
        let here = (self.engine.out.packet, self.engine.out.offset);
        for kept in std::mem::replace(&mut self.frames, later) {
            let bytes = &self.headers[kept.start..kept.start + usize::from(kept.length)];
            if !self.several {
                (self.engine.out.packet, self.engine.out.offset) = (kept.packet - 1, kept.offset);
            }
            let Kept { link_type, time, original, sum, .. } = kept;
            self.engine.sum = sum;
            self.engine.frame(Frame { link_type, time, bytes, original });
        }
        if !self.several {
            (self.engine.out.packet, self.engine.out.offset) = here;
        }
        let headers = std::mem::take(&mut self.headers);
        for kept in &mut self.frames {
            let bytes = &headers[kept.start..kept.start + usize::from(kept.length)];
            kept.start = self.headers.len();
            self.headers.extend_from_slice(bytes);
        }
    }

    fn is_full(&self, more: usize) -> bool {
        let bytes = self.headers.len() + more + (self.frames.len() + 1) * size_of::<Kept>();
        bytes as u64 > self.engine.out.limits.together_bytes
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

    fn frame(&mut self, frame: Frame) {
        let bytes = &frame.bytes[..frame.bytes.len().min(HEADERS)];
        if !self.several && self.is_full(bytes.len()) {
            self.give(self.frames.len() / 2);
        }
        self.full |= self.several && self.is_full(bytes.len());
        if self.full {
            return;
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
