//! The minimal scheduler that others are compared with (`bpf/floor.bpf.c`).

use crate::KernelError;

/// How the scheduler fared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FloorReport {
    /// Tasks that came under it since it was loaded.
    pub tasks_enabled: u64,
}

/// The scheduler, loaded for all ordinary tasks of the machine. Dropping this
/// unloads it.
pub struct Floor {
    #[cfg(feature = "bpf")]
    loaded: loaded::Loaded,
    #[cfg(not(feature = "bpf"))]
    never: std::convert::Infallible,
}

#[cfg(not(feature = "bpf"))]
impl Floor {
    /// Refuses: there is nothing to load.
    pub fn load() -> Result<Self, KernelError> {
        Err(KernelError::NotBuiltIn)
    }

    /// Cannot be called.
    pub fn report(&self) -> Result<FloorReport, KernelError> {
        match self.never {}
    }
}

#[cfg(feature = "bpf")]
impl Floor {
    /// Loads it. Needs root, and some 0.1 s.
    pub fn load() -> Result<Self, KernelError> {
        let loaded = loaded::Loaded::new()?;
        Ok(Self { loaded })
    }

    /// How it fares; an error if the kernel has unloaded it.
    pub fn report(&self) -> Result<FloorReport, KernelError> {
        self.loaded.report()
    }
}

#[cfg(feature = "bpf")]
mod loaded {
    use std::fs;
    use std::mem::MaybeUninit;

    use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
    use libbpf_rs::{Link, OpenObject};

    use super::FloorReport;
    use crate::KernelError;
    use crate::exit::ejection;
    use crate::floor_skeleton::{FloorSkel, FloorSkelBuilder};
    use crate::warnings;

    const NAME: &str = "floor";
    const STATE: &str = "/sys/kernel/sched_ext/state";
    const OCCUPANT: &str = "/sys/kernel/sched_ext/root/ops";

    pub struct Loaded {
        /// Dropped first: that unloads the scheduler.
        _link: Link,
        skeleton: FloorSkel<'static>,
    }

    impl Loaded {
        pub fn new() -> Result<Self, KernelError> {
            let state = fs::read_to_string(STATE).map_err(|_| KernelError::NoSchedExt)?;
            if state.trim_end() != "disabled" {
                let occupant = fs::read_to_string(OCCUPANT).unwrap_or_default();
                return Err(KernelError::Occupied(occupant.trim_end().to_owned()));
            }
            warnings::begin();
            let refused = |error: libbpf_rs::Error| KernelError::Refused {
                name: NAME,
                why: format!("{error:#}\n{}", warnings::take()),
            };
            // A few bytes that must outlive the skeleton: once a process.
            let object: &'static mut MaybeUninit<OpenObject> =
                Box::leak(Box::new(MaybeUninit::uninit()));
            let open = FloorSkelBuilder::default().open(object).map_err(refused)?;
            let mut skeleton = open.load().map_err(refused)?;
            let link = skeleton.maps.floor_ops.attach_struct_ops();
            let loaded = Self {
                _link: link.map_err(refused)?,
                skeleton,
            };
            loaded.report()?;
            Ok(loaded)
        }

        pub fn report(&self) -> Result<FloorReport, KernelError> {
            let data = self.skeleton.maps.bss_data.as_deref();
            let data = data.expect("the scheduler has variables");
            match ejection(NAME, &data.exit_record) {
                Some(ejected) => Err(ejected),
                None => Ok(FloorReport {
                    tasks_enabled: data.tasks_enabled,
                }),
            }
        }
    }
}
