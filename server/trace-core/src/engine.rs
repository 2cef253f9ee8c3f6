//! The pass: each frame to its segment, each segment to its subflow.

use std::collections::HashMap;

use crate::bins::Owner;
use crate::connection::Connection;
use crate::copies::Copies;
use crate::fields::be16;
use crate::flow::{Flow, Side};
use crate::frame::{ip_in, Inside, ETHERNET, IPV4};
use crate::limits::Limits;
use crate::options::{self, Options};
use crate::out::Out;
use crate::problems::Kind;
use crate::segment::{parse, Parsed, Segment, Sum, ACK, FIN, RST, SYN};
use crate::sink::Sink;
use crate::table::{Place, Table};
use crate::usual;

/// What a file format's reader gives.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    pub link_type: u16,
    pub time: i64,
    pub bytes: &'a [u8],
    /// Length on the wire.
    pub original: u32,
}

/// How a file is read. What the reading finds out may ask for another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub order: Order,
    /// What was captured twice counts once.
    pub once: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Of the file: nearly always that of time.
    #[default]
    Own,
    /// Of time, as far as a small window goes: what several processors or interfaces wrote at once.
    Near,
    /// Of time, in all the room that there may be.
    Far,
}

impl Frame<'_> {
    /// As of all its bytes.
    pub fn checksum(&self) -> Sum {
        let Inside::Ip(ip) = ip_in(self.link_type, self.bytes) else { return Sum::Unknown };
        match parse(self.bytes.get(ip..).unwrap_or_default(), u64::from(self.original).saturating_sub(ip as u64)) {
            Parsed::Tcp(segment) => segment.sum,
            _ => Sum::Unknown,
        }
    }
}

#[derive(Debug)]
pub struct Engine {
    pub out: Out,
    pub flows: Vec<Flow>,
    pub connections: Vec<Connection>,
    pub table: Table,
    /// Tokens of the keys that were seen, and of joins to connections that were not: connection, and which end has it.
    pub tokens: HashMap<u32, (u32, u8)>,
    /// Connections with data sequence numbers, for the likeness of subflows without a handshake.
    pub recent: std::collections::VecDeque<u32>,
    pub link_types: Vec<u16>,
    pub tcp_packets: u64,
    pub other_packets: u64,
    pub first_time: Option<i64>,
    /// The latest; before the first one no time is as late.
    pub last: i64,
    pub reading: Reading,
    /// A packet is older than one before, and another reading may put it into its place: the rest is not looked at.
    pub disordered: bool,
    /// TCP's checksum in the frame at hand, of which some is left out.
    pub sum: Sum,
    copies: Copies,
}

impl Engine {
    pub fn new(limits: Limits, width: i64, packets: bool, reading: Reading) -> Self {
        Engine {
            out: Out::new(limits, width, packets),
            flows: Vec::new(),
            connections: Vec::new(),
            table: Table::default(),
            tokens: HashMap::new(),
            recent: std::collections::VecDeque::new(),
            link_types: Vec::new(),
            tcp_packets: 0,
            other_packets: 0,
            first_time: None,
            last: i64::MAX,
            reading,
            disordered: false,
            sum: Sum::Unknown,
            copies: Copies::default(),
        }
    }

    /// How the file should have been read, when all of it was.
    pub fn better(&self) -> Reading {
        // Too much for a path that loses and doubles now and then; whether they are copies the next reading tells.
        let often = |side: &Side| side.meter.total.duplicate_packets >= 4 && u64::from(side.meter.total.duplicate_packets) * 4 >= side.meter.total.packets;
        let twice = self.flows.iter().flat_map(|flow| &flow.sides).any(often);
        let order = match self.reading.order {
            Order::Own if self.disordered => Order::Near,
            Order::Near if self.disordered => Order::Far,
            order => order,
        };
        Reading { order, once: self.reading.once || twice }
    }

    #[inline(never)]
    fn any(&mut self, bytes: &[u8], wire: u32, time: i64) {
        if let Some(segment) = self.dissect(bytes, wire) {
            let options = options::parse(segment.options);
            self.segment(segment, options, time);
        }
    }

    /// Where its IP packet begins.
    #[inline(never)]
    fn ip_in(&mut self, frame: &Frame) -> Option<usize> {
        match ip_in(frame.link_type, frame.bytes) {
            Inside::Ip(ip) => return Some(ip),
            Inside::Other => self.other_packets += 1,
            Inside::Cut => self.strange(Kind::CutHeaders),
            Inside::Unknown => self.strange(Kind::UnknownLinkType),
        }
        None
    }

    /// Any IP packet; `wire` is its length there. Some programs say less than they captured.
    fn dissect<'a>(&mut self, bytes: &'a [u8], wire: u32) -> Option<Segment<'a>> {
        match parse(bytes, u64::from(wire).max(bytes.len() as u64)) {
            Parsed::Tcp(segment) => return Some(segment),
            Parsed::Other => self.other_packets += 1,
            Parsed::Fragment => self.strange(Kind::Fragment),
            Parsed::Cut => self.strange(Kind::CutHeaders),
            Parsed::Bad => self.strange(Kind::BadHeaders),
        }
        None
    }

    #[cold]
    fn strange(&mut self, kind: Kind) {
        self.other_packets += 1;
        self.out.problem(kind);
    }

    /// True: the packet counts for nothing, and why is told.
    #[cold]
    fn left_out(&mut self, segment: &Segment, options: &Options, place: Place, time: i64, sum: usize) -> bool {
        let flow = &mut self.flows[place.flow as usize];
        let side = &mut flow.sides[usize::from(place.side)];
        if self.reading.once && self.copies.has(segment, options, time, &mut side.id) {
            self.out.problem(Kind::CapturedTwice);
            return true;
        }
        // Its receiver leaves out what came damaged. Where most are wrong, who wrote the file has changed the packets.
        if sum == Sum::Wrong as usize {
            self.out.problem(Kind::BadChecksum);
            if side.checksums[Sum::Wrong as usize] < side.checksums[Sum::Right as usize] {
                side.checksums[sum] += 1;
                return true;
            }
        }
        self.connections[flow.connection as usize].disordered |= time < self.last;
        false
    }

    /// By value, and copies for what is called rarely: what nobody has the address of stays in registers.
    #[inline(always)]
    fn segment(&mut self, segment: Segment, options: Options, time: i64) {
        if segment.cut {
            self.out.problem(Kind::CutHeaders);
        } else if options.bad || segment.beyond {
            self.out.problem(Kind::BadHeaders);
        }
        let place = match self.table.find(segment.key) {
            Some(place) if segment.flags & SYN == 0 => place,
            known => match self.open(&{ segment }, time, known) {
                Some(place) => place,
                None => {
                    self.tcp_packets += 1;
                    return;
                }
            },
        };
        // One of them is unknown.
        let sum = segment.sum as usize | self.sum as usize;
        let unlike = self.reading.once | (time < self.last) | (sum == Sum::Wrong as usize);
        if unlike && self.left_out(&{ segment }, &{ options }, place, time, sum) {
            return;
        }
        self.tcp_packets += 1;
        let flow = &mut self.flows[place.flow as usize];
        flow.end = flow.end.max(time);
        let side = &mut flow.sides[usize::from(place.side & 1)];
        side.hops = segment.hops;
        side.checksums[sum % 4] += 1;
        let mappings = &side.mappings;
        let mut fresh = options.map.filter(|map| !mappings.repeats(map));
        let unusual = segment.flags & (SYN | RST) != 0 || options.rare;
        if unusual || (flow.handshake.established.is_none() && flow.handshake.answer.is_some()) {
            self.said(&{ segment }, &{ options }, place, time);
            // It may have brought a mapping of its own.
            fresh = options.map;
        }
        if segment.flags & (FIN | RST) != 0 {
            self.closing(&{ segment }, place, time);
        }
        if let Some(map) = fresh {
            self.heard(segment, map, options.data_fin, place, time);
        }
        // Written twice by the compiler: for an acknowledgement most of it falls away.
        if segment.payload == 0 {
            self.account(Segment { payload: 0, ..segment }, options, place, time);
        } else {
            self.account(segment, options, place, time);
        }
    }

    /// The first packet, or one that is older than one before. True: it is not looked at.
    #[cold]
    fn late(&mut self, time: i64) -> bool {
        if self.first_time.is_none() {
            self.first_time = Some(time);
            self.last = time;
            return false;
        }
        self.disordered = self.reading.order != Order::Far;
        if !self.disordered {
            self.out.problem(Kind::OutOfOrder);
        }
        self.disordered
    }

    /// Ends all bins.
    pub fn finish(&mut self) {
        for number in 0..self.flows.len() as u32 {
            for side in 0..2 {
                self.settle(Place { flow: number, side }, false);
            }
        }
        for (number, flow) in self.flows.iter_mut().enumerate() {
            for (side, one) in flow.sides.iter_mut().enumerate() {
                self.out.close(&mut one.meter, Owner::Subflow(number as u32, side as u8));
            }
        }
        for (number, connection) in self.connections.iter_mut().enumerate() {
            for (direction, level) in connection.levels.iter_mut().enumerate() {
                self.out.close(&mut level.meter, Owner::Connection(number as u32, direction as u8));
                level.waiting.release(u64::MAX, None);
            }
        }
    }

    /// Where a connection went that was found to be one with another.
    pub fn root(&self, connection: u32) -> u32 {
        let mut at = connection;
        // Each merging goes to one that is no other's part.
        while let Some(other) = self.connections.get(at as usize).and_then(|one| one.merged) {
            at = other;
        }
        at
    }
}

impl Sink for Engine {
    fn begin(&mut self) {
        self.out.offset = 0;
    }

    fn most_bytes(&self) -> u64 {
        self.out.limits.decompressed_bytes
    }

    fn most_bytes_reached(&mut self) {
        self.out.bounded.reached("decompressed_bytes");
    }

    fn link_type(&mut self, link_type: u16) {
        if !self.link_types.contains(&link_type) && self.link_types.len() < 64 {
            self.link_types.push(link_type);
        }
    }

    #[inline(always)]
    fn frame(&mut self, frame: Frame) -> bool {
        self.out.packet += 1;
        let time = frame.time;
        if time >= self.last {
            self.last = time;
        } else if self.late(time) {
            return false;
        }
        let ip = if frame.link_type == ETHERNET && be16(frame.bytes, 12) == Some(IPV4) {
            14
        } else {
            match self.ip_in(&frame) {
                Some(ip) => ip,
                None => return true,
            }
        };
        let bytes = frame.bytes.get(ip..).unwrap_or_default();
        let wire = frame.original.wrapping_sub(ip as u32);
        // The same steps twice: once for the usual packet, with all that it is known to be, and once for any.
        match usual::segment(bytes, wire).and_then(|segment| Some((segment, usual::options(segment.options)?))) {
            Some((segment, options)) => self.segment(segment, options, time),
            None => self.any(bytes, wire, time),
        }
        true
    }

    fn last_time(&self) -> i64 {
        self.first_time.map_or(0, |_| self.last)
    }

    #[inline(always)]
    fn at(&mut self, bytes: u64) {
        self.out.offset += bytes;
    }

    fn problem_here(&mut self, kind: Kind) {
        self.out.problem(kind);
    }

    fn problem_next(&mut self, kind: Kind) {
        self.out.packet += 1;
        self.out.problem(kind);
        self.out.packet -= 1;
    }

    fn problem_at(&mut self, offset: u64, kind: Kind) {
        self.out.offset = offset;
        self.problem_next(kind);
    }

    fn unreadable(&mut self, kind: Kind) {
        self.out.packet += 1;
        self.out.problem(kind);
    }
}

/// The two ends, who sent this first.
#[inline(always)]
pub fn ends<T>(pair: &mut [T; 2], side: u8) -> (&mut T, &mut T) {
    let [a, b] = pair;
    if side == 0 {
        (a, b)
    } else {
        (b, a)
    }
}

#[inline(always)]
pub fn acknowledges(segment: &Segment) -> bool {
    segment.flags & ACK != 0
}
