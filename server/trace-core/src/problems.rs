//! What could not be read, by packet number.

use crate::limits::{Bounded, Limits};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    NotACapture,
    CutFile,
    BadRecord,
    BadCompression,
    UnknownLinkType,
    CutHeaders,
    BadHeaders,
    Fragment,
    TimeWentBack,
    NoTime,
    NoRoom,
    CompressedByXz,
    CompressedByBzip2,
    BadChecksum,
    CapturedTwice,
    OutOfOrder,
}

/// Names of the kinds, in order of their codes.
pub const NAMES: [&str; 16] = [
    "not_a_capture",
    "cut_file",
    "bad_record",
    "bad_compression",
    "unknown_link_type",
    "cut_headers",
    "bad_headers",
    "fragment",
    "time_went_back",
    "no_time",
    "no_room",
    "compressed_by_xz",
    "compressed_by_bzip2",
    "bad_checksum",
    "captured_twice",
    "out_of_order",
];

#[derive(Clone, Copy, Debug)]
pub struct Problem {
    pub packet: u64,
    pub offset: u64,
    pub kind: Kind,
}

/// The first of them, and how many of each kind there were.
#[derive(Debug, Default)]
pub struct Problems {
    pub rows: Vec<Problem>,
    pub counts: [u64; NAMES.len()],
}

impl Problems {
    #[cold]
    pub fn add(&mut self, problem: Problem, limits: &Limits, bounded: &mut Bounded) {
        self.counts[problem.kind as usize] += 1;
        if (self.rows.len() as u64) < limits.problems {
            self.rows.push(problem);
        } else {
            bounded.reached("problems");
        }
    }
}
