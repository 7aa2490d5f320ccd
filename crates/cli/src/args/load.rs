//! Arguments of `prorata load`.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::Format;
use super::players::{ControllerArgs, GangArgs, JobsArgs};
use super::values::duration;

/// `prorata load`.
#[derive(Clone, Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  prorata load chat
  prorata load reflex --active-sets 64
  prorata run -t 300 -- prorata load chat --rooms 20 --messages 200"
)]
pub struct LoadArgs {
    #[command(subcommand)]
    pub command: LoadCommand,
}

/// The loads.
#[derive(Clone, Subcommand, Debug)]
pub enum LoadCommand {
    /// Chat rooms whose users send one another messages
    ///
    /// Each user has four threads: a sender and a receiver on the client side, and the same on the
    /// server side. Each user sends messages of 100 bytes, and all other users of its room receive
    /// them. The result is the number of messages delivered a second.
    ///
    /// Exit codes: 0 every message arrived once and in order; 1 refused or failed; 2 wrong usage.
    Chat(ChatArgs),
    /// Rings of threads that pass a token and yield
    ///
    /// The threads of an active set pass a token through pipes. The thread with the token performs
    /// rounds. After each round it either yields, or passes the token on and blocks until the token
    /// returns. The result is the mean time of a round.
    ///
    /// Exit codes: 0 every round was performed; 1 refused or failed; 2 wrong usage.
    Reflex(ReflexArgs),
    /// A thread that wakes at fixed times, and how late it wakes
    ///
    /// Each latency counts from the time at which the wake was due, even if the work of an earlier
    /// wake ended later. The result is the percentiles of all latencies.
    ///
    /// Exit codes: 0 every wake was measured; 1 refused or failed; 2 wrong usage.
    Wake(WakeArgs),
    /// A program on a terminal that is typed into, and how late it echoes the keys
    ///
    /// Starts the program on a terminal of its own, and types the letters of the alphabet in turn.
    /// Each latency counts from the time at which the key was due to the time at which the program
    /// writes that letter. So the program must insert what is typed, and write no other letters.
    /// The program is killed at the end.
    ///
    /// Exit codes: 0 every key was echoed; 1 refused or failed, or some keys had no echo; 2 wrong
    /// usage.
    Keys(KeysArgs),
    /// A thread with a deadline in every period
    #[command(hide = true)]
    Controller(ControllerArgs),
    /// Threads that spin at a barrier
    #[command(hide = true)]
    Gang(GangArgs),
    /// Threads that only compute
    #[command(hide = true)]
    Jobs(JobsArgs),
}

/// `prorata load chat` (2001, 5.2).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata load chat --rooms 20 --messages 200
  prorata load chat --json | jq '.\"messages-per-second\"'")]
pub struct ChatArgs {
    /// Number of chat rooms
    #[arg(long, default_value = "10", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rooms: u32,
    /// Messages sent by each user, up to 1000000
    #[arg(long, default_value = "100", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub messages: u32,
    /// Users in each room
    #[arg(long, default_value = "20", value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub users: u32,
    /// Transport of the messages
    #[arg(long, value_enum, default_value = "tcp")]
    pub transport: Transport,
    #[command(flatten)]
    pub format: Format,
}

/// Transport of the messages.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum Transport {
    /// TCP over the loopback interface, as in the paper
    Tcp,
    /// Unix sockets, for machines without a loopback interface
    Unix,
}

/// `prorata load reflex` (2001, 5.3).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata load reflex --active-sets 64 --rounds 10000
  prorata load reflex --yield-probability 0.9 --compute 5000 --json")]
pub struct ReflexArgs {
    /// Number of active sets; each has one runnable thread at a time
    #[arg(long, default_value = "16", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub active_sets: u32,
    /// Threads in each active set
    #[arg(long, default_value = "4", value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub threads: u32,
    /// Rounds performed by each active set, up to 1000000000
    #[arg(long, default_value = "20000", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub rounds: u32,
    /// Probability of a yield after a round, 0 to 1; otherwise the thread passes the token on
    #[arg(long, default_value = "0.5", value_name = "P", value_parser = probability)]
    pub yield_probability: f64,
    /// Nanoseconds of computation in each round, up to 1000000000
    #[arg(long, default_value = "0", value_name = "NS", value_parser = clap::value_parser!(u32).range(0..=1_000_000_000))]
    pub compute: u32,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata load wake`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata load wake --period 2ms --work 200us --wakes 10000
  prorata run -t 100 -- prorata load wake --json | jq .latencies")]
pub struct WakeArgs {
    /// Time between two wakes, 1us to 10s
    #[arg(long, default_value = "10ms", value_name = "TIME", value_parser = duration)]
    pub period: Duration,
    /// Computing after each wake, up to 1s
    #[arg(long, default_value = "0us", value_name = "TIME", value_parser = duration)]
    pub work: Duration,
    /// Number of wakes, up to 10000000
    #[arg(long, default_value = "1000", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub wakes: u32,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata load keys` (1999, 3.3).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata load keys -- cat
  prorata load keys --first i -- vi -u NONE -n
  prorata load keys --rate 120 --keys 800 -- prorata run -t 100 -- nano --ignorercfiles")]
pub struct KeysArgs {
    /// Keys a second, up to 1000
    #[arg(long, default_value = "30", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rate: u32,
    /// Number of keys, up to 1000000
    #[arg(long, default_value = "300", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub keys: u32,
    /// Keys that prepare the program to insert text
    #[arg(
        long,
        default_value = "",
        value_name = "KEYS",
        hide_default_value = true
    )]
    pub first: String,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    #[command(flatten)]
    pub format: Format,
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(probability) if (0.0..=1.0).contains(&probability) => Ok(probability),
        _ => Err("a probability is a number from 0 to 1, such as 0.5".to_owned()),
    }
}
