//! The options that few packets have: those of handshakes, and what the ends tell each other about addresses, priority and closing.
//! RFC 8684 §3 (v1) and RFC 6824 §3 (v0).

use crate::fields::{be16, be32, be64};
use crate::options::Walk;
use crate::segment::mapped;

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
mod tests {
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
