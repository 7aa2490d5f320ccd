//! Arguments of `prorata reproduce`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::Format;
use super::values::AnyEngine;

/// `prorata reproduce`.
#[derive(Clone, Args, Debug)]
#[command(after_help = "\
Examples:
  prorata reproduce                           all figures, by simulation
  prorata reproduce 1994/figure-9 1995        one figure, and all of a paper
  prorata reproduce --html figures.html       with the drawings, on one page
  prorata reproduce 1994 --seed 7             with other lots
  prorata reproduce 2001/pools --full         with machines of up to 1,024 CPUs
  prorata reproduce 1995/figure-14 --engine user
  prorata vm run -- prorata reproduce 1995/figure-14 --engine kernel")]
pub struct ReproduceArgs {
    /// Figures by name or by the paper's year, or scenario files that end in .toml [default: all]
    #[arg(value_name = "ID", value_hint = ValueHint::FilePath)]
    pub ids: Vec<String>,
    /// Engines that run the programs, separated by commas
    #[arg(long, value_enum, default_value = "sim", value_delimiter = ',')]
    pub engine: Vec<AnyEngine>,
    /// Run processes as long as the paper does, and simulate machines that take minutes
    #[arg(long)]
    pub full: bool,
    /// Draw other lots than the scenario file's seed; then a difference needs its reason, not its digits
    #[arg(long, value_name = "N")]
    pub seed: Option<u32>,
    /// Write all tables and drawings to one HTML page, which needs no network
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Write the drawings to this directory
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub svg: Option<PathBuf>,
    #[command(flatten)]
    pub format: Format,
}
