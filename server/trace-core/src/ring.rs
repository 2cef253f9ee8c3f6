//! A queue of small values whose places follow from its first by a mask.

/// Grows to powers of two, and never shrinks.
#[derive(Debug)]
pub struct Ring<T> {
    places: Vec<T>,
    first: usize,
    length: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { places: Vec::new(), first: 0, length: 0 }
    }
}

impl<T: Copy + Default> Ring<T> {
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Of the one that is `index` behind the oldest.
    #[inline(always)]
    fn place(&self, index: usize) -> usize {
        self.first.wrapping_add(index) & self.places.len().wrapping_sub(1)
    }

    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        if self.length == 0 {
            return None;
        }
        self.places.get(self.place(0))
    }

    #[inline(always)]
    pub fn back_mut(&mut self) -> Option<&mut T> {
        let at = self.place(self.length.checked_sub(1)?);
        self.places.get_mut(at)
    }

    #[inline(always)]
    pub fn push_back(&mut self, value: T) {
        if self.length == self.places.len() {
            self.grow();
        }
        let at = self.place(self.length);
        if let Some(place) = self.places.get_mut(at) {
            *place = value;
            self.length += 1;
        }
    }

    #[inline(never)]
    fn grow(&mut self) {
        let at = self.first & self.places.len().wrapping_sub(1);
        self.places.rotate_left(at);
        self.first = 0;
        self.places.resize((2 * self.places.len()).max(8), T::default());
    }

    /// Forgets the oldest.
    #[inline(always)]
    pub fn pop_front(&mut self) {
        if self.length > 0 {
            self.first = self.first.wrapping_add(1);
            self.length -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_queue() {
        let (mut ring, mut expected) = (Ring::default(), std::collections::VecDeque::new());
        for step in 0..10_000_u64 {
            // Fills up to dozens, and empties again, many times over.
            if step * 7 % 64 < 32 + step % 3 {
                ring.push_back(step);
                expected.push_back(step);
            } else {
                ring.pop_front();
                expected.pop_front();
            }
            assert_eq!(ring.front(), expected.front());
            assert_eq!(ring.back_mut(), expected.back_mut());
            assert_eq!(ring.len(), expected.len());
        }
        assert!(ring.places.len() > 8, "it never grew");
    }
}
