//! Calibrates the machine of 2001 under Chat, and holds the calibrated machines against
//! the paper. `scripts/calibrate-2001` runs it.
//!
//! ```text
//!   grid       two CPUs, (20,200)         ---->  grid.csv       every candidate
//!   optima     grid.csv, then MQ alone    ---->  optima.csv     with the slowdown of each
//!   mechanisms the first of optima.csv    ---->  mechanisms.csv each one alone, and away
//!   slices     the first of optima.csv    ---->  slices.csv     with time slices and without
//!   course     the first of optima.csv    ---->  course.csv     runs by tenths
//!   order      optima.csv, PLS and DSS    ---->  order.csv      which is ahead under (10,100)
//!   runs       optima.csv, all schedulers ---->  runs.csv
//!   headlines  runs.csv                   ---->  headlines.csv  what holds
//! ```

mod candidate;
mod headlines;
mod mechanisms;
mod stages;

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What each item comes to, in their order; on as many CPUs as there are.
fn in_parallel<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    one: impl Fn(T) -> Outcome<R> + Sync,
) -> Outcome<Vec<R>> {
    let items: Vec<T> = items.into_iter().collect();
    let cpus = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = cpus.min(items.len());
    let items = Mutex::new(items.into_iter().enumerate());
    let results = Mutex::new(Vec::new());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some((place, item)) = next() {
            let result = one(item);
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            results.push((place, result));
        }
    };
    std::thread::scope(|scope| {
        (0..threads).for_each(|_| {
            scope.spawn(work);
        });
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}

const STAGES: &str = "grid, optima, mechanisms, slices, course, order, runs or headlines";

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [stage, directory] = &arguments[..] else {
        return Err(format!("write {STAGES}, and a directory").into());
    };
    let directory = PathBuf::from(directory);
    match stage.as_str() {
        "grid" => stages::grid(&directory),
        "optima" => stages::optima(&directory),
        "mechanisms" => mechanisms::write(&directory),
        "slices" => mechanisms::slices(&directory),
        "course" => mechanisms::course(&directory),
        "order" => stages::order(&directory),
        "runs" => stages::runs(&directory),
        "headlines" => headlines::write(&directory),
        other => Err(format!("{other}: write {STAGES}").into()),
    }
}
