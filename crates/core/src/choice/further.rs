//! A client with several threads gets several CPUs, one with each call.

use super::{Choice, Chooser, Reason};
use crate::ids::ClientIndex;

/// The CPUs that a client was chosen for but that were not asked for yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Further {
    pub(super) client: ClientIndex,
    pub(super) cpus: u32,
    why: Reason,
}

impl Chooser {
    /// Whether the next call of [`Self::next`] gives a further CPU to the
    /// client chosen last.
    #[inline]
    pub fn has_further(&self) -> bool {
        self.further.is_some_and(|further| {
            let turn = self.turn_of(further.client);
            self.cpus_free > 0 && turn.is_some_and(|turn| self.can_widen(turn))
        })
    }

    pub(super) fn keep_further(&mut self, client: ClientIndex, cpus: u32, why: Reason) {
        self.further = (cpus > 0).then_some(Further { client, cpus, why });
    }

    #[cold]
    pub(super) fn next_further(&mut self) -> Option<Choice> {
        let has_further = self.has_further();
        let Further { client, cpus, why } = self.further.take()?;
        if !has_further {
            return None;
        }
        self.keep_further(client, cpus - 1, why);
        let place = self.client(client).turn()?;
        let turn = &mut self.turns[place];
        turn.cpus += 1;
        self.cpus_free -= 1;
        let until_ns = turn.until_ns;
        self.seat(client);
        Some(Choice {
            client,
            until_ns,
            why,
        })
    }

    /// A CPU that no other client can use goes to a client with a turn that
    /// has waiting threads.
    pub(super) fn widen(&mut self) -> Option<Choice> {
        let given = u64::from(self.cpus.len() as u32 - self.cpus_free - self.cpus_in_slots);
        if self.turn_threads == given {
            return None;
        }
        let turn = self.turns.iter().find(|turn| self.can_widen(turn))?;
        let cpus = (turn.threads - turn.cpus).min(self.cpus_free);
        self.keep_further(turn.client, cpus, Reason::Spare);
        self.next_further()
    }
}
