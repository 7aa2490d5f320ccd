//! Clients that pause because they have exhausted the allowance of their limit: they are passed
//! over. They keep their places in the policy, as clients do that are not placeable.

use super::Chooser;
use crate::ids::ClientIndex;

impl Chooser {
    /// A client without a turn is not chosen from now on, or may be chosen again.
    pub(crate) fn pass_over(&mut self, client: ClientIndex, is_passed_over: bool) {
        match is_passed_over {
            true => self.passed_over.insert(client),
            false => self.passed_over.remove(&client),
        };
    }

    /// CPUs of a client's turn, with those that it was chosen for but that were not asked for yet.
    pub(crate) fn cpus_of_turn(&self, client: ClientIndex) -> u32 {
        let further = self.further.filter(|further| further.client == client);
        let turn = self.turn_of(client);
        turn.map_or(0, |turn| turn.cpus) + further.map_or(0, |further| further.cpus)
    }
}
