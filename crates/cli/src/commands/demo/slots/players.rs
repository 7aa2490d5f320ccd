//! The programs of a part: this program, started again as loads.

use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::{Pid, getpid, getppid};
use prorata_load::Window;
use prorata_load::controller::ControllerReport;
use prorata_load::gang::GangReport;
use prorata_protocol::slots::Cell;
use prorata_user::{CLIENT_MARKER, SOCKET_MARKER};
use rustix::process::set_parent_process_death_signal;
use serde::de::DeserializeOwned;

use super::house::House;
use super::part::{NICE, Part};
use super::{COLUMNS, TOO_BUSY};
use crate::wrapper::signals::Interruption;

/// The period of the controller, and of the table.
pub const PERIOD: Duration = Duration::from_millis(20);

/// CPU time of the controller's work.
pub const WORK: Duration = Duration::from_millis(4);

/// Both, as an argument.
const CONTROL: &str = "4ms/20ms";

/// CPU time of a gang's thread between two barriers.
const BETWEEN_BARRIERS: &str = "500us";

/// The clients of compile jobs, and their tickets.
pub const JOBS: [(&str, u32); 2] = [("jobs-3", 300), ("jobs-1", 100)];

/// Jobs for each CPU, both clients together.
const JOBS_OF_A_CPU: usize = 6;

/// The nice value that Linux weighs about a third of nice 0.
const NICE_OF_A_THIRD: i32 = 5;

/// The controller's tickets, about as many as its slots are worth.
const CONTROLLER_TICKETS: u32 = 100;

/// The controller's spare slot, on the second CPU: what an interrupt or the host of a virtual machine
/// took from its own one is made up for there, before the deadline. Where schedulees are raised, jobs
/// have the slot while the controller sleeps; other mechanisms would hold the jobs down in it.
const SPARE: Cell = Cell {
    row: 1,
    column: COLUMNS - 1,
};

/// The gang's tickets. Outside of its slots its threads would only wait for one another.
const GANG_TICKETS: u32 = 1;

/// The jobs compute for so long after the window, or until they are ended: they are sampled from
/// outside.
const LONGER_NS: u64 = 10_000_000_000;

/// Running programs. Dropping them ends them.
pub struct Players {
    controller: Player,
    gang: Player,
    jobs: [Player; JOBS.len()],
}

impl Players {
    pub fn start(
        part: Part,
        cpus: &[u32],
        window: Window,
        mut house: Option<&mut House>,
        interruption: &Interruption,
    ) -> Result<Self> {
        let starting = Starting {
            part,
            window,
            mask: *interruption.mask_before(),
            socket: house.as_ref().map(|house| house.socket().to_owned()),
        };
        let [first, second] = [0, 1].map(|client| starting.jobs(client, cpus.len()));
        let jobs = [first?, second?];
        let mut controller = starting.controller(cpus[0])?;
        if let Some(house) = &mut house {
            // So that the controller has the first slot.
            let claimed = house.wait_for_claims(1, window.begin_ns);
            claimed.or_else(|late| controller.check().and(Err(late)))?;
        }
        let mut gang = starting.gang(cpus.len())?;
        if let Some(house) = house {
            let claimed = house.wait_for_claims(1 + 2 * cpus.len(), window.begin_ns);
            claimed.or_else(|late| gang.check().and(Err(late)))?;
            if house.raises()? {
                house.claim("controller", SPARE)?;
            }
        }
        Ok(Self {
            controller,
            gang,
            jobs,
        })
    }

    /// The pids of the jobs' processes, which must be there at `until_ns`.
    pub fn jobs(&mut self, house: Option<&mut House>, until_ns: u64) -> Result<[u32; JOBS.len()]> {
        let Some(house) = house else {
            return Ok(self.jobs.each_ref().map(|player| player.child.id()));
        };
        let [first, second] = JOBS.map(|(name, _)| house.pid_of(name, until_ns));
        let pids = first.and_then(|first| Ok([first, second?]));
        pids.or_else(|late| self.check().and(Err(late)))
    }

    /// Fails if a program has failed.
    pub fn check(&mut self) -> Result<()> {
        let [first, second] = &mut self.jobs;
        let players = [&mut self.controller, &mut self.gang, first, second];
        players.into_iter().try_for_each(Player::check)
    }

    /// Waits for the results.
    pub fn end(mut self) -> Result<(ControllerReport, GangReport)> {
        let controller = self.controller.report()?;
        let gang = self.gang.report()?;
        Ok((controller, gang))
    }
}

/// How programs are started.
struct Starting {
    part: Part,
    window: Window,
    mask: SigSet,
    /// Of the daemon, with slots.
    socket: Option<PathBuf>,
}

impl Starting {
    fn jobs(&self, client: usize, cpus: usize) -> Result<Player> {
        let (name, tickets) = JOBS[client];
        let threads = (JOBS_OF_A_CPU * cpus / JOBS.len()).to_string();
        let mut load = words(&["load", "jobs", "--threads", &threads]);
        if client > 0 && matches!(self.part, Part::Nice | Part::Deadline) {
            load.extend(words(&["--nice", &NICE_OF_A_THIRD.to_string()]));
        }
        let window = Window {
            end_ns: self.window.end_ns + LONGER_NS,
            ..self.window
        };
        self.start((name, tickets), words(&["run"]), load, window)
    }

    fn controller(&self, cpu: u32) -> Result<Player> {
        let claim = [
            "slots",
            "run",
            "--periodic",
            CONTROL,
            "--cpu",
            &cpu.to_string(),
        ]
        .map(str::to_owned);
        let mut load = words(&["load", "controller", "--work", CONTROL]);
        load.extend(match self.part {
            Part::Plain => Vec::new(),
            Part::Nice => words(&["--nice", &NICE.to_string()]),
            Part::Deadline => words(&["--deadline", "5ms/20ms"]),
            Part::Slots => words(&["--in-slots"]),
        });
        self.start(
            ("controller", CONTROLLER_TICKETS),
            claim.to_vec(),
            load,
            self.window,
        )
    }

    fn gang(&self, cpus: usize) -> Result<Player> {
        let threads = cpus.to_string();
        let claim = words(&["slots", "run", "--gang", &threads, "--columns", "2"]);
        let mut load = words(&["load", "gang", "--threads", &threads]);
        load.extend(words(&["--work", BETWEEN_BARRIERS]));
        load.extend(match self.part {
            Part::Plain | Part::Slots => Vec::new(),
            Part::Nice => words(&["--nice", &NICE.to_string()]),
            Part::Deadline => words(&["--deadline", "10ms/20ms"]),
        });
        self.start(("gang", GANG_TICKETS), claim, load, self.window)
    }

    /// Starts a load, with slots as a user would: `prorata run` or `slots run`, with tickets.
    fn start(
        &self,
        (name, tickets): (&'static str, u32),
        run: Vec<String>,
        mut load: Vec<String>,
        window: Window,
    ) -> Result<Player> {
        let Window { begin_ns, end_ns } = window;
        load.extend(["--begin".to_owned(), begin_ns.to_string()]);
        load.extend(["--end".to_owned(), end_ns.to_string()]);
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(&program);
        match &self.socket {
            None => drop(command.env_remove(CLIENT_MARKER)),
            Some(socket) => drop(
                command
                    .env(SOCKET_MARKER, socket)
                    .args(run)
                    .args(["-n", name, "-t", &tickets.to_string(), "--"])
                    .arg(&program),
            ),
        }
        command.args(load).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        end_with_demo(&mut command, &self.mask);
        let child = command.spawn();
        let child = child.with_context(|| format!("cannot start {name}"))?;
        Ok(Player { name, child })
    }
}

/// Has a child end if the demo is killed, and take signals as if the demo held none.
pub fn end_with_demo(command: &mut Command, mask: &SigSet) {
    let (mask, demo) = (*mask, getpid());
    // SAFETY: between fork and exec three system calls are made, all permitted there.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
            // The kernel sends no signal for a parent that ended before.
            if getppid() != demo {
                return Err(Errno::ESRCH.into());
            }
            mask.thread_set_mask().map_err(io::Error::from)
        })
    };
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[derive(Debug)]
struct Player {
    name: &'static str,
    child: Child,
}

impl Player {
    fn check(&mut self) -> Result<()> {
        match self.child.try_wait().context("cannot wait for a program")? {
            // The controller has done its last work a little before the window's end.
            Some(status) if !status.success() => Err(self.failure()),
            _ => Ok(()),
        }
    }

    /// What the program printed, after its end.
    fn report<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut text = String::new();
        let out = self
            .child
            .stdout
            .as_mut()
            .context("a program has no output")?;
        out.read_to_string(&mut text)
            .context("cannot read a program's output")?;
        let status = self.child.wait().context("cannot wait for a program")?;
        if !status.success() {
            return Err(self.failure());
        }
        let report: Option<T> = serde_json::from_str(&text)
            .with_context(|| format!("{} printed no result", self.name))?;
        report.with_context(|| format!("{} started after the measured time: {TOO_BUSY}", self.name))
    }

    /// The error of a program that has ended, in its own words.
    fn failure(&mut self) -> anyhow::Error {
        let mut text = String::new();
        if let Some(complaints) = &mut self.child.stderr {
            // Without one, the message has none.
            let _ = complaints.read_to_string(&mut text);
        }
        anyhow!("{} failed: {}", self.name, text.trim())
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // `prorata run` passes the signal on. The child may have ended.
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    /// The file that a program makes if it lives.
    const MAKES: &str = "PRORATA_TEST_DEMO_MAKES";

    /// Not a test: a demo that is killed while it starts a program.
    #[test]
    #[ignore = "this is the demo that another test starts"]
    fn killed_demo() {
        let Some(file) = std::env::var_os(MAKES) else {
            return;
        };
        let demo = getpid();
        let mut command = Command::new("touch");
        command.arg(file);
        // SAFETY: between fork and exec only system calls are made.
        unsafe {
            command.pre_exec(move || {
                kill(demo, Signal::SIGKILL)?;
                while getppid() == demo {
                    std::thread::yield_now();
                }
                Ok(())
            })
        };
        end_with_demo(&mut command, &SigSet::empty());
        let _ = command.spawn();
    }

    #[test]
    fn a_program_does_not_start_after_the_end_of_its_demo() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("made");
        let test = concat!(module_path!(), "::killed_demo");
        let (_, test) = test.split_once("::").unwrap();
        let demo = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored", "--nocapture"])
            .env(MAKES, &file)
            // The program has the same output, so this waits for its end, too.
            .output()
            .unwrap();
        assert_eq!(demo.status.signal(), Some(Signal::SIGKILL as i32));
        assert!(!file.exists());
    }

    /// The demo's report on a program that runs this script.
    fn report_of(script: &str) -> Result<GangReport> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = child.spawn().unwrap();
        Player {
            name: "gang",
            child,
        }
        .report()
    }

    #[test]
    fn a_program_that_comes_too_late_prints_null_and_others_have_an_error_of_their_own() {
        for (script, expected) in [
            (
                "echo null",
                "gang started after the measured time: this machine is too busy for a demo, try again \
                 later",
            ),
            ("echo nothing", "gang printed no result"),
            ("echo null; echo why >&2; exit 1", "gang failed: why"),
        ] {
            let error = report_of(script).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
