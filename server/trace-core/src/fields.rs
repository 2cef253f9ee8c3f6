//! Reading numbers out of bytes that may end too soon.

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
