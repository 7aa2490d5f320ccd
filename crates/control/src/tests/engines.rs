//! Engines that differ: in their policies, and in whether they keep accounts.

use prorata_core::hybrid::Mechanisms;
use prorata_core::ids::ClientId;
use prorata_protocol::{
    CpuLimit, EventKind, EventReport, Funding, HybridChoice, HybridReport, MOST_EVENTS, PolicyName,
    Request, Response, TurnsReport,
};

use crate::control::Control;
use crate::engine::ClientAccount;
use crate::testing::{ALICE, BOB, FakeEngine, FakeHost, ask, control, fast_directory, user};

fn configure(policy: PolicyName) -> Request {
    Request::Configure {
        quantum_ns: None,
        policy: Some(policy),
        hybrid: None,
        stay: false,
        users: false,
    }
}

/// An engine that knows two policies.
fn engine_of_two() -> FakeEngine {
    FakeEngine::knowing(&[PolicyName::Lottery, PolicyName::Stride])
}

#[test]
fn a_policy_that_the_engine_does_not_know_is_refused() {
    let directory = fast_directory();
    let engine = engine_of_two();
    let mut control = control(directory.path(), FakeHost::new(0), &engine);
    let refused = ask(&mut control, &user(0), configure(PolicyName::ClassLottery));
    let Response::Refused { message } = refused else {
        panic!("{refused:?}")
    };
    assert!(
        message.contains("class-lottery") && message.contains("lottery or stride"),
        "{message}"
    );
    assert_eq!(engine.books().configured, None);
    let done = ask(&mut control, &user(0), configure(PolicyName::Lottery));
    assert!(matches!(done, Response::Status(_)), "{done:?}");
    assert_eq!(
        engine.books().configured,
        Some((20_000_000, PolicyName::Lottery))
    );
}

#[test]
fn a_policy_of_another_engine_gives_way_for_good() {
    let directory = fast_directory();
    let any = FakeEngine::default();
    let mut before = control(directory.path(), FakeHost::new(0), &any);
    ask(&mut before, &user(0), configure(PolicyName::ClassLottery));
    drop(before);
    let engine = engine_of_two();
    let mut after = control(directory.path(), FakeHost::new(0), &engine);
    after.configure_again(after.state.settings.clone());
    let told = Some((20_000_000, PolicyName::Lottery));
    assert_eq!(engine.books().configured, told);
    assert_eq!(after.state.settings.policy, PolicyName::Lottery);
    drop(after);
    // The journal has the new policy.
    let mut later = control(directory.path(), FakeHost::new(0), &any);
    later.configure_again(later.state.settings.clone());
    assert_eq!(any.books().configured, told);
}

#[test]
fn an_engine_that_keeps_accounts_is_believed() {
    let directory = fast_directory();
    let engine = FakeEngine::default();
    let host = FakeHost::new(0);
    let mut control = control(directory.path(), host, &engine);
    let mut waits = vec![0; 40];
    (waits[10], waits[20]) = (98, 2);
    engine.books().account = Some(ClientAccount {
        received_ns: 50_000_000,
        specified_ns: 30_000_000,
        turns: 7,
        migrations: 2,
        waited_ns: 9,
        waits,
        hybrid: Some(HybridReport {
            boost: Some(16.0),
            lead_ns: 5,
        }),
    });
    let request = Request::Register {
        pid: 100,
        name: None,
        funding: Funding {
            amount: 5,
            currency: None,
        },
        quantum_ns: None,
        max: None,
        adopts: false,
    };
    let registered = ask(&mut control, &user(0), request);
    let Response::Client(client) = registered else {
        panic!("{registered:?}")
    };
    assert_eq!(
        (client.received_ns, client.specified_ns, client.error_quanta),
        (50_000_000, 30_000_000, 1.0)
    );
    let turns = TurnsReport {
        turns: 7,
        migrations: 2,
        waited_ns: 9,
        wait_median_ns: 1 << 10,
        wait_99th_ns: 1 << 20,
    };
    assert_eq!(client.turns, Some(turns));
    let hybrid = client.hybrid.expect("the engine reports it");
    assert_eq!((hybrid.boost, hybrid.lead_ns), (Some(16.0), 5));
}

fn register(pid: u32, max: Option<CpuLimit>) -> Request {
    Request::Register {
        pid,
        name: Some("backup".into()),
        funding: Funding {
            amount: 5,
            currency: None,
        },
        quantum_ns: None,
        max,
        adopts: false,
    }
}

fn set_max(max: Option<CpuLimit>) -> Request {
    Request::SetMax {
        client: "backup".into(),
        max,
    }
}

#[test]
fn an_engine_without_limits_refuses_them_and_lets_them_end() {
    let directory = fast_directory();
    let half = CpuLimit::from_thousandths(500);
    let engine = FakeEngine::default();
    let mut before = control(directory.path(), FakeHost::new(0), &engine);
    ask(&mut before, &user(0), register(100, half));
    drop(before);
    let engine = FakeEngine::with_limits(0);
    let mut after = control(directory.path(), FakeHost::new(0), &engine);
    let trouble = |control: &mut Control| match ask(control, &user(0), Request::Status) {
        Response::Status(status) => status.trouble,
        other => panic!("{other:?}"),
    };
    let said = trouble(&mut after).expect("the limit is not held");
    assert!(said.contains("not that of client c0: end limits"), "{said}");
    for request in [set_max(CpuLimit::from_thousandths(1)), register(101, half)] {
        let refused = ask(&mut after, &user(0), request);
        let Response::Refused { message } = refused else {
            panic!("{refused:?}")
        };
        assert!(message.contains("holds no limits of CPU time"), "{message}");
    }
    assert_eq!(after.state.ledger.clients().count(), 1);
    assert_eq!(ask(&mut after, &user(0), set_max(None)), Response::Done);
    assert_eq!(trouble(&mut after), None);
}

fn set_hybrid(hybrid: HybridChoice) -> Request {
    Request::Configure {
        quantum_ns: None,
        policy: None,
        hybrid: Some(hybrid),
        stay: false,
        users: false,
    }
}

fn told_hybrid(control: &mut Control, request: Request) -> HybridChoice {
    match ask(control, &user(0), request) {
        Response::Status(status) => status.hybrid.expect("it is told"),
        other => panic!("{other:?}"),
    }
}

const KERNEL_PRIORITIES: HybridChoice = HybridChoice {
    kernel_priorities: true,
    ..HybridChoice::NONE
};

#[test]
fn mechanisms_change_live_and_the_journal_keeps_them() {
    let directory = fast_directory();
    let engine = FakeEngine::default();
    let mut before = control(directory.path(), FakeHost::new(0), &engine);
    let initial = told_hybrid(&mut before, Request::Status);
    assert_eq!(initial, HybridChoice::ALL);
    let in_force = |control: &Control| control.dispatcher.lock().unwrap().mechanisms();
    for choice in [HybridChoice::NONE, HybridChoice::ALL, KERNEL_PRIORITIES] {
        assert_eq!(told_hybrid(&mut before, set_hybrid(choice)), choice);
        assert_eq!(in_force(&before), Mechanisms::from(choice));
    }
    // Another change leaves them alone.
    ask(&mut before, &user(0), configure(PolicyName::Lottery));
    assert_eq!(in_force(&before), Mechanisms::from(KERNEL_PRIORITIES));
    drop(before);
    let mut after = control(directory.path(), FakeHost::new(0), &engine);
    let kept = told_hybrid(&mut after, Request::Status);
    assert_eq!(kept, KERNEL_PRIORITIES);
}

#[test]
fn mechanisms_that_an_engine_has_fixed_cannot_change() {
    let directory = fast_directory();
    let engine = FakeEngine::default();
    engine.books().hybrid = Some(KERNEL_PRIORITIES);
    let mut control = control(directory.path(), FakeHost::new(0), &engine);
    let refused = ask(&mut control, &user(0), set_hybrid(HybridChoice::NONE));
    let Response::Refused { message } = refused else {
        panic!("{refused:?}")
    };
    assert!(
        message.ends_with("use `prorata stop`, then `prorata start --engine fake --hybrid=none`"),
        "{message}"
    );
    let same = told_hybrid(&mut control, set_hybrid(KERNEL_PRIORITIES));
    assert_eq!(same, KERNEL_PRIORITIES);
    assert_eq!(control.state.settings.hybrid, None);
    let mechanisms = control.dispatcher.lock().unwrap().mechanisms();
    assert_eq!(mechanisms, Mechanisms::NONE);
}

fn event(client: ClientId, time_ns: u64) -> (ClientId, EventReport) {
    let report = EventReport {
        time_ns,
        client: None,
        name: String::new(),
        thread: None,
        what: EventKind::EarlyEnded,
    };
    (client, report)
}

#[test]
fn events_are_told_to_those_who_see_the_client() {
    let directory = fast_directory();
    let engine = FakeEngine::default();
    let mut control = control(directory.path(), FakeHost::new(0), &engine);
    let closed = Request::CreateCurrency {
        name: "closed".into(),
        owner: None,
        mode: Some(0o700),
    };
    ask(&mut control, &user(ALICE), closed);
    let mut backup = register(100, None);
    if let Request::Register { funding, .. } = &mut backup {
        funding.currency = Some("closed".into());
    }
    ask(&mut control, &user(ALICE), backup);
    let [own, gone] = [ClientId::from_parts(0, 0), ClientId::from_parts(9, 3)];
    engine.books().events = vec![event(own, 1), event(gone, 2), event(own, 3)];
    let mut told = |uid, count| match ask(&mut control, &user(uid), Request::Events { count }) {
        Response::Events(events) => {
            let events = events.into_iter();
            let events = events.map(|event| (event.time_ns, event.client.unwrap(), event.name));
            Ok(events.collect::<Vec<_>>())
        }
        Response::Refused { message } => Err(message),
        other => panic!("{other:?}"),
    };
    let own = |time_ns| (time_ns, "c0".to_owned(), "backup".to_owned());
    let gone = (2, "c9.3".to_owned(), "-".to_owned());
    assert_eq!(told(ALICE, 9), Ok(vec![own(1), own(3)]));
    assert_eq!(told(BOB, 9), Ok(vec![]));
    assert_eq!(told(0, MOST_EVENTS), Ok(vec![own(1), gone.clone(), own(3)]));
    assert_eq!(told(0, 2), Ok(vec![gone, own(3)]));
    assert_eq!(told(ALICE, 1), Ok(vec![own(3)]));
    for count in [0, MOST_EVENTS + 1] {
        let message = told(0, count).unwrap_err();
        assert!(message.ends_with("ask for 1 to 1000"), "{message}");
    }
}

#[test]
fn an_engine_without_events_says_what_to_do() {
    let directory = fast_directory();
    let engine = FakeEngine::without_events();
    let mut control = control(directory.path(), FakeHost::new(0), &engine);
    let refused = ask(&mut control, &user(0), Request::Events { count: 1 });
    let Response::Refused { message } = refused else {
        panic!("{refused:?}")
    };
    assert!(message.contains("--trace"), "{message}");
}

#[test]
fn an_engine_holds_as_many_limits_as_it_can_and_none_more() {
    let directory = fast_directory();
    let half = CpuLimit::from_thousandths(500);
    let engine = FakeEngine::with_limits(1);
    let mut control = control(directory.path(), FakeHost::new(0), &engine);
    ask(&mut control, &user(0), register(100, half));
    // Another limit of the same client is no further one.
    let quarter = CpuLimit::from_thousandths(250);
    assert_eq!(
        ask(&mut control, &user(0), set_max(quarter)),
        Response::Done
    );
    let Response::Refused { message } = ask(&mut control, &user(0), register(101, half)) else {
        panic!("a second limit was accepted")
    };
    assert!(
        message.contains("at most 1 limits of CPU time"),
        "{message}"
    );
    assert_eq!(ask(&mut control, &user(0), set_max(None)), Response::Done);
    let registered = ask(&mut control, &user(0), register(101, half));
    assert!(matches!(registered, Response::Client(_)), "{registered:?}");
}
