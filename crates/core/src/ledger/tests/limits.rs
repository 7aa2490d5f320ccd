//! Every limit: reached, and one past it.

use super::*;

fn limited(change: impl Fn(&mut Limits)) -> Fixture {
    let mut limits = Limits::default();
    change(&mut limits);
    Fixture::with_limits(limits)
}

#[test]
fn currencies() {
    let mut fixture = limited(|limits| limits.currencies = 3);
    let first = fixture.currency("first");
    fixture.currency("second");
    assert_eq!(
        fixture.refusal(create_currency("third")).to_string(),
        "there are 3 currencies, the most that this ledger holds: destroy one first"
    );
    fixture.run(Operation::DestroyCurrency { currency: first });
    fixture.currency("third");
}

#[test]
fn clients() {
    let mut fixture = limited(|limits| limits.clients = 2);
    let first = fixture.client("first");
    fixture.client("second");
    let third = create_client("third", 0);
    assert_eq!(
        fixture.refusal(third).to_string(),
        "there are 2 clients, the most that this ledger holds: destroy one first"
    );
    fixture.run(Operation::DestroyClient { client: first });
    fixture.client("third");
}

#[test]
fn tickets_also_those_that_a_transfer_makes() {
    let mut fixture = limited(|limits| limits.tickets = 4);
    let base = fixture.ledger.base();
    let [b, c] = ["b", "c"].map(|name| Target::Client(fixture.client(name)));
    let a = fixture.funded("a", base, 10);
    fixture.issue(base, 10, Target::Client(a));
    let shares = |first, second| part(a, None, &[(b, first), (c, second)]);
    // Eleven for b take a piece of each of a's two tickets.
    assert_eq!(
        fixture.refusal(shares(11, 1)).to_string(),
        "3 more tickets pass the limit of 4, of which 2 are in use: destroy some first"
    );
    fixture.run(shares(10, 1));
    let one = issue(base, 1, None);
    assert_eq!(
        fixture.refusal(one),
        LedgerError::TicketLimit {
            wanted: 1,
            used: 4,
            limit: 4
        }
    );
}

#[test]
fn transfers_under_way() {
    let mut fixture = limited(|limits| limits.transfers = 2);
    let base = fixture.ledger.base();
    let (a, b) = (fixture.funded("a", base, 10), fixture.client("b"));
    let first = fixture.part(a, Target::Client(b), 1);
    fixture.part(a, Target::Client(b), 1);
    let third = whole(a, &[Target::Client(b)]);
    assert_eq!(
        fixture.refusal(third.clone()).to_string(),
        "there are 2 transfers under way, the most that this ledger holds: end one first"
    );
    fixture.end(first);
    fixture.run(third);
}

#[test]
fn receivers_of_a_transfer() {
    let mut fixture = limited(|limits| limits.receivers = 2);
    let base = fixture.ledger.base();
    let a = fixture.funded("a", base, 10);
    let receivers = ["b", "c", "d"].map(|name| Target::Client(fixture.client(name)));
    let whole = |targets: &[Target]| whole(a, targets);
    assert_eq!(
        fixture.refusal(whole(&receivers)).to_string(),
        "a transfer from 'a' names 3 receivers: name at most 2"
    );
    fixture.run(whole(&receivers[..2]));
}

#[test]
fn lending_on() {
    let mut fixture = limited(|limits| limits.lending_depth = 2);
    let base = fixture.ledger.base();
    let a = fixture.funded("a", base, 10);
    let [b, c, d] = ["b", "c", "d"].map(|name| fixture.client(name));
    fixture.whole(a, b);
    fixture.whole(b, c);
    let third = whole(c, &[Target::Client(d)]);
    assert_eq!(
        fixture.refusal(third).to_string(),
        "ticket t2 has come through 2 transfers and cannot be lent on: transfer from its first holder"
    );
}

#[test]
fn bytes_in_a_name() {
    let mut fixture = limited(|limits| limits.name_bytes = 4);
    fixture.currency("abcd");
    fixture.currency("\u{e9}\u{e9}");
    assert_eq!(
        fixture
            .refusal(create_currency("\u{e9}\u{e9}a"))
            .to_string(),
        "name \"\u{e9}\u{e9}a\"... has 5 bytes: shorten it to 4 or fewer"
    );
}

#[test]
fn depth_of_the_graph() {
    let mut fixture = limited(|limits| limits.depth = 3);
    let base = fixture.ledger.base();
    let a = fixture.backed("a", base, 1);
    let b = fixture.backed("b", a, 1);
    let c = fixture.backed("c", b, 1);
    let deep = fixture.funded("deep", c, 5);
    let d = fixture.currency("d");
    let too_deep =
        "tickets of 'c' backing 'd' make a chain of 4 currencies below the base: keep it to 3";
    let issue = |currency, target| issue(currency, 1, Target::Currency(target));
    assert_eq!(fixture.refusal(issue(c, d)).to_string(), too_deep);
    let transfer = whole(deep, &[Target::Currency(d)]);
    assert_eq!(fixture.refusal(transfer).to_string(), too_deep);

    // Joining two chains in the middle counts both.
    let e = fixture.backed("e", d, 1);
    assert_eq!(
        fixture.refusal(issue(b, d)).to_string(),
        "tickets of 'b' backing 'd' make a chain of 4 currencies below the base: keep it to 3"
    );
    fixture.run(issue(a, d));
    fixture.run(issue(b, e));
    fixture.run(issue(base, c));
}

#[test]
fn the_deepest_graph_that_a_ledger_takes() {
    let mut fixture = limited(|limits| limits.depth = u32::MAX);
    assert_eq!(fixture.ledger.limits().depth, Limits::MAX_DEPTH);
    let mut lowest = fixture.ledger.base();
    for level in 0..Limits::MAX_DEPTH {
        lowest = fixture.backed(&level.to_string(), lowest, 2);
    }
    let client = fixture.funded("deep", lowest, 3);
    let past = fixture.currency("past");
    let issue = issue(lowest, 1, Target::Currency(past));
    assert!(matches!(
        fixture.refusal(issue),
        LedgerError::TooDeep {
            depth: 257,
            limit: 256,
            ..
        }
    ));
    fixture.activate(&[client]);
    assert_eq!(fixture.values(&[client]), [2]);
    fixture.ledger.deactivate(client);
    assert_eq!(fixture.ledger.active_base_amount(), 0);
}

/// Every level backs the next by two tickets, so that two to the power of 256
/// paths lead down; each currency is visited once all the same.
#[test]
fn a_ladder_of_diamonds_is_not_exponential() {
    let mut fixture = limited(|limits| limits.depth = Limits::MAX_DEPTH);
    let base = fixture.ledger.base();
    let mut rung = [base; 2];
    for level in 0..Limits::MAX_DEPTH {
        let next = ["l", "r"].map(|side| fixture.currency(&[side, &level.to_string()].concat()));
        for upper in rung {
            for lower in next {
                fixture.issue(upper, 1 << 20, Target::Currency(lower));
            }
        }
        rung = next;
    }
    let client = fixture.funded("client", rung[0], 1);
    fixture.activate(&[client]);
    // The whole of what the left side is worth: nothing on the right is active.
    assert_eq!(fixture.values(&[client]), [4 << 20]);
    let lowest = issue(rung[0], 1, Target::Currency(rung[1]));
    assert!(matches!(
        fixture.refusal(lowest),
        LedgerError::TooDeep { .. }
    ));
}

#[test]
fn the_greatest_amounts_do_not_overflow() {
    let mut fixture = Fixture::new();
    let base = fixture.ledger.base();
    let rich = fixture.currency("rich");
    for _ in 0..1000 {
        fixture.issue(base, u32::MAX, Target::Currency(rich));
    }
    let clients = ["a", "b", "c"].map(|name| fixture.funded(name, rich, u32::MAX));
    fixture.activate(&clients);
    let total = fixture.ledger.active_base_amount();
    assert_eq!(total, 1000 * u64::from(u32::MAX));
    let Value(value) = fixture.ledger.value(clients[0]);
    assert_eq!(value, (u128::from(total) << 32) / 3);
}
