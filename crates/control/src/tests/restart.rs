//! The processes that a restarted daemon finds again.

use std::path::Path;

use prorata_core::ids::ClientId;
use prorata_protocol::{CpuLimit, Request, Response};

use super::harness::{Elsewhere, Sleeper, eventually, tickets};
use crate::control::Control;
use crate::host::{Host, Linux};
use crate::peer::Peer;
use crate::process::{ProcessId, ProcessInfo};
use crate::testing::{ALICE, ASKER, FakeEngine, FakeHost, ask, control, fast_directory, user};

fn register(control: &mut Control, peer: &Peer, pid: u32) -> ClientId {
    let request = Request::Register {
        pid,
        name: None,
        funding: tickets(100),
        quantum_ns: None,
        max: None,
        adopts: false,
    };
    let Response::Client(report) = ask(control, peer, request) else {
        panic!("{pid} is not managed");
    };
    report.id.parse().unwrap()
}

fn id(sleeper: &Sleeper) -> ProcessId {
    ProcessInfo::read(sleeper.pid()).unwrap().id
}

fn restart(directory: &Path, engine: &FakeEngine) -> Control {
    let mut control = control(directory, Elsewhere::default(), engine);
    control.manage_again();
    control
}

#[test]
fn a_client_whose_root_has_ended_is_found_by_its_other_processes() {
    let directory = fast_directory();
    let engine = FakeEngine::strict();
    let mut first = control(directory.path(), Elsewhere::default(), &engine);
    let (root, other) = (Sleeper::start(), Sleeper::start());
    let other_id = id(&other);
    let me = user(Linux.own_uid());
    let client = register(&mut first, &me, root.pid());
    // The engine has seen the root start this process.
    engine
        .books()
        .clients
        .get_mut(&client)
        .unwrap()
        .push(other_id);
    drop(root);
    eventually(|| {
        first.renew_roots();
        (first.state.roots[&client] == [other_id]).then_some(())
    });
    drop(first);

    let engine = FakeEngine::strict();
    let second = restart(directory.path(), &engine);
    assert_eq!(engine.books().clients[&client], [other_id]);
    drop(second);

    drop(other);
    let engine = FakeEngine::strict();
    let third = restart(directory.path(), &engine);
    assert!(third.state.roots.is_empty() && third.state.ledger.clients().next().is_none());
}

#[test]
fn a_client_without_roots_is_found_by_its_marker() {
    let directory = fast_directory();
    let engine = FakeEngine::strict();
    let mut first = control(directory.path(), Elsewhere::default(), &engine);
    let me = user(Linux.own_uid());
    let root = Sleeper::start();
    let client = register(&mut first, &me, root.pid());
    drop(first);
    drop(root);

    let orphan = Sleeper::start();
    let engine = FakeEngine::strict();
    engine.books().marked.insert(client, id(&orphan));
    let mut second = restart(directory.path(), &engine);
    eventually(|| {
        second.renew_roots();
        (second.state.roots[&client] == [id(&orphan)]).then_some(())
    });
}

#[test]
fn a_client_within_another_stays_its_own() {
    let directory = fast_directory();
    let mut first = control(directory.path(), FakeHost::new(0), &FakeEngine::default());
    let outer = register(&mut first, &user(ALICE), 100);
    let inner = register(&mut first, &user(ALICE), 101);
    drop(first);
    let engine = FakeEngine::default();
    control(directory.path(), FakeHost::new(0), &engine).manage_again();
    let order: Vec<ClientId> = engine.books().order.clone();
    // The outer client takes along all its descendants without a client.
    assert_eq!(order, [inner, outer]);
}

#[test]
fn an_adopter_inherits_orphans_after_a_restart_too() {
    let directory = fast_directory();
    let mut first = control(directory.path(), FakeHost::new(0), &FakeEngine::default());
    let request = |adopts, pid| Request::Register {
        pid,
        name: None,
        funding: tickets(100),
        quantum_ns: None,
        max: None,
        adopts,
    };
    for (adopts, pid) in [(true, 91), (false, 100)] {
        let answer = ask(&mut first, &user(ALICE), request(adopts, pid));
        assert!(matches!(answer, Response::Client(_)), "{answer:?}");
    }
    let client = *first.state.adopters.keys().next().unwrap();
    drop(first);
    let engine = FakeEngine::default();
    let mut second = control(directory.path(), FakeHost::new(0), &engine);
    second.manage_again();
    let adopters = engine.books().adopters.clone();
    assert_eq!(adopters.into_iter().collect::<Vec<_>>(), [(ASKER, client)]);

    let release = Request::Release {
        client: client.to_string(),
    };
    assert_eq!(ask(&mut second, &user(ALICE), release), Response::Done);
    assert!(second.state.adopters.is_empty());
}

#[test]
fn a_clients_quantum_survives_a_restart() {
    let directory = fast_directory();
    let engine = FakeEngine::strict();
    let mut first = control(directory.path(), Elsewhere::default(), &engine);
    let me = user(Linux.own_uid());
    let programs = [Sleeper::start(), Sleeper::start()];
    let clients = [0, 1].map(|index: usize| register(&mut first, &me, programs[index].pid()));
    let request = Request::SetQuantum {
        client: clients[0].to_string(),
        quantum_ns: Some(4_000_000),
    };
    assert_eq!(ask(&mut first, &me, request), Response::Done);
    drop(first);
    let engine = FakeEngine::strict();
    let _second = restart(directory.path(), &engine);
    assert_eq!(engine.books().clients.len(), 2);
    let told = engine.books().quanta_ns.clone();
    assert_eq!(told, [(clients[0], Some(4_000_000))].into());
}

#[test]
fn a_clients_limit_survives_a_restart() {
    let directory = fast_directory();
    let engine = FakeEngine::strict();
    let mut first = control(directory.path(), Elsewhere::default(), &engine);
    let me = user(Linux.own_uid());
    let program = Sleeper::start();
    let client = register(&mut first, &me, program.pid());
    let max = CpuLimit::from_thousandths(250);
    let request = Request::SetMax {
        client: client.to_string(),
        max,
    };
    assert_eq!(ask(&mut first, &me, request), Response::Done);
    drop(first);
    let engine = FakeEngine::strict();
    let second = restart(directory.path(), &engine);
    let dispatcher = second.dispatcher.lock().unwrap();
    assert!(dispatcher.is_limited(client));
    assert_eq!(dispatcher.ledger().cpu_limit(client), max);
}
