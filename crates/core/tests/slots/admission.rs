//! Admission by a policy.

use prorata_core::ids::ClientId;
use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus, below};
use prorata_core::slots::admission::{Applicant, Class, Granted, Members, Policy};
use prorata_core::slots::claim::{Account, Owner};
use prorata_core::slots::level::Level;

fn class(members: Members, count: u32, most: u64) -> Class {
    Class {
        members,
        level: Level::Soft1,
        count,
        weight: 2,
        most,
    }
}

fn applicant(user: u32, client: u32) -> Applicant<'static> {
    Applicant {
        owner: Owner {
            user,
            client: Some(ClientId::from_parts(client, 0)),
        },
        groups: &[100],
        client_name: Some("player"),
    }
}

#[test]
fn members_get_the_tokens_of_each_class_once() {
    let policy = Policy {
        classes: vec![
            class(Members::User(7), 12, 100),
            class(Members::Group(100), 5, 100),
            class(Members::Group(101), 5, 100),
            class(Members::Client("player".into()), 3, 100),
            class(Members::Client("other".into()), 3, 100),
        ],
    };
    let mut granted = Granted::default();
    let grants = granted.decide(&policy, &applicant(7, 1));
    grants.iter().for_each(|grant| granted.note(grant));
    let got: Vec<_> = grants
        .iter()
        .map(|grant| (grant.account, grant.count))
        .collect();
    let client = Account::Client(ClientId::from_parts(1, 0));
    assert_eq!(
        got,
        [(Account::User(7), 12), (Account::User(7), 5), (client, 3)]
    );
    assert_eq!(granted.decide(&policy, &applicant(7, 1)), []);
    // Another client of the same user.
    let grants = granted.decide(&policy, &applicant(7, 2));
    assert_eq!(grants.len(), 1);
    let outside = Applicant {
        groups: &[],
        client_name: None,
        ..applicant(8, 3)
    };
    assert_eq!(granted.decide(&policy, &outside), []);
}

/// Whatever happens, a class never has more tokens out than it may, and what ends makes room.
#[test]
fn classes_stay_within_their_most() {
    for seed in 0..200 {
        println!("seed {seed}");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let most = below(&mut rng, 40);
        let policy = Policy {
            classes: vec![class(Members::Client("player".into()), 7, most)],
        };
        let (mut granted, mut held) = (Granted::default(), std::collections::BTreeMap::new());
        for _ in 0..200 {
            let client = below(&mut rng, 12) as u32;
            let account = Account::Client(ClientId::from_parts(client, 0));
            if below(&mut rng, 3) == 0 {
                granted.forget(account);
                held.remove(&account);
            } else {
                let out: u64 = held.values().sum();
                for grant in granted.decide(&policy, &applicant(7, client)) {
                    assert_eq!(u64::from(grant.count), (most - out).min(7));
                    granted.note(&grant);
                    assert!(held.insert(grant.account, u64::from(grant.count)).is_none());
                }
            }
            assert!(held.values().sum::<u64>() <= most);
        }
    }
}
