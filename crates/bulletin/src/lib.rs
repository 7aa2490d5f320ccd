//! The public timetable: a file that a daemon writes and any program maps (2005, 2.1 and 2.3).
//!
//! ```text
//!   | header, one page | CPUs of the rows | words, twice | claims | schedulees |
//! ```
//!
//! A look at what a CPU runs takes no call and no lock: a reader loads the *switch*, which names the
//! buffer in force at each tick, and one word of it. A daemon writes words of a buffer only while no
//! reader uses it, and the switch last. What words do not say, the owners and levels of all claims as
//! decided, is copied under a sequence number. That number is a futex, too: readers wait for changes,
//! of all rows or of some.
//!
//! Numbers are in the machine's byte order. The file never grows or shrinks. A daemon that ends marks
//! it closed, and the next one renames a new file over it.

mod layout;
mod memory;
mod owners;
mod reader;
mod rows;
mod writer;

pub use layout::{FILE_NAME, VERSION};
pub use owners::{Owners, Part, Playbill};
pub use reader::{BulletinError, PublicClaim, Reader, Snapshot, now_ns};
pub use rows::Rows;
pub use writer::Writer;
