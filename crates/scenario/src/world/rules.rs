//! Tickets that change by rules while their client has threads.

use std::collections::BTreeMap;

use prorata_core::ids::TicketId;
use prorata_core::ledger::Operation;
use prorata_core::rng::Xoshiro256PlusPlus;

use crate::file::Rule;
use crate::plan::Group;
use crate::stream::{Purpose, stream};

/// The rules of a scenario's clients and their progress.
#[derive(Debug)]
pub struct Rules {
    /// By client.
    states: BTreeMap<u32, RuleState>,
}

#[derive(Debug)]
struct RuleState {
    rule: Rule,
    ticket: TicketId,
    lots: Xoshiro256PlusPlus,
    /// Whether its next change is scheduled.
    pending: bool,
}

/// A change by a rule.
#[derive(Debug)]
pub struct Change {
    /// The operation to apply now.
    pub operation: Operation,
    /// The new amount.
    pub amount: u32,
    /// Time until the next change is due.
    pub every_ns: u64,
}

impl Rules {
    /// The rules of a plan's groups before any client starts.
    pub fn new(groups: &[Group], seed: u64) -> Rules {
        let ruled = groups.iter().filter_map(|group| {
            let rule = group.rule.as_ref()?;
            Some(
                group
                    .clients
                    .clone()
                    .zip(&group.ruled)
                    .zip(std::iter::repeat(rule)),
            )
        });
        let states = ruled.flatten().map(|((client, &ticket), rule)| {
            let state = RuleState {
                rule: rule.clone(),
                ticket,
                lots: stream(seed, Purpose::Tickets, client.into()),
                pending: false,
            };
            (client, state)
        });
        Rules {
            states: states.collect(),
        }
    }

    /// Whether a starting client changes at once: it has a rule, and no earlier change is
    /// scheduled.
    pub fn begins(&self, client: u32) -> bool {
        self.states.get(&client).is_some_and(|state| !state.pending)
    }

    /// A change is due, but the client has no thread: its rule rests.
    pub fn rest(&mut self, client: u32) {
        if let Some(state) = self.states.get_mut(&client) {
            state.pending = false;
        }
    }

    /// The next change of a client that has received so much CPU time; nothing if it has no
    /// rule.
    pub fn follow(&mut self, client: u32, received_ns: u64) -> Option<Change> {
        let state = self.states.get_mut(&client)?;
        state.pending = true;
        let amount = state.rule.tickets(&mut state.lots, received_ns);
        let ticket = state.ticket;
        Some(Change {
            operation: Operation::SetAmount { ticket, amount },
            amount,
            every_ns: state.rule.every().0,
        })
    }
}
