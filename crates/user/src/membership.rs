//! How processes come to their clients: by name, by birth, and by their markers.
//!
//! Which client that is, [`crate::ownership`] says; here newborn processes are noticed, and those
//! looked for whose parents do not tell.

use prorata_core::ids::ClientId;

use crate::births::Newborn;
use crate::error::EngineError;
use crate::marker::marked_client;
use crate::ownership::{Kinship, client_by_birth, client_by_marker, is_left_of};
use crate::process::{Origin, Process};
use crate::process_id::ProcessId;
use crate::procfs::{self, Stat};
use crate::scheduler;
use crate::threads::{Binding, Heritage};
use crate::tree::Tree;

/// Newborn strangers that are remembered until their markers are read.
const MAX_STRANGERS: usize = 4096;

impl Tree {
    /// Manages a process and its present descendants as part of a client.
    pub(crate) fn manage(
        &mut self,
        id: ClientId,
        process: ProcessId,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        let pid = process.pid;
        let stat = procfs::stat(pid).map_err(|_| EngineError::NoSuchProcess(pid))?;
        if stat.start_time_ticks != process.start_time_ticks || stat.has_ended() {
            return Err(EngineError::NoSuchProcess(pid));
        }
        if let Some(&client) = self.owners.get(&pid) {
            return Err(EngineError::AlreadyManaged { pid, client });
        }
        if stat.is_kernel_thread() || self.is_indispensable(pid) {
            return Err(EngineError::Indispensable(pid));
        }
        self.join(id, process, &stat, Origin::Named, now_ns)?;
        self.walk_below(now_ns);
        Ok(())
    }

    /// Manages all processes that carry a client's marker, began at or after a
    /// time and are this user's, anybody's if that is root, or of the users of
    /// its other processes. Returns how many joined.
    pub(crate) fn manage_marked(
        &mut self,
        id: ClientId,
        user: u32,
        since_ticks: u64,
        now_ns: u64,
    ) -> u32 {
        let before = self.process_count();
        for (pid, stat) in procfs::everyone() {
            if is_left_of(self, id, user, since_ticks, (pid, &stat)) {
                self.admit(id, pid, &stat, Origin::Named, now_ns);
            }
        }
        self.walk_below(now_ns);
        self.process_count() - before
    }

    /// Lets processes that were born join their parents' clients. Returns
    /// false if there were too many to look at each. Cost: 1.5 us if there
    /// were none in the whole system, else some more for each.
    pub(crate) fn notice_births(&mut self, now_ns: u64) -> bool {
        match self.births.since_last_look() {
            Newborn::Nobody => {}
            Newborn::Among(pids) => pids.for_each(|pid| self.notice(pid, now_ns)),
            Newborn::Unknown => {
                self.walk_due = true;
                return false;
            }
        }
        true
    }

    fn notice(&mut self, pid: u32, now_ns: u64) {
        let Ok(stat) = procfs::stat(pid) else {
            // Mostly it has ended. But it may not be there yet: a number is
            // given out some time before it can be looked up.
            if self.unseen.len() < MAX_STRANGERS {
                self.unseen.push(pid);
            }
            return;
        };
        if self.owners.contains_key(&pid) {
            return;
        }
        if stat.is_secondary_thread() {
            self.notice_thread(pid);
        } else if !self.join_parent(pid, &stat, now_ns)
            && !self.restore_posthumous(pid, &stat)
            && self.strangers.len() < MAX_STRANGERS
        {
            self.strangers.push(pid);
        }
    }

    fn notice_thread(&mut self, tid: u32) {
        let Ok(pid) = procfs::process_of_thread(tid) else {
            return;
        };
        let Some(&id) = self.owners.get(&pid) else {
            return;
        };
        let Some((client, journal)) = self.with_journal(id) else {
            return;
        };
        client.unsettled = true;
        if let Some(process) = client.processes.iter_mut().find(|p| p.id.pid == pid) {
            process.threads.expect_more();
            process.threads.refresh(journal);
        }
    }

    /// Puts a process under its parent's or foster parent's client. Returns
    /// whether there is one.
    fn join_parent(&mut self, pid: u32, stat: &Stat, now_ns: u64) -> bool {
        let Some(id) = client_by_birth(self, pid, stat) else {
            return false;
        };
        let client = self.client(id);
        let origin = match client.and_then(|client| client.heritage_of(stat.parent)) {
            Some(heritage) => Origin::Born(heritage),
            None => self.born_some_time_ago(id, pid),
        };
        self.admit(id, pid, stat, origin, now_ns);
        true
    }

    /// Puts a process under a client if that can be.
    fn admit(&mut self, id: ClientId, pid: u32, stat: &Stat, origin: Origin, now_ns: u64) {
        if self.is_indispensable(pid) || stat.has_ended() {
            return;
        }
        let process = ProcessId {
            pid,
            start_time_ticks: stat.start_time_ticks,
        };
        match self.join(id, process, stat, origin.clone(), now_ns) {
            Ok(()) | Err(EngineError::NoSuchProcess(_)) => {}
            Err(error) => {
                self.left_alone += 1;
                tracing::warn!("part of client {id} runs unmanaged: {error}");
                self.disinherit(process, stat, origin);
            }
        }
    }

    /// Finds those that escaped from their trees. To be called every second
    /// or so.
    pub(crate) fn survey(&mut self, now_ns: u64) {
        for pid in std::mem::take(&mut self.unseen) {
            let Ok(stat) = procfs::stat(pid) else {
                continue;
            };
            if stat.is_secondary_thread() {
                self.notice_thread(pid);
            } else if !self.owners.contains_key(&pid) {
                match client_by_birth(self, pid, &stat) {
                    Some(id) => {
                        let origin = self.born_some_time_ago(id, pid);
                        self.admit(id, pid, &stat, origin, now_ns);
                    }
                    None => self.strangers.push(pid),
                }
            }
        }
        let seen_before = std::mem::take(&mut self.unrecognised);
        for pid in std::mem::take(&mut self.strangers) {
            if !self.recognise(pid, now_ns) {
                self.unrecognised.push(pid);
            }
        }
        for pid in seen_before {
            self.recognise(pid, now_ns);
        }
        if self.walk_due {
            self.walk_through_births(now_ns);
            self.suspect_youngest();
        }
        self.review_foster_parents();
        self.review_some(now_ns);
        self.review_departed();
        self.release_again();
    }

    /// Puts a stranger under the client of its parent or of its marker. Returns
    /// false if neither tells of one, but may do so later: a process that is
    /// just becoming another program shows no environment.
    fn recognise(&mut self, pid: u32, now_ns: u64) -> bool {
        let Ok(stat) = procfs::stat(pid) else {
            return true;
        };
        if self.owners.contains_key(&pid) || self.join_parent(pid, &stat, now_ns) {
            return true;
        }
        let Some(id) = client_by_marker(self, pid, &stat) else {
            return false;
        };
        self.admit(id, pid, &stat, self.born_some_time_ago(id, pid), now_ns);
        true
    }

    /// Of those whose births went unnoticed some may have escaped.
    fn suspect_youngest(&mut self) {
        let room = MAX_STRANGERS.saturating_sub(self.strangers.len());
        let youngest = procfs::everyone().into_iter().rev().map(|(pid, _)| pid);
        let strangers = youngest.filter(|pid| !self.owners.contains_key(pid));
        self.strangers.extend(strangers.take(room));
    }

    /// The origin of a process that was noticed late, when its client may have
    /// been demoted and promoted, or bound, several times. Whether it chose
    /// for itself what it has cannot be known; that it is left demoted or
    /// bound would be worse than that its choice is lost.
    fn born_some_time_ago(&self, id: ClientId, pid: u32) -> Origin {
        let client = self.client(id);
        let Some(eldest) = client.and_then(|client| client.processes.first()) else {
            return Origin::Born(Heritage::NONE);
        };
        let mut heritage = eldest.threads.heritage();
        heritage.idle = true;
        if client.is_some_and(|client| client.was_bound)
            && let (Ok(own), Ok(ours)) = (eldest.threads.own_cpus(), scheduler::affinity(pid))
            && own != ours
        {
            heritage.bindings = vec![Binding { own, ours }];
        }
        Origin::Born(heritage)
    }

    /// Finds those whose births went unnoticed. Cost: that of a walk.
    pub(crate) fn walk_through_births(&mut self, now_ns: u64) {
        self.walk_due = false;
        self.walk(|tree, id, pid, _| tree.born_some_time_ago(id, pid), now_ns);
    }

    /// Finds those below processes that were just named. Others may be found
    /// on the way, born since births were noticed last. Cost: that of a walk.
    pub(crate) fn walk_below(&mut self, now_ns: u64) {
        self.walk(Self::found, now_ns);
    }

    /// The origin of a process that ran before it was managed, or that was
    /// just born to one to which something was done.
    fn found(&self, id: ClientId, _: u32, stat: &Stat) -> Origin {
        let client = self.client(id);
        let heritage = client.and_then(|client| client.heritage_of(stat.parent));
        match heritage.filter(|heritage| !heritage.is_none()) {
            Some(heritage) => Origin::Born(heritage),
            None => Origin::Found,
        }
    }

    /// Walks through all processes and lets those join whose parents have a
    /// client. Cost: 5 us for each process of the system.
    fn walk(&mut self, origin: fn(&Tree, ClientId, u32, &Stat) -> Origin, now_ns: u64) {
        // Parents first, as far as clock ticks tell; hence more than once.
        let all = procfs::everyone();
        loop {
            let before = self.process_count();
            for (pid, stat) in &all {
                if self.owners.contains_key(pid) {
                    continue;
                }
                if let Some(id) = client_by_birth(self, *pid, stat) {
                    self.admit(id, *pid, stat, origin(self, id, *pid, stat), now_ns);
                }
            }
            if self.process_count() == before {
                break;
            }
        }
    }
}

impl Tree {
    fn processes_of(&self, id: ClientId) -> &[Process] {
        self.client(id).map_or(&[], |client| &client.processes)
    }
}

impl Kinship for Tree {
    fn client_of(&self, pid: u32) -> Option<ClientId> {
        self.owners.get(&pid).copied()
    }

    fn fostered_by(&self, pid: u32) -> Vec<ClientId> {
        self.clients_fostered_by(pid)
    }

    fn marked(&self, pid: u32) -> Option<ClientId> {
        marked_client(pid, &self.socket)
    }

    fn user_of(&self, pid: u32) -> Option<u32> {
        procfs::real_uid(pid)
    }

    fn has_process_of(&self, id: ClientId, user: u32) -> bool {
        let mut processes = self.processes_of(id).iter();
        processes.any(|process| procfs::real_uid(process.id.pid) == Some(user))
    }

    fn began_by(&self, id: ClientId, ticks: u64) -> bool {
        let mut processes = self.processes_of(id).iter();
        processes.any(|process| process.id.start_time_ticks <= ticks)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write as _};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::foster::tests::{SOCKET, tree};
    use crate::{CLIENT_MARKER, SOCKET_MARKER};

    /// The environment of a process may be empty, or not its own yet, when it
    /// is looked at first.
    #[test]
    fn a_stranger_who_gets_his_marker_late_is_recognised() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut tree = tree(directory.path());
        let id = ClientId::from_parts(0, 0);
        let mut member = Command::new("sleep").arg("100").spawn().expect("starts");
        let known = ProcessId::of(member.id()).expect("it runs");
        tree.manage(id, known, 0).expect("it can be managed");
        let markers = format!("{CLIENT_MARKER}={id} {SOCKET_MARKER}={SOCKET}");
        // It becomes no other program once more: meanwhile it would show none.
        let script = format!("read line; exec env {markers} sh -c 'echo marked; read line'");
        let mut stranger = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        tree.notice(stranger.id(), 0);
        tree.survey(0);
        assert!(!tree.owners.contains_key(&stranger.id()));
        let to = stranger.stdin.as_mut().expect("it is ours");
        to.write_all(b"go on\n").expect("it reads");
        let mut said = BufReader::new(stranger.stdout.take().expect("it is ours")).lines();
        assert_eq!(said.next().expect("a line").expect("readable"), "marked");
        tree.survey(0);
        assert_eq!(tree.owners.get(&stranger.id()), Some(&id));
        for child in [&mut member, &mut stranger] {
            child.kill().expect("it runs");
            child.wait().expect("it ends");
        }
    }
}
