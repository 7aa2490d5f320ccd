//! The queue of each CPU.

use std::fs;
use std::path::Path;

use prorata_core::cpu_list;

use super::Queues;

/// The kernel's description of its CPUs.
const CPUS: &str = "/sys/devices/system/cpu";

/// The queue of each CPU, numbered from 0 on.
pub fn queue_by_cpu(queues: Queues, cpus: u32) -> Vec<u32> {
    let firsts: Vec<u32> = match queues {
        Queues::Cpu => (0..cpus).collect(),
        Queues::Cache => {
            let first = |cpu| first_sharer(Path::new(CPUS), cpu);
            (0..cpus).map(first).collect()
        }
        Queues::One => vec![0; cpus as usize],
    };
    numbered(&firsts)
}

/// Numbers groups in order. A group is known by its first member.
fn numbered(firsts: &[u32]) -> Vec<u32> {
    let mut groups = firsts.to_vec();
    groups.sort_unstable();
    groups.dedup();
    let number = |first: &u32| groups.partition_point(|group| group < first) as u32;
    firsts.iter().map(number).collect()
}

/// The first of the CPUs that share a last-level cache with this one. If the kernel describes
/// no caches, the first CPU of the package; if it describes no packages either, CPU 0.
fn first_sharer(cpus: &Path, cpu: u32) -> u32 {
    let cpu = cpus.join(format!("cpu{cpu}"));
    let read = |path: &str| fs::read_to_string(cpu.join(path)).ok();
    let last = (0..)
        .map_while(|index| read(&format!("cache/index{index}/level")).map(|level| (level, index)))
        .filter_map(|(level, index)| Some((level.trim().parse::<u32>().ok()?, index)))
        .max();
    let sharers = match last {
        Some((_, index)) => read(&format!("cache/index{index}/shared_cpu_list")),
        None => read("topology/package_cpus_list"),
    };
    sharers.and_then(|list| first_in(&list)).unwrap_or(0)
}

/// The first CPU of a list such as `0-3,8`.
fn first_in(list: &str) -> Option<u32> {
    cpu_list::parse(list).ok()?.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_numbered_in_order() {
        assert_eq!(numbered(&[0, 0, 2, 2]), [0, 0, 1, 1]);
        assert_eq!(numbered(&[0, 1, 0, 1, 7]), [0, 1, 0, 1, 2]);
        assert_eq!(queue_by_cpu(Queues::Cpu, 3), [0, 1, 2]);
        assert_eq!(queue_by_cpu(Queues::One, 3), [0, 0, 0]);
    }

    #[test]
    fn the_first_cpu_of_a_list_is_found() {
        assert_eq!(first_in("0-3,8\n"), Some(0));
        assert_eq!(first_in("12,14"), Some(12));
        assert_eq!(first_in("7"), Some(7));
        assert_eq!(first_in("\n"), None);
    }

    #[test]
    fn cpus_that_share_the_last_level_share_a_queue() {
        let root = std::env::temp_dir().join(format!("prorata-caches-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
            fs::write(path, text).expect("it can be written");
        };
        // The order of indexes is not that of levels.
        write("cpu5/cache/index0/level", "1\n");
        write("cpu5/cache/index0/shared_cpu_list", "5\n");
        write("cpu5/cache/index1/level", "3\n");
        write("cpu5/cache/index1/shared_cpu_list", "4-7\n");
        write("cpu5/cache/index2/level", "2\n");
        write("cpu5/cache/index2/shared_cpu_list", "5\n");
        write("cpu5/topology/package_cpus_list", "0-7\n");
        write("cpu9/topology/package_cpus_list", "8-15\n");
        let found = [5, 9, 10].map(|cpu| first_sharer(&root, cpu));
        fs::remove_dir_all(&root).expect("it can be removed");
        assert_eq!(found, [4, 8, 0]);
    }
}
