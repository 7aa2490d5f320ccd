//! What of a timetable outlives its daemon, as it was decided: claims that last, tokens, donations
//! and reservations (2005, 2.4.1 and 2.5.1).
//!
//! Decisions depend on the time, so repeating the calls would decide anew. An image repeats nothing:
//! it takes [`Deed`]s, each of which says how one thing is from now on.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::account::Tokens;
use super::claim::{Account, Claim, Schedulee};
use super::error::SlotError;
use super::geometry::{Cell, Geometry, Tick};
use super::level::{LEVELS, Level};
use super::reservation::{NONE, Reservation};
use super::timetable::{Change, Timetable};
use crate::ids::ClientId;

/// Tokens of an account and a level, spent or not, and their weight.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Holding {
    /// Tokens, those in claims included.
    pub tokens: u64,
    /// The weight of the account's claims.
    pub weight: u32,
}

/// A donation in force.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Gift {
    /// The account that has the tokens.
    pub recipient: Account,
    /// The account that gets them back.
    pub donor: Account,
    /// Their level.
    pub level: Level,
}

/// How one thing is from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Deed {
    /// A slot's claim, or none.
    Claim(Cell, Option<Claim>),
    /// What an account has of a level.
    Tokens(Account, Level, Holding),
    /// The tokens of a donation; zero ends it.
    Gift(Gift, u64),
    /// The reservation of a row.
    Reservation(u32, Reservation),
}

/// An image of a timetable.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Form", into = "Form"))]
pub struct Image {
    geometry: Geometry,
    claims: BTreeMap<Cell, Claim>,
    holdings: BTreeMap<(Account, Level), Holding>,
    gifts: BTreeMap<Gift, u64>,
    reservations: BTreeMap<u32, Reservation>,
}

/// An image in writing: its shape, and the deeds that make it of an empty one.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct Form {
    rows: u32,
    columns: u32,
    slot_ns: u64,
    epoch_ns: u64,
    deeds: Vec<Deed>,
}

#[cfg(feature = "serde")]
impl From<Image> for Form {
    fn from(image: Image) -> Self {
        let geometry = image.geometry;
        Self {
            rows: geometry.rows(),
            columns: geometry.columns(),
            slot_ns: geometry.slot_ns(),
            epoch_ns: geometry.begin_ns(0),
            deeds: image.deeds(),
        }
    }
}

#[cfg(feature = "serde")]
impl TryFrom<Form> for Image {
    type Error = SlotError;

    fn try_from(form: Form) -> Result<Self, SlotError> {
        let geometry = Geometry::new(form.rows, form.columns, form.slot_ns, form.epoch_ns)?;
        let mut image = Image::empty(geometry);
        form.deeds.iter().for_each(|deed| image.apply(deed));
        Ok(image)
    }
}

impl Image {
    /// The image of an empty table.
    pub fn empty(geometry: Geometry) -> Self {
        Self {
            geometry,
            claims: BTreeMap::new(),
            holdings: BTreeMap::new(),
            gifts: BTreeMap::new(),
            reservations: BTreeMap::new(),
        }
    }

    /// The table's shape.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// All clients that have a part in it: owners, schedulees, accounts, donors and recipients.
    pub fn clients(&self) -> BTreeSet<ClientId> {
        let runs = |claim: &Claim| match claim.schedulee {
            Schedulee::Client(client) => Some(client),
            Schedulee::Process { .. } | Schedulee::Thread { .. } => None,
        };
        let of = |account: Account| match account {
            Account::Client(client) => Some(client),
            Account::User(_) => None,
        };
        let claims = self.claims.values();
        let claims = claims.flat_map(|claim| [claim.owner.client, runs(claim), of(claim.payer)]);
        let holdings = self.holdings.keys().map(|&(account, _)| of(account));
        let gifts = self.gifts.keys();
        let gifts = gifts.flat_map(|gift| [of(gift.donor), of(gift.recipient)]);
        claims.chain(holdings).chain(gifts).flatten().collect()
    }

    /// Whether an account gave tokens away that have not come back.
    pub fn gave(&self, account: Account) -> bool {
        self.gifts.keys().any(|gift| gift.donor == account)
    }

    /// Takes one deed.
    pub fn apply(&mut self, deed: &Deed) {
        match *deed {
            Deed::Claim(cell, Some(claim)) => drop(self.claims.insert(cell, claim)),
            Deed::Claim(cell, None) => drop(self.claims.remove(&cell)),
            Deed::Tokens(account, level, holding) => {
                put(&mut self.holdings, (account, level), holding);
            }
            Deed::Gift(gift, tokens) => put(&mut self.gifts, gift, tokens),
            Deed::Reservation(row, NONE) => drop(self.reservations.remove(&row)),
            Deed::Reservation(row, reservation) => {
                self.reservations.insert(row, reservation);
            }
        }
    }

    /// The deeds that make this image of an empty one.
    #[cfg(feature = "serde")]
    fn deeds(&self) -> Vec<Deed> {
        let reservations = self.reservations.iter();
        let holdings = self.holdings.iter();
        let gifts = self.gifts.iter();
        let claims = self.claims.iter();
        reservations
            .map(|(&row, &reservation)| Deed::Reservation(row, reservation))
            .chain(
                holdings.map(|(&(account, level), &holding)| Deed::Tokens(account, level, holding)),
            )
            .chain(gifts.map(|(&gift, &tokens)| Deed::Gift(gift, tokens)))
            .chain(claims.map(|(&cell, &claim)| Deed::Claim(cell, Some(claim))))
            .collect()
    }

    /// The deeds that bring this image up to a table, where the slots that may differ are `cells`.
    /// Claims that end before `lasts_until` count as none.
    ///
    /// Cost: the accounts, the donations, the rows and those cells.
    pub fn behind(
        &self,
        table: &Timetable,
        cells: &BTreeSet<usize>,
        lasts_until: Tick,
    ) -> Vec<Deed> {
        let mut deeds = Vec::new();
        for row in 0..self.geometry.rows() {
            let new = table.reservation(row).unwrap_or(NONE);
            if self.reservations.get(&row).copied().unwrap_or(NONE) != new {
                deeds.push(Deed::Reservation(row, new));
            }
        }
        let holdings = holdings_of(table);
        let changed = changed(&self.holdings, &holdings).into_iter();
        deeds.extend(changed.map(|((account, level), new)| Deed::Tokens(account, level, new)));
        let gifts: BTreeMap<Gift, u64> = table.bank.gifts().collect();
        let changed = self::changed(&self.gifts, &gifts).into_iter();
        deeds.extend(changed.map(|(gift, tokens)| Deed::Gift(gift, tokens)));
        for &index in cells {
            let cell = self.geometry.cell(index);
            let lasts = |claim: &&Claim| claim.expires.is_none_or(|expires| expires >= lasts_until);
            let new = table.table().get(cell).filter(lasts).copied();
            if self.claims.get(&cell).copied() != new {
                deeds.push(Deed::Claim(cell, new));
            }
        }
        deeds
    }
}

fn put<K: Ord, V: Default + PartialEq>(map: &mut BTreeMap<K, V>, key: K, value: V) {
    match value == V::default() {
        true => drop(map.remove(&key)),
        false => drop(map.insert(key, value)),
    }
}

/// The keys whose values differ, with the new ones; a value that is gone is the default.
fn changed<K: Ord + Copy, V: Default + PartialEq + Copy>(
    old: &BTreeMap<K, V>,
    new: &BTreeMap<K, V>,
) -> Vec<(K, V)> {
    let gone = old.keys().filter(|key| !new.contains_key(key));
    let gone = gone.map(|&key| (key, V::default()));
    let differ = new
        .iter()
        .filter(|(key, value)| old.get(key) != Some(value));
    gone.chain(differ.map(|(&key, &value)| (key, value)))
        .collect()
}

fn holdings_of(table: &Timetable) -> BTreeMap<(Account, Level), Holding> {
    let mut holdings = BTreeMap::new();
    for (&account, tokens) in table.bank().accounts() {
        for level in Level::ALL {
            let of_level = tokens[level.index()];
            let holding = Holding {
                tokens: of_level.count + of_level.spent,
                weight: of_level.weight,
            };
            put(&mut holdings, (account, level), holding);
        }
    }
    holdings
}

impl Timetable {
    /// The table of an image at a tick: claims that have expired are gone, and those that the image's
    /// tokens do not pay for, too.
    pub fn restore(image: &Image, now: Tick) -> Result<Self, SlotError> {
        let mut table = Self::open(image.geometry);
        for (&row, &reservation) in &image.reservations {
            table.geometry().index(Cell { row, column: 0 })?;
            table.reservations[row as usize] = reservation;
        }
        let mut accounts: BTreeMap<Account, [Tokens; LEVELS]> = BTreeMap::new();
        for (&(account, level), holding) in &image.holdings {
            accounts.entry(account).or_default()[level.index()] = Tokens {
                count: holding.tokens,
                spent: 0,
                weight: holding.weight,
            };
        }
        table.bank.restore(accounts, &image.gifts)?;
        let mut changes: Vec<Change> = Vec::new();
        for (&cell, &claim) in &image.claims {
            let index = table.geometry().index(cell)?;
            table.claims_made = table.claims_made.max(claim.number);
            // One that has expired must not take the token of one that lasts.
            let is_over = claim.expires.is_some_and(|expires| expires <= now);
            let is_paid = table.bank.tokens(claim.payer, claim.level).count > 0;
            if is_paid && !is_over {
                changes.push(table.replace(index, Some(claim), None));
            } else {
                table.note_changed(index);
            }
        }
        table.pass(now);
        table.commit(changes);
        Ok(table)
    }
}
