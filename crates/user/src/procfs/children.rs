//! `/proc/PID/task/TID/children`: the children of a process.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::for_each_thread;

/// How often children are listed again while more of them appear.
const MAX_LISTINGS: u32 = 8;

/// Whether the kernel lists children (`CONFIG_PROC_CHILDREN`).
pub(crate) fn are_children_listed() -> bool {
    static ARE_LISTED: LazyLock<bool> =
        LazyLock::new(|| std::fs::exists("/proc/thread-self/children").unwrap_or(false));
    *ARE_LISTED
}

/// The children of a process, in the order of their numbers. Cost: 15 us for each of its threads.
///
/// The kernel may leave out a child while another one ends (proc(5)). So children are listed until
/// a list has none that is new.
pub(crate) fn children_of(pid: u32) -> BTreeSet<u32> {
    let mut children = BTreeSet::new();
    for _ in 0..MAX_LISTINGS {
        let before = children.len();
        // A process without threads has ended.
        let _ = for_each_thread(pid, |tid| {
            let path = format!("/proc/{pid}/task/{tid}/children");
            let list = std::fs::read_to_string(path).unwrap_or_default();
            children.extend(
                list.split_whitespace()
                    .filter_map(|child| child.parse::<u32>().ok()),
            );
        });
        if children.len() == before {
            break;
        }
    }
    children
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn children_of_each_thread_are_listed_until_they_are_waited_for() {
        if !are_children_listed() {
            println!("skipped: the kernel lists no children");
            return;
        }
        let start = || Command::new("sleep").arg("100").spawn().expect("starts");
        let mut children = [
            start(),
            std::thread::spawn(start).join().expect("it starts one"),
        ];
        let listed = children_of(std::process::id());
        for child in &mut children {
            assert!(listed.contains(&child.id()));
            child.kill().expect("it runs");
            child.wait().expect("it ends");
        }
        let left = children_of(std::process::id());
        assert!(children.iter().all(|child| !left.contains(&child.id())));
        assert_eq!(children_of(0), BTreeSet::new());
    }
}
