//! A daemon never loses a confirmed change.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use prorata_core::rng::{Rng, SeedableRng, Xoshiro256PlusPlus};
use prorata_protocol::{Funding, Request, Response, TransferPortion};
use rustix::process::{Resource, Rlimit, Signal, kill_process, prlimit};

use super::harness::{
    Daemon, Elsewhere, Sleeper, directory, eventually, lend_ten, refusal, tickets,
};
use crate::control::Control;
use crate::journal::Journal;
use crate::peer::Peer;
use crate::process::ProcessId;
use crate::testing::requests::below;
use crate::testing::{FakeEngine, ask, control, fast_directory, image};

/// The daemon's whole report.
fn reports_of(daemon: &Daemon) -> Vec<Response> {
    let mut connection = daemon.connect();
    [
        Request::Clients,
        Request::Currencies,
        Request::Tickets { currency: None },
        Request::Transfers,
    ]
    .map(|request| connection.call(&request).unwrap())
    .into()
}

/// What the daemon remembers: more than its report, since it determines later
/// identifiers.
fn remembered(daemon: &Daemon) -> String {
    let journal = daemon.paths.state.join("journal");
    let opened = Journal::open(journal, String::new()).unwrap();
    image(&opened.found.unwrap().0)
}

/// A past event of a daemon.
#[derive(Clone)]
enum Event {
    Asked(Request),
    Ended(ProcessId),
}

/// A daemon without crashes, for comparison.
struct Reference {
    control: Control,
    engine: FakeEngine,
    who: Peer,
    _directory: tempfile::TempDir,
}

impl Reference {
    fn after(history: &[Event], host: &Elsewhere) -> Self {
        let directory = fast_directory();
        let engine = FakeEngine::default();
        let control = control(directory.path(), host.clone(), &engine);
        let (stream, _other) = UnixStream::pair().unwrap();
        let who = Peer::of(&stream).unwrap();
        let mut reference = Self {
            control,
            engine,
            who,
            _directory: directory,
        };
        for event in history {
            match event {
                Event::Asked(request) => drop(reference.ask(request.clone())),
                Event::Ended(process) => {
                    reference.engine.end(*process);
                    reference.control.remove_exited();
                }
            }
        }
        reference
    }

    fn ask(&mut self, request: Request) -> Response {
        ask(&mut self.control, &self.who, request)
    }
}

/// A request that is likely to be accepted.
fn request(random: &mut Xoshiro256PlusPlus, sleepers: &[Sleeper]) -> Request {
    let pid = sleepers[below(random, sleepers.len())].pid();
    let currency = format!("money-{}", below(random, 4));
    let other = format!("money-{}", below(random, 4));
    let amount = 1 + below(random, 1_000) as u32;
    let ticket = format!("t{}", below(random, 12));
    let transfer = format!("x{}", below(random, 4));
    match below(random, 12) {
        0 | 1 => Request::Register {
            pid,
            name: None,
            funding: tickets(amount),
            quantum_ns: None,
            max: None,
            adopts: false,
        },
        2 => Request::Release {
            client: pid.to_string(),
        },
        3 | 4 => Request::SetTickets {
            client: pid.to_string(),
            funding: tickets(amount),
        },
        5 => Request::CreateCurrency {
            name: currency,
            owner: None,
            mode: None,
        },
        6 => Request::DestroyCurrency { name: currency },
        7 => Request::Issue {
            funding: Funding {
                amount,
                currency: Some(currency),
            },
            target: Some(other),
        },
        8 => Request::SetAmount { ticket, amount },
        9 => Request::DestroyTicket { ticket },
        10 => Request::Transfer {
            from: pid.to_string(),
            portion: TransferPortion::Whole(vec![currency]),
            hold: false,
        },
        _ => Request::EndTransfer { transfer },
    }
}

/// Kills the daemon with `kill -9` during its work, again and again. Every
/// confirmed change is there afterwards, and of the others at most the one
/// request during which it was killed.
#[test]
fn a_confirmed_change_survives_kill_9() {
    const SEED: u64 = 1;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut host = Elsewhere {
        processes: Some(BTreeMap::new()),
    };
    let mut sleepers: Vec<Sleeper> = (0..6).map(|_| Sleeper::start()).collect();
    for sleeper in &sleepers {
        host.add(sleeper);
    }
    let mut history: Vec<Event> = Vec::new();
    let mut daemon = Daemon::start(&directory());
    let mut survivors = 0;
    for round in 0..12 {
        let mut reference = Reference::after(&history, &host);
        let mut connection = daemon.connect();
        // A number of answers, on any machine, and a moment more.
        let answers = 3 + 2 * (round % 5);
        let delay = Duration::from_micros(random.next_u64() % 5_000);
        let (answered, heard) = std::sync::mpsc::channel();
        let pid = daemon.pid();
        let killer = std::thread::spawn(move || {
            for _ in 0..answers {
                heard.recv().unwrap();
            }
            std::thread::sleep(delay);
            kill_process(pid, Signal::KILL).unwrap();
        });
        let last = loop {
            let request = request(&mut random, &sleepers);
            let context = format!("seed {SEED}, round {round}: {request:?}");
            match connection.call(&request) {
                Ok(response) => assert_eq!(response, reference.ask(request.clone()), "{context}"),
                Err(_) => break Event::Asked(request),
            }
            history.push(Event::Asked(request));
            // The killer listens only for so long.
            let _ = answered.send(());
        };
        // If the daemon ended early, the killer fails instead of waiting.
        drop(answered);
        killer.join().unwrap();

        // A client ends while there is no daemon.
        let ended = Event::Ended(host.add(&sleepers[0]));
        sleepers.remove(0);
        sleepers.push(Sleeper::start());
        host.add(sleepers.last().unwrap());

        daemon = daemon.succeed();
        let found = remembered(&daemon);
        let without = [&history[..], std::slice::from_ref(&ended)].concat();
        let with = [&history[..], &[last.clone(), ended]].concat();
        history = if found == image(&Reference::after(&without, &host).control.state) {
            without
        } else {
            survivors += 1;
            assert_eq!(
                found,
                image(&Reference::after(&with, &host).control.state),
                "seed {SEED}, {round}"
            );
            with
        };
    }
    let confirmed = history.len() - 12 - survivors;
    assert!(
        confirmed > 50,
        "seed {SEED}: only {confirmed} requests were confirmed"
    );
    println!("{confirmed} requests confirmed; {survivors} of 12 survived without");
}

#[test]
fn a_crash_ends_held_transfers_and_nothing_else() {
    let daemon = Daemon::start(&directory());
    let (giver, receiver) = (Sleeper::start(), Sleeper::start());
    daemon.register(&giver, "giver");
    daemon.register(&receiver, "receiver");
    let mut holder = daemon.connect();
    for hold in [true, false, true] {
        assert!(matches!(
            holder.call(&lend_ten(hold)),
            Ok(Response::Created(_))
        ));
    }
    let daemon = daemon.succeed();
    let Response::Transfers(transfers) = daemon.ask(Request::Transfers) else {
        panic!()
    };
    assert_eq!(transfers.len(), 1);
    assert_eq!(transfers[0].id, "x1");
}

#[test]
fn clients_do_not_outlive_the_boot_of_their_processes() {
    let mut daemon = Daemon::start(&directory());
    let sleeper = Sleeper::start();
    daemon.register(&sleeper, "sleeper");
    let create = Request::CreateCurrency {
        name: "lasting".into(),
        owner: None,
        mode: None,
    };
    assert!(matches!(daemon.ask(create), Response::Created(_)));
    daemon.signal(Signal::KILL);
    daemon.wait();
    // The same journal, as if written before a boot.
    let path = daemon.paths.state.join("journal");
    let opened = Journal::open(path, "another boot".into()).unwrap();
    let (state, _) = opened.found.unwrap();
    let mut journal = opened.journal;
    journal.rewrite(&state).unwrap();

    let daemon = Daemon::start(&daemon.directory);
    assert!(daemon.client_names().is_empty());
    let Response::Currencies(currencies) = daemon.ask(Request::Currencies) else {
        panic!()
    };
    assert!(currencies.iter().any(|currency| currency.name == "lasting"));
}

/// Limits the daemon's files to `bytes`. Like a full disk, this refuses writes,
/// and bytes that still fit are written.
fn limit_files(daemon: &Daemon, bytes: Option<u64>) {
    let limit = Rlimit {
        current: bytes,
        maximum: None,
    };
    prlimit(Some(daemon.pid()), Resource::Fsize, limit).unwrap();
}

fn journal_length(daemon: &Daemon) -> u64 {
    fs::metadata(daemon.paths.state.join("journal"))
        .unwrap()
        .len()
}

#[test]
fn on_a_full_disk_only_changes_are_refused() {
    let mut daemon = Daemon::start(&directory());
    let (first, second) = (Sleeper::start(), Sleeper::start());
    daemon.register(&first, "first");
    daemon.register(&second, "second");
    let before = reports_of(&daemon);
    // Every number of bytes that may still fit, for a record of about a
    // hundred.
    for spare in (0..80).step_by(9) {
        let length = journal_length(&daemon);
        limit_files(&daemon, Some(length + spare));
        let request = Request::CreateCurrency {
            name: "more".into(),
            owner: None,
            mode: None,
        };
        let Response::NotKept { message } = daemon.ask(request) else {
            panic!("{spare} bytes were enough");
        };
        assert!(
            message.contains("cannot be written, so nothing was changed"),
            "{message}"
        );
        assert_eq!(reports_of(&daemon), before, "{spare}");
        assert_eq!(journal_length(&daemon), length, "the torn record is gone");
    }
    assert!(daemon.is_alive());

    // Requests that change nothing are answered, and exits are noticed.
    drop(first);
    eventually(|| (daemon.client_names() == ["second"]).then_some(()));

    limit_files(&daemon, None);
    let request = Request::CreateCurrency {
        name: "more".into(),
        owner: None,
        mode: None,
    };
    assert!(matches!(daemon.ask(request), Response::Created(_)));
    let before = reports_of(&daemon);
    let mut daemon = daemon.succeed();
    assert_eq!(reports_of(&daemon), before);

    // The daemon can be stopped; only its journal does not know it.
    limit_files(&daemon, Some(journal_length(&daemon)));
    assert_eq!(daemon.ask(Request::Stop), Response::Done);
    assert_eq!(daemon.wait().code(), Some(0));
    assert_eq!(Daemon::start(&daemon.directory).client_names(), ["second"]);
}

#[test]
fn a_daemon_starts_and_answers_on_a_full_disk() {
    let daemon = Daemon::start(&directory());
    let sleeper = Sleeper::start();
    daemon.register(&sleeper, "sleeper");
    let before = reports_of(&daemon);
    let length = journal_length(&daemon);
    // A directory in the way keeps the new journal from being written.
    let in_the_way = daemon.paths.state.join("journal.new");
    fs::create_dir(&in_the_way).unwrap();
    let daemon = daemon.succeed();
    assert_eq!(reports_of(&daemon), before);
    assert_eq!(
        journal_length(&daemon),
        length,
        "the old journal is as it was"
    );
    let request = Request::Release {
        client: "sleeper".into(),
    };
    let message = refusal(daemon.ask(request.clone()));
    assert!(message.contains("nothing was changed"), "{message}");

    fs::remove_dir(&in_the_way).unwrap();
    assert_eq!(daemon.ask(request), Response::Done);
    assert!(daemon.succeed().client_names().is_empty());
}

#[test]
fn a_damaged_journal_is_set_aside_and_the_daemon_goes_on() {
    let daemon = Daemon::start(&directory());
    let sleeper = Sleeper::start();
    let create = |name: &str| Request::CreateCurrency {
        name: name.into(),
        owner: None,
        mode: None,
    };
    daemon.register(&sleeper, "sleeper");
    let length = journal_length(&daemon) as usize;
    for name in ["lost", "lost too"] {
        assert!(matches!(daemon.ask(create(name)), Response::Created(_)));
    }
    let journal = daemon.paths.state.join("journal");
    let mut bytes = fs::read(&journal).unwrap();
    bytes[length + 30] ^= 1;
    fs::write(&journal, &bytes).unwrap();

    let daemon = daemon.succeed();
    assert_eq!(daemon.client_names(), ["sleeper"]);
    let Response::Currencies(currencies) = daemon.ask(Request::Currencies) else {
        panic!()
    };
    assert!(
        !currencies
            .iter()
            .any(|currency| currency.name.starts_with("lost"))
    );
    assert_eq!(
        fs::read(journal.with_extension("damaged-1")).unwrap(),
        bytes
    );
    let log = fs::read_to_string(daemon.paths.log()).unwrap();
    assert!(log.contains("the journal is damaged"), "{log}");

    // A second time, beyond recognition.
    fs::write(&journal, b"nothing of a journal").unwrap();
    let daemon = daemon.succeed();
    assert!(daemon.client_names().is_empty());
    let kept = fs::read(journal.with_extension("damaged-2")).unwrap();
    assert_eq!(kept, b"nothing of a journal");
}
