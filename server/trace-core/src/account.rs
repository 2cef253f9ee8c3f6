//! What each segment adds to the counts of its subflow, and by its acknowledgement to those of the other direction.

use crate::bins::Owner;
use crate::data_level::At;
use crate::engine::{acknowledges, ends, Engine};
use crate::flow::{Place, Side};
use crate::options::{sacked, Options};
use crate::out::{Out, Packet};
use crate::ranges::{expand, Found};
use crate::rtt::LONGEST_NS;
use crate::segment::{Segment, FIN, SYN};

/// An acknowledgement that jumps farther is damage.
const MOST_JUMP: u64 = 1 << 30;

/// What the segment's acknowledgement did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acknowledged {
    pub number: u64,
    pub bytes: u64,
    pub unseen: u64,
    pub rtt: Option<i64>,
    pub advanced: bool,
    /// Beyond `number`, by its blocks.
    pub sacked: u64,
}

/// What the segment's payload did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    pub start: u64,
    pub end: u64,
    pub found: Found,
    /// All of it is new, and nothing beyond it came before.
    pub in_order: bool,
    /// At the data level.
    pub goodput: u64,
    pub reinjected: u64,
    /// Of it no mapping is known yet.
    pub unmapped: u64,
    /// Only where packets are asked for.
    pub dsn: Option<u64>,
}

impl Engine {
    /// What is called rarely gets copies, so that the segment and what was found of it stay in registers.
    #[inline(always)]
    pub fn account(&mut self, segment: Segment, options: Options, place: Place, time: i64) {
        let Engine { out, flows, connections, .. } = self;
        let flow = &mut flows[place.flow as usize];
        let connection = &mut connections[flow.connection as usize];
        if !connection.multipath && options.multipath && segment.flags & SYN == 0 {
            return self.account_as_multipath(&{ segment }, &{ options }, place, time);
        }
        flow.timestamps |= options.timestamps.is_some();
        let (me, other) = ends(&mut flow.sides, place.side);
        let mut taken = payload(me, &segment, time, out);
        let acknowledged = acknowledgement(other, &segment, &options, time);
        let rtt = echo(me, other, &segment, &options, &taken, &acknowledged, time, out);
        let window = if flow.scaled { window(me, other, &segment) } else { None };
        if connection.multipath {
            let direction = place.side ^ u8::from(flow.flip);
            let fallback = connection.fallback;
            let (mine, others) = ends(&mut connection.levels, direction);
            let (me, other) = (&mut *me, &mut *other);
            let mut at = At { out: &mut *out, me, other, mine, others, connection: flow.connection, direction, time };
            at.data_level(&segment, &options, &mut taken, fallback);
        } else {
            taken.goodput = taken.found.new;
        }
        count(me, other, out, &segment, place, time, &taken, &acknowledged, rtt, window);
        if out.packets.is_some() {
            self.row(&{ segment }, &{ options }, place, time, &{ taken }, &{ acknowledged }, rtt, window);
        }
        if taken.unmapped > 0 {
            self.without_mapping(&{ segment }, &{ options }, place, time);
        }
    }

    #[cold]
    fn account_as_multipath(&mut self, segment: &Segment, options: &Options, place: Place, time: i64) {
        self.first_multipath(options, place, time);
        self.account(*segment, *options, place, time);
    }

    #[cold]
    #[allow(clippy::too_many_arguments)] // parts of one step of the pass, split for reading and put together again by the compiler
    fn row(
        &mut self, segment: &Segment, options: &Options, place: Place, time: i64, taken: &Taken, acknowledged: &Acknowledged,
        rtt: Option<i64>, window: Option<(u64, bool)>,
    ) {
        let flow = &self.flows[place.flow as usize];
        let me = &flow.sides[usize::from(place.side)];
        let connection = &self.connections[flow.connection as usize];
        let levels = &connection.levels;
        let mine = usize::from(place.side ^ u8::from(flow.flip));
        let data_ack = options.data_ack.and_then(|(ack, wide)| {
            let level = &levels[1 - mine];
            level.relative(ack, wide).map_or(wide.then_some(ack), |relative| Some(level.absolute(relative)))
        });
        let queue = if !connection.multipath {
            Some(me.ranges.held())
        } else {
            levels[mine].known.then(|| levels[mine].ranges.held())
        };
        self.out.row(Packet {
            packet: self.out.packet,
            time,
            subflow: place.flow,
            side: place.side,
            flags: segment.flags,
            sequence: segment.sequence,
            acknowledgement: segment.acknowledgement,
            payload: segment.payload,
            window: window.and_then(|window| u32::try_from(window.0).ok()),
            dsn: taken.dsn,
            data_ack,
            goodput: taken.goodput as u32,
            new: taken.found.new as u32,
            duplicate: taken.found.seen as u32,
            hole_fill: taken.found.filled as u32,
            reinjected: taken.reinjected as u32,
            ack_rtt: acknowledged.rtt,
            timestamp_rtt: rtt,
            flight: [
                me.acked_known.then_some(me.flight[0]),
                me.seen_acknowledgement.map(|_| me.flight[1]),
            ],
            queue,
        });
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)] // parts of one step of the pass, split for reading and put together again by the compiler
fn count(
    me: &mut Side, other: &mut Side, out: &mut Out, segment: &Segment, place: Place, time: i64, taken: &Taken, acknowledged: &Acknowledged,
    rtt: Option<i64>, window: Option<(u64, bool)>,
) {
    me.last_time = Some(time);
    let bin = out.bin(&mut me.meter, time, Owner::Subflow(place.flow, place.side));
    bin.packets += 1;
    if segment.payload > 0 {
        bin.payload += u64::from(segment.payload);
        bin.new += taken.found.new;
        bin.goodput += taken.goodput;
        if !taken.in_order || taken.goodput != taken.found.new {
            bin.duplicate += taken.found.seen;
            bin.duplicate_packets += u32::from(taken.found.seen > 0);
            bin.hole_fill += taken.found.filled;
            bin.hole_fill_packets += u32::from(taken.found.filled > 0);
            bin.reinjected += taken.reinjected;
        }
        bin.queue.add_peak(me.ranges.held());
        if me.acked_known {
            bin.flight[0].add_mean(me.flight[0]);
        }
        if me.seen_acknowledgement.is_some() {
            bin.flight[1].add_mean(me.flight[1]);
        }
    }
    if let Some(rtt) = rtt {
        bin.rtt[1].add(rtt);
        me.values[1].add(rtt);
    }
    if acknowledged.advanced || window.is_some_and(|window| window.1) {
        let bin = out.bin(&mut other.meter, time, Owner::Subflow(place.flow, 1 - place.side));
        bin.acked += acknowledged.bytes;
        bin.unseen += acknowledged.unseen;
        if let Some(rtt) = acknowledged.rtt {
            bin.rtt[0].add(rtt);
            other.values[0].add(rtt);
        }
        if let Some((window, _)) = window {
            bin.window.add(window);
        }
    }
}

#[inline(always)]
fn payload(me: &mut Side, segment: &Segment, time: i64, out: &mut Out) -> Taken {
    if !me.begun {
        me.begin(segment.sequence);
    }
    // A SYN's own number comes before its payload.
    let syn = u64::from(segment.flags & SYN != 0);
    let start = expand(me.top, segment.sequence).saturating_add(syn);
    let end = start.saturating_add(u64::from(segment.payload));
    let mut taken = Taken { start, end, in_order: true, ..Taken::default() };
    if segment.payload > 0 {
        taken.found = me.take(start, end);
        let top = me.top;
        if end > top {
            me.top = end;
            if !me.sent.sent(end, time, out.limits.segments) {
                out.no_room("segments");
            }
        }
        taken.in_order = taken.found.new == u64::from(segment.payload) && taken.found.filled == 0;
        if !taken.in_order {
            me.sent.sent_again(start, end.min(top));
        }
        if me.ranges.bound(out.limits.intervals) {
            out.no_room("intervals");
        }
    }
    if segment.flags & FIN != 0 {
        fin(me, end);
    }
    me.flight[0] = me.unacknowledged();
    taken
}

/// A FIN takes a number of its own, which is no data; only the first that is at the end counts.
#[cold]
fn fin(me: &mut Side, at: u64) {
    if me.fin.is_none() && at >= me.top {
        me.fin = Some(at);
        me.top = me.top.max(at.saturating_add(1));
    }
}

#[inline(always)]
fn acknowledgement(other: &mut Side, segment: &Segment, options: &Options, time: i64) -> Acknowledged {
    let mut done = Acknowledged::default();
    if !acknowledges(segment) {
        return done;
    }
    if !other.begun {
        other.begin(segment.acknowledgement);
    }
    if segment.acknowledgement == other.acked as u32 && other.acked_known && (u64::from(options.sack.1) | other.sacked) == 0 {
        // Says nothing new: most of who sends the data.
        done.number = other.acked;
        return done;
    }
    let number = expand(other.top, segment.acknowledgement);
    done.number = number;
    let sacked = if options.sack.1 == 0 { 0 } else { sacked(segment.options, options.sack, segment.acknowledgement) };
    done.sacked = sacked;
    if !other.acked_known {
        other.acked_known = true;
        other.acked = number;
        // Whether what it is of was sent before the capture too is not known.
        other.sent.forget(number);
    } else if number > other.acked && number - other.acked < MOST_JUMP {
        let before = other.acked;
        done.advanced = true;
        let sent = other.sent.acknowledged(before, number);
        done.rtt = sent.map(|sent| time.saturating_sub(sent)).filter(|rtt| (0..LONGEST_NS).contains(rtt));
        let data = other.fin.map_or(number, |fin| number.min(fin));
        done.bytes = data.saturating_sub(before);
        done.unseen = other.ranges.skip_to(data);
        other.acked = number;
        other.top = other.top.max(number);
    } else if number < other.acked || other.sacked == sacked {
        return done;
    }
    other.sacked = sacked;
    other.flight[0] = other.unacknowledged();
    done
}

/// A sample of this direction's RTT, if this segment's echo makes one.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // parts of one step of the pass, split for reading and put together again by the compiler
fn echo(
    me: &mut Side, other: &mut Side, segment: &Segment, options: &Options, taken: &Taken, acknowledged: &Acknowledged, time: i64, out: &mut Out,
) -> Option<i64> {
    let (value, echo) = options.timestamps?;
    let mut sample = None;
    if acknowledges(segment) {
        if let Some(found) = other.pending.echoed(echo) {
            me.seen_acknowledgement = Some(me.seen_acknowledgement.unwrap_or(0).max(found.acknowledgement));
            me.seen_sacked = found.sacked;
            let carrier = segment.payload > 0 || segment.flags & SYN != 0 || me.last_time.is_none();
            let idle = me.last_time.is_some_and(|last| me.patience.was_idle(time.saturating_sub(last)));
            if taken.in_order && carrier && !idle {
                let rtt = found.sent.map(|sent| time.saturating_sub(sent));
                sample = rtt.filter(|rtt| (0..LONGEST_NS).contains(rtt));
            }
            if let Some(rtt) = sample {
                me.patience.learn(rtt);
            }
        }
        if segment.payload > 0 {
            me.flight[1] = me.top.saturating_sub(me.seen_acknowledgement.unwrap_or(me.top)).saturating_sub(me.seen_sacked);
        }
    }
    if !me.pending.sent(value, time, (acknowledged.number, acknowledged.sacked), out.limits.timestamps) {
        out.no_room("timestamps");
    }
    sample
}

/// What this end has room for, and whether it says so for the first time.
#[inline(always)]
fn window(me: &mut Side, other: &Side, segment: &Segment) -> Option<(u64, bool)> {
    if segment.flags & SYN != 0 {
        return None;
    }
    // RFC 7323 §2.2: only if both said it.
    let shift = if other.scale.is_some() { me.scale.unwrap_or(0) } else { 0 };
    let window = u64::from(segment.window) << shift;
    let changed = me.window != Some(window);
    me.window = Some(window);
    Some((window, changed))
}
