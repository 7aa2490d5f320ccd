//! Placement: which CPUs the threads of a winner may use.
//!
//! The kernel moves runnable threads to idle CPUs, and clients are charged for what they use
//! meanwhile. But the kernel shares all CPUs out between threads, and does not know that a client
//! won fewer CPUs than it has runnable threads. As long as there is such a winner, each winner is
//! bound to as many CPUs as it won.

use prorata_core::dispatcher::Winner;
use rustix::thread::CpuSet;

use crate::scheduler::{intersection, members};
use crate::tree::Tree;

/// Chooses the CPUs of the winners, if need be. Their sets are disjoint:
/// together they won no more than there are. A winner whose set still fits
/// keeps it. A winner that may use no free CPU is not bound. Allocates only
/// where there is something to place.
pub(crate) fn place_winners(tree: &mut Tree, winners: &[Winner]) {
    let mut crowded = false;
    for client in tree.clients_mut() {
        client.place = None;
        crowded |= client.is_winner() && client.cpus < client.runnable;
    }
    if !crowded {
        return;
    }
    // Those with the least choice first.
    let mut winners = winners.to_vec();
    winners.sort_by_key(|winner| {
        let client = tree.client(winner.client);
        client.map_or(0, |client| client.usable.count())
    });
    let mut free = *tree.cpus();
    for keep in [true, false] {
        for winner in &winners {
            let Some(client) = tree.client_mut(winner.client) else {
                continue;
            };
            if client.place.is_some() {
                continue;
            }
            let before = client.bound.unwrap_or_default();
            let open = intersection(&free, &client.usable);
            let fits = before.count() == winner.cpus && is_within(&before, &open);
            if keep && !fits {
                continue;
            }
            let place = if keep {
                before
            } else {
                choose(&open, &before, winner.cpus)
            };
            remove(&mut free, &place);
            client.place = (place.count() > 0).then_some(place);
        }
    }
}

/// So many of the free CPUs, the preferred ones first.
fn choose(free: &CpuSet, preferred: &CpuSet, count: u32) -> CpuSet {
    let mut chosen = CpuSet::new();
    let first = members(free).filter(|&cpu| preferred.is_set(cpu));
    let rest = members(free).filter(|&cpu| !preferred.is_set(cpu));
    let cpus = first.chain(rest).take(count as usize);
    cpus.for_each(|cpu| chosen.set(cpu));
    chosen
}

fn is_within(part: &CpuSet, whole: &CpuSet) -> bool {
    members(part).all(|cpu| whole.is_set(cpu))
}

fn remove(from: &mut CpuSet, part: &CpuSet) {
    members(part).for_each(|cpu| from.unset(cpu));
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
    fn preferred_cpus_are_chosen_first_and_only_free_ones() {
        let free = set(&[1, 2, 3, 900]);
        assert_eq!(choose(&free, &set(&[3]), 1), set(&[3]));
        assert_eq!(choose(&free, &set(&[0, 3]), 2), set(&[1, 3]));
        assert_eq!(choose(&free, &set(&[]), 4), free);
    }

    #[test]
    fn sets_are_compared_and_taken_away() {
        let mut free = set(&[1, 2, 900]);
        assert!(is_within(&set(&[1, 900]), &free) && !is_within(&set(&[0]), &free));
        remove(&mut free, &set(&[1, 900]));
        assert_eq!(free, set(&[2]));
    }
}
