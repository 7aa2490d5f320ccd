//! Random histories of a state, kept in a journal that is then damaged.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use prorata_core::cpu_limit::CpuLimit;
use prorata_core::ids::{ClientId, CurrencyId, TicketId, TransferId};
use prorata_core::ledger::{Mode, Operation, Portion, Principal, Target};
use prorata_protocol::PolicyName;

use super::*;
use crate::process::ProcessId;
use crate::state::Settings;
use crate::testing::{fast_directory, image};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(1994),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn operation() -> impl Strategy<Value = Operation> {
    let index = 0_u32..5;
    let currency = index
        .clone()
        .prop_map(|index| CurrencyId::from_parts(index, 0));
    let client = (index.clone(), 0_u32..2).prop_map(|(i, g)| ClientId::from_parts(i, g));
    let ticket = (0_u32..9, 0_u32..2).prop_map(|(i, g)| TicketId::from_parts(i, g));
    let transfer = (0_u32..3, 0_u32..2).prop_map(|(i, g)| TransferId::from_parts(i, g));
    let target = prop_oneof![
        currency.clone().prop_map(Target::Currency),
        client.clone().prop_map(Target::Client),
    ];
    let name = "[a-f]";
    prop_oneof![
        (name, 0_u32..3).prop_map(|(name, owner)| Operation::CreateCurrency {
            name,
            owner,
            group: owner,
            mode: Mode::DEFAULT,
        }),
        (name, 0_u32..3).prop_map(|(name, owner)| Operation::CreateClient {
            name: Some(name),
            owner
        }),
        (
            currency.clone(),
            1_u32..100,
            proptest::option::of(target.clone())
        )
            .prop_map(|(currency, amount, target)| Operation::Issue {
                currency,
                amount,
                target
            }),
        (
            currency.clone(),
            1_u32..100,
            client.clone().prop_map(|c| Some(Target::Client(c)))
        )
            .prop_map(|(currency, amount, target)| Operation::Issue {
                currency,
                amount,
                target
            }),
        (ticket.clone(), 1_u32..100)
            .prop_map(|(ticket, amount)| Operation::SetAmount { ticket, amount }),
        (client.clone(), target.clone()).prop_map(|(from, target)| Operation::Transfer {
            from,
            portion: Portion::Whole(vec![target]),
        }),
        (
            client.clone(),
            proptest::option::of(1..=CpuLimit::MOST.thousandths())
        )
            .prop_map(|(client, max)| Operation::LimitClient {
                client,
                max: max.and_then(CpuLimit::from_thousandths),
            }),
        transfer.prop_map(|transfer| Operation::EndTransfer { transfer }),
        ticket.prop_map(|ticket| Operation::DestroyTicket { ticket }),
        client.prop_map(|client| Operation::DestroyClient { client }),
        currency.prop_map(|currency| Operation::DestroyCurrency { currency }),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let client = (0_u32..5, 0_u32..2).prop_map(|(i, g)| ClientId::from_parts(i, g));
    prop_oneof![
        12 => operation().prop_map(Change::Ledger),
        1 => (client.clone(), 2_u32..9).prop_map(|(client, pid)| Change::Roots {
            client,
            roots: vec![ProcessId { pid, start_time_ticks: 7 }],
        }),
        1 => client.clone().prop_map(Change::Suspend),
        1 => client.prop_map(Change::Resume),
        2 => Just(Change::Hold),
        1 => (1_u64..9).prop_map(|ms| Change::Configure(Settings {
            quantum_ns: ms * 1_000_000,
            policy: PolicyName::Lottery,
            ..Settings::default()
        })),
    ]
}

/// Writes the sensible ones of `changes`. Returns the state after each record,
/// the first one included, and the end of each record in the file.
fn keep(journal: &mut Journal, state: &mut State, changes: Vec<Change>) -> Vec<(String, u64)> {
    journal.rewrite(state).unwrap();
    let mut states = vec![(image(state), journal.length)];
    for change in changes {
        let mut next = state.clone();
        // As the daemon decodes: an operation is checked, and the rest fits it.
        if next.apply(&change).is_ok() {
            journal
                .append(std::slice::from_ref(&change), state)
                .unwrap();
            *state = next;
            states.push((image(state), journal.length));
        }
    }
    states
}

fn opened(directory: &Path) -> Opened {
    Journal::open(directory.join("journal"), "this boot".to_owned()).unwrap()
}

fn found(opened: Opened) -> Option<String> {
    opened.found.map(|(state, boot_id)| {
        assert_eq!(boot_id, "this boot");
        image(&state)
    })
}

#[test]
fn a_journal_cut_at_any_byte_holds_all_that_was_written_before() {
    proptest!(config(24), |(changes in proptest::collection::vec(change(), 1..60))| {
        let directory = fast_directory();
        let mut state = State::new(0, 0);
        let states = keep(&mut opened(directory.path()).journal, &mut state, changes);
        let path = directory.path().join("journal");
        let bytes = fs::read(&path).unwrap();
        prop_assert_eq!(bytes.len() as u64, states.last().unwrap().1);
        for cut in states[0].1 as usize..=bytes.len() {
            let recovered = recover(&bytes[..cut]);
            let (expected, end) =
                states.iter().rev().find(|(_, end)| *end <= cut as u64).unwrap();
            prop_assert_eq!(&image(&recovered.found.unwrap().0), expected, "cut at {}", cut);
            let torn = cut - *end as usize;
            let damage = (torn > 0).then_some(Damage::TornTail { bytes: torn });
            prop_assert_eq!(recovered.damage, damage);
        }
    });
}

#[test]
fn a_journal_goes_on_after_its_torn_tail() {
    proptest!(config(24), |(
        before in proptest::collection::vec(change(), 1..40),
        after in proptest::collection::vec(change(), 1..40),
        tail in 0_usize..40,
    )| {
        let directory = fast_directory();
        let mut state = State::new(0, 0);
        let states = keep(&mut opened(directory.path()).journal, &mut state, before);
        let path = directory.path().join("journal");
        let bytes = fs::read(&path).unwrap();
        let cut = bytes.len().saturating_sub(tail).max(states[0].1 as usize);
        fs::write(&path, &bytes[..cut]).unwrap();

        let mut second = opened(directory.path());
        let (mut state, _) = second.found.take().unwrap();
        let states = keep(&mut second.journal, &mut state, after);
        prop_assert_eq!(found(opened(directory.path())), Some(states.last().unwrap().0.clone()));
        prop_assert!(!path.with_extension("damaged-1").exists());
    });
}

#[test]
fn a_flipped_bit_loses_only_later_records() {
    proptest!(config(48), |(
        changes in proptest::collection::vec(change(), 1..40),
        place in any::<proptest::sample::Index>(),
        bit in 0_u32..8,
    )| {
        let directory = fast_directory();
        let mut state = State::new(0, 0);
        let states = keep(&mut opened(directory.path()).journal, &mut state, changes);
        let path = directory.path().join("journal");
        let mut bytes = fs::read(&path).unwrap();
        let byte = place.index(bytes.len());
        bytes[byte] ^= 1 << bit;
        fs::write(&path, &bytes).unwrap();

        let Opened { mut journal, found, damage } = opened(directory.path());
        let expected = states.iter().rev().find(|(_, end)| *end <= byte as u64);
        prop_assert_eq!(
            found.as_ref().map(|(state, _)| image(state)),
            expected.map(|(image, _)| image.clone())
        );
        prop_assert!(damage.is_some());

        // The next journal overwrites it only if its tail was torn.
        let state = found.map_or_else(|| State::new(0, 0), |(state, _)| state);
        journal.append(&[Change::Hold], &state).unwrap();
        let aside = fs::read(path.with_extension("damaged-1")).ok();
        let kept = matches!(damage, Some(Damage::Corrupt { .. })).then_some(bytes);
        prop_assert_eq!(aside, kept);
        prop_assert_eq!(self::found(opened(directory.path())), Some(image(&state)));
    });
}

#[test]
fn senseless_records_count_as_damage() {
    let directory = fast_directory();
    let state = State::new(0, 0);
    let Opened { mut journal, .. } = opened(directory.path());
    let unknown = Operation::DestroyTicket {
        ticket: TicketId::from_parts(7, 7),
    };
    journal.append(&[Change::Ledger(unknown)], &state).unwrap();
    let Opened { found, damage, .. } = opened(directory.path());
    assert_eq!(found.map(|(found, _)| image(&found)), Some(image(&state)));
    assert!(matches!(damage, Some(Damage::Corrupt { .. })));

    let mut bytes = record::MAGIC.to_vec();
    record::encode(&mut bytes, 0, b"{\"boot_id\":\"b\",\"state\":{}}");
    assert!(recover(&bytes).found.is_none());
}

#[test]
fn a_journal_that_has_grown_is_written_anew() {
    let directory = fast_directory();
    let mut state = State::new(0, 0);
    let Opened { mut journal, .. } = opened(directory.path());
    let who = Principal::ROOT;
    let mut longest = 0;
    for number in 0_u32.. {
        let operation = Operation::CreateCurrency {
            name: format!("{:050}", number % 2),
            owner: who.uid,
            group: 0,
            mode: Mode::DEFAULT,
        };
        let destroy = state.ledger.currencies().nth(1).map(|currency| currency.id);
        let change = Change::Ledger(match destroy {
            Some(currency) => Operation::DestroyCurrency { currency },
            None => operation,
        });
        journal
            .append(std::slice::from_ref(&change), &state)
            .unwrap();
        state.apply(&change).unwrap();
        if journal.length < longest {
            break;
        }
        longest = journal.length;
    }
    assert!(longest > MIN_GROWTH_BYTES && longest < MIN_GROWTH_BYTES + 2_000);
    assert_eq!(
        fs::metadata(directory.path().join("journal"))
            .unwrap()
            .len(),
        journal.length
    );
    assert_eq!(found(opened(directory.path())), Some(image(&state)));
}

#[test]
fn a_refused_change_is_never_found_in_the_journal() {
    proptest!(config(256), |(
        changes in proptest::collection::vec(
            (change(), proptest::collection::vec(proptest::bool::weighted(0.3), 0..9)),
            1..40,
        ),
    )| {
        let directory = fast_directory();
        let mut journal = opened(directory.path()).journal;
        let mut state = State::new(0, 0);
        journal.rewrite(&state).unwrap();
        // A record was written and could not be taken back. Until a new journal can
        // be written, a reader may find it.
        let mut doubtful = image(&state);
        for (change, faults) in changes {
            let was_good = journal.file.is_some();
            let mut next = state.clone();
            if next.apply(&change).is_err() {
                continue;
            }
            disk::faults::plan(faults.clone());
            let appended = journal.append(std::slice::from_ref(&change), &state);
            disk::faults::plan([]);
            if appended.is_ok() {
                state = next.clone();
            }
            let found = found(opened(directory.path())).unwrap();
            if journal.file.is_some() {
                prop_assert_eq!(&found, &image(&state), "{:?}", faults);
            } else {
                prop_assert!(appended.is_err());
                if was_good {
                    doubtful = image(&next);
                }
                let sensible = [&image(&state), &doubtful];
                prop_assert!(sensible.contains(&&found), "{:?}", faults);
            }
        }
        // With room again, the journal holds exactly the confirmed changes.
        journal.append(&[Change::Hold], &state).unwrap();
        prop_assert_eq!(found(opened(directory.path())), Some(image(&state)));
    });
}

#[test]
fn a_refused_record_is_cut_off_on_the_disk_too() {
    let appended = |faults: &[bool]| {
        let directory = fast_directory();
        let mut journal = opened(directory.path()).journal;
        let state = State::new(0, 0);
        journal.rewrite(&state).unwrap();
        let inode = || {
            std::os::unix::fs::MetadataExt::ino(
                &fs::metadata(directory.path().join("journal")).unwrap(),
            )
        };
        let before = inode();
        disk::faults::plan(faults.iter().copied());
        journal.append(&[Change::Hold], &state).unwrap_err();
        disk::faults::plan([]);
        (inode() != before, journal.file.is_some())
    };
    let (kept, renewed, broken) = ((false, true), (true, true), (false, false));
    // Write; cut; flush of the cut.
    assert_eq!(appended(&[true]), kept, "a full disk");
    assert_eq!(appended(&[true, true]), renewed, "it cannot be cut");
    assert_eq!(
        appended(&[true, false, true]),
        renewed,
        "the cut stays in memory"
    );
    assert_eq!(
        appended(&[true, false, true, true]),
        broken,
        "nor can it be replaced"
    );
    // Write; flush.
    assert_eq!(appended(&[false, true]), renewed, "the content is unknown");
    assert_eq!(appended(&[false, true, false, false, true]), broken);
    // ... cut; flush of the cut; create, write, flush, rename, flush of the directory.
    let names_lost = [false, true, false, false, false, false, false, false, true];
    assert_eq!(
        appended(&names_lost),
        (true, false),
        "the new name may be lost"
    );
}
