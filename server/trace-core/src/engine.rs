//! The pass: each frame to its segment, each segment to its subflow.

use std::collections::HashMap;
use std::mem::size_of;

use crate::bins::Owner;
use crate::capture::Sink;
use crate::connection::Connection;
use crate::flow::{Flow, Place, Side, Table};
use crate::frame::{be16, ip_in, Inside, ETHERNET, IPV4};
use crate::options::{self, Options};
use crate::out::{Kind, Limits, Out};
use crate::segment::{parse, usual_options, usual_segment, Parsed, Segment, Sum, ACK, FIN, RST, SYN};

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
        match usual_segment(bytes, wire).and_then(|segment| Some((segment, usual_options(segment.options)?))) {
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

// ---------------------------------------------------------------------------------------------------------------------
// Packets that were captured twice: on two interfaces, or at two places of one path. A sender that sends its data again gives the packet
// another identification and time; a copy has all of the first one's.

/// When what passed lately did so, by a number that two different packets hardly share; a later one takes an earlier one's place.
#[derive(Debug, Default)]
pub struct Copies(Vec<(u64, i64)>);

const PLACES: usize = 1 << 16;

impl Copies {
    /// This packet is a copy. `first`: the identification of its sender's first one.
    pub fn has(&mut self, segment: &Segment, options: &Options, time: i64, first: &mut Option<u16>) -> bool {
        let [addresses, .., ports] = segment.key.0;
        let sent = u64::from(options.timestamps.map_or(0, |both| both.0)) << 32 | u64::from(segment.id) << 16 | u64::from(segment.window);
        let mut number = u64::from(segment.payload) << 32 | u64::from(segment.flags);
        for word in [addresses, ports, sent, u64::from(segment.sequence) << 32 | u64::from(segment.acknowledgement)] {
            number = mixed(number ^ word);
        }
        // A path may change the largest segment in a SYN.
        if segment.flags & SYN == 0 {
            number = segment.options.iter().fold(number, |number, byte| mixed(number ^ u64::from(*byte)));
        }
        self.0.resize(PLACES, (0, 0));
        let place = &mut self.0[(number >> 32) as usize % PLACES];
        let (before, passed) = std::mem::replace(place, (number, time));
        let tells = *first.get_or_insert(segment.id) != segment.id;
        before == number && time.saturating_sub(passed) <= if tells { LONGEST_NS } else { AT_ONCE_NS }
    }
}

/// So long a copy comes behind the first one, where identifications tell it from what is sent again; and where not.
const LONGEST_NS: i64 = 1_000_000_000;
const AT_ONCE_NS: i64 = 2_000_000;

fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

// ---------------------------------------------------------------------------------------------------------------------
// Frames in the order of time: those of one file that is not in that order, or of several captures of one machine that are read as one.

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
