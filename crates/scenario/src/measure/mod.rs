//! Measures: service against the ideal, response times, latencies, waiting at mutexes,
//! switches, migrations and queue lengths.

mod counts;
mod csv;
mod error;
mod report;
mod run;
mod slots;
mod times;
mod told;
mod value;
mod verdict;

pub use counts::Counts;
pub use error::{AbsoluteError, RelativeError};
pub use report::{ClientReport, PairReport, PointReport, PoolReport, Report, WaitReport};
pub use run::{ClientMeasures, Ran, RunMeasures};
pub use slots::{ClientSlots, SlotMeasures};
pub use times::{Bucket, Summary, Times};
pub use told::Told;
pub use value::{ValueLost, check_value};
pub use verdict::Verdict;
