//! The user engine: makes real processes run in proportion to their tickets on
//! an ordinary Linux machine, without root and without a special kernel.
//!
//! A [`UserEngine`] asks a dispatcher every quantum which clients are to run. It
//! enforces the answer on all threads and children of the clients' processes:
//! it puts losers in `SCHED_IDLE` where that can be undone, holds them down by control groups
//! where this user may make some, and stops and continues them elsewhere ([`Mechanism`]). When
//! the engine dies or stalls, a guardian process undoes all of that.
//!
//! A program that starts an engine calls [`guardian_entry`] first thing in
//! `main`.
//!
//! ```text
//!   callers --- commands, bell ---> decision thread --- writes ---> table
//!      ^                              |        ^                      ^
//!      +------ directory <------------+        | /proc, CPU clocks    | read
//!                                              v                      |
//!                                   the clients' processes <--- guardian, sweep
//! ```

mod bell;
mod births;
mod chronicle;
mod client;
mod clients;
mod competition;
mod config;
mod control_groups;
mod decision;
mod descriptors;
mod directory;
mod enforcement;
mod engine;
mod error;
mod events;
mod foster;
mod group;
mod guardian;
mod job_control;
mod limits;
mod marker;
mod membership;
mod nice;
mod obey;
mod observe;
mod outside;
mod outsiders;
pub mod ownership;
mod placement;
mod priority;
mod process;
mod process_id;
pub mod procfs;
mod pulse;
mod reach;
mod reaped;
mod release;
mod review;
mod scheduler;
mod service_clock;
mod signals;
mod slots;
mod slumber;
mod strays;
mod supervision;
mod sweep;
mod table;
mod threads;
mod time;
mod tree;
mod waited;
mod wake_times;

pub use bell::Bell;
pub use chronicle::{ClientEvent, Happening, MOST_EVENTS, TurnEnd};
pub use config::{EngineConfig, EngineStatus, Mechanism, MissingRight};
pub use descriptors::raise_file_limit;
pub use directory::ClientActivity;
pub use engine::{UserEngine, put_right_orphans, put_right_what_is_left};
pub use error::EngineError;
pub use guardian::guardian_entry;
pub use marker::{CLIENT_MARKER, SOCKET_MARKER, marked_client};
pub use outside::OutsideLoad;
pub use priority::{outrank_slots, wake_as_others};
pub use process_id::ProcessId;
pub use scheduler::{Policy, cpu_time_ns};
pub use slots::{RowReport, SlotMechanism, SlotReport};
pub use strays::Stray;
