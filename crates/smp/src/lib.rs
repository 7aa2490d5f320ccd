//! The machine of *Enhancing Linux Scheduler Scalability* (Kravetz, Franke, Nagar
//! and Ravindran, 2001), simulated: many CPUs whose scheduler takes time.
//!
//! The other machine, in `prorata-sim`, decides at no cost, once for all CPUs
//! together. Here each CPU calls `schedule()` and `reschedule_idle()` itself. It
//! waits for spin locks, searches run queues and fetches cache lines, and all
//! that takes time from programs.
//!
//! ```text
//!   programs --- system call, wake ---> a CPU in the kernel
//!                                         |  decision: lock, examine, unlock
//!                                         v
//!      spin locks <----- waits ------ run queues ------ interrupt ---> another CPU
//! ```
//!
//! Programs, pipes, mutexes and durations are those of every scenario
//! ([`prorata_scenario::world`]). Tickets decide nothing, as the paper's
//! schedulers have none.

mod cache_lines;
mod costs;
mod kernel;
mod layout_name;
mod lengths;
mod locks;
mod machine_model;
mod open_decision;
mod processor;
mod programs;
mod queues;
mod run_queue;
mod simulation;
mod sockets;
mod topology;

pub use costs::SchedulerCosts;
pub use layout_name::LayoutName;
pub use lengths::LengthHistogram;
pub use locks::LockStatistics;
pub use machine_model::{MachineModel, SmpError, WritersWake};
pub use run_queue::LayoutError;
pub use simulation::{EventCounts, SmpSimulation};
pub use topology::{SharedBy, Topology, TopologyError};
