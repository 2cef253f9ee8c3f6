//! SHA-1 and SHA-256 of eight bytes: all that tokens and initial data sequence numbers need (RFC 6824 §2.3, RFC 8684 §2.3).
//! Both after FIPS 180-4; eight bytes and their padding are one block.

fn block(key: u64) -> [u32; 16] {
    let mut words = [0_u32; 16];
    words[0] = (key >> 32) as u32;
    words[1] = key as u32;
    words[2] = 0x8000_0000;
    words[15] = 64;
    words
}

/// FIPS 180-4 §6.1.
pub fn sha1(key: u64) -> [u32; 5] {
    let start = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut w = [0_u32; 80];
    w[..16].copy_from_slice(&block(key));
    for t in 16..80 {
        w[t] = (w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = start;
    for (t, word) in w.iter().enumerate() {
        let (f, k) = match t / 20 {
            0 => ((b & c) ^ (!b & d), 0x5a82_7999),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => ((b & c) ^ (b & d) ^ (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6_u32),
        };
        let next = a.rotate_left(5).wrapping_add(f).wrapping_add(e).wrapping_add(k).wrapping_add(*word);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    let end = [a, b, c, d, e];
    std::array::from_fn(|i| start[i].wrapping_add(end[i]))
}

const K: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// FIPS 180-4 §6.2.
pub fn sha256(key: u64) -> [u32; 8] {
    let start = [
        0x6a09e667_u32, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    ];
    let mut w = [0_u32; 64];
    w[..16].copy_from_slice(&block(key));
    for t in 16..64 {
        let s0 = w[t - 15].rotate_right(7) ^ w[t - 15].rotate_right(18) ^ (w[t - 15] >> 3);
        let s1 = w[t - 2].rotate_right(17) ^ w[t - 2].rotate_right(19) ^ (w[t - 2] >> 10);
        w[t] = w[t - 16].wrapping_add(s0).wrapping_add(w[t - 7]).wrapping_add(s1);
    }
    let mut v = start;
    for t in 0..64 {
        let s1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
        let choice = (v[4] & v[5]) ^ (!v[4] & v[6]);
        let one = v[7].wrapping_add(s1).wrapping_add(choice).wrapping_add(K[t]).wrapping_add(w[t]);
        let s0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
        let majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        let two = s0.wrapping_add(majority);
        v = [one.wrapping_add(two), v[0], v[1], v[2], v[3].wrapping_add(one), v[4], v[5], v[6]];
    }
    std::array::from_fn(|i| start[i].wrapping_add(v[i]))
}

/// The token that a key has, and the initial data sequence number: the hash's first 32 and last 64 bits.
pub fn of_key(key: u64, version: u8) -> (u32, u64) {
    if version == 0 {
        let hash = sha1(key);
        (hash[0], u64::from(hash[3]) << 32 | u64::from(hash[4]))
    } else {
        let hash = sha256(key);
        (hash[0], u64::from(hash[6]) << 32 | u64::from(hash[7]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // printf '\0\1\2\3\4\5\6\7' | sha1sum, sha256sum
    #[test]
    fn hashes_of_a_key() {
        let key = 0x0001_0203_0405_0607;
        assert_eq!(sha1(key), [0x67423ebf, 0xa8454f19, 0xac6f4686, 0xd6c0dc73, 0x1a3ddd6b]);
        let long = sha256(key);
        assert_eq!((long[0], long[1], long[7]), (0x8a851ff8, 0x2ee7048a, 0x785a0d45));
    }
}
