//! Programs that people use on a terminal all day: each prints the same in a client, beside a
//! client that computes, as without prorata. A session is a list of keys, each typed after the
//! program has printed a text, so that no output depends on the time of a key.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::pty::{CTRL_D, CTRL_Z, Pty};
use crate::support::real::Real;
use crate::support::{eventually, output};

/// A text that the program prints, and the keys typed next.
type Step<'a> = (&'a str, &'a str);

/// All output of a session, as on the terminal.
fn transcript(command: &mut Command, steps: &[Step]) -> String {
    command.env("LC_ALL", "C").env("TERM", "vt100");
    // The settings of the tests' user would change what programs print.
    command.env_remove("LESS").env_remove("TMUX");
    let mut pty = Pty::spawn_sized(command, 24, 80);
    let mut printed = String::new();
    for (text, keys) in steps {
        printed += &pty.expect(text);
        printed += text;
        pty.keys(keys);
    }
    printed + &pty.rest()
}

/// Root's daemon, and one of an ordinary user with control groups, where there can be one. Each
/// shares one CPU.
fn daemons() -> Vec<Real> {
    let ordinary = Real::start_with_control_groups();
    if ordinary.is_none() {
        println!("skipped: control groups of an ordinary user");
    }
    std::iter::once(Real::start()).chain(ordinary).collect()
}

/// What a program prints without prorata and in a client beside a client that computes on the same
/// CPU, under each daemon. `unique` is the text in front of numbers of processes, which differ.
#[track_caller]
fn prints_the_same(line: &[&str], steps: &[Step], unique: Option<&str>) {
    let comparable = |printed: String| match unique {
        None => printed,
        Some(before) => without_number(&printed, before),
    };
    for real in daemons() {
        let alone = transcript(real.program(line[0]).args(&line[1..]), steps);
        let _rival = real.compute("rival", "100");
        let mut client = real.prorata();
        client.args(words("run -t 100 -n session --"));
        let beside = transcript(client.args(line), steps);
        assert_eq!(comparable(alone), comparable(beside));
    }
}

/// A text without the numbers that stand behind `before`: those of processes differ from run to
/// run.
fn without_number(text: &str, before: &str) -> String {
    let mut pieces = text.split(before);
    let mut kept = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        kept += before;
        kept += "N";
        kept += piece.trim_start_matches(|digit: char| digit.is_ascii_digit());
    }
    kept
}

/// A directory with a file that every user can read, and the file's path.
fn file(text: &str) -> (TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    let file = directory.path().join("file");
    fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap().to_owned();
    (directory, path)
}

fn hundred_lines() -> (TempDir, String) {
    let lines: Vec<String> = (1..=100)
        .map(|line| format!("this is line {line}\n"))
        .collect();
    file(&lines.concat())
}

/// A line of words.
fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

#[test]
fn bash_prints_the_same_in_a_client() {
    let mut line = words("env PS1 bash --norc --noprofile --noediting -i");
    line[1] = "PS1=ready> ";
    let steps = [
        (
            "ready> ",
            "for i in 1 2 3; do echo round $((i * 11)); done\n",
        ),
        ("round 33\r\nready> ", "sleep 600 | cat &\n"),
        ("ready> ", "jobs %1\n"),
        ("Running", ""),
        ("ready> ", "kill %1; wait %1; echo ended $((1000 + 333))\n"),
        ("ended 1333", ""),
        ("ready> ", "cat\n"),
        ("cat\r\n", "spoken\n"),
        ("spoken\r\nspoken", CTRL_Z),
        ("Stopped", ""),
        ("ready> ", "fg\n"),
        ("cat\r\n", "again\n"),
        ("again\r\nagain", CTRL_D),
        ("ready> ", "(exit 7); echo code $(($? + 1000))\n"),
        ("code 1007", ""),
        ("ready> ", "exit 0\n"),
    ];
    prints_the_same(&line, &steps, Some("\n[1] "));
}

#[test]
fn vim_prints_the_same_in_a_client() {
    let (_directory, file) = hundred_lines();
    let mut line = words("vim -u NONE -N -n -i NONE");
    line.push(&file);
    // Each sum is printed by the last command alone, once the screen is drawn.
    let steps = [
        ("this is line 23", "ddp:echo 70000+1\r"),
        ("70001", "/line 77\r:echo 70000+2\r"),
        ("70002", "cwthat\x1b:echo 70000+3\r"),
        ("70003", ":%s/is/was/g\r:echo 70000+4\r"),
        ("70004", ":q!\r"),
    ];
    prints_the_same(&line, &steps, None);
}

#[test]
fn less_prints_the_same_in_a_client() {
    let (_directory, file) = hundred_lines();
    let steps = [
        ("this is line 23", " "),
        ("this is line 46", "/line 88\n"),
        ("this is line 99", "G"),
        ("(END)", "g"),
        ("this is line 1\r", "q"),
    ];
    prints_the_same(&["less", &file], &steps, None);
}

#[test]
fn gdb_prints_the_same_in_a_client() {
    let (_directory, script) = file("echo spoken; exit 3");
    let mut line = words("gdb -q -nx --args sh");
    line.push(&script);
    let steps = [
        ("(gdb) ", "set startup-with-shell off\n"),
        ("(gdb) ", "set debuginfod enabled off\n"),
        ("(gdb) ", "starti\n"),
        ("(gdb) ", "stepi\n"),
        ("(gdb) ", "catch syscall exit_group\n"),
        ("(gdb) ", "continue\n"),
        ("(gdb) ", "continue\n"),
        ("exited with code 03", ""),
        ("(gdb) ", "run\n"),
        ("(gdb) ", "kill\n"),
        ("(y or n) ", "y\n"),
        ("(gdb) ", "quit\n"),
    ];
    prints_the_same(&line, &steps, Some("process "));
}

#[test]
fn strace_prints_the_same_in_a_client() {
    // Signals are shown, too: those that stop and continue the sleeping shell would be seen.
    let mut line = words("strace -e trace=write bash -c");
    line.push("echo begun; read -t 0.3 line; echo ended");
    prints_the_same(&line, &[("+++ exited with 0 +++", "")], None);
}

/// Serves one connection, outside of all clients; returns the port.
fn serve_ssh(host_key: &str, authorized_keys: &str) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let options = format!(
        "-i -f /dev/null -o HostKey={host_key} -o AuthorizedKeysFile={authorized_keys} \
         -o StrictModes=no -o UsePAM=no -o PermitRootLogin=yes -o PrintMotd=no -o PrintLastLog=no"
    );
    std::thread::spawn(move || {
        let stream = OwnedFd::from(listener.accept().unwrap().0);
        let mut server = Command::new("/usr/sbin/sshd");
        server.args(words(&options)).stderr(Stdio::null());
        server.stdin(stream.try_clone().unwrap()).stdout(stream);
        server.status().unwrap()
    });
    port
}

/// The output of a session, run by a program with arguments in front of `ssh`.
fn ssh_transcript(command: &mut Command) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    for key in ["host", "user"] {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(words("-q -t ed25519 -N")).args(["", "-f"]);
        assert!(output(keygen.arg(path(key))).status.success());
    }
    let port = serve_ssh(&path("host"), &path("user.pub"));
    let options = format!(
        "ssh -tt -q -F /dev/null -p {port} -i {} -o UserKnownHostsFile={} \
         -o StrictHostKeyChecking=no -o IdentitiesOnly=yes 127.0.0.1",
        path("user"),
        path("known"),
    );
    let remote = "stty -echo; echo begun; read line; echo heard $line; exit 5";
    let steps = [("begun\r\n", "spoken\n"), ("heard spoken", "")];
    transcript(command.args(words(&options)).arg(remote), &steps)
}

/// Only root's daemon: the ordinary user of the tests has no login shell.
#[test]
fn ssh_prints_the_same_in_a_client() {
    if rustix::process::getuid().is_root() {
        // The server confines a part of itself there.
        fs::create_dir_all("/run/sshd").unwrap();
    }
    let real = Real::start();
    let alone = ssh_transcript(&mut real.program("env"));
    let _rival = real.compute("rival", "100");
    let mut client = real.prorata();
    client.args(words("run -t 100 -n session --"));
    assert_eq!(alone, ssh_transcript(&mut client));
}

/// A server of tmux, and a shell in it.
struct Tmux<'a> {
    real: &'a Real,
    directory: TempDir,
}

impl Tmux<'_> {
    fn command(&self, arguments: &[&str]) -> Vec<String> {
        let socket = self.directory.path().join("tmux");
        let mut line = words("tmux -f /dev/null -S");
        line.push(socket.to_str().unwrap());
        line.extend(arguments);
        line.into_iter().map(str::to_owned).collect()
    }

    #[track_caller]
    fn done(&self, arguments: &[&str]) -> String {
        let line = self.command(arguments);
        let ended = output(self.real.program(&line[0]).args(&line[1..]));
        assert!(ended.status.success(), "{arguments:?}");
        String::from_utf8(ended.stdout).unwrap()
    }

    /// Types a line; waits until the screen ends with a text and the next prompt.
    #[track_caller]
    fn typed(&self, line: &str, text: &str) {
        self.done(&["send-keys", line, "Enter"]);
        self.shows(&format!("{text}\nready>"));
    }

    fn screen(&self) -> String {
        self.done(&["capture-pane", "-p"])
    }

    #[track_caller]
    fn shows(&self, text: &str) {
        eventually(text, || self.screen().trim_end().ends_with(text));
    }
}

/// The last screen of a session, which runs in a client or not.
fn tmux_screen(real: &Real, in_client: bool) -> String {
    let directory = tempfile::tempdir().unwrap();
    real.give(directory.path());
    let tmux = Tmux { real, directory };
    let shell = "env PS1='ready> ' bash --norc --noprofile --noediting -i";
    let server = tmux.command(&["new-session", "-d", "-x", "80", "-y", "24", shell]);
    let mut start = match in_client {
        false => real.program("env"),
        true => real.prorata(),
    };
    if in_client {
        start.args(words("run -n session -- env"));
    }
    // Without it the server takes the user's login shell, which may be one that ends at once.
    start
        .args(words("SHELL=/bin/sh LC_ALL=C TERM=vt100"))
        .args(server);
    assert!(output(&mut start).status.success());
    tmux.shows("ready>");
    tmux.typed("seq 1001 1040 | tail -n 5", "1040");
    tmux.typed("clear; echo $((1000 + 7))", "1007");
    tmux.done(&["split-window", "-d", "sleep 600"]);
    tmux.typed("echo $((1000 + 8))", "1008");
    let last = tmux.screen();
    tmux.done(&["kill-server"]);
    last
}

/// A terminal multiplexer joins the output of its programs as time permits, so the screen is
/// compared, and not each byte on the way there.
#[test]
fn tmux_shows_the_same_screen_in_a_client() {
    for real in daemons() {
        let alone = tmux_screen(&real, false);
        let _rival = real.compute("rival", "100");
        assert_eq!(alone, tmux_screen(&real, true));
    }
}
