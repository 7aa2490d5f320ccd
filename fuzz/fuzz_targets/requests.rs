//! The daemon's request decoder, and all that comes after it: no panic, no
//! refusal that changes anything, no disagreement between ledger and journal.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| prorata_control::fuzzing::converse(bytes));
