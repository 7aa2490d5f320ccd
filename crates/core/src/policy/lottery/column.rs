//! One class of the constant-time lottery: clients whose weights reach the
//! same power of two.

use alloc::vec::Vec;

use super::Weight;
use super::prefetch::prefetch;
use crate::policy::{ClientIndex, MAX_CLIENTS};

/// A client and the 8 highest bits of its weight, in four bytes: all that a
/// throw of the dart has to read but for one in 256.
#[derive(Clone, Copy, Debug)]
struct Column(u32);

const CLIENT_BITS: u32 = 24;
const _: () = assert!(MAX_CLIENTS == 1 << CLIENT_BITS);

impl Column {
    #[inline]
    fn new(client: ClientIndex, significand: u32) -> Column {
        Column(significand >> CLIENT_BITS << CLIENT_BITS | client.0)
    }

    #[inline]
    fn client(self) -> ClientIndex {
        ClientIndex(self.0 & (MAX_CLIENTS - 1))
    }

    /// The 8 highest bits of the significand.
    #[inline]
    fn height(self) -> u32 {
        self.0 >> CLIENT_BITS
    }
}

/// The whole weight, and whether it is that of plain tickets.
#[derive(Clone, Copy, Debug)]
struct Measure(u32);

/// Takes the place of the significand's highest bit, which is always set.
const PLAIN: u32 = 1 << 31;

impl Measure {
    #[inline]
    fn new(significand: u32, plain: bool) -> Measure {
        debug_assert!(significand & PLAIN != 0);
        if plain {
            Measure(significand)
        } else {
            Measure(significand & !PLAIN)
        }
    }

    #[inline]
    fn significand(self) -> u32 {
        self.0 | PLAIN
    }

    #[inline]
    fn is_plain(self) -> bool {
        self.0 & PLAIN != 0
    }
}

/// The clients of one class, in no order: those whose weights have the same
/// number of leading zeros.
///
/// Invariant: the two tables are equally long, entry by entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Class {
    columns: Vec<Column>,
    measures: Vec<Measure>,
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
        let measure = self.measures[place as usize];
        let weight = Weight::from_significand(measure.significand(), zeros);
        measure.is_plain().then_some(weight)
    }

    /// The client at `place`, if a dart at this height hits its weight there.
    /// The height is a fraction of 2^32 of the class's columns.
    #[inline]
    pub(super) fn hit(&self, place: usize, height: u32) -> Option<ClientIndex> {
        let column = self.columns[place];
        let high = height >> CLIENT_BITS;
        let hit = high < column.height()
            || high == column.height() && height < self.measures[place].significand();
        hit.then_some(column.client())
    }

    /// Starts to fetch what [`Class::hit`] will read at `place`.
    #[inline]
    pub(super) fn prefetch(&self, place: usize) {
        prefetch(&self.columns, place);
    }

    /// Adds a client and returns its place.
    #[inline]
    pub(super) fn push(&mut self, client: ClientIndex, significand: u32, plain: bool) -> u32 {
        let place = self.columns.len() as u32;
        self.columns.push(Column::new(client, significand));
        self.measures.push(Measure::new(significand, plain));
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
        self.columns[place as usize] = Column::new(client, significand);
        self.measures[place as usize] = Measure::new(significand, plain);
    }

    /// Removes the client at `place`. The last one takes its place and is
    /// returned, unless it was the last one itself.
    #[inline]
    pub(super) fn remove(&mut self, place: u32) -> Option<ClientIndex> {
        self.columns.swap_remove(place as usize);
        self.measures.swap_remove(place as usize);
        let moved = self.columns.get(place as usize);
        moved.map(|column| column.client())
    }
}
