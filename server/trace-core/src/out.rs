//! What grows as a capture is read: rows of bins, events, packets and problems, each within its limit.

use crate::bins::{Bin, Meter, Owner, Rows};
use crate::events::Event;
use crate::limits::{Bounded, Limits};
use crate::problems::{Kind, Problem, Problems};

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
