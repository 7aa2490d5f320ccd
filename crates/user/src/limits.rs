//! Clients with limited CPU time. The dispatcher has a client pause that has exhausted its
//! allowance, and the engine holds the client down meanwhile, whatever idles.
//!
//! A client that sleeps when its pause begins is held down, too: awake, it would run until the
//! engine looked at it again.

use prorata_core::dispatcher::Dispatcher;

use crate::client::Client;
use crate::competition::Competition;
use crate::decision::DecisionThread;
use crate::time::MILLISECOND_NS;
use crate::tree::Tree;

/// How a client's limit stands.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Limit {
    #[default]
    None,
    /// The client may run.
    Kept,
    /// The client has exhausted its allowance and pauses.
    Exhausted,
}

impl Client {
    pub(crate) fn is_paused(&self) -> bool {
        self.limit == Limit::Exhausted
    }

    /// Ends the turn of a limited client when its allowance will be exhausted, as far as the
    /// engine can tell moments apart.
    pub(crate) fn shorten_turn(&mut self, until_ns: u64, now_ns: u64) {
        if self.limit != Limit::None {
            let end_ns = until_ns.max(now_ns + MILLISECOND_NS);
            self.turn_ends_ns = self.turn_ends_ns.min(end_ns);
        }
    }
}

/// Notes in each client how its limit stands. Returns when the first pause ends.
pub(crate) fn note_limits(tree: &mut Tree, dispatcher: &Dispatcher) -> Option<u64> {
    let mut any_changed = false;
    for client in tree.lively_mut() {
        let was_paused = client.is_paused();
        client.limit = match dispatcher.is_limited(client.id) {
            false => Limit::None,
            true if dispatcher.is_paused(client.id) => Limit::Exhausted,
            true => Limit::Kept,
        };
        any_changed |= client.is_paused() != was_paused;
    }
    // A client that pauses has no slots.
    tree.recast_due |= any_changed;
    dispatcher.next_resumption_ns()
}

impl Competition {
    /// Whether winners are to be looked at when their turns end even if they have no rivals.
    fn any_winner_is_limited(&self, tree: &Tree) -> bool {
        let mut winners = self.clients_that_won(tree);
        winners.any(|client| client.limit != Limit::None)
    }
}

impl DecisionThread {
    /// Plans to decide when a pause ends, and when a limited winner's turn does.
    pub(crate) fn plan_limits(&mut self) {
        if let Some(resumption_ns) = self.competition.next_resumption_ns() {
            self.wake_times.decide_by(resumption_ns);
        }
        if self.competition.any_winner_is_limited(&self.tree) {
            self.wake_times
                .decide_by(self.competition.first_end_ns(&self.tree));
        }
    }
}
