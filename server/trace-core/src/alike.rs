//! Subflows without a handshake: which connection may they be of? Initial data sequence numbers are random, so numbers of 64 bits that are near
//! each other hardly come from two connections; for those of 32 bits one end's address and port must be the same too.

use crate::connection::Connection;
use crate::engine::Engine;
use crate::events::Kind;
use crate::flow::Joined;
use crate::options::Options;
use crate::segment::Key;
use crate::table::Place;

/// How many connections are looked at.
const LOOKED_AT: usize = 1024;
const NEAR_WIDE: u64 = 1 << 31;
const NEAR_NARROW: u32 = 1 << 24;

impl Engine {
    /// The connection's numbers are known now.
    pub fn remember(&mut self, place: Place) {
        let connection = self.flows[place.flow as usize].connection;
        if self.recent.back() == Some(&connection) {
            return;
        }
        if self.recent.len() >= LOOKED_AT {
            self.recent.pop_front();
        }
        self.recent.push_back(connection);
    }

    /// A connection's first option of Multipath TCP that is neither a SYN's nor a mapping: of a capture without them, or of one way only, a DATA_ACK may be all there is.
    #[cold]
    pub fn first_multipath(&mut self, options: &Options, place: Place, time: i64) {
        let flow = &mut self.flows[place.flow as usize];
        self.connections[flow.connection as usize].multipath = true;
        if let Some((ack, wide)) = options.data_ack.filter(|_| flow.joined == Joined::None) {
            self.find_alike(ack, wide, Place { side: 1 - place.side, ..place }, time);
            self.remember(place);
        }
    }

    /// The first data sequence number of a subflow that no handshake joined; `place`: who sends what it is of.
    #[cold]
    pub fn find_alike(&mut self, dsn: u64, wide: bool, place: Place, time: i64) {
        let own = self.flows[place.flow as usize].connection;
        let key = self.flows[place.flow as usize].key;
        let found = self.recent.iter().rev().find_map(|candidate| {
            let root = self.root(*candidate);
            (root != own).then_some(())?;
            let direction = self.alike(root, dsn, wide, key)?;
            Some((root, direction))
        });
        let Some((root, direction)) = found else { return };
        let flip = direction != place.side;
        self.connections[root as usize].uncertain = true;
        self.connections[root as usize].multipath = true;
        let turned = self.flows[place.flow as usize].flip != flip;
        // All that were joined to the provisional connection go along (their joins named the same token).
        for number in std::mem::take(&mut self.connections[own as usize].members) {
            let Connection { members, levels, .. } = &mut self.connections[root as usize];
            let flow = &mut self.flows[number as usize];
            flow.connection = root;
            flow.flip ^= turned;
            flow.number = members.len() as u32;
            flow.joined = Joined::Likeness;
            flow.sides.iter_mut().for_each(|side| side.counted = [0; 2]);
            for (side, one) in flow.sides.iter().enumerate() {
                levels[side ^ usize::from(flow.flip)].waits += u32::from(one.waits);
            }
            members.push(number);
        }
        let old = &mut self.connections[own as usize];
        old.merged = Some(root);
        let tokens: Vec<u32> = old.levels.iter().filter_map(|level| level.token).collect();
        let version = old.version;
        for token in tokens {
            if let Some((_, end)) = self.tokens.get(&token).copied() {
                let end = end ^ u8::from(turned);
                self.tokens.insert(token, (root, end));
                self.connections[root as usize].levels[usize::from(end)].token.get_or_insert(token);
            }
        }
        let root_connection = &mut self.connections[root as usize];
        root_connection.version = root_connection.version.or(version);
        self.tell(place, time, Kind::Likeness, Some(i64::from(root)));
    }

    /// The direction of that connection whose numbers this one continues.
    fn alike(&self, connection: u32, dsn: u64, wide: bool, key: Key) -> Option<u8> {
        let one = self.connections.get(connection as usize)?;
        let first = self.flows.get(one.first_flow as usize)?.key;
        let same_end = first.source() == key.source()
            || first.destination() == key.destination()
            || first.source() == key.destination()
            || first.destination() == key.source();
        (0..2_u8).find(|direction| {
            let Some((top, all)) = one.levels[usize::from(*direction)].top() else { return false };
            if wide && all {
                let apart = dsn.wrapping_sub(top);
                return apart < NEAR_WIDE || apart.wrapping_neg() < NEAR_WIDE;
            }
            let apart = (dsn as u32).wrapping_sub(top as u32);
            same_end && (apart < NEAR_NARROW || apart.wrapping_neg() < NEAR_NARROW)
        })
    }
}
