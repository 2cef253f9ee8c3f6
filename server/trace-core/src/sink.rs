//! What the reader of a file format gives its frames to.

use crate::engine::Frame;
use crate::problems::Kind;
use crate::source::{Fault, Source};

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
