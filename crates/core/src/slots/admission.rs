//! Tokens without an administrator's call: a policy of classes (2005, 2.4.1).

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::claim::{Account, Owner};
use super::level::Level;

/// The most classes of a policy.
pub const CLASSES: usize = 1_024;

/// Which programs belong to a class.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Members {
    /// All programs of a user; the user gets the tokens.
    User(u32),
    /// All users of a group, each of whom gets the tokens.
    Group(u32),
    /// Clients of a name, each of which gets the tokens.
    Client(String),
}

/// What the members of a class get.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Class {
    /// Its members.
    pub members: Members,
    /// The level of the tokens.
    pub level: Level,
    /// How many each member gets.
    pub count: u32,
    /// The weight of its claims.
    pub weight: u32,
    /// How many all members of the class get together at most.
    pub most: u64,
}

/// A policy.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Policy {
    /// Its classes, [`CLASSES`] at most. One program may belong to several.
    pub classes: Vec<Class>,
}

/// A program that asks for something, and so may get tokens.
#[derive(Clone, Copy, Debug)]
pub struct Applicant<'a> {
    /// Its user and client.
    pub owner: Owner,
    /// The groups of its user.
    pub groups: &'a [u32],
    /// The name of its client, if it has one.
    pub client_name: Option<&'a str>,
}

/// Tokens that an account gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Grant {
    /// The place of the class in the policy.
    pub class: usize,
    /// Whose tokens they are.
    pub account: Account,
    /// Their level.
    pub level: Level,
    /// How many more.
    pub count: u32,
    /// The weight from then on.
    pub weight: u32,
}

/// What was granted under a policy: each account gets the tokens of a class once.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Granted {
    /// By class and account.
    counts: BTreeMap<(usize, Account), u32>,
    /// By class.
    sums: BTreeMap<usize, u64>,
}

impl Granted {
    /// Decides what an applicant gets.
    ///
    /// Cost: the number of classes, and the logarithm of the number of accounts.
    pub fn decide(&self, policy: &Policy, applicant: &Applicant<'_>) -> Vec<Grant> {
        let mut grants = Vec::new();
        for (place, class) in policy.classes.iter().enumerate() {
            let Some(account) = account(&class.members, applicant) else {
                continue;
            };
            if self.counts.contains_key(&(place, account)) {
                continue;
            }
            let sum = self.sums.get(&place).copied().unwrap_or(0);
            let left = class.most.saturating_sub(sum);
            grants.push(Grant {
                class: place,
                account,
                level: class.level,
                count: u64::from(class.count).min(left) as u32,
                weight: class.weight,
            });
        }
        grants
    }

    /// Notes a grant that was decided.
    pub fn note(&mut self, grant: &Grant) {
        let key = (grant.class, grant.account);
        if self.counts.insert(key, grant.count).is_none() {
            *self.sums.entry(grant.class).or_default() += u64::from(grant.count);
        }
    }

    /// Forgets an account that has ended, so that others of its classes may get as much.
    pub fn forget(&mut self, account: Account) {
        let sums = &mut self.sums;
        self.counts.retain(|&(place, of), count| {
            if of == account
                && let Some(sum) = sums.get_mut(&place)
            {
                *sum -= u64::from(*count);
            }
            of != account
        });
    }
}

/// The account of an applicant that belongs to a class.
fn account(members: &Members, applicant: &Applicant<'_>) -> Option<Account> {
    let owner = applicant.owner;
    match members {
        Members::User(user) => (*user == owner.user).then_some(Account::User(owner.user)),
        Members::Group(group) => applicant
            .groups
            .contains(group)
            .then_some(Account::User(owner.user)),
        Members::Client(name) => {
            let is_named = applicant.client_name == Some(name.as_str());
            owner.client.filter(|_| is_named).map(Account::Client)
        }
    }
}
