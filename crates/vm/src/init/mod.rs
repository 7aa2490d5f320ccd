//! The guest's side: process 1 of the machine.

mod command;
mod mounts;
mod port;

use std::fs::{self, File};
use std::io;
use std::sync::{Arc, Mutex};

use rustix::system::{RebootCommand, reboot, sethostname};

use crate::channel::{Ending, Frame};
use crate::job::{self, Job};

/// Why the machine cannot be brought up: what failed, and the reason.
type Result<T> = std::result::Result<T, String>;

/// Names what failed.
fn step<T, E: std::fmt::Display>(what: &str, result: std::result::Result<T, E>) -> Result<T> {
    result.map_err(|error| format!("{what}: {error}"))
}

/// What the machine calls itself.
const HOST_NAME: &[u8] = b"prorata-vm";

/// The port to the host, shared by those who write to it.
type Port = Arc<Mutex<File>>;

/// Sends a frame. Where the host has gone there is nobody left to tell.
fn send(port: &Port, frame: &Frame) -> io::Result<()> {
    let mut port = port.lock().expect("no writer panics");
    frame.write(&mut *port)
}

/// Is the machine's init, and never returns, if this process is process 1 of
/// a machine that [`crate::run`] started; else does nothing. To be called
/// first of all by a program that runs jobs.
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
            let _ = send(&port, &last);
        }
        // To the kernel's console: there is nothing else.
        Err(why) => eprintln!("prorata: {why}"),
    }
    power_off();
}

fn bring_up_and_run(port: &Port) -> Result<Ending> {
    let written = step("read the job", fs::read(job::PATH))?;
    let job: Job = step("read the job", serde_json::from_slice(&written))?;
    mounts::root()?;
    step("set the host name", sethostname(HOST_NAME))?;
    step("send", send(port, &Frame::Ready))?;
    command::run(&job, port)
}

/// The host ends the machine as soon as it has the last frame; this is for the
/// case that it does not.
fn power_off() -> ! {
    let _ = reboot(RebootCommand::PowerOff);
    loop {
        std::thread::park();
    }
}
