//! From a captured frame to the IP packet in it, by the file's link type.

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

/// By the numbers of LINKTYPE_… in files; 12 and 14 are raw IP of some systems, 149 is what one of them calls 258.
#[inline(always)]
pub fn ip_in(link_type: u16, frame: &[u8]) -> Inside {
    match link_type {
        ETHERNET => by_ethertype(frame, 12),
        113 => by_ethertype(frame, 14),
        276 => match be16(frame, 0) {
            // Its header is 20 bytes with the protocol first.
            Some(0x8100 | 0x88a8) => by_ethertype(frame, 22),
            Some(ethertype) => behind(frame, ethertype, 20),
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
        127 => radiotap(frame),
        149 | 258 => pktap(frame),
        _ => Inside::Unknown,
    }
}

/// IEEE 802.3 with 802.1Q and 802.1ad tags, up to eight of them. `at`: of the EtherType.
#[inline(always)]
fn by_ethertype(frame: &[u8], at: usize) -> Inside {
    let mut at = at;
    for _ in 0..8 {
        match be16(frame, at) {
            Some(0x8100 | 0x88a8 | 0x9100) => at += 4,
            // A length: IEEE 802.2 follows.
            Some(..=1500) => return snap(frame, at + 2),
            Some(ethertype) => return behind(frame, ethertype, at + 2),
            None => return Inside::Cut,
        }
    }
    Inside::Other
}

/// What begins at `at` and is of this EtherType.
#[inline(always)]
fn behind(frame: &[u8], ethertype: u16, at: usize) -> Inside {
    match ethertype {
        IPV4 | IPV6 => Inside::Ip(at),
        // PPPoE session: six bytes, then PPP's protocol.
        0x8864 => ppp(frame, at + 6),
        0x8847 | 0x8848 => mpls(frame, at),
        _ => Inside::Other,
    }
}

/// RFC 3032 §2.1: labels of four bytes to the one that is the last, then IP by its version (no other kind has these).
fn mpls(frame: &[u8], at: usize) -> Inside {
    let last = frame.get(at..).unwrap_or_default().chunks_exact(4).position(|label| label[2] & 1 != 0);
    let Some(ip) = last.map(|labels| at + 4 * labels + 4) else { return Inside::Cut };
    match frame.get(ip).map(|byte| byte >> 4) {
        Some(4 | 6) => Inside::Ip(ip),
        Some(_) => Inside::Other,
        None => Inside::Cut,
    }
}

/// IEEE 802.2 with RFC 1042's header.
fn snap(frame: &[u8], at: usize) -> Inside {
    match (frame.get(at..at + 6), be16(frame, at + 6)) {
        (Some([0xaa, 0xaa, 3, 0, 0, 0]), Some(ethertype)) => behind(frame, ethertype, at + 8),
        (Some(_), Some(_)) => Inside::Other,
        _ => Inside::Cut,
    }
}

/// radiotap.org's header, then IEEE 802.11's of a data frame (§9.2.4), which may be padded to whole words.
fn radiotap(frame: &[u8]) -> Inside {
    let (Some(length), Some(0)) = (be16(frame, 2).map(u16::swap_bytes), frame.first()) else { return Inside::Other };
    let at = usize::from(length);
    let Some(control) = be16(frame, at) else { return Inside::Cut };
    let [first, flags] = control.to_be_bytes();
    let (kind, quality) = (first & 0x0c, first & 0x80 != 0);
    // Data that is not encrypted, and not without content.
    if kind != 8 || first & 0x40 != 0 || flags & 0x40 != 0 {
        return Inside::Other;
    }
    let own = 24 + if flags & 3 == 3 { 6 } else { 0 } + if quality { 2 } else { 0 } + if quality && flags & 0x80 != 0 { 4 } else { 0 };
    match snap(frame, at + own) {
        Inside::Other if own % 4 != 0 => snap(frame, at + own + 2),
        inside => inside,
    }
}

/// Apple's header: its length, what follows it, and of which link type that is, little endian.
fn pktap(frame: &[u8]) -> Inside {
    let word = |at: usize| be32(frame, at).map(u32::swap_bytes);
    let (Some(length), Some(kind), Some(link_type)) = (word(0), word(4), word(8)) else { return Inside::Cut };
    let Some(inner) = frame.get(length as usize..) else { return Inside::Cut };
    if length < 12 || kind != 1 || matches!(link_type, 149 | 258) {
        return Inside::Other;
    }
    match ip_in(link_type as u16, inner) {
        Inside::Ip(at) => Inside::Ip(length as usize + at),
        inside => inside,
    }
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

// ---------------------------------------------------------------------------------------------------------------------
// Reading numbers out of bytes that may end too soon.

#[inline(always)]
pub fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

#[inline(always)]
pub fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[inline(always)]
pub fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// In the byte order of a file: `swapped` when it is not little endian.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub swapped: bool,
}

impl Order {
    #[inline(always)]
    pub fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let read = be16(bytes, at)?;
        Some(if self.swapped { read } else { read.swap_bytes() })
    }

    #[inline(always)]
    pub fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let read = be32(bytes, at)?;
        Some(if self.swapped { read } else { read.swap_bytes() })
    }
}

/// The first `N` bytes.
#[inline(always)]
pub fn head<const N: usize>(bytes: &[u8]) -> Option<&[u8; N]> {
    bytes.get(..N)?.try_into().ok()
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
        assert_eq!(ip_in(258, &[12, 0, 0, 0, 1, 0, 0, 0, 12, 0, 0, 0, 0x45]), Inside::Ip(12));
        assert_eq!(ip_in(258, &[12, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0, 0x45]), Inside::Other);
        let mut stacked = vec![0; 12];
        stacked.extend([0x88, 0x47, 0, 1, 0x20, 64, 0, 1, 0x31, 64, 0x60]);
        assert_eq!(ip_in(1, &stacked), Inside::Ip(22));
    }
}
