//! The control group of one client.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::hierarchy::{group_of, limits_what_leaves_for, put_in};
use super::{ControlGroups, make, remove};
use crate::client::Client;
use crate::process::{Process, Treatment};
use crate::table::Journal;

/// A group that holds the processes of a client, and may hold them down.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    directory: PathBuf,
    /// Where a process goes that leaves the client and cannot go back home.
    released: PathBuf,
    freeze: File,
    /// Missing without the cpu controller.
    idle: Option<File>,
    /// How the group is treated now.
    holds: Treatment,
}

/// Where a process is in the hierarchy of control groups.
#[derive(Clone, Debug)]
pub(crate) enum Lodging {
    /// Not in its client's group.
    Elsewhere,
    /// In its client's group, and to go back to this group. Unknown if it was found there.
    InGroup { home: Option<Arc<Path>> },
}

impl ControlGroup {
    fn open(groups: &ControlGroups, client: impl std::fmt::Display) -> io::Result<ControlGroup> {
        let directory = groups.base().join(format!("client-{client}"));
        make(&directory)?;
        let open = |file: &str| OpenOptions::new().write(true).open(directory.join(file));
        let mut group = ControlGroup {
            freeze: open("cgroup.freeze")?,
            idle: open("cpu.idle").ok(),
            released: groups.base().join("released"),
            // The group of an engine that died may be held down.
            holds: Treatment::Stopped,
            directory,
        };
        group.hold(Treatment::Normal)?;
        Ok(group)
    }

    /// Treats all processes in the group. Cost: 10 us, and for [`Treatment::Stopped`] and its end
    /// some more for each thread.
    fn hold(&mut self, treatment: Treatment) -> io::Result<()> {
        if treatment == self.holds {
            return Ok(());
        }
        let set = |file: &File, on: bool| {
            let text: &[u8] = if on { b"1" } else { b"0" };
            file.write_all_at(text, 0)
        };
        // A thawed process must not run before it is demoted, nor wake up demoted.
        if let Some(idle) = &self.idle {
            set(idle, treatment == Treatment::Idle)?;
        }
        set(&self.freeze, treatment == Treatment::Stopped)?;
        self.holds = treatment;
        Ok(())
    }

    /// Lets a process in. Fails if it is not permitted to move, or if it would escape a limit.
    fn admit(&self, process: &Process) -> io::Result<Lodging> {
        let pid = process.id.pid;
        let home = group_of(pid)?;
        if home.starts_with(&self.directory) {
            return Ok(Lodging::InGroup { home: None });
        }
        if limits_what_leaves_for(&home, &self.directory) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        put_in(&self.directory, pid)?;
        if !process.is_alive() {
            // A later process may have its pid.
            let _ = put_in(&home, pid);
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Lodging::InGroup {
            home: Some(home.into()),
        })
    }

    /// Lets a process out.
    fn dismiss(&self, process: &mut Process) {
        let Lodging::InGroup { home } = std::mem::replace(&mut process.lodging, Lodging::Elsewhere)
        else {
            return;
        };
        process.held_by_group = Treatment::Normal;
        let pid = process.id.pid;
        // An ended process needs no group, and its pid may be another's.
        if !process.is_alive() || home.is_some_and(|home| put_in(&home, pid).is_ok()) {
            return;
        }
        if let Err(error) = make(&self.released).and_then(|()| put_in(&self.released, pid)) {
            tracing::warn!("process {pid} stays in the control group of its client: {error}");
        }
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        remove(&self.directory);
    }
}

impl Client {
    /// Puts all its processes in its control group. Returns whether all are there; without that,
    /// each of them is treated by itself.
    pub(crate) fn gather(&mut self, groups: &ControlGroups) -> bool {
        let result = match &mut self.control_group {
            Some(_) => Ok(()),
            none => ControlGroup::open(groups, self.id).map(|group| *none = Some(group)),
        };
        let gathered = result.and_then(|()| self.admit_all());
        if let Err(error) = &gathered
            && self.grouped
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
        self.grouped
    }

    fn admit_all(&mut self) -> io::Result<()> {
        let Some(group) = &self.control_group else {
            return Ok(());
        };
        for index in 0..self.processes.len() {
            let process = &self.processes[index];
            if !matches!(process.lodging, Lodging::Elsewhere) {
                continue;
            }
            let lodging = match group.admit(process) {
                // A child was born in the group, and goes where its parent goes.
                Ok(Lodging::InGroup { home: None }) => self.lodging_of(process.parent),
                Ok(lodging) => lodging,
                Err(_) if !process.is_alive() => continue,
                Err(error) => return Err(error),
            };
            let process = &mut self.processes[index];
            process.lodging = lodging;
            process.held_by_group = group.holds;
        }
        Ok(())
    }

    fn lodging_of(&self, pid: u32) -> Lodging {
        let mut processes = self.processes.iter();
        let parent = processes.find(|process| process.id.pid == pid);
        match parent.or(self.processes.first()).map(|p| p.lodging.clone()) {
            Some(Lodging::InGroup { home }) => Lodging::InGroup { home },
            _ => Lodging::InGroup { home: None },
        }
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

    /// Lets all its processes out of its control group.
    pub(crate) fn disperse(&mut self) {
        if let Some(mut group) = self.control_group.take() {
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

    /// Finds out whether a process has been moved out of the client's group.
    pub(crate) fn review_lodging(&mut self, index: usize) {
        let Some(group) = &self.control_group else {
            return;
        };
        let process = &mut self.processes[index];
        let is_there =
            group_of(process.id.pid).is_ok_and(|current| current.starts_with(&group.directory));
        if matches!(process.lodging, Lodging::InGroup { .. }) && !is_there {
            process.lodging = Lodging::Elsewhere;
            process.held_by_group = Treatment::Normal;
            self.unsettled = true;
        }
    }
}
