//! What can happen in a random history.

use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::cpu_limit::CpuLimit;

/// Something that happens; which objects it happens to is settled when it does.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Operation { asker: u32, wish: Wish },
    Activate(Index),
    Deactivate(Index),
}

#[derive(Clone, Debug)]
pub(super) enum Wish {
    CreateCurrency {
        name: u8,
        owner: u32,
        mode: u16,
    },
    DestroyCurrency(Pick),
    Protect {
        currency: Pick,
        owner: u32,
        mode: u16,
    },
    Issue {
        currency: Pick,
        amount: u32,
        target: Option<Aim>,
    },
    DestroyTicket(Pick),
    SetAmount {
        ticket: Pick,
        amount: u32,
    },
    Fund {
        ticket: Pick,
        target: Aim,
    },
    Unfund(Pick),
    CreateClient {
        name: u8,
        owner: u32,
    },
    LimitClient {
        client: Pick,
        max: Option<CpuLimit>,
    },
    DestroyClient(Pick),
    Whole {
        from: Pick,
        targets: Vec<Aim>,
    },
    Part {
        from: Pick,
        currency: Option<Pick>,
        shares: Vec<(Aim, u32)>,
    },
    EndTransfer(Pick),
}

/// One of the living objects of a kind, or of all that ever were.
#[derive(Clone, Debug)]
pub(super) struct Pick {
    pub(super) ever: bool,
    pub(super) index: Index,
}

#[derive(Clone, Debug)]
pub(super) enum Aim {
    Currency(Pick),
    Client(Pick),
}

fn pick() -> impl Strategy<Value = Pick> {
    (prop::bool::weighted(0.05), any::<Index>()).prop_map(|(ever, index)| Pick { ever, index })
}

fn aim() -> impl Strategy<Value = Aim> {
    prop_oneof![pick().prop_map(Aim::Currency), pick().prop_map(Aim::Client)]
}

/// Clients lend to clients more often than to currencies.
fn receiver() -> impl Strategy<Value = Aim> {
    prop_oneof![1 => pick().prop_map(Aim::Currency), 3 => pick().prop_map(Aim::Client)]
}

fn amount() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 1..=20u32, 2 => 1..=100_000u32, 1 => any::<u32>(), 1 => Just(u32::MAX), 1 => Just(0)]
}

fn mode() -> impl Strategy<Value = u16> {
    prop_oneof![3 => Just(0o777u16), 1 => 0..=0o777u16]
}

/// Users 0, the super-user, to 3.
pub(super) fn user() -> impl Strategy<Value = u32> {
    prop_oneof![4 => Just(0u32), 1 => 1..=3u32]
}

fn wish() -> impl Strategy<Value = Wish> {
    let receivers = || prop_oneof![1 => 0..=4usize, 9 => 1..=3usize];
    let targets =
        receivers().prop_flat_map(|receivers| prop::collection::vec(receiver(), receivers));
    let share = || (receiver(), prop_oneof![9 => 1..=10u32, 1 => amount()]);
    let shares =
        receivers().prop_flat_map(move |receivers| prop::collection::vec(share(), receivers));
    prop_oneof![
        6 => (0..13u8, user(), mode()).prop_map(|(name, owner, mode)| Wish::CreateCurrency { name, owner, mode }),
        2 => pick().prop_map(Wish::DestroyCurrency),
        1 => (pick(), user(), mode()).prop_map(|(currency, owner, mode)| Wish::Protect { currency, owner, mode }),
        14 => (pick(), amount(), prop::option::weighted(0.9, aim()))
            .prop_map(|(currency, amount, target)| Wish::Issue { currency, amount, target }),
        2 => pick().prop_map(Wish::DestroyTicket),
        6 => (pick(), amount()).prop_map(|(ticket, amount)| Wish::SetAmount { ticket, amount }),
        6 => (pick(), aim()).prop_map(|(ticket, target)| Wish::Fund { ticket, target }),
        2 => pick().prop_map(Wish::Unfund),
        6 => (0..9u8, user()).prop_map(|(name, owner)| Wish::CreateClient { name, owner }),
        2 => (pick(), prop::option::of(1..=CpuLimit::MOST.thousandths())).prop_map(|(client, max)| Wish::LimitClient {
            client,
            max: max.and_then(CpuLimit::from_thousandths),
        }),
        1 => pick().prop_map(Wish::DestroyClient),
        8 => (pick(), targets).prop_map(|(from, targets)| Wish::Whole { from, targets }),
        10 => (pick(), prop::option::weighted(0.3, pick()), shares)
            .prop_map(|(from, currency, shares)| Wish::Part { from, currency, shares }),
        3 => pick().prop_map(Wish::EndTransfer),
    ]
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (user(), wish()).prop_map(|(asker, wish)| Step::Operation { asker, wish }),
        4 => any::<Index>().prop_map(Step::Activate),
        2 => any::<Index>().prop_map(Step::Deactivate),
    ]
}

/// A transfer, or the end of one.
pub(super) fn wish_to_transfer() -> impl Strategy<Value = Wish> {
    let targets = prop::collection::vec(receiver(), 1..=3);
    let shares = prop::collection::vec((receiver(), 1..=10u32), 1..=3);
    prop_oneof![
        2 => (pick(), targets).prop_map(|(from, targets)| Wish::Whole { from, targets }),
        2 => (pick(), shares).prop_map(|(from, shares)| Wish::Part { from, currency: None, shares }),
        1 => pick().prop_map(Wish::EndTransfer),
    ]
}
