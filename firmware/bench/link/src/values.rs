//! What one direction of the link offers at a moment, and how a person or a test changes it at run time.

use crate::random;

/// Largest rate taken, bit/s: beyond it a user-space link makes no sense and sums could overflow.
pub const MAX_RATE: f64 = 1e11;
/// Largest delay one way, ns (60 s).
pub const MAX_DELAY_NS: u64 = 60_000_000_000;
/// Largest buffer, bytes: it is held in memory.
pub const MAX_BUFFER: f64 = 1e9;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Values {
    /// bit/s when there is no outage.
    pub rate: u64,
    /// Propagation one way, ns.
    pub delay_ns: u64,
    /// Bytes that may wait, the packet in service counted whole.
    pub buffer: u64,
    /// Loss before the queue, as `random::threshold`.
    pub loss: u128,
    pub outage: bool,
    /// During an outage: the queue is emptied at its start and what arrives is dropped.
    pub queue_dropped: bool,
}

impl Values {
    /// bit/s offered now.
    pub fn capacity(&self) -> u64 {
        if self.outage {
            0
        } else {
            self.rate
        }
    }

    /// True while nothing is let into the queue.
    pub fn discards(&self) -> bool {
        self.outage && self.queue_dropped
    }
}

/// One quantity with its new value; None: what the timeline says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    Rate(Option<u64>),
    DelayNs(Option<u64>),
    Buffer(Option<u64>),
    Loss(Option<u128>),
    Outage(Option<bool>),
    QueueDropped(Option<bool>),
}

/// Quantities set at run time; None lets the timeline speak.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overrides {
    rate: Option<u64>,
    delay_ns: Option<u64>,
    buffer: Option<u64>,
    loss: Option<u128>,
    outage: Option<bool>,
    queue_dropped: Option<bool>,
}

impl Overrides {
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Rate(value) => self.rate = value,
            Change::DelayNs(value) => self.delay_ns = value,
            Change::Buffer(value) => self.buffer = value,
            Change::Loss(value) => self.loss = value,
            Change::Outage(value) => self.outage = value,
            Change::QueueDropped(value) => self.queue_dropped = value,
        }
    }

    /// Whether a rate was set.
    pub fn has_rate(&self) -> bool {
        self.rate.is_some()
    }

    pub fn over(&self, base: &Values) -> Values {
        Values {
            rate: self.rate.unwrap_or(base.rate),
            delay_ns: self.delay_ns.unwrap_or(base.delay_ns),
            buffer: self.buffer.unwrap_or(base.buffer),
            loss: self.loss.unwrap_or(base.loss),
            outage: self.outage.unwrap_or(base.outage),
            queue_dropped: self.queue_dropped.unwrap_or(base.queue_dropped),
        }
    }
}

/// bit/s from a number; the error says what is allowed.
pub fn rate(number: f64) -> Result<u64, String> {
    within(number, 0.0, MAX_RATE, "bit/s").map(|v| v.round() as u64)
}

/// One-way delay from a round trip in ms.
pub fn delay_of_rtt(rtt_ms: f64) -> Result<u64, String> {
    within(rtt_ms, 0.0, MAX_DELAY_NS as f64 / 1e6 * 2.0, "ms").map(|v| (v * 5e5).round() as u64)
}

/// One-way delay from µs.
pub fn delay_of_us(us: f64) -> Result<u64, String> {
    within(us, 0.0, MAX_DELAY_NS as f64 / 1e3, "µs").map(|v| (v * 1e3).round() as u64)
}

/// Bytes from a number.
pub fn buffer(number: f64) -> Result<u64, String> {
    within(number, 0.0, MAX_BUFFER, "bytes").map(|v| v.round() as u64)
}

/// A probability from a number.
pub fn loss(number: f64) -> Result<u128, String> {
    within(number, 0.0, 1.0, "(a share)").map(random::threshold)
}

fn within(number: f64, low: f64, high: f64, unit: &str) -> Result<f64, String> {
    if number >= low && number <= high {
        return Ok(number);
    }
    Err(format!("{number} is not within {low} to {high} {unit}"))
}
