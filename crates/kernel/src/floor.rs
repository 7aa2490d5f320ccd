//! The minimal scheduler, with which benches compare others (`bpf/floor.bpf.c`).

#[cfg(not(feature = "bpf"))]
use crate::KernelError;

/// What the scheduler did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FloorReport {
    /// Tasks that it has taken over since it was loaded.
    pub tasks_enabled: u64,
}

#[cfg(feature = "bpf")]
pub use loaded::Floor;

/// Takes the scheduler's place in builds without the feature `bpf`.
#[cfg(not(feature = "bpf"))]
pub struct Floor(std::convert::Infallible);

#[cfg(not(feature = "bpf"))]
impl Floor {
    /// Always fails: this build has no schedulers.
    pub fn load() -> Result<Self, KernelError> {
        Err(KernelError::NotBuiltIn)
    }

    /// Cannot be called.
    pub fn report(&self) -> Result<FloorReport, KernelError> {
        match self.0 {}
    }
}

#[cfg(feature = "bpf")]
mod loaded {
    use libbpf_rs::Link;
    use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};

    use super::FloorReport;
    use crate::exit::ejection;
    use crate::floor_skeleton::{FloorSkel, FloorSkelBuilder};
    use crate::{KernelError, attach};

    const NAME: &str = "floor";

    /// The minimal scheduler, loaded for all ordinary tasks of the machine. Dropping this
    /// unloads it.
    pub struct Floor {
        /// Dropped first: that unloads the scheduler.
        _link: Link,
        skeleton: FloorSkel<'static>,
    }

    impl Floor {
        /// Loads the scheduler. This needs root, and some 0.1 s.
        pub fn load() -> Result<Self, KernelError> {
            attach::check_vacancy()?;
            let refused = attach::refusal(NAME);
            let open = FloorSkelBuilder::default()
                .open(attach::object())
                .map_err(&refused)?;
            let mut skeleton = open.load().map_err(&refused)?;
            let link = skeleton.maps.floor_ops.attach_struct_ops();
            let floor = Self {
                _link: link.map_err(refused)?,
                skeleton,
            };
            floor.report()?;
            Ok(floor)
        }

        /// What the scheduler did so far. Fails if the kernel has unloaded it.
        pub fn report(&self) -> Result<FloorReport, KernelError> {
            let data = self.skeleton.maps.bss_data.as_deref();
            let data = data.expect("the scheduler has variables");
            let record = &data.exit_record;
            match ejection(NAME, record.kind, &record.reason, &record.message) {
                Some(ejected) => Err(ejected),
                None => Ok(FloorReport {
                    tasks_enabled: data.tasks_enabled,
                }),
            }
        }
    }
}
