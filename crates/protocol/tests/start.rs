//! Programs that are started as daemons.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use prorata_protocol::{
    ConnectError, DaemonPaths, SocketPath, StartError, open_or_start, start_daemon,
};

fn paths(directory: &Path) -> DaemonPaths {
    let runtime = directory.join("run");
    DaemonPaths {
        state: directory.join("state"),
        socket: SocketPath::new(runtime.join("socket")).unwrap(),
        runtime,
        is_homeless: false,
    }
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

#[test]
fn a_daemon_is_started_apart_from_its_starter() {
    let directory = tempfile::tempdir().unwrap();
    let paths = paths(directory.path());
    let out = directory.path().join("out");
    let script = format!(
        "{{ cut -d' ' -f 6 /proc/$$/stat; echo $$; pwd; echo $PRORATA_SOCKET; }} > {}; \
         echo some error >&2; echo ready; exec sleep 0.3",
        out.display()
    );
    start_daemon(&paths, shell(&script), &|_| ()).unwrap();
    let text = fs::read_to_string(out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_ne!(lines[0], own_session(), "a session of another terminal");
    assert_ne!(
        lines[0], lines[1],
        "no leader of a session, so no terminal becomes its own"
    );
    assert_eq!(lines[2..], ["/", &paths.socket.to_string()]);
    assert_eq!(fs::read_to_string(paths.log()).unwrap(), "some error\n");
    let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    assert!(
        !children.split_whitespace().any(|child| child == lines[1]),
        "no child of ours"
    );
}

/// As /proc tells it: 0 where the session's leader is outside of our namespace
/// of pids, which rustix takes for impossible.
fn own_session() -> String {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit(") ").next().unwrap();
    after_name.split(' ').nth(3).unwrap().to_owned()
}

#[test]
fn a_failed_start_is_explained_by_the_daemon_or_its_log() {
    let directory = tempfile::tempdir().unwrap();
    let paths = paths(directory.path());
    let why = |script| {
        start_daemon(&paths, shell(script), &|_| ())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(why("echo the disk is full; exit 1"), "the disk is full");
    let unexplained = why("exit 1");
    let log = paths.log().display().to_string();
    assert!(
        unexplained.contains(&log) && unexplained.contains("dmesg"),
        "{unexplained}"
    );
    assert_eq!(why("echo one >&2; echo two >&2; echo >&2; exit 1"), "two");
    let error = start_daemon(&paths, Command::new("/no/such/program"), &|_| ()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_daemon_that_ends_at_once_after_it_listened_has_failed() {
    let directory = tempfile::tempdir().unwrap();
    let paths = paths(directory.path());
    let starter = || start_daemon(&paths, shell("echo crashed >&2; echo ready"), &|_| ());
    match open_or_start(&paths, &starter, &|_| ()) {
        Err(ConnectError::Start(StartError::Failed(why))) => assert_eq!(why, "crashed"),
        other => panic!("{other:?}"),
    }
}
