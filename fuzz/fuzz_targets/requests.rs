//! Fuzzes the daemon's requests from the decoder on: no panic, no refusal that
//! changes the state, no disagreement between ledger and journal.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| prorata_control::fuzzing::converse(bytes));
