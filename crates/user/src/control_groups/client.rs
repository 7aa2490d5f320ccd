//! The control group of one client.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::hierarchy::{
    group_of, is_of_service, limits_what_leaves_for, processes_of, put_in, write,
};
use super::{ControlGroups, make, remove};
use crate::births::MAX_NOTICES;
use crate::client::Client;
use crate::group::GroupIndex;
use crate::process::{Process, Treatment};
use crate::table::Journal;
use crate::time::{SECOND_NS, monotonic_ns};

/// How long processes may take to arrive in a group after a service manager was asked.
const PATIENCE_WITH_MOVE_NS: u64 = 3 * SECOND_NS;

/// A group that holds the processes of a client, and may hold them down.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    directory: PathBuf,
    base: PathBuf,
    /// The home of the first process that has one: where others go whose home is not known.
    home: Option<Arc<Path>>,
    /// Without the cpu controller it has no `cpu.idle`.
    has_idle: bool,
    /// Its files, if they are kept open.
    freeze: Option<File>,
    idle: Option<File>,
    /// How the group is treated now.
    holds: Treatment,
}

/// Where a process is in the hierarchy of control groups.
#[derive(Clone, Debug)]
pub(crate) enum Lodging {
    /// Not in its client's group.
    Elsewhere,
    /// In its client's group, and to go back to this group. Unknown if no process of the client has
    /// such a home.
    InGroup { home: Option<Arc<Path>> },
}

impl ControlGroup {
    fn open(
        groups: &ControlGroups,
        client: impl std::fmt::Display,
        keeps_files: bool,
    ) -> io::Result<ControlGroup> {
        let directory = groups.base().join(format!("client-{client}"));
        make(&directory)?;
        let open = |file: &str| OpenOptions::new().write(true).open(directory.join(file));
        let has_idle = directory.join("cpu.idle").exists();
        let mut group = ControlGroup {
            has_idle,
            freeze: keeps_files.then(|| open("cgroup.freeze")).transpose()?,
            idle: (keeps_files && has_idle)
                .then(|| open("cpu.idle"))
                .transpose()?,
            base: groups.base().to_owned(),
            home: None,
            // The group of an engine that died may be held down.
            holds: Treatment::Stopped,
            directory,
        };
        group.hold(Treatment::Normal)?;
        Ok(group)
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Treats all processes in the group. Cost: 10 us, and for [`Treatment::Stopped`] and its end
    /// some more for each thread.
    fn hold(&mut self, treatment: Treatment) -> io::Result<()> {
        if treatment == self.holds {
            return Ok(());
        }
        let set = |kept: &Option<File>, file: &str, on: bool| {
            let text = if on { "1" } else { "0" };
            match kept {
                Some(file) => file.write_all_at(text.as_bytes(), 0),
                None => write(&self.directory, file, text),
            }
        };
        // A thawed process must not run before it is demoted, nor wake up demoted.
        if self.has_idle {
            set(&self.idle, "cpu.idle", treatment == Treatment::Idle)?;
        }
        set(
            &self.freeze,
            "cgroup.freeze",
            treatment == Treatment::Stopped,
        )?;
        self.holds = treatment;
        Ok(())
    }

    /// Lets a process in. Fails if it is not permitted to move, or if it would escape a limit.
    fn admit(&mut self, process: &Process) -> io::Result<Lodging> {
        let pid = process.id.pid;
        let home = group_of(pid)?;
        if home.starts_with(&self.directory) {
            return Ok(Lodging::InGroup { home: None });
        }
        if is_of_service(&home) || limits_what_leaves_for(&home, &self.directory) {
            let reason = format!("process {pid} stays in {}", home.display());
            return Err(io::Error::other(reason));
        }
        put_in(&self.directory, pid)?;
        if !process.is_alive() {
            // A later process may have its pid.
            if let Err(error) = put_in(&home, pid) {
                tracing::warn!("process {pid} may be in a wrong control group: {error}");
            }
            return Err(io::ErrorKind::NotFound.into());
        }
        // The group of another client is no home: it goes with that client.
        let is_of_client = home.starts_with(&self.base);
        let home: Option<Arc<Path>> = (!is_of_client).then(|| home.into());
        self.home = self.home.take().or_else(|| home.clone());
        Ok(Lodging::InGroup { home })
    }

    /// Lets a process out.
    fn dismiss(&self, process: &mut Process) {
        process.held_by_group = Treatment::Normal;
        let pid = process.id.pid;
        let home = match std::mem::replace(&mut process.lodging, Lodging::Elsewhere) {
            Lodging::InGroup { home } => home,
            Lodging::Elsewhere => return,
        };
        // An ended process needs no group, and its pid may be another's.
        if process.is_alive() {
            self.send_home(pid, home.as_deref());
        }
    }

    /// Whether a process is in the group, or in one below.
    fn has(&self, pid: u32) -> bool {
        group_of(pid).is_ok_and(|group| group.starts_with(&self.directory))
    }

    fn send_home(&self, pid: u32, home: Option<&Path>) {
        let mut homes = home.into_iter().chain(self.home.as_deref());
        if homes.any(|home| put_in(home, pid).is_ok()) {
            return;
        }
        let released = self.base.join("released");
        if let Err(error) = make(&released).and_then(|()| put_in(&released, pid)) {
            tracing::warn!("process {pid} stays in the control group of its client: {error}");
        }
    }
}

impl Drop for ControlGroup {
    /// Children that were born while their parents left are still there.
    fn drop(&mut self) {
        for _ in 0..MAX_NOTICES {
            let pids = processes_of(&self.directory);
            pids.iter().for_each(|&pid| self.send_home(pid, None));
            if pids.is_empty() {
                break;
            }
        }
        remove(&self.directory);
    }
}

impl Client {
    /// Puts all its processes in its control group. Unless all are there, each of them is treated by
    /// itself.
    pub(crate) fn gather(&mut self, groups: &ControlGroups, keeps_files: bool) {
        let result = match &mut self.control_group {
            Some(_) => Ok(()),
            none => {
                let opened = ControlGroup::open(groups, self.id, keeps_files);
                opened.map(|group| *none = Some(group))
            }
        };
        let gathered = result.and_then(|()| self.admit_all(groups));
        if gathered.is_ok() {
            self.moving_until_ns = 0;
        }
        if let Err(error) = &gathered
            && !std::mem::replace(&mut self.lacks_group, true)
        {
            tracing::info!("client {} does without a control group: {error}", self.id);
        }
        self.set_grouped(gathered.is_ok());
        if let Some(group) = self.control_group.as_mut().filter(|_| !self.grouped) {
            let _ = group.hold(Treatment::Normal);
            for process in &mut self.processes {
                process.held_by_group = Treatment::Normal;
            }
        }
    }

    /// Lets all processes in. Has those moved by a service manager that this user may not move.
    fn admit_all(&mut self, groups: &ControlGroups) -> io::Result<()> {
        let Some(group) = &mut self.control_group else {
            return Ok(());
        };
        let mut refused = Ok(());
        self.lacks_right = false;
        for index in 0..self.processes.len() {
            let process = &self.processes[index];
            if !matches!(process.lodging, Lodging::Elsewhere) {
                continue;
            }
            let lodging = match group.admit(process) {
                Ok(lodging) => lodging,
                Err(_) if !process.is_alive() => continue,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    let process = &mut self.processes[index];
                    if !std::mem::replace(&mut process.move_asked, true)
                        && groups.ask_to_move(process.id, &group.directory)
                        && self.moving_until_ns == 0
                    {
                        // Once: a client that forks all the time is held down at last.
                        self.moving_until_ns = monotonic_ns() + PATIENCE_WITH_MOVE_NS;
                    }
                    self.lacks_right = true;
                    refused = Err(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let process = &mut self.processes[index];
            process.lodging = lodging;
            process.held_by_group = group.holds;
        }
        refused
    }

    /// Whether some of its processes may be on their way to its control group. It is not held down
    /// meanwhile, since signals would have to stop it.
    pub(crate) fn is_moving(&self) -> bool {
        self.moving_until_ns > 0 && monotonic_ns() < self.moving_until_ns
    }

    /// Puts a child elsewhere that cannot be managed: it would be held down with the client, though
    /// it is no part of that.
    pub(crate) fn expel(&self, pid: u32) {
        if let Some(group) = self.control_group.as_ref().filter(|group| group.has(pid)) {
            group.send_home(pid, None);
        }
    }

    /// Where a child is at home that was born in the client's control group: where its parent is,
    /// or any other process of the client. `None` if it was not born there.
    pub(crate) fn birthplace_of(&self, pid: u32, parent: u32) -> Option<(GroupIndex, Lodging)> {
        let group = self.control_group.as_ref()?;
        let mut processes = self.processes.iter();
        let relative = processes.find(|process| process.id.pid == parent);
        let relative = relative.or(self.processes.first())?;
        let home = match &relative.lodging {
            Lodging::InGroup { home } => home.clone(),
            Lodging::Elsewhere => None,
        };
        let birthplace = (relative.group, Lodging::InGroup { home });
        group.has(pid).then_some(birthplace)
    }

    fn set_grouped(&mut self, grouped: bool) {
        self.unsettled |= self.grouped != grouped;
        self.grouped = grouped;
    }

    /// Treats all its processes at once, and undoes what was done to each before.
    pub(crate) fn treat_group(&mut self, treatment: Treatment, journal: &mut Journal) {
        let Some(group) = &mut self.control_group else {
            return;
        };
        let held = group.hold(treatment);
        if let Err(error) = &held {
            tracing::warn!(
                "client {} cannot be treated as {treatment:?}: {error}",
                self.id
            );
        }
        self.defied = held.is_err();
        for process in self.processes.iter_mut().rev() {
            process.held_by_group = group.holds;
            self.defied |= process.treat(Treatment::Normal, journal).is_err();
        }
    }

    /// Lets all its processes out of its control group. The group stays for those that are born
    /// meanwhile.
    pub(crate) fn disperse(&mut self) {
        if let Some(group) = &mut self.control_group {
            let _ = group.hold(Treatment::Normal);
            for process in &mut self.processes {
                group.dismiss(process);
            }
        }
        self.set_grouped(false);
    }

    /// Lets one process out of its control group.
    pub(crate) fn dismiss(&mut self, pid: u32) {
        if let Some(group) = &self.control_group
            && let Some(process) = self.processes.iter_mut().find(|p| p.id.pid == pid)
        {
            group.dismiss(process);
        }
    }

    /// Finds out whether a process has been moved out of the client's group, or has arrived late.
    pub(crate) fn review_lodging(&mut self, index: usize) {
        let Some(group) = &self.control_group else {
            return;
        };
        let process = &mut self.processes[index];
        let is_known_there = matches!(process.lodging, Lodging::InGroup { .. });
        if is_known_there && !group.has(process.id.pid) {
            process.lodging = Lodging::Elsewhere;
            process.held_by_group = Treatment::Normal;
            self.unsettled = true;
        } else if !is_known_there && process.move_asked {
            self.unsettled |= group.has(process.id.pid);
        }
    }
}
