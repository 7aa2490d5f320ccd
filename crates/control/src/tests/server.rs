//! Clients that misbehave at the socket: the daemon answers with a clear
//! sentence where possible, and goes on.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use prorata_protocol::{
    ConnectError, Connection, Envelope, Funding, MAX_REQUEST_BYTES, PROTOCOL_VERSION, Request,
    Response,
};

use super::harness::{
    Daemon, PATIENCE, Sleeper, directory, eventually, lend_ten, raw, read_response, refusal,
    tickets,
};
use crate::server::{MAX_CONNECTIONS, MAX_CONNECTIONS_FOR_OWNER};

fn framed(body: &[u8]) -> Vec<u8> {
    let mut frame = (body.len() as u32).to_le_bytes().to_vec();
    frame.extend_from_slice(body);
    frame
}

fn envelope(request: Request) -> Vec<u8> {
    serde_json::to_vec(&Envelope {
        version: PROTOCOL_VERSION,
        request,
    })
    .unwrap()
}

#[test]
fn garbage_is_refused_and_the_connection_goes_on() {
    let mut daemon = Daemon::start(&directory());
    let mut stream = raw(&daemon.paths);
    let garbage: [&[u8]; 8] = [
        b"",
        b"\0",
        b"garbage",
        b"{}",
        b"[1, 2]",
        b"{\"version\":1}",
        b"{\"version\":1,\"request\":\"dance\"}",
        b"{\"version\":1,\"request\":{\"register\":{\"pid\":-1}}}",
    ];
    for body in garbage {
        stream.write_all(&framed(body)).unwrap();
        let message = refusal(read_response(&stream).unwrap());
        assert!(
            message.starts_with("the request cannot be understood"),
            "{message}"
        );
    }
    stream
        .write_all(&framed(&envelope(Request::Status)))
        .unwrap();
    assert!(matches!(read_response(&stream), Some(Response::Status(_))));
    assert!(daemon.is_alive());
}

#[test]
fn a_request_of_another_version_is_refused() {
    let mut daemon = Daemon::start(&directory());
    let mut stream = raw(&daemon.paths);
    let body = format!(
        "{{\"version\":{},\"wish\":\"anything\"}}",
        PROTOCOL_VERSION + 1
    );
    stream.write_all(&framed(body.as_bytes())).unwrap();
    let message = refusal(read_response(&stream).unwrap());
    assert!(
        message.contains("speaks protocol 1 and was asked in protocol 2"),
        "{message}"
    );
    assert!(daemon.is_alive());
}

#[test]
fn a_request_is_read_up_to_the_limit_and_not_past_it() {
    let mut daemon = Daemon::start(&directory());
    let mut longest = envelope(Request::Status);
    longest.resize(MAX_REQUEST_BYTES as usize, b' ');
    let mut stream = raw(&daemon.paths);
    stream.write_all(&framed(&longest)).unwrap();
    assert!(matches!(read_response(&stream), Some(Response::Status(_))));

    // Refused by its header: the daemon does not read the body.
    longest.push(b' ');
    let _ = stream.write_all(&framed(&longest));
    let message = refusal(read_response(&stream).unwrap());
    assert!(
        message.contains("a request of 65537 bytes is too long"),
        "{message}"
    );
    assert!(read_response(&stream).is_none(), "the connection is closed");

    let mut connection = daemon.connect();
    let request = Request::Release {
        client: "x".repeat(MAX_REQUEST_BYTES as usize),
    };
    assert!(matches!(
        connection.call(&request),
        Err(ConnectError::RequestTooLong(_))
    ));
    assert!(daemon.is_alive());
}

#[test]
fn json_nested_too_deeply_is_refused() {
    let mut daemon = Daemon::start(&directory());
    for depth in [1, 127, 128, 129, 30_000] {
        let nested = "[".repeat(depth) + &"]".repeat(depth);
        let body = format!("{{\"version\":1,\"request\":{nested}}}");
        let mut stream = raw(&daemon.paths);
        stream.write_all(&framed(body.as_bytes())).unwrap();
        let message = refusal(read_response(&stream).unwrap());
        assert!(
            message.starts_with("the request cannot be understood"),
            "{message}"
        );
    }
    assert!(daemon.is_alive());
}

#[test]
fn a_client_that_hangs_up_half_way_changes_nothing() {
    let mut daemon = Daemon::start(&directory());
    let request = Request::CreateCurrency {
        name: "half".into(),
        owner: None,
        mode: None,
    };
    let frame = framed(&envelope(request));
    for cut in 0..frame.len() {
        raw(&daemon.paths).write_all(&frame[..cut]).unwrap();
    }
    assert!(daemon.is_alive());
    let Response::Currencies(currencies) = daemon.ask(Request::Currencies) else {
        panic!()
    };
    assert_eq!(currencies.len(), 1, "only base: {currencies:?}");
    // A whole request counts, even if no client waits for the answer.
    raw(&daemon.paths).write_all(&frame).unwrap();
    eventually(|| match daemon.ask(Request::Currencies) {
        Response::Currencies(currencies) => (currencies.len() == 2).then_some(()),
        other => panic!("{other:?}"),
    });
}

#[test]
fn half_a_request_is_waited_for_only_so_long() {
    let mut daemon = Daemon::start_impatient(&directory());
    let mut stream = raw(&daemon.paths);
    let begun = Instant::now();
    stream
        .write_all(&framed(&envelope(Request::Status))[..20])
        .unwrap();
    let message = refusal(read_response(&stream).unwrap());
    assert!(message.contains("not complete within 300ms"), "{message}");
    assert!(begun.elapsed() >= PATIENCE);
    assert!(read_response(&stream).is_none(), "the connection is closed");
    assert!(daemon.is_alive());
}

#[test]
fn a_connection_that_says_nothing_may_stay() {
    let daemon = Daemon::start_impatient(&directory());
    let mut connection = daemon.connect();
    std::thread::sleep(PATIENCE * 2);
    assert!(connection.call(&Request::Status).is_ok());
}

#[test]
fn a_client_that_never_reads_is_dropped() {
    let mut daemon = Daemon::start_impatient(&directory());
    let mut stream = raw(&daemon.paths);
    let frame = framed(&envelope(Request::Currencies));
    // Writes until the daemon reads no more, since its answers are not taken,
    // and then until it hangs up.
    let failure = loop {
        if let Err(error) = stream.write_all(&frame) {
            break error;
        }
    };
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
    assert!(
        matches!(failure.kind(), BrokenPipe | ConnectionReset),
        "{failure}"
    );
    assert!(daemon.is_alive());
}

#[test]
fn requests_sent_ahead_are_answered_in_order() {
    let daemon = Daemon::start(&directory());
    let mut stream = raw(&daemon.paths);
    let requests = [Request::Status, Request::Clients, Request::Transfers];
    let ahead: Vec<u8> = (0..90)
        .flat_map(|n| framed(&envelope(requests[n % 3].clone())))
        .collect();
    stream.write_all(&ahead).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    for number in 0..90 {
        let response = read_response(&stream).unwrap();
        let fits = match number % 3 {
            0 => matches!(response, Response::Status(_)),
            1 => matches!(response, Response::Clients(_)),
            _ => matches!(response, Response::Transfers(_)),
        };
        assert!(fits, "{number}: {response:?}");
    }
    assert!(read_response(&stream).is_none());
}

#[test]
fn connections_are_served_up_to_the_limit_and_not_past_it() {
    let daemon = Daemon::start(&directory());
    // The daemon may not yet have noticed that the first connection is closed.
    let limit = match prorata_protocol::DaemonPaths::is_of_root() {
        true => MAX_CONNECTIONS,
        false => MAX_CONNECTIONS_FOR_OWNER,
    };
    let mut connections: Vec<Connection> = (0..limit).map(|_| daemon.connect()).collect();
    let Err(ConnectError::Full { message, .. }) = Connection::open(&daemon.paths.socket) else {
        panic!("one too many is let in");
    };
    assert!(
        message.contains(&format!("serves {limit} connections")),
        "{message}"
    );
    assert!(
        connections
            .iter_mut()
            .all(|one| one.call(&Request::Status).is_ok())
    );
    connections.pop();
    daemon.connect();
}

#[test]
fn a_held_transfer_ends_with_its_connection_and_another_lasts() {
    let daemon = Daemon::start(&directory());
    let (giver, receiver) = (Sleeper::start(), Sleeper::start());
    daemon.register(&giver, "giver");
    daemon.register(&receiver, "receiver");
    let mut holder = daemon.connect();
    assert!(matches!(
        holder.call(&lend_ten(true)),
        Ok(Response::Created(_))
    ));
    assert!(matches!(
        holder.call(&lend_ten(true)),
        Ok(Response::Created(_))
    ));
    assert!(matches!(daemon.ask(lend_ten(false)), Response::Created(_)));
    assert_eq!(daemon.transfers(), 3);
    drop(holder);
    eventually(|| (daemon.transfers() == 1).then_some(()));

    // Another client may end a held transfer; then nothing is left to undo.
    let mut holder = daemon.connect();
    let Ok(Response::Created(id)) = holder.call(&lend_ten(true)) else {
        panic!()
    };
    assert_eq!(
        daemon.ask(Request::EndTransfer { transfer: id }),
        Response::Done
    );
    drop(holder);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(daemon.transfers(), 1);
}

#[test]
fn a_client_goes_with_its_last_process() {
    let daemon = Daemon::start(&directory());
    let (first, second) = (Sleeper::start(), Sleeper::start());
    daemon.register(&first, "first");
    daemon.register(&second, "second");
    drop(first);
    eventually(|| (daemon.client_names() == ["second"]).then_some(()));
    let message = refusal(daemon.ask(Request::SetTickets {
        client: "first".into(),
        funding: Funding {
            amount: 5,
            currency: None,
        },
    }));
    assert!(message.starts_with("no client named 'first'"), "{message}");
    let message = refusal(daemon.ask(Request::Register {
        pid: second.pid(),
        name: None,
        funding: tickets(1),
        quantum_ns: None,
        max: None,
        adopts: false,
    }));
    assert!(
        message.contains("is managed already, as client 'second' (c1)"),
        "{message}"
    );
}

#[test]
fn the_other_end_may_close_at_any_moment() {
    let mut daemon = Daemon::start(&directory());
    let sleeper = Sleeper::start();
    daemon.register(&sleeper, "sleeper");
    for wait_us in [0, 50, 100, 200, 500] {
        for _ in 0..20 {
            let mut stream = raw(&daemon.paths);
            let frame = framed(&envelope(Request::Clients));
            stream.write_all(&frame.repeat(5)).unwrap();
            std::thread::sleep(Duration::from_micros(wait_us));
            let mut some = [0; 10];
            let _ = stream.read(&mut some);
        }
    }
    assert!(daemon.is_alive());
}
