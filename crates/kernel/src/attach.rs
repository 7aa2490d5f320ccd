//! What loading any scheduler takes.

use std::fs;
use std::mem::MaybeUninit;

use libbpf_rs::OpenObject;

use crate::{KernelError, warnings};

const STATE: &str = "/sys/kernel/sched_ext/state";
const OCCUPANT: &str = "/sys/kernel/sched_ext/root/ops";

/// Whether a scheduler can be loaded: there can be one only. From now on what
/// libbpf complains of is collected.
pub fn check_vacancy() -> Result<(), KernelError> {
    let state = fs::read_to_string(STATE).map_err(|_| KernelError::NoSchedExt)?;
    if state.trim_end() != "disabled" {
        let occupant = fs::read_to_string(OCCUPANT).unwrap_or_default();
        return Err(KernelError::Occupied(occupant.trim_end().to_owned()));
    }
    warnings::begin();
    Ok(())
}

/// Whether a scheduler is loaded, whoever has loaded it.
pub fn is_loaded() -> bool {
    fs::read_to_string(STATE).is_ok_and(|state| state.trim_end() != "disabled")
}

/// Makes of libbpf's error, and of what it complained of, ours.
pub fn refusal(name: &'static str) -> impl Fn(libbpf_rs::Error) -> KernelError {
    move |error| KernelError::Refused {
        name,
        why: format!("{error:#}\n{}", warnings::take()),
    }
}

/// A few bytes that must outlive a skeleton: left behind once a load.
pub fn object() -> &'static mut MaybeUninit<OpenObject> {
    Box::leak(Box::new(MaybeUninit::uninit()))
}
