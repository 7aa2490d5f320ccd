//! The constant-time lottery.

use alloc::vec::Vec;
use core::array;
use core::mem;
use core::ops::{Add, Sub};

use rand_core::Rng;

use super::column::Class;
use super::{Compensation, Lottery, Presence, Seat, Seats, Selector, Weight};
use crate::policy::ClientIndex;
use crate::rng::{below_of, below_wide};

/// A lottery in constant time: clients are sorted into classes by the power of
/// two that their tickets reach, and rejection inside a class makes the choice
/// exact.
///
/// `pick` costs O(1): at most two throws expected, each a search of at most 64
/// classes and one read in a table of eight bytes a client. Every change costs
/// O(1), but for the doubling of tables. 28 bytes a client.
///
/// All weights of a class lie between a power of two and the next. Draw a
/// column up to that next power for each of its clients, and the same for all
/// other classes; then throw a dart at the whole. It hits a class with a chance
/// in proportion to the area of its columns, each of them with the same chance,
/// and there some height. If that is below the client's own weight, the client
/// wins; else the dart is thrown again. So the chances of winning are exactly
/// in proportion to weights, and as no column is less than half full, at least
/// half of all darts count.
pub type ClassLottery<R> = Lottery<Classes, R>;

/// One for each number of leading zeros that a weight can have.
const CLASSES: usize = u64::BITS as usize;

/// Darts thrown between fetching what a dart will hit and its throw.
const AHEAD: usize = 8;

/// The search looks at so many classes at once.
const STEP: usize = 4;

/// The selector of [`ClassLottery`].
///
/// A client that has a weight is in a class. If that weight is its tickets
/// without compensation, the class has all that is known of it; otherwise the
/// rest is in `seats`, as is everything about a client without a weight. So the
/// usual change, new tickets for the last winner, reads nothing else than the
/// throw did.
#[derive(Clone, Debug)]
pub struct Classes {
    /// Large weights first: class z has those with z leading zeros, and columns
    /// of height 2^(64 - z). Those past the 64th stay empty.
    classes: [Class; CLASSES + STEP - 1],
    /// By class, the number of its clients times the height of its columns.
    /// Modulo 2^64: of use only while `area` is below that.
    areas: [Area; CLASSES + STEP - 1],
    /// Sum over the classes, at most 2^88.
    area: u128,
    /// Bit 63 - z is set if class z has clients.
    occupied: u64,
    /// By client index; `Spot::NONE` for those that are in no class.
    spots: Vec<Spot>,
    /// Means nothing for clients in a class that have no compensation.
    seats: Seats,
    /// Where the last dart hit. The client may be gone from there since.
    winner: (ClientIndex, Spot),
    /// The random words of the darts to come, drawn so many throws early that
    /// what they are going to hit can be fetched meanwhile. A ring; the next
    /// one is at `turn`.
    ahead: [u64; AHEAD],
    turn: usize,
}

/// Sixteen bytes apart, lest the compiler read two at once: a processor cannot
/// forward two small stores to one large load and would wait for both.
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
struct Area(u64);

/// A class and a place in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Spot(u32);

impl Spot {
    const NONE: Spot = Spot(u32::MAX);

    #[inline]
    fn new(class: usize, place: u32) -> Spot {
        Spot((class as u32) << 24 | place)
    }

    /// Below 64; means nothing for `NONE`.
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
    pub fn new(mut rng: R) -> Self {
        let classes = Classes {
            classes: array::from_fn(|_| Class::default()),
            areas: [Area(0); CLASSES + STEP - 1],
            area: 0,
            occupied: 0,
            spots: Vec::new(),
            seats: Seats::default(),
            winner: (ClientIndex(0), Spot::NONE),
            ahead: array::from_fn(|_| rng.next_u64()),
            turn: 0,
        };
        Lottery::over(classes, rng)
    }
}

/// The height of a class's columns.
#[inline]
fn height(class: usize) -> u128 {
    1 << (CLASSES - class)
}

/// Where a dart hits a class: the place of the column, and how high, as a
/// fraction of 2^32 of its height.
#[inline]
fn column_at(class: usize, dart: u64) -> (usize, u32) {
    // The columns are less than 2^64 high, else `dart` would not be a word.
    let place = dart.wrapping_shr((CLASSES - class) as u32);
    (place as usize, (dart << class >> 32) as u32)
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
    fn insert(&mut self, client: ClientIndex, weight: Weight, plain: bool) {
        let class = weight.leading_zeros() as usize;
        let place = self.classes[class].push(client, weight.significand(), plain);
        let index = client.0 as usize;
        if index >= self.spots.len() {
            self.spots.resize(index + 1, Spot::NONE);
        }
        self.spots[index] = Spot::new(class, place);
        self.occupied |= 1 << (CLASSES - 1 - class);
        self.areas[class].0 = self.areas[class].0.wrapping_add(height(class) as u64);
        self.area += height(class);
    }

    #[inline]
    fn remove(&mut self, spot: Spot) {
        let class = spot.class();
        if let Some(moved) = self.classes[class].remove(spot.place()) {
            self.spots[moved.0 as usize] = spot;
        }
        if self.classes[class].len() == 0 {
            self.occupied &= !(1 << (CLASSES - 1 - class));
        }
        self.areas[class].0 = self.areas[class].0.wrapping_sub(height(class) as u64);
        self.area -= height(class);
    }

    /// The class that a dart hits, and where in that class.
    ///
    /// Large weights come first, where most darts go. Which of four classes it
    /// is takes no branch: a processor could not predict it.
    #[inline]
    fn class_at<T>(&self, mut dart: T, area: impl Fn(usize) -> T) -> (usize, T)
    where
        T: Copy + PartialOrd + Default + Add<Output = T> + Sub<Output = T>,
    {
        let mut first = self.occupied.leading_zeros() as usize % CLASSES;
        loop {
            let end_0 = area(first);
            let end_1 = end_0 + area(first + 1);
            let end_2 = end_1 + area(first + 2);
            let end_3 = end_2 + area(first + 3);
            if dart < end_3 {
                let mut class = first;
                let mut passed = T::default();
                for end in [end_0, end_1, end_2] {
                    if dart >= end {
                        passed = end;
                        class += 1;
                    }
                }
                return (class, dart - passed);
            }
            dart = dart - end_3;
            first += STEP;
        }
    }

    /// Throws a dart where the area fits 64 bits, and draws the next one.
    #[inline]
    fn throw<R: Rng>(&mut self, rng: &mut R, area: u64) -> Option<(ClientIndex, Spot)> {
        let mut fresh = 0;
        let dart = below_of(
            || {
                fresh = rng.next_u64();
                let word = mem::replace(&mut self.ahead[self.turn], fresh);
                self.turn = (self.turn + 1) % AHEAD;
                word
            },
            area,
        );
        // But for the rare draw that is thrown away, and for changes until
        // then, this is where the fresh dart will be.
        let there = ((u128::from(fresh) * u128::from(area)) >> 64) as u64;
        let (class, there) = self.class_at(there, |class| self.areas[class].0);
        self.classes[class].prefetch(column_at(class, there).0);
        let (class, dart) = self.class_at(dart, |class| self.areas[class].0);
        let (place, height) = column_at(class, dart);
        let winner = self.classes[class].hit(place, height)?;
        Some((winner, Spot::new(class, place as u32)))
    }

    /// Throws a dart where the area does not fit 64 bits.
    #[cold]
    fn throw_wide<R: Rng>(&self, rng: &mut R) -> Option<(ClientIndex, Spot)> {
        let (class, dart) = self.class_at(below_wide(rng, self.area), |class| {
            self.classes[class].len() as u128 * height(class)
        });
        let place = (dart / height(class)) as usize;
        let (_, height) = column_at(class, dart as u64);
        let winner = self.classes[class].hit(place, height)?;
        Some((winner, Spot::new(class, place as u32)))
    }
}

impl Selector for Classes {
    #[inline]
    fn seat(&self, client: ClientIndex) -> Seat {
        let spot = self.spot(client);
        if spot != Spot::NONE {
            let class = &self.classes[spot.class()];
            if let Some(weight) = class.plain_weight(spot.class() as u32, spot.place()) {
                return Seat {
                    compensation: Compensation::NONE,
                    boosted: false,
                    tickets: weight.tickets() as u32,
                    presence: Presence::Waiting,
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
        if !from.weight().is_zero() {
            let spot = self.spot(client);
            if weight.leading_zeros() as usize == spot.class() {
                let class = &mut self.classes[spot.class()];
                class.replace(spot.place(), client, weight.significand(), plain);
                return;
            }
            self.remove(spot);
            if weight.is_zero() {
                self.spots[client.0 as usize] = Spot::NONE;
            }
        }
        if !weight.is_zero() {
            self.insert(client, weight, plain);
        }
    }

    #[inline]
    fn draw<R: Rng>(&mut self, rng: &mut R) -> Option<ClientIndex> {
        if self.area == 0 {
            return None;
        }
        loop {
            let hit = match u64::try_from(self.area) {
                Ok(area) => self.throw(rng, area),
                Err(_) => self.throw_wide(rng),
            };
            if let Some((winner, spot)) = hit {
                self.winner = (winner, spot);
                return Some(winner);
            }
        }
    }
}
