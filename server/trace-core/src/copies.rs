//! Packets that were captured twice: on two interfaces, or at two places of one path. A sender that sends its data again gives the packet
//! another identification and time; a copy has all of the first one's.

use crate::options::Options;
use crate::segment::{Segment, FIN, SYN};

/// When what passed lately did so, by a number that two different packets hardly share; a later one takes an earlier one's place.
#[derive(Debug)]
pub struct Copies(Vec<(u64, i64)>);

const PLACES: usize = 4096;

impl Default for Copies {
    fn default() -> Self {
        Copies(vec![(0, 0); PLACES])
    }
}

impl Copies {
    /// When a packet like this one passed before.
    #[inline(always)]
    pub fn before(&mut self, segment: &Segment, options: &Options, time: i64) -> Option<i64> {
        let [addresses, .., ports] = segment.key.0;
        let numbers = u64::from(segment.sequence) << 32 | u64::from(segment.acknowledgement);
        let sent = u64::from(options.timestamps.map_or(0, |both| both.0)) << 32 | u64::from(segment.id) << 16 | u64::from(segment.window);
        let mut rest = u64::from(segment.payload) << 32 | u64::from(segment.flags);
        rest ^= options.data_ack.map_or(0, |ack| ack.0.rotate_left(7));
        if options.sack.1 != 0 || options.rare && segment.flags & SYN == 0 {
            rest = segment.options.iter().fold(rest, |sum, byte| folded(sum ^ u64::from(*byte), FACTOR));
        }
        let number = folded(folded(numbers ^ ports.rotate_left(21), sent ^ FACTOR) ^ rest, addresses ^ FACTOR) | 1;
        let place = self.0.get_mut(number as usize / 2 % PLACES)?;
        let before = (place.0 == number).then_some(place.1);
        *place = (number, time);
        before
    }
}

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
fn folded(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    (product >> 64) as u64 ^ product as u64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copy {
    No,
    /// An acknowledgement that was sent twice at once looks the same, where identifications tell nothing.
    Perhaps,
    Surely,
}

/// Of one end's packets, how many were like one before.
#[derive(Debug, Default)]
pub struct Copied {
    pub packets: u64,
    id: Option<u16>,
    /// Its identifications differ from packet to packet.
    varies: bool,
}

/// So long a copy comes behind the first one, where identifications tell them from what is sent again; and where not.
const LONGEST_NS: i64 = 1_000_000_000;
const AT_ONCE_NS: i64 = 2_000_000;

impl Copied {
    #[inline(always)]
    pub fn told(&mut self, segment: &Segment, time: i64, before: Option<i64>) -> Copy {
        self.varies |= self.id.replace(segment.id).is_some_and(|id| id != segment.id);
        match before.map(|before| time.saturating_sub(before)) {
            None => Copy::No,
            Some(gap) if gap <= LONGEST_NS && self.varies => Copy::Surely,
            Some(gap) if gap > AT_ONCE_NS => Copy::No,
            Some(_) if segment.payload > 0 || segment.flags & (SYN | FIN) != 0 => Copy::Surely,
            Some(_) => Copy::Perhaps,
        }
    }

    /// Too many for a network that doubles a packet now and then.
    pub fn is_twice(&self, all: u64) -> bool {
        self.packets >= 4 && self.packets * 4 >= all
    }
}
