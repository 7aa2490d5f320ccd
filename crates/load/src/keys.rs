//! Keys: a program on a terminal, and the time from each key to its echo (1999, 3.3: typing into
//! an editor).
//!
//! The loop is open: each latency counts from the time at which the key was due, even if the echo
//! of an earlier key was late. The keys are the letters of the alphabet in turn. An echo is the
//! next letter that the program writes outside of the terminal's control sequences, so the program
//! must insert what is typed, and write no letters beside that.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hdrhistogram::Histogram;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::ioctl_fionbio;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};
use serde::Serialize;

use crate::crew::{self, Job, Running};
use crate::latencies::{NS_PER_S, histogram, now_ns};
use crate::limits::in_range;
use crate::{Latencies, LoadError, Performance, Watch};

/// An echo later than this is noticed: people discern latencies from 50 ms on (1999, 5.2).
const NOTICED_NS: u64 = 50_000_000;
/// The program has started once it has been silent for so long ...
const SILENCE_NS: u64 = NS_PER_S / 2;
/// ... and after this time in any case.
const START_NS: u64 = 10 * NS_PER_S;
/// How long the last echoes may take, and how long a full terminal may accept no key.
const PATIENCE_NS: u64 = 5 * NS_PER_S;
/// Between two attempts to type into a full terminal.
const RETRY_NS: u64 = 10_000_000;

/// The size of the load.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct KeysSettings {
    /// Keys a second, 1 to 1,000.
    pub rate: u64,
    /// Keys, 1 to 1,000,000.
    pub keys: u64,
    /// Keys that prepare the program to insert text, such as `i` for vi.
    pub first: String,
    /// The program and its arguments.
    pub command: Vec<String>,
}

impl KeysSettings {
    fn check(&self) -> Result<(), LoadError> {
        in_range("rate", self.rate, 1..=1_000)?;
        in_range("keys", self.keys, 1..=1_000_000)?;
        in_range("words of the command", self.command.len() as u64, 1..=1_000)
    }
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct KeysReport {
    /// The size of the load.
    #[serde(flatten)]
    pub settings: KeysSettings,
    /// From the time at which a key was due to its echo.
    pub latencies: Latencies,
    /// Keys whose echo took longer than 50 ms.
    pub delayed: u64,
    /// Keys without an echo.
    pub unanswered: u64,
    /// What the kernel counted of the typing thread, not of the program.
    #[serde(flatten)]
    pub performance: Performance,
}

/// Types as often as the settings say. Ends the program afterwards, by `SIGKILL`.
///
/// # Errors
/// Settings beyond the limits, before the program starts; a program that cannot be started or ends
/// early; a refusal of the system.
pub fn run(settings: &KeysSettings, watch: &mut dyn Watch) -> Result<KeysReport, LoadError> {
    settings.check()?;
    let typist = Typist {
        settings,
        typed: AtomicU64::new(0),
        stopped: AtomicBool::new(false),
    };
    let job: Job<'_, Echoes> = Box::new(|| typist.type_all());
    let mut finished = crew::run(&typist, vec![job], watch)?;
    let echoes = finished.results.pop().ok_or(LoadError::Interrupted)?;
    Ok(KeysReport {
        settings: settings.clone(),
        latencies: Latencies::of(&echoes.latencies),
        delayed: echoes.delayed,
        unanswered: settings.keys - echoes.latencies.len(),
        performance: finished.performance,
    })
}

struct Typist<'a> {
    settings: &'a KeysSettings,
    /// Written by the thread that types.
    typed: AtomicU64,
    stopped: AtomicBool,
}

impl Running for Typist<'_> {
    fn done(&self) -> u64 {
        self.typed.load(Ordering::Relaxed)
    }

    fn total(&self) -> u64 {
        self.settings.keys
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

impl Typist<'_> {
    fn type_all(&self) -> Result<Echoes, LoadError> {
        let mut screen = Screen::start(&self.settings.command)?;
        self.wait_for_start(&mut screen)?;
        if !screen.type_keys(self.settings.first.as_bytes())? {
            return Err(LoadError::ProgramEnded);
        }
        self.wait_for_start(&mut screen)?;
        let mut echoes = Echoes::new(self.settings.rate);
        let begin_ns = now_ns();
        let mut typed = 0;
        let mut last_ns = begin_ns;
        while echoes.next < self.settings.keys && !self.stopped.load(Ordering::Relaxed) {
            let now_ns = now_ns();
            let due_ns = begin_ns + echoes.due_ns(typed);
            let all_typed = typed == self.settings.keys;
            let is_due = !all_typed && now_ns >= due_ns;
            if is_due && screen.type_keys(&[key(typed)])? {
                (typed, last_ns) = (typed + 1, now_ns);
                self.typed.store(typed, Ordering::Relaxed);
                continue;
            }
            if (all_typed || is_due) && now_ns >= last_ns + PATIENCE_NS {
                break;
            }
            let until_ns = match is_due || all_typed {
                true => now_ns + RETRY_NS,
                false => due_ns,
            };
            for letter in screen.read_until(until_ns, now_ns)? {
                echoes.see(letter, typed, begin_ns);
            }
        }
        Ok(echoes)
    }

    /// Reads until the program is silent.
    fn wait_for_start(&self, screen: &mut Screen) -> Result<(), LoadError> {
        let begin_ns = now_ns();
        let mut heard_ns = begin_ns;
        loop {
            let now = now_ns();
            let over = now >= heard_ns + SILENCE_NS || now >= begin_ns + START_NS;
            if over || self.stopped.load(Ordering::Relaxed) {
                return Ok(());
            }
            if screen.read_some(heard_ns + SILENCE_NS, now)? {
                heard_ns = now_ns();
            }
        }
    }
}

/// Letters that are typed in turn.
const ALPHABET: u64 = 26;

/// The key of this number.
fn key(number: u64) -> u8 {
    b'a' + (number % ALPHABET) as u8
}

/// What was echoed so far.
struct Echoes {
    rate: u64,
    /// The first key that is neither echoed nor given up.
    next: u64,
    delayed: u64,
    latencies: Histogram<u64>,
}

impl Echoes {
    fn new(rate: u64) -> Self {
        Self {
            rate,
            next: 0,
            delayed: 0,
            latencies: histogram(),
        }
    }

    /// When a key is due, from the first on.
    fn due_ns(&self, key: u64) -> u64 {
        key * NS_PER_S / self.rate
    }

    /// A letter was written after so many keys were typed. It echoes the first key of this letter
    /// that waits for its echo; those before have none.
    fn see(&mut self, letter: u8, typed: u64, begin_ns: u64) {
        let mut waiting = self.next..typed.min(self.next + ALPHABET);
        let Some(echoed) = waiting.find(|&number| key(number) == letter) else {
            return;
        };
        let latency_ns = now_ns().saturating_sub(begin_ns + self.due_ns(echoed));
        self.latencies.saturating_record(latency_ns);
        self.delayed += u64::from(latency_ns > NOTICED_NS);
        self.next = echoed + 1;
    }
}

/// Both ends of a new terminal of the usual size. It echoes nothing by itself, and passes on each
/// key at once.
fn terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = open(&ptsname(&master, Vec::new())?, flags, Mode::empty())?;
    let size = Winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&slave, size)?;
    let mut modes = tcgetattr(&slave)?;
    let by_itself = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
    modes.local_modes.remove(by_itself);
    tcsetattr(&slave, OptionalActions::Now, &modes)?;
    // A program that reads nothing must not stop the one that types.
    ioctl_fionbio(&master, true)?;
    Ok((master, slave))
}

/// A program on a terminal of its own.
struct Screen {
    terminal: File,
    program: Child,
    escape: Escape,
}

impl Screen {
    fn start(command: &[String]) -> Result<Self, LoadError> {
        let refused = |error| LoadError::Channel("a terminal", error);
        let (master, slave) = terminal().map_err(refused)?;
        let copy = |fd: &OwnedFd| fd.try_clone().map(Stdio::from).map_err(refused);
        let mut program = Command::new(&command[0]);
        program.args(&command[1..]).env("TERM", "vt100");
        program
            .stdin(copy(&slave)?)
            .stdout(copy(&slave)?)
            .stderr(slave);
        // SAFETY: between fork and exec only two system calls are made.
        unsafe {
            program.pre_exec(|| {
                rustix::process::setsid()?;
                // Descriptor 0 is the terminal here.
                Ok(rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?)
            });
        }
        let program = program.spawn().map_err(|cause| LoadError::Program {
            program: command[0].clone(),
            cause,
        })?;
        Ok(Self {
            terminal: File::from(master),
            program,
            escape: Escape::None,
        })
    }

    /// Whether the terminal had room for the keys.
    fn type_keys(&mut self, keys: &[u8]) -> Result<bool, LoadError> {
        match self.terminal.write_all(keys) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(LoadError::Broken("the terminal", error)),
        }
    }

    /// The letters that the program writes until then, as soon as there are any.
    fn read_until(&mut self, until_ns: u64, now_ns: u64) -> Result<Vec<u8>, LoadError> {
        let mut bytes = [0; 4096];
        let count = self.read(&mut bytes, until_ns, now_ns)?;
        let mut letters = Vec::new();
        for byte in &bytes[..count] {
            self.escape = self.escape.after(*byte);
            if self.escape == Escape::None && byte.is_ascii_lowercase() {
                letters.push(*byte);
            }
        }
        Ok(letters)
    }

    /// Whether the program writes anything until then.
    fn read_some(&mut self, until_ns: u64, now_ns: u64) -> Result<bool, LoadError> {
        let mut bytes = [0; 4096];
        Ok(self.read(&mut bytes, until_ns, now_ns)? > 0)
    }

    /// The number of bytes that came until then; at most some 0.1 s passes.
    fn read(&mut self, bytes: &mut [u8], until_ns: u64, now_ns: u64) -> Result<usize, LoadError> {
        let wait_ns = until_ns.saturating_sub(now_ns).min(NS_PER_S / 10);
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: wait_ns as _,
        };
        let mut ready = [PollFd::new(&self.terminal, PollFlags::IN)];
        match poll(&mut ready, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(0),
            Ok(_) => {}
            Err(error) => return Err(LoadError::Broken("the terminal", error.into())),
        }
        // Reading fails once the program has ended.
        match self.terminal.read(bytes) {
            Ok(count) if count > 0 => Ok(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            _ => Err(LoadError::ProgramEnded),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Where in a control sequence of the terminal the output is (ECMA-48, 5.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Escape {
    /// In no sequence.
    None,
    /// After the escape character.
    Begun,
    /// After the escape character and `[`.
    Control,
    /// The last byte of a sequence.
    Ends,
}

impl Escape {
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (_, 0x1b) => Escape::Begun,
            (Escape::Begun, b'[') => Escape::Control,
            // Such as `ESC ( B`, which chooses a character set.
            (Escape::Begun, 0x20..=0x2f) => Escape::Begun,
            (Escape::Begun, _) => Escape::Ends,
            (Escape::Control, 0x40..=0x7e) => Escape::Ends,
            (Escape::Control, _) => Escape::Control,
            (Escape::None | Escape::Ends, _) => Escape::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_control_sequences_are_no_echoes() {
        let mut escape = Escape::None;
        let text = b"a\x1b[12;4Hb\x1b(Bc\x1b=d\x1b[?25le";
        let letters = text.iter().filter(|byte| {
            escape = escape.after(**byte);
            escape == Escape::None
        });
        assert_eq!(letters.copied().collect::<Vec<u8>>(), b"abcde");
    }

    #[test]
    fn an_echo_is_the_next_letter_that_was_typed() {
        let mut echoes = Echoes::new(10);
        let begin_ns = now_ns();
        let answered = |echoes: &Echoes| (echoes.next, echoes.latencies.len());
        echoes.see(b'a', 0, begin_ns);
        assert_eq!(answered(&echoes), (0, 0), "nothing was typed yet");
        echoes.see(b'a', 2, begin_ns);
        echoes.see(b'c', 2, begin_ns);
        echoes.see(b'b', 2, begin_ns);
        assert_eq!(answered(&echoes), (2, 2));
        // The echo of `c` is lost.
        echoes.see(b'd', 4, begin_ns);
        assert_eq!(answered(&echoes), (4, 3));
        assert_eq!(echoes.due_ns(25), 2 * NS_PER_S + NS_PER_S / 2);
        assert_eq!((key(25), key(26)), (b'z', b'a'));
    }
}
