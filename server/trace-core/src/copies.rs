//! Packets that were captured twice: on two interfaces, or at two places of one path. A sender that sends its data again gives the packet
//! another identification and time; a copy has all of the first one's.

use crate::options::Options;
use crate::segment::{Segment, SYN};

/// When what passed lately did so, by a number that two different packets hardly share; a later one takes an earlier one's place.
#[derive(Debug, Default)]
pub struct Copies(Vec<(u64, i64)>);

const PLACES: usize = 1 << 16;

impl Copies {
    /// This packet is a copy. `first`: the identification of its sender's first one.
    pub fn has(&mut self, segment: &Segment, options: &Options, time: i64, first: &mut Option<u16>) -> bool {
        let [addresses, .., ports] = segment.key.0;
        let sent = u64::from(options.timestamps.map_or(0, |both| both.0)) << 32 | u64::from(segment.id) << 16 | u64::from(segment.window);
        let mut number = u64::from(segment.payload) << 32 | u64::from(segment.flags);
        for word in [addresses, ports, sent, u64::from(segment.sequence) << 32 | u64::from(segment.acknowledgement)] {
            number = mixed(number ^ word);
        }
        // A path may change the largest segment in a SYN.
        if segment.flags & SYN == 0 {
            number = segment.options.iter().fold(number, |number, byte| mixed(number ^ u64::from(*byte)));
        }
        self.0.resize(PLACES, (0, 0));
        let place = &mut self.0[(number >> 32) as usize % PLACES];
        let (before, passed) = std::mem::replace(place, (number, time));
        let tells = *first.get_or_insert(segment.id) != segment.id;
        before == number && time.saturating_sub(passed) <= if tells { LONGEST_NS } else { AT_ONCE_NS }
    }
}

/// So long a copy comes behind the first one, where identifications tell it from what is sent again; and where not.
const LONGEST_NS: i64 = 1_000_000_000;
const AT_ONCE_NS: i64 = 2_000_000;

fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
