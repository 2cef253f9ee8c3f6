//! From a captured frame to the IP packet in it, by the file's link type.

use crate::fields::be16;

/// Where the IP packet begins, and that there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// Begins at this byte.
    Ip(usize),
    /// Something else (ARP, LLDP, PPP's control …).
    Other,
    /// The capture ends before it can be told.
    Cut,
    /// This kind of link is not known here.
    Unknown,
}

/// LINKTYPE_ETHERNET.
pub const ETHERNET: u16 = 1;
pub const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// By the numbers of LINKTYPE_… in files; 12 and 14 are raw IP of some systems.
#[inline(always)]
pub fn ip_in(link_type: u16, frame: &[u8]) -> Inside {
    match link_type {
        ETHERNET => by_ethertype(frame, 12),
        113 => by_ethertype(frame, 14),
        276 => match be16(frame, 0) {
            // Its header is 20 bytes with the protocol first.
            Some(IPV4 | IPV6) => Inside::Ip(20),
            Some(0x8100 | 0x88a8) => by_ethertype(frame, 22),
            Some(_) => Inside::Other,
            None => Inside::Cut,
        },
        9 | 50 => ppp(frame, 0),
        // One byte of direction before it.
        204 => ppp(frame, 1),
        12 | 14 | 101 | 228 | 229 => Inside::Ip(0),
        // Four bytes of address family, in either byte order.
        0 | 108 => match frame.get(..4) {
            Some([0, 0, 0, 2 | 10 | 24 | 28 | 30] | [2 | 10 | 24 | 28 | 30, 0, 0, 0]) => Inside::Ip(4),
            Some(_) => Inside::Other,
            None => Inside::Cut,
        },
        _ => Inside::Unknown,
    }
}

/// IEEE 802.3 with 802.1Q and 802.1ad tags, up to eight of them. `at`: of the EtherType.
#[inline(always)]
fn by_ethertype(frame: &[u8], at: usize) -> Inside {
    let mut at = at;
    for _ in 0..8 {
        match be16(frame, at) {
            Some(IPV4 | IPV6) => return Inside::Ip(at + 2),
            Some(0x8100 | 0x88a8 | 0x9100) => at += 4,
            // PPPoE session: six bytes, then PPP's protocol.
            Some(0x8864) => return ppp(frame, at + 8),
            Some(_) => return Inside::Other,
            None => return Inside::Cut,
        }
    }
    Inside::Other
}

/// RFC 1661 §2 and §6.5, RFC 1662 §3.1: address and control bytes and the protocol's first byte may have been left out.
fn ppp(frame: &[u8], at: usize) -> Inside {
    let at = if frame.get(at) == Some(&0xff) && frame.get(at + 1) == Some(&0x03) { at + 2 } else { at };
    match (frame.get(at), frame.get(at + 1)) {
        (Some(0x21 | 0x57), _) => Inside::Ip(at + 1),
        (Some(0), Some(0x21 | 0x57)) => Inside::Ip(at + 2),
        (Some(_), Some(_)) => Inside::Other,
        _ => Inside::Cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_link_has_its_place() {
        let mut ethernet = vec![0; 12];
        ethernet.extend([0x81, 0, 0, 1, 0x08, 0]);
        assert_eq!(ip_in(1, &ethernet), Inside::Ip(18));
        assert_eq!(ip_in(1, &ethernet[..16]), Inside::Cut);
        assert_eq!(ip_in(9, &[0xff, 3, 0, 0x21, 0x45]), Inside::Ip(4));
        assert_eq!(ip_in(9, &[0, 0x57, 0x60]), Inside::Ip(2));
        assert_eq!(ip_in(9, &[0x21, 0x45]), Inside::Ip(1));
        assert_eq!(ip_in(9, &[0xc0, 0x21]), Inside::Other);
        assert_eq!(ip_in(276, &[0x86, 0xdd]), Inside::Ip(20));
        assert_eq!(ip_in(105, &[0]), Inside::Unknown);
    }
}
