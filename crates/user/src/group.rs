//! Scheduling groups.
//!
//! The kernel shares a CPU out between groups first, and within a group then. A group with
//! nothing but threads in `SCHED_IDLE` still weighs as much as any other. So `SCHED_IDLE` has no
//! effect between processes of different groups. A group is a control group of the cpu
//! controller or, within the root group, a session, if the kernel groups automatically.

use std::io;

use crate::control_groups::{MOUNTS, unified_path};

/// One scheduling group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Group {
    cgroup: String,
    /// Set where the kernel groups by session.
    session: Option<u32>,
}

impl Group {
    /// The group of a process with this session identifier.
    pub(crate) fn of(pid: u32, session: u32) -> io::Result<Group> {
        let membership = std::fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
        let cgroup = cpu_cgroup(&membership, has_cpu_controller);
        let by_session = cgroup == "/" && groups_automatically()?;
        Ok(Group {
            cgroup,
            session: by_session.then_some(session),
        })
    }
}

fn groups_automatically() -> io::Result<bool> {
    match std::fs::read("/proc/sys/kernel/sched_autogroup_enabled") {
        Ok(value) => Ok(value.starts_with(b"1")),
        // The kernel is built without.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Path of the control group that competes for CPU time, from a `/proc/PID/cgroup`. In the
/// unified hierarchy that is the nearest ancestor for which the cpu controller is enabled.
fn cpu_cgroup(membership: &str, has_cpu_controller: impl Fn(&str) -> bool) -> String {
    let own_hierarchy = membership.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers
            .split(',')
            .any(|name| name == "cpu")
            .then_some(path)
    });
    if let Some(path) = own_hierarchy {
        return path.to_owned();
    }
    let Some(mut path) = unified_path(membership) else {
        return "/".to_owned();
    };
    while path.len() > 1 && !has_cpu_controller(path) {
        path = &path[..path.rfind('/').unwrap_or(0)];
    }
    if path.is_empty() {
        "/".to_owned()
    } else {
        path.to_owned()
    }
}

/// Whether a control group of the unified hierarchy competes for CPU time. An unreadable group
/// counts as competing: an error in this direction only costs the idle mechanism.
fn has_cpu_controller(path: &str) -> bool {
    let controllers = MOUNTS.iter().find_map(|mount| {
        std::fs::read_to_string(format!("{mount}{path}/cgroup.controllers")).ok()
    });
    controllers.is_none_or(|list| list.split_whitespace().any(|name| name == "cpu"))
}

/// A group with managed processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupIndex(usize);

/// The groups of all managed processes.
#[derive(Default, Debug)]
pub(crate) struct Groups {
    /// Each with the number of its processes; a group without any is replaced.
    members: Vec<(Group, usize)>,
}

impl Groups {
    pub(crate) fn enter(&mut self, group: Group) -> GroupIndex {
        let known = self.members.iter().position(|(g, _)| *g == group);
        let index = known.or_else(|| self.members.iter().position(|(_, count)| *count == 0));
        let index = index.unwrap_or(self.members.len());
        match self.members.get_mut(index) {
            Some(entry) if entry.0 == group => entry.1 += 1,
            Some(entry) => *entry = (group, 1),
            None => self.members.push((group, 1)),
        }
        GroupIndex(index)
    }

    /// Enters the group that another process is in.
    pub(crate) fn enter_known(&mut self, group: GroupIndex) -> GroupIndex {
        self.members[group.0].1 += 1;
        group
    }

    pub(crate) fn leave(&mut self, group: GroupIndex) {
        self.members[group.0].1 -= 1;
    }

    pub(crate) fn is(&self, index: GroupIndex, group: &Group) -> bool {
        self.members[index.0].0 == *group
    }

    /// The group of most processes.
    pub(crate) fn largest(&self) -> Option<GroupIndex> {
        let counts = self.members.iter().map(|(_, count)| count).enumerate();
        let used = counts.filter(|(_, count)| **count > 0);
        let largest = used.max_by_key(|(_, count)| **count);
        largest.map(|(index, _)| GroupIndex(index))
    }

    /// Whether all processes are in this group.
    pub(crate) fn are(&self, group: &Group) -> bool {
        let mut used = self.members.iter().filter(|(_, count)| *count > 0);
        used.all(|(member, _)| member == group)
    }

    /// Whether all processes are in one group.
    pub(crate) fn are_one(&self) -> bool {
        self.members.iter().filter(|(_, count)| *count > 0).count() <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_hierarchy_comes_before_the_unified_one() {
        let membership = "3:cpuset:/\n2:cpu,cpuacct:/jobs/a\n0::/session\n";
        assert_eq!(cpu_cgroup(membership, |_| true), "/jobs/a");
    }

    #[test]
    fn the_nearest_unified_group_with_the_cpu_controller_counts() {
        let membership = "0::/user.slice/user-1000.slice/session-1.scope\n";
        let enabled = |path: &str| path == "/user.slice";
        assert_eq!(cpu_cgroup(membership, enabled), "/user.slice");
        assert_eq!(cpu_cgroup(membership, |_| false), "/");
        assert_eq!(
            cpu_cgroup(membership, |_| true),
            "/user.slice/user-1000.slice/session-1.scope"
        );
        assert_eq!(cpu_cgroup("0::/\n", |_| true), "/");
        assert_eq!(cpu_cgroup("", |_| true), "/");
    }

    #[test]
    fn groups_are_one_while_all_processes_are_in_it() {
        let group = |name: &str| Group {
            cgroup: name.into(),
            session: None,
        };
        let mut groups = Groups::default();
        assert!(groups.are_one());
        assert_eq!(groups.largest(), None);
        let first = groups.enter(group("a"));
        groups.enter(group("a"));
        assert!(groups.are_one());
        let second = groups.enter(group("b"));
        assert!(!groups.are_one() && !groups.are(&group("b")));
        assert_eq!(groups.largest(), Some(first));
        groups.leave(second);
        assert!(groups.are(&group("a")) && !groups.are(&group("b")));
        assert!(groups.are_one());
        assert!(groups.is(first, &group("a")));
        let third = groups.enter(group("c"));
        assert_eq!(third, second, "the index of an empty group is used again");
        assert!(groups.is(third, &group("c")));
    }
}
