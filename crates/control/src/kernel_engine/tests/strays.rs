//! Clients that give way, over a scheduler that keeps books.

use super::over_fake::{EngineOverFake, Sleeper, is_root, policy_of};
use super::{BATCH, MARK, OTHER};
use prorata_user::procfs;

use crate::engine::{Engine as _, Stray};
use crate::process::ProcessId;

fn strays_of(ids: &[ProcessId]) -> Vec<Stray> {
    let stray = |id: &ProcessId| Stray {
        process: *id,
        user: procfs::real_uid(id.pid).unwrap(),
    };
    ids.iter().map(stray).collect()
}

fn ids(pids: &[u32]) -> Vec<ProcessId> {
    let id = |pid: &u32| ProcessId::of(*pid).unwrap();
    pids.iter().map(id).collect()
}

#[test]
fn a_stray_moves_with_its_descendants_and_its_policy() {
    if !is_root() {
        return;
    }
    let over_fake = EngineOverFake::new();
    let engine = &over_fake.engine;
    let (rest, own) = (over_fake.client(1), over_fake.client(2));
    let tree = Sleeper::with_children(2);
    let mut pids = tree.children();
    pids.push(tree.id().pid);
    BATCH.set(pids[0]).unwrap();
    let strays = ids(&pids);
    assert!(engine.would_take_in(&strays_of(&strays)));
    assert_eq!(engine.take_in(rest, &strays_of(&strays)), [true; 3]);
    assert_eq!(engine.find_all(&pids), [Some(rest); 3]);
    engine.manage(own, strays[1]).unwrap();
    engine.manage(own, tree.id()).unwrap();
    assert_eq!(engine.find_all(&pids), [Some(own); 3]);
    assert!(pids.iter().all(|pid| policy_of(*pid) == MARK));
    over_fake.wait_for_exits(&[rest]);
    // This client does not give way.
    let other = over_fake.client(3);
    assert!(engine.manage(other, strays[0]).is_err());
    engine.let_out(&strays);
    assert_eq!(engine.find_all(&pids), [Some(own); 3]);
    engine.release(own);
    let policies: Vec<_> = pids.iter().map(|pid| policy_of(*pid)).collect();
    assert_eq!(policies, [BATCH, OTHER, OTHER]);
}

#[test]
fn a_process_that_is_let_out_is_as_before() {
    if !is_root() {
        return;
    }
    let over_fake = EngineOverFake::new();
    let engine = &over_fake.engine;
    let rest = over_fake.client(1);
    let (one, other) = (Sleeper::start(), Sleeper::start());
    BATCH.set(one.id().pid).unwrap();
    assert_eq!(
        engine.take_in(rest, &strays_of(&[one.id(), other.id()])),
        [true; 2]
    );
    let again = engine.take_in(rest, &strays_of(&[one.id()]));
    assert_eq!(again, [true], "it has a client");
    engine.let_out(&[one.id()]);
    let pids = [one.id().pid, other.id().pid];
    assert_eq!(engine.find_all(&pids), [None, Some(rest)]);
    assert_eq!(policy_of(pids[0]), BATCH);
    engine.let_out(&[other.id()]);
    over_fake.wait_for_exits(&[rest]);
}

#[test]
fn threads_that_are_born_while_their_process_is_let_out_go_along() {
    if !is_root() {
        return;
    }
    let over_fake = EngineOverFake::new();
    let rest = over_fake.client(1);
    let sleeper = Sleeper::start();
    let pid = sleeper.id().pid;
    let taken = over_fake.engine.take_in(rest, &strays_of(&[sleeper.id()]));
    assert_eq!(taken, [true]);
    over_fake.kernel.books().births = 3;
    over_fake.engine.let_out(&[sleeper.id()]);
    assert_eq!(over_fake.kernel.books().births, 0);
    assert_eq!(over_fake.engine.find(pid), None);
    assert_eq!(policy_of(pid), OTHER);
}

#[test]
fn real_time_processes_and_ended_ones_are_no_strays() {
    if !is_root() {
        return;
    }
    let over_fake = EngineOverFake::new();
    let rest = over_fake.client(1);
    let sleeper = Sleeper::start();
    let earlier = ProcessId {
        start_time_ticks: sleeper.id().start_time_ticks - 1,
        ..sleeper.id()
    };
    assert_eq!(
        over_fake.engine.take_in(rest, &strays_of(&[earlier])),
        [false]
    );
    // It became another user's since it was found.
    let of_another_user = Stray {
        process: sleeper.id(),
        user: procfs::real_uid(sleeper.id().pid).unwrap() + 1,
    };
    assert_eq!(over_fake.engine.take_in(rest, &[of_another_user]), [false]);
    let pid = sleeper.id().pid.to_string();
    let mut set = std::process::Command::new("chrt");
    let set = set.args(["--fifo", "-p", "1", &pid]);
    if set.status().is_ok_and(|status| status.success()) {
        assert!(!over_fake.engine.would_take_in(&strays_of(&[sleeper.id()])));
        let taken = over_fake.engine.take_in(rest, &strays_of(&[sleeper.id()]));
        assert_eq!(taken, [false]);
    }
}
