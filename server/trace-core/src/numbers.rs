//! Numbers that wrap, expanded to 64 bits near one that is known.

/// Where expanded numbers begin, so that what lies a little before the first is still positive.
pub const BASE: u64 = 1 << 34;

/// The number nearest to `near` whose lower 32 bits are `low`.
#[inline(always)]
pub fn expand(near: u64, low: u32) -> u64 {
    near.wrapping_add(low.wrapping_sub(near as u32) as i32 as i64 as u64)
}

/// The first of a sequence: its lower 32 bits are kept.
#[inline(always)]
pub fn first(low: u32) -> u64 {
    BASE | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_over_the_edge_both_ways() {
        let near = first(0xffff_fff0);
        assert_eq!(expand(near, 0x10), near + 0x20);
        assert_eq!(expand(near + 0x20, 0xffff_fff0), near);
        assert_eq!(expand(first(5), 0xffff_ffff), first(5) - 6);
    }
}
