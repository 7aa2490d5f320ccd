//! Arguments of the commands that show the daemon's state.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::Format;
use super::values::duration;

/// `prorata ps`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata ps
  prorata ps --tree
  prorata ps --json | jq '.[] | {name, share}'")]
pub struct PsArgs {
    /// Show the processes of your clients as trees
    #[arg(long)]
    pub tree: bool,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata top`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Keys: up and down (k, j) select a client, + and - inflate and deflate its tickets, s sorts by the \
next column, r reverses the order, q quits.

Example:
  prorata top --delay 500ms")]
pub struct TopArgs {
    /// Time between two updates
    #[arg(short, long, default_value = "1s", value_parser = duration)]
    pub delay: Duration,
}

/// `prorata graph`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata graph
  prorata graph --svg currencies.svg
  prorata graph --svg - | display")]
pub struct GraphArgs {
    /// Write an SVG drawing to FILE (- for standard output)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["text", "json"])]
    pub svg: Option<PathBuf>,
    /// Print text (the default)
    #[arg(long, conflicts_with = "json")]
    pub text: bool,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata lscur` (1994, 4.7).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Example:
  prorata lscur")]
pub struct LscurArgs {
    #[command(flatten)]
    pub format: Format,
}

/// `prorata lstkt` (1994, 4.7).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata lstkt
  prorata lstkt batch --json")]
pub struct LstktArgs {
    /// Show only tickets of this currency
    pub currency: Option<String>,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata show-tickets` (1999, 4.2).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata show-tickets
  prorata show-tickets alice")]
pub struct ShowTicketsArgs {
    /// Show only this user's clients; login name or number
    pub user: Option<String>,
    #[command(flatten)]
    pub format: Format,
}

/// `prorata show-funding` (1999, 4.2).
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata show-funding
  prorata show-funding alice --json")]
pub struct ShowFundingArgs {
    /// Show only this user's currency; login name or number
    pub user: Option<String>,
    #[command(flatten)]
    pub format: Format,
}
