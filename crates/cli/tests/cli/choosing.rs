//! Choices about a daemon: settings, which take effect at once, and the engine,
//! which is fixed at the start.

use serde_json::json;

use crate::support::real::Real;
use crate::support::{output, prorata, stderr};

#[test]
fn good_settings_take_effect_and_bad_ones_are_refused() {
    let real = Real::start();
    let status = real.json(&["configure", "--quantum", "5ms", "--policy", "lottery"]);
    assert_eq!(
        (&status["quantum_ns"], &status["policy"]),
        (&5_000_000.into(), &"lottery".into())
    );
    for quantum in ["999us", "1001ms"] {
        real.refused(&["configure", "--quantum", quantum]);
    }
    assert_eq!(real.json(&["status"])["quantum_ns"], 5_000_000);
}

#[test]
fn mechanisms_of_hybrid_scheduling_change_live() {
    let real = Real::start();
    let all = json!({
        "kernel-priorities": true, "abbreviated-quanta": true, "ticket-boost": true, "nice": true,
    });
    assert_eq!(real.json(&["status"])["hybrid"], all);
    let none = real.json(&["configure", "--hybrid=none"]);
    assert_eq!(none["hybrid"]["ticket-boost"], false);
    let boost = real.json(&["start", "--hybrid=ticket-boost"]);
    assert_eq!(
        (
            &boost["hybrid"]["ticket-boost"],
            &boost["hybrid"]["kernel-priorities"]
        ),
        (&true.into(), &false.into())
    );
    let wrong = output(real.prorata().args(["configure", "--hybrid=magic"]));
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
    let shown = real.json(&["start", "--engine", "user", "--hybrid"]);
    assert_eq!(shown["hybrid"], all);
}

#[test]
fn the_engine_is_chosen_only_at_the_start() {
    let real = Real::start();
    assert_eq!(real.json(&["status"])["engine"], "user");
    assert_eq!(real.json(&["start", "--engine", "user"])["engine"], "user");
    let said = real.refused(&["start", "--engine", "kernel"]);
    assert!(said.contains("user and not kernel"), "{said}");
    real.done(&["stop"]);
    // Tests of the kernel engine run in micro-VMs. Elsewhere the engine is refused
    // with a reason.
    if !std::path::Path::new("/sys/kernel/sched_ext").exists() {
        for all in [&[][..], &["--clients-only"]] {
            let said = real.refused(&[&["start", "--engine", "kernel"], all].concat());
            let reasons = ["built without", "by root alone", "no sched_ext"];
            assert!(reasons.iter().any(|reason| said.contains(reason)), "{said}");
        }
    }
    // The refused choice is not remembered.
    assert_eq!(real.json(&["start"])["engine"], "user");
}

#[test]
fn kernel_options_are_refused_for_the_user_engine() {
    let real = Real::start();
    for option in [
        &["--clients-only"][..],
        &["--all"],
        &["--queues", "one"],
        &["--abbreviated"],
        &["--trace"],
    ] {
        for engine in [&["start"][..], &["start", "--engine", "user"]] {
            let ended = output(real.prorata().args([engine, option].concat()));
            assert_eq!(ended.status.code(), Some(2), "{}", stderr(&ended));
        }
    }
    let named = ["start", "--engine", "kernel", "--queues", "none"];
    let ended = output(real.prorata().args(named));
    assert_eq!(ended.status.code(), Some(2), "{}", stderr(&ended));
}

#[test]
fn reading_on_a_named_socket_starts_no_daemon() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("none/socket");
    let named = ["--socket", socket.to_str().unwrap()];
    for command in [
        &["ps"][..],
        &["lscur"],
        &["lstkt"],
        &["graph"],
        &["events"],
        &["show-tickets"],
        &["show-funding"],
        &["transfer", "--list"],
        &["slots", "watch"],
        &["slots", "tokens"],
    ] {
        let ended = output(prorata(&socket).args(named).args(command));
        assert_eq!(ended.status.code(), Some(1), "{command:?}");
        assert!(stderr(&ended).contains("no daemon runs on"), "{command:?}");
        assert!(!directory.path().join("none").exists(), "{command:?}");
    }
}
