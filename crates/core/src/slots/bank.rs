//! The banker: one token a slot, charged at the claim and given back at its end (2005, 2.4.1).

use alloc::collections::BTreeMap;

use super::account::Tokens;
use super::claim::Account;
use super::error::SlotError;
use super::image::Gift;
use super::level::{LEVELS, Level};

/// The most accounts.
pub const ACCOUNTS: usize = 65_536;

/// The most donations in force, by donor, recipient and level.
pub const DONATIONS: usize = 65_536;

/// A number of tokens to set (2005, Figure 2.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Amount {
    /// So many are free to spend afterwards.
    Absolute(u32),
    /// So many more, or fewer.
    Delta(i64),
}

/// A donation in force: it goes back when the recipient ends.
type Donation = (Account, Account, Level);

/// All accounts.
#[derive(Clone, Default, Debug)]
pub struct Bank {
    accounts: BTreeMap<Account, [Tokens; LEVELS]>,
    /// By recipient, donor and level.
    donations: BTreeMap<Donation, u64>,
    /// The same by donor, recipient and level, to be found when the donor ends.
    donors: BTreeMap<Donation, ()>,
    /// Tokens set less tokens destroyed.
    issued: [u64; LEVELS],
}

impl Bank {
    /// What an account has of a level.
    pub fn tokens(&self, account: Account, level: Level) -> Tokens {
        let tokens = self.accounts.get(&account);
        tokens.map_or_else(Tokens::default, |tokens| tokens[level.index()])
    }

    /// All accounts.
    pub fn accounts(&self) -> impl Iterator<Item = (&Account, &[Tokens; LEVELS])> {
        self.accounts.iter()
    }

    /// Tokens of a level that were set and not destroyed.
    pub fn issued(&self, level: Level) -> u64 {
        self.issued[level.index()]
    }

    /// The donations in force, each with its tokens.
    pub(crate) fn gifts(&self) -> impl Iterator<Item = (Gift, u64)> {
        let gift = |(&(recipient, donor, level), &tokens): (&Donation, &u64)| {
            let gift = Gift {
                recipient,
                donor,
                level,
            };
            (gift, tokens)
        };
        self.donations.iter().map(gift)
    }

    /// Fills an empty bank.
    pub(crate) fn restore(
        &mut self,
        accounts: BTreeMap<Account, [Tokens; LEVELS]>,
        gifts: &BTreeMap<Gift, u64>,
    ) -> Result<(), SlotError> {
        if accounts.len() > ACCOUNTS {
            return Err(SlotError::ManyAccounts(accounts.len()));
        }
        if gifts.len() > DONATIONS {
            return Err(SlotError::ManyDonations(gifts.len()));
        }
        for tokens in accounts.values() {
            for (issued, tokens) in self.issued.iter_mut().zip(tokens) {
                *issued += tokens.count;
            }
        }
        self.accounts = accounts;
        for (gift, &tokens) in gifts {
            let (recipient, donor, level) = (gift.recipient, gift.donor, gift.level);
            self.donations.insert((recipient, donor, level), tokens);
            self.donors.insert((donor, recipient, level), ());
        }
        Ok(())
    }

    fn check_room(&self, account: Account) -> Result<(), SlotError> {
        if self.accounts.len() >= ACCOUNTS && !self.accounts.contains_key(&account) {
            return Err(SlotError::ManyAccounts(self.accounts.len()));
        }
        Ok(())
    }

    fn entry(&mut self, account: Account, level: Level) -> &mut Tokens {
        &mut self.accounts.entry(account).or_default()[level.index()]
    }

    pub(crate) fn set(
        &mut self,
        account: Account,
        level: Level,
        amount: Amount,
        weight: Option<u32>,
    ) -> Result<(), SlotError> {
        self.check_room(account)?;
        let old = self.tokens(account, level);
        let count = match amount {
            Amount::Absolute(count) => i128::from(count),
            Amount::Delta(delta) => i128::from(old.count) + i128::from(delta),
        };
        let count = u32::try_from(count)
            .map(u64::from)
            .map_err(|_| SlotError::TokenCount { account, count })?;
        let issued = &mut self.issued[level.index()];
        *issued = *issued - old.count + count;
        let tokens = self.entry(account, level);
        tokens.count = count;
        tokens.weight = weight.unwrap_or(tokens.weight);
        self.tidy(account);
        Ok(())
    }

    /// Drops an account that has nothing, not even a donation that might go back.
    fn tidy(&mut self, account: Account) {
        let empty = self.accounts.get(&account) == Some(&Default::default());
        let given = first(&self.donations, account).is_some();
        if empty && !given && first(&self.donors, account).is_none() {
            self.accounts.remove(&account);
        }
    }

    /// Moves tokens; all there are if they are too few. What the recipient had given the donor goes
    /// back first. Returns how many moved.
    pub(crate) fn donate(
        &mut self,
        donor: Account,
        recipient: Account,
        level: Level,
        count: u32,
    ) -> Result<u64, SlotError> {
        if donor == recipient {
            return Err(SlotError::OwnDonation(donor));
        }
        self.check_room(recipient)?;
        let moved = u64::from(count).min(self.tokens(donor, level).count);
        if moved == 0 {
            return Ok(0);
        }
        let opposite = (donor, recipient, level);
        let owed = self.donations.get(&opposite).copied().unwrap_or(0);
        let (back, gift) = (owed.min(moved), (recipient, donor, level));
        let full = self.donations.len() >= DONATIONS && !self.donations.contains_key(&gift);
        // An opposite record that is used up makes room.
        if full && moved > back && (back == 0 || back < owed) {
            return Err(SlotError::ManyDonations(self.donations.len()));
        }
        self.entry(donor, level).count -= moved;
        let tokens = self.entry(recipient, level);
        tokens.count += moved;
        if tokens.weight == 0 {
            tokens.weight = 1;
        }
        if back > 0 && back == owed {
            self.donations.remove(&opposite);
            self.donors.remove(&gift);
        } else if back > 0 {
            self.donations.insert(opposite, owed - back);
        }
        if moved > back {
            *self.donations.entry(gift).or_default() += moved - back;
            self.donors.insert(opposite, ());
        }
        self.tidy(donor);
        Ok(moved)
    }

    /// Takes one token for a claim.
    pub(crate) fn spend(&mut self, account: Account, level: Level) {
        let tokens = self.entry(account, level);
        tokens.count -= 1;
        tokens.spent += 1;
    }

    /// Gives the token of a claim back.
    pub(crate) fn refund(&mut self, account: Account, level: Level) {
        let tokens = self.entry(account, level);
        tokens.count += 1;
        tokens.spent -= 1;
    }

    /// Closes an account without claims. What it was given goes back to donors that live, as far as
    /// it still has it; the rest is destroyed.
    pub(crate) fn close(&mut self, account: Account) {
        let Some(mut tokens) = self.accounts.remove(&account) else {
            return;
        };
        while let Some(((_, donor, level), count)) = first(&self.donations, account) {
            self.donations.remove(&(account, donor, level));
            self.donors.remove(&(donor, account, level));
            let rest = &mut tokens[level.index()].count;
            let back = count.min(*rest);
            *rest -= back;
            if back > 0 {
                self.entry(donor, level).count += back;
            }
            self.tidy(donor);
        }
        while let Some(((_, recipient, level), ())) = first(&self.donors, account) {
            self.donors.remove(&(account, recipient, level));
            self.donations.remove(&(recipient, account, level));
            self.tidy(recipient);
        }
        for (issued, tokens) in self.issued.iter_mut().zip(tokens) {
            *issued -= tokens.count;
        }
    }
}

/// The first donation under an account's name.
fn first<V: Copy>(donations: &BTreeMap<Donation, V>, account: Account) -> Option<(Donation, V)> {
    let low = Account::User(0);
    let (key, value) = donations
        .range((account, low, Level::Background)..)
        .next()?;
    (key.0 == account).then_some((*key, *value))
}
