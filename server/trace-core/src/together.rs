//! Several captures of one machine as one, in the order of time: what a connection's subflows do on one path each.

use std::mem::size_of;

use crate::capture::{self, Form};
use crate::engine::{Engine, Frame};
use crate::limits::Limits;
use crate::problems::Kind;
use crate::sink::Sink;

/// What is kept of a frame: more than all headers that are looked at.
const HEADERS: usize = 512;

#[derive(Clone, Copy, Debug)]
struct Kept {
    time: i64,
    start: usize,
    length: u16,
    link_type: u16,
    original: u32,
}

/// The frames of all files, by their headers. What cannot be read of a file is told when it is analysed by itself.
#[derive(Debug, Default)]
pub struct Gathered {
    frames: Vec<Kept>,
    headers: Vec<u8>,
    link_types: Vec<u16>,
    last: i64,
    most: Limits,
    /// Whether there was no room for all frames.
    pub full: bool,
}

impl Gathered {
    pub fn new(most: Limits) -> Self {
        Gathered { most, ..Gathered::default() }
    }

    /// One file more; its format is None where it is no capture.
    pub fn file(&mut self, bytes: &[u8]) -> Form {
        capture::read(bytes, self)
    }

    /// Gives all to the engine. Frames of one time stay in the order of the files.
    pub fn tell(mut self, engine: &mut Engine) {
        self.frames.sort_by_key(|kept| kept.time);
        for link_type in &self.link_types {
            engine.link_type(*link_type);
        }
        for kept in &self.frames {
            let bytes = &self.headers[kept.start..kept.start + usize::from(kept.length)];
            engine.frame(Frame { link_type: kept.link_type, time: kept.time, bytes, original: kept.original });
        }
        if self.full {
            engine.out.bounded.reached("together_bytes");
            engine.problem_next(Kind::NoRoom);
        }
    }
}

impl Sink for Gathered {
    fn begin(&mut self) {
        self.last = 0;
    }

    fn most_bytes(&self) -> u64 {
        self.most.decompressed_bytes
    }

    fn most_bytes_reached(&mut self) {
        self.full = true;
    }

    fn link_type(&mut self, link_type: u16) {
        if !self.link_types.contains(&link_type) && self.link_types.len() < 64 {
            self.link_types.push(link_type);
        }
    }

    fn frame(&mut self, frame: Frame) {
        let bytes = &frame.bytes[..frame.bytes.len().min(HEADERS)];
        self.last = frame.time;
        let kept = self.headers.len() + bytes.len() + (self.frames.len() + 1) * size_of::<Kept>();
        if self.full || kept as u64 > self.most.together_bytes {
            self.full = true;
            return;
        }
        let kept = Kept {
            time: frame.time,
            start: self.headers.len(),
            length: bytes.len() as u16,
            link_type: frame.link_type,
            original: frame.original,
        };
        self.headers.extend_from_slice(bytes);
        self.frames.push(kept);
    }

    fn last_time(&self) -> i64 {
        self.last
    }

    fn at(&mut self, _: u64) {}
    fn problem_here(&mut self, _: Kind) {}
    fn problem_next(&mut self, _: Kind) {}
    fn problem_at(&mut self, _: u64, _: Kind) {}
    fn unreadable(&mut self, _: Kind) {}
}
