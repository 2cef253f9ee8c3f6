//! One subflow: what each of its two ends sent, and how it was opened; and which subflow a packet belongs to.

use std::collections::hash_map::RandomState;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};

use crate::bins::Meter;
use crate::connection::Mappings;
use crate::data_level::Late;
use crate::ranges::{first, Found, Ranges};
use crate::rtt::{Patience, Pending, Unacknowledged, Values};
use crate::segment::{Key, SIX};

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

// ---------------------------------------------------------------------------------------------------------------------
// Which subflow a packet belongs to: by its addresses and ports, in either direction.

/// Multiplies and folds, from a start that nobody outside this process knows: fast, and collisions cannot be prepared.
#[derive(Clone, Debug)]
pub struct Folding {
    start: u64,
    factor: u64,
}

impl Default for Folding {
    fn default() -> Self {
        let random = RandomState::new();
        Folding { start: random.hash_one(1_u8), factor: random.hash_one(2_u8) | 1 }
    }
}

impl BuildHasher for Folding {
    type Hasher = Folded;

    #[inline(always)]
    fn build_hasher(&self) -> Folded {
        Folded { state: self.start, factor: self.factor }
    }
}

pub struct Folded {
    state: u64,
    factor: u64,
}

impl Hasher for Folded {
    #[inline(always)]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.factor);
        self.state = (product >> 64) as u64 ^ product as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.state
    }
}

impl Hash for Key {
    #[inline(always)]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let [a, b, c, d, ports] = self.0;
        hasher.write_u64(a);
        if ports & SIX != 0 {
            hasher.write_u64(b);
            hasher.write_u64(c);
            hasher.write_u64(d);
        }
        hasher.write_u64(ports);
    }
}

/// A subflow's number and which of its ends sent this: 0 its opener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub flow: u32,
    pub side: u8,
}

/// No packet has this key: bits are set in it that are no port's.
const NOTHING: [(Key, Place); 2] = [(Key([u64::MAX; 5]), Place { flow: u32::MAX, side: 0 }); 2];

#[derive(Debug)]
pub struct Table {
    places: HashMap<Key, Place, Folding>,
    /// What was found last in either direction: mostly the next packet's.
    last: [(Key, Place); 2],
}

impl Default for Table {
    fn default() -> Self {
        Table { places: HashMap::default(), last: NOTHING }
    }
}

impl Table {
    #[inline(always)]
    pub fn find(&mut self, key: Key) -> Option<Place> {
        let [(one, here), (other, there)] = &self.last;
        if *one == key {
            Some(*here)
        } else if *other == key {
            Some(*there)
        } else {
            self.look_up(&{ key })
        }
    }

    #[inline(never)]
    fn look_up(&mut self, key: &Key) -> Option<Place> {
        let place = self.places.get(key).copied()?;
        self.last[usize::from(place.side & 1)] = (*key, place);
        Some(place)
    }

    /// `key`: of who opened it.
    pub fn put(&mut self, key: Key, flow: u32) {
        self.last = NOTHING;
        // An address that speaks to itself on one port has one key for both directions.
        self.places.insert(key.reversed(), Place { flow, side: 1 });
        self.places.insert(key, Place { flow, side: 0 });
    }
}

#[cfg(test)]
mod flow_tests {
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

#[cfg(test)]
mod table_tests {
    use super::*;

    #[test]
    fn both_directions_find_it() {
        let mut table = Table::default();
        let key = Key([1 << 32 | 2, 0, 0, 0, 3 << 16 | 4]);
        table.put(key, 9);
        assert_eq!(table.find(key), Some(Place { flow: 9, side: 0 }));
        assert_eq!(table.find(key.reversed()), Some(Place { flow: 9, side: 1 }));
        assert_eq!(table.find(Key([0; 5])), None);
    }
}
