//! Checks that are known to fail at times, and how often they did. Such a check runs several
//! times and prints each failure; more failures than are recorded here fail it.

use libtest_mimic::Failed;

use crate::whole;

/// The client received 2.6 and 2.7 % more than its half, beside a tolerance of 2 %, in two of
/// nine runs.
pub fn clients_share_with_services() -> Result<(), Failed> {
    at_most(2, 3, whole::clients)
}

fn at_most(failures: u32, runs: u32, check: fn() -> Result<(), Failed>) -> Result<(), Failed> {
    let mut failed = 0;
    for _ in 0..runs {
        if let Err(failure) = check() {
            failed += 1;
            let message = failure.message().unwrap_or("no message");
            println!("\nquarantined, failure {failed} in {runs} runs: {message}");
        }
    }
    match failed > failures {
        true => Err(format!("{failed} of {runs} runs failed").into()),
        false => Ok(()),
    }
}
