//! What nearly every packet looks like, taken apart with one check of its length and a few comparisons: TCP in IPv4, both headers whole,
//! timestamps first among the options. None for all else, which `segment` and `options` take apart field by field; where this gives
//! something, they would give the same.

use crate::fields::{be16, be32, be64, head};
use crate::options::{Map, Options};
use crate::segment::{checksum, ones, Key, Segment, Sum, LARGEST_ON_WIRE, MORE_FRAGMENTS};

/// An IPv4 header without options, TCP's, and its timestamps.
const HEADERS: usize = 20 + 20 + 12;

/// From the IP packet's first byte on. `wire`: its bytes there.
#[inline(always)]
pub fn segment(ip: &[u8], wire: u32) -> Option<Segment<'_>> {
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
pub fn options(bytes: &[u8]) -> Option<Options> {
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
mod tests {
    use super::*;
    use crate::options;
    use crate::segment::{parse, Parsed};

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

    fn usual_options() -> [Vec<u8>; 3] {
        let stamps = vec![1, 1, 8, 10, 0, 0, 1, 2, 0, 0, 3, 4];
        let acknowledges = [stamps.clone(), vec![30, 12, 0x20, 3, 1, 2, 3, 4, 5, 6, 7, 8]].concat();
        let mut maps = [stamps.clone(), vec![30, 26, 0x20, 15], (1..=22).collect()].concat();
        maps.extend([1, 1]);
        [stamps, acknowledges, maps]
    }

    #[test]
    fn it_is_what_field_by_field_gives() {
        for told in usual_options() {
            let ip = packet(&told);
            let Parsed::Tcp(expected) = parse(&ip, WIRE) else { panic!("no segment") };
            assert_eq!(segment(&ip, WIRE as u32), Some(expected));
            assert_eq!(super::options(&told), Some(options::parse(&told)));
        }
    }

    #[test]
    fn with_any_octet_changed_or_cut_it_is_the_same_or_nothing() {
        for told in usual_options() {
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
        let Some(found) = segment(ip, WIRE as u32) else { return };
        let Parsed::Tcp(expected) = parse(ip, WIRE) else { panic!("no segment in {ip:?}") };
        assert_eq!(found, expected, "{ip:?}");
        if let Some(options) = super::options(found.options) {
            assert_eq!(options, options::parse(found.options), "{ip:?}");
        }
    }
}
