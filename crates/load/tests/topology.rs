//! Topologies are read from trees of files as the kernel shows them.

use std::fs;
use std::path::Path;

use prorata_core::topology::PoolsBy;
use prorata_load::topology::{DEVICES, ReadError, of_this_thread, read};
use rustix::thread::{CpuSet, sched_setaffinity};

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{text}\n")).unwrap();
}

/// Four CPUs in two packages; CPU 4 of five is not online.
fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    let root = tree.path();
    write(root, "cpu/online", "0-3");
    write(root, "cpu/possible", "0-4");
    for cpu in 0..4 {
        let package = ["0-1", "2-3"][cpu / 2];
        let about = format!("cpu/cpu{cpu}");
        write(
            root,
            &format!("{about}/topology/package_cpus_list"),
            package,
        );
        // First levels are of a CPU, the third of a package.
        for (index, level, shared) in [(0, "1", &*cpu.to_string()), (3, "3", package)] {
            let cache = format!("{about}/cache/index{index}");
            write(root, &format!("{cache}/level"), level);
            write(root, &format!("{cache}/shared_cpu_list"), shared);
        }
    }
    write(root, "node/node0/cpulist", "0-2");
    write(root, "node/node1/cpulist", "3");
    write(root, "node/online", "0-1");
    tree
}

#[test]
fn a_machine_of_two_packages_and_two_nodes() {
    let tree = tree();
    let topology = read(tree.path()).unwrap();
    let numbers: Vec<_> = topology.cpus().iter().map(|place| place.cpu).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    let pools = |by| topology.pools(&by).unwrap();
    assert_eq!(pools(PoolsBy::LastLevelCache), [0, 0, 1, 1]);
    assert_eq!(pools(PoolsBy::Package), [0, 0, 1, 1]);
    assert_eq!(pools(PoolsBy::Node), [0, 0, 0, 1]);
}

#[test]
fn without_caches_and_nodes_packages_stand_for_them() {
    let tree = tree();
    for cpu in 0..4 {
        fs::remove_dir_all(tree.path().join(format!("cpu/cpu{cpu}/cache"))).unwrap();
    }
    fs::remove_dir_all(tree.path().join("node")).unwrap();
    let topology = read(tree.path()).unwrap();
    let pools = |by| topology.pools(&by).unwrap();
    assert_eq!(pools(PoolsBy::LastLevelCache), [0, 0, 1, 1]);
    assert_eq!(pools(PoolsBy::Node), [0; 4]);
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let refused = |path: &str, text: &str| {
        let tree = tree();
        write(tree.path(), path, text);
        read(tree.path()).unwrap_err()
    };
    let package = "cpu/cpu2/topology/package_cpus_list";
    assert!(
        matches!(refused(package, "2-x"), ReadError::List { path, .. } if path.ends_with(package))
    );
    assert!(matches!(refused(package, ""), ReadError::List { .. }));
    let level = "cpu/cpu2/cache/index3/level";
    assert!(matches!(refused(level, "high"), ReadError::Number { text, .. } if text == "high"));
    assert!(matches!(refused("cpu/online", ""), ReadError::Topology(_)));
    let missing = refused("cpu/online", "0-4").to_string();
    assert!(
        missing.contains("cpu4/topology/package_cpus_list"),
        "{missing}"
    );
}

#[test]
fn this_machine_has_cpus() {
    let topology = read(Path::new(DEVICES)).unwrap();
    let pools = topology.pools(&PoolsBy::LastLevelCache).unwrap();
    assert_eq!(pools.len(), topology.cpus().len());
}

#[test]
fn a_thread_that_may_run_on_one_cpu_has_a_machine_of_one() {
    let all = of_this_thread().unwrap();
    let last = *all.cpus().last().unwrap();
    let mut only = CpuSet::new();
    only.set(last.cpu as usize);
    // Of this thread alone, which is the test's own.
    sched_setaffinity(None, &only).unwrap();
    assert_eq!(of_this_thread().unwrap().cpus(), [last]);
}
