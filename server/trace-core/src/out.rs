//! What grows as a capture is read, rows of bins, events, packets and problems, each within its limit; and what a capture may cost at
//! most. What goes beyond is left out and named, never silently.

use crate::bins::{Bin, Meter, Owner, Rows};
use crate::opening::Event;

/// A row of the table `packets`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    pub packet: u64,
    pub time: i64,
    pub subflow: u32,
    pub side: u8,
    pub flags: u16,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub payload: u32,
    pub window: Option<u32>,
    pub dsn: Option<u64>,
    pub data_ack: Option<u64>,
    pub goodput: u32,
    pub new: u32,
    pub duplicate: u32,
    pub hole_fill: u32,
    pub reinjected: u32,
    pub ack_rtt: Option<i64>,
    pub timestamp_rtt: Option<i64>,
    pub flight: [Option<u64>; 2],
    pub queue: Option<u64>,
}

#[derive(Debug)]
pub struct Out {
    pub limits: Limits,
    pub bounded: Bounded,
    pub bins: Rows,
    pub events: Vec<Event>,
    pub packets: Option<Vec<Packet>>,
    pub problems: Problems,
    /// Number of the packet at hand, from 1; how far in the file it is.
    pub packet: u64,
    pub offset: u64,
}

impl Out {
    pub fn new(limits: Limits, width: i64, packets: bool) -> Self {
        Out {
            limits,
            bounded: Bounded::default(),
            bins: Rows { rows: Vec::new(), width: width.max(1) },
            events: Vec::new(),
            packets: packets.then(Vec::new),
            problems: Problems::default(),
            packet: 0,
            offset: 0,
        }
    }

    #[inline(always)]
    pub fn bin<'m>(&mut self, meter: &'m mut Meter, time: i64, owner: Owner) -> &'m mut Bin {
        meter.at(time, &mut self.bins, owner, &self.limits, &mut self.bounded)
    }

    pub fn close(&mut self, meter: &mut Meter, owner: Owner) {
        meter.close(&mut self.bins, owner, &self.limits, &mut self.bounded);
    }

    pub fn event(&mut self, event: Event) {
        if (self.events.len() as u64) < self.limits.events {
            self.events.push(event);
        } else {
            self.bounded.reached("events");
        }
    }

    #[cold]
    pub fn problem(&mut self, kind: Kind) {
        let problem = Problem { packet: self.packet, offset: self.offset, kind };
        self.problems.add(problem, &self.limits, &mut self.bounded);
    }

    #[cold]
    pub fn no_room(&mut self, name: &'static str) {
        self.bounded.reached(name);
        self.problem(Kind::NoRoom);
    }

    #[inline(never)]
    pub fn row(&mut self, row: Packet) {
        let Some(rows) = &mut self.packets else { return };
        if (rows.len() as u64) < self.limits.packets {
            rows.push(row);
        } else {
            self.bounded.reached("packets");
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// What could not be read, by packet number.

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

// ---------------------------------------------------------------------------------------------------------------------
// What a capture may cost at most. What goes beyond is left out and named, never silently.

/// One bound for each thing that grows with the capture.
#[derive(Clone, Debug)]
pub struct Limits {
    pub flows: u64,
    pub connections: u64,
    pub intervals: u64,
    pub segments: u64,
    pub timestamps: u64,
    pub mappings: u64,
    pub unmapped: u64,
    pub waiting: u64,
    pub bins: u64,
    pub events: u64,
    pub problems: u64,
    pub packets: u64,
    pub decompressed_bytes: u64,
    pub together_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            flows: 65_536,
            connections: 65_536,
            intervals: 4_096,
            segments: 65_536,
            timestamps: 8_192,
            mappings: 64,
            unmapped: 1_024,
            waiting: 65_536,
            bins: 1_048_576,
            events: 1_048_576,
            problems: 16_384,
            packets: 134_217_728,
            decompressed_bytes: 68_719_476_736,
            together_bytes: 1_073_741_824,
        }
    }
}

impl Limits {
    /// Sets one by its name; false when there is none of that name.
    pub fn set(&mut self, name: &str, value: u64) -> bool {
        let place = match name {
            "flows" => &mut self.flows,
            "connections" => &mut self.connections,
            "intervals" => &mut self.intervals,
            "segments" => &mut self.segments,
            "timestamps" => &mut self.timestamps,
            "mappings" => &mut self.mappings,
            "unmapped" => &mut self.unmapped,
            "waiting" => &mut self.waiting,
            "bins" => &mut self.bins,
            "events" => &mut self.events,
            "problems" => &mut self.problems,
            "packets" => &mut self.packets,
            "decompressed_bytes" => &mut self.decompressed_bytes,
            "together_bytes" => &mut self.together_bytes,
            _ => return false,
        };
        *place = value.max(1);
        true
    }
}

/// The names of the limits that were reached.
#[derive(Default, Debug)]
pub struct Bounded(Vec<&'static str>);

impl Bounded {
    pub fn reached(&mut self, name: &'static str) {
        if !self.0.contains(&name) {
            self.0.push(name);
        }
    }

    pub fn names(&self) -> &[&'static str] {
        &self.0
    }
}
