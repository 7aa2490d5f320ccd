//! The two processes of a machine: QEMU, and the server of the host's files.
//!
//! A machine leaves nothing behind: its files are anonymous, the socket's
//! directory is gone before QEMU runs, and both processes end with the thread
//! that started them.

use std::fs::{self, File};
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, RawFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::machine::{Accelerator, Connections, VirtualMachine};

const QEMU: &str = "qemu-system-x86_64";

/// Where distributions put the server, which is not in PATH.
const FILE_SERVERS: [&str; 4] = [
    "/usr/libexec/virtiofsd",
    "/usr/lib/qemu/virtiofsd",
    "/usr/lib/virtiofsd",
    "/usr/bin/virtiofsd",
];

/// How much of the end of each log is kept: of the kernel's a panic on several CPUs,
/// of the others a few lines.
const LAST_WORDS_BYTES: [u64; 3] = [16_000, 2_000, 2_000];

/// Why a machine's processes do not run.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum StartError {
    #[error("machines are of the architecture x86_64 only: run this on such a host")]
    Architecture,
    #[error("there is no {QEMU} in PATH: install it (Debian's package qemu-system-x86)")]
    NoQemu,
    #[error(
        "there is no virtiofsd: install it (Debian's package virtiofsd, before trixie qemu-system-common)"
    )]
    NoFileServer,
    #[error("cannot read the kernel {0}: name the image of one, or leave --kernel out")]
    NoKernel(PathBuf),
    #[error("cannot start {what}: {source}")]
    Start {
        what: &'static str,
        source: io::Error,
    },
}

/// The running processes. Dropping this ends them.
#[derive(Debug)]
pub struct Processes {
    qemu: Child,
    files: Child,
    channel: ChildStdout,
    /// The logs of the kernel, of QEMU and of the server.
    logs: [File; 3],
}

impl Processes {
    /// Starts both processes.
    pub fn start(
        machine: &VirtualMachine,
        accelerator: Accelerator,
        initramfs: &[u8],
    ) -> Result<Self, StartError> {
        if !cfg!(target_arch = "x86_64") {
            return Err(StartError::Architecture);
        }
        if !machine.kernel.is_file() {
            return Err(StartError::NoKernel(machine.kernel.clone()));
        }
        let anonymous =
            |what| anonymous_file().map_err(|source| StartError::Start { what, source });
        let mut archive = anonymous("the first file system")?;
        let logs = [
            anonymous("the kernel's log")?,
            anonymous("QEMU's log")?,
            anonymous("the log of virtiofsd")?,
        ];
        write_all(&mut archive, initramfs)?;
        let (listener, socket) = socket_pair().map_err(|source| StartError::Start {
            what: "the socket of virtiofsd",
            source,
        })?;
        let mut files = serve_files(&listener, &logs[2])?;
        let connections = Connections {
            initramfs: path_of(&archive),
            log: path_of(&logs[0]),
            files_fd: socket.as_raw_fd(),
        };
        let arguments = machine.arguments(accelerator, &connections);
        let inherited = [archive.as_fd(), logs[0].as_fd(), socket.as_fd()];
        let mut command = Command::new(QEMU);
        // QEMU takes the channel for connected as long as this input is open.
        command.args(arguments).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(duplicate(&logs[1])?);
        let qemu = spawn(command, &inherited);
        let mut qemu = match qemu {
            Ok(qemu) => qemu,
            Err(source) => {
                end(&mut files);
                return Err(match source.kind() {
                    io::ErrorKind::NotFound => StartError::NoQemu,
                    _ => StartError::Start { what: QEMU, source },
                });
            }
        };
        let channel = qemu.stdout.take().expect("it is a pipe");
        Ok(Self {
            qemu,
            files,
            channel,
            logs,
        })
    }

    /// The channel, from the machine to this process.
    pub fn channel(&mut self) -> &mut ChildStdout {
        &mut self.channel
    }

    /// Waits until the channel has data, or has ended. False if the time is up
    /// before.
    pub fn wait_for_channel(&self, limit: Duration) -> io::Result<bool> {
        let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
        let mut polled = [PollFd::new(&self.channel, PollFlags::IN)];
        // After a signal the wait begins again.
        let ready = rustix::io::retry_on_intr(|| poll(&mut polled, Some(&limit)))?;
        Ok(ready > 0)
    }

    /// The CPU time that QEMU has used: fields 14 and 15 of proc_pid_stat(5), in
    /// ticks of 10 ms.
    pub fn cpu_time(&self) -> Duration {
        let path = format!("/proc/{}/stat", self.qemu.id());
        let line = fs::read_to_string(path).unwrap_or_default();
        let fields = line.rsplit(") ").next().unwrap_or_default();
        let ticks = fields.split(' ').skip(14 - 3).take(2);
        let ticks = ticks.filter_map(|ticks| ticks.parse::<u64>().ok());
        Duration::from_millis(ticks.sum::<u64>() * 10)
    }

    /// Ends the machine, and gives the end of its logs.
    pub fn last_words(&mut self) -> String {
        end(&mut self.qemu);
        end(&mut self.files);
        let logs = self.logs.iter().zip(LAST_WORDS_BYTES);
        let tails: String = logs.map(|(log, bytes)| tail(log, bytes)).collect();
        tails.trim_end().to_owned()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        end(&mut self.qemu);
        end(&mut self.files);
    }
}

/// Ends a process, unless it has ended, and waits for that.
fn end(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}

fn anonymous_file() -> io::Result<File> {
    Ok(memfd_create("prorata", MemfdFlags::CLOEXEC)?.into())
}

fn write_all(file: &mut File, bytes: &[u8]) -> Result<(), StartError> {
    let written = file.write_all(bytes).and_then(|()| file.rewind());
    written.map_err(|source| StartError::Start {
        what: "the first file system",
        source,
    })
}

fn duplicate(file: &File) -> Result<File, StartError> {
    file.try_clone().map_err(|source| StartError::Start {
        what: "a log",
        source,
    })
}

fn path_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// A listening socket for the server, and one that is connected to it. No other
/// process can connect, as the socket's name is gone.
fn socket_pair() -> io::Result<(UnixListener, UnixStream)> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("files");
    let listener = UnixListener::bind(&path)?;
    let socket = UnixStream::connect(&path)?;
    Ok((listener, socket))
}

fn serve_files(listener: &UnixListener, log: &File) -> Result<Child, StartError> {
    let program = FILE_SERVERS.iter().find(|path| Path::new(path).is_file());
    let program = program.ok_or(StartError::NoFileServer)?;
    let mut command = Command::new(program);
    // Containers may forbid new namespaces.
    let sandbox = if rustix::process::geteuid().is_root() {
        "chroot"
    } else {
        "namespace"
    };
    command.arg(format!("--fd={}", listener.as_raw_fd()));
    command.args(["-o", "source=/", "-o", "cache=always"]);
    command.args(["-o", &format!("sandbox={sandbox}")]);
    command.stdin(Stdio::null()).stdout(duplicate(log)?);
    command.stderr(duplicate(log)?);
    spawn(command, &[listener.as_fd()]).map_err(|source| StartError::Start {
        what: "virtiofsd",
        source,
    })
}

/// Starts a process that inherits these descriptors and ends with this thread.
fn spawn(mut command: Command, inherited: &[BorrowedFd<'_>]) -> io::Result<Child> {
    let inherited: Vec<RawFd> = inherited.iter().map(BorrowedFd::as_raw_fd).collect();
    // SAFETY: the closure makes system calls only, which is permitted between
    // fork and exec; the descriptors are open in the child, because the caller
    // borrows them until this function returns.
    unsafe {
        command.pre_exec(move || {
            for &fd in &inherited {
                fcntl_setfd(BorrowedFd::borrow_raw(fd), FdFlags::empty())?;
            }
            Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
        });
    }
    command.spawn()
}

fn tail(log: &File, most_bytes: u64) -> String {
    let length = log.metadata().map_or(0, |metadata| metadata.len());
    let begin = length.saturating_sub(most_bytes);
    let mut bytes = vec![0; usize::try_from(length - begin).unwrap_or_default()];
    match log.read_exact_at(&mut bytes, begin) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}
