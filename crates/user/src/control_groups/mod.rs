//! Control groups that hold losers down without any signal.
//!
//! ```text
//!   parent           a group around the engine in which this user may make groups, or a scope
//!   └─ prorata-...   the base: it holds no process
//!      ├─ client-2.0   the processes of a client
//!      ├─ client-5.1   `cpu.idle` or `cgroup.freeze` hold down all of them at once
//!      └─ released     processes that left their client and cannot go back home
//! ```
//!
//! `cpu.idle` lets a group run on CPUs that would be idle otherwise; it needs the cpu controller.
//! `cgroup.freeze` works without any controller. Neither interrupts a system call for good, no
//! parent sees a stopped child, and SIGKILL ends a frozen process at once.
//!
//! The table of deeds names the base before any group is used. So the guardian and the next
//! engine can undo what groups do: [`put_right`].

mod client;
mod hierarchy;
mod manager;
mod mover;
mod scope;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};

pub(crate) use client::{ControlGroup, Lodging};
pub(crate) use hierarchy::{MOUNTS, unified_path};
use hierarchy::{below, group_of, is_of_service, limits_what_leaves_for, lists, write};
use mover::Mover;

use crate::process_id::ProcessId;
use crate::sweep::Records;
use crate::table::Table;

/// How long an ending engine waits for processes in its groups that are on their way to their end.
const LONGEST_END: Duration = Duration::from_millis(300);

/// How often it looks for them.
const END_INTERVAL: Duration = Duration::from_millis(2);

/// The base group.
#[derive(Debug)]
pub(crate) struct ControlGroups {
    base: PathBuf,
    /// `cpu.idle` can be set and cleared in its groups.
    has_idle: bool,
    /// Moves processes here that this user may not move.
    mover: Option<Mover>,
    /// There is a scope, but no mover.
    lacks_mover: bool,
}

impl ControlGroups {
    /// Makes a base group around this process, and notes it in the table. The base is in
    /// a scope of the user's service manager. Without that it is in the nearest group where the cpu
    /// controller can be had, or failing that in the nearest in which this user may make groups.
    ///
    /// Changes no other group, except that it enables the cpu controller where this affects no
    /// other group. Takes some 50 ms, and seconds if the service manager hangs: not for the decision
    /// thread.
    pub(crate) fn open(table: &Table) -> io::Result<ControlGroups> {
        // Root may make groups anywhere.
        if rustix::process::geteuid().is_root() {
            return Self::open_at_once(table);
        }
        let name = base_name(table)?;
        let in_scope = scope::request().and_then(|scope| {
            let mut groups = Self::below(&scope, &name)?;
            let mover = Mover::start(&scope).inspect_err(|error| {
                tracing::info!("processes of logins keep their groups: {error}");
            });
            groups.lacks_mover = mover.is_err();
            groups.mover = mover.ok();
            Ok(groups)
        });
        let groups = in_scope.or_else(|error| {
            tracing::info!("no scope of a service manager: {error}");
            Self::near(&name)
        });
        groups?.noted_in(table)
    }

    /// The same without a request to the service manager.
    pub(crate) fn open_at_once(table: &Table) -> io::Result<ControlGroups> {
        Self::near(&base_name(table)?)?.noted_in(table)
    }

    fn noted_in(self, table: &Table) -> io::Result<ControlGroups> {
        table.note_control_groups(&self.base)?;
        Ok(self)
    }

    fn near(name: &str) -> io::Result<ControlGroups> {
        let own = hierarchy::group_of(std::process::id())?;
        let mount = hierarchy::mount()?;
        let mut nearest = Err(io::ErrorKind::PermissionDenied.into());
        for parent in own.ancestors().take_while(|dir| dir.starts_with(mount)) {
            match Self::below(parent, name) {
                Ok(groups) if groups.has_idle => return Ok(groups),
                Ok(groups) if nearest.is_err() => nearest = Ok(groups),
                Ok(_) => {}
                // What is farther is not ours either.
                Err(_) => break,
            }
        }
        nearest
    }

    fn below(parent: &Path, name: &str) -> io::Result<ControlGroups> {
        access(parent, Access::WRITE_OK)?;
        access(parent.join("cgroup.procs"), Access::WRITE_OK)?;
        let base = parent.join(name);
        make(&base)?;
        let mut groups = ControlGroups {
            base,
            has_idle: false,
            mover: None,
            lacks_mover: false,
        };
        enable_cpu(parent, &groups.base);
        let _ = write(&groups.base, "cgroup.subtree_control", "+cpu");
        groups.has_idle = groups.try_out()?;
        Ok(groups)
    }

    /// Returns whether `cpu.idle` works in a new group. Fails if not even `cgroup.freeze` does.
    fn try_out(&self) -> io::Result<bool> {
        let trial = self.base.join("trial");
        make(&trial)?;
        let there_and_back =
            |file: &str| write(&trial, file, "1").and_then(|()| write(&trial, file, "0"));
        let idles = there_and_back("cpu.idle").is_ok();
        let freezes = there_and_back("cgroup.freeze");
        remove(&trial);
        freezes.map(|()| idles)
    }

    /// Whether processes of logins stay outside because their user does not linger.
    pub(crate) fn lacks_mover(&self) -> bool {
        self.lacks_mover
    }

    /// Whether a process may go to one of the groups.
    pub(crate) fn may_take(&self, pid: u32) -> bool {
        group_of(pid).is_ok_and(|home| {
            let may_leave = !is_of_service(&home) && !limits_what_leaves_for(&home, &self.base);
            may_leave && (self.may_move_from(&home) || self.mover.is_some())
        })
    }

    /// Whether this user may move processes from a group to the base: that takes the right to write
    /// to the nearest group around both.
    fn may_move_from(&self, home: &Path) -> bool {
        let mut around = self.base.ancestors();
        let common = around.find(|group| home.starts_with(group));
        common.is_some_and(|group| access(group.join("cgroup.procs"), Access::WRITE_OK).is_ok())
    }

    /// Asks for a process to be moved to a group by a service manager. Returns whether one may do
    /// that.
    fn ask_to_move(&self, process: ProcessId, group: &Path) -> bool {
        let mover = self.mover.iter();
        mover.inspect(|mover| mover.ask(process, group)).count() > 0
    }

    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    pub(crate) fn has_idle(&self) -> bool {
        self.has_idle
    }

    /// Removes the groups of clients that have gone. Returns whether none is left: a process on its
    /// way to its end keeps its group for a moment.
    pub(crate) fn tidy(&self, in_use: &HashSet<&Path>) -> bool {
        let mut is_tidy = true;
        for group in below(&self.base) {
            if !in_use.contains(group.as_path()) {
                remove(&group);
                is_tidy &= !group.exists();
            }
        }
        is_tidy
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        let begun = Instant::now();
        loop {
            self.tidy(&HashSet::new());
            remove(&self.base);
            if !self.base.exists() || begun.elapsed() > LONGEST_END {
                return;
            }
            std::thread::sleep(END_INTERVAL);
        }
    }
}

/// No other engine's base has this name.
fn base_name(table: &Table) -> io::Result<String> {
    Ok(format!("prorata-{}", table.name()?))
}

/// Enables the cpu controller for the base, unless that affects another group. Where it fails,
/// the base does without.
fn enable_cpu(parent: &Path, base: &Path) {
    let affects_others = below(parent).iter().any(|group| group != base);
    if !affects_others && !lists(parent, "cgroup.subtree_control", "cpu") {
        let _ = write(parent, "cgroup.subtree_control", "+cpu");
    }
}

/// A group of the same name may be left of an engine that died.
fn make(group: &Path) -> io::Result<()> {
    match std::fs::create_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Removes a group, unless a process or a group is in it: such a group does no harm.
fn remove(group: &Path) {
    let _ = std::fs::remove_dir(group);
}

/// Lets all groups below a base run freely, and removes those without a process unless their
/// engine lives. Returns how many were held down.
pub(crate) fn put_right(base: &Path, records: Records) -> u32 {
    let mut restored = 0;
    for group in below(base) {
        let held = is_held(&group);
        let _ = write(&group, "cpu.idle", "0");
        let thawed = write(&group, "cgroup.freeze", "0");
        restored += u32::from(held && thawed.is_ok());
        if records == Records::Clear {
            remove(&group);
        }
    }
    if records == Records::Clear {
        remove(base);
    }
    restored
}

/// Whether any of the engine's groups is held down.
pub(crate) fn are_held(table: &Table) -> bool {
    let base = table.control_groups();
    base.is_some_and(|base| below(&base).iter().any(|group| is_held(group)))
}

fn is_held(group: &Path) -> bool {
    lists(group, "cgroup.freeze", "1") || lists(group, "cpu.idle", "1")
}
