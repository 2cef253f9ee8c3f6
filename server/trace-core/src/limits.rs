//! What a capture may cost at most. What goes beyond is left out and named, never silently.

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
