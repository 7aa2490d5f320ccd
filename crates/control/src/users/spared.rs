//! Processes of users that are left alone, since a machine needs them to let users in and out.
//!
//! A name or a control group that a user may choose is no reason to leave a process alone, or any
//! program could hide. Some reasons are in a user's hands all the same, so that only root's rights
//! excuse a process that computes. The reasons are:
//!
//! - It works with root's rights: `sudo`, `su`, `passwd` and other set-uid programs.
//! - It runs the program that it was forked with, and its parent is root's and runs that, too: a
//!   daemon's child that gave up root's rights, as sshd has one for each login.
//! - It is in the service manager's own control group: the manager, and its helper `(sd-pam)`. A user
//!   may put other processes there, so two are left alone, the oldest ones.
//! - It is part of prorata: a daemon of that user, its guardian, or a `prorata run` that a daemon
//!   knows. They put things right when a daemon is killed.

use crate::host::Host;
use crate::process::ProcessInfo;

/// Why a process is left alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reason {
    RootsRights,
    PartOfDaemon,
    PartOfManager,
    PartOfProrata,
}

/// Processes in the control group of a user's service manager that are left alone.
pub(super) const MOST_OF_MANAGER: usize = 2;

/// The group of a service manager itself, see systemd.special(7).
const MANAGERS_GROUP: &str = "/init.scope";

/// What the guardian of a user engine is called.
const GUARDIAN: &str = "share-guardian";

/// The reason to leave a process alone, if there is one. `keeps_client`: it is known as the
/// `prorata run` of a client.
pub(super) fn reason(host: &dyn Host, process: &ProcessInfo, keeps_client: bool) -> Option<Reason> {
    let pid = process.id.pid;
    let origin = host.origin(pid)?;
    if origin.effective_uid == 0 {
        return Some(Reason::RootsRights);
    }
    if runs_prorata(host, pid) {
        let is_part = keeps_client || process.name == GUARDIAN || host.command(pid) == "daemon";
        return is_part.then_some(Reason::PartOfProrata);
    }
    if process.has_not_executed
        && is_roots(host, process.parent)
        && host.run_same_program(pid, process.parent)
    {
        return Some(Reason::PartOfDaemon);
    }
    let is_managers = origin.control_group.ends_with(MANAGERS_GROUP);
    is_managers.then_some(Reason::PartOfManager)
}

/// Whether this process runs the daemon's program.
pub(crate) fn runs_prorata(host: &dyn Host, pid: u32) -> bool {
    host.run_same_program(pid, host.own_pid())
}

fn is_roots(host: &dyn Host, pid: u32) -> bool {
    let is_real = host.process(pid).is_some_and(|process| process.uid == 0);
    is_real
        && host
            .origin(pid)
            .is_some_and(|origin| origin.effective_uid == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Origin;
    use crate::testing::{ALICE, DAEMON, FakeHost};

    const SSHD: u32 = 300;

    /// Why alice's process with this parent is left alone, if it is otherwise as told.
    fn reason_for(parent: u32, change: impl Fn(&mut FakeHost)) -> Option<Reason> {
        let mut host = FakeHost::new(0);
        host.add(100, parent, ALICE, "any");
        change(&mut host);
        reason(&host, &host.process(100).unwrap(), false)
    }

    fn process(host: &mut FakeHost) -> &mut ProcessInfo {
        host.processes.get_mut(&100).unwrap()
    }

    #[test]
    fn programs_of_users_have_no_reason() {
        assert_eq!(reason_for(1, |_| ()), None);
        assert_eq!(reason_for(SSHD, |_| ()), None);
        let named = reason_for(SSHD, |host| process(host).name = "sshd".into());
        assert_eq!(named, None, "a name is not enough");
    }

    #[test]
    fn a_daemons_child_that_gave_up_roots_rights_is_left_alone() {
        let forked = |host: &mut FakeHost| process(host).has_not_executed = true;
        let same = |host: &mut FakeHost| {
            forked(host);
            host.programs.insert(100, SSHD);
        };
        assert_eq!(reason_for(SSHD, same), Some(Reason::PartOfDaemon));
        let of_another_user = |host: &mut FakeHost| {
            forked(host);
            host.programs.insert(100, 101);
        };
        assert_eq!(reason_for(101, of_another_user), None);
        let executed = |host: &mut FakeHost| {
            host.programs.insert(100, SSHD);
        };
        assert_eq!(reason_for(SSHD, executed), None, "anyone may run a program");
        assert_eq!(reason_for(SSHD, forked), None);
    }

    #[test]
    fn set_uid_programs_and_the_service_manager_are_left_alone() {
        let with = |change: &dyn Fn(&mut Origin)| {
            reason_for(1, |host| {
                let mut origin = host.origin(100).unwrap();
                change(&mut origin);
                host.origins.insert(100, origin);
            })
        };
        let rights = with(&|origin| origin.effective_uid = 0);
        assert_eq!(rights, Some(Reason::RootsRights));
        let group = |group: &str| with(&|origin| origin.control_group = group.into());
        let own = "/user.slice/user-1000.slice/user@1000.service/init.scope";
        assert_eq!(group(own), Some(Reason::PartOfManager));
        assert_eq!(group("/user.slice/user-1000.slice/session-3.scope"), None);
        assert_eq!(group("/user.slice/user-1000.slice/not-init.scope"), None);
    }

    #[test]
    fn of_prorata_only_what_watches_over_clients_is_left_alone() {
        let part = |name: &str, command: &'static str| {
            reason_for(1, |host| {
                host.programs.insert(100, DAEMON);
                host.commands.insert(100, command);
                process(host).name = name.into();
            })
        };
        assert_eq!(part("prorata", "daemon"), Some(Reason::PartOfProrata));
        assert_eq!(part(GUARDIAN, GUARDIAN), Some(Reason::PartOfProrata));
        assert_eq!(part("prorata", "load"), None);
        let mut host = FakeHost::new(0);
        host.programs.insert(100, DAEMON);
        let process = host.process(100).unwrap();
        assert_eq!(reason(&host, &process, true), Some(Reason::PartOfProrata));
        assert!(runs_prorata(&host, 100) && !runs_prorata(&host, 101));
    }
}
