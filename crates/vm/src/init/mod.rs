//! The guest's side: process 1 of the machine.

mod command;
mod kernel_files;
mod loopback;
mod mounts;
mod port;

use std::fs::{self, File};
use std::io;
use std::sync::{Arc, Mutex};

use rustix::system::{RebootCommand, reboot, sethostname};

use crate::channel::{Ending, Frame};
use crate::job::{self, Job};

/// Why the machine cannot be brought up: the step that failed, and the reason.
type Result<T> = std::result::Result<T, String>;

/// Names the step that failed.
fn step<T, E: std::fmt::Display>(what: &str, result: std::result::Result<T, E>) -> Result<T> {
    result.map_err(|error| format!("{what}: {error}"))
}

/// The host name of the machine.
const HOST_NAME: &[u8] = b"prorata-vm";

/// The port to the host, shared by its writers.
type Port = Arc<Mutex<File>>;

fn send(port: &Port, frame: &Frame) -> io::Result<()> {
    let mut port = port.lock().expect("no writer panics");
    frame.write(&mut *port)
}

/// Is the machine's init, and never returns, if this process is process 1 of
/// a machine that [`crate::run`] started; else does nothing. A program that runs
/// jobs calls this first of all.
pub fn entry() {
    if std::process::id() != 1 || !fs::exists(job::PATH).unwrap_or(false) {
        return;
    }
    match mounts::devices().and_then(|()| port::open()) {
        Ok(port) => {
            let last = match bring_up_and_run(&port) {
                Ok(ending) => Frame::Ended(ending),
                Err(why) => Frame::Failed(why),
            };
            // The write returns when the kernel has queued the frame. The host reads
            // it later, and then ends the machine. Power off now, and what is still
            // in the queue is lost.
            if send(&port, &last).is_ok() {
                wait_for_the_end();
            }
        }
        // The kernel's console is the only way to the host.
        Err(why) => eprintln!("prorata: {why}"),
    }
    let _ = reboot(RebootCommand::PowerOff);
    wait_for_the_end();
}

fn bring_up_and_run(port: &Port) -> Result<Ending> {
    let written = step("read the job", fs::read(job::PATH))?;
    let job: Job = step("read the job", serde_json::from_slice(&written))?;
    mounts::root()?;
    if let Some(files) = &job.kernel_files {
        kernel_files::place(files)?;
    }
    loopback::bring_up()?;
    step("set the host name", sethostname(HOST_NAME))?;
    step("send", send(port, &Frame::Ready))?;
    command::run(&job, port)
}

fn wait_for_the_end() -> ! {
    loop {
        std::thread::park();
    }
}
