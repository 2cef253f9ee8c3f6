//! TCP options. Those that nearly every packet has: timestamps (RFC 7323 §3.2) and the DSS of Multipath TCP (RFC 8684 §3.3, RFC 6824
//! §3.3); and those that few have.

use crate::frame::{be16, be32, be64};
use crate::segment::mapped;

/// A mapping as in the option: `ssn` is relative to the subflow's initial sequence number.
#[derive(Clone, Copy, Debug, Eq)]
pub struct Map {
    pub dsn: u64,
    /// `dsn` has all 64 bits.
    pub wide: bool,
    pub ssn: u32,
    /// Without the octet of a DATA_FIN. 0 in an infinite mapping.
    pub length: u32,
    pub infinite: bool,
}

impl PartialEq for Map {
    /// Without a branch for each field: nearly all packets carry the mapping of the one before.
    #[inline(always)]
    fn eq(&self, other: &Map) -> bool {
        let numbers = (self.dsn ^ other.dsn) | u64::from((self.ssn ^ other.ssn) | (self.length ^ other.length));
        numbers == 0 && (self.wide == other.wide) & (self.infinite == other.infinite)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    pub data_ack: Option<(u64, bool)>,
    pub map: Option<Map>,
    pub data_fin: bool,
    /// Any Multipath TCP option.
    pub multipath: bool,
    /// Multipath TCP options other than DSS.
    pub rare: bool,
    /// Where in the options the blocks of SACK (RFC 2018 §3) stand, and their bytes.
    pub sack: (u8, u8),
    /// An option says a length that cannot be.
    pub bad: bool,
}

/// Options one after another: kind, where the body begins, body (after kind and length). Ends where the list does, at an option that the
/// snaplen cut, and at a length that cannot be, of which `bad` tells.
pub struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    pub bad: bool,
}

impl<'a> Walk<'a> {
    #[inline(always)]
    pub fn from(bytes: &'a [u8], at: usize) -> Self {
        Walk { bytes, at, bad: false }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = (u8, usize, &'a [u8]);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let kind = *self.bytes.get(self.at)?;
            if kind == 0 {
                return None;
            }
            if kind == 1 {
                self.at += 1;
                continue;
            }
            let length = *self.bytes.get(self.at + 1)?;
            if length < 2 {
                self.bad = true;
                return None;
            }
            let (start, end) = (self.at + 2, self.at + usize::from(length));
            let body = self.bytes.get(start..end)?;
            self.at = end;
            return Some((kind, start, body));
        }
    }
}

const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];

#[inline(never)]
pub fn parse(bytes: &[u8]) -> Options {
    let mut options = Options::default();
    let mut at = 0;
    // What Linux and most others put first.
    if bytes.len() >= 12 && bytes[..4] == TIMESTAMPS {
        options.timestamps = be32(bytes, 4).zip(be32(bytes, 8));
        at = 12;
    }
    let mut walk = Walk::from(bytes, at);
    for (kind, start, body) in walk.by_ref() {
        if kind == 30 {
            options.multipath = true;
            match body.first().map(|byte| byte >> 4) {
                Some(2) => dss(body, &mut options),
                Some(_) => options.rare = true,
                None => options.bad = true,
            }
        } else if kind == 8 && body.len() == 8 {
            options.timestamps = be32(body, 0).zip(be32(body, 4));
        } else if kind == 5 {
            // The header has 40 bytes of options at most.
            options.sack = (start as u8, body.len() as u8);
        }
    }
    options.bad |= walk.bad;
    options
}

/// How many bytes beyond `acknowledgement` the blocks name.
#[cold]
pub fn sacked(bytes: &[u8], sack: (u8, u8), acknowledgement: u32) -> u64 {
    let start = usize::from(sack.0);
    let blocks = bytes.get(start..start + usize::from(sack.1)).unwrap_or_default();
    let beyond = |block: &[u8]| {
        let (left, right) = (be32(block, 0)?, be32(block, 4)?);
        // A block at or below the acknowledgement tells of a duplicate (RFC 2883).
        let ahead = (left.wrapping_sub(acknowledgement) as i32) > 0 && (right.wrapping_sub(left) as i32) > 0;
        ahead.then(|| u64::from(right.wrapping_sub(left)))
    };
    blocks.chunks_exact(8).filter_map(beyond).sum()
}

/// `body`: after kind and length.
#[inline(always)]
fn dss(body: &[u8], options: &mut Options) {
    let Some(&flags) = body.get(1) else {
        options.bad = true;
        return;
    };
    let mut at = 2;
    if flags & 1 != 0 {
        options.data_ack = if flags & 2 != 0 {
            at += 8;
            be64(body, 2).map(|ack| (ack, true))
        } else {
            at += 4;
            be32(body, 2).map(|ack| (u64::from(ack), false))
        };
    }
    if flags & 4 == 0 {
        options.bad |= flags & 1 != 0 && options.data_ack.is_none();
        return;
    }
    let wide = flags & 8 != 0;
    let dsn = if wide { be64(body, at) } else { be32(body, at).map(u64::from) };
    at += if wide { 8 } else { 4 };
    let (Some(dsn), Some(ssn), Some(length)) = (dsn, be32(body, at), be16(body, at + 4)) else {
        options.bad = true;
        return;
    };
    options.data_fin = flags & 16 != 0;
    let octet = u32::from(options.data_fin && length > 0);
    options.map = Some(Map { dsn, wide, ssn, length: u32::from(length) - octet, infinite: length == 0 });
}

// ---------------------------------------------------------------------------------------------------------------------
// The options that few packets have: those of handshakes, and what the ends tell each other about addresses, priority and closing.
// RFC 8684 §3 (v1) and RFC 6824 §3 (v0).

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Largest segment that this end takes.
    Mss(u16),
    WindowScale(u8),
    /// `data_length`: of the first data (v1), which is the first mapping.
    Capable { version: u8, sender: Option<u64>, receiver: Option<u64>, data_length: Option<u16> },
    JoinSyn { backup: bool, id: u8, token: u32 },
    JoinSynAck { backup: bool, id: u8 },
    JoinAck,
    AddAddress { version: u8, echo: bool, id: u8, address: [u8; 16], port: Option<u16> },
    RemoveAddress { id: u8 },
    Priority { backup: bool },
    Fail { dsn: u64 },
    FastClose,
    ResetReason { reason: u8 },
}

/// Calls `heard` for each; an option with a length that none of its forms has is left out, and told by false.
pub fn each(bytes: &[u8], mut heard: impl FnMut(Said)) -> bool {
    let mut whole = true;
    for (kind, _, body) in Walk::from(bytes, 0) {
        match kind {
            2 => be16(body, 0).into_iter().for_each(|mss| heard(Said::Mss(mss))),
            // RFC 7323 §2.3: more than 14 counts as 14.
            3 => body.first().into_iter().for_each(|shift| heard(Said::WindowScale((*shift).min(14)))),
            30 => whole &= multipath(body, &mut heard),
            _ => {}
        }
    }
    whole
}

/// `body`: after kind and length.
fn multipath(body: &[u8], heard: &mut impl FnMut(Said)) -> bool {
    let Some(&first) = body.first() else { return false };
    let low = first & 15;
    let backup = low & 1 != 0;
    let byte = |at: usize| body.get(at).copied().unwrap_or_default();
    let said = match (first >> 4, body.len() + 2) {
        (0, 4) => Said::Capable { version: low, sender: None, receiver: None, data_length: None },
        (0, 12) => Said::Capable { version: low, sender: be64(body, 2), receiver: None, data_length: None },
        (0, 20) => Said::Capable { version: low, sender: be64(body, 2), receiver: be64(body, 10), data_length: None },
        (0, 22 | 24) => {
            Said::Capable { version: low, sender: be64(body, 2), receiver: be64(body, 10), data_length: be16(body, 18) }
        }
        (1, 12) => Said::JoinSyn { backup, id: byte(1), token: be32(body, 2).unwrap_or_default() },
        (1, 16) => Said::JoinSynAck { backup, id: byte(1) },
        (1, 24) => Said::JoinAck,
        (2, _) => return true,
        (3, length) => return add_address(body, low, length, heard),
        (4, 4..) => {
            body[1..].iter().for_each(|id| heard(Said::RemoveAddress { id: *id }));
            return true;
        }
        (5, 3 | 4) => Said::Priority { backup },
        (6, 12) => Said::Fail { dsn: be64(body, 2).unwrap_or_default() },
        (7, 12) => Said::FastClose,
        (8, 4) => Said::ResetReason { reason: byte(1) },
        // For experiments, and what is not known yet.
        (9.., _) => return true,
        _ => return false,
    };
    heard(said);
    true
}

/// v0 has the address's version there where v1 has the echo flag; v1 ends in a hash, but not in an echo.
fn add_address(body: &[u8], low: u8, length: usize, heard: &mut impl FnMut(Said)) -> bool {
    let version = u8::from(low != 4 && low != 6);
    let echo = version == 1 && low & 1 != 0;
    let size = match (version, echo, length) {
        (0, _, 8 | 10) | (1, true, 8 | 10) | (1, false, 16 | 18) => 4,
        (0, _, 20 | 22) | (1, true, 20 | 22) | (1, false, 28 | 30) => 16,
        _ => return false,
    };
    let bare = 4 + size + if version == 1 && !echo { 8 } else { 0 };
    let (Some(id), Some(bytes)) = (body.get(1), body.get(2..2 + size)) else { return false };
    let address = match size {
        4 => mapped(be32(bytes, 0).unwrap_or_default()),
        _ => bytes.try_into().unwrap_or_default(),
    };
    let port = if length > bare { be16(body, 2 + size) } else { None };
    heard(Said::AddAddress { version, echo, id: *id, address, port });
    true
}

#[cfg(test)]
mod options_tests {
    use super::*;

    #[test]
    fn timestamps_wherever_they_stand() {
        let first = [1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6];
        assert_eq!(parse(&first).timestamps, Some((5, 6)));
        let later = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 8];
        assert_eq!(parse(&later).timestamps, Some((7, 8)));
        assert_eq!(parse(&first[..11]).timestamps, None);
    }

    #[test]
    fn a_dss_with_everything() {
        let bytes = [30, 28, 0x20, 0x1f, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 3, 0, 11, 0, 0];
        let options = parse(&bytes);
        assert_eq!(options.data_ack, Some((9, true)));
        assert_eq!(options.map, Some(Map { dsn: 256, wide: true, ssn: 3, length: 10, infinite: false }));
        assert!(options.data_fin && !options.bad && !options.rare);
    }

    #[test]
    fn blocks_beyond_the_acknowledgement() {
        let bytes = [1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 50, 0, 0, 0, 80];
        let options = parse(&bytes);
        assert_eq!(options.sack, (4, 16));
        assert_eq!(sacked(&bytes, options.sack, 20), 30);
        assert_eq!(sacked(&bytes, (4, 200), 20), 0);
    }

    #[test]
    fn lengths_that_cannot_be() {
        assert!(parse(&[30, 1, 0x20]).bad);
        assert!(parse(&[30, 2]).bad);
        assert!(parse(&[30, 6, 0x20, 5, 0, 0]).bad);
        assert!(!parse(&[30, 40, 0x20]).bad);
    }
}

#[cfg(test)]
mod rare_tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<Said> {
        let mut said = Vec::new();
        each(bytes, |one| said.push(one));
        said
    }

    #[test]
    fn a_priority_has_three_bytes_in_v1_and_may_have_four_in_v0() {
        assert_eq!(all(&[30, 3, 0x51]), [Said::Priority { backup: true }]);
        assert_eq!(all(&[30, 4, 0x50, 2]), [Said::Priority { backup: false }]);
    }

    #[test]
    fn addresses_of_both_versions() {
        let v0 = [30, 8, 0x34, 7, 10, 0, 0, 1];
        let said = Said::AddAddress { version: 0, echo: false, id: 7, address: mapped(0x0a00_0001), port: None };
        assert_eq!(all(&v0), [said]);
        let v1 = [30, 18, 0x30, 7, 10, 0, 0, 1, 0x1f, 0x90, 0, 0, 0, 0, 0, 0, 0, 0];
        let said = Said::AddAddress { version: 1, echo: false, id: 7, address: mapped(0x0a00_0001), port: Some(8080) };
        assert_eq!(all(&v1), [said]);
        let echo = [30, 8, 0x31, 7, 10, 0, 0, 1];
        let said = Said::AddAddress { version: 1, echo: true, id: 7, address: mapped(0x0a00_0001), port: None };
        assert_eq!(all(&echo), [said]);
    }

    #[test]
    fn several_in_one_packet_and_wrong_lengths() {
        assert_eq!(all(&[30, 5, 0x40, 1, 2, 30, 4, 0x80, 3]).len(), 3);
        assert!(!each(&[30, 5, 0x10, 0, 0], |_| ()));
        assert!(each(&[30, 0, 0], |_| ()));
    }
}
