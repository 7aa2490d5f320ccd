//! An engine over a fake, and processes for it to manage.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use prorata_core::ledger::{Ledger, Operation, Outcome, Principal, Target};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::*;
use super::fake::Kernel;
use crate::policy;
use crate::state::LIMITS;

pub(super) const SOCKET: &str = "/nonexistent/kernel/socket";
const LONG: Duration = Duration::from_secs(60);

/// An engine over a fake, with a ledger.
pub(super) struct EngineOverFake {
    pub engine: ForKernel,
    pub kernel: Kernel,
    pub dispatcher: Arc<Mutex<Dispatcher>>,
    pub directory: Arc<tempfile::TempDir>,
}

impl EngineOverFake {
    pub fn new() -> Self {
        let ledger = Ledger::new(LIMITS);
        Self::with(
            ledger,
            Kernel::new(),
            Arc::new(tempfile::tempdir().unwrap()),
        )
    }

    pub fn with(ledger: Ledger, kernel: Kernel, directory: Arc<tempfile::TempDir>) -> Self {
        let stride = policy::new(PolicyName::Stride);
        let dispatcher = Arc::new(Mutex::new(Dispatcher::new(ledger, stride, 2, 20_000_000)));
        let loaded = kernel.clone();
        let engine = ForKernel::start_over(
            Box::new(move |options| loaded.load(options)),
            EngineSetup {
                dispatcher: Arc::clone(&dispatcher),
                directory: directory.path().join("engine"),
                socket: SOCKET.into(),
                cpus: vec![0, 1],
                user_funding: 1_000,
            },
            KernelOptions {
                hybrid: HybridChoice::ALL,
                ..KernelOptions::for_clients()
            },
        );
        Self {
            engine: engine.unwrap(),
            kernel,
            dispatcher,
            directory,
        }
    }

    pub fn apply(&self, operation: Operation) -> Outcome {
        let mut dispatcher = lock(&self.dispatcher);
        let checked = dispatcher
            .ledger()
            .check(&Principal::ROOT, operation)
            .unwrap();
        dispatcher.apply(checked)
    }

    /// A client with so many base tickets.
    pub fn client(&self, amount: u32) -> ClientId {
        let create = Operation::CreateClient {
            name: None,
            owner: 0,
        };
        let Outcome::Client(client) = self.apply(create) else {
            panic!()
        };
        let currency = lock(&self.dispatcher).ledger().base();
        self.apply(Operation::Issue {
            currency,
            amount,
            target: Some(Target::Client(client)),
        });
        client
    }

    pub fn node(&self, client: ClientId) -> u32 {
        self.engine.side().projection.node(client).unwrap()
    }

    /// Waits for the exits of these clients.
    pub fn wait_for_exits(&self, expected: &[ClientId]) {
        let deadline = Instant::now() + LONG;
        let mut exited = Vec::new();
        while exited.len() < expected.len() {
            assert!(
                Instant::now() < deadline,
                "{exited:?} instead of {expected:?}"
            );
            self.kernel.notice_ends();
            let exits = self.engine.exits();
            let mut ready = [PollFd::new(&exits, PollFlags::IN)];
            let tick = Timespec {
                tv_sec: 0,
                tv_nsec: 10_000_000,
            };
            if poll(&mut ready, Some(&tick)).unwrap() > 0 {
                exited.extend(self.engine.take_exited());
            }
        }
        exited.sort_unstable();
        assert_eq!(exited, expected);
    }

    pub fn trouble(&self) -> Option<String> {
        self.engine.status().trouble
    }
}

/// Waits until the condition holds.
pub(super) fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LONG;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "it never was so");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether members get their policies back here: only root may set them.
pub(super) fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// A sleeping process, which ends with all its children when it is dropped.
pub(super) struct Sleeper(pub Child);

impl Sleeper {
    pub fn start() -> Self {
        Self::of(Command::new("sleep").arg("1000"))
    }

    /// A shell with this many sleeping children.
    pub fn with_children(count: usize) -> Self {
        let script = format!("{}wait", "sleep 1000 & ".repeat(count));
        let parent = Self::of(Command::new("sh").args(["-c", &script]));
        eventually(|| (parent.children().len() == count).then_some(()));
        parent
    }

    pub fn of(command: &mut Command) -> Self {
        use std::os::unix::process::CommandExt;
        Self(command.process_group(0).spawn().unwrap())
    }

    pub fn id(&self) -> ProcessId {
        ProcessId::of(self.0.id()).unwrap()
    }

    pub fn children(&self) -> Vec<u32> {
        let all = prorata_user::procfs::all_processes().into_iter();
        let children = all.filter(|(_, stat)| stat.parent == self.0.id());
        children.map(|(pid, _)| pid).collect()
    }

    pub fn end(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.end();
    }
}

pub(super) fn policy_of(pid: u32) -> prorata_user::Policy {
    prorata_user::Policy::of(pid).unwrap()
}
