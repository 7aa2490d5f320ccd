//! Space for lists of tickets in the table that the kernel reads. The index of the first
//! ticket names a list; 0 names the empty list.

use std::collections::BTreeMap;

/// The free space of the table.
pub struct FreeSpace {
    /// Free stretches, by start, with their lengths. No two of them touch.
    free: BTreeMap<u32, u32>,
    /// Lists that the kernel may still be reading.
    retired: Vec<(u32, u32)>,
}

impl FreeSpace {
    /// A table of `size` tickets, the first of which stays unused.
    pub fn new(size: u32) -> Self {
        Self {
            free: BTreeMap::from([(1, size - 1)]),
            retired: Vec::new(),
        }
    }

    /// Space for a list of `length` tickets, at least one. Calls `quiesce` before it reuses
    /// retired lists; `quiesce` returns when the kernel no longer reads them.
    pub fn take(&mut self, length: u32, quiesce: impl FnOnce()) -> Option<u32> {
        if let Some(start) = self.take_free(length) {
            return Some(start);
        }
        if self.retired.is_empty() {
            return None;
        }
        quiesce();
        for (start, length) in std::mem::take(&mut self.retired) {
            self.release(start, length);
        }
        self.take_free(length)
    }

    /// The kernel uses another list now. This one becomes free after the next `quiesce`.
    pub fn retire(&mut self, start: u32, length: u32) {
        if length > 0 {
            self.retired.push((start, length));
        }
    }

    fn take_free(&mut self, length: u32) -> Option<u32> {
        let mut places = self.free.iter();
        let (&start, &room) = places.find(|&(_, &room)| room >= length)?;
        self.free.remove(&start);
        if room > length {
            self.free.insert(start + length, room - length);
        }
        Some(start)
    }

    fn release(&mut self, mut start: u32, mut length: u32) {
        if let Some((&before, &room)) = self.free.range(..start).next_back()
            && before + room == start
        {
            self.free.remove(&before);
            (start, length) = (before, length + room);
        }
        if let Some(room) = self.free.remove(&(start + length)) {
            length += room;
        }
        self.free.insert(start, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_table_can_be_used_again() {
        let mut room = FreeSpace::new(101);
        let lists: Vec<u32> = (0..10)
            .map(|_| room.take(10, || panic!("none is retired")).unwrap())
            .collect();
        assert_eq!(lists[0], 1);
        assert_eq!(room.take(1, || panic!("none is retired")), None);
        for &list in lists.iter().rev() {
            room.retire(list, 10);
        }
        let mut quiet = 0;
        assert_eq!(room.take(100, || quiet += 1), Some(1));
        assert_eq!(quiet, 1);
        assert_eq!(room.take(1, || panic!("none is retired")), None);
    }

    #[test]
    fn retired_places_are_left_alone_while_there_are_others() {
        let mut room = FreeSpace::new(31);
        let first = room.take(10, || ()).unwrap();
        room.retire(first, 10);
        assert_eq!(room.take(20, || panic!("there is room")), Some(11));
        assert_eq!(room.take(11, || ()), None);
        assert_eq!(room.take(10, || ()), Some(1));
    }
}
