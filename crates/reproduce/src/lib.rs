//! The papers' experiments, repeated: each figure is a scenario file that says
//! what to run and what the paper prints, and comes out as a table of the
//! paper's numbers beside ours, with a verdict, and a drawing.
//!
//! ```text
//!   scenarios/1994/figure-4.toml
//!     machine, clients, programs ----> simulator, or real processes
//!     [reproduces] experiment    ----> what is looked at: `experiment`
//!     [reproduces] printed       ----> what it must come to: `expectation`
//! ```
//!
//! Every experiment runs the ledger, the policies and the dispatcher that real
//! programs are shared out by; nothing here stands in for them.

mod catalogue;
mod course;
mod error;
mod expectation;
mod expectation_table;
pub mod experiment;
mod figure;
mod finding;
mod page;
mod paper;
mod processes;
mod reproduction;
mod statistics;
mod table;
mod turns;
pub mod workload;

pub use catalogue::{find, ids};
pub use error::ReproduceError;
pub use expectation::{Kind, Metric, Rule, Source, Verdict};
pub use figure::{Figure, Origin, Parameter, schema};
pub use finding::{Drawing, Measured};
pub use page::page;
pub use paper::{OfSource, Paper, Tally, papers};
pub use processes::worker::worker_entry;
pub use reproduction::{Beyond, Engine, Reproduction, Settings, Watch, reproduce};
pub use statistics::Sample;
pub use table::{beyond_table, table};
