//! What stride scheduling has to know of clients that run out of order (1999): which of two
//! is due before the other, and what a client owes that comes back.

use super::ClientIndex;
use super::queue::before;
use super::stride::{PassPolicy, Wait};
use super::stride_position::{Participation, Remain};
use super::stride_service::{LONGEST_WAIT, MAX_SERVICE, STRIDE1};

impl<W: Wait> PassPolicy<W> {
    /// As [`super::Policy::precedes`].
    pub(super) fn is_due_before(
        &self,
        (client, used): (ClientIndex, u64),
        (other, other_used): (ClientIndex, u64),
        gain: u64,
        quantum: u64,
    ) -> bool {
        if !W::IS_EXACT {
            return true;
        }
        let pass = |client: ClientIndex, used: u64| {
            let position = self.positions.get(client.0 as usize)?;
            let tickets = u128::from(position.tickets()).max(1);
            let service = u128::from(STRIDE1) * u128::from(used) / u128::from(quantum.max(1));
            let ahead = (service / tickets).min(LONGEST_WAIT as u128) as i64;
            Some(position.lead(&self.global).saturating_add(ahead))
        };
        match (
            pass(client, used.saturating_add(gain)),
            pass(other, other_used),
        ) {
            (Some(one), Some(other)) => one < other,
            _ => false,
        }
    }

    /// As [`super::Policy::run_off`].
    pub(super) fn forgive(&mut self, client: ClientIndex, lead: u64, quantum: u64) {
        let service = u128::from(lead) * u128::from(STRIDE1) / u128::from(quantum.max(1));
        let owed = service.min(MAX_SERVICE.into()) + u128::from(STRIDE1);
        let Some(position) = self.positions.get_mut(client.0 as usize) else {
            return;
        };
        let remain = position.remain(&self.global);
        let forgiven = remain.0 - owed as i128;
        if position.participation != Participation::Left || forgiven <= 0 {
            return;
        }
        position.withdraw(Participation::Left, Remain(owed as i128));
        if W::IS_EXACT {
            // The others stand behind the present by what the client is ahead of it.
            self.global.retreat(forgiven as u128);
            if before(self.global.pass, self.held_at) {
                self.held_at = self.global.pass;
            }
        }
    }
}
