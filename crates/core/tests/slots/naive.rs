//! The rules of slot scheduling over plain lists; everything is counted anew each time.

use std::collections::BTreeMap;

use prorata_core::ids::ClientId;
use prorata_core::slots::bank::Amount;
use prorata_core::slots::claim::{Account, Owner, Schedulee, SlotRequest};
use prorata_core::slots::geometry::Cell;
use prorata_core::slots::level::Level;

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Held {
    pub cell: Cell,
    pub owner: Owner,
    pub payer: Account,
    pub schedulee: Schedulee,
    pub level: Level,
    pub expires: Option<u64>,
}

#[derive(Clone, Default)]
pub struct Naive {
    pub rows: u32,
    pub columns: u32,
    pub held: Vec<Held>,
    pub count: BTreeMap<(Account, Level), i64>,
    pub weight: BTreeMap<(Account, Level), i64>,
    /// Donor, recipient, level, tokens.
    pub gifts: Vec<(Account, Account, Level, i64)>,
    pub reserved: BTreeMap<u32, (u32, u32)>,
    /// The table as it was decided at the end of each tick.
    pub history: BTreeMap<u64, Vec<Held>>,
}

impl Naive {
    pub fn tokens(&self, account: Account, level: Level) -> i64 {
        self.count.get(&(account, level)).copied().unwrap_or(0)
    }

    pub fn spent(&self, account: Account, level: Level) -> i64 {
        let mine = |held: &&Held| (held.payer, held.level) == (account, level);
        self.held.iter().filter(mine).count() as i64
    }

    fn remove(&mut self, ends: impl Fn(&Held) -> bool) -> usize {
        let gone: Vec<Held> = self.held.iter().copied().filter(&ends).collect();
        self.held.retain(|held| !ends(held));
        for held in &gone {
            *self.count.entry((held.payer, held.level)).or_default() += 1;
        }
        gone.len()
    }

    pub fn expire(&mut self, now: u64) {
        self.remove(|held| held.expires.is_some_and(|expires| expires <= now));
    }

    fn payer(&self, owner: Owner, level: Level) -> Account {
        match owner.client.map(Account::Client) {
            Some(client) if self.tokens(client, level) > 0 => client,
            _ => Account::User(owner.user),
        }
    }

    fn at(&self, cell: Cell) -> Option<Held> {
        self.held.iter().copied().find(|held| held.cell == cell)
    }

    /// Whether each window of a row has its unclaimed slots.
    pub fn windows_hold(&self, row: u32) -> bool {
        let Some(&(numerator, width)) = self.reserved.get(&row) else {
            return true;
        };
        let claimed = self.claimed(row);
        (0..self.columns).all(|first| free(&claimed, first, width) >= numerator)
    }

    fn claimed(&self, row: u32) -> Vec<bool> {
        let mut claimed = vec![false; self.columns as usize];
        for held in self.held.iter().filter(|held| held.cell.row == row) {
            claimed[held.cell.column as usize] = true;
        }
        claimed
    }

    fn reservation_permits(&self, cell: Cell) -> bool {
        let Some(&(numerator, width)) = self.reserved.get(&cell.row) else {
            return true;
        };
        let mut claimed = self.claimed(cell.row);
        claimed[cell.column as usize] = true;
        (0..width).all(|back| {
            let first = (cell.column + self.columns - back) % self.columns;
            free(&claimed, first, width) >= numerator
        })
    }

    pub fn claim(&mut self, owner: Owner, request: &SlotRequest, now: u64) -> bool {
        let SlotRequest {
            cell,
            schedulee,
            level,
            expires,
        } = *request;
        if cell.row >= self.rows || cell.column >= self.columns {
            return false;
        }
        // A claim is in force from the second boundary on.
        let first =
            (now + 2..).find(|tick| tick % u64::from(self.columns) == u64::from(cell.column));
        if expires.is_some_and(|expires| expires <= first.unwrap()) {
            return false;
        }
        let old = self.at(cell);
        let own = old.filter(|old| old.owner == owner);
        let same = own.filter(|old| old.level == level);
        let payer = same.map_or(self.payer(owner, level), |old| old.payer);
        if same.is_none() && self.tokens(payer, level) == 0 {
            return false;
        }
        let permitted = match old {
            None => self.reservation_permits(cell),
            Some(_) if own.is_some() => true,
            Some(old) if old.level != level => level > old.level,
            Some(old) => self.shares(payer, &old),
        };
        let thread = matches!(schedulee, Schedulee::Thread { .. });
        let elsewhere = self.held.iter().any(|held| {
            held.schedulee == schedulee && held.cell.column == cell.column && held.cell != cell
        });
        if !permitted || thread && elsewhere {
            return false;
        }
        self.remove(|held| held.cell == cell);
        *self.count.entry((payer, level)).or_default() -= 1;
        self.held.push(Held {
            cell,
            owner,
            payer,
            schedulee,
            level,
            expires,
        });
        true
    }

    fn shares(&self, taker: Account, old: &Held) -> bool {
        let level = old.level;
        let weight = |account| self.weight.get(&(account, level)).copied().unwrap_or(0);
        taker != old.payer
            && level < Level::Hard
            && weight(taker) > 0
            && (self.spent(old.payer, level) - 1) * weight(taker)
                >= (self.spent(taker, level) + 1) * weight(old.payer)
    }

    pub fn free_cell(&mut self, owner: Owner, privileged: bool, cell: Cell) -> bool {
        let may = |held: &Held| {
            privileged
                || held.owner == owner
                || owner.client.is_none() && held.owner.user == owner.user
        };
        self.remove(|held| held.cell == cell && may(held)) == 1
    }

    pub fn set(
        &mut self,
        account: Account,
        level: Level,
        amount: Amount,
        weight: Option<u32>,
    ) -> bool {
        let count = match amount {
            Amount::Absolute(count) => i64::from(count),
            Amount::Delta(delta) => self.tokens(account, level) + delta,
        };
        if count < 0 {
            return false;
        }
        self.count.insert((account, level), count);
        if let Some(weight) = weight {
            self.weight.insert((account, level), i64::from(weight));
        }
        true
    }

    pub fn donate(&mut self, owner: Owner, to: Account, level: Level, count: u32) -> Option<i64> {
        let from = self.payer(owner, level);
        if from == to {
            return None;
        }
        let moved = self.tokens(from, level).min(i64::from(count));
        if moved > 0 {
            *self.count.entry((from, level)).or_default() -= moved;
            *self.count.entry((to, level)).or_default() += moved;
            let weight = self.weight.entry((to, level)).or_default();
            *weight = (*weight).max(1);
            let mut rest = moved;
            for gift in &mut self.gifts {
                if (gift.0, gift.1, gift.2) == (to, from, level) {
                    let back = rest.min(gift.3);
                    gift.3 -= back;
                    rest -= back;
                }
            }
            self.gifts.push((from, to, level, rest));
            self.gifts.retain(|gift| gift.3 > 0);
        }
        Some(moved)
    }

    pub fn end_client(&mut self, client: ClientId) {
        self.remove(|held| {
            held.owner.client == Some(client) || held.schedulee == Schedulee::Client(client)
        });
        let account = Account::Client(client);
        // Donors in their order: the core keeps one sum a donor.
        let mut gifts: Vec<_> = self
            .gifts
            .iter()
            .filter(|gift| gift.1 == account)
            .copied()
            .collect();
        gifts.sort();
        for (donor, _, level, count) in gifts {
            let back = count.min(self.tokens(account, level));
            *self.count.entry((account, level)).or_default() -= back;
            *self.count.entry((donor, level)).or_default() += back;
        }
        self.gifts
            .retain(|gift| gift.0 != account && gift.1 != account);
        self.count.retain(|key, _| key.0 != account);
        self.weight.retain(|key, _| key.0 != account);
    }

    pub fn end_schedulee(&mut self, schedulee: Schedulee) {
        self.remove(|held| held.schedulee == schedulee);
    }

    pub fn revoke(&mut self, cell: Cell) {
        assert_eq!(self.remove(|held| held.cell == cell), 1);
    }
}

/// The unclaimed slots of a window.
fn free(claimed: &[bool], first: u32, width: u32) -> u32 {
    let columns = (first..first + width).map(|column| column as usize % claimed.len());
    columns.filter(|&column| !claimed[column]).count() as u32
}
