//! The constant-time lottery.

use alloc::vec::Vec;
use core::array;
use core::ops::{Add, Sub};

use rand_core::Rng;

use super::column::{Class, Entry, class_of};
use super::{Compensation, Lottery, Seat, Seats, Selector, Standing};
use crate::policy::ClientIndex;
use crate::rng::{below, below_wide};

/// A lottery in constant time: clients are sorted into classes by the power of
/// two that their tickets reach, and rejection inside a class makes the choice
/// exact.
///
/// `pick` costs O(1): fewer than two throws expected, each a search of at most
/// 64 classes and one read in a table of four bytes a client. Every change
/// costs O(1), but for the doubling of tables. 28 bytes a client.
///
/// Every client of class c has a weight `w` with `2^c <= w < 2^(c + 1)`. Draw a
/// column of height `2^(c + 1)` for each of them, and the same for all other
/// classes; then throw a dart at the whole. It hits class c with a chance in
/// proportion to its number of clients times `2^(c + 1)`, each of its columns
/// with the same chance, and there some height. If that is below the client's
/// own weight, the client wins; else the dart is thrown again. So the chances
/// of winning are exactly in proportion to `w`, and as no column is less than
/// half full, at least half of all darts count.
pub type ClassLottery<R> = Lottery<Classes, R>;

/// Weights have 64 bits.
const CLASSES: usize = 64;

/// The search looks at so many classes at once.
const STEP: usize = 4;

/// The selector of [`ClassLottery`].
///
/// Three fields have a client's seat, so that the usual change, new tickets for
/// the last winner, reads nothing but what the throw has read already:
/// a client that has a weight is in a class; if it has no compensation that is
/// all (its tickets are its weight), otherwise the rest is in `seats`, as is
/// everything about a client without a weight.
#[derive(Clone, Debug)]
pub struct Classes {
    classes: [Class; CLASSES],
    /// The area of class c, its number of clients times 2^(c + 1), is at index
    /// `63 - c`: large weights first. The last entries are always zero.
    areas: [u128; CLASSES + STEP - 1],
    /// Sum of `areas`, at most 2^88.
    area: u128,
    /// Bit c is set if class c has clients.
    occupied: u64,
    /// By client index, for the clients that are in a class; those of others
    /// are `Spot::NONE`.
    spots: Vec<Spot>,
    /// Means nothing for clients in a class that have no compensation.
    seats: Seats,
    /// Where the last dart hit. The client may be gone from there since.
    winner: (ClientIndex, Spot),
}

/// A class and a place in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Spot(u32);

impl Spot {
    const NONE: Spot = Spot(u32::MAX);

    #[inline]
    fn new(class: usize, place: u32) -> Spot {
        Spot((class as u32) << 24 | place)
    }

    /// Below 64; whatever for `NONE`.
    #[inline]
    fn class(self) -> usize {
        (self.0 >> 24) as usize % CLASSES
    }

    #[inline]
    fn place(self) -> u32 {
        self.0 & 0xff_ffff
    }
}

impl<R: Rng> ClassLottery<R> {
    /// An empty lottery that draws from `rng`.
    pub fn new(rng: R) -> Self {
        let classes = Classes {
            classes: array::from_fn(|_| Class::default()),
            areas: [0; CLASSES + STEP - 1],
            area: 0,
            occupied: 0,
            spots: Vec::new(),
            seats: Seats::default(),
            winner: (ClientIndex(0), Spot::NONE),
        };
        Lottery::over(classes, rng)
    }
}

impl Classes {
    /// Where `client` is; `Spot::NONE` unless it is in a class.
    #[inline]
    fn spot(&self, client: ClientIndex) -> Spot {
        let (winner, spot) = self.winner;
        if winner == client && self.classes[spot.class()].holds(spot.place(), client) {
            return spot;
        }
        let spot = self.spots.get(client.0 as usize);
        spot.copied().unwrap_or(Spot::NONE)
    }

    #[inline]
    fn insert(&mut self, entry: Entry) {
        let class = class_of(entry.weight);
        let place = self.classes[class].push(entry);
        let index = entry.client.0 as usize;
        if index >= self.spots.len() {
            self.spots.resize(index + 1, Spot::NONE);
        }
        self.spots[index] = Spot::new(class, place);
        self.occupied |= 1 << class;
        self.areas[CLASSES - 1 - class] += 2 << class;
        self.area += 2 << class;
    }

    #[inline]
    fn remove(&mut self, spot: Spot) {
        let class = spot.class();
        if let Some(moved) = self.classes[class].remove(spot.place()) {
            self.spots[moved.0 as usize] = spot;
        }
        if self.classes[class].len() == 0 {
            self.occupied &= !(1 << class);
        }
        self.areas[CLASSES - 1 - class] -= 2 << class;
        self.area -= 2 << class;
    }

    /// The class that a dart hits, and where in that class.
    ///
    /// Large weights come first, where most darts go. Which of four classes it
    /// is takes no branch: a processor could not predict it.
    #[inline]
    fn class_at<T>(&self, mut dart: T, area: impl Fn(u128) -> T) -> (usize, T)
    where
        T: Copy + PartialOrd + Default + Add<Output = T> + Sub<Output = T>,
    {
        let mut first = self.occupied.leading_zeros() as usize % CLASSES;
        loop {
            let end_0 = area(self.areas[first]);
            let end_1 = end_0 + area(self.areas[first + 1]);
            let end_2 = end_1 + area(self.areas[first + 2]);
            let end_3 = end_2 + area(self.areas[first + 3]);
            if dart < end_3 {
                let mut passed = T::default();
                for end in [end_0, end_1, end_2] {
                    if dart >= end {
                        passed = end;
                        first += 1;
                    }
                }
                return (CLASSES - 1 - first, dart - passed);
            }
            dart = dart - end_3;
            first += STEP;
        }
    }
}

impl Selector for Classes {
    #[inline]
    fn seat(&self, client: ClientIndex) -> Seat {
        let spot = self.spot(client);
        if spot != Spot::NONE {
            let class = &self.classes[spot.class()];
            if let Some(tickets) = class.plain_tickets(spot.class(), spot.place()) {
                return Seat {
                    compensation: Compensation::NONE,
                    tickets,
                    standing: Standing::Waiting,
                };
            }
        }
        self.seats.get(client)
    }

    #[inline]
    fn reseat(&mut self, client: ClientIndex, from: Seat, to: Seat) {
        let weight = to.weight();
        let plain = to.compensation == Compensation::NONE;
        if weight.is_zero() || !plain {
            self.seats.set(client, to);
        }
        let entry = Entry {
            client,
            weight,
            plain,
        };
        if !from.weight().is_zero() {
            let spot = self.spot(client);
            if !weight.is_zero() && class_of(weight) == spot.class() {
                self.classes[spot.class()].replace(spot.place(), entry);
                return;
            }
            self.remove(spot);
            if weight.is_zero() {
                self.spots[client.0 as usize] = Spot::NONE;
                return;
            }
        }
        if !weight.is_zero() {
            self.insert(entry);
        }
    }

    #[inline]
    fn draw<R: Rng>(&mut self, rng: &mut R) -> Option<ClientIndex> {
        if self.area == 0 {
            return None;
        }
        loop {
            let (class, place, height) = match u64::try_from(self.area) {
                Ok(area) => {
                    let (class, dart) = self.class_at(below(rng, area), |area| area as u64);
                    (class, dart >> class >> 1, dart)
                }
                Err(_) => {
                    let (class, dart) = self.class_at(below_wide(rng, self.area), |area| area);
                    (class, (dart >> (class + 1)) as u64, dart as u64)
                }
            };
            // What is left of the dart: the lowest c + 1 bits are the height,
            // of which the highest 32 matter, the others the place.
            let height = (height << (63 - class) >> 32) as u32;
            if let Some(winner) = self.classes[class].hit(place as usize, height) {
                self.winner = (winner, Spot::new(class, place as u32));
                return Some(winner);
            }
        }
    }
}
