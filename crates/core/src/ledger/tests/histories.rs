//! Random histories of every operation, of blocking and of waking.

use super::history::{History, LIMITS};
use super::model::Model;
use super::steps::{Step, step, user, wish_to_transfer};
use super::*;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use core::cell::RefCell;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{RngSeed, TestRunner};

const SEED: u64 = 1994;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(SEED),
        ..ProptestConfig::default()
    }
}

/// Everything that can be read, lists in their order.
fn dump(ledger: &Ledger) -> String {
    let currencies: Vec<_> = ledger.currencies().collect();
    let lists = currencies.iter().map(|currency| {
        let backing: Vec<TicketId> = ledger.backing(currency.id).collect();
        (backing, ledger.issued(currency.id).collect::<Vec<_>>())
    });
    let clients: Vec<_> = ledger.clients().collect();
    let funding = clients
        .iter()
        .map(|client| ledger.funding(client.id).collect::<Vec<_>>());
    format!(
        "{currencies:#?}{:#?}{clients:#?}{:#?}{:#?}{:#?}",
        lists.collect::<Vec<_>>(),
        funding.collect::<Vec<_>>(),
        ledger.tickets().collect::<Vec<_>>(),
        ledger.transfers().collect::<Vec<_>>(),
    )
}

/// The rules that refuse operations.
const RULES: [&str; 34] = [
    "AmbiguousCurrency",
    "BaseBacked",
    "BaseDestroyed",
    "BelowLent",
    "Borrowed",
    "ClientExists",
    "ClientLimit",
    "ControlInName",
    "CurrencyExists",
    "CurrencyLimit",
    "Cycle",
    "Denied",
    "EmptyName",
    "ForeignOwner",
    "HasIssued",
    "Idle",
    "Lent",
    "LentTooFar",
    "LongName",
    "NoReceivers",
    "NotClientOwner",
    "NotCurrencyOwner",
    "NotHeld",
    "NothingHeld",
    "SelfTransfer",
    "TicketLimit",
    "TooDeep",
    "TooManyReceivers",
    "TransferLimit",
    "UnknownClient",
    "UnknownCurrency",
    "UnknownTicket",
    "UnknownTransfer",
    "ZeroAmount",
];

/// The operations.
const OPERATIONS: [&str; 13] = [
    "CreateClient",
    "CreateCurrency",
    "DestroyClient",
    "DestroyCurrency",
    "DestroyTicket",
    "EndTransfer",
    "Fund",
    "Issue",
    "LimitClient",
    "Protect",
    "SetAmount",
    "Transfer",
    "Unfund",
];

#[test]
fn every_invariant_holds_after_every_step_and_every_rule_is_met() {
    let histories = (
        prop::collection::vec(step(), 1..250),
        prop::collection::vec(any::<Index>(), 8),
    );
    let met = RefCell::new(BTreeSet::new());
    let result = TestRunner::new(config(128)).run(&histories, |(steps, order)| {
        let mut history = History::new();
        steps.iter().for_each(|step| history.step(step));
        replay(&history);
        let images = images(&history.ledger);
        let applied = history.applied.len();
        history.end_all(&order);
        for mut image in images {
            apply_all(&mut image, &history.applied[applied..]);
            prop_assert_eq!(dump(&image), dump(&history.ledger));
        }
        prop_assert!(
            history
                .ledger
                .tickets()
                .all(|ticket| ticket.lent == 0 && ticket.transfer.is_none())
        );
        Model::new(&history.ledger, &history.running).compare(&history.ledger);
        met.borrow_mut().append(&mut history.met);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("seed {SEED}: {failure}");
    }
    let met = met.into_inner();
    let missed: Vec<&str> = RULES
        .into_iter()
        .chain(OPERATIONS)
        .filter(|name| !met.contains(*name))
        .collect();
    assert!(missed.is_empty(), "no history met {missed:?}");
}

/// The same operations again make the same objects under the same identifiers.
fn replay(history: &History) {
    let mut replayed = Ledger::new(LIMITS);
    apply_all(&mut replayed, &history.applied);
    history
        .running
        .iter()
        .for_each(|client| replayed.activate(*client));
    assert_eq!(dump(&replayed), dump(&history.ledger));
}

fn apply_all(ledger: &mut Ledger, applied: &[(Operation, Outcome)]) {
    for (operation, outcome) in applied {
        assert_eq!(
            ledger.execute(&Principal::ROOT, operation.clone()),
            Ok(*outcome)
        );
    }
}

/// A clone, and what is read back from a serialised ledger.
fn images(ledger: &Ledger) -> Vec<Ledger> {
    [
        ledger.clone(),
        #[cfg(feature = "serde")]
        serde_json::from_str(&serde_json::to_string(ledger).unwrap()).unwrap(),
    ]
    .into()
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn transfers_undone_in_any_order_leave_no_trace(
        steps in prop::collection::vec(step(), 40..120),
        transfers in prop::collection::vec((user(), wish_to_transfer()), 1..40),
        order in prop::collection::vec(any::<Index>(), 8),
    ) {
        let mut history = History::new();
        steps.iter().for_each(|step| history.step(step));
        history.end_all(&order);
        let before = dump(&history.ledger);
        for (asker, wish) in transfers {
            history.step(&Step::Operation { asker, wish });
        }
        history.end_all(&order);
        prop_assert_eq!(dump(&history.ledger), before);
    }
}
