//! What the kernel does beside is not the same at any two times, and a turn more or
//! less is much in a short check: only what fails twice counts, and is told both times.

use libtest_mimic::Failed;

/// Makes a check, and once more if it fails.
pub fn twice(check: impl Fn() -> Result<(), Failed>) -> Result<(), Failed> {
    check().or_else(|fault| {
        let fault = fault.message().unwrap_or("it failed");
        println!("    once more, as {fault}");
        check()
    })
}
