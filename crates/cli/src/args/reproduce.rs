//! The command that repeats the papers' experiments.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::Format;

/// `prorata reproduce`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata reproduce                           all figures, by simulation
  prorata reproduce 1994/figure-9 1995        one figure, and all of a paper
  prorata reproduce --html figures.html       with the drawings, on one page
  prorata reproduce 2001/pools --full         with machines of up to 1,024 CPUs
  prorata reproduce 1995/figure-14 --engine user
  prorata vm run -- prorata reproduce 1995/figure-14 --engine kernel")]
pub struct Reproduce {
    /// Figures, by name or by the paper's year; scenario files that end in .toml; without any, all
    #[arg(value_name = "ID", value_hint = ValueHint::FilePath)]
    pub ids: Vec<String>,
    /// What runs the programs; several with commas between them
    #[arg(long, value_enum, default_value = "sim", value_delimiter = ',')]
    pub engine: Vec<Engine>,
    /// On processes as long as in the paper; by simulation also machines that take minutes
    #[arg(long)]
    pub full: bool,
    /// Write everything to this page, with the drawings; it opens without a network
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Write the drawings into this directory
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub svg: Option<PathBuf>,
    /// How it is printed.
    #[command(flatten)]
    pub format: Format,
}

/// What runs the programs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Debug)]
pub enum Engine {
    /// The simulator
    Sim,
    /// Real processes, for the figures that can do so
    User,
    /// The same under the scheduler in the kernel, as root on a kernel with sched_ext
    Kernel,
}
