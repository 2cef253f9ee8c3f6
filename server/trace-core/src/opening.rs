//! How subflows begin: handshakes, joins, and what the ends say in options that few packets have.

use crate::connection::Connection;
use crate::engine::{acknowledges, ends, Engine};
use crate::events::{Event, Kind};
use crate::flow::{Flow, Joined};
use crate::options::{Map, Options};
use crate::rare::{each, Said};
use crate::segment::{Segment, ACK, FIN, RST, SYN};
use crate::sha::of_key;
use crate::table::Place;

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
            self.out.problem(crate::problems::Kind::BadHeaders);
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
                level.acked = Some(crate::numbers::BASE);
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
            let dsn = level.absolute(crate::numbers::BASE);
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
