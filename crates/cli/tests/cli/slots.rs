//! The timetable on the command line, for programs that know of slots and for those that do not.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::real::Real;
use crate::support::{end_with_test, eventually, output, stderr, stdout};

/// A table of twelve slots; ten of them may be claimed.
fn open(real: &Real) {
    real.done_noisily(&["slots", "open", "--columns", "12", "--reserve", "1/6"]);
}

impl Real {
    /// Runs a command that succeeds, and may tell that slots are not enforced as wished.
    #[track_caller]
    fn done_noisily(&self, arguments: &[&str]) -> String {
        let ended = output(self.prorata().args(arguments));
        assert_eq!(ended.status.code(), Some(0), "{arguments:?}");
        stdout(&ended)
    }

    #[track_caller]
    fn fails(&self, arguments: &[&str]) -> String {
        let ended = output(self.prorata().args(arguments));
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}");
        stderr(&ended)
    }

    /// The number of slots of each program, by name.
    fn slots(&self) -> BTreeMap<String, usize> {
        let shown: Value =
            serde_json::from_str(&self.done_noisily(&["slots", "show", "--json"])).unwrap();
        let mut slots = BTreeMap::new();
        for claim in shown["claims"].as_array().unwrap() {
            *slots
                .entry(claim["runs"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
        slots
    }

    fn slots_of(&self, name: &str) -> usize {
        self.slots().get(name).copied().unwrap_or(0)
    }

    fn begin(&self, arguments: &[&str]) -> Ending {
        let mut command = self.prorata();
        command.args(arguments).stdout(Stdio::piped());
        Ending(end_with_test(&mut command).spawn().unwrap())
    }
}

/// A child that is killed and reaped in the end.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

#[test]
fn slots_are_claimed_shown_and_freed() {
    let real = Real::start();
    let none = real.fails(&["slots", "show"]);
    assert!(none.contains("`prorata slots open`"), "{none}");
    open(&real);
    let _player = real.begin(&["run", "-n", "player", "--", "sleep", "1000"]);
    eventually("the client is managed", || !real.clients().is_empty());
    let cpu = real.json(&["status"])["cpus"][0].to_string();
    let slots = format!("{cpu}:0,3-5");
    real.done(&["slots", "claim", &slots, "--client", "player"]);
    assert_eq!(real.slots_of("player"), 4);
    let text = real.done_noisily(&["slots", "show"]);
    assert!(
        text.contains(&format!("CPU {cpu}  player  .       .       player")),
        "{text}"
    );
    let drawing = real.done_noisily(&["slots", "show", "--svg", "-"]);
    assert!(drawing.starts_with("<svg") && drawing.contains("<title>player</title>"));
    let wrong = real.fails(&[
        "slots",
        "claim",
        &format!("{cpu}:6"),
        "--client",
        "player",
        "--level",
        "hard",
    ]);
    assert!(wrong.contains("no token of level hard left"), "{wrong}");
    // The error names the account that pays, and the command that helps.
    let (_, command) = wrong.split_once("`prorata ").unwrap();
    let (command, _) = command.split_once('`').unwrap();
    let command = command.replace("--add N", "--add 1");
    real.done(&command.split(' ').collect::<Vec<_>>());
    let once = format!("{cpu}:6");
    real.done(&[
        "slots", "claim", &once, "--client", "player", "--level", "hard",
    ]);
    assert_eq!(real.slots_of("player"), 5);
    real.done(&["slots", "free", &once]);
    for outside in [format!("{cpu}:12"), "4095:0".into()] {
        real.fails(&["slots", "claim", &outside, "--client", "player"]);
    }
    real.done(&["slots", "free", &format!("{cpu}:3-4")]);
    real.fails(&["slots", "free", &format!("{cpu}:3")]);
    assert_eq!(real.slots_of("player"), 2);
    real.done(&["slots", "close"]);
    real.fails(&["slots", "show"]);
}

#[test]
fn tokens_are_set_shown_and_given_away() {
    let real = Real::start();
    open(&real);
    let _player = real.begin(&["run", "-n", "player", "--", "sleep", "1000"]);
    eventually("the client is managed", || !real.clients().is_empty());
    let user = format!("user:{}", nix::unistd::getuid());
    real.done(&["slots", "tokens", &user, "--level", "hard", "--set", "4"]);
    real.done(&[
        "slots", "tokens", &user, "--level", "hard", "--remove", "1", "--weight", "7",
    ]);
    real.done(&["slots", "donate", "client:player", "hard", "2"]);
    let short = real.fails(&["slots", "donate", "client:player", "hard", "2"]);
    assert!(short.contains("1 of 2 tokens moved"), "{short}");
    let tokens = real.json(&["slots", "tokens", "client:player"]);
    assert_eq!(tokens["levels"][5]["free"], 3);
    let text = real.done(&["slots", "tokens", &user]);
    assert!(
        text.contains("hard            0          0       7"),
        "{text}"
    );
    let nothing = output(
        real.prorata()
            .args(["slots", "tokens", &user, "--level", "hard"]),
    );
    assert_eq!(nothing.status.code(), Some(2));
    assert_eq!(real.done(&["slots", "reserve", "1/2"]), "");
}

#[test]
fn a_policy_gives_each_client_its_tokens_once() {
    let real = Real::start();
    open(&real);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("policy.toml");
    let policy = "[[class]]\nclient = \"player\"\nlevel = \"hard\"\ncount = 2\n";
    std::fs::write(&file, policy).unwrap();
    real.done(&["slots", "admit", file.to_str().unwrap()]);
    // The program asks for itself: prorata is not part of the client.
    let ask = "prorata slots tokens client:player --json; exec sleep 1000";
    let path = PathBuf::from(env!("CARGO_BIN_EXE_prorata"));
    let ask = ask.replace("prorata", path.to_str().unwrap());
    let mut player = real.begin(&["run", "-n", "player", "--", "sh", "-c", &ask]);
    let told: Value = serde_json::Deserializer::from_reader(player.0.stdout.take().unwrap())
        .into_iter()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(told["levels"][5]["free"], 2);
    let wrong = real.fails(&["slots", "admit", "/nonexistent"]);
    assert!(wrong.contains("cannot read"), "{wrong}");
}

#[test]
fn a_program_has_slots_while_it_runs_and_makes_up_for_lost_ones() {
    let real = Real::start();
    open(&real);
    let controller = real.begin(&[
        "slots",
        "run",
        "--periodic",
        "10ms/40ms",
        "-n",
        "controller",
        "--",
        "sleep",
        "1000",
    ]);
    eventually("it has a slot in each window", || {
        real.slots_of("controller") == 3
    });
    let refused = real.fails(&[
        "slots",
        "run",
        "--periodic",
        "40ms/40ms",
        "--",
        "echo",
        "runs",
    ]);
    assert!(refused.contains("no room"), "{refused}");
    let user = format!("user:{}", nix::unistd::getuid());
    real.done(&["slots", "tokens", &user, "--level", "hard", "--set", "1"]);
    let cpu = real.json(&["status"])["cpus"][0].to_string();
    let other = real.begin(&["run", "-n", "other", "--", "sleep", "1000"]);
    eventually("the client is managed", || real.clients().len() == 2);
    real.done(&[
        "slots",
        "claim",
        &format!("{cpu}:0"),
        "--client",
        "other",
        "--level",
        "hard",
    ]);
    // The controller's owner and the claimer are one user, so this changes a claim and preempts none.
    assert_eq!(real.slots_of("other"), 1);
    drop(controller);
    eventually("its slots are free", || real.slots_of("controller") == 0);
    drop(other);
    eventually("all slots are free", || real.slots().is_empty());
}

#[test]
fn watchers_are_told_as_it_happens() {
    let real = Real::start();
    open(&real);
    let mut watch = real.begin(&["slots", "watch", "--freed", "--json"]);
    let mut lines = BufReader::new(watch.0.stdout.take().unwrap()).lines();
    let mut player = real.begin(&[
        "slots", "run", "--cache", "20ms", "-n", "player", "--", "sleep", "1000",
    ]);
    eventually("it has its slots", || real.slots_of("player") == 2);
    // A watch that begins after the end tells nothing of it: end the player until it is told.
    kill(Pid::from_raw(player.0.id() as i32), Signal::SIGTERM).unwrap();
    player.0.wait().unwrap();
    let mut told = || lines.next().unwrap().unwrap();
    for _ in 0..2 {
        let ended = told();
        assert!(
            ended.contains("schedulee-ended") && ended.contains("player"),
            "{ended}"
        );
    }
    assert!(told().starts_with("{\"freed\":["));
    real.done(&["slots", "close"]);
    assert_eq!(told(), "\"closed\"");
    assert!(watch.0.wait().unwrap().success());
}

#[test]
fn the_next_daemon_after_a_crash_has_the_slots() {
    let real = Real::start();
    open(&real);
    let _player = real.begin(&[
        "slots",
        "run",
        "--periodic",
        "20ms/40ms",
        "-n",
        "player",
        "--",
        "sleep",
        "1000",
    ]);
    eventually("it has its slots", || real.slots_of("player") == 6);
    let old = real.daemon();
    kill(Pid::from_raw(old as i32), Signal::SIGKILL).unwrap();
    eventually("a new daemon has them", || {
        real.daemon_if_any().is_some_and(|new| new != old)
            && !real.clients().is_empty()
            && real.slots_of("player") == 6
    });
}

#[test]
fn a_c_program_claims_slots_and_is_called_back() {
    let real = Real::start();
    open(&real);
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../slots-c");
    let library = PathBuf::from(env!("CARGO_BIN_EXE_prorata"));
    let library = library.parent().unwrap().join("deps/libprorata_slots_c.a");
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("controller");
    let compiled = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-I"])
        .arg(source.join("include"))
        .arg(source.join("examples/controller.c"))
        .arg(library)
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .status();
    assert!(compiled.unwrap().success());
    let mut controller = real.begin(&["run", "-n", "controller", "--", program.to_str().unwrap()]);
    let mut lines = BufReader::new(controller.0.stdout.take().unwrap()).lines();
    let mut told = || lines.next().unwrap().unwrap();
    assert_eq!(told(), "1 CPUs, 12 slots of 10000 us, 12 tokens");
    assert_eq!(told(), "claimed slot 0");
    let user = format!("user:{}", nix::unistd::getuid());
    real.done(&["slots", "tokens", &user, "--level", "hard", "--set", "1"]);
    let cpu = real.json(&["status"])["cpus"][0].to_string();
    real.done(&[
        "slots",
        "claim",
        &format!("{cpu}:0"),
        "--client",
        "controller",
        "--level",
        "hard",
    ]);
    assert_eq!(told(), "lost slot 0 for reason 0, took slot 1");
    assert!(controller.0.wait().unwrap().success());
}
