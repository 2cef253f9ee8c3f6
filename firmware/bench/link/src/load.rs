//! How a link that is hardly used differs from one that is: CellReplay's two delivery traces (Sentosa et al., NSDI 2025), and what
//! lies between them.
//!
//! A mobile network gives a lone packet less, and later, than a queue that does not end: grants, carriers and modulation follow the
//! demand. So a direction may have two traces, recorded with light and with heavy load, and a propagation delay of each. Its load is
//! the share of the time in which something waited, forgotten over `memory_ns`; an opportunity of the heavy trace carries that share of
//! its bytes, one of the light trace the rest, and delays lie in between alike.

use crate::opportunities::Opportunities;

/// What holds while the link is hardly used.
#[derive(Debug)]
pub struct Light {
    pub opportunities: Opportunities,
    /// Propagation one way, ns; None: that of the loaded link.
    delay_ns: Option<u64>,
    load: f64,
    memory_ns: f64,
    at_ns: u64,
}

impl Light {
    /// `memory_ns` above 0.
    pub fn new(opportunities: Opportunities, delay_ns: Option<u64>, memory_ns: u64, start_ns: u64) -> Self {
        Light { opportunities, delay_ns, load: 0.0, memory_ns: memory_ns as f64, at_ns: start_ns }
    }

    /// From the time last passed to until `to_ns` something waited, or nothing did.
    pub fn pass(&mut self, to_ns: u64, waited: bool) {
        let kept = (-(to_ns.saturating_sub(self.at_ns) as f64) / self.memory_ns).exp();
        let target = if waited { 1.0 } else { 0.0 };
        self.load = target + (self.load - target) * kept;
        self.at_ns = self.at_ns.max(to_ns);
    }

    /// 0 to 1, as of the time last passed to.
    pub fn load(&self) -> f64 {
        self.load
    }

    /// The delay now, where that under load is `loaded_ns`.
    pub fn delay_ns(&self, loaded_ns: u64) -> u64 {
        let own_ns = self.delay_ns.unwrap_or(loaded_ns);
        (own_ns as f64 * (1.0 - self.load) + loaded_ns as f64 * self.load).round() as u64
    }
}
