//! Which client has which CPU, where clients may not use all CPUs.
//!
//! Winners are placeable if there is a matching: CPUs for each, all different
//! and of its own affinity. A matching grows along a way: the new winner takes
//! a CPU, the holder of that CPU moves to another, and so on, up to a free CPU.
//! A further winner is placeable beside the others exactly if there is such a
//! way, whichever matching the others are in (Berge, 1957). Sets of placeable
//! winners are a matroid (transversal), so a policy that picks clients in order
//! and passes over those that are not placeable beside the winners so far picks
//! the best winners.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::affinity::Affinity;

/// Some CPUs and their holders, by number. A search for a CPU allocates.
#[derive(Clone, Debug)]
pub struct Matching {
    /// The first of its CPUs.
    first: u32,
    /// By CPU.
    holders: Vec<Option<u32>>,
    /// Of the clients that may not use all CPUs.
    affinities: BTreeMap<u32, Affinity>,
}

impl Matching {
    /// Of these CPUs, all free. All clients may use all of them.
    pub fn new(cpus: Range<u32>) -> Self {
        Self {
            first: cpus.start,
            holders: vec![None; cpus.len()],
            affinities: BTreeMap::new(),
        }
    }

    /// Has these CPUs from now on, all free.
    pub fn set_cpus(&mut self, cpus: Range<u32>) {
        self.first = cpus.start;
        self.holders.clear();
        self.holders.resize(cpus.len(), None);
    }

    /// A client without CPUs may use the CPUs of an affinity, or all.
    pub fn set_affinity(&mut self, client: u32, affinity: Option<&Affinity>) {
        match affinity {
            Some(affinity) => self.affinities.insert(client, affinity.clone()),
            None => self.affinities.remove(&client),
        };
    }

    /// The affinity of a client, if it has one.
    pub fn affinity(&self, client: u32) -> Option<&Affinity> {
        self.affinities.get(&client)
    }

    /// Whether any client has an affinity.
    pub fn is_confining(&self) -> bool {
        !self.affinities.is_empty()
    }

    /// The CPUs that a client has.
    pub fn cpus_of(&self, client: u32) -> impl Iterator<Item = u32> {
        let held = (self.first..).zip(&self.holders);
        held.filter_map(move |(cpu, holder)| (*holder == Some(client)).then_some(cpu))
    }

    /// Whether a client can have one more CPU.
    pub fn has_room_for(&self, client: u32) -> bool {
        self.way(client, |_| true).is_some()
    }

    /// Gives a client one more CPU; other holders may move for that. If there is no way,
    /// changes nothing and returns false.
    pub fn seat(&mut self, client: u32) -> bool {
        self.seat_among(client, |_| true)
    }

    /// The same, where it and other holders may take only such CPUs.
    fn seat_among(&mut self, client: u32, is_open: impl Fn(u32) -> bool + Copy) -> bool {
        let Some(way) = self.way(client, is_open) else {
            return false;
        };
        let mut mover = client;
        for cpu in way {
            if let Some(next) = self.holders[(cpu - self.first) as usize].replace(mover) {
                mover = next;
            }
        }
        true
    }

    /// Gives a client a certain CPU, if that is free and the client may use it.
    pub fn seat_at(&mut self, client: u32, cpu: u32) -> bool {
        let fits = self.holder(cpu).is_none() && self.may_use(client)(cpu);
        if fits {
            self.holders[(cpu - self.first) as usize] = Some(client);
        }
        fits
    }

    /// Gives a client a certain CPU for another of the CPUs in `open` that it has. Other holders
    /// may move among these. If there is no way, changes nothing and returns false. A client that
    /// has the CPU keeps it.
    pub fn move_to(&mut self, client: u32, cpu: u32, open: &[u32]) -> bool {
        if self.holder(cpu) == Some(client) {
            return true;
        }
        let left = open.iter().rfind(|&&cpu| self.holder(cpu) == Some(client));
        let (Some(&left), true) = (left, self.may_use(client)(cpu)) else {
            return false;
        };
        let before = self.holders.clone();
        self.holders[(left - self.first) as usize] = None;
        let displaced = self.holders[(cpu - self.first) as usize].replace(client);
        let is_open = |other: u32| other != cpu && open.contains(&other);
        let moved = displaced.is_none_or(|displaced| self.seat_among(displaced, is_open));
        if !moved {
            self.holders = before;
        }
        moved
    }

    /// Takes so many CPUs from a client.
    pub fn unseat(&mut self, client: u32, cpus: u32) {
        let held = self.holders.iter_mut();
        let held = held.filter(|holder| **holder == Some(client));
        held.take(cpus as usize).for_each(|holder| *holder = None);
    }

    fn way(&self, client: u32, is_open: impl Fn(u32) -> bool + Copy) -> Option<Vec<u32>> {
        find_way(
            client,
            self.cpus(),
            |cpu| self.holder(cpu),
            |client| {
                let may_use = self.may_use(client);
                move |cpu| is_open(cpu) && may_use(cpu)
            },
        )
    }

    /// The first of its CPUs.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Its CPUs.
    pub fn cpus(&self) -> Range<u32> {
        self.first..self.first + self.holders.len() as u32
    }

    /// The client that has a CPU.
    pub fn holder(&self, cpu: u32) -> Option<u32> {
        self.holders[(cpu - self.first) as usize]
    }

    /// Whether a client may use a CPU.
    fn may_use(&self, client: u32) -> impl Fn(u32) -> bool {
        let cpus = self.first..self.first + self.holders.len() as u32;
        let affinity = self.affinities.get(&client);
        let affinity =
            affinity.filter(|affinity| cpus.into_iter().any(|cpu| affinity.contains(cpu)));
        move |cpu| affinity.is_none_or(|affinity| affinity.contains(cpu))
    }
}

/// The CPUs of a shortest way to a CPU for a client: the client takes the first,
/// the holder of each moves to the next, and the last is free. None if there is
/// no way. `may_use` says of a client which CPUs it may use.
///
/// Cost: O(CPUs) if the client may use a CPU that is free, else up to
/// O(CPUs x holders).
pub fn find_way<M: Fn(u32) -> bool>(
    client: u32,
    cpus: Range<u32>,
    holder: impl Fn(u32) -> Option<u32>,
    may_use: impl Fn(u32) -> M,
) -> Option<Vec<u32>> {
    let first = cpus.start;
    let usable = may_use(client);
    if let Some(free) = cpus
        .clone()
        .find(|&cpu| holder(cpu).is_none() && usable(cpu))
    {
        return Some(vec![free]);
    }
    // By CPU: where the way to it comes from, itself at the begin of a way.
    let mut before = vec![None; cpus.len()];
    let mut queue: VecDeque<u32> = cpus.clone().filter(|&cpu| usable(cpu)).collect();
    queue
        .iter()
        .for_each(|&cpu| before[(cpu - first) as usize] = Some(cpu));
    let mut moved = Vec::new();
    while let Some(cpu) = queue.pop_front() {
        let Some(mover) = holder(cpu) else { continue };
        if moved.contains(&mover) {
            continue;
        }
        moved.push(mover);
        let may_move = may_use(mover);
        for next in cpus.clone().filter(|&next| may_move(next)) {
            let place = (next - first) as usize;
            if before[place].is_some() {
                continue;
            }
            before[place] = Some(cpu);
            if holder(next).is_none() {
                return Some(trace_back(&before, first, next));
            }
            queue.push_back(next);
        }
    }
    None
}

fn trace_back(before: &[Option<u32>], first: u32, last: u32) -> Vec<u32> {
    let mut way = vec![last];
    let mut cpu = last;
    while let Some(from) = before[(cpu - first) as usize].filter(|&from| from != cpu) {
        way.push(from);
        cpu = from;
    }
    way.reverse();
    way
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng as _, SeedableRng as _, Xoshiro256PlusPlus, below};

    fn set(cpus: &[u32]) -> Affinity {
        cpus.iter().copied().collect()
    }

    #[test]
    fn holders_move_to_make_room() {
        let mut matching = Matching::new(4..7);
        matching.set_affinity(2, Some(&set(&[4, 5])));
        matching.set_affinity(3, Some(&set(&[4])));
        assert!(matching.seat(1) && matching.seat(2));
        assert_eq!(matching.cpus_of(1).collect::<Vec<_>>(), [4]);
        assert!(matching.seat(3), "client 1 moves, as it may use all");
        assert_eq!(matching.cpus_of(3).collect::<Vec<_>>(), [4]);
        assert_eq!(matching.cpus_of(2).collect::<Vec<_>>(), [5]);
        assert_eq!(matching.cpus_of(1).collect::<Vec<_>>(), [6]);
        assert!(!matching.has_room_for(1) && !matching.seat(1));
        matching.unseat(3, 1);
        assert!(matching.has_room_for(1), "all may move");
    }

    #[test]
    fn clients_of_one_cpu_do_not_win_together() {
        let mut matching = Matching::new(0..2);
        matching.set_affinity(1, Some(&set(&[0])));
        matching.set_affinity(2, Some(&set(&[0])));
        assert!(matching.seat(1) && !matching.seat(2) && !matching.seat(1));
        assert!(matching.seat(3));
        matching.unseat(1, 1);
        assert!(matching.seat_at(2, 0) && !matching.seat_at(1, 0) && !matching.seat_at(2, 1));
    }

    #[test]
    fn an_affinity_without_any_of_the_cpus_confines_to_none() {
        let mut matching = Matching::new(0..1);
        matching.set_affinity(1, Some(&set(&[3])));
        assert!(matching.is_confining() && matching.seat(1));
    }

    /// Most clients that can have a CPU each: by trying all ways to leave some out.
    fn most(affinities: &[Affinity], cpus: u32) -> usize {
        fn place(affinities: &[Affinity], free: u32, cpus: u32) -> usize {
            let Some((first, rest)) = affinities.split_first() else {
                return 0;
            };
            let usable = (0..cpus).filter(|&cpu| free >> cpu & 1 == 1 && first.contains(cpu));
            let with = usable.map(|cpu| 1 + place(rest, free & !(1 << cpu), cpus));
            with.max().unwrap_or(0).max(place(rest, free, cpus))
        }
        place(affinities, u32::MAX, cpus)
    }

    #[test]
    fn as_many_are_seated_in_any_order_as_can_be() {
        for seed in 0..2000 {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let cpus = 1 + below(&mut random, 4) as u32;
            let affinities: Vec<Affinity> = (0..1 + below(&mut random, 6))
                .map(|_| 1 + below(&mut random, (1 << cpus) - 1))
                .map(|bits| (0..cpus).filter(|cpu| bits >> cpu & 1 == 1).collect())
                .collect();
            let mut matching = Matching::new(0..cpus);
            for (client, affinity) in (0..).zip(&affinities) {
                matching.set_affinity(client, Some(affinity));
            }
            let mut seated = 0;
            for client in 0..affinities.len() as u32 {
                seated += usize::from(matching.seat(client));
                // Others come and go in between.
                if random.next_u64() % 4 == 0 && matching.cpus_of(client).next().is_some() {
                    matching.unseat(client, 1);
                    assert!(matching.seat(client), "seed {seed}");
                }
            }
            assert_eq!(seated, most(&affinities, cpus), "seed {seed}");
            for (client, affinity) in (0..).zip(&affinities) {
                let mut held = matching.cpus_of(client);
                assert!(held.all(|cpu| affinity.contains(cpu)), "seed {seed}");
            }
        }
    }
}
