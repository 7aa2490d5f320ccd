//! Which client a process belongs to: the one rule, for every engine.
//!
//! 1. A process belongs to the client that its caller named it for, and stays there until it is
//!    released: a child that is named for another client leaves its parent's.
//! 2. A newborn belongs to its parent's client ([`client_by_birth`]).
//! 3. A process whose parent ended is a child of its foster parent, the nearest child subreaper
//!    above it. It belongs to a client of which that is the foster parent. Where that may be
//!    several, or none, the marker in its environment tells.
//! 4. Failing that, a process belongs to the client that its marker names, if the marker is to
//!    be believed ([`client_by_marker`]): its owner can write any environment, and an earlier
//!    client may have had the same name.
//! 5. After a restart of the daemon, what is left of a client is found by its marker, as far as
//!    its journal vouches for it ([`is_left_of`]).
//!
//! Whichever rule finds a process, it joins only if the client may hold processes of its user
//! ([`Users`]).

use std::collections::BTreeSet;

use prorata_core::ids::ClientId;

use crate::procfs::Stat;

/// What an engine knows of processes and of the clients that have some.
pub trait Kinship {
    /// The client that a process belongs to.
    fn client_of(&self, pid: u32) -> Option<ClientId>;

    /// The clients whose orphans the process with this pid inherits, if it lives.
    fn fostered_by(&self, pid: u32) -> Vec<ClientId>;

    /// The client that the marker of a process names.
    fn marked(&self, pid: u32) -> Option<ClientId>;

    /// Real user of a process.
    fn user_of(&self, pid: u32) -> Option<u32>;

    /// Whether a process of the client is this user's.
    fn has_process_of(&self, client: ClientId, user: u32) -> bool;

    /// Whether a process of the client began at this time, in clock ticks since boot, or before.
    fn began_by(&self, client: ClientId, ticks: u64) -> bool;
}

/// The client that a process belongs to because of its parent, if it belongs to none yet.
pub fn client_by_birth(kin: &impl Kinship, pid: u32, stat: &Stat) -> Option<ClientId> {
    let fostered = kin.fostered_by(stat.parent);
    if fostered.is_empty() {
        return kin.client_of(stat.parent);
    }
    match kin.marked(pid) {
        Some(client) if fostered.contains(&client) => Some(client),
        Some(client) if is_believed(kin, client, pid, stat) => Some(client),
        _ => (fostered.len() == 1).then_some(fostered[0]),
    }
}

/// The client that a process belongs to because of its marker, if it belongs to none yet.
pub fn client_by_marker(kin: &impl Kinship, pid: u32, stat: &Stat) -> Option<ClientId> {
    let client = kin.marked(pid)?;
    is_believed(kin, client, pid, stat).then_some(client)
}

/// A marker is believed if the client has an older process, and has a process of the same user.
fn is_believed(kin: &impl Kinship, client: ClientId, pid: u32, stat: &Stat) -> bool {
    kin.began_by(client, stat.start_time_ticks) && is_of_its_user(kin, client, pid)
}

fn is_of_its_user(kin: &impl Kinship, client: ClientId, pid: u32) -> bool {
    let user = kin.user_of(pid);
    user.is_some_and(|user| kin.has_process_of(client, user))
}

/// A client that a journal knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownClient {
    /// The client.
    pub id: ClientId,
    /// Its owner.
    pub user: u32,
    /// When it began, in clock ticks since boot.
    pub since_ticks: u64,
}

/// Whether a process is left of a client that a journal knows. Such a process carries the
/// client's marker, has no client yet, and did not begin before the client. Its user is the
/// client's owner or the user of one of the client's processes; root may own processes of any
/// user.
pub fn is_left_of(kin: &impl Kinship, client: &KnownClient, pid: u32, stat: &Stat) -> bool {
    let KnownClient { id, user, .. } = *client;
    stat.start_time_ticks >= client.since_ticks
        && kin.client_of(pid).is_none()
        && kin.marked(pid) == Some(id)
        && (user == 0 || kin.user_of(pid) == Some(user) || is_of_its_user(kin, id, pid))
}

/// The users of a client. Their processes may join it without being named. They are the users of
/// the processes that a caller named or a journal vouches for; without any, the user of the first
/// process or foster parent.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Users(BTreeSet<u32>);

impl Users {
    /// Adds a user.
    pub fn add(&mut self, user: u32) {
        self.0.insert(user);
    }

    /// Adds a user unless there is one already.
    pub fn add_first(&mut self, user: u32) {
        if self.0.is_empty() {
            self.0.insert(user);
        }
    }

    /// Whether all are this one.
    pub fn are_only(&self, user: u32) -> bool {
        self.0.iter().eq([&user])
    }

    /// Whether a process of this user may join without being named. A client of root may have
    /// processes of all users.
    pub fn may_include(&self, user: u32) -> bool {
        self.0.is_empty() || self.0.contains(&user) || self.0.contains(&0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: u32 = 1000;
    const BOB: u32 = 1001;

    fn client(index: u32) -> ClientId {
        ClientId::from_parts(index, 0)
    }

    #[derive(Clone, Copy)]
    struct Known {
        pid: u32,
        user: u32,
        start_time_ticks: u64,
        client: Option<u32>,
        marker: Option<u32>,
    }

    /// Processes and foster parents of a small machine.
    #[derive(Default)]
    struct World {
        processes: Vec<Known>,
        foster_parents: Vec<(u32, u32)>,
    }

    impl World {
        fn of(processes: &[Known], foster_parents: &[(u32, u32)]) -> World {
            World {
                processes: processes.to_vec(),
                foster_parents: foster_parents.to_vec(),
            }
        }

        fn find(&self, pid: u32) -> Option<&Known> {
            self.processes.iter().find(|process| process.pid == pid)
        }

        fn processes_of(&self, id: ClientId) -> impl Iterator<Item = &Known> {
            let processes = self.processes.iter();
            processes.filter(move |process| process.client.map(client) == Some(id))
        }
    }

    impl Kinship for World {
        fn client_of(&self, pid: u32) -> Option<ClientId> {
            self.find(pid)?.client.map(client)
        }
        fn fostered_by(&self, pid: u32) -> Vec<ClientId> {
            let fostered = self.foster_parents.iter().filter(|(p, _)| *p == pid);
            fostered.map(|(_, index)| client(*index)).collect()
        }
        fn marked(&self, pid: u32) -> Option<ClientId> {
            self.find(pid)?.marker.map(client)
        }
        fn user_of(&self, pid: u32) -> Option<u32> {
            Some(self.find(pid)?.user)
        }
        fn has_process_of(&self, client: ClientId, user: u32) -> bool {
            self.processes_of(client)
                .any(|process| process.user == user)
        }
        fn began_by(&self, client: ClientId, ticks: u64) -> bool {
            let mut processes = self.processes_of(client);
            processes.any(|process| process.start_time_ticks <= ticks)
        }
    }

    /// Alice's, which began at its pid's number of ticks.
    fn process(pid: u32, client: Option<u32>) -> Known {
        Known {
            pid,
            user: ALICE,
            start_time_ticks: pid.into(),
            client,
            marker: None,
        }
    }

    fn marked(pid: u32, marker: u32) -> Known {
        Known {
            marker: Some(marker),
            ..process(pid, None)
        }
    }

    fn stat(parent: u32, start_time_ticks: u64) -> Stat {
        Stat::born(parent, start_time_ticks)
    }

    /// The client 1 of this user, since time 20.
    fn known(user: u32) -> KnownClient {
        KnownClient {
            id: client(1),
            user,
            since_ticks: 20,
        }
    }

    #[test]
    fn a_newborn_belongs_to_its_parents_client() {
        let world = World::of(&[process(10, Some(1)), marked(11, 2)], &[]);
        assert_eq!(client_by_birth(&world, 11, &stat(10, 11)), Some(client(1)));
        assert_eq!(client_by_birth(&world, 11, &stat(9, 11)), None);
    }

    #[test]
    fn an_orphan_belongs_to_the_only_client_of_its_foster_parent_whatever_its_marker() {
        let orphans = [process(20, None), marked(21, 1), marked(22, 7)];
        let world = World::of(&orphans, &[(5, 1)]);
        for orphan in [20, 21, 22] {
            let found = client_by_birth(&world, orphan, &stat(5, 20));
            assert_eq!(found, Some(client(1)), "{orphan}");
        }
    }

    #[test]
    fn an_orphan_of_a_shared_foster_parent_belongs_where_its_marker_tells() {
        let orphans = [process(20, None), marked(21, 2), marked(22, 7)];
        let world = World::of(&orphans, &[(5, 1), (5, 2)]);
        let found = [20, 21, 22].map(|orphan| client_by_birth(&world, orphan, &stat(5, 20)));
        assert_eq!(found, [None, Some(client(2)), None]);
    }

    /// The foster parent of client 2 ended, so its orphans went to that of client 1.
    #[test]
    fn an_orphan_of_a_dead_foster_parent_belongs_to_the_client_of_a_believed_marker() {
        let world = World::of(&[process(10, Some(2)), marked(21, 2)], &[(5, 1)]);
        assert_eq!(client_by_birth(&world, 21, &stat(5, 21)), Some(client(2)));
    }

    #[test]
    fn a_foster_parent_that_is_a_clients_own_gives_its_children_to_those_it_fosters() {
        let world = World::of(&[process(5, Some(3)), process(20, None)], &[(5, 1)]);
        assert_eq!(client_by_birth(&world, 20, &stat(5, 20)), Some(client(1)));
    }

    #[test]
    fn a_marker_is_believed_of_the_same_user_and_of_younger_processes_only() {
        let of_bob = Known {
            user: BOB,
            ..marked(22, 1)
        };
        let world = World::of(&[process(10, Some(1)), marked(21, 1), of_bob], &[]);
        let found = |pid, ticks| client_by_marker(&world, pid, &stat(1, ticks));
        assert_eq!(found(21, 10), Some(client(1)));
        assert_eq!(found(21, 9), None, "older than all of the client");
        assert_eq!(found(22, 22), None, "another user's");
        assert_eq!(found(23, 23), None, "without a marker");
    }

    #[test]
    fn a_marker_of_a_client_without_processes_is_not_believed() {
        let world = World::of(&[marked(21, 1)], &[]);
        assert_eq!(client_by_marker(&world, 21, &stat(1, 21)), None);
    }

    #[test]
    fn a_journal_vouches_for_the_owners_processes_since_the_client_began() {
        let of_bob = Known {
            user: BOB,
            ..marked(22, 1)
        };
        let taken = Known {
            client: Some(2),
            ..marked(23, 1)
        };
        let world = World::of(&[marked(21, 1), of_bob, taken, marked(24, 2)], &[]);
        let is_left = |owner, pid: u32| {
            let stat = stat(1, pid.into());
            is_left_of(&world, &known(owner), pid, &stat)
        };
        let pids = [21, 22, 23, 24];
        assert_eq!(
            pids.map(|pid| is_left(ALICE, pid)),
            [true, false, false, false]
        );
        assert_eq!(pids.map(|pid| is_left(0, pid)), [true, true, false, false]);
        let early = stat(1, 19);
        assert!(!is_left_of(&world, &known(ALICE), 21, &early));
    }

    #[test]
    fn users_of_other_processes_of_a_client_are_vouched_for_too() {
        let of_bob = |known| Known { user: BOB, ..known };
        let processes = [of_bob(process(20, Some(1))), of_bob(marked(21, 1))];
        let world = World::of(&processes, &[]);
        assert!(is_left_of(&world, &known(ALICE), 21, &stat(1, 21)));
    }

    #[test]
    fn users_may_join_that_were_named_and_all_where_root_was() {
        let mut users = Users::default();
        assert!(users.may_include(ALICE) && users.may_include(BOB));
        users.add_first(ALICE);
        users.add_first(BOB);
        assert!(users.may_include(ALICE) && !users.may_include(BOB));
        users.add(BOB);
        assert!(users.may_include(BOB) && !users.may_include(0));
        users.add(0);
        assert!(users.may_include(2000));
    }
}
