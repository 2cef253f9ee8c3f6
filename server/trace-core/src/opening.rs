//! How subflows begin and end, and what their ends say that is not data.

use crate::connection::Connection;
use crate::engine::{acknowledges, ends, Engine};
use crate::flow::{Flow, Joined, Place};
use crate::options::{each, Map, Options, Said};
use crate::segment::{Key, Segment, ACK, FIN, RST, SYN};

impl Engine {
    /// The subflow of a segment that has a SYN, or is on ports that were not seen. None: there is no room for it.
    #[inline(never)]
    pub fn open(&mut self, segment: &Segment, time: i64, known: Option<Place>) -> Option<Place> {
        if let Some(place) = known {
            if !self.begins_another(segment, place) {
                return Some(place);
            }
        }
        if self.flows.len() as u64 >= self.out.limits.flows {
            self.out.no_room("flows");
            return None;
        }
        let answer = segment.flags & (SYN | ACK) == SYN | ACK;
        let opens = segment.flags & (SYN | ACK) == SYN;
        let from_opener = opens || (!answer && segment.key.source().1 >= segment.key.destination().1);
        let key = if from_opener { segment.key } else { segment.key.reversed() };
        let number = self.flows.len() as u32;
        let (connection, joined, flip) = self.belongs(segment, opens, number)?;
        let mut flow = Flow::new(connection, key, time);
        flow.joined = joined;
        flow.flip = flip;
        flow.opener_known = opens || answer;
        flow.sides[0].place = Place { flow: number, side: 0 };
        flow.sides[1].place = Place { flow: number, side: 1 };
        let one = &mut self.connections[connection as usize];
        flow.number = one.members.len() as u32;
        one.members.push(number);
        self.flows.push(flow);
        self.table.put(key, number);
        Some(Place { flow: number, side: u8::from(!from_opener) })
    }

    /// A SYN on ports that are known: sent again, or of another subflow?
    fn begins_another(&self, segment: &Segment, place: Place) -> bool {
        if segment.flags & (SYN | ACK) != SYN {
            return false;
        }
        let flow = &self.flows[place.flow as usize];
        let side = &flow.sides[usize::from(place.side)];
        match side.initial {
            Some(initial) => initial != segment.sequence && (place.side == 0 || flow.is_over()),
            // Its first packets came before its SYN in the file, or the ports are used again.
            None => flow.is_over() || side.begun && side.top as u32 != segment.sequence.wrapping_add(1),
        }
    }

    /// Connection, how it was found, and whether the subflow's opener is the connection's responder.
    fn belongs(&mut self, segment: &Segment, opens: bool, flow: u32) -> Option<(u32, Joined, bool)> {
        let mut token = None;
        if opens {
            each(segment.options, |said| {
                if let Said::JoinSyn { token: asked, .. } = said {
                    token = Some(asked);
                }
            });
        }
        let known = token.and_then(|token| self.tokens.get(&token).copied());
        if let Some((connection, end)) = known {
            let connection = self.root(connection);
            // Who has the token is asked to join: the other end opens.
            return Some((connection, Joined::Token, end == 0));
        }
        if self.connections.len() as u64 >= self.out.limits.connections {
            self.out.no_room("connections");
            return None;
        }
        let number = self.connections.len() as u32;
        let mut connection = Connection::new(flow);
        let mut joined = if opens { Joined::First } else { Joined::None };
        if let Some(token) = token {
            connection.multipath = true;
            connection.levels[1].token = Some(token);
            self.tokens.insert(token, (number, 1));
            joined = Joined::None;
        }
        self.connections.push(connection);
        Some((number, joined, false))
    }

    /// Handshakes, and options other than DSS.
    #[inline(never)]
    pub fn said(&mut self, segment: &Segment, options: &Options, place: Place, time: i64) {
        let mut said = Vec::new();
        if !each(segment.options, |one| said.push(one)) && !segment.cut {
            self.out.problem(crate::out::Kind::BadHeaders);
        }
        if segment.flags & SYN != 0 {
            self.syn(segment, options, &said, place, time);
        } else if segment.flags & RST == 0 && place.side == 0 {
            self.established(place, time);
        }
        for one in &said {
            self.hear(*one, segment, place, time);
        }
    }

    fn syn(&mut self, segment: &Segment, options: &Options, said: &[Said], place: Place, time: i64) {
        let flow = &mut self.flows[place.flow as usize];
        let connection = &mut self.connections[flow.connection as usize];
        let (me, other) = ends(&mut flow.sides, place.side);
        if me.initial.is_none() {
            me.begin_with_syn(segment.sequence);
        }
        let answer = acknowledges(segment);
        me.scale = None;
        for one in said {
            match one {
                Said::Mss(mss) => me.mss = Some(*mss),
                Said::WindowScale(shift) => me.scale = Some(*shift),
                _ => {}
            }
        }
        let capable = said.iter().any(|one| matches!(one, Said::Capable { .. }));
        let join = said.iter().any(|one| matches!(one, Said::JoinSyn { .. } | Said::JoinSynAck { .. }));
        flow.scaled = other.initial.is_some() && answer;
        if !answer {
            let syn = (time, options.timestamps.map(|both| both.0));
            flow.handshake.first_syn.get_or_insert(syn);
            flow.handshake.last_syn = Some(syn);
            flow.handshake.syns = flow.handshake.syns.saturating_add(1);
            flow.capable = capable;
            flow.join = join;
            connection.multipath |= capable || join;
            if connection.first_flow == place.flow {
                connection.syn.get_or_insert(time);
            }
        } else {
            flow.handshake.answered_by(time, options.timestamps.map(|both| both.1));
        }
        let asked = flow.capable && answer && !capable && flow.handshake.answers == 1 && !segment.cut;
        let (syn, joins) = (flow.handshake.syns > 0, flow.join);
        let kind = if answer { Kind::SynAck } else { Kind::Syn };
        if !(join || answer && joins) {
            self.tell(place, time, kind, None);
        }
        if asked && syn {
            self.fall_back(place, time, Kind::FallbackNoOption);
        }
    }

    /// The first packet of who opened it after the SYN/ACK.
    fn established(&mut self, place: Place, time: i64) {
        let flow = &mut self.flows[place.flow as usize];
        if flow.handshake.answer.is_none() || flow.handshake.established.is_some() {
            return;
        }
        flow.handshake.established = Some(time);
        let join = flow.join;
        let since = self.connections[flow.connection as usize].syn.map(|syn| time.saturating_sub(syn));
        if join {
            self.tell(place, time, Kind::JoinEstablished, since);
        } else {
            self.tell(place, time, Kind::Established, None);
        }
    }

    fn hear(&mut self, said: Said, segment: &Segment, place: Place, time: i64) {
        let flow = &mut self.flows[place.flow as usize];
        let me = &mut flow.sides[usize::from(place.side)];
        let connection = &mut self.connections[flow.connection as usize];
        let (kind, value) = match said {
            Said::Mss(_) | Said::WindowScale(_) | Said::JoinAck => return,
            Said::Capable { version, sender, receiver, data_length } => {
                // A SYN says which the opener wants; what both say after it counts.
                if segment.flags & (SYN | ACK) != SYN {
                    connection.version = Some(version.min(1));
                }
                flow.joined = if flow.joined == Joined::None { Joined::First } else { flow.joined };
                flow.capable = true;
                let version = version.min(1);
                self.keys(place, version, sender, receiver);
                if let Some(length) = data_length {
                    self.first_mapping(segment, place, time, length);
                }
                return;
            }
            Said::JoinSyn { backup, id, .. } => {
                me.address_id = Some(id);
                flow.backup = backup;
                (Kind::JoinSyn, i64::from(backup))
            }
            Said::JoinSynAck { backup, id } => {
                me.address_id = Some(id);
                flow.join = true;
                flow.backup |= backup;
                connection.multipath = true;
                (Kind::JoinSynAck, i64::from(backup))
            }
            Said::AddAddress { version, echo, id, address, port } => {
                connection.version.get_or_insert(version);
                let kind = if echo { Kind::AddAddrEcho } else { Kind::AddAddr };
                let event = Event {
                    time,
                    packet: self.out.packet,
                    subflow: place.flow,
                    side: place.side,
                    kind,
                    value: Some(i64::from(id)),
                    address: Some((address, port)),
                };
                self.out.event(event);
                return;
            }
            Said::RemoveAddress { id } => (Kind::RemoveAddr, i64::from(id)),
            Said::Priority { backup } => {
                flow.backup = backup;
                (Kind::MpPrio, i64::from(backup))
            }
            Said::Fail { dsn } => (Kind::MpFail, dsn as i64),
            Said::FastClose => {
                flow.fast_closed = true;
                let level = &mut connection.levels[usize::from(place.side ^ u8::from(flow.flip))];
                if std::mem::replace(&mut level.fast_closed, true) {
                    return;
                }
                self.tell(place, time, Kind::FastClose, None);
                return;
            }
            Said::ResetReason { reason } => {
                connection.version.get_or_insert(1);
                flow.reset_reason = Some(reason);
                (Kind::ResetReason, i64::from(reason))
            }
        };
        self.tell(place, time, kind, Some(value));
    }

    /// Keys tell tokens, by which subflows join, and the first data sequence numbers.
    fn keys(&mut self, place: Place, version: u8, sender: Option<u64>, receiver: Option<u64>) {
        let flow = &self.flows[place.flow as usize];
        let number = flow.connection;
        let mine = place.side ^ u8::from(flow.flip);
        for (direction, key) in [(mine, sender), (1 - mine, receiver)] {
            let Some(key) = key else { continue };
            let (token, first) = of_key(key, version);
            let level = &mut self.connections[number as usize].levels[usize::from(direction)];
            if level.token.is_some() {
                continue;
            }
            level.token = Some(token);
            if !level.known {
                level.begin(first.wrapping_add(1), true, true);
                level.acked = Some(crate::ranges::BASE);
            }
            self.tokens.insert(token, (number, direction));
        }
        self.remember(place);
    }

    /// RFC 8684 §3.1: the first data of v1 comes with MP_CAPABLE, which is its mapping too.
    fn first_mapping(&mut self, segment: &Segment, place: Place, time: i64, length: u16) {
        let flow = &self.flows[place.flow as usize];
        let direction = usize::from(place.side ^ u8::from(flow.flip));
        let level = &self.connections[flow.connection as usize].levels[direction];
        if level.known && length > 0 {
            let dsn = level.absolute(crate::ranges::BASE);
            let map = Map { dsn, wide: level.wide, ssn: 1, length: u32::from(length), infinite: false };
            self.heard(*segment, map, false, place, time);
        }
    }

    /// FIN and RST, once for each end.
    #[cold]
    pub fn closing(&mut self, segment: &Segment, place: Place, time: i64) {
        let flow = &mut self.flows[place.flow as usize];
        let me = &mut flow.sides[usize::from(place.side)];
        if segment.flags & RST != 0 && !std::mem::replace(&mut me.reset, true) {
            self.tell(place, time, Kind::Rst, None);
        } else if segment.flags & FIN != 0 && me.fin.is_none() {
            self.tell(place, time, Kind::Fin, None);
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// What the ends said that is not data.

/// Codes of the column `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Syn,
    SynAck,
    Established,
    JoinSyn,
    JoinSynAck,
    JoinEstablished,
    MpPrio,
    AddAddr,
    AddAddrEcho,
    RemoveAddr,
    MpFail,
    FastClose,
    ResetReason,
    Rst,
    Fin,
    DataFin,
    FallbackNoOption,
    FallbackInfiniteMapping,
    FallbackNoMapping,
    Likeness,
}

/// Names of the kinds, in order of their codes.
pub const NAMES: [&str; 20] = [
    "syn",
    "syn_ack",
    "established",
    "join_syn",
    "join_syn_ack",
    "join_established",
    "mp_prio",
    "add_addr",
    "add_addr_echo",
    "remove_addr",
    "mp_fail",
    "fastclose",
    "reset_reason",
    "rst",
    "fin",
    "data_fin",
    "fallback_no_option",
    "fallback_infinite_mapping",
    "fallback_no_mapping",
    "likeness",
];

#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub time: i64,
    pub packet: u64,
    pub subflow: u32,
    /// Of the subflow, who said it.
    pub side: u8,
    pub kind: Kind,
    pub value: Option<i64>,
    pub address: Option<([u8; 16], Option<u16>)>,
}

// ---------------------------------------------------------------------------------------------------------------------
// SHA-1 and SHA-256 of eight bytes: all that tokens and initial data sequence numbers need (RFC 6824 §2.3, RFC 8684 §2.3).
// Both after FIPS 180-4; eight bytes and their padding are one block.

fn block(key: u64) -> [u32; 16] {
    let mut words = [0_u32; 16];
    words[0] = (key >> 32) as u32;
    words[1] = key as u32;
    words[2] = 0x8000_0000;
    words[15] = 64;
    words
}

/// FIPS 180-4 §6.1.
pub fn sha1(key: u64) -> [u32; 5] {
    let start = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut w = [0_u32; 80];
    w[..16].copy_from_slice(&block(key));
    for t in 16..80 {
        w[t] = (w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = start;
    for (t, word) in w.iter().enumerate() {
        let (f, k) = match t / 20 {
            0 => ((b & c) ^ (!b & d), 0x5a82_7999),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => ((b & c) ^ (b & d) ^ (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6_u32),
        };
        let next = a.rotate_left(5).wrapping_add(f).wrapping_add(e).wrapping_add(k).wrapping_add(*word);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    let end = [a, b, c, d, e];
    std::array::from_fn(|i| start[i].wrapping_add(end[i]))
}

const K: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// FIPS 180-4 §6.2.
pub fn sha256(key: u64) -> [u32; 8] {
    let start = [
        0x6a09e667_u32, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    ];
    let mut w = [0_u32; 64];
    w[..16].copy_from_slice(&block(key));
    for t in 16..64 {
        let s0 = w[t - 15].rotate_right(7) ^ w[t - 15].rotate_right(18) ^ (w[t - 15] >> 3);
        let s1 = w[t - 2].rotate_right(17) ^ w[t - 2].rotate_right(19) ^ (w[t - 2] >> 10);
        w[t] = w[t - 16].wrapping_add(s0).wrapping_add(w[t - 7]).wrapping_add(s1);
    }
    let mut v = start;
    for t in 0..64 {
        let s1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
        let choice = (v[4] & v[5]) ^ (!v[4] & v[6]);
        let one = v[7].wrapping_add(s1).wrapping_add(choice).wrapping_add(K[t]).wrapping_add(w[t]);
        let s0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
        let majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        let two = s0.wrapping_add(majority);
        v = [one.wrapping_add(two), v[0], v[1], v[2], v[3].wrapping_add(one), v[4], v[5], v[6]];
    }
    std::array::from_fn(|i| start[i].wrapping_add(v[i]))
}

/// The token that a key has, and the initial data sequence number: the hash's first 32 and last 64 bits.
pub fn of_key(key: u64, version: u8) -> (u32, u64) {
    if version == 0 {
        let hash = sha1(key);
        (hash[0], u64::from(hash[3]) << 32 | u64::from(hash[4]))
    } else {
        let hash = sha256(key);
        (hash[0], u64::from(hash[6]) << 32 | u64::from(hash[7]))
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Subflows without a handshake: which connection may they be of? Initial data sequence numbers are random, so numbers of 64 bits that are near
// each other hardly come from two connections; for those of 32 bits one end's address and port must be the same too.

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

#[cfg(test)]
mod tests {
    use super::*;

    // printf '\0\1\2\3\4\5\6\7' | sha1sum, sha256sum
    #[test]
    fn hashes_of_a_key() {
        let key = 0x0001_0203_0405_0607;
        assert_eq!(sha1(key), [0x67423ebf, 0xa8454f19, 0xac6f4686, 0xd6c0dc73, 0x1a3ddd6b]);
        let long = sha256(key);
        assert_eq!((long[0], long[1], long[7]), (0x8a851ff8, 0x2ee7048a, 0x785a0d45));
    }
}
