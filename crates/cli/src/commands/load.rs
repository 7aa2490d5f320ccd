//! `load`: runs Chat, Reflex, Wake or Keys and prints the results.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use prorata_load::{Latencies, LoadError, Performance, Watch, chat, keys, reflex, wake};

use crate::args::load::{
    ChatArgs, KeysArgs, LoadArgs, LoadCommand, ReflexArgs, Transport, WakeArgs,
};
use crate::commands::players;
use crate::output;
use crate::terminal::ProgressLine;

pub fn load(args: &LoadArgs) -> Result<ExitCode> {
    let line = ProgressLine::new();
    line.clear_at_signals().context("cannot handle signals")?;
    let mut progress = LoadProgress { line };
    match &args.command {
        LoadCommand::Chat(args) => {
            let ended = chat::run(&chat_settings(args), &mut progress);
            progress.end(ended, |report| print_chat(args, report))
        }
        LoadCommand::Reflex(args) => {
            let ended = reflex::run(&reflex_settings(args), &mut progress);
            progress.end(ended, |report| print_reflex(args, report))
        }
        LoadCommand::Keys(args) => {
            let ended = keys::run(&keys_settings(args), &mut progress);
            let all_echoed = ended.as_ref().is_ok_and(|report| report.unanswered == 0);
            let code = progress.end(ended, |report| print_keys(args, report))?;
            Ok(if all_echoed { code } else { ExitCode::FAILURE })
        }
        LoadCommand::Wake(args) => {
            let ended = wake::run(&wake_settings(args), &mut progress);
            progress.end(ended, |report| print_wake(args, report))
        }
        // These belong to a demo, which shows the progress.
        LoadCommand::Controller(args) => done(players::play_controller(args)),
        LoadCommand::Gang(args) => done(players::play_gang(args)),
        LoadCommand::Jobs(args) => done(players::play_jobs(args)),
    }
}

fn done(ended: Result<()>) -> Result<ExitCode> {
    ended.map(|()| ExitCode::SUCCESS)
}

fn chat_settings(args: &ChatArgs) -> chat::ChatSettings {
    chat::ChatSettings {
        rooms: args.rooms.into(),
        users: args.users.into(),
        messages: args.messages.into(),
        transport: match args.transport {
            Transport::Tcp => chat::Transport::Tcp,
            Transport::Unix => chat::Transport::Unix,
        },
    }
}

fn reflex_settings(args: &ReflexArgs) -> reflex::ReflexSettings {
    reflex::ReflexSettings {
        active_sets: args.active_sets.into(),
        threads: args.threads.into(),
        rounds: args.rounds.into(),
        yield_probability: args.yield_probability,
        compute_ns: args.compute.into(),
    }
}

fn wake_settings(args: &WakeArgs) -> wake::WakeSettings {
    // A longer time than fits is out of range, too.
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    wake::WakeSettings {
        period_ns: ns(args.period),
        work_ns: ns(args.work),
        wakes: args.wakes.into(),
    }
}

fn keys_settings(args: &KeysArgs) -> keys::KeysSettings {
    keys::KeysSettings {
        rate: args.rate.into(),
        keys: args.keys.into(),
        first: args.first.clone(),
        command: args.command.clone(),
    }
}

fn print_chat(args: &ChatArgs, report: &chat::ChatReport) -> Result<()> {
    if args.format.json {
        return output::json(report);
    }
    output::line(&format!(
        "rooms {}, users of a room {}, messages of a user {}, threads {}",
        args.rooms, args.users, args.messages, report.threads
    ))?;
    output::line(&format!(
        "{} messages in {}: {:.0} messages a second",
        report.delivered,
        output::seconds(report.performance.elapsed_ns),
        report.messages_per_second
    ))?;
    print_performance(&report.performance)
}

fn print_reflex(args: &ReflexArgs, report: &reflex::ReflexReport) -> Result<()> {
    if args.format.json {
        return output::json(report);
    }
    output::line(&format!(
        "active sets {}, threads of a set {}, yields {}, tokens passed {}",
        args.active_sets, args.threads, report.yields, report.passes
    ))?;
    output::line(&format!(
        "{} rounds in {}: {:.3} us a round",
        report.all_rounds,
        output::seconds(report.performance.elapsed_ns),
        report.round_ns / 1e3
    ))?;
    print_performance(&report.performance)
}

fn print_wake(args: &WakeArgs, report: &wake::WakeReport) -> Result<()> {
    if args.format.json {
        return output::json(report);
    }
    output::line(&format!(
        "{} wakes in {}, {} of them due before the work of the one before had ended",
        args.wakes,
        output::seconds(report.performance.elapsed_ns),
        report.late
    ))?;
    print_latencies(&report.latencies)?;
    print_performance(&report.performance)
}

fn print_keys(args: &KeysArgs, report: &keys::KeysReport) -> Result<()> {
    if args.format.json {
        return output::json(report);
    }
    output::line(&format!(
        "{} keys in {}: {} echoes took longer than 50 ms, {} keys had none",
        args.keys,
        output::seconds(report.performance.elapsed_ns),
        report.delayed,
        report.unanswered
    ))?;
    print_latencies(&report.latencies)
}

fn print_latencies(latencies: &Latencies) -> Result<()> {
    let us = |ns: u64| format!("{:.1} us", ns as f64 / 1e3);
    output::line(&format!(
        "latency: p50 {}, p90 {}, p99 {}, p99.9 {}, max {}, mean {:.1} us",
        us(latencies.p50_ns),
        us(latencies.p90_ns),
        us(latencies.p99_ns),
        us(latencies.p999_ns),
        us(latencies.max_ns),
        latencies.mean_ns / 1e3
    ))
}

fn print_performance(performance: &Performance) -> Result<()> {
    let effort = &performance.effort;
    output::line(&format!(
        "context switches: {} voluntary, {} involuntary",
        effort.voluntary_switches, effort.involuntary_switches
    ))?;
    output::line(&format!(
        "CPU time: {} in user mode, {} in the kernel",
        output::seconds(effort.user_ns),
        output::seconds(effort.system_ns)
    ))?;
    let length = performance.mean_run_queue_length;
    let Some((turns, length)) = performance.run_queue.zip(length) else {
        return output::line("run queue: this kernel does not count (CONFIG_SCHED_INFO)");
    };
    output::line(&format!(
        "run queue: mean length {length:.1} threads, mean wait {:.1} us before each of {} turns",
        turns.mean_wait_ns() / 1e3,
        turns.turns
    ))
}

/// The progress line. A signal ends this process at once, wherever its threads wait for a CPU.
struct LoadProgress {
    line: ProgressLine,
}

impl LoadProgress {
    /// Prints the report of a load that has ended.
    fn end<R>(
        &self,
        ended: Result<R, LoadError>,
        print: impl FnOnce(&R) -> Result<()>,
    ) -> Result<ExitCode> {
        self.line.clear();
        print(&ended?).map(|()| ExitCode::SUCCESS)
    }
}

impl Watch for LoadProgress {
    fn progress(&mut self, done: u64, of: u64) {
        let part = done as f64 / of as f64;
        self.line
            .show(&format!("{} of {of}", output::percent(part)));
    }
}
