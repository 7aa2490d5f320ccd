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

use crate::host::{Host, Origin};
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
    let origin = host.origin(process.id.pid)?;
    if origin.effective_uid == 0 {
        return Some(Reason::RootsRights);
    }
    if is_ours(host, &origin) {
        let is_part = keeps_client || process.name == GUARDIAN || origin.command == "daemon";
        return is_part.then_some(Reason::PartOfProrata);
    }
    let parent = host
        .process(process.parent)
        .filter(|parent| parent.uid == 0);
    let of_parent = parent.and_then(|parent| host.origin(parent.id.pid));
    let runs_parents_program = of_parent
        .is_some_and(|parent| parent.effective_uid == 0 && parent.program == origin.program);
    if process.has_not_executed && runs_parents_program && origin.program.is_some() {
        return Some(Reason::PartOfDaemon);
    }
    let is_managers = origin.control_group.ends_with(MANAGERS_GROUP);
    is_managers.then_some(Reason::PartOfManager)
}

/// Whether this process runs the daemon's program.
pub(crate) fn runs_prorata(host: &dyn Host, pid: u32) -> bool {
    host.origin(pid)
        .is_some_and(|origin| is_ours(host, &origin))
}

fn is_ours(host: &dyn Host, origin: &Origin) -> bool {
    let own = host.origin(host.own_pid()).and_then(|own| own.program);
    own.is_some() && own == origin.program
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ALICE, DAEMON, FakeHost};

    const SSHD: u32 = 300;
    const PROGRAM: Option<(u64, u64)> = Some((1, 7));

    /// Alice's process with this parent, the program of which is root's 300, and otherwise so.
    fn reason_for(parent: u32, change: impl Fn(&mut Origin, &mut ProcessInfo)) -> Option<Reason> {
        let mut host = FakeHost::new(0);
        host.add(100, parent, ALICE, "any");
        let mut process = host.process(100).unwrap();
        let mut origin = host.origin(100).unwrap();
        change(&mut origin, &mut process);
        let of_sshd = Origin {
            program: PROGRAM,
            ..host.origin(SSHD).unwrap()
        };
        host.origins.insert(SSHD, of_sshd);
        host.origins.insert(100, origin);
        reason(&host, &process, false)
    }

    #[test]
    fn programs_of_users_have_no_reason() {
        assert_eq!(reason_for(1, |_, _| ()), None);
        assert_eq!(reason_for(SSHD, |_, _| ()), None);
        let named = reason_for(SSHD, |_, process| process.name = "sshd".into());
        assert_eq!(named, None, "a name is not enough");
    }

    #[test]
    fn a_daemons_child_that_gave_up_roots_rights_is_left_alone() {
        let same = |origin: &mut Origin, process: &mut ProcessInfo| {
            origin.program = PROGRAM;
            process.has_not_executed = true;
        };
        assert_eq!(reason_for(SSHD, same), Some(Reason::PartOfDaemon));
        assert_eq!(reason_for(101, same), None, "another user's parent");
        let executed = |origin: &mut Origin, _: &mut ProcessInfo| origin.program = PROGRAM;
        assert_eq!(reason_for(SSHD, executed), None, "anyone may run a program");
        let unknown = |origin: &mut Origin, process: &mut ProcessInfo| {
            origin.program = None;
            process.has_not_executed = true;
        };
        assert_eq!(reason_for(301, unknown), None);
    }

    #[test]
    fn set_uid_programs_and_the_service_manager_are_left_alone() {
        let rights = reason_for(1, |origin, _| origin.effective_uid = 0);
        assert_eq!(rights, Some(Reason::RootsRights));
        let group = |group: &'static str| {
            reason_for(1, move |origin, _| origin.control_group = group.into())
        };
        let own = "/user.slice/user-1000.slice/user@1000.service/init.scope";
        assert_eq!(group(own), Some(Reason::PartOfManager));
        assert_eq!(group("/user.slice/user-1000.slice/session-3.scope"), None);
        assert_eq!(group("/user.slice/user-1000.slice/not-init.scope"), None);
    }

    #[test]
    fn of_prorata_only_what_watches_over_clients_is_left_alone() {
        let ours = FakeHost::new(0).origin(DAEMON).unwrap().program;
        let part = |name: &'static str, command: &'static str| {
            reason_for(1, move |origin, process| {
                origin.program = ours;
                origin.command = command.into();
                process.name = name.into();
            })
        };
        assert_eq!(part("prorata", "daemon"), Some(Reason::PartOfProrata));
        assert_eq!(part(GUARDIAN, GUARDIAN), Some(Reason::PartOfProrata));
        assert_eq!(part("prorata", "load"), None);
        let mut host = FakeHost::new(0);
        let origin = Origin {
            program: ours,
            ..host.origin(100).unwrap()
        };
        host.origins.insert(100, origin);
        let process = host.process(100).unwrap();
        assert_eq!(reason(&host, &process, true), Some(Reason::PartOfProrata));
        assert!(runs_prorata(&host, 100) && !runs_prorata(&host, 101));
    }
}
