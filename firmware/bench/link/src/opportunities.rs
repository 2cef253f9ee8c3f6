//! A packet-delivery trace (mahimahi's format): at which millisecond the link may deliver 1500 bytes, over and over.
//!
//! One whole number a line, milliseconds since the trace's start, never falling; the same number twice is two opportunities.
//! After its last number the trace begins again at that instant. Accounting is by bytes: one opportunity may carry several
//! small packets, or the end of one and the beginning of the next. What finds nothing to deliver is lost.
//!
//! How a link that is hardly used differs from one that is: CellReplay's two delivery traces (Sentosa et al., NSDI 2025), and what
//! lies between them.
//!
//! A mobile network gives a lone packet less, and later, than a queue that does not end: grants, carriers and modulation follow the
//! demand. So a direction may have two traces, recorded with light and with heavy load, and a propagation delay of each. Its load is
//! the share of the time in which something waited, forgotten over `memory_ns`; an opportunity of the heavy trace carries that share of
//! its bytes, one of the light trace the rest, and delays lie in between alike.

const MS: u64 = 1_000_000;
/// Bytes of one opportunity.
pub const BYTES: u64 = 1500;
/// Longest trace, ms (eleven days), and most lines: it is held in memory.
const MAX_MS: u64 = 1_000_000_000;
const MAX_LINES: usize = 20_000_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// At least one; never falling; the last is above 0.
    at_ms: Vec<u64>,
}

impl Trace {
    /// Parse a trace. The error is `LINE: what is wrong; hint: how`; the caller puts the file's name before it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut at_ms: Vec<u64> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let wrong = |what: String, hint: &str| Err(format!("{number}: {what}; hint: {hint}"));
            let digits = !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit());
            let Some(ms) = digits.then(|| line.parse::<u64>().ok()).flatten().filter(|&ms| ms <= MAX_MS) else {
                let shown: String = line.chars().take(20).collect();
                return wrong(
                    format!("{shown:?} is no time"),
                    "one whole number of milliseconds a line, 0 to 1000000000",
                );
            };
            if at_ms.last().is_some_and(|&before| ms < before) {
                return wrong(format!("{ms} comes after a later time"), "sort the lines by number");
            }
            if at_ms.len() >= MAX_LINES {
                return wrong(format!("more than {MAX_LINES} lines"), "cut the trace");
            }
            at_ms.push(ms);
        }
        match at_ms.last() {
            None => Err("1: the trace is empty; hint: one whole number of milliseconds a line".into()),
            Some(0) => {
                Err(format!("{}: the trace ends at 0 and could never begin again; hint: end it later", at_ms.len()))
            }
            Some(_) => Ok(Trace { at_ms }),
        }
    }

    /// How many there are, and after how many ms they begin again.
    pub fn size(&self) -> (usize, u64) {
        (self.at_ms.len(), self.period_ms())
    }

    fn period_ms(&self) -> u64 {
        self.at_ms.last().copied().unwrap_or(1)
    }
}

/// A trace laid on the clock: its opportunities one after the other.
#[derive(Debug)]
pub struct Opportunities {
    trace: Trace,
    /// When the present round began.
    round_ns: u64,
    next: usize,
}

impl Opportunities {
    /// `epoch_ns`: when a round begins; rounds also lie before it. Nothing before `start_ns` is handed out.
    pub fn new(trace: Trace, epoch_ns: u64, start_ns: u64) -> Self {
        let period_ns = trace.period_ms() * MS;
        let rounds_before = epoch_ns.saturating_sub(start_ns).div_ceil(period_ns);
        let round_ns = epoch_ns.saturating_sub(rounds_before * period_ns);
        let mut made = Opportunities { trace, round_ns, next: 0 };
        made.pass(start_ns);
        made
    }

    /// When the next one is.
    pub fn next_ns(&self) -> u64 {
        self.round_ns + self.trace.at_ms[self.next] * MS
    }

    /// Use the next one up.
    pub fn take(&mut self) {
        self.next += 1;
        if self.next == self.trace.at_ms.len() {
            self.next = 0;
            self.round_ns += self.trace.period_ms() * MS;
        }
    }

    /// Let all pass unused that are not after `to_ns`; how many that were. Costs the same whether one or a million rounds pass.
    pub fn pass(&mut self, to_ns: u64) -> u64 {
        let mut passed = 0;
        if self.next_ns() > to_ns {
            return 0;
        }
        let period_ns = self.trace.period_ms() * MS;
        let rounds = (to_ns - self.round_ns) / period_ns;
        // The last of a round and the first of the next may lie at the same instant: stay a round behind and walk on.
        if rounds > 1 {
            let skipped = rounds - 1;
            self.round_ns += skipped * period_ns;
            passed += skipped * self.trace.at_ms.len() as u64;
        }
        while self.next_ns() <= to_ns {
            let within_ms = (to_ns - self.round_ns) / MS;
            let end = self.trace.at_ms.partition_point(|&ms| ms <= within_ms).max(self.next + 1);
            passed += (end - self.next) as u64;
            self.next = end - 1;
            self.take();
        }
        passed
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn laid(text: &str, epoch_ns: u64, start_ns: u64) -> Opportunities {
        Opportunities::new(Trace::parse(text).unwrap(), epoch_ns, start_ns)
    }

    fn first(opportunities: &mut Opportunities, count: usize) -> Vec<u64> {
        (0..count)
            .map(|_| {
                let at = opportunities.next_ns() / MS;
                opportunities.take();
                at
            })
            .collect()
    }

    #[test]
    fn a_trace_begins_again_at_its_last_number() {
        assert_eq!(first(&mut laid("1\n1\n5\n", 100 * MS, 100 * MS), 7), [101, 101, 105, 106, 106, 110, 111]);
        assert_eq!(first(&mut laid("0\n5\n", 0, 1), 4), [5, 5, 10, 10]);
    }

    #[test]
    fn rounds_lie_before_the_epoch_too() {
        assert_eq!(first(&mut laid("2\n5\n", 100 * MS, 91 * MS), 5), [92, 95, 97, 100, 102]);
        assert_eq!(first(&mut laid("2\n5\n", 3 * MS, 0), 3), [2, 5, 7]); // no time before the clock began
    }

    #[test]
    fn what_is_wrong_is_said_with_line_and_hint() {
        for (text, message) in [
            ("", "1: the trace is empty; hint: one"),
            ("1\n\n2\n", "2: \"\" is no time; hint: one"),
            ("1\n2.5\n", "2: \"2.5\" is no time"),
            ("-1\n", "1: \"-1\" is no time"),
            ("+1\n", "1: \"+1\" is no time"),
            (" 1\n", "1: \" 1\" is no time"),
            ("1000000001\n", "1: \"1000000001\" is no time"),
            ("5\n4\n", "2: 4 comes after a later time; hint: sort"),
            ("0\n0\n", "2: the trace ends at 0"),
        ] {
            let error = Trace::parse(text).unwrap_err();
            assert!(error.starts_with(message) && error.contains("; hint: "), "{error}");
        }
        assert_eq!(Trace::parse("7").unwrap().size(), (1, 7)); // no line break at the end
        assert_eq!(Trace::parse("7\r\n").unwrap().size(), (1, 7));
    }

    #[test]
    fn passing_over_is_the_same_as_taking_one_by_one() {
        let mut random = Random::new(3, 0);
        for _ in 0..300 {
            let mut at = 0;
            let lines: Vec<String> = (0..1 + random.next() % 6)
                .map(|_| {
                    at += random.next() % 4;
                    at.to_string()
                })
                .collect();
            let text = lines.join("\n") + &format!("\n{}", at + 1);
            let start = random.next() % 50 * MS;
            let (mut quick, mut slow) = (laid(&text, 20 * MS, start), laid(&text, 20 * MS, start));
            let mut now = start;
            for _ in 0..20 {
                now += random.next() % (40 * MS);
                let passed = quick.pass(now);
                let mut taken = 0;
                while slow.next_ns() <= now {
                    slow.take();
                    taken += 1;
                }
                assert_eq!(
                    (passed, quick.next_ns(), quick.next),
                    (taken, slow.next_ns(), slow.next),
                    "{text} at {now}"
                );
            }
        }
    }

    #[test]
    fn no_text_makes_it_panic() {
        let mut random = Random::new(9, 0);
        let mut taken = 0;
        for _ in 0..20_000 {
            let text: String = (0..random.next() % 12)
                .map(|_| b"0123456789\n\n\n -x"[(random.next() % 16) as usize] as char)
                .collect();
            if let Ok(trace) = Trace::parse(&text) {
                taken += 1;
                let mut laid = Opportunities::new(trace, random.next() >> 20, random.next() >> 20);
                let at = laid.next_ns();
                laid.take();
                assert!(laid.next_ns() >= at);
            }
        }
        assert!(taken > 500, "{taken}");
    }
}
