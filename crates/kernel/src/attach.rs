//! Steps that loading any scheduler needs.

use std::fs;
use std::mem::MaybeUninit;

use libbpf_rs::OpenObject;

use crate::{KernelError, warnings};

const STATE: &str = "/sys/kernel/sched_ext/state";
const OCCUPANT: &str = "/sys/kernel/sched_ext/root/ops";

/// Checks that no other scheduler is loaded. Collects libbpf's warnings from now on.
pub fn check_vacancy() -> Result<(), KernelError> {
    let state = fs::read_to_string(STATE).map_err(|_| KernelError::NoSchedExt)?;
    if state.trim_end() != "disabled" {
        let occupant = fs::read_to_string(OCCUPANT).unwrap_or_default();
        return Err(KernelError::Occupied(occupant.trim_end().to_owned()));
    }
    warnings::begin();
    Ok(())
}

/// Whether any process has loaded a scheduler.
pub fn is_loaded() -> bool {
    fs::read_to_string(STATE).is_ok_and(|state| state.trim_end() != "disabled")
}

/// Converts libbpf's error and its warnings.
pub fn refusal(name: &'static str) -> impl Fn(libbpf_rs::Error) -> KernelError {
    move |error| KernelError::Refused {
        name,
        why: format!("{error:#}\n{}", warnings::take()),
    }
}

/// A few bytes that must outlive a skeleton. Each load leaks them.
pub fn object() -> &'static mut MaybeUninit<OpenObject> {
    Box::leak(Box::new(MaybeUninit::uninit()))
}
