//! A machine in a test: a deterministic discrete-event simulation of programs
//! that compete for CPUs by tickets.
//!
//! ```
//! use prorata_sim::{Measures, Report, Scenario, Simulation};
//!
//! let text = r#"
//! title = "Two programs share a CPU 3:1"
//! duration = "10s"
//! [[client]]
//! name = "A"
//! tickets = 300
//! [[client]]
//! name = "B"
//! tickets = 100
//! "#;
//! let scenario = Scenario::parse("example.toml".as_ref(), text.to_owned())?;
//! let seed = scenario.seed.into();
//! let mut simulation = Simulation::watched(&scenario, seed, Measures::new())?;
//! simulation.run()?;
//! let (machine, measures) = simulation.into_parts();
//! let report = Report::new(&scenario, seed, &machine, &measures);
//! assert_eq!(report.clients[0].share, 0.75);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod fault;
pub mod machine;
pub mod measure;
pub mod memory;
pub mod observer;
pub mod perfetto;
pub mod plan;
pub mod scenario;
pub mod smp;
pub mod sweep;
pub mod trace;
pub mod world;

pub mod draw;
mod policy;
mod queue;
pub mod stream;

pub use machine::{Counts, Machine, RunError, Simulation};
pub use measure::{Measures, Report};
pub use observer::{Event, Observer, Why};
pub use plan::Plan;
pub use policy::policy;
pub use scenario::Scenario;
