//! RTT at the receiver: from the first packet with a TSval to the first that echoes it (RFC 7323 §4), and what the echo tells of the
//! acknowledgement that the other end had seen.

use crate::ring::Ring;

/// TSvals of one end that the other has not echoed yet, oldest first.
#[derive(Debug, Default)]
pub struct Pending {
    waiting: Ring<Sent>,
    last: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    value: u32,
    time: i64,
    /// Acknowledgement in the last packet with this value, and what its SACK blocks named beyond.
    acknowledgement: (u64, u64),
}

/// What an echo found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// When the value was first sent; None: it was echoed before.
    pub sent: Option<i64>,
    pub acknowledgement: u64,
    pub sacked: u64,
}

impl Pending {
    /// A packet with this TSval passed. False: there was no room, and the oldest is forgotten.
    #[inline(always)]
    pub fn sent(&mut self, value: u32, time: i64, acknowledgement: (u64, u64), most: u64) -> bool {
        match self.last {
            Some(last) if value == last => {
                if let Some(sent) = self.waiting.back_mut() {
                    if acknowledgement.0 >= sent.acknowledgement.0 {
                        sent.acknowledgement = acknowledgement;
                    }
                }
                return true;
            }
            // An older one that comes late makes no sample.
            Some(last) if (value.wrapping_sub(last) as i32) < 0 => return true,
            _ => {}
        }
        self.last = Some(value);
        self.waiting.push_back(Sent { value, time, acknowledgement });
        if self.waiting.len() as u64 <= most {
            return true;
        }
        self.waiting.pop_front();
        false
    }

    /// The other end says that it has this TSval.
    #[inline(always)]
    pub fn echoed(&mut self, value: u32) -> Option<Echo> {
        let mut found = None;
        while let Some(sent) = self.waiting.front() {
            if (value.wrapping_sub(sent.value) as i32) < 0 {
                break;
            }
            let sent_at = (sent.value == value).then_some(sent.time);
            let (acknowledgement, sacked) = sent.acknowledgement;
            found = Some(Echo { sent: sent_at, acknowledgement, sacked });
            self.waiting.pop_front();
        }
        found
    }
}

/// RFC 6298 §2 without its floor of a second: how long the other end may be silent before its next echo tells of a pause, not of the path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    smoothed: i64,
    deviation: i64,
}

const LEAST_DEVIATION_NS: i64 = 20_000_000;
const WITHOUT_ANY_NS: i64 = 1_000_000_000;

impl Patience {
    #[inline(always)]
    pub fn learn(&mut self, rtt: i64) {
        if self.smoothed == 0 {
            self.smoothed = rtt.max(1);
            self.deviation = rtt / 2;
            return;
        }
        self.deviation += ((rtt - self.smoothed).abs() - self.deviation) / 4;
        self.smoothed = (self.smoothed + (rtt - self.smoothed) / 8).max(1);
    }

    /// `gap`: since the packet before.
    #[inline(always)]
    pub fn was_idle(&self, gap: i64) -> bool {
        if self.smoothed == 0 {
            return gap > WITHOUT_ANY_NS;
        }
        gap > self.smoothed + (4 * self.deviation).max(LEAST_DEVIATION_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_echo_of_the_first_packet() {
        let mut pending = Pending::default();
        pending.sent(7, 100, (1, 0), 9);
        pending.sent(7, 110, (2, 5), 9);
        pending.sent(9, 120, (3, 0), 9);
        assert_eq!(pending.echoed(6), None);
        assert_eq!(pending.echoed(7), Some(Echo { sent: Some(100), acknowledgement: 2, sacked: 5 }));
        assert_eq!(pending.echoed(7), None);
        // One that was never sent tells only that older ones arrived.
        assert_eq!(pending.echoed(10), Some(Echo { sent: None, acknowledgement: 3, sacked: 0 }));
    }

    #[test]
    fn values_go_over_the_edge() {
        let mut pending = Pending::default();
        pending.sent(0xffff_ffff, 1, (0, 0), 9);
        pending.sent(1, 2, (0, 0), 9);
        assert_eq!(pending.echoed(1).and_then(|echo| echo.sent), Some(2));
    }

    #[test]
    fn patience_follows_the_path() {
        let mut patience = Patience::default();
        assert!(!patience.was_idle(900_000_000));
        for _ in 0..50 {
            patience.learn(50_000_000);
        }
        assert!(!patience.was_idle(60_000_000));
        assert!(patience.was_idle(80_000_000));
    }
}
