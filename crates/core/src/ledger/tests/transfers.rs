//! Transfers: what moves, and that undoing one is exact (1994, 3.1; 1995, 3.1).

use super::*;

/// Clients a, b, c and d with 100, 200, 300 and 400 base tickets, all active.
fn four() -> (Fixture, [ClientId; 4]) {
    let mut fixture = Fixture::new();
    let base = fixture.ledger.base();
    let clients = [("a", 100), ("b", 200), ("c", 300), ("d", 400)];
    let clients = clients.map(|(name, amount)| fixture.funded(name, base, amount));
    fixture.activate(&clients);
    (fixture, clients)
}

#[test]
fn whole_transfer_leaves_zero_tickets() {
    let (mut fixture, clients) = four();
    let [a, b, ..] = clients;
    let transfer = fixture.whole(a, b);
    assert_eq!(fixture.values(&clients), [0, 300, 300, 400]);
    let ticket = fixture.ledger.funding(a).next().unwrap();
    let view = fixture.ledger.ticket(ticket).unwrap();
    assert_eq!((view.amount, view.lent, view.active), (0, 100, true));
    let shares = fixture.ledger.transfer(transfer).unwrap().shares;
    assert_eq!(shares, [(Target::Client(b), fixture.ledger.base(), 100)]);
    fixture.end(transfer);
    assert_eq!(fixture.values(&clients), [100, 200, 300, 400]);
    assert_eq!(fixture.ledger.transfer(transfer), None);
}

#[test]
fn part_is_split_over_receivers_and_over_the_givers_tickets() {
    let (mut fixture, clients) = four();
    let [a, b, c, d] = clients;
    let base = fixture.ledger.base();
    fixture.issue(base, 50, Target::Client(a));
    let shares = [
        (Target::Client(b), 70),
        (Target::Client(c), 40),
        (Target::Client(d), 1),
    ]
    .into();
    let transfer = fixture.transfer(
        a,
        Portion::Part {
            currency: Some(base),
            shares,
        },
    );
    assert_eq!(fixture.values(&clients), [39, 270, 340, 401]);
    let shares = fixture.ledger.transfer(transfer).unwrap().shares;
    let amounts: Vec<u32> = shares.iter().map(|(.., amount)| *amount).collect();
    assert_eq!(
        amounts,
        [70, 30, 10, 1],
        "c's share straddles a's two tickets"
    );
    fixture.end(transfer);
    assert_eq!(fixture.values(&clients), [150, 200, 300, 400]);
}

#[test]
fn whole_is_split_equally_in_each_currency_the_first_getting_the_odd_tickets() {
    let (mut fixture, clients) = four();
    let [a, b, c, d] = clients;
    let base = fixture.ledger.base();
    let other = fixture.backed("other", base, 700);
    fixture.issue(other, 7, Target::Client(a));
    let receivers = [b, c, d].map(Target::Client).into();
    fixture.transfer(a, Portion::Whole(receivers));
    // 100 base tickets make 34, 33, 33, and seven at a hundred make 3, 2, 2.
    assert_eq!(
        fixture.values(&clients),
        [0, 200 + 34 + 300, 300 + 33 + 200, 400 + 33 + 200]
    );
}

#[test]
fn a_blocked_givers_tickets_work_for_the_receiver() {
    let (mut fixture, clients) = four();
    let [a, b, ..] = clients;
    fixture.ledger.deactivate(a);
    assert_eq!(fixture.ledger.active_base_amount(), 900);
    fixture.whole(a, b);
    assert_eq!(fixture.values(&clients), [0, 300, 300, 400]);
    fixture.ledger.deactivate(b);
    assert_eq!(fixture.ledger.active_base_amount(), 700);
}

#[test]
fn a_chain_ends_with_its_first_link_and_in_any_order() {
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let (mut fixture, clients) = four();
        let [a, b, c, d] = clients;
        let transfers = [
            fixture.whole(a, b),
            fixture.whole(b, c),
            fixture.whole(c, d),
        ];
        assert_eq!(fixture.values(&clients), [0, 0, 0, 1000]);
        for link in order {
            if fixture.ledger.transfer(transfers[link]).is_some() {
                fixture.end(transfers[link]);
            }
        }
        assert_eq!(fixture.values(&clients), [100, 200, 300, 400], "{order:?}");
        assert_eq!(fixture.ledger.tickets().count(), 4);
        assert_eq!(fixture.ledger.transfers().count(), 0);
    }
}

#[test]
fn a_transfer_ends_with_its_last_piece() {
    let mut fixture = Fixture::new();
    let base = fixture.ledger.base();
    let a = fixture.funded("a", base, 100);
    let [b, c] = ["b", "c"].map(|name| fixture.client(name));
    let first = fixture.whole(a, b);
    let second = fixture.whole(b, c);
    fixture.end(first);
    assert_eq!(
        fixture.refusal(Operation::EndTransfer { transfer: second }),
        LedgerError::UnknownTransfer(second)
    );
}

#[test]
fn a_transfer_back_to_an_ancestor_goes_round_and_comes_undone() {
    let (mut fixture, clients) = four();
    let [a, b, ..] = clients;
    let there = fixture.whole(a, b);
    let back = fixture.whole(b, a);
    assert_eq!(fixture.values(&clients), [300, 0, 300, 400]);
    let again = fixture.whole(a, b);
    assert_eq!(fixture.values(&clients), [0, 300, 300, 400]);
    fixture.end(there);
    assert_eq!(
        fixture.values(&clients),
        [100, 200, 300, 400],
        "b's own tickets are still with a, and with b again"
    );
    assert!(fixture.ledger.transfer(back).is_some() && fixture.ledger.transfer(again).is_some());
    fixture.end(back);
    assert_eq!(fixture.values(&clients), [100, 200, 300, 400]);
    assert_eq!(fixture.ledger.transfers().count(), 0);
}

#[test]
fn a_giver_that_is_destroyed_ends_its_transfers() {
    let (mut fixture, clients) = four();
    let [a, b, c, d] = clients;
    fixture.whole(a, b);
    let onward = fixture.whole(b, c);
    fixture.part(d, Target::Client(a), 40);
    fixture.run(Operation::DestroyClient { client: a });
    assert_eq!(fixture.values(&[b, c, d]), [0, 500, 400]);
    assert_eq!(fixture.ledger.transfers().count(), 1);
    fixture.end(onward);
    assert_eq!(fixture.values(&[b, c, d]), [200, 300, 400]);
    assert_eq!(fixture.ledger.tickets().count(), 3);
}

#[test]
fn a_receiver_that_is_destroyed_gives_back_its_share_only() {
    let (mut fixture, clients) = four();
    let [a, b, c, d] = clients;
    let transfer = fixture.transfer(a, Portion::Whole([b, c].map(Target::Client).into()));
    fixture.part(b, Target::Client(d), 10);
    fixture.run(Operation::DestroyClient { client: b });
    assert_eq!(fixture.values(&[a, c, d]), [50, 350, 400]);
    fixture.end(transfer);
    assert_eq!(fixture.values(&[a, c, d]), [100, 300, 400]);
}

#[test]
fn a_currency_that_is_destroyed_gives_back_what_was_transferred_to_it() {
    let (mut fixture, clients) = four();
    let [a, ..] = clients;
    let base = fixture.ledger.base();
    let lock = fixture.backed("lock", base, 5);
    let own = fixture.ledger.backing(lock).next().unwrap();
    let transfer = fixture.part(a, Target::Currency(lock), 60);
    assert_eq!(fixture.values(&clients), [40, 200, 300, 400]);
    fixture.run(Operation::DestroyCurrency { currency: lock });
    assert_eq!(fixture.values(&clients), [100, 200, 300, 400]);
    assert_eq!(fixture.ledger.transfer(transfer), None);
    assert_eq!(fixture.ledger.ticket(own).unwrap().target, None);
}

#[test]
fn a_lent_ticket_can_be_inflated() {
    let (mut fixture, clients) = four();
    let [a, b, ..] = clients;
    let ticket = fixture.ledger.funding(a).next().unwrap();
    let transfer = fixture.part(a, Target::Client(b), 60);
    fixture.run(set_amount(ticket, 150));
    assert_eq!(fixture.values(&clients), [90, 260, 300, 400]);
    fixture.run(set_amount(ticket, 60));
    assert_eq!(fixture.values(&clients), [0, 260, 300, 400]);
    fixture.end(transfer);
    assert_eq!(fixture.values(&clients), [60, 200, 300, 400]);
}
