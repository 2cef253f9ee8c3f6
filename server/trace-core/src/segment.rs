//! From an IP packet to the TCP segment in it, also inside other IP packets and GTP-U. Lengths are those that the headers say: the capture may
//! hold less, and the wire never held more than its own length.

use crate::frame::{be16, be32, be64, head};
use crate::options::{Map, Options};

pub const FIN: u16 = 1;
pub const SYN: u16 = 2;
pub const RST: u16 = 4;
pub const ACK: u16 = 16;

/// Addresses and ports in one direction: for IPv4 all in two words.
#[derive(Clone, Copy, Debug, Eq)]
pub struct Key(pub [u64; 5]);

impl PartialEq for Key {
    /// Word by word: most are of IPv4, whose words between the first and the last are 0.
    #[inline(always)]
    fn eq(&self, other: &Key) -> bool {
        let ([a, b, c, d, e], [f, g, h, i, j]) = (self.0, other.0);
        (a ^ f) | (e ^ j) == 0 && (e & SIX == 0 || (b ^ g) | (c ^ h) | (d ^ i) == 0)
    }
}

/// Set in the last word for IPv6.
pub const SIX: u64 = 1 << 63;

impl Key {
    /// The same packet's answer.
    pub fn reversed(self) -> Key {
        let [a, b, c, d, ports] = self.0;
        let turned = (ports & SIX) | ((ports & 0xffff) << 16) | ((ports >> 16) & 0xffff);
        if ports & SIX == 0 {
            return Key([a.rotate_left(32), 0, 0, 0, turned]);
        }
        Key([c, d, a, b, turned])
    }

    pub fn source(self) -> ([u8; 16], u16) {
        let [a, b, _, _, ports] = self.0;
        let port = ((ports >> 16) & 0xffff) as u16;
        if ports & SIX == 0 {
            return (mapped((a >> 32) as u32), port);
        }
        (both(a, b), port)
    }

    pub fn destination(self) -> ([u8; 16], u16) {
        self.reversed().source()
    }
}

/// `::ffff:a.b.c.d`.
pub fn mapped(address: u32) -> [u8; 16] {
    both(0, 0xffff_0000_0000 | u64::from(address))
}

fn both(high: u64, low: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    pub key: Key,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub flags: u16,
    pub window: u16,
    /// TCP payload, as the headers say.
    pub payload: u32,
    pub options: &'a [u8],
    /// IPv4's identification; 0 in IPv6.
    pub id: u16,
    /// Time to live, or hop limit.
    pub hops: u8,
    pub sum: Sum,
    /// The snaplen took a part of the options.
    pub cut: bool,
    /// IP's length is more than the wire had.
    pub beyond: bool,
}

/// What TCP's checksum says, where the whole packet is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sum {
    #[default]
    Unknown,
    Right,
    /// Of the pseudo header alone: the sender's network card does the rest, behind the capture.
    Begun,
    Wrong,
}

/// Larger packets were put together from several; whose checksum they have differs.
pub const LARGEST_ON_WIRE: usize = 1600;

/// RFC 9293 §3.1. Of the addresses, and of TCP's header and payload, whose length is `length`: the sums of their words, each with its bytes
/// exchanged, which RFC 1071 §2 allows. `said`: the checksum, likewise.
#[inline(always)]
pub fn checksum(addresses: u64, bytes: u64, length: usize, said: u16) -> Sum {
    if said == 0 {
        // Not filled in at all.
        return Sum::Unknown;
    }
    let ends = addresses + u64::from(u16::from_le_bytes([0, TCP]));
    let pseudo = ends + u64::from((length as u16).swap_bytes());
    if folded(pseudo + bytes) == 0xffff {
        Sum::Right
    } else if said == folded(pseudo) || said == folded(ends) {
        Sum::Begun
    } else {
        Sum::Wrong
    }
}

/// The carries are kept above the words.
#[inline(always)]
pub fn ones(bytes: &[u8]) -> u64 {
    let mut sum = 0;
    let words = bytes.chunks_exact(8);
    let rest = words.remainder();
    for word in words {
        let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
        sum += (word & 0xffff_ffff) + (word >> 32);
    }
    let (four, two) = (rest.len() & 4, rest.len() & 6);
    if let Some(word) = rest.get(..4) {
        sum += u64::from(u32::from_le_bytes(word.try_into().unwrap_or_default()));
    }
    if let Some([a, b]) = rest.get(four..four + 2) {
        sum += u64::from(u16::from_le_bytes([*a, *b]));
    }
    sum + rest.get(two).map_or(0, |byte| u64::from(*byte))
}

#[inline(always)]
fn folded(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[derive(Debug)]
pub enum Parsed<'a> {
    Tcp(Segment<'a>),
    /// Another protocol.
    Other,
    /// A later part of a fragmented packet.
    Fragment,
    /// The snaplen took a part of the header.
    Cut,
    Bad,
}

/// What of a packet's own header its TCP segment needs.
struct Outer<'a> {
    ip: &'a [u8],
    /// Where its own header ends.
    own: usize,
    total: u64,
    /// In the header, both.
    ends: &'a [u8],
    key: [u64; 4],
    six: u64,
    id: u16,
    hops: u8,
    beyond: bool,
    /// The checksum is of this packet, with these addresses.
    summed: bool,
}

/// `original`: bytes of the IP packet on the wire; its length field says no more.
#[inline(always)]
pub fn parse(ip: &[u8], original: u64) -> Parsed<'_> {
    parse_at(ip, original, 0)
}

/// `depth`: how many packets are around this one.
fn parse_at(ip: &[u8], original: u64, depth: u8) -> Parsed<'_> {
    match ip.first() {
        _ if depth > MOST_AROUND => Parsed::Other,
        Some(first) if first >> 4 == 4 => ipv4(ip, original, depth),
        Some(first) if first >> 4 == 6 => ipv6(ip, original, depth),
        Some(_) => Parsed::Bad,
        None => Parsed::Cut,
    }
}

const MOST_AROUND: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// RFC 791 §3.1.
#[inline(always)]
fn ipv4(ip: &[u8], original: u64, depth: u8) -> Parsed<'_> {
    let Some(header) = head::<20>(ip) else { return Parsed::Cut };
    let own = usize::from(header[0] & 15) * 4;
    let said = u64::from(u16::from_be_bytes([header[2], header[3]]));
    // 0: longer than the field can say (segmentation is left to the card).
    let total = if said == 0 { original } else { said.min(original) };
    if own < 20 || total < own as u64 {
        return if matches!(header[9], TCP | UDP | 4 | 41) { Parsed::Bad } else { Parsed::Other };
    }
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    if fragment & 0x1fff != 0 {
        return if header[9] == TCP { Parsed::Fragment } else { Parsed::Other };
    }
    let [.., a, b, c, d, e, f, g, h] = *header;
    let outer = Outer {
        ip,
        own,
        total,
        ends: &header[12..],
        key: [u64::from_be_bytes([a, b, c, d, e, f, g, h]), 0, 0, 0],
        six: 0,
        id: u16::from_be_bytes([header[4], header[5]]),
        hops: header[8],
        beyond: said > original,
        summed: header[6] & MORE_FRAGMENTS == 0,
    };
    outer.inside(header[9], depth)
}

/// In the sixth octet.
pub const MORE_FRAGMENTS: u8 = 0x20;

/// RFC 8200 §3 and §4.
fn ipv6(ip: &[u8], original: u64, depth: u8) -> Parsed<'_> {
    let Some(header) = head::<40>(ip) else { return Parsed::Cut };
    let said = u64::from(u16::from_be_bytes([header[4], header[5]]));
    let mut next = header[6];
    let word = |from: usize| u64::from_be_bytes(header[from..from + 8].try_into().unwrap_or_default());
    let mut outer = Outer {
        ip,
        own: 40,
        // 0: a jumbogram, or longer than the field can say.
        total: if said == 0 { original } else { (said + 40).min(original) },
        ends: &header[8..],
        key: [word(8), word(16), word(24), word(32)],
        six: SIX,
        id: 0,
        hops: header[7],
        beyond: said + 40 > original,
        summed: true,
    };
    // Each takes eight bytes at least; nobody sends more than a few.
    for _ in 0..16 {
        let at = outer.own;
        match next {
            // Hop-by-hop, routing, destination options, mobility, host identity, shim.
            0 | 43 | 60 | 135 | 139 | 140 => {
                let (Some(following), Some(units)) = (ip.get(at), ip.get(at + 1)) else { return Parsed::Cut };
                // Routing: the checksum has the last address, which the header may not have yet.
                outer.summed &= next != 43;
                next = *following;
                outer.own += (usize::from(*units) + 1) * 8;
            }
            44 => {
                let (Some(following), Some(offset)) = (ip.get(at), be16(ip, at + 2)) else { return Parsed::Cut };
                if offset & 0xfff8 != 0 {
                    return Parsed::Fragment;
                }
                outer.summed &= offset & 1 == 0;
                next = *following;
                outer.own += 8;
            }
            51 => {
                let (Some(following), Some(units)) = (ip.get(at), ip.get(at + 1)) else { return Parsed::Cut };
                next = *following;
                outer.own += (usize::from(*units) + 2) * 4;
            }
            _ => return outer.inside(next, depth),
        }
    }
    Parsed::Bad
}

impl<'a> Outer<'a> {
    /// By the protocol behind its header.
    #[inline(always)]
    fn inside(&self, protocol: u8, depth: u8) -> Parsed<'a> {
        if protocol == TCP { self.tcp() } else { self.around(protocol, depth) }
    }

    /// RFC 2003, RFC 4213, RFC 2473; GTP-U.
    #[cold]
    fn around(&self, protocol: u8, depth: u8) -> Parsed<'a> {
        let at = match protocol {
            4 | 41 => Some(self.own),
            UDP => gtp_u(self.ip, self.own),
            _ => None,
        };
        let Some(at) = at else { return Parsed::Other };
        match (self.ip.get(at..), self.total.checked_sub(at as u64)) {
            (Some(ip), Some(left)) => parse_at(ip, left, depth + 1),
            (None, _) => Parsed::Cut,
            (_, None) => Parsed::Bad,
        }
    }

    fn checksum(&self) -> Sum {
        let whole = usize::try_from(self.total).ok().filter(|total| *total <= LARGEST_ON_WIRE);
        let Some(bytes) = whole.and_then(|total| self.ip.get(self.own..total)) else { return Sum::Unknown };
        let said = be16(bytes, 16).unwrap_or_default().swap_bytes();
        checksum(ones(self.ends), ones(bytes), bytes.len(), said)
    }

    /// RFC 9293 §3.1.
    #[inline(always)]
    fn tcp(&self) -> Parsed<'a> {
        let Some(length) = self.total.checked_sub(self.own as u64) else { return Parsed::Bad };
        let Some(bytes) = self.ip.get(self.own..) else { return Parsed::Cut };
        let Some(header) = head::<20>(bytes) else { return Parsed::Cut };
        let own = usize::from(header[12] >> 4) * 4;
        if own < 20 || length < own as u64 {
            return Parsed::Bad;
        }
        let ports = u64::from(be32(header, 0).unwrap_or_default());
        let options = &bytes[20..own.min(bytes.len())];
        let [a, b, c, d] = self.key;
        let whole = self.summed && !self.beyond;
        Parsed::Tcp(Segment {
            key: Key([a, b, c, d, ports | self.six]),
            sequence: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
            acknowledgement: u32::from_be_bytes([header[8], header[9], header[10], header[11]]),
            flags: u16::from_be_bytes([header[12] & 1, header[13]]),
            window: u16::from_be_bytes([header[14], header[15]]),
            payload: u32::try_from(length - own as u64).unwrap_or(u32::MAX).min(MOST_PAYLOAD),
            options,
            id: self.id,
            hops: self.hops,
            sum: if whole { self.checksum() } else { Sum::Unknown },
            cut: options.len() < own - 20,
            beyond: self.beyond,
        })
    }
}

/// Where the user's packet begins in a G-PDU (3GPP TS 29.281 §5.1); None: it is something else. `at`: of the UDP header.
fn gtp_u(ip: &[u8], at: usize) -> Option<usize> {
    const PORT: u16 = 2152;
    if be16(ip, at)? != PORT && be16(ip, at + 2)? != PORT {
        return None;
    }
    let flags = *ip.get(at + 8)?;
    // Version 1, GTP and not GTP', message 255.
    if flags & 0xf0 != 0x30 || *ip.get(at + 9)? != 255 {
        return None;
    }
    let mut from = at + 16;
    if flags & 7 != 0 {
        let mut next = *ip.get(from + 3)?;
        from += 4;
        // §5.2.1: extension headers, as far as there are any, in units of four bytes, the kind of the next one last.
        while flags & 4 != 0 && next != 0 {
            let units = usize::from(*ip.get(from)?);
            if units == 0 {
                return None;
            }
            from += units * 4;
            next = *ip.get(from - 1)?;
        }
    }
    Some(from)
}

/// More than any host puts into one packet.
const MOST_PAYLOAD: u32 = 1 << 24;

// ---------------------------------------------------------------------------------------------------------------------
// What nearly every packet looks like, taken apart with one check of its length and a few comparisons: TCP in IPv4, both headers whole,
// timestamps first among the options. None for all else, which `segment` and `options` take apart field by field; where this gives
// something, they would give the same.

/// An IPv4 header without options, TCP's, and its timestamps.
const HEADERS: usize = 20 + 20 + 12;

/// From the IP packet's first byte on. `wire`: its bytes there.
#[inline(always)]
pub fn usual_segment(ip: &[u8], wire: u32) -> Option<Segment<'_>> {
    let header = head::<HEADERS>(ip)?;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let own = usize::from(header[32] >> 4) * 4;
    // Version and length, protocol, and that it is no later part of a fragment.
    let known = header[0] == 0x45 && header[9] == 6 && be16(header, 6)? & 0x1fff == 0;
    if !known || own < 32 || total < 20 + own || total as u32 > wire {
        return None;
    }
    let whole = ip.get(HEADERS..total).filter(|_| total <= LARGEST_ON_WIRE && header[6] & MORE_FRAGMENTS == 0);
    Some(Segment {
        key: Key([be64(header, 12)?, 0, 0, 0, u64::from(be32(header, 20)?)]),
        sequence: be32(header, 24)?,
        acknowledgement: be32(header, 28)?,
        flags: be16(header, 32)? & 0x1ff,
        window: be16(header, 34)?,
        payload: (total - 20 - own) as u32,
        options: ip.get(40..20 + own)?,
        id: be16(header, 4)?,
        hops: header[8],
        sum: whole.map_or(Sum::Unknown, |rest| {
            let word = |at: usize| u64::from(u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]));
            let bytes = (20..HEADERS).step_by(4).map(word).sum::<u64>() + ones(rest);
            checksum(word(12) + word(16), bytes, total - 20, u16::from_le_bytes([header[36], header[37]]))
        }),
        cut: false,
        beyond: false,
    })
}

/// Two octets of padding, kind 8, ten octets.
const TIMESTAMPS: u32 = 0x0101_080a;
/// DSS with a DATA_ACK of eight octets.
const ACKNOWLEDGES: u32 = 0x1e0c_2003;
/// With a mapping besides, its DSN of eight octets; and padding after it.
const MAPS: u32 = 0x1e1a_200f;
const PADDING: u16 = 0x0101;

/// Timestamps alone, or before a DSS as Linux writes it.
#[inline(always)]
pub fn usual_options(bytes: &[u8]) -> Option<Options> {
    let stamps = head::<12>(bytes)?;
    if be32(stamps, 0)? != TIMESTAMPS {
        return None;
    }
    let timestamps = Some((be32(stamps, 4)?, be32(stamps, 8)?));
    match bytes.len() {
        12 => Some(Options { timestamps, ..Options::default() }),
        24 => {
            let bytes = head::<24>(bytes)?;
            let data_ack = Some((be64(bytes, 16)?, true));
            let known = be32(bytes, 12)? == ACKNOWLEDGES;
            known.then_some(Options { timestamps, data_ack, multipath: true, ..Options::default() })
        }
        40 => {
            let bytes = head::<40>(bytes)?;
            let length = u32::from(be16(bytes, 36)?);
            if be32(bytes, 12)? != MAPS || be16(bytes, 38)? != PADDING || length == 0 {
                return None;
            }
            let map = Map { dsn: be64(bytes, 24)?, wide: true, ssn: be32(bytes, 32)?, length, infinite: false };
            let data_ack = Some((be64(bytes, 16)?, true));
            Some(Options { timestamps, data_ack, map: Some(map), multipath: true, ..Options::default() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod segment_tests {
    use super::*;

    #[test]
    fn a_key_turns_around() {
        let key = Key([0x0a00_0001_0a00_0002, 0, 0, 0, 0x1234_0050]);
        assert_eq!(key.reversed(), Key([0x0a00_0002_0a00_0001, 0, 0, 0, 0x0050_1234]));
        assert_eq!(key.source(), (mapped(0x0a00_0001), 0x1234));
        let six = Key([1, 2, 3, 4, SIX | 0x1234_0050]);
        assert_eq!(six.reversed(), Key([3, 4, 1, 2, SIX | 0x0050_1234]));
        assert_eq!(six.destination().1, 0x50);
    }

    #[test]
    fn short_packets_are_cut_not_bad() {
        assert!(matches!(parse(&[], 0), Parsed::Cut));
        assert!(matches!(parse(&[0x45; 10], 10), Parsed::Cut));
        assert!(matches!(parse(&[0x60; 39], 39), Parsed::Cut));
        assert!(matches!(parse(&[0x10; 39], 39), Parsed::Bad));
    }
}

#[cfg(test)]
mod usual_tests {
    use super::*;
    use crate::options;

    const WIRE: u64 = 100;

    /// An IP packet with these options and ten bytes of payload, of which two are captured.
    fn packet(options: &[u8]) -> Vec<u8> {
        let own = 20 + options.len() as u8;
        let mut ip = vec![0x45, 0, 0, 20 + own + 10, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        ip.extend([0x9c, 0x40, 1, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8, own << 2 | 1, 0xff, 2, 1, 0, 0, 0, 0]);
        ip.extend(options);
        ip.extend([0; 2]);
        ip
    }

    fn octets() -> [Vec<u8>; 3] {
        let stamps = vec![1, 1, 8, 10, 0, 0, 1, 2, 0, 0, 3, 4];
        let acknowledges = [stamps.clone(), vec![30, 12, 0x20, 3, 1, 2, 3, 4, 5, 6, 7, 8]].concat();
        let mut maps = [stamps.clone(), vec![30, 26, 0x20, 15], (1..=22).collect()].concat();
        maps.extend([1, 1]);
        [stamps, acknowledges, maps]
    }

    #[test]
    fn it_is_what_field_by_field_gives() {
        for told in octets() {
            let ip = packet(&told);
            let Parsed::Tcp(expected) = parse(&ip, WIRE) else { panic!("no segment") };
            assert_eq!(usual_segment(&ip, WIRE as u32), Some(expected));
            assert_eq!(usual_options(&told), Some(options::parse(&told)));
        }
    }

    #[test]
    fn with_any_octet_changed_or_cut_it_is_the_same_or_nothing() {
        for told in octets() {
            let ip = packet(&told);
            for at in 0..ip.len() {
                for value in 0..=255 {
                    let mut other = ip.clone();
                    other[at] = value;
                    same_or_nothing(&other);
                }
                same_or_nothing(&ip[..at]);
            }
        }
    }

    fn same_or_nothing(ip: &[u8]) {
        let Some(found) = usual_segment(ip, WIRE as u32) else { return };
        let Parsed::Tcp(expected) = parse(ip, WIRE) else { panic!("no segment in {ip:?}") };
        assert_eq!(found, expected, "{ip:?}");
        if let Some(options) = usual_options(found.options) {
            assert_eq!(options, options::parse(found.options), "{ip:?}");
        }
    }
}
