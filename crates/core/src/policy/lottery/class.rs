//! The constant-time lottery.

use alloc::vec::Vec;
use core::array;

use rand_core::Rng;

use super::{Lottery, Selector, Weight};
use crate::policy::ClientIndex;
use crate::rng::below_wide;

/// A lottery in constant time: clients are sorted into classes by the power of
/// two their tickets reach, and rejection inside a class makes the choice
/// exact.
///
/// `pick` costs O(1): fewer than two draws expected, each a search of at most
/// 64 classes and one read in a table of the size of the competition. Every
/// change costs O(1). 28 bytes a client.
///
/// Every client of class c has a weight `w` with `2^c <= w < 2^(c + 1)`. Draw a
/// column of that height for each of its n clients, and the same for all other
/// classes; then throw a dart at the whole. It hits class c with a chance in
/// proportion to `n * 2^(c + 1)`, a column of it with equal chances, and is
/// above or below the client's own weight `w` in it. Above, it is thrown again.
/// Below, the client wins: the chances of winning are exactly in proportion to
/// `w`. As no column is less than half full, more than half of all darts count.
pub type ClassLottery<R> = Lottery<Classes, R>;

/// Weights have 64 bits.
const CLASSES: usize = 64;

/// One client: eight bytes, so that a throw reads one cache line.
#[derive(Clone, Copy, Debug)]
struct Column {
    /// The 32 significant bits of the weight, the highest of them set.
    significand: u32,
    client: ClientIndex,
}

/// The selector of [`ClassLottery`].
#[derive(Clone, Debug)]
pub struct Classes {
    /// Class c holds the clients with weights from 2^c to 2^(c + 1) - 1.
    columns: [Vec<Column>; CLASSES],
    /// Bit c is set if class c has clients.
    occupied: u64,
    /// Sum over the classes of their number of clients times 2^(c + 1); at
    /// most 2^88.
    area: u128,
    /// By client index, the place of a client in its class. Only the entries
    /// of clients that are in a class mean anything.
    places: Vec<u32>,
}

impl<R: Rng> ClassLottery<R> {
    /// An empty lottery that draws from `rng`.
    pub fn new(rng: R) -> Self {
        let classes = Classes {
            columns: array::from_fn(|_| Vec::new()),
            occupied: 0,
            area: 0,
            places: Vec::new(),
        };
        Lottery::over(classes, rng)
    }
}

/// The class of a weight, which must not be zero.
#[inline]
fn class_of(weight: Weight) -> usize {
    weight.units().ilog2() as usize
}

/// The 32 significant bits of a weight, which must not be zero.
#[inline]
fn significand(weight: Weight) -> u32 {
    let units = weight.units();
    (units << units.leading_zeros() >> 32) as u32
}

impl Classes {
    fn insert(&mut self, client: ClientIndex, weight: Weight) {
        let class = class_of(weight);
        let index = client.0 as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, 0);
        }
        self.places[index] = self.columns[class].len() as u32;
        self.columns[class].push(Column {
            significand: significand(weight),
            client,
        });
        self.occupied |= 1 << class;
        self.area += 2 << class;
    }

    fn remove(&mut self, client: ClientIndex, weight: Weight) {
        let class = class_of(weight);
        let place = self.places[client.0 as usize];
        let columns = &mut self.columns[class];
        columns.swap_remove(place as usize);
        if let Some(moved) = columns.get(place as usize) {
            self.places[moved.client.0 as usize] = place;
        }
        if columns.is_empty() {
            self.occupied &= !(1 << class);
        }
        self.area -= 2 << class;
    }
}

impl Selector for Classes {
    #[inline]
    fn reweigh(&mut self, client: ClientIndex, from: Weight, to: Weight) {
        if !from.is_zero() && !to.is_zero() && class_of(from) == class_of(to) {
            let place = self.places[client.0 as usize] as usize;
            self.columns[class_of(to)][place].significand = significand(to);
            return;
        }
        if !from.is_zero() {
            self.remove(client, from);
        }
        if !to.is_zero() {
            self.insert(client, to);
        }
    }

    #[inline]
    fn draw<R: Rng>(&mut self, rng: &mut R) -> Option<ClientIndex> {
        if self.area == 0 {
            return None;
        }
        loop {
            let mut dart = below_wide(rng, self.area);
            let mut classes = self.occupied;
            loop {
                let class = classes.ilog2() as usize;
                let area = (self.columns[class].len() as u128) << (class + 1);
                if dart >= area {
                    dart -= area;
                    classes ^= 1 << class;
                    continue;
                }
                let column = self.columns[class][(dart >> (class + 1)) as usize];
                let height = (dart as u64) << (63 - class);
                if height < u64::from(column.significand) << 32 {
                    return Some(column.client);
                }
                break;
            }
        }
    }
}
