//! One direction of the link, without any input or output: queue, fluid service, delay line, loss. Time is an argument.
//!
//! A packet passes: loss → byte-limited FIFO (drop-tail) → service → propagation → out. The head of the queue leaves when
//! the integral of the capacity since it came to the head reaches its bits. The integral is exact: it is kept in whole
//! units of bit·ns/s, across changes of capacity in the middle of a packet, and what one nanosecond offers beyond a
//! packet's last bit goes to the next. Everything is computed lazily up to the time asked for, so a thread that wakes
//! late changes when packets are written, never how many the link lets through.
//!
//! With a packet-delivery trace the capacity comes in opportunities instead: at its instant each carries up to 1500 bytes of
//! what waits. A rate that is set at run time holds against the trace until it is cleared; an outage wastes opportunities. With a
//! second trace, recorded with light load, what each carries goes by the load (`Light`).

use std::collections::VecDeque;

use crate::opportunities::{self, Light, Opportunities};
use crate::random::Random;
use crate::values::{Change, Overrides, Values};

const UNITS_PER_BIT: u128 = 1_000_000_000;
/// How many changes of the schedule one prediction looks ahead before it asks to be woken there.
const LOOK_AHEAD: usize = 64;

/// From the absolute time `at_ns` on (CLOCK_MONOTONIC) these values hold.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub at_ns: u64,
    pub values: Values,
}

/// A packet that has been served and is under way.
#[derive(Debug)]
pub struct Flying {
    pub bytes: Box<[u8]>,
    pub arrived_ns: u64,
    /// When it is to be written out.
    pub due_ns: u64,
}

/// A packet in the queue; the first is in service.
pub struct Waiting {
    pub bytes: Box<[u8]>,
    pub arrived_ns: u64,
}

/// What happened to packets, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub offered_packets: u64,
    pub offered_bytes: u64,
    pub dropped_buffer: u64,
    pub dropped_loss: u64,
    pub dropped_outage: u64,
}

impl Counts {
    /// What was added since `before`.
    pub fn since(&self, before: &Counts) -> Counts {
        Counts {
            offered_packets: self.offered_packets - before.offered_packets,
            offered_bytes: self.offered_bytes - before.offered_bytes,
            dropped_buffer: self.dropped_buffer - before.dropped_buffer,
            dropped_loss: self.dropped_loss - before.dropped_loss,
            dropped_outage: self.dropped_outage - before.dropped_outage,
        }
    }
}

pub struct Direction {
    steps: Vec<Step>,
    cursor: usize,
    overrides: Overrides,
    values: Values,
    /// Service is computed up to here.
    now_ns: u64,
    /// What the head still needs, in bit·ns/s.
    left: u128,
    queue: VecDeque<Waiting>,
    queue_bytes: u64,
    line: VecDeque<Flying>,
    last_due_ns: u64,
    random: Random,
    counts: Counts,
    delivered_packets: u64,
    opportunities: Option<Opportunities>,
    light: Option<Light>,
    /// Bits that opportunities would have carried, used or not.
    offered_bits: u64,
}

impl Direction {
    /// `steps`: at least one, by time; the first holds before its time too, the last for ever.
    pub fn new(steps: Vec<Step>, start_ns: u64, random: Random) -> Self {
        let values = steps[0].values;
        let mut direction = Direction {
            steps,
            cursor: 0,
            overrides: Overrides::default(),
            values,
            now_ns: 0,
            left: 0,
            queue: VecDeque::new(),
            queue_bytes: 0,
            line: VecDeque::new(),
            last_due_ns: 0,
            random,
            counts: Counts::default(),
            delivered_packets: 0,
            opportunities: None,
            light: None,
            offered_bits: 0,
        };
        direction.advance(start_ns);
        direction
    }

    /// Let the capacity come in opportunities from now on; none of them may lie before the start.
    pub fn with_opportunities(mut self, opportunities: Option<Opportunities>) -> Self {
        self.opportunities = opportunities;
        self
    }

    /// Let them be those of a loaded link, and `light` hold while it is hardly used.
    pub fn with_light(mut self, light: Option<Light>) -> Self {
        self.light = light;
        self
    }

    /// Bits that opportunities offered since the start, outages not counted; None where the capacity is a rate.
    pub fn offered_bits(&self) -> Option<u64> {
        self.traced().then_some(self.offered_bits)
    }

    fn traced(&self) -> bool {
        self.opportunities.is_some() && !self.overrides.has_rate()
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Packets handed out by `take_due` since the start.
    pub fn delivered_packets(&self) -> u64 {
        self.delivered_packets
    }

    /// Bytes that wait, the packet in service counted whole. As of the time last advanced to.
    pub fn queue_bytes(&self) -> u64 {
        self.queue_bytes
    }

    /// What the link offers at the time last advanced to.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Serve up to `to_ns`; times before the last are taken as the last.
    pub fn advance(&mut self, to_ns: u64) {
        while self.now_ns < to_ns {
            let change_ns = self.steps.get(self.cursor + 1).map_or(u64::MAX, |step| step.at_ns);
            self.serve(to_ns.min(change_ns));
            if self.now_ns >= change_ns {
                self.cursor += 1;
                self.refresh();
            }
        }
    }

    /// Change a quantity at `at_ns`; what was offered until then is served by the old value.
    pub fn change(&mut self, at_ns: u64, change: Change) {
        self.advance(at_ns);
        self.overrides.apply(change);
        self.refresh();
    }

    fn refresh(&mut self) {
        let before = self.values.discards();
        self.values = self.overrides.over(&self.steps[self.cursor].values);
        if self.values.discards() && !before {
            self.counts.dropped_outage += self.queue.len() as u64;
            self.queue.clear();
            self.queue_bytes = 0;
        }
    }

    /// Constant values from `now_ns` to `until_ns`.
    fn serve(&mut self, until_ns: u64) {
        if self.traced() {
            self.serve_opportunities(until_ns);
            return;
        }
        if let Some(opportunities) = &mut self.opportunities {
            opportunities.pass(until_ns);
        }
        if let Some(light) = &mut self.light {
            light.opportunities.pass(until_ns);
            light.pass(until_ns, false);
        }
        let capacity = u128::from(self.values.capacity());
        while capacity > 0 && !self.queue.is_empty() {
            let finish_ns = self.now_ns.saturating_add(span(self.left, capacity));
            if finish_ns > until_ns {
                self.left -= capacity * u128::from(until_ns - self.now_ns);
                break;
            }
            let surplus = capacity * u128::from(finish_ns - self.now_ns) - self.left;
            self.now_ns = finish_ns;
            self.depart();
            if let Some(next) = self.queue.front() {
                // More than a whole packet within one nanosecond needs more than 160 Gbit/s: beyond MAX_RATE.
                self.left = work(&next.bytes).saturating_sub(surplus);
            }
        }
        self.now_ns = until_ns;
    }

    /// Each opportunity by `until_ns` carries what waits at its instant.
    fn serve_opportunities(&mut self, until_ns: u64) {
        let open = !self.values.outage;
        while open && !self.queue.is_empty() {
            let Some((at_ns, light)) = self.next_opportunity().filter(|(at_ns, _)| *at_ns <= until_ns) else { break };
            self.now_ns = self.now_ns.max(at_ns);
            self.wait_until(self.now_ns);
            let bits = self.bits_of(light);
            self.offered_bits += bits;
            match (&mut self.light, &mut self.opportunities) {
                (Some(own), _) if light => own.opportunities.take(),
                (_, Some(opportunities)) => opportunities.take(),
                _ => {}
            }
            let mut budget = u128::from(bits) * UNITS_PER_BIT;
            while budget > 0 && !self.queue.is_empty() {
                let carried = budget.min(self.left);
                budget -= carried;
                self.left -= carried;
                if self.left == 0 {
                    self.depart();
                    self.left = self.queue.front().map_or(0, |next| work(&next.bytes));
                }
            }
        }
        self.wait_until(until_ns);
        let passed = self.opportunities.as_mut().map_or(0, |o| o.pass(until_ns)) * self.bits_of(false)
            + self.light.as_mut().map_or(0, |light| light.opportunities.pass(until_ns)) * self.bits_of(true);
        self.offered_bits += if open { passed } else { 0 };
        self.now_ns = until_ns;
    }

    /// When the next opportunity is, and whether it is one of the light trace.
    fn next_opportunity(&self) -> Option<(u64, bool)> {
        let light = self.light.as_ref().map(|light| (light.opportunities.next_ns(), true));
        self.opportunities.as_ref().map(|o| (o.next_ns(), false)).into_iter().chain(light).min()
    }

    /// What one opportunity carries now.
    fn bits_of(&self, light: bool) -> u64 {
        let share = self.light.as_ref().map_or(1.0, |own| if light { 1.0 - own.load() } else { own.load() });
        ((opportunities::BYTES * 8) as f64 * share).round() as u64
    }

    /// Time passes up to `to_ns` with what waits now.
    fn wait_until(&mut self, to_ns: u64) {
        let waits = !self.queue.is_empty();
        if let Some(light) = &mut self.light {
            light.pass(to_ns, waits);
        }
    }

    fn depart(&mut self) {
        if let Some(packet) = self.queue.pop_front() {
            self.queue_bytes -= packet.bytes.len() as u64;
            // A shorter delay never overtakes: radio links deliver in order.
            let loaded_ns = self.values.delay_ns;
            let delay_ns = self.light.as_ref().map_or(loaded_ns, |light| light.delay_ns(loaded_ns));
            self.last_due_ns = self.last_due_ns.max(self.now_ns + delay_ns);
            self.line.push_back(Flying {
                bytes: packet.bytes,
                arrived_ns: packet.arrived_ns,
                due_ns: self.last_due_ns,
            });
        }
    }

    /// A packet arrives at `at_ns`. An empty queue takes any packet, whatever the buffer: else a tiny one would block.
    pub fn offer(&mut self, at_ns: u64, bytes: &[u8]) {
        self.advance(at_ns);
        let size = bytes.len() as u64;
        self.counts.offered_packets += 1;
        self.counts.offered_bytes += size;
        if self.random.hit(self.values.loss) {
            self.counts.dropped_loss += 1;
        } else if self.values.discards() {
            self.counts.dropped_outage += 1;
        } else if !self.queue.is_empty() && self.queue_bytes + size > self.values.buffer {
            self.counts.dropped_buffer += 1;
        } else {
            if self.queue.is_empty() {
                self.left = work(bytes);
            }
            self.queue_bytes += size;
            self.queue.push_back(Waiting { bytes: bytes.into(), arrived_ns: self.now_ns });
        }
    }

    /// The next packet to be written out by `now_ns`, if any.
    pub fn take_due(&mut self, now_ns: u64) -> Option<Flying> {
        if self.line.front()?.due_ns > now_ns {
            return None;
        }
        self.delivered_packets += 1;
        self.line.pop_front()
    }

    /// When there will be something to write out, or when to ask again; None: not before something arrives or changes.
    pub fn next_event(&self) -> Option<u64> {
        if let Some(first) = self.line.front() {
            return Some(first.due_ns);
        }
        self.queue.front()?;
        if let Some((next_ns, _)) = self.next_opportunity().filter(|_| self.traced()) {
            // While it is closed nothing happens before the next change.
            let change_ns = self.steps.get(self.cursor + 1).map(|step| step.at_ns);
            return if self.values.outage { change_ns } else { Some(next_ns) };
        }
        let mut now_ns = self.now_ns;
        let mut left = self.left;
        let mut values = self.values;
        for cursor in self.cursor..self.cursor + LOOK_AHEAD {
            let change = self.steps.get(cursor + 1);
            let until_ns = change.map_or(u64::MAX, |step| step.at_ns);
            let capacity = u128::from(values.capacity());
            if capacity > 0 {
                let finish_ns = now_ns.saturating_add(span(left, capacity));
                if finish_ns <= until_ns {
                    return Some(self.last_due_ns.max(finish_ns.saturating_add(values.delay_ns)));
                }
                left -= capacity * u128::from(until_ns - now_ns);
            }
            values = self.overrides.over(&change?.values);
            now_ns = until_ns;
        }
        Some(now_ns)
    }
}

fn work(bytes: &[u8]) -> u128 {
    bytes.len() as u128 * 8 * UNITS_PER_BIT
}

/// Whole nanoseconds that `left` takes, rounded up.
fn span(left: u128, capacity: u128) -> u64 {
    u64::try_from(left.div_ceil(capacity)).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "model_trace_tests.rs"]
mod trace_tests;

#[cfg(test)]
#[path = "load_tests.rs"]
mod load_tests;
