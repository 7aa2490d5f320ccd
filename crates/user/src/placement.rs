//! Placement: which CPUs the threads of a winner may use.
//!
//! The kernel moves runnable threads to idle CPUs, and clients are charged for what they use
//! meanwhile. But the kernel shares all CPUs out between threads. It knows neither that a client
//! won fewer CPUs than it has runnable threads, nor which CPU a winner has to leave to another one
//! that may not use all. As long as there is such a winner, each winner is bound to as many CPUs
//! as it won. So is each winner while there is load outside ([`crate::outside`]).

use prorata_core::affinity::Affinity;
use prorata_core::dispatcher::Winner;
use prorata_core::matching::Matching;
use prorata_core::placement::{LaggingWinner, place_by_lag};
use rustix::thread::CpuSet;

use crate::competition::Competition;
use crate::scheduler::members;
use crate::tree::Tree;

/// The usable ones of the shared CPUs as the dispatcher numbers them: by their places among the
/// shared ones. `None` if all are usable, or none.
pub(crate) fn affinity_of(usable: &CpuSet, shared: &CpuSet) -> Option<Affinity> {
    let places = members(shared).zip(0..);
    let usable = places.filter(|(cpu, _)| usable.is_set(*cpu));
    let affinity: Affinity = usable.map(|(_, place)| place).collect();
    (!affinity.is_whole(shared.count())).then_some(affinity)
}

/// Chooses the CPUs of the winners, if need be. Their sets are disjoint:
/// together they won no more than there are. A winner keeps its CPUs as far as possible, except
/// that with load outside the winner that is furthest behind gets the freest CPU. A winner that may
/// use no shared CPU is not bound. Allocates only where there is something to place.
pub(crate) fn place_winners(tree: &mut Tree, competition: &Competition) {
    let winners = competition.winners();
    let capacities = competition.outside().capacities();
    let has_rivals = winners.len() > 1;
    let mut need = has_rivals && capacities.is_some();
    for client in tree.lively_mut() {
        client.place = None;
        let is_crowded = client.cpus < client.runnable;
        let is_confined = client.affinity.is_some() && has_rivals;
        need |= client.is_winner() && (is_crowded || is_confined);
    }
    if !need {
        return;
    }
    let mut matching = match_winners(tree, winners);
    if let Some(capacities) = capacities {
        let lagging = winners.iter().map(|winner| LaggingWinner {
            client: winner.client.index(),
            lag_ns: tree.client(winner.client).map_or(0, |client| client.lag_ns),
        });
        let step_ns = competition.quantum_ns() / 2;
        place_by_lag(
            &mut matching,
            &lagging.collect::<Vec<_>>(),
            capacities,
            step_ns,
        );
    }
    let cpus: Vec<usize> = members(tree.cpus()).collect();
    for winner in winners {
        if let Some(client) = tree.client_mut(winner.client) {
            let mut place = CpuSet::new();
            let held = matching.cpus_of(winner.client.index());
            held.for_each(|number| place.set(cpus[number as usize]));
            // A client that won all CPUs of its affinity is on them anyhow.
            let whole = client.affinity.is_some() && place == client.usable;
            client.place = (client.usable.count() > 0 && !whole).then_some(place);
        }
    }
}

/// The winners on the shared CPUs, numbered by their places among these.
pub(crate) fn match_winners(tree: &Tree, winners: &[Winner]) -> Matching {
    let cpus: Vec<usize> = members(tree.cpus()).collect();
    let mut matching = Matching::new(0..cpus.len() as u32);
    for client in tree.lively() {
        matching.set_affinity(client.id.index(), client.affinity.as_ref());
    }
    // Those whose CPUs still fit first.
    for keep in [true, false] {
        for winner in winners {
            let client = tree.client(winner.client);
            let Some(bound) = client.and_then(|client| client.bound) else {
                continue;
            };
            if keep != (bound.count() == winner.cpus) {
                continue;
            }
            let before = (0..).zip(&cpus).filter(|(_, cpu)| bound.is_set(**cpu));
            for (number, _) in before.take(winner.cpus as usize) {
                matching.seat_at(winner.client.index(), number);
            }
        }
    }
    for winner in winners {
        let client = winner.client.index();
        let kept = matching.cpus_of(client).count() as u32;
        // There is a way, unless an affinity changed since the winners were picked.
        for _ in kept..winner.cpus {
            matching.seat(client);
        }
    }
    matching
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cpus: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|&cpu| set.set(cpu));
        set
    }

    #[test]
    fn an_affinity_counts_the_shared_cpus_alone() {
        let shared = set(&[2, 5, 900]);
        let affinity = affinity_of(&set(&[0, 5, 900]), &shared).expect("one is left out");
        assert_eq!(affinity.iter().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(affinity_of(&set(&[0, 2, 5, 900]), &shared), None);
        assert_eq!(affinity_of(&set(&[0]), &shared), None);
    }
}
