//! `prorata`: parse, call, print.

#![deny(
    clippy::print_stderr,
    reason = "it panics if standard error is a closed pipe"
)]

mod args;
mod belonging;
mod caller;
mod commands;
mod output;
mod sentence;
mod shares;
mod terminal;
mod wrapper;

use std::io;
use std::process::ExitCode;

use clap::Parser as _;

/// Huge pages make large simulations some 1.4 times as fast.
#[global_allocator]
static ALLOCATOR: prorata_sim::memory::HugePages = prorata_sim::memory::HugePages;

fn main() -> ExitCode {
    prorata_vm::init::entry();
    prorata_user::guardian_entry();
    prorata_reproduce::worker_entry();
    prorata_stage::client_entry();
    let arguments = args::Cli::parse();
    match commands::execute(&arguments) {
        Ok(code) => code,
        Err(error) if reader_is_gone(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::say(sentence::sentence(&error));
            if error.is::<args::WrongUsage>() {
                ExitCode::from(2)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// Whether the reader of our output closed it, as in `prorata ps | head`.
fn reader_is_gone(error: &anyhow::Error) -> bool {
    let io_error = error.downcast_ref::<io::Error>();
    io_error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
