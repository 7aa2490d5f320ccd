//! Choice among clients that may not use all CPUs.
//!
//! While some client has an affinity, a [`Matching`] places all turns. Without
//! affinities there is none, and none of this costs anything.
//!
//! Under stride scheduling and EEVDF a client that was passed over stays first,
//! so each client gets its rate. Other policies come near it: a lottery on several
//! CPUs favours clients with few tickets, with affinities or without, and in the
//! tree of hierarchical stride scheduling neighbours repay a debt late.

use alloc::boxed::Box;

use super::{Chooser, Turn};
use crate::affinity::Affinity;
use crate::ids::ClientIndex;
use crate::matching::Matching;

impl Chooser {
    /// From now on a client may use the CPUs of an affinity, or all. If that is
    /// new, its turn ends.
    pub fn set_affinity(&mut self, client: ClientIndex, affinity: Option<&Affinity>) {
        let known = self.matching.as_ref();
        if known.and_then(|matching| matching.affinity(client.0)) == affinity {
            return;
        }
        self.end_turn(client);
        let turns = &self.turns;
        let placed = || Box::new(place_all(Matching::new(self.cpus.clone()), turns));
        let matching = self.matching.get_or_insert_with(placed);
        matching.set_affinity(client.0, affinity);
        if !matching.is_confining() {
            self.matching = None;
        }
    }

    /// The first client in the policy's order that may be chosen and is placeable
    /// beside the turns that last, taken from the policy.
    #[cold]
    pub(super) fn pick_placeable(&mut self) -> Option<ClientIndex> {
        let (passed_over, matching) = (&self.passed_over, &mut self.matching);
        self.policy.take_first(&mut |client| {
            let matching = matching.as_mut();
            !passed_over.contains(&client) && matching.is_none_or(|m| m.seat(client.0))
        })
    }

    /// Whether a client with a turn can use a further CPU.
    #[inline]
    pub(super) fn can_widen(&self, turn: &Turn) -> bool {
        let matching = self.matching.as_ref();
        turn.threads > turn.cpus
            && matching.is_none_or(|matching| matching.has_room_for(turn.client.0))
    }

    /// Other CPUs than before are shared out, and no turn lasts.
    pub(super) fn rematch(&mut self) {
        if let Some(matching) = &mut self.matching {
            matching.set_cpus(self.cpus.clone());
        }
    }

    /// A client loses so many CPUs.
    #[inline]
    pub(super) fn unseat(&mut self, client: ClientIndex, cpus: u32) {
        if let Some(matching) = &mut self.matching {
            unseat(matching, client, cpus);
        }
    }

    /// A client that can have a further CPU gets it.
    pub(super) fn seat(&mut self, client: ClientIndex) {
        if let Some(matching) = &mut self.matching {
            matching.seat(client.0);
        }
    }
}

/// Apart, so that turns without affinities stay short.
#[cold]
fn unseat(matching: &mut Matching, client: ClientIndex, cpus: u32) {
    matching.unseat(client.0, cpus);
}

/// Places the turns of clients that may use all CPUs.
fn place_all(mut matching: Matching, turns: &[Turn]) -> Matching {
    for turn in turns {
        (0..turn.cpus).for_each(|_| {
            matching.seat(turn.client.0);
        });
    }
    matching
}
