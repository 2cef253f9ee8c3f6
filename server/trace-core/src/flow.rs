//! One subflow: what each of its two ends sent, and how it was opened.

use crate::bins::Meter;
use crate::data_level::Late;
use crate::echoes::{Patience, Pending};
use crate::mapping::Mappings;
use crate::numbers::first;
use crate::ranges::{Found, Ranges};
use crate::samples::Values;
use crate::segment::Key;
use crate::table::Place;
use crate::unacknowledged::Unacknowledged;

/// One end as a sender.
#[derive(Debug, Default)]
pub struct Side {
    /// A sequence number of it is known, and `top` is the highest.
    pub begun: bool,
    /// Which one it is.
    pub place: Place,
    pub top: u64,
    /// First number that may come: below it is what passed before the capture began, or damage.
    pub floor: u64,
    pub initial: Option<u32>,
    pub ranges: Ranges,
    pub acked: u64,
    pub acked_known: bool,
    /// Beyond `acked`, as the last acknowledgement's blocks say.
    pub sacked: u64,
    /// Where its FIN stands.
    pub fin: Option<u64>,
    pub reset: bool,
    pub sent: Unacknowledged,
    pub pending: Pending,
    pub patience: Patience,
    pub last_time: Option<i64>,
    /// Acknowledgement of the other end that this end had seen, by its echoes.
    pub seen_acknowledgement: Option<u64>,
    /// What blocks beyond it said then.
    pub seen_sacked: u64,
    pub mappings: Mappings,
    /// Payload that came before its mapping, in the order of its coming.
    pub late: Vec<Late>,
    /// The connection's DATA_ACKs wait for it.
    pub waits: bool,
    /// There was more of it than is kept, and the initial sequence number is not known: no more is.
    pub hopeless: bool,
    /// Packets with new data that did not wait at the data level.
    pub prompt: u64,
    /// Time to live of its packets.
    pub hops: u8,
    /// IP's identification of its first packet.
    pub id: Option<u16>,
    /// How many checksums were what `Sum` says.
    pub checksums: [u32; 4],
    pub scale: Option<u8>,
    pub mss: Option<u16>,
    pub address_id: Option<u8>,
    /// As it said last, scaled.
    pub window: Option<u64>,
    /// Bytes of it in flight, by acknowledgements and by echoes.
    pub flight: [u64; 2],
    /// What of it is in the connection's sum.
    pub counted: [u64; 2],
    pub meter: Meter,
    pub values: [Values; 2],
}

impl Side {
    /// Its first number, of a SYN.
    pub fn begin_with_syn(&mut self, initial: u32) {
        let origin = first(initial) + 1;
        self.begun = true;
        self.initial = Some(initial);
        self.top = origin;
        self.floor = origin;
        self.ranges = Ranges::from(origin);
        self.acked = origin;
        self.acked_known = true;
        self.mappings.with_initial(origin - 1);
    }

    /// Its first number, in the midst of it.
    pub fn begin(&mut self, number: u32) {
        self.begun = true;
        self.top = first(number);
        self.floor = self.top;
        self.ranges = Ranges::from(self.top);
    }

    /// Sent, and neither acknowledged nor named in a block.
    #[inline(always)]
    pub fn unacknowledged(&self) -> u64 {
        self.top.saturating_sub(self.acked).saturating_sub(self.sacked)
    }

    /// Takes payload in.
    #[inline(always)]
    pub fn take(&mut self, start: u64, end: u64) -> Found {
        if start >= self.floor {
            return self.ranges.insert(start, end);
        }
        self.take_below(start, end)
    }

    #[cold]
    fn take_below(&mut self, start: u64, end: u64) -> Found {
        let below = end.min(self.floor) - start;
        let mut found = self.ranges.insert(self.floor, end.max(self.floor));
        if self.initial.is_some() {
            found.seen += below;
        } else {
            found.new += below;
            found.filled += below;
        }
        found
    }
}

/// When which packet of the handshake passed.
#[derive(Debug, Default)]
pub struct Handshake {
    pub first_syn: Option<(i64, Option<u32>)>,
    pub last_syn: Option<(i64, Option<u32>)>,
    pub syns: u32,
    pub answer: Option<i64>,
    pub answers: u32,
    pub established: Option<i64>,
    /// Time of the SYN that was answered.
    pub answered: Option<i64>,
}

impl Handshake {
    /// A SYN/ACK came that echoes this TSval: which SYN does it answer?
    pub fn answered_by(&mut self, time: i64, echo: Option<u32>) {
        self.answers += 1;
        if self.answer.is_some() {
            return;
        }
        self.answer = Some(time);
        let told = |syn: Option<(i64, Option<u32>)>| syn.filter(|syn| syn.1.is_some() && syn.1 == echo);
        self.answered = match self.syns {
            1 => self.last_syn,
            _ if self.first_syn.map(|syn| syn.1) == self.last_syn.map(|syn| syn.1) => None,
            _ => told(self.last_syn).or(told(self.first_syn)),
        }
        .map(|syn| syn.0);
    }

    pub fn to_answer(&self) -> Option<i64> {
        self.answer.zip(self.answered).map(|(answer, syn)| answer.saturating_sub(syn))
    }

    pub fn to_established(&self) -> Option<i64> {
        let once = self.answers == 1;
        self.established.zip(self.answer).filter(|_| once).map(|(established, answer)| established.saturating_sub(answer))
    }

    pub fn rtt(&self) -> Option<i64> {
        self.to_answer().zip(self.to_established()).map(|(one, two)| one.saturating_add(two)).filter(|rtt| *rtt >= 0)
    }
}

/// How a subflow came to its connection; codes of the column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Joined {
    First,
    Token,
    Likeness,
    None,
}

#[derive(Debug)]
pub struct Flow {
    pub connection: u32,
    pub number: u32,
    /// From who opened this subflow.
    pub key: Key,
    pub sides: [Side; 2],
    /// Its opener is the connection's responder.
    pub flip: bool,
    pub joined: Joined,
    /// A SYN or SYN/ACK told who opened it.
    pub opener_known: bool,
    pub handshake: Handshake,
    /// Both ends' window scales are known.
    pub scaled: bool,
    pub start: i64,
    pub end: i64,
    pub backup: bool,
    pub timestamps: bool,
    /// The SYN had MP_JOIN.
    pub join: bool,
    /// The SYN had MP_CAPABLE.
    pub capable: bool,
    pub fast_closed: bool,
    pub reset_reason: Option<u8>,
}

impl Flow {
    pub fn new(connection: u32, key: Key, time: i64) -> Self {
        Flow {
            connection,
            number: 0,
            key,
            sides: Default::default(),
            flip: false,
            joined: Joined::None,
            opener_known: false,
            handshake: Handshake::default(),
            scaled: false,
            start: time,
            end: time,
            backup: false,
            timestamps: false,
            join: false,
            capable: false,
            fast_closed: false,
            reset_reason: None,
        }
    }

    /// Code of `closed_by`.
    pub fn closed_by(&self) -> u8 {
        if self.fast_closed {
            2
        } else if self.sides.iter().any(|side| side.reset) {
            4
        } else if self.sides.iter().all(|side| side.fin.is_some()) {
            3
        } else {
            0
        }
    }

    /// Nothing more belongs to it: a new SYN on the same ports is another subflow.
    pub fn is_over(&self) -> bool {
        self.sides.iter().any(|side| side.reset || side.fin.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_syn_is_told_by_its_timestamp() {
        let mut handshake = Handshake { syns: 2, first_syn: Some((0, Some(5))), last_syn: Some((1000, Some(6))), ..Default::default() };
        handshake.answered_by(1100, Some(5));
        assert_eq!(handshake.to_answer(), Some(1100));
        let mut handshake = Handshake { syns: 2, first_syn: Some((0, None)), last_syn: Some((1000, None)), ..Default::default() };
        handshake.answered_by(1100, None);
        assert_eq!(handshake.to_answer(), None);
    }

    #[test]
    fn below_the_first_of_a_cut_capture_is_new() {
        let mut side = Side::default();
        side.begin(1000);
        let at = side.top;
        assert_eq!(side.take(at - 100, at + 100), Found { new: 200, seen: 0, filled: 100 });
    }
}
