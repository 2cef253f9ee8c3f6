//! The connection's own sequence space: what each segment adds to it, and what its DATA_ACK says (RFC 8684 §3.3).

use crate::account::Taken;
use crate::bins::{Bin, Owner};
use crate::connection::Level;
use crate::engine::Engine;
use crate::flow::{Joined, Place, Side};
use crate::opening::{Event, Kind};
use crate::options::{Map, Options};
use crate::out::Out;
use crate::ranges::{Found, BASE};
use crate::segment::Segment;

/// A DATA_ACK that jumps farther is damage.
const MOST_JUMP: u64 = 1 << 31;

impl Engine {
    /// A mapping came.
    #[inline(never)]
    pub fn heard(&mut self, segment: Segment, map: Map, data_fin: bool, place: Place, time: i64) {
        let flow = &mut self.flows[place.flow as usize];
        let me = &mut flow.sides[usize::from(place.side)];
        if !me.begun {
            me.begin(segment.sequence);
        }
        let start = crate::ranges::expand(me.top, segment.sequence);
        let end = start.saturating_add(u64::from(segment.payload));
        let fresh = me.mappings.heard(map, start, end, self.out.limits.mappings);
        if fresh {
            self.heard_first(map, data_fin, place, time);
        }
        if !self.flows[place.flow as usize].sides[usize::from(place.side)].late.is_empty() {
            self.place_late(place, time);
        }
    }

    #[inline(never)]
    fn heard_first(&mut self, map: Map, data_fin: bool, place: Place, time: i64) {
        let flow = &self.flows[place.flow as usize];
        if map.infinite {
            self.fall_back(place, time, Kind::FallbackInfiniteMapping);
            return;
        }
        let levels = &self.connections[flow.connection as usize].levels;
        if flow.joined == Joined::None && levels.iter().all(|level| !level.known) {
            self.find_alike(map.dsn, map.wide, place, time);
        }
        let flow = &self.flows[place.flow as usize];
        let direction = usize::from(place.side ^ u8::from(flow.flip));
        let connection = &mut self.connections[flow.connection as usize];
        connection.multipath = true;
        let level = &mut connection.levels[direction];
        if !level.known {
            level.begin(map.dsn, map.wide, false);
            self.remember(place);
        }
        if data_fin {
            self.data_fin(map, place, time);
        }
    }

    fn data_fin(&mut self, map: Map, place: Place, time: i64) {
        let flow = &self.flows[place.flow as usize];
        let direction = usize::from(place.side ^ u8::from(flow.flip));
        let level = &mut self.connections[flow.connection as usize].levels[direction];
        if level.fin.is_some() {
            return;
        }
        let dsn = map.dsn.wrapping_add(u64::from(map.length));
        // Its octet is no data: it is not in the set of what was seen.
        level.fin = level.relative(dsn, map.wide);
        self.tell(place, time, Kind::DataFin, Some(dsn as i64));
    }

    pub fn fall_back(&mut self, place: Place, time: i64, kind: Kind) {
        let connection = &mut self.connections[self.flows[place.flow as usize].connection as usize];
        if !connection.fallback {
            connection.fallback = true;
            self.tell(place, time, kind, None);
        }
    }

    pub fn tell(&mut self, place: Place, time: i64, kind: Kind, value: Option<i64>) {
        let packet = self.out.packet;
        self.out.event(Event { time, packet, subflow: place.flow, side: place.side, kind, value, address: None });
    }

    /// Data without any mapping ever, after a handshake that was seen whole: the ends have gone back to TCP (RFC 8684 §3.7).
    #[cold]
    pub fn without_mapping(&mut self, segment: &Segment, options: &Options, place: Place, time: i64) {
        let flow = &self.flows[place.flow as usize];
        let me = &flow.sides[usize::from(place.side)];
        let whole = flow.handshake.established.is_some() && flow.capable && me.mappings.knows_initial();
        // The first byte: what is behind it may have its mapping in a packet that was lost.
        let first = Some(segment.sequence) == me.initial.map(|initial| initial.wrapping_add(1));
        if whole && first && !segment.cut && !options.multipath && !me.mappings.any() {
            self.fall_back(place, time, Kind::FallbackNoMapping);
            self.settle(place, true);
        }
    }

    /// Payload whose mapping came behind it, each in the bin in which it came.
    #[cold]
    fn place_late(&mut self, place: Place, time: i64) {
        let Engine { out, flows, connections, .. } = self;
        let flow = &mut flows[place.flow as usize];
        let me = &mut flow.sides[usize::from(place.side)];
        let level = &mut connections[flow.connection as usize].levels[usize::from(place.side ^ u8::from(flow.flip))];
        let mut left = Vec::new();
        for late in std::mem::take(&mut me.late) {
            let (mut at, mut placed) = (late.start, Placed::default());
            while at < late.end {
                let stretch = me.mappings.stretch(at, late.end);
                let length = stretch.map_or_else(|| me.mappings.hole(at, late.end).max(1), |stretch| stretch.length);
                match stretch.and_then(|stretch| level.place(stretch)) {
                    Some((relative, new, seen)) => {
                        if at == late.first {
                            placed.dsn = Some(level.absolute(relative));
                        }
                        placed.goodput += new;
                        placed.seen += seen;
                        let end = relative + length;
                        if new > 0 && end > BASE && !level.waiting.hold(end, out.packet, late.time, place, out.limits.waiting) {
                            out.no_room("waiting");
                        }
                        level.waiting.release(level.ranges.next(), Some(time));
                    }
                    None => left.push(Late { start: at, end: at + length, ..late }),
                }
                at += length;
            }
            out.late(me, late, Bin { goodput: placed.goodput, reinjected: placed.seen, ..Bin::default() }, placed.dsn);
        }
        me.late = left;
        if me.waits && me.mappings.knows_initial() {
            me.waits = false;
            level.waits = level.waits.saturating_sub(1);
        }
    }

    /// No mapping comes any more: payload that waits for one has none, or needs none.
    pub fn settle(&mut self, place: Place, plain: bool) {
        let Engine { out, flows, connections, .. } = self;
        let flow = &mut flows[place.flow as usize];
        let level = &mut connections[flow.connection as usize].levels[usize::from(place.side ^ u8::from(flow.flip))];
        flow.sides[usize::from(place.side)].settle(out, level, plain);
    }
}

/// Payload that came before its mapping.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    start: u64,
    end: u64,
    time: i64,
    /// Where its packet begins, and its place in the table `packets`.
    first: u64,
    row: usize,
}

impl Late {
    /// What is left of it before and behind the other.
    fn without(self, other: &Late) -> impl Iterator<Item = Late> {
        let before = Late { end: self.end.min(other.start), ..self };
        let behind = Late { start: self.start.max(other.end), ..self };
        [before, behind].into_iter().filter(|part| part.start < part.end)
    }
}

impl Side {
    #[inline(never)]
    fn settle(&mut self, out: &mut Out, level: &mut Level, plain: bool) {
        for late in std::mem::take(&mut self.late) {
            let length = late.end - late.start;
            let bin = if plain { Bin { goodput: length, ..Bin::default() } } else { Bin { unmapped: length, ..Bin::default() } };
            out.late(self, late, bin, None);
        }
        if std::mem::take(&mut self.waits) {
            level.waits = level.waits.saturating_sub(1);
        }
    }
}

impl Out {
    /// What became of payload that had waited.
    fn late(&mut self, side: &mut Side, late: Late, bin: Bin, dsn: Option<u64>) {
        side.meter.late(bin, late.time, &mut self.bins, Owner::Subflow(side.place.flow, side.place.side), &self.limits, &mut self.bounded);
        if let Some(row) = self.packets.as_mut().and_then(|rows| rows.get_mut(late.row)) {
            row.goodput += bin.goodput as u32;
            row.reinjected += bin.reinjected as u32;
            row.dsn = row.dsn.or(dsn);
        }
    }
}

/// What payload did at the data level.
#[derive(Clone, Copy, Debug, Default)]
struct Placed {
    goodput: u64,
    unmapped: u64,
    /// Bytes that were here before.
    seen: u64,
    dsn: Option<u64>,
}

/// A segment's two ends and the connection's two directions: its own, and the one that it acknowledges.
pub struct At<'a> {
    pub out: &'a mut Out,
    pub me: &'a mut Side,
    pub other: &'a mut Side,
    pub mine: &'a mut Level,
    pub others: &'a mut Level,
    pub connection: u32,
    pub direction: u8,
    pub time: i64,
}

impl At<'_> {
    #[inline(always)]
    pub fn data_level(&mut self, segment: &Segment, options: &Options, taken: &mut Taken, fallback: bool) {
        if fallback {
            // The data level is the subflow's again.
            taken.goodput = taken.found.new;
            self.count_level(segment);
            return;
        }
        if segment.payload > 0 {
            self.mapped(taken);
        }
        if let Some((ack, wide)) = options.data_ack {
            self.data_ack(ack, wide);
        }
        self.count_level(segment);
    }

    /// Payload by its mappings into the connection's sequence space.
    #[inline(always)]
    fn mapped(&mut self, taken: &mut Taken) {
        let dsn = self.me.mappings.whole(taken.start, taken.end);
        match dsn.and_then(|dsn| self.mine.take_next(dsn, taken.end - taken.start)) {
            // Nearly always: one mapping holds all of it, and it is what comes next.
            Some(start) => {
                taken.goodput = taken.end - taken.start;
                self.me.prompt += 1;
                if self.out.packets.is_some() {
                    taken.dsn = Some(self.mine.absolute(start));
                }
            }
            None => {
                let (start, end, seen) = (taken.start, taken.end, taken.found.seen);
                let found = self.mapped_anywhere(start, end, taken.found);
                taken.goodput = found.goodput;
                taken.unmapped = found.unmapped;
                taken.dsn = found.dsn;
                taken.reinjected = found.seen.saturating_sub(seen);
            }
        }
    }

    #[inline(never)]
    fn mapped_anywhere(&mut self, start: u64, end: u64, found: Found) -> Placed {
        let mut placed = Placed::default();
        let mut last = BASE;
        let mut at = start;
        while at < end {
            let Some(stretch) = self.me.mappings.stretch(at, end) else {
                let hole = self.me.mappings.hole(at, end).max(1);
                let late = Late { start: at, end: at + hole, time: self.time, first: start, row: 0 };
                let unmapped = hole - self.wait(late, found);
                self.out.late(self.me, late, Bin { unmapped, ..Bin::default() }, None);
                placed.unmapped += hole;
                at += hole;
                continue;
            };
            match self.mine.place(stretch) {
                Some((relative, new, seen)) => {
                    if at == start {
                        placed.dsn = Some(self.mine.absolute(relative));
                    }
                    placed.goodput += new;
                    placed.seen += seen;
                    if new > 0 {
                        last = last.max(relative + stretch.length);
                    }
                }
                None => {
                    let late = Late { start: at, end: at + stretch.length, time: self.time, first: start, row: usize::MAX };
                    self.out.late(self.me, late, Bin { unmapped: stretch.length, ..Bin::default() }, None);
                    placed.unmapped += stretch.length;
                }
            }
            at += stretch.length;
        }
        self.wait_in_order(last);
        if self.mine.ranges.bound(self.out.limits.intervals) {
            self.mine.waiting.release(self.mine.ranges.next(), None);
            self.out.no_room("intervals");
        }
        placed
    }

    /// The packet waits until all below `last` is there, and those end their wait for which it was lacking.
    fn wait_in_order(&mut self, last: u64) {
        let next = self.mine.ranges.next();
        self.mine.waiting.release(next, Some(self.time));
        if last > next {
            let most = self.out.limits.waiting;
            if !self.mine.waiting.hold(last, self.out.packet, self.time, self.me.place, most) {
                self.out.no_room("waiting");
            }
        } else if last > BASE {
            self.me.prompt += 1;
        }
    }

    /// Its mapping may come. How many bytes of it are kept for that: none that wait already, or were here before.
    fn wait(&mut self, late: Late, found: Found) -> u64 {
        if found.new == 0 || self.me.hopeless {
            return 0;
        }
        let mut parts = vec![late];
        if found.seen > 0 {
            for known in &self.me.late {
                parts = parts.into_iter().flat_map(|part| part.without(known)).collect();
            }
        }
        if (self.me.late.len() + parts.len()) as u64 > self.out.limits.unmapped {
            self.me.settle(self.out, self.mine, false);
            self.me.hopeless = !self.me.mappings.knows_initial();
            self.out.no_room("unmapped");
            return 0;
        }
        if !self.me.waits && !self.me.mappings.knows_initial() {
            self.me.waits = true;
            self.mine.waits += 1;
        }
        let row = self.out.packets.as_ref().map_or(0, Vec::len);
        self.me.late.extend(parts.iter().map(|part| Late { row, ..*part }));
        parts.iter().map(|part| part.end - part.start).sum()
    }

    #[inline(always)]
    fn data_ack(&mut self, ack: u64, wide: bool) {
        let level = &mut *self.others;
        if level.acknowledged(ack, wide) {
            return;
        }
        let Some(ack) = level.relative(ack, wide) else {
            if !level.known {
                level.heard_ack = Some((ack, wide));
            }
            return;
        };
        let Some(before) = level.acked else {
            level.acked = Some(ack);
            return;
        };
        if ack <= before || ack - before > MOST_JUMP {
            return;
        }
        level.acked = Some(ack);
        let data = level.fin.map_or(ack, |fin| ack.min(fin));
        // What was seen and cannot be placed yet is not unseen.
        let unseen = if level.waits == 0 { level.ranges.skip_to(data) } else { 0 };
        // What they waited for came, but is not in the capture.
        level.waiting.release(level.ranges.next(), None);
        let bin = self.out.bin(&mut level.meter, self.time, Owner::Connection(self.connection, 1 - self.direction));
        bin.acked += data.saturating_sub(before);
        bin.unseen += unseen;
    }

    /// The connection's own values after this segment.
    #[inline(always)]
    fn count_level(&mut self, segment: &Segment) {
        let At { out, me, other, mine, others, .. } = self;
        if other.flight[0] != other.counted[0] {
            others.flight[0] = others.flight[0].wrapping_add(other.flight[0]).wrapping_sub(other.counted[0]);
            other.counted[0] = other.flight[0];
        }
        if segment.payload == 0 {
            return;
        }
        for method in 0..2 {
            mine.flight[method] = mine.flight[method].wrapping_add(me.flight[method]).wrapping_sub(me.counted[method]);
            me.counted[method] = me.flight[method];
        }
        let bin = out.bin(&mut mine.meter, self.time, Owner::Connection(self.connection, self.direction));
        if mine.known {
            bin.queue.add_peak(mine.ranges.held());
        }
        bin.flight[0].add_mean(mine.flight[0]);
        if me.seen_acknowledgement.is_some() {
            bin.flight[1].add_mean(mine.flight[1]);
        }
    }
}
