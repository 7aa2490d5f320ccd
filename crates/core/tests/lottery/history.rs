//! Random histories of every operation: against plain books of which client stands
//! where, and of the lotteries against one another.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use prorata_core::policy::{ClientIndex, PolicyError};

use crate::compensation::within_stated_error;
use crate::every_lottery::{AnyLottery, Named, every_lottery, wins};
use crate::statistics::ChiSquare;

const CLIENTS: u32 = 12;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Join(ClientIndex, u32),
    Leave(ClientIndex),
    Forget(ClientIndex),
    SetTickets(ClientIndex, u32),
    Take(ClientIndex),
    Charge(ClientIndex, u64, u64),
    ChargeAndLeave(ClientIndex, u64, u64),
}

impl Operation {
    fn apply(self, lottery: &mut dyn AnyLottery) -> Result<(), PolicyError> {
        match self {
            Operation::Join(client, tickets) => lottery.join(client, tickets),
            Operation::Leave(client) => lottery.leave(client),
            Operation::SetTickets(client, tickets) => lottery.set_tickets(client, tickets),
            Operation::Take(client) => lottery.take(client),
            Operation::Charge(client, used, quantum) => lottery.charge(client, used, quantum),
            Operation::ChargeAndLeave(client, used, quantum) => {
                lottery.charge_and_leave(client, used, quantum)
            }
            Operation::Forget(client) => {
                lottery.forget(client);
                Ok(())
            }
        }
    }
}

/// What is known of a client that joined and was not forgotten.
#[derive(Clone, Copy, Debug)]
struct Seat {
    tickets: u32,
    competes: bool,
    taken: bool,
    /// Used and quantum of the last charge.
    charge: (u64, u64),
}

impl Seat {
    fn can_win(&self) -> bool {
        self.competes && !self.taken && self.tickets > 0
    }
}

#[derive(Default)]
struct Books(BTreeMap<ClientIndex, Seat>);

impl Books {
    fn apply(&mut self, operation: Operation) -> Result<(), PolicyError> {
        if let Operation::Join(client, tickets) = operation {
            let seat = self.0.entry(client).or_insert(Seat {
                tickets,
                competes: false,
                taken: false,
                charge: (1, 1),
            });
            if seat.competes {
                return Err(PolicyError::AlreadyJoined(client));
            }
            seat.tickets = tickets;
            seat.competes = true;
            seat.taken = false;
            return Ok(());
        }
        if let Operation::Forget(client) = operation {
            self.0.remove(&client);
            return Ok(());
        }
        let (Operation::Leave(client)
        | Operation::SetTickets(client, _)
        | Operation::Take(client)
        | Operation::Charge(client, ..)
        | Operation::ChargeAndLeave(client, ..)) = operation
        else {
            unreachable!("join and forget are done");
        };
        let seat = self.0.get_mut(&client).filter(|seat| seat.competes);
        let seat = seat.ok_or(PolicyError::NotJoined(client))?;
        match operation {
            Operation::Leave(_) => seat.competes = false,
            Operation::SetTickets(_, tickets) => seat.tickets = tickets,
            Operation::Take(_) => seat.taken = true,
            Operation::Charge(_, _, 0) | Operation::ChargeAndLeave(_, _, 0) => {
                return Err(PolicyError::ZeroQuantum(client));
            }
            Operation::ChargeAndLeave(_, used, quantum) => {
                seat.charge = (used, quantum);
                seat.competes = false;
            }
            Operation::Charge(_, used, quantum) => {
                seat.charge = (used, quantum);
                seat.taken = false;
            }
            Operation::Join(..) | Operation::Forget(_) => {}
        }
        Ok(())
    }

    fn competing(&self) -> impl Iterator<Item = &Seat> {
        self.0.values().filter(|seat| seat.competes)
    }

    /// All that a lottery shows of itself.
    fn check(&self, name: &str, lottery: &mut dyn AnyLottery) {
        let tickets: u64 = self.competing().map(|seat| u64::from(seat.tickets)).sum();
        assert_eq!(lottery.total_tickets(), tickets, "{name}");
        assert_eq!(lottery.len(), self.competing().count(), "{name}");
        assert_eq!(lottery.is_empty(), lottery.len() == 0, "{name}");
        for client in (0..CLIENTS).map(ClientIndex) {
            let effective = lottery.effective_tickets(client);
            match self.0.get(&client).filter(|seat| seat.competes) {
                None => assert!(effective.is_zero(), "{name}, {client}"),
                Some(seat) => {
                    let (used, quantum) = seat.charge;
                    assert!(
                        within_stated_error(effective, seat.tickets, used, quantum),
                        "{name}, {client}: {effective:?} for {seat:?}"
                    );
                }
            }
        }
        match lottery.pick() {
            None => assert!(!self.0.values().any(Seat::can_win), "{name}"),
            Some(winner) => assert!(self.0[&winner].can_win(), "{name}, {winner}"),
        }
    }

    /// The weights of the next lottery.
    fn weights(&self) -> Vec<f64> {
        let weight = |client| match self.0.get(&ClientIndex(client)) {
            Some(seat) if seat.can_win() => {
                let factor = seat.charge.1 as f64 / seat.charge.0 as f64;
                f64::from(seat.tickets) * factor.clamp(2f64.powi(-16), 2f64.powi(16))
            }
            _ => 0.0,
        };
        (0..CLIENTS).map(weight).collect()
    }
}

/// Histories with tickets of every size, and shares of a quantum from none of
/// it to too much.
fn operations(length: usize) -> impl Strategy<Value = Vec<Operation>> {
    let client = || (0..CLIENTS).prop_map(ClientIndex);
    let tickets = || prop_oneof![1 => Just(0), 6 => 1..50u32, 1 => any::<u32>()];
    let one = prop_oneof![
        4 => (client(), tickets()).prop_map(|(c, t)| Operation::Join(c, t)),
        1 => client().prop_map(Operation::Leave),
        1 => client().prop_map(Operation::Forget),
        3 => (client(), tickets()).prop_map(|(c, t)| Operation::SetTickets(c, t)),
        1 => client().prop_map(Operation::Take),
        4 => (client(), 0..300u64, 0..200u64).prop_map(|(c, u, q)| Operation::Charge(c, u, q)),
        1 => (client(), 0..300u64, 0..200u64)
            .prop_map(|(c, u, q)| Operation::ChargeAndLeave(c, u, q)),
    ];
    prop::collection::vec(one, 1..length)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_lottery_keeps_the_same_books(history in operations(120)) {
        for (name, mut lottery) in every_lottery(1) {
            let mut books = Books::default();
            for &operation in &history {
                let expected = books.apply(operation);
                prop_assert_eq!(operation.apply(&mut *lottery), expected, "{}", name);
                books.check(name, &mut *lottery);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(2),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_lotteries_agree_after_any_history(history in operations(200)) {
        let mut books = Books::default();
        let results: Vec<_> = history.iter().map(|&operation| books.apply(operation)).collect();
        let weights = books.weights();
        let mut tallies: Vec<(Named, Vec<u64>)> = Vec::new();
        for (name, mut lottery) in every_lottery(2) {
            for (operation, expected) in history.iter().zip(&results) {
                prop_assert_eq!(&operation.apply(&mut *lottery), expected, "{}", name);
            }
            let counts = wins(&mut *lottery, CLIENTS as usize, 10_000);
            tallies.push(((name, lottery), counts));
        }
        for ((name, _), counts) in &tallies {
            if weights.iter().any(|&weight| weight > 0.0) {
                let (counts, weights) = pooled(counts, &weights);
                let chi_square = ChiSquare::of(&counts, &weights);
                prop_assert!(!chi_square.refuses(), "{}: {:?}", name, chi_square);
            }
            for ((other, _), others) in &tallies {
                let chi_square = ChiSquare::between(counts, others);
                prop_assert!(!chi_square.refuses(), "{}, {}: {:?}", name, other, chi_square);
            }
        }
    }
}

/// Clients that expect fewer than ten wins go together, for the sake of the
/// chi-square test.
fn pooled(counts: &[u64], weights: &[f64]) -> (Vec<u64>, Vec<f64>) {
    let draws: u64 = counts.iter().sum();
    let total: f64 = weights.iter().sum();
    let (mut large, mut small) = ((Vec::new(), Vec::new()), (0, 0.0));
    for (&count, &weight) in counts.iter().zip(weights) {
        if weight == 0.0 {
            assert_eq!(count, 0);
        } else if draws as f64 * weight / total < 10.0 {
            small = (small.0 + count, small.1 + weight);
        } else {
            large.0.push(count);
            large.1.push(weight);
        }
    }
    // Too small a pool would be a cell too small: it joins the first.
    if draws as f64 * small.1 / total < 10.0 {
        large.0[0] += small.0;
        large.1[0] += small.1;
    } else {
        large.0.push(small.0);
        large.1.push(small.1);
    }
    large
}
