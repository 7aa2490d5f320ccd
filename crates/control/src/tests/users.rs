//! Several users at one daemon's socket.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use prorata_protocol::{ConnectError, Connection, DaemonPaths, Request, Response};

use super::harness::{Daemon, Sleeper, directory, eventually, refusal};
use crate::server::{MAX_CONNECTIONS, MAX_CONNECTIONS_FOR_OTHERS, MAX_CONNECTIONS_OF_ONE};

/// A user without an account.
const STRANGER: u32 = 4_711;

/// Runs on its own thread as another user. (The system call affects only the
/// calling thread; the C library's function would affect all.)
fn as_stranger<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    as_user(STRANGER, work)
}

/// The same as the user with this number.
fn as_user<T: Send>(uid: u32, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let stranger = scope.spawn(|| {
            // SAFETY: the call takes numbers. The thread that changes its user
            // shares no work with others and ends below.
            let results = unsafe {
                [
                    libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()),
                    libc::syscall(libc::SYS_setresgid, uid, uid, uid),
                    libc::syscall(libc::SYS_setresuid, uid, uid, uid),
                ]
            };
            assert_eq!(results, [0, 0, 0]);
            work()
        });
        stranger.join().unwrap()
    })
}

/// A directory that other users may enter, if the test can act as one.
fn shared_directory() -> Option<Arc<tempfile::TempDir>> {
    if !DaemonPaths::is_of_root() {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "only root can act as another user"
        );
        println!("not run: only root can act as another user");
        return None;
    }
    let directory = directory();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    Some(directory)
}

#[test]
fn roots_daemon_serves_others_within_their_rights() {
    let Some(directory) = shared_directory() else {
        return;
    };
    let daemon = Daemon::start(&directory);
    let sleeper = Sleeper::start();
    daemon.register(&sleeper, "of-root");
    as_stranger(|| {
        let mut connection = Connection::open(&daemon.paths.socket).unwrap();
        let mut ask = |request| connection.call(&request).unwrap();
        let message = refusal(ask(Request::Release {
            client: "of-root".into(),
        }));
        assert!(message.contains("user 4711 may not"), "{message}");
        let message = refusal(ask(Request::Stop));
        assert!(
            message.contains("user 4711 may not stop the daemon"),
            "{message}"
        );
        let create = Request::CreateCurrency {
            name: "play".into(),
            owner: None,
            mode: None,
        };
        assert!(matches!(ask(create), Response::Created(_)));
        let Response::Currencies(currencies) = ask(Request::Currencies) else {
            panic!()
        };
        let play = currencies.iter().find(|one| one.name == "play").unwrap();
        assert_eq!(play.owner, STRANGER);
        assert!(
            std::fs::read_dir(&daemon.paths.state).is_err(),
            "the journal is private"
        );
        assert!(std::fs::write(daemon.paths.runtime.join("x"), "").is_err());
    });
    assert_eq!(daemon.client_names(), ["of-root"]);
}

#[test]
fn one_other_user_does_not_take_all_connections() {
    let Some(directory) = shared_directory() else {
        return;
    };
    let daemon = Daemon::start(&directory);
    let open = || Connection::open(&daemon.paths.socket);
    let kept = as_stranger(|| {
        let mut connections: Vec<_> = (0..MAX_CONNECTIONS_OF_ONE)
            .map(|_| open().unwrap())
            .collect();
        let Err(ConnectError::Full { message, .. }) = open() else {
            panic!("one too many is let in");
        };
        assert!(
            message.contains("serves 32 connections of a single user"),
            "{message}"
        );
        connections.pop();
        connections.push(eventually(|| open().ok()));
        connections
    });
    assert!(open().is_ok(), "there is room for others");
    drop(kept);
}

/// Opens so many connections, and expects one more to be refused with these
/// words.
fn fill(daemon: &Daemon, count: usize, words: &str) -> Vec<Connection> {
    let open = || Connection::open(&daemon.paths.socket);
    // The daemon may not yet have noticed a closed connection.
    let one = || eventually(|| open().ok());
    let connections = (0..count).map(|_| one()).collect();
    let Err(ConnectError::Full { message, .. }) = open() else {
        panic!("one too many is let in");
    };
    assert!(message.contains(words), "{message}");
    connections
}

#[test]
fn other_users_do_not_lock_root_out() {
    let Some(directory) = shared_directory() else {
        return;
    };
    let daemon = Daemon::start(&directory);
    let users = (MAX_CONNECTIONS_FOR_OTHERS / MAX_CONNECTIONS_OF_ONE) as u32;
    let mut all = Vec::new();
    for number in 1..=users {
        let uid = STRANGER + number;
        let words = "32 connections of a single user";
        all.push(as_user(uid, || {
            fill(&daemon, MAX_CONNECTIONS_OF_ONE, words)
        }));
    }
    let words = "192 connections and keeps room for its owner";
    as_stranger(|| fill(&daemon, 0, words));
    let left = MAX_CONNECTIONS - MAX_CONNECTIONS_FOR_OTHERS;
    all.push(fill(&daemon, left, "serves 256 connections, its limit"));
}
