//! Which subflow a packet belongs to: by its addresses and ports, in either direction.

use std::collections::hash_map::RandomState;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};

use crate::segment::{Key, SIX};

/// Multiplies and folds, from a start that nobody outside this process knows: fast, and collisions cannot be prepared.
#[derive(Clone, Debug)]
pub struct Folding {
    start: u64,
    factor: u64,
}

impl Default for Folding {
    fn default() -> Self {
        let random = RandomState::new();
        Folding { start: random.hash_one(1_u8), factor: random.hash_one(2_u8) | 1 }
    }
}

impl BuildHasher for Folding {
    type Hasher = Folded;

    #[inline(always)]
    fn build_hasher(&self) -> Folded {
        Folded { state: self.start, factor: self.factor }
    }
}

pub struct Folded {
    state: u64,
    factor: u64,
}

impl Hasher for Folded {
    #[inline(always)]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.factor);
        self.state = (product >> 64) as u64 ^ product as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.state
    }
}

impl Hash for Key {
    #[inline(always)]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let [a, b, c, d, ports] = self.0;
        hasher.write_u64(a);
        if ports & SIX != 0 {
            hasher.write_u64(b);
            hasher.write_u64(c);
            hasher.write_u64(d);
        }
        hasher.write_u64(ports);
    }
}

/// A subflow's number and which of its ends sent this: 0 its opener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub flow: u32,
    pub side: u8,
}

/// No packet has this key: bits are set in it that are no port's.
const NOTHING: [(Key, Place); 2] = [(Key([u64::MAX; 5]), Place { flow: u32::MAX, side: 0 }); 2];

#[derive(Debug)]
pub struct Table {
    places: HashMap<Key, Place, Folding>,
    /// What was found last in either direction: mostly the next packet's.
    last: [(Key, Place); 2],
}

impl Default for Table {
    fn default() -> Self {
        Table { places: HashMap::default(), last: NOTHING }
    }
}

impl Table {
    #[inline(always)]
    pub fn find(&mut self, key: Key) -> Option<Place> {
        let [(one, here), (other, there)] = &self.last;
        if *one == key {
            Some(*here)
        } else if *other == key {
            Some(*there)
        } else {
            self.look_up(&{ key })
        }
    }

    #[inline(never)]
    fn look_up(&mut self, key: &Key) -> Option<Place> {
        let place = self.places.get(key).copied()?;
        self.last[usize::from(place.side & 1)] = (*key, place);
        Some(place)
    }

    /// `key`: of who opened it.
    pub fn put(&mut self, key: Key, flow: u32) {
        self.last = NOTHING;
        // An address that speaks to itself on one port has one key for both directions.
        self.places.insert(key.reversed(), Place { flow, side: 1 });
        self.places.insert(key, Place { flow, side: 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_find_it() {
        let mut table = Table::default();
        let key = Key([1 << 32 | 2, 0, 0, 0, 3 << 16 | 4]);
        table.put(key, 9);
        assert_eq!(table.find(key), Some(Place { flow: 9, side: 0 }));
        assert_eq!(table.find(key.reversed()), Some(Place { flow: 9, side: 1 }));
        assert_eq!(table.find(Key([0; 5])), None);
    }
}
