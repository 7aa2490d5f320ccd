//! The output of the commands that show the daemon's state.

use prorata_protocol::{
    ClientReport, ClientState, CurrencyReport, Funding, HybridChoice, HybridReport, NiceReport,
    OutsideReport, Request, Response, StatusReport, TicketReport, TransferReport,
};
use serde_json::{Value, json};

use crate::support::fake::{Fake, client, status};
use crate::support::pty::{CTRL_C, Pty};
use crate::support::{eventually, output, prorata, stderr, stdout};

/// A part of the ledger of 1994, Figure 3, with a hostile name.
fn ledger() -> Fake {
    let currency = |name: &str, issued, active| CurrencyReport {
        id: "u1".to_owned(),
        name: name.to_owned(),
        owner: 0,
        mode: "744".to_owned(),
        issued,
        active,
        value: active as f64,
        backing: vec!["t1".to_owned()],
    };
    let ticket = |id: &str, currency: &str, amount, target: Option<&str>| TicketReport {
        id: id.to_owned(),
        currency: currency.to_owned(),
        amount,
        lent: 0,
        target: target.map(str::to_owned),
        active: target.is_some(),
        value: f64::from(amount),
        transfer: None,
    };
    let transfer = TransferReport {
        id: "x1".into(),
        from: "build".into(),
        shares: vec![("client:viewer".into(), "alice".into(), 5)],
    };
    Fake::answering(move |request| match request {
        Request::Clients => Some(Response::Clients(vec![
            ClientReport {
                name: "build".into(),
                share: 0.75,
                received_ns: 750_000_000,
                ..client("c1")
            },
            ClientReport {
                name: "\u{1b}[2Jevil<".into(),
                share: 0.25,
                state: ClientState::Waiting,
                ..client("c2")
            },
        ])),
        Request::Currencies => Some(Response::Currencies(vec![
            currency("base", 1000, 1000),
            currency("alice", 300, 300),
        ])),
        Request::Tickets { currency } => {
            let all = vec![
                ticket("t1", "base", 1000, Some("currency:alice")),
                ticket("t2", "alice", 200, Some("client:build")),
                ticket("t3", "alice", 100, Some("client:\u{1b}[2Jevil<")),
                ticket("t4", "alice", 9, None),
            ];
            let wanted = |ticket: &TicketReport| {
                currency
                    .as_ref()
                    .is_none_or(|name| ticket.currency == *name)
            };
            Some(Response::Tickets(all.into_iter().filter(wanted).collect()))
        }
        Request::Transfers => Some(Response::Transfers(vec![transfer.clone()])),
        _ => None,
    })
}

fn printed(fake: &Fake, arguments: &[&str]) -> String {
    let ended = output(prorata(&fake.socket()).args(arguments));
    assert_eq!(
        (ended.status.code(), stderr(&ended).as_str()),
        (Some(0), ""),
        "{arguments:?}"
    );
    stdout(&ended)
}

fn parsed(fake: &Fake, arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(fake, arguments)).expect("JSON")
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn json_has_the_protocols_names() {
    let fake = ledger();
    let client = [
        "error_quanta",
        "id",
        "name",
        "owner",
        "pid",
        "processes",
        "received_ns",
        "share",
        "specified_ns",
        "state",
        "tickets",
        "value",
    ];
    for command in ["ps", "show-tickets"] {
        assert_eq!(keys(&parsed(&fake, &[command, "--json"])[0]), client);
    }
    assert_eq!(
        keys(&parsed(&fake, &["lscur", "--json"])[0]),
        [
            "active", "backing", "id", "issued", "mode", "name", "owner", "value"
        ]
    );
    assert_eq!(
        keys(&parsed(&fake, &["lstkt", "--json"])[0]),
        [
            "active", "amount", "currency", "id", "lent", "target", "transfer", "value"
        ]
    );
    assert_eq!(
        keys(&parsed(&fake, &["graph", "--json"])),
        ["clients", "currencies", "tickets"]
    );
    assert_eq!(
        keys(&parsed(&fake, &["transfer", "--list", "--json"])[0]),
        ["from", "id", "shares"]
    );
    let status = [
        "clients",
        "cpus",
        "decisions",
        "engine",
        "engine_choice",
        "mechanism",
        "own_cpu_ns",
        "pid",
        "policy",
        "quantum_ns",
        "uptime_ns",
        "version",
    ];
    for arguments in [
        &["status", "--json"][..],
        &["start", "--json"],
        &["configure", "--policy", "lottery", "--json"],
    ] {
        assert_eq!(keys(&parsed(&fake, arguments)), status);
    }
    assert_eq!(
        parsed(&fake, &["mkcur", "x", "--json"]),
        json!({"created": "u1"})
    );
    assert_eq!(
        parsed(&fake, &["mktkt", "5", "--json"]),
        json!({"created": "t1"})
    );
    assert_eq!(
        parsed(&fake, &["transfer", "a", "b=1", "--json"]),
        json!({"created": "x1"})
    );
}

#[test]
fn names_in_tables_are_escaped() {
    let fake = ledger();
    for arguments in [
        &["ps"][..],
        &["lstkt"],
        &["graph"],
        &["show-tickets"],
        &["graph", "--svg", "-"],
    ] {
        let printed = printed(&fake, arguments);
        assert!(printed.contains("evil"), "{arguments:?}: {printed}");
        assert!(!printed.contains('\u{1b}'), "{arguments:?}: {printed}");
    }
}

#[test]
fn ps_shows_specified_and_received_time() {
    let lines = printed(&ledger(), &["ps"]);
    let mut lines = lines.lines();
    let heading: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let wanted =
        "ID NAME USER PID PROCS TICKETS VALUE SHARE CPU SPECIFIED RECEIVED ERROR STATE QUANTUM";
    assert_eq!(heading.join(" "), wanted);
    let row = lines.next().unwrap();
    for cell in [
        "c1", "build", "root", "100.me", "75.0 %", "0.75 s", "+0.0", "running",
    ] {
        assert!(row.contains(cell), "{cell} is missing in {row}");
    }
}

/// Clients with all that a narrow terminal leaves out.
fn hybrid_ledger() -> Fake {
    let judged = |id: &str, boost, lead_ns, greatest| ClientReport {
        hybrid: Some(HybridReport { boost, lead_ns }),
        nice: Some(NiceReport { least: 0, greatest }),
        ..client(id)
    };
    Fake::answering(move |request| {
        matches!(request, Request::Clients).then(|| {
            Response::Clients(vec![
                judged("c1", Some(10_000.0), 0, 0),
                judged("c2", None, 98_760_000, 19),
            ])
        })
    })
}

#[test]
fn boost_lead_and_nice_are_shown_where_there_is_room() {
    let fake = hybrid_ledger();
    for (columns, shows) in [(200, true), (80, false)] {
        let mut ps = prorata(&fake.socket());
        let ps = ps.arg("ps");
        let printed = stdout(&output(ps.env("PRORATA_TERMINAL", format!("{columns}x24"))));
        let lines: Vec<&str> = printed.lines().collect();
        let shown = lines[0].ends_with("BOOST     LEAD   NICE");
        assert_eq!(shown, shows, "{printed}");
        assert!(lines[0].contains("ERROR  STATE"), "{printed}");
        if shows {
            assert!(lines[1].ends_with("10000   0.0 ms      0"), "{printed}");
            assert!(lines[2].ends_with("98.8 ms  0..19"), "{printed}");
        }
    }
    let clients = parsed(&fake, &["ps", "--json"]);
    assert_eq!(
        (&clients[0]["hybrid"], &clients[1]["hybrid"]),
        (
            &json!({"boost": 10_000.0, "lead_ns": 0}),
            &json!({"lead_ns": 98_760_000})
        )
    );
    assert_eq!(clients[1]["nice"], json!({"least": 0, "greatest": 19}));
}

#[test]
fn narrow_terminals_keep_the_error_and_the_state() {
    let fake = ledger();
    for (columns, quantum) in [(80, "QUANTUM"), (200, "QUANTUM"), (60, "STATE")] {
        let mut ps = prorata(&fake.socket());
        let ps = output(
            ps.arg("ps")
                .env("PRORATA_TERMINAL", format!("{columns}x24")),
        );
        let printed = stdout(&ps);
        let heading = printed.lines().next().unwrap();
        for kept in [
            "ID", "NAME", "TICKETS", "SHARE", "CPU", "ERROR", "STATE", quantum,
        ] {
            assert!(heading.contains(kept), "{columns} {kept}: {heading}");
        }
        assert_eq!(heading.contains("RECEIVED"), columns > 80, "{heading}");
        assert!(printed.lines().all(|line| line.chars().count() <= columns));
    }
}

#[test]
fn empty_lists_are_reported_on_standard_error() {
    let fake = Fake::answering(|request| {
        matches!(request, Request::Clients).then(|| Response::Clients(Vec::new()))
    });
    let ended = output(prorata(&fake.socket()).arg("ps"));
    assert_eq!(
        (ended.status.code(), stdout(&ended).as_str()),
        (Some(0), "")
    );
    assert!(stderr(&ended).contains("start one with `prorata run`"));
    assert_eq!(printed(&fake, &["ps", "--json"]), "[]\n");
}

#[test]
fn ps_and_status_tell_of_load_outside_and_status_gives_advice() {
    let fake = Fake::answering(|request| {
        let outside = [(0, 80), (3, 7)].map(|(cpu, percent)| OutsideReport { cpu, percent });
        matches!(request, Request::Status).then(|| {
            Response::Status(StatusReport {
                outside: outside.to_vec(),
                advice: Some("ask root".to_owned()),
                ..status()
            })
        })
    });
    let ended = output(prorata(&fake.socket()).arg("ps"));
    let told = "prorata: other programs use 80 % of CPU 0, 7 % of CPU 3\n";
    assert_eq!(
        (stderr(&ended).as_str(), ended.status.code()),
        (told, Some(0))
    );
    let printed = printed(&fake, &["status"]);
    assert!(
        printed.contains("load outside  80 % of CPU 0, 7 % of CPU 3\n"),
        "{printed}"
    );
    assert!(printed.contains("advice        ask root\n"), "{printed}");
    let report = parsed(&fake, &["status", "--json"]);
    assert_eq!(report["outside"][1], json!({"cpu": 3, "percent": 7}));
    let quiet = output(prorata(&Fake::start().socket()).arg("ps"));
    assert_eq!(stderr(&quiet), "");
}

#[test]
fn show_funding_sums_base_tickets_by_user() {
    let fake = ledger();
    let report = json!([{"currency": "alice", "owner": 0, "base_tickets": 1000, "active": true}]);
    assert_eq!(parsed(&fake, &["show-funding", "root", "--json"]), report);
    assert_eq!(
        parsed(&fake, &["show-funding", "4711", "--json"]),
        json!([])
    );
    let refused = output(prorata(&fake.socket()).args(["show-funding", "no-such-user-here"]));
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("there is no user \"no-such-user-here\""),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn graph_draws_text_and_svg() {
    let fake = ledger();
    assert!(printed(&fake, &["graph", "--text"]).contains("└─ 1000 ─> alice"));
    let file = fake.directory().join("graph.svg");
    assert_eq!(
        printed(&fake, &["graph", "--svg", file.to_str().unwrap()]),
        ""
    );
    let drawing = std::fs::read_to_string(&file).unwrap();
    assert!(
        drawing.starts_with("<svg ") && drawing.contains("evil&lt;"),
        "{drawing}"
    );
    let refused =
        output(prorata(&fake.socket()).args(["graph", "--svg", "/nonexistent/graph.svg"]));
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("cannot write /nonexistent/graph.svg"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn each_command_sends_its_request() {
    let fake = Fake::start();
    let funding = |amount, currency: Option<&str>| Funding {
        amount,
        currency: currency.map(str::to_owned),
    };
    let text = str::to_owned;
    let asked: [(&[&str], Request); 16] = [
        (
            &["set", "b", "5"],
            Request::SetTickets {
                client: text("b"),
                funding: funding(5, None),
            },
        ),
        (
            &["set-tickets", "b", "5", "-c", "x"],
            Request::SetTickets {
                client: text("b"),
                funding: funding(5, Some("x")),
            },
        ),
        (
            &["set", "--ticket", "t9", "7"],
            Request::SetAmount {
                ticket: text("t9"),
                amount: 7,
            },
        ),
        (
            &["quantum", "b", "5ms"],
            Request::SetQuantum {
                client: text("b"),
                quantum_ns: Some(5_000_000),
            },
        ),
        (
            &["quantum", "b", "--reset"],
            Request::SetQuantum {
                client: text("b"),
                quantum_ns: None,
            },
        ),
        (&["release", "b"], Request::Release { client: text("b") }),
        (
            &["mkcur", "x", "--owner", "root", "--mode", "764"],
            Request::CreateCurrency {
                name: text("x"),
                owner: Some(0),
                mode: Some(0o764),
            },
        ),
        (
            &["rmcur", "x"],
            Request::DestroyCurrency { name: text("x") },
        ),
        (
            &["mktkt", "3", "-c", "x", "--fund", "b"],
            Request::Issue {
                funding: funding(3, Some("x")),
                target: Some(text("b")),
            },
        ),
        (
            &["rmtkt", "t1"],
            Request::DestroyTicket { ticket: text("t1") },
        ),
        (
            &["fund", "t1", "b"],
            Request::Fund {
                ticket: text("t1"),
                target: text("b"),
            },
        ),
        (&["unfund", "t1"], Request::Unfund { ticket: text("t1") }),
        (
            &["set-funding", "u", "9"],
            Request::SetFunding {
                user: text("u"),
                amount: 9,
            },
        ),
        (
            &["chuser", "b", "u"],
            Request::ChangeUser {
                client: text("b"),
                user: text("u"),
            },
        ),
        (
            &["configure", "--quantum", "5ms"],
            Request::Configure {
                quantum_ns: Some(5_000_000),
                policy: None,
                hybrid: None,
                stay: false,
                users: false,
            },
        ),
        (
            &["configure", "--hybrid=none"],
            Request::Configure {
                quantum_ns: None,
                policy: None,
                hybrid: Some(HybridChoice::NONE),
                stay: false,
                users: false,
            },
        ),
    ];
    for (arguments, request) in &asked {
        let ended = output(prorata(&fake.socket()).args(*arguments));
        assert_eq!(ended.status.code(), Some(0), "{arguments:?}");
        assert_eq!(fake.heard().last(), Some(request), "{arguments:?}");
    }
}

#[test]
fn top_needs_a_terminal() {
    let refused = output(prorata(&ledger().socket()).arg("top"));
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("use `prorata ps`"));
}

fn top(fake: &Fake) -> Pty {
    Pty::spawn(prorata(&fake.socket()).args(["top", "--delay", "100ms"]))
}

#[test]
fn top_handles_keys_and_restores_the_terminal() {
    let fake = ledger();
    let mut top = top(&fake);
    top.expect("by specified share");
    // The terminal has 80 columns.
    let heading = top.expect("QUANTUM");
    assert!(heading.contains("CPU  ERROR  STATE"), "{heading}");
    top.keys("j+");
    let inflated = Request::SetTickets {
        client: "c2".to_owned(),
        funding: Funding {
            amount: 110,
            currency: Some("alice".to_owned()),
        },
    };
    eventually("inflated", || fake.heard().contains(&inflated));
    top.expect("now holds 110.alice");
    top.keys("k-");
    let deflated = Request::SetTickets {
        client: "c1".to_owned(),
        funding: Funding {
            amount: 180,
            currency: Some("alice".to_owned()),
        },
    };
    eventually("deflated", || fake.heard().contains(&deflated));
    top.keys("s");
    top.expect("by received share");
    top.keys("r");
    top.expect("reversed");
    top.keys("q");
    // The cursor and the previous screen are back.
    top.expect("\u{1b}[?25h\u{1b}[?1049l");
    assert_eq!(top.child().wait().unwrap().code(), Some(0));
}

#[test]
fn top_ends_by_a_signal() {
    use std::os::unix::process::ExitStatusExt as _;
    let fake = ledger();
    let mut top = top(&fake);
    top.expect("by specified share");
    top.keys(CTRL_C);
    top.expect("\u{1b}[?1049l");
    assert_eq!(
        top.child().wait().unwrap().signal(),
        Some(nix::libc::SIGINT)
    );
}

#[test]
fn top_explains_a_key_without_effect() {
    // The fake daemon reports no tickets.
    let fake = Fake::start();
    let mut top = top(&fake);
    top.expect("by specified share");
    top.keys("+");
    top.expect("program holds no tickets");
    top.keys("q");
    assert_eq!(top.child().wait().unwrap().code(), Some(0));
}
