//! The engine over a scheduler that keeps books, on real processes.

mod fake;
mod over_fake;
mod slots;
mod strays;

use std::process::Command;

use prorata_core::cpu_limit::CpuLimit;
use prorata_core::hybrid::MAX_BOOST;
use prorata_core::ledger::Operation;
use prorata_kernel::scheduler::{Account, BASE, CGROUP_NODES, Ticket};
use prorata_user::ownership::KnownClient;
use prorata_user::{CLIENT_MARKER, SOCKET_MARKER};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::client::NOTHING;
use super::*;
use fake::MARK;
use over_fake::{EngineOverFake, SOCKET, Sleeper, eventually, is_root, policy_of};

const BATCH: prorata_user::Policy = prorata_user::Policy(libc::SCHED_BATCH as u32);
const OTHER: prorata_user::Policy = prorata_user::Policy::OTHER;

#[test]
fn the_kernel_gets_funding_before_tasks_and_changes_at_once() {
    let over_fake = EngineOverFake::new();
    let client = over_fake.client(300);
    let sleeper = Sleeper::start();
    over_fake.engine.manage(client, sleeper.id()).unwrap();
    let node = over_fake.node(client);
    let funded = |amount| {
        vec![Ticket {
            currency: BASE,
            amount,
        }]
    };
    assert_eq!(over_fake.kernel.books().nodes[&node], funded(300));
    assert_eq!(over_fake.kernel.books().members[&sleeper.id().pid].1, node);
    let ticket = {
        let dispatcher = lock(&over_fake.dispatcher);
        dispatcher.ledger().funding(client).next().unwrap()
    };
    over_fake.apply(Operation::SetAmount { ticket, amount: 7 });
    over_fake.engine.nudge();
    assert_eq!(over_fake.kernel.books().nodes[&node], funded(7));
    // A removed client is forgotten once its tasks are released.
    over_fake.engine.release(client);
    over_fake.apply(Operation::DestroyClient { client });
    over_fake.engine.nudge();
    assert!(!over_fake.kernel.books().nodes.contains_key(&node));
    assert_eq!(over_fake.trouble(), None);
}

#[test]
fn a_tree_is_given_and_comes_back_with_its_own_policies() {
    if !is_root() {
        return;
    }
    let over_fake = EngineOverFake::new();
    let client = over_fake.client(100);
    let tree = Sleeper::with_children(3);
    let children = tree.children();
    BATCH.set(children[0]).unwrap();
    BATCH.set(children[1]).unwrap();
    over_fake.engine.manage(client, tree.id()).unwrap();
    let all = || children.iter().copied().chain([tree.id().pid]);
    assert!(all().all(|pid| policy_of(pid) == MARK));
    assert!(all().all(|pid| over_fake.engine.find(pid) == Some(client)));
    over_fake.engine.look();
    assert_eq!(over_fake.engine.processes(client).len(), 4);
    over_fake.engine.release(client);
    let policies: Vec<_> = all().map(policy_of).collect();
    assert_eq!(policies, [BATCH, BATCH, OTHER, OTHER]);
    assert!(all().all(|pid| over_fake.engine.find(pid).is_none()));
}

#[test]
fn a_policy_that_a_member_chose_meanwhile_stays() {
    if !is_root() {
        return;
    }
    let over_fake = EngineOverFake::new();
    let client = over_fake.client(100);
    let sleeper = Sleeper::start();
    over_fake.engine.manage(client, sleeper.id()).unwrap();
    BATCH.set(sleeper.id().pid).unwrap();
    over_fake.engine.release(client);
    assert_eq!(policy_of(sleeper.id().pid), BATCH);
}

#[test]
fn a_child_born_to_a_member_has_its_parents_policy_when_it_comes_back() {
    if !is_root() {
        return;
    }
    let over_fake = EngineOverFake::new();
    let client = over_fake.client(100);
    let mut gate = Sleeper::of(
        Command::new("sh")
            .args(["-c", "read line; sleep 1000 & wait"])
            .stdin(std::process::Stdio::piped()),
    );
    BATCH.set(gate.id().pid).unwrap();
    over_fake.engine.manage(client, gate.id()).unwrap();
    drop(gate.0.stdin.take());
    let child = eventually(|| gate.children().first().copied());
    eventually(|| (policy_of(child) == MARK).then_some(()));
    assert_eq!(over_fake.engine.find(child), Some(client));
    over_fake.engine.release(client);
    assert_eq!((policy_of(gate.id().pid), policy_of(child)), (BATCH, BATCH));
}

#[test]
fn a_client_within_another_stays_there() {
    let over_fake = EngineOverFake::new();
    let (inner, outer) = (over_fake.client(1), over_fake.client(2));
    let tree = Sleeper::with_children(2);
    let children = tree.children();
    let child = ProcessId::of(children[0]).unwrap();
    over_fake.engine.manage(inner, child).unwrap();
    over_fake.engine.manage(outer, tree.id()).unwrap();
    let found = [children[0], children[1], tree.id().pid].map(|pid| over_fake.engine.find(pid));
    assert_eq!(found, [Some(inner), Some(outer), Some(outer)]);
    let again = over_fake
        .engine
        .manage(outer, child)
        .unwrap_err()
        .to_string();
    assert!(again.contains("managed already"), "{again}");
}

#[test]
fn a_task_with_only_a_control_group_is_free_to_join() {
    let over_fake = EngineOverFake::new();
    over_fake.kernel.books().group = Some(CGROUP_NODES);
    let client = over_fake.client(100);
    let tree = Sleeper::with_children(1);
    assert_eq!(over_fake.engine.find(tree.id().pid), None);
    over_fake.engine.manage(client, tree.id()).unwrap();
    assert_eq!(over_fake.engine.find(tree.children()[0]), Some(client));
    over_fake.engine.look();
    assert_eq!(over_fake.engine.processes(client).len(), 2);
    over_fake.engine.release(client);
    assert!(over_fake.kernel.books().members.is_empty());
}

#[test]
fn a_process_that_cannot_be_managed_is_refused() {
    let over_fake = EngineOverFake::new();
    let client = over_fake.client(1);
    let mut sleeper = Sleeper::start();
    let id = sleeper.id();
    let parameter = libc::sched_param { sched_priority: 1 };
    // SAFETY: `parameter` outlives the call, which only reads it.
    let is_real_time =
        unsafe { libc::sched_setscheduler(id.pid as i32, libc::SCHED_FIFO, &parameter) } == 0;
    if is_real_time {
        let refused = over_fake.engine.manage(client, id).unwrap_err().to_string();
        assert!(refused.contains("real-time"), "{refused}");
    }
    let earlier = ProcessId {
        start_time_ticks: id.start_time_ticks - 1,
        ..id
    };
    for gone in [earlier, id] {
        if gone == id {
            sleeper.end();
        }
        let refused = over_fake
            .engine
            .manage(client, gone)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("does not exist"), "{refused}");
    }
    assert!(over_fake.engine.state(client).is_none());
}

#[test]
fn an_exit_is_reported_once_and_only_without_living_tasks() {
    let over_fake = EngineOverFake::new();
    let clients = [over_fake.client(1), over_fake.client(2)];
    let mut trees = [Sleeper::with_children(1), Sleeper::start()];
    for (client, tree) in clients.iter().zip(&trees) {
        over_fake.engine.manage(*client, tree.id()).unwrap();
    }
    // The orphan lives on.
    trees[0].0.kill().unwrap();
    trees[0].0.wait().unwrap();
    trees[1].end();
    over_fake.wait_for_exits(&clients[1..]);
    assert_eq!(over_fake.engine.take_exited(), []);
    trees[0].end();
    over_fake.wait_for_exits(&clients[..1]);
}

#[test]
fn the_kernels_boosts_and_leads_are_reported() {
    let over_fake = EngineOverFake::new();
    let (client, sleeper) = (over_fake.client(300), Sleeper::start());
    over_fake.engine.manage(client, sleeper.id()).unwrap();
    let account = Account {
        lead_ns: 7,
        ..NOTHING
    };
    let node = over_fake.node(client);
    over_fake.kernel.books().accounts.insert(node, account);
    let hybrid = || {
        over_fake.engine.look();
        over_fake.engine.processes(client);
        let account = over_fake.engine.account(client).unwrap();
        account.hybrid.expect("all mechanisms are in force")
    };
    assert_eq!((hybrid().boost, hybrid().lead_ns), (None, 7));
    let pid = sleeper.id().pid;
    over_fake.kernel.books().boosts.insert(pid, MAX_BOOST);
    assert_eq!(hybrid().boost, Some(10_000.0));
}

#[test]
fn clients_on_one_cpu_are_due_no_more_than_that_cpu_gives() {
    let over_fake = EngineOverFake::new();
    let clients = [900, 100, 100].map(|tickets| over_fake.client(tickets));
    let sleepers = [(); 3].map(|()| Sleeper::start());
    let mut first = CpuSet::new();
    first.set(0);
    for sleeper in &sleepers[..2] {
        let pid = Pid::from_raw(sleeper.id().pid.cast_signed());
        sched_setaffinity(pid, &first).unwrap();
    }
    for (client, sleeper) in clients.iter().zip(&sleepers) {
        over_fake.engine.manage(*client, sleeper.id()).unwrap();
    }
    let specify = |specified_ns: [u64; 3], bound| {
        for (client, specified_ns) in clients.iter().zip(specified_ns) {
            let account = Account {
                specified_ns,
                runnable: 1,
                bound: if *client == clients[2] { 0 } else { bound },
                ..NOTHING
            };
            let node = over_fake.node(*client);
            over_fake.kernel.books().accounts.insert(node, account);
        }
        over_fake.engine.look();
    };
    let told = || clients.map(|client| over_fake.engine.account(client).unwrap().specified_ns);
    // What two CPUs give in a second, by tickets alone.
    let second = [1_636_363_636, 181_818_182, 181_818_182];
    specify(second, 0);
    assert_eq!(told(), second);
    // The first look at confined clients begins the account.
    specify(second, 1);
    assert_eq!(told(), second);
    specify(second.map(|due| 2 * due), 1);
    let due = [900_000_000, 100_000_000, 1_000_000_000];
    for ((told, before), due) in told().into_iter().zip(second).zip(due) {
        assert!((told - before).abs_diff(due) < 1_000_000, "{told}, {due}");
    }
    // Free again, and not competing: the correction stays, and the kernel's account goes on.
    let before = told();
    specify(second.map(|due| 2 * due), 0);
    specify(second.map(|due| 3 * due), 0);
    for ((told, before), due) in told().into_iter().zip(before).zip(second) {
        assert_eq!(told - before, due);
    }
}

#[test]
fn the_kernels_account_continues_after_a_reload() {
    let over_fake = EngineOverFake::new();
    let clients = [over_fake.client(300), over_fake.client(100)];
    let sleepers = [Sleeper::start(), Sleeper::start()];
    let account = |received_ns, specified_ns, dispatches| Account {
        received_ns,
        specified_ns,
        dispatches,
        runnable: 1,
        ..NOTHING
    };
    for (client, sleeper) in clients.iter().zip(&sleepers) {
        over_fake.engine.manage(*client, sleeper.id()).unwrap();
        let node = over_fake.node(*client);
        over_fake
            .kernel
            .books()
            .accounts
            .insert(node, account(70, 75, 4));
    }
    over_fake.engine.look();
    let first = over_fake.engine.account(clients[0]).unwrap();
    assert_eq!(
        (first.received_ns, first.specified_ns, first.turns),
        (70, 75, 4)
    );
    assert_eq!(
        over_fake.engine.state(clients[0]),
        Some(ClientState::Running)
    );
    // The dispatcher knows the values. Each client's one thread has one of the
    // two CPUs to itself, so both get one.
    {
        let dispatcher = lock(&over_fake.dispatcher);
        let shares = clients.map(|client| dispatcher.usage(client).share);
        assert_eq!(shares, [0.5, 0.5]);
        assert_eq!(dispatcher.ledger().value(clients[0]).to_f64(), 300.0);
    }
    over_fake.kernel.eject("runnable task stall");
    eventually(|| (over_fake.kernel.books().loads == 2).then_some(()));
    let node = over_fake.node(clients[0]);
    over_fake
        .kernel
        .books()
        .accounts
        .insert(node, account(5, 6, 1));
    over_fake.engine.look();
    let first = over_fake.engine.account(clients[0]).unwrap();
    assert_eq!(
        (first.received_ns, first.specified_ns, first.turns),
        (75, 81, 5)
    );
    assert_eq!(over_fake.engine.status().decisions, 9);
}

#[test]
fn an_unloaded_scheduler_is_loaded_again_once_with_all_its_members() {
    if !is_root() {
        return;
    }
    let over_fake = EngineOverFake::new();
    let client = over_fake.client(300);
    let tree = Sleeper::with_children(2);
    BATCH.set(tree.id().pid).unwrap();
    over_fake.engine.manage(client, tree.id()).unwrap();
    over_fake.engine.configure(5_000_000, PolicyName::Lottery);
    over_fake.kernel.eject("runnable task stall");
    let told = eventually(|| over_fake.trouble());
    assert!(
        told.contains("stall") && told.contains("loaded again"),
        "{told}"
    );
    {
        let books = over_fake.kernel.books();
        let options = books.options.unwrap();
        assert_eq!(
            (options.policy, options.quantum_ns),
            (Policy::Lottery, 5_000_000)
        );
        assert_eq!(books.members.len(), 3);
    }
    assert_eq!(over_fake.engine.status().mechanism, "partial");
    // No second time: all programs continue as if never managed, and the status
    // says so.
    over_fake.kernel.eject("runnable task stall");
    let told = eventually(|| {
        over_fake
            .trouble()
            .filter(|told| told.contains("second time"))
    });
    assert!(told.contains("the kernel's own scheduler"), "{told}");
    assert_eq!(over_fake.kernel.books().loads, 2);
    assert_eq!(over_fake.engine.status().mechanism, "none");
    assert_eq!(policy_of(tree.id().pid), BATCH);
    assert!(
        tree.children()
            .into_iter()
            .all(|pid| policy_of(pid) == OTHER)
    );
    // Its clients are known, and no process joins them.
    over_fake.engine.look();
    assert_eq!(over_fake.engine.processes(client).len(), 3);
    assert_eq!(over_fake.engine.find(tree.id().pid), Some(client));
    let refused = over_fake
        .engine
        .manage(over_fake.client(1), Sleeper::start().id());
    assert!(refused.unwrap_err().to_string().contains("stall"));
    drop(tree);
    over_fake.wait_for_exits(&[client]);
}

#[test]
fn a_clients_quantum_survives_a_reload() {
    let over_fake = EngineOverFake::new();
    let clients = [300, 200, 100].map(|tickets| over_fake.client(tickets));
    let sleepers = [(); 3].map(|()| Sleeper::start());
    for (client, sleeper) in clients.iter().zip(&sleepers) {
        over_fake.engine.manage(*client, sleeper.id()).unwrap();
    }
    let told = || over_fake.kernel.books().quanta_ns.clone();
    let set = |client: usize, quantum_ns| {
        over_fake
            .engine
            .set_client_quantum(clients[client], quantum_ns);
    };
    set(0, Some(5_000_000));
    set(1, Some(6_000_000));
    set(1, None);
    set(2, Some(7_000_000));
    let of = |client: usize| over_fake.node(clients[client]);
    assert_eq!(told(), [(of(0), 5_000_000), (of(2), 7_000_000)].into());
    over_fake.kernel.eject("runnable task stall");
    eventually(|| (over_fake.kernel.books().loads == 2).then_some(()));
    // The scheduler's lock is held until everything is told.
    drop(over_fake.engine.side());
    assert_eq!(told(), [(of(0), 5_000_000), (of(2), 7_000_000)].into());
    // A client that is gone has no state.
    over_fake.engine.release(clients[0]);
    set(0, Some(8_000_000));
    assert_eq!(told().get(&of(0)), Some(&5_000_000));
    assert_eq!(
        over_fake.trouble().map(|told| told.contains("stall")),
        Some(true)
    );
}

#[test]
fn limits_reach_the_kernel_and_survive_a_reload() {
    let over_fake = EngineOverFake::new();
    let clients = [(); 2].map(|()| over_fake.client(100));
    let max = |thousandths| CpuLimit::from_thousandths(thousandths);
    let set = |client: ClientId, max| {
        over_fake.apply(Operation::LimitClient { client, max });
        over_fake.engine.nudge();
    };
    let told = || over_fake.kernel.books().limits.clone();
    // In the ledger before the engine hears of the client.
    set(clients[0], max(500));
    set(clients[1], max(1));
    let nodes = clients.map(|client| over_fake.node(client));
    let (half, least) = (max(500).unwrap(), max(1).unwrap());
    assert_eq!(told(), [(nodes[0], half), (nodes[1], least)].into());
    set(clients[0], max(250));
    set(clients[1], None);
    assert_eq!(told(), [(nodes[0], max(250).unwrap())].into());
    over_fake.kernel.eject("runnable task stall");
    eventually(|| (over_fake.kernel.books().loads == 2).then_some(()));
    // The scheduler's lock is held until everything is told.
    drop(over_fake.engine.side());
    let node = over_fake.node(clients[0]);
    assert_eq!(told(), [(node, max(250).unwrap())].into());
    // A client that is gone takes its limit with it, and the next one has none.
    over_fake.apply(Operation::DestroyClient { client: clients[0] });
    over_fake.engine.nudge();
    let next = over_fake.client(100);
    over_fake.engine.nudge();
    assert_eq!(over_fake.node(next), node);
    assert_eq!(told(), [].into());
}

#[test]
fn a_client_is_limited_while_it_pauses() {
    let over_fake = EngineOverFake::new();
    let client = over_fake.client(100);
    let sleeper = Sleeper::start();
    over_fake.engine.manage(client, sleeper.id()).unwrap();
    let node = over_fake.node(client);
    for (runnable, pauses, state) in [
        (1, true, ClientState::Limited),
        (1, false, ClientState::Running),
        (0, true, ClientState::Blocked),
    ] {
        let account = Account {
            runnable,
            pauses,
            ..NOTHING
        };
        over_fake.kernel.books().accounts.insert(node, account);
        over_fake.engine.look();
        assert_eq!(over_fake.engine.state(client), Some(state));
    }
}

#[test]
fn unloading_the_scheduler_ends_no_client() {
    let over_fake = EngineOverFake::new();
    let client = over_fake.client(300);
    let sleeper = Sleeper::start();
    over_fake.engine.manage(client, sleeper.id()).unwrap();
    over_fake.kernel.begin_to_eject();
    eventually(|| over_fake.kernel.is_heard().then_some(()));
    over_fake.kernel.eject("runnable task stall");
    eventually(|| over_fake.trouble());
    assert_eq!(over_fake.engine.take_exited(), []);
    assert_eq!(over_fake.engine.find(sleeper.id().pid), Some(client));
}

#[test]
fn a_scheduler_unloaded_by_an_administrator_stays_unloaded() {
    if !is_root() {
        return;
    }
    let over_fake = EngineOverFake::new();
    let client = over_fake.client(300);
    let sleeper = Sleeper::start();
    over_fake.engine.manage(client, sleeper.id()).unwrap();
    over_fake.kernel.eject("disabled by sysrq-S");
    let told = eventually(|| over_fake.trouble());
    assert!(told.contains("sysrq"), "{told}");
    assert_eq!(over_fake.kernel.books().loads, 1);
    assert_eq!(policy_of(sleeper.id().pid), OTHER);
}

#[test]
fn a_scheduler_that_cannot_be_loaded_again_is_told() {
    let over_fake = EngineOverFake::new();
    over_fake.kernel.books().most_loads = 1;
    over_fake.kernel.eject("runtime error");
    let told = eventually(|| over_fake.trouble());
    assert!(
        told.contains("runtime error") && told.contains("scx_other"),
        "{told}"
    );
    assert_eq!(over_fake.engine.status().mechanism, "none");
}

#[test]
fn the_next_daemon_finds_members_and_their_policies() {
    if !is_root() {
        return;
    }
    let over_fake = EngineOverFake::new();
    let client = over_fake.client(300);
    let tree = Sleeper::with_children(1);
    let adopter = Sleeper::with_children(1);
    let mut command = Command::new("sleep");
    command.arg("1000").env(CLIENT_MARKER, client.to_string());
    let marked = Sleeper::of(command.env(SOCKET_MARKER, SOCKET));
    let orphans = [marked.id().pid, adopter.children()[0]];
    let members = [tree.id().pid, tree.children()[0], orphans[0], orphans[1]];
    for member in members {
        BATCH.set(member).unwrap();
    }
    over_fake.engine.manage(client, tree.id()).unwrap();
    over_fake.engine.adopt(client, adopter.id()).unwrap();
    let known = |since_ticks| KnownClient {
        id: client,
        user: 0,
        since_ticks,
    };
    assert_eq!(orphans.map(|pid| over_fake.engine.find(pid)), [None, None]);
    assert_eq!(over_fake.engine.manage_marked(&[known(0)]), [2]);
    let found = |over_fake: &EngineOverFake| members.map(|pid| over_fake.engine.find(pid));
    assert_eq!(found(&over_fake), [Some(client); 4]);
    assert_eq!(over_fake.engine.find(adopter.id().pid), None);
    let EngineOverFake {
        engine,
        kernel,
        dispatcher,
        directory,
    } = over_fake;
    // As if killed: nothing is released.
    engine.shared.end.ring();
    std::mem::forget(engine);
    let ledger = lock(&dispatcher).ledger().clone();
    let successor = EngineOverFake::with(ledger, kernel, directory);
    assert!(members.into_iter().all(|pid| policy_of(pid) == MARK));
    assert_eq!(found(&successor), [None; 4]);
    successor.engine.manage(client, tree.id()).unwrap();
    successor.engine.adopt(client, adopter.id()).unwrap();
    // A marker counts only from the client's start on.
    assert_eq!(successor.engine.manage_marked(&[known(u64::MAX)]), [1]);
    assert_eq!(successor.engine.manage_marked(&[known(0)]), [1]);
    assert_eq!(found(&successor), [Some(client); 4]);
    drop(successor);
    assert!(members.into_iter().all(|pid| policy_of(pid) == BATCH));
}
