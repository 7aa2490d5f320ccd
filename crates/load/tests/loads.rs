//! All loads at small sizes, to their end and broken off, and at their limits.

use std::process::Command;

use prorata_load::chat::{self, ChatSettings, Transport};
use prorata_load::keys::{self, KeysSettings};
use prorata_load::reflex::{self, ReflexSettings};
use prorata_load::wake::{self, WakeSettings};
use prorata_load::{LoadError, MAX_THREADS, Watch};

fn small_chat(transport: Transport) -> ChatSettings {
    ChatSettings {
        rooms: 2,
        users: 5,
        messages: 70,
        transport,
    }
}

fn small_reflex() -> ReflexSettings {
    ReflexSettings {
        active_sets: 3,
        threads: 4,
        rounds: 500,
        yield_probability: 0.5,
        compute_ns: 0,
    }
}

fn small_wake() -> WakeSettings {
    WakeSettings {
        period_ns: 1_000_000,
        work_ns: 0,
        wakes: 100,
    }
}

#[test]
fn every_message_arrives_once() {
    for transport in [Transport::Tcp, Transport::Unix] {
        let report = chat::run(&small_chat(transport), &mut ()).unwrap();
        assert_eq!(report.delivered, 2 * 5 * 70 * 4);
        assert_eq!(report.threads, 2 * 5 * 4);
        let performance = report.performance;
        assert!(performance.elapsed_ns > 0 && report.messages_per_second > 0.0);
        // Each thread waited for the beginning at least.
        assert!(performance.effort.voluntary_switches >= report.threads / 2);
        if let Some(turns) = performance.run_queue {
            assert!(turns.turns >= report.threads && turns.ran_ns > 0);
        }
    }
}

#[test]
fn every_round_is_performed_once() {
    let report = reflex::run(&small_reflex(), &mut ()).unwrap();
    assert_eq!(report.all_rounds, 1_500);
    // The last round of each token is neither a yield nor a pass.
    assert_eq!(report.yields + report.passes, 1_500 - 3);
    assert_eq!(report.all_threads, 12);
    assert_eq!(
        report.round_ns,
        report.performance.elapsed_ns as f64 / report.all_rounds as f64
    );
    // The seeds are fixed.
    let again = reflex::run(&small_reflex(), &mut ()).unwrap();
    assert_eq!((report.yields, report.passes), (again.yields, again.passes));
}

#[test]
fn the_probability_decides_between_yields_and_passes() {
    let with = |yield_probability| {
        let settings = ReflexSettings {
            yield_probability,
            ..small_reflex()
        };
        reflex::run(&settings, &mut ()).unwrap()
    };
    assert_eq!((with(0.0).yields, with(0.0).passes), (0, 1_497));
    assert_eq!((with(1.0).yields, with(1.0).passes), (1_497, 0));
    let often = with(0.9).yields;
    assert!((1_300..=1_400).contains(&often), "{often}");
}

#[test]
fn no_wake_comes_before_it_is_due() {
    let report = wake::run(&small_wake(), &mut ()).unwrap();
    let latencies = report.latencies;
    assert!(report.performance.elapsed_ns >= 100 * 1_000_000);
    assert!(latencies.p50_ns <= latencies.p99_ns && latencies.p99_ns <= latencies.max_ns);
}

/// Work of ten periods delays each wake by nine more: the latencies count from the due times.
#[test]
fn late_work_counts_for_all_wakes_that_it_delays() {
    let settings = WakeSettings {
        period_ns: 100_000,
        work_ns: 1_000_000,
        wakes: 50,
    };
    let report = wake::run(&settings, &mut ()).unwrap();
    // The first wake is on time. An interrupted calibration can make the work too short.
    assert!(report.late >= 45, "{report:?}");
    assert!(
        report.latencies.max_ns > 20 * settings.period_ns,
        "{report:?}"
    );
}

/// Ends a load at the first look.
struct Impatient {
    looks: u32,
}

impl Watch for Impatient {
    fn progress(&mut self, done: u64, of: u64) {
        assert!(done < of);
        self.looks += 1;
    }

    fn is_over(&mut self) -> bool {
        true
    }
}

#[test]
fn a_watch_can_end_a_load() {
    let mut impatient = Impatient { looks: 0 };
    let endless = ChatSettings {
        messages: 1_000_000,
        ..small_chat(Transport::Tcp)
    };
    let ended = chat::run(&endless, &mut impatient);
    assert!(matches!(ended, Err(LoadError::Interrupted)), "{ended:?}");
    let endless = ReflexSettings {
        rounds: 1_000_000_000,
        ..small_reflex()
    };
    let ended = reflex::run(&endless, &mut impatient);
    assert!(matches!(ended, Err(LoadError::Interrupted)), "{ended:?}");
    let endless = WakeSettings {
        wakes: 10_000_000,
        ..small_wake()
    };
    let ended = wake::run(&endless, &mut impatient);
    assert!(matches!(ended, Err(LoadError::Interrupted)), "{ended:?}");
    assert_eq!(impatient.looks, 3);
}

fn small_keys(command: &[&str]) -> KeysSettings {
    KeysSettings {
        rate: 200,
        keys: 60,
        first: String::new(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
    }
}

#[test]
fn every_key_is_echoed_by_a_terminal() {
    let report = keys::run(&small_keys(&["cat"]), &mut ()).unwrap();
    assert_eq!(report.unanswered, 0);
    assert!(report.latencies.p50_ns > 0 && report.latencies.p50_ns <= report.latencies.max_ns);
}

#[test]
fn an_editor_echoes_what_it_inserts() {
    let editor = ["vim", "-u", "NONE", "-i", "NONE", "-n"];
    if Command::new(editor[0]).arg("--version").output().is_err() {
        println!("skipped: there is no vim");
        return;
    }
    let settings = KeysSettings {
        first: "i".to_owned(),
        ..small_keys(&editor)
    };
    assert_eq!(keys::run(&settings, &mut ()).unwrap().unanswered, 0);
}

#[test]
fn a_program_that_cannot_be_typed_into_is_told() {
    let refused = |command: &[&str]| keys::run(&small_keys(command), &mut ()).unwrap_err();
    assert!(matches!(refused(&["true"]), LoadError::ProgramEnded));
    assert!(matches!(
        refused(&["/nonexistent/editor"]),
        LoadError::Program { .. }
    ));
    let silent = ["sh", "-c", "stty -echo; exec sleep 600"];
    let report = keys::run(&small_keys(&silent), &mut ()).unwrap();
    assert_eq!(report.unanswered, 60);
    let with = |change: fn(&mut KeysSettings)| {
        let mut settings = small_keys(&["cat"]);
        change(&mut settings);
        keys::run(&settings, &mut ()).unwrap_err().to_string()
    };
    assert!(with(|s| s.rate = 0).contains("rate 0 is out of range: give 1 to 1000"));
    assert!(with(|s| s.rate = 1_001).contains("rate 1001"));
    assert!(with(|s| s.keys = 0).contains("keys 0"));
    assert!(with(|s| s.keys = 1_000_001).contains("give 1 to 1000000"));
    assert!(with(|s| s.command.clear()).contains("words of the command 0"));
}

#[test]
fn settings_beyond_the_limits_are_refused() {
    let chat = |rooms, users, messages| {
        let settings = ChatSettings {
            rooms,
            users,
            messages,
            transport: Transport::Tcp,
        };
        chat::run(&settings, &mut ()).unwrap_err().to_string()
    };
    let rooms = MAX_THREADS / 8;
    assert!(chat(rooms + 1, 2, 1).contains("16392 threads, more than 16384"));
    assert!(chat(0, 20, 1).contains("rooms 0 is out of range"));
    assert!(chat(1, 1, 1).contains("users 1 is out of range"));
    assert!(chat(1, 20, 0).contains("messages 0 is out of range"));
    assert!(chat(1, 20, 1_000_001).contains("give 1 to 1000000"));
    let reflex = |change: fn(&mut ReflexSettings)| {
        let mut settings = small_reflex();
        change(&mut settings);
        reflex::run(&settings, &mut ()).unwrap_err().to_string()
    };
    assert!(reflex(|s| s.active_sets = 0).contains("active sets 0"));
    assert!(reflex(|s| s.active_sets = u64::MAX).contains("active sets"));
    assert!(reflex(|s| s.active_sets = 4_097).contains("16388 threads"));
    assert!(reflex(|s| s.threads = 1).contains("threads 1"));
    assert!(reflex(|s| s.rounds = 0).contains("rounds 0"));
    assert!(reflex(|s| s.compute_ns = 1_000_000_001).contains("compute"));
    for wrong in [-0.1, 1.1, f64::NAN] {
        let settings = ReflexSettings {
            yield_probability: wrong,
            ..small_reflex()
        };
        let refused = reflex::run(&settings, &mut ());
        assert!(matches!(refused, Err(LoadError::NoProbability(_))));
    }
    let wake = |change: fn(&mut WakeSettings)| {
        let mut settings = small_wake();
        change(&mut settings);
        wake::run(&settings, &mut ()).map_err(|refused| refused.to_string())
    };
    let refused = |change, why: &str| {
        let found = wake(change).unwrap_err();
        assert!(found.contains(why), "{found}");
    };
    refused(|s| s.period_ns = 999, "period 999 is out of range");
    refused(|s| s.period_ns = 10_000_000_001, "give 1000 to 10000000000");
    refused(|s| s.work_ns = 1_000_000_001, "work 1000000001");
    refused(|s| s.wakes = 0, "wakes 0");
    refused(|s| s.wakes = 10_000_001, "give 1 to 10000000");
    assert!(wake(|s| (s.period_ns, s.wakes) = (1_000, 1)).is_ok());
}
