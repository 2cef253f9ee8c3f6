//! Packets on their way through the model, and what became of them.

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
