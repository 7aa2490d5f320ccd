//! Where the ledger's objects live: slabs with generational identifiers.
//!
//! Two kinds of names point into an arena. An *identifier* ([`crate::ids`])
//! comes from outside and may be stale; [`Arena::find`] turns it into a
//! *handle* or refuses it. A [`Handle`] is what objects hold of one another
//! inside the ledger; it always names a living object, because an
//! object is unlinked from all holders of its handle before it is destroyed.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::num::NonZeroU32;
use core::ops::{Index, IndexMut};

use crate::ids::Identifier;
use crate::prefetch::prefetch;

/// Names a living object of type `T` inside one ledger; an `Option` of it
/// takes four bytes.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent, bound = ""))]
pub(super) struct Handle<T> {
    /// One more than the index.
    successor: NonZeroU32,
    #[cfg_attr(feature = "serde", serde(skip))]
    object: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    fn new(index: usize) -> Self {
        let successor = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self {
            successor: successor.expect("limits are below 2^32"),
            object: PhantomData,
        }
    }

    fn index(self) -> usize {
        self.successor.get() as usize - 1
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Self) -> bool {
        self.successor == other.successor
    }
}

impl<T> Eq for Handle<T> {}

impl<T> PartialOrd for Handle<T> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Handle<T> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.successor.cmp(&other.successor)
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.index())
    }
}

/// Objects of type `T` under identifiers of type `I`.
///
/// Indexes are handed out deterministically: the one freed last is used
/// first, else the next that was never used.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "T: serde::Serialize",
        deserialize = "T: serde::Deserialize<'de>"
    ))
)]
pub(super) struct Arena<T, I> {
    slots: Vec<Cell<T>>,
    /// Heads the list of the vacant slots that may be used again.
    vacant: Option<Handle<T>>,
    /// Number of occupied slots.
    len: u32,
    #[cfg_attr(feature = "serde", serde(skip))]
    identifier: PhantomData<fn() -> I>,
}

#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Cell<T> {
    /// How many objects stood here before; names the present or the next one.
    generation: u32,
    entry: Entry<T>,
}

#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "T: serde::Serialize",
        deserialize = "T: serde::Deserialize<'de>"
    ))
)]
enum Entry<T> {
    Occupied(T),
    Vacant { next: Option<Handle<T>> },
}

impl<T, I: Identifier> Arena<T, I> {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            vacant: None,
            len: 0,
            identifier: PhantomData,
        }
    }

    /// Makes room for so many more objects, and for no more than those.
    pub(super) fn reserve(&mut self, objects: usize) {
        self.slots.reserve_exact(objects);
    }

    /// All indices are below this.
    pub(super) fn indices(&self) -> usize {
        self.slots.len()
    }

    /// Number of objects.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// O(1); allocates when the slab is full.
    pub(super) fn insert(&mut self, object: T) -> Handle<T> {
        self.len += 1;
        let Some(handle) = self.vacant else {
            let handle = Handle::new(self.slots.len());
            self.slots.push(Cell {
                generation: 0,
                entry: Entry::Occupied(object),
            });
            return handle;
        };
        let slot = &mut self.slots[handle.index()];
        if let Entry::Vacant { next } = slot.entry {
            self.vacant = next;
        }
        slot.entry = Entry::Occupied(object);
        handle
    }

    /// O(1). The identifier is refused from now on; a slot that has used up
    /// its generations is never used again.
    pub(super) fn remove(&mut self, handle: Handle<T>) -> T {
        let slot = &mut self.slots[handle.index()];
        let entry = core::mem::replace(&mut slot.entry, Entry::Vacant { next: self.vacant });
        let Entry::Occupied(object) = entry else {
            panic!("{handle:?} names no object")
        };
        self.len -= 1;
        match slot.generation.checked_add(1) {
            Some(generation) => {
                slot.generation = generation;
                self.vacant = Some(handle);
            }
            None => slot.entry = Entry::Vacant { next: None },
        }
        object
    }

    /// The object of this identifier, unless it is stale or was never given.
    pub(super) fn find(&self, id: I) -> Option<Handle<T>> {
        let slot = self.slots.get(id.index() as usize)?;
        let living = slot.generation == id.generation() && slot.object().is_some();
        living.then(|| Handle::new(id.index() as usize))
    }

    /// Has an object fetched from memory.
    #[inline]
    pub(super) fn prefetch(&self, id: I) {
        prefetch(&self.slots, id.index() as usize);
    }

    /// The identifier of an object.
    pub(super) fn id(&self, handle: Handle<T>) -> I {
        I::from_parts(handle.index() as u32, self.slots[handle.index()].generation)
    }

    /// The object, unless it was destroyed since the handle was made and
    /// nothing has taken its place.
    pub(super) fn get(&self, handle: Handle<T>) -> Option<&T> {
        self.slots[handle.index()].object()
    }

    /// All objects in the order of their indexes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Handle<T>, &T)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(index, slot)| slot.object().map(|object| (Handle::new(index), object)))
    }
}

impl<T> Cell<T> {
    fn object(&self) -> Option<&T> {
        match &self.entry {
            Entry::Occupied(object) => Some(object),
            Entry::Vacant { .. } => None,
        }
    }
}

impl<T, I> Index<Handle<T>> for Arena<T, I> {
    type Output = T;

    fn index(&self, handle: Handle<T>) -> &T {
        match &self.slots[handle.index()].entry {
            Entry::Occupied(object) => object,
            Entry::Vacant { .. } => panic!("{handle:?} names no object"),
        }
    }
}

impl<T, I> IndexMut<Handle<T>> for Arena<T, I> {
    fn index_mut(&mut self, handle: Handle<T>) -> &mut T {
        match &mut self.slots[handle.index()].entry {
            Entry::Occupied(object) => object,
            Entry::Vacant { .. } => panic!("{handle:?} names no object"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TicketId;

    type Letters = Arena<char, TicketId>;

    #[test]
    fn the_index_freed_last_is_used_first_under_the_next_generation() {
        let mut letters = Letters::new();
        let [a, b, c] = ['a', 'b', 'c'].map(|letter| letters.insert(letter));
        let old = letters.id(b);
        assert_eq!(letters.remove(a), 'a');
        assert_eq!(letters.remove(b), 'b');
        assert_eq!(letters.find(old), None);
        let d = letters.insert('d');
        assert_eq!(letters.id(d), TicketId::from_parts(1, 1));
        assert_eq!(letters.find(old), None);
        let e = letters.insert('e');
        assert_eq!(letters.id(e), TicketId::from_parts(0, 1));
        let f = letters.insert('f');
        assert_eq!(letters.id(f), TicketId::from_parts(3, 0));
        assert_eq!(letters.len(), 4);
        assert!(
            letters
                .iter()
                .map(|(_, letter)| *letter)
                .eq(['e', 'd', 'c', 'f'])
        );
        assert_eq!(letters[c], 'c');
    }

    #[test]
    fn identifiers_never_given_are_refused() {
        let letters = Letters::new();
        assert_eq!(letters.find(TicketId::from_parts(0, 0)), None);
        assert_eq!(letters.find(TicketId::from_parts(u32::MAX, u32::MAX)), None);
    }

    #[test]
    fn a_slot_without_generations_left_is_not_used_again() {
        let mut letters = Letters::new();
        let a = letters.insert('a');
        letters.slots[0].generation = u32::MAX;
        let last = letters.id(a);
        letters.remove(a);
        assert_eq!(letters.find(last), None);
        let b = letters.insert('b');
        assert_eq!(letters.id(b), TicketId::from_parts(1, 0));
        assert_eq!(letters.len(), 1);
    }
}
