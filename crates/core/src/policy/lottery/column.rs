//! One class of the constant-time lottery: clients whose weights reach the
//! same power of two.

use alloc::vec::Vec;

use super::Weight;
use crate::policy::{ClientIndex, MAX_CLIENTS};
use crate::prefetch::prefetch;

/// A client and its weight in eight bytes, so that a throw of the dart and the
/// change of the winner's tickets wait for the same read from memory.
#[derive(Clone, Copy, Debug)]
struct Column(u64);

const _: () = assert!(MAX_CLIENTS <= PLAIN as u32);

/// Set where the weight is that of plain tickets.
const PLAIN: u64 = 1 << 31;

impl Column {
    #[inline]
    fn new(client: ClientIndex, significand: u32, plain: bool) -> Column {
        let plain = if plain { PLAIN } else { 0 };
        Column(u64::from(significand) << 32 | plain | u64::from(client.0))
    }

    #[inline]
    fn client(self) -> ClientIndex {
        ClientIndex((self.0 & (PLAIN - 1)) as u32)
    }

    #[inline]
    fn significand(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    fn is_plain(self) -> bool {
        self.0 & PLAIN != 0
    }
}

/// The clients of one class, in no order: those whose weights have the same
/// number of leading zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct Class {
    columns: Vec<Column>,
}

impl Class {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether the client at `place` is `client`.
    #[inline]
    pub(super) fn holds(&self, place: u32, client: ClientIndex) -> bool {
        let column = self.columns.get(place as usize);
        column.is_some_and(|column| column.client() == client)
    }

    /// The weight of the client at `place`, if it is that of its tickets
    /// without compensation. `zeros` is the number of this class.
    #[inline]
    pub(super) fn plain_weight(&self, zeros: u32, place: u32) -> Option<Weight> {
        let column = self.columns[place as usize];
        let weight = Weight::from_significand(column.significand(), zeros);
        column.is_plain().then_some(weight)
    }

    /// The client at `place`, if a dart at this height hits its weight there.
    /// The height is a fraction of 2^32 of the class's columns.
    #[inline]
    pub(super) fn hit(&self, place: usize, height: u32) -> Option<ClientIndex> {
        let column = self.columns[place];
        (height < column.significand()).then_some(column.client())
    }

    /// Starts to fetch what [`Class::hit`] will read at `place`, or a few
    /// places beside it: changes until then may shift what a dart hits.
    #[inline]
    pub(super) fn prefetch(&self, place: usize) {
        const FEW: usize = 4;
        prefetch(&self.columns, place.saturating_sub(FEW));
        prefetch(&self.columns, place + FEW);
    }

    /// Adds a client and returns its place.
    #[inline]
    pub(super) fn push(&mut self, client: ClientIndex, significand: u32, plain: bool) -> u32 {
        let place = self.columns.len() as u32;
        self.columns.push(Column::new(client, significand, plain));
        place
    }

    /// Overwrites the entry of the same client at `place`.
    #[inline]
    pub(super) fn replace(
        &mut self,
        place: u32,
        client: ClientIndex,
        significand: u32,
        plain: bool,
    ) {
        self.columns[place as usize] = Column::new(client, significand, plain);
    }

    /// Removes the client at `place`. The last one takes its place and is
    /// returned, unless it was the last one itself.
    #[inline]
    pub(super) fn remove(&mut self, place: u32) -> Option<ClientIndex> {
        self.columns.swap_remove(place as usize);
        let moved = self.columns.get(place as usize);
        moved.map(|column| column.client())
    }
}
