//! A daemon's life, from taking its locks to giving them up.

use std::fs;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use prorata_core::dispatcher::Dispatcher;
use prorata_protocol::{
    DaemonPaths, EngineChoice, LockFile, PathError, ProgressWatch, READY, StartError, note_in,
};
use prorata_user::{Mechanism, raise_file_limit};

use crate::control::Control;
use crate::decode::USER_FUNDING;
use crate::engine::{Engine, EngineError, EngineSetup};
use crate::home::Home;
use crate::host::{Host, Linux};
use crate::journal::{Journal, JournalError, Opened};
use crate::kernel_engine::kernel_engine;
use crate::process::boot_id;
use crate::report::RunningChoice;
use crate::restore::reconcile;
use crate::roots::RootWatch;
use crate::server::{End, Failure, Server, Timing};
use crate::slots::Slots;
use crate::state::{Settings, State};
use crate::state_directory::StateDirectory;
use crate::user_engine::user_engine;
use crate::users::Census;
use crate::{log, policy};

/// How long a new daemon waits for one that has not noted that it ends: a
/// signal may be about to end it.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// Pause between two looks at a lock.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The choices when a daemon starts.
#[derive(Clone, Default, Debug)]
pub struct DaemonOptions {
    /// The engine; without one, the last choice.
    pub engine: Option<EngineChoice>,
    /// CPUs to share out; without them, the last choice, and initially all that
    /// the daemon may run on.
    pub cpus: Option<Vec<u32>>,
    /// How the user engine holds losers back; without one, the best that a
    /// trial permits.
    pub mechanism: Option<Mechanism>,
    /// How long the daemon waits.
    pub timing: Timing,
}

/// Why a daemon did not start, or ended with a failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// The daemon has no directories.
    #[error(transparent)]
    Paths(#[from] PathError),
    /// A lock file could not be used.
    #[error(transparent)]
    Lock(#[from] StartError),
    /// Another daemon uses the directory.
    #[error("a daemon uses {0} already: talk to that one, or name another socket by --socket")]
    Running(PathBuf),
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The engine did not start.
    #[error("the engine did not start: {0}")]
    Engine(EngineError),
    /// The engine gave up. All processes have been released.
    #[error("the engine failed; all programs go on as if never managed: {0}")]
    EngineFailed(String),
    /// The system refused something that a daemon needs.
    #[error("{what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A bug. All processes have been released.
    #[error("the daemon ended by a bug of its own; all programs go on as if never managed: {0}")]
    Panicked(String),
}

/// Makes the daemon's engine.
pub type MakeEngine<'a> =
    &'a dyn Fn(EngineChoice, EngineSetup) -> Result<Box<dyn Engine>, EngineError>;

/// Runs the daemon of `paths`; see [`serve`]. Writes to standard output whether
/// it has started, as [`prorata_protocol::start_daemon`] expects, and nothing
/// after that.
pub fn daemon_main(paths: DaemonPaths, options: DaemonOptions) -> Result<(), DaemonError> {
    let make_engine = |choice, setup| match choice {
        EngineChoice::User => user_engine(setup, options.mechanism),
        EngineChoice::Kernel(choice) => kernel_engine(setup, choice.into()),
    };
    let mut started = false;
    let result = serve(&paths, &options, &make_engine, || {
        started = true;
        announce(READY);
    });
    if let (Err(error), false) = (&result, started) {
        announce(&format!("{error}\n"));
    }
    result
}

/// The CPUs that this process may run on.
fn own_cpus() -> Result<Vec<u32>, DaemonError> {
    let allowed = rustix::thread::sched_getaffinity(None)
        .map_err(|error| system("its own CPUs cannot be found out")(error.into()))?;
    let numbers = 0..rustix::thread::CpuSet::MAX_CPU;
    let cpus = numbers.filter(|cpu| allowed.is_set(*cpu));
    Ok(cpus.map(|cpu| cpu as u32).collect())
}

/// Runs the daemon of `paths` over its engine until it is idle, a request stops
/// it, or a signal (TERM, INT or HUP) ends it. In every case all processes
/// continue as if never managed.
///
/// A stopped daemon forgets its clients ([`DaemonPaths::was_stopped`]). After
/// any other end the next daemon finds the living ones again. The socket stays
/// behind if clients need another daemon.
pub fn serve(
    paths: &DaemonPaths,
    options: &DaemonOptions,
    make_engine: MakeEngine<'_>,
    ready: impl FnOnce(),
) -> Result<(), DaemonError> {
    let StateDirectory { paths, trouble } = StateDirectory::prepare(paths)?;
    let paths = &paths;
    log::start(&paths.log()).map_err(system("the log cannot be written"))?;
    if let Some(trouble) = &trouble {
        tracing::warn!("{trouble}");
    }
    let run = |locks: &DaemonLocks| {
        let signals = prepare_process()?;
        let mut control = restore(paths, options, make_engine, locks)?;
        control.choice.journal_trouble = trouble;
        let home = Home::open(paths).map_err(system("the socket cannot be made"))?;
        let mut server = Server::new(home, signals, control, options.timing)
            .map_err(system("connections cannot be served"))?;
        tracing::info!("listening on {}", paths.socket);
        locks.note("serves");
        ready();
        let end = server.run();
        locks.note(ENDS);
        end.map_err(|failure| match failure {
            Failure::Engine(failure) => DaemonError::EngineFailed(failure),
            Failure::System(error) => system("connections cannot be served")(error),
        })
    };
    let end = DaemonLocks::take(paths, LOCK_PATIENCE).and_then(|locks| {
        // Of the last daemon.
        let _ = fs::remove_file(paths.stop_note());
        // At its end, however it comes, the closure has dropped the engine and so
        // released all processes.
        let end = catch_unwind(AssertUnwindSafe(|| run(&locks)))
            .unwrap_or_else(|panic| Err(DaemonError::Panicked(message_of(panic.as_ref()))));
        leave(paths, &end);
        end
    });
    match &end {
        Ok(End::Idle) => tracing::info!("nothing is left to manage: the daemon ends"),
        Ok(End::Stopped) => tracing::info!("the daemon was stopped"),
        Ok(End::Signalled) => tracing::info!("a signal ends the daemon"),
        Err(error) => tracing::error!("{error}"),
    }
    end.map(drop)
}

/// Tells waiting clients how the daemon ended. An idle or stopped daemon
/// removes its socket. Any other leaves it, as a killed one would, since its
/// clients need the next. While this process has the locks, the socket is its
/// own; another daemon may have locks in directories that were made anew.
fn leave(paths: &DaemonPaths, end: &Result<End, DaemonError>) {
    let holder = note_in(&paths.daemon_lock()).map(|(pid, _)| pid);
    if holder != Some(std::process::id()) {
        return;
    }
    if matches!(end, Ok(End::Stopped))
        && let Err(error) = fs::write(paths.stop_note(), "")
    {
        tracing::warn!("that the daemon was stopped cannot be noted: {error}");
    }
    if matches!(end, Ok(End::Stopped | End::Idle)) {
        let _ = fs::remove_file(paths.socket.path());
    }
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> DaemonError {
    move |source| DaemonError::System { what, source }
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    // The log gets one line about the daemon's end.
    text.unwrap_or("no message")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The stage of a daemon that gives up its engine and its journal.
const ENDS: &str = "ends";

/// The locks of both directories, which can be the same one.
struct DaemonLocks([LockFile; 2]);

impl DaemonLocks {
    /// Waits for an ending daemon as long as it makes progress, and for any
    /// other one only for `patience`.
    fn take(paths: &DaemonPaths, patience: Duration) -> Result<Self, DaemonError> {
        let take = |path: PathBuf, directory: &PathBuf| {
            let lock = LockFile::open(path.clone())?;
            let tell = |text: &str| tracing::info!("{text}");
            let mut progress = ProgressWatch::new(path.clone(), paths.log(), &tell);
            let deadline = Instant::now() + patience;
            while !lock.try_take()? {
                if note_in(&path).is_some_and(|(_, stage)| stage == ENDS) {
                    progress.look()?;
                } else if Instant::now() >= deadline {
                    return Err(DaemonError::Running(directory.clone()));
                }
                std::thread::sleep(LOOK_AGAIN);
            }
            lock.note("starts");
            Ok(lock)
        };
        Ok(Self([
            take(paths.daemon_lock(), &paths.runtime)?,
            take(paths.journal_lock(), &paths.state)?,
        ]))
    }

    /// Notes the stage of this daemon for waiting programs.
    fn note(&self, stage: &str) {
        self.0.iter().for_each(|lock| lock.note(stage));
    }
}

/// Prepares for signals, and for as many connections and processes as the
/// system allows. Returns the socket that announces signals that end the
/// daemon.
fn prepare_process() -> Result<UnixStream, DaemonError> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    let failed = "signals cannot be handled";
    let (announced, announcer) = UnixStream::pair().map_err(system(failed))?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        let announcer = announcer.try_clone().map_err(system(failed))?;
        signal_hook::low_level::pipe::register(signal, announcer).map_err(system(failed))?;
    }
    // A file at its size limit then behaves like a full disk; without this, the
    // signal kills the daemon.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))
        .map_err(system(failed))?;
    raise_file_limit();
    Ok(announced)
}

/// Reads the journal, starts the engine, and hands it the living clients.
fn restore(
    paths: &DaemonPaths,
    options: &DaemonOptions,
    make_engine: MakeEngine<'_>,
    locks: &DaemonLocks,
) -> Result<Control, DaemonError> {
    locks.note("reads its journal");
    let host = Box::new(Linux);
    let boot = boot_id();
    let Opened {
        mut journal,
        found,
        damage,
    } = Journal::open(paths.state.join("journal"), boot.clone())?;
    if let Some(damage) = damage {
        tracing::error!("the journal is damaged, what follows is lost: {damage:?}");
    }
    let uid = host.own_uid();
    let (state, users) = match found {
        Some((mut state, boot_of_state)) => {
            let users = reconcile(&mut state, boot_of_state == boot);
            (state, users)
        }
        None => (
            State::new(uid, rustix::process::getgid().as_raw()),
            Vec::new(),
        ),
    };
    if let Err(error) = journal.rewrite(&state) {
        tracing::warn!("{error}");
    }
    let settings = Settings {
        engine: options.engine.or(state.settings.engine),
        cpus: options.cpus.clone().or(state.settings.cpus.clone()),
        ..state.settings.clone()
    };
    locks.note("starts its engine");
    let (engine, dispatcher, choice) = start_engine(
        paths,
        &state,
        settings.engine.unwrap_or_default(),
        usable_cpus(options.cpus.as_deref(), settings.cpus.as_deref())?,
        options.engine.is_some(),
        make_engine,
    )?;
    let roots = RootWatch::new().map_err(system("processes cannot be watched"))?;
    let mut control = Control {
        state,
        journal,
        dispatcher,
        engine,
        choice,
        host,
        roots,
        census: Census::default(),
        resumed_until: None,
        slots: Slots::new(paths.runtime.join(prorata_bulletin::FILE_NAME)),
    };
    locks.note("finds its clients");
    control.configure_again(settings);
    control.manage_again();
    control.open_slots_again();
    for user in users {
        control.collect_currency(user);
    }
    Ok(control)
}

type StartedEngine = (Box<dyn Engine>, Arc<Mutex<Dispatcher>>, RunningChoice);

/// Starts the engine. A demanded engine must start. One that an earlier daemon
/// was given gives way to the user engine, so that programs get their shares
/// all the same.
fn start_engine(
    paths: &DaemonPaths,
    state: &State,
    chosen: EngineChoice,
    cpus: Vec<u32>,
    is_demanded: bool,
    make_engine: MakeEngine<'_>,
) -> Result<StartedEngine, DaemonError> {
    let start = |engine| {
        let count = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
        let policy = policy::new(state.settings.policy);
        let mut dispatcher = Dispatcher::new(
            state.ledger.clone(),
            policy,
            count,
            state.settings.quantum_ns,
        );
        // Another engine has the mechanisms of its choice.
        if engine == EngineChoice::User {
            dispatcher.set_mechanisms_beside(state.settings.mechanisms());
        }
        let dispatcher = Arc::new(Mutex::new(dispatcher));
        let setup = EngineSetup {
            dispatcher: Arc::clone(&dispatcher),
            directory: paths.engine(),
            socket: paths.socket.path().to_owned(),
            cpus: cpus.clone(),
            user_funding: USER_FUNDING,
        };
        Ok((make_engine(engine, setup)?, dispatcher))
    };
    let (started, running) = match start(chosen) {
        Err(error) if !is_demanded && chosen != EngineChoice::User => {
            let trouble = format!(
                "the user engine decides, since the chosen one ({chosen}) did not start: {error}; \
                 to choose another, use `prorata stop` and `prorata start --engine`"
            );
            tracing::error!("{trouble}");
            let running = RunningChoice {
                engine: EngineChoice::User,
                trouble: Some(trouble),
                journal_trouble: None,
            };
            (start(EngineChoice::User), running)
        }
        started => {
            let running = RunningChoice {
                engine: chosen,
                ..RunningChoice::default()
            };
            (started, running)
        }
    };
    let (engine, dispatcher) = started.map_err(DaemonError::Engine)?;
    Ok((engine, dispatcher, running))
}

/// The demanded CPUs, else the kept ones that are still there, else all.
fn usable_cpus(demanded: Option<&[u32]>, kept: Option<&[u32]>) -> Result<Vec<u32>, DaemonError> {
    if let Some(demanded) = demanded {
        return Ok(demanded.to_vec());
    }
    let own = own_cpus()?;
    let kept = kept.into_iter().flatten().copied();
    let usable: Vec<u32> = kept.filter(|cpu| own.contains(cpu)).collect();
    Ok(if usable.is_empty() { own } else { usable })
}

/// Tells the starter, which reads one line and may have ended.
fn announce(line: &str) {
    let mut stdout = io::stdout();
    let _ = stdout
        .write_all(line.as_bytes())
        .and_then(|()| stdout.flush());
    // The starter waits for the pipe's end.
    if let Ok(null) = fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prorata_protocol::SocketPath;

    #[test]
    fn each_directory_has_at_most_one_daemon() {
        let directories = [0, 1].map(|_| tempfile::tempdir().unwrap());
        let paths = |runtime: usize, state: usize| {
            let [runtime, state] = [runtime, state].map(|which| directories[which].path());
            DaemonPaths {
                runtime: runtime.into(),
                state: state.into(),
                socket: SocketPath::new(runtime.join("socket")).unwrap(),
                is_homeless: false,
            }
        };
        for (runtime, state, other_is_refused) in [
            (0, 0, [true, true]),
            (0, 1, [true, true]),
            (1, 0, [true, false]),
        ] {
            // A child that another test forks at this moment holds the locks until it executes.
            let patience = Duration::from_secs(5);
            let _locks = DaemonLocks::take(&paths(runtime, state), patience).unwrap();
            for (other, is_refused) in [0, 1].into_iter().zip(other_is_refused) {
                let patience = if is_refused { Duration::ZERO } else { patience };
                let locks = DaemonLocks::take(&paths(0, other), patience);
                let refused = matches!(locks, Err(DaemonError::Running(_)));
                assert_eq!(refused, is_refused, "{runtime} {state} {other}");
            }
        }
    }
}
