//! A machine in a test: a deterministic discrete-event simulation of programs
//! that compete for CPUs by tickets.
//!
//! ```
//! use prorata_scenario::Scenario;
//! use prorata_sim::{Measures, Simulation, report};
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
//! let report = report(&scenario, seed, &machine, &measures);
//! assert_eq!(report.clients[0].share, 0.75);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod fault;
pub mod machine;
mod measures;
pub mod memory;
mod observer;
pub mod perfetto;
mod report;
pub mod sweep;
pub mod trace;

pub use machine::{Machine, Simulation};
pub use measures::{Measures, PoolMeasures};
pub use observer::Observer;
pub use report::report;
