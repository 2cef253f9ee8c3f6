//! From an IP packet to the TCP segment in it. Lengths are those that the headers say: the capture may hold less.

use crate::fields::{be16, be32, head};

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
    /// The snaplen took a part of the options.
    pub cut: bool,
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

/// `original`: bytes of the IP packet on the wire, for packets too long for their length field.
#[inline(always)]
pub fn parse(ip: &[u8], original: u64) -> Parsed<'_> {
    match ip.first() {
        Some(first) if first >> 4 == 4 => ipv4(ip, original),
        Some(first) if first >> 4 == 6 => ipv6(ip, original),
        Some(_) => Parsed::Bad,
        None => Parsed::Cut,
    }
}

/// RFC 791 §3.1.
#[inline(always)]
fn ipv4(ip: &[u8], original: u64) -> Parsed<'_> {
    let Some(header) = head::<20>(ip) else { return Parsed::Cut };
    if header[9] != 6 {
        return Parsed::Other;
    }
    let own = usize::from(header[0] & 15) * 4;
    let said = u64::from(u16::from_be_bytes([header[2], header[3]]));
    // 0: longer than the field can say (segmentation is left to the card).
    let total = if said == 0 { original } else { said };
    if own < 20 || total < own as u64 {
        return Parsed::Bad;
    }
    if u16::from_be_bytes([header[6], header[7]]) & 0x1fff != 0 {
        return Parsed::Fragment;
    }
    let [.., a, b, c, d, e, f, g, h] = *header;
    let addresses = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    tcp(ip, own, total - own as u64, [addresses, 0, 0, 0], 0)
}

/// RFC 8200 §3 and §4.
fn ipv6(ip: &[u8], original: u64) -> Parsed<'_> {
    let Some(header) = head::<40>(ip) else { return Parsed::Cut };
    let said = u64::from(u16::from_be_bytes([header[4], header[5]]));
    let mut next = header[6];
    let mut at = 40_usize;
    // Each takes eight bytes at least; nobody sends more than a few.
    for _ in 0..16 {
        match next {
            6 => {
                // 0: a jumbogram, or longer than the field can say.
                let total = if said == 0 { original } else { said + 40 };
                let Some(left) = total.checked_sub(at as u64) else { return Parsed::Bad };
                let word = |from: usize| u64::from_be_bytes(header[from..from + 8].try_into().unwrap_or_default());
                return tcp(ip, at, left, [word(8), word(16), word(24), word(32)], SIX);
            }
            // Hop-by-hop, routing, destination options, mobility, host identity, shim.
            0 | 43 | 60 | 135 | 139 | 140 => {
                let (Some(following), Some(units)) = (ip.get(at), ip.get(at + 1)) else { return Parsed::Cut };
                next = *following;
                at += (usize::from(*units) + 1) * 8;
            }
            44 => {
                let (Some(following), Some(offset)) = (ip.get(at), be16(ip, at + 2)) else { return Parsed::Cut };
                if offset & 0xfff8 != 0 {
                    return Parsed::Fragment;
                }
                next = *following;
                at += 8;
            }
            51 => {
                let (Some(following), Some(units)) = (ip.get(at), ip.get(at + 1)) else { return Parsed::Cut };
                next = *following;
                at += (usize::from(*units) + 2) * 4;
            }
            _ => return Parsed::Other,
        }
    }
    Parsed::Bad
}

/// RFC 9293 §3.1. `length`: of header and payload.
#[inline(always)]
fn tcp(ip: &[u8], at: usize, length: u64, addresses: [u64; 4], six: u64) -> Parsed<'_> {
    let Some(bytes) = ip.get(at..) else { return Parsed::Cut };
    let Some(header) = head::<20>(bytes) else { return Parsed::Cut };
    let own = usize::from(header[12] >> 4) * 4;
    if own < 20 || length < own as u64 {
        return Parsed::Bad;
    }
    let ports = u64::from(be32(header, 0).unwrap_or_default());
    let options = &bytes[20..own.min(bytes.len())];
    let [a, b, c, d] = addresses;
    Parsed::Tcp(Segment {
        key: Key([a, b, c, d, ports | six]),
        sequence: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
        acknowledgement: u32::from_be_bytes([header[8], header[9], header[10], header[11]]),
        flags: u16::from_be_bytes([header[12] & 1, header[13]]),
        window: u16::from_be_bytes([header[14], header[15]]),
        payload: u32::try_from(length - own as u64).unwrap_or(u32::MAX).min(MOST_PAYLOAD),
        options,
        cut: options.len() < own - 20,
    })
}

/// More than any host puts into one packet.
const MOST_PAYLOAD: u32 = 1 << 24;

#[cfg(test)]
mod tests {
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
