//! What the engine asks of the scheduler inside the kernel. It is a trait, so
//! that tests run everything above it where there is no such kernel.

use std::ops::Deref;
use std::os::fd::BorrowedFd;

use prorata_core::cpu_limit::CpuLimit;
use prorata_core::slots::geometry::{Geometry, Tick};
use prorata_kernel::KernelError;
use prorata_kernel::scheduler::{Account, InSlot, Policy, RowTally, Scheduler, Ticket};

/// As the methods of [`Scheduler`]; each is explained there.
pub(crate) trait InKernel: Send {
    fn set_policy(&self, policy: Policy) -> Result<(), KernelError>;
    fn set_quantum_ns(&self, quantum_ns: u64) -> Result<(), KernelError>;
    fn set_client_quantum_ns(&self, node: u32, quantum_ns: Option<u64>) -> Result<(), KernelError>;
    fn set_limit(&self, node: u32, max: Option<CpuLimit>) -> Result<(), KernelError>;
    fn holds_limits(&self) -> bool;
    fn set_tickets(&self, node: u32, tickets: &[Ticket]) -> Result<(), KernelError>;
    fn remove(&self, node: u32) -> Result<(), KernelError>;
    fn give(&self, node: u32, tid: u32) -> Result<(), KernelError>;
    fn take_back(&self, tid: u32) -> Result<(), KernelError>;
    fn account(&self, node: u32) -> Result<Account, KernelError>;
    fn boost_of(&self, pid: u32) -> Option<u32>;
    fn node_of(&self, tid: u32) -> Option<u32>;
    fn exits(&self) -> BorrowedFd<'_>;
    fn take_exited(&self) -> Vec<u32>;
    fn failure(&self) -> Option<KernelError>;
    /// Turns of all tasks together.
    fn dispatches(&self) -> u64;
    fn open_timetable(&self, geometry: &Geometry, cpus: &[u32]) -> Result<(), KernelError>;
    fn close_timetable(&self) -> Result<(), KernelError>;
    fn name_schedulee(&self, number: u32, schedulee: InSlot) -> Result<bool, KernelError>;
    fn publish_slots(&self, words: &[u64], from: Tick) -> Result<Tick, KernelError>;
    fn look_after_slots(&self) -> Result<(), KernelError>;
    fn slot_tallies(&self) -> Vec<RowTally>;
}

/// An own scheduler (in a box), or a shared one (counted).
impl<S: Deref<Target = Scheduler> + Send> InKernel for S {
    fn set_policy(&self, policy: Policy) -> Result<(), KernelError> {
        (**self).set_policy(policy)
    }
    fn set_quantum_ns(&self, quantum_ns: u64) -> Result<(), KernelError> {
        (**self).set_quantum_ns(quantum_ns)
    }
    fn set_client_quantum_ns(&self, node: u32, quantum_ns: Option<u64>) -> Result<(), KernelError> {
        (**self).set_client_quantum_ns(node, quantum_ns)
    }
    fn set_limit(&self, node: u32, max: Option<CpuLimit>) -> Result<(), KernelError> {
        (**self).set_limit(node, max)
    }
    fn holds_limits(&self) -> bool {
        (**self).holds_limits()
    }
    fn set_tickets(&self, node: u32, tickets: &[Ticket]) -> Result<(), KernelError> {
        (**self).set_tickets(node, tickets)
    }
    fn remove(&self, node: u32) -> Result<(), KernelError> {
        (**self).remove(node)
    }
    fn give(&self, node: u32, tid: u32) -> Result<(), KernelError> {
        (**self).give(node, tid)
    }
    fn take_back(&self, tid: u32) -> Result<(), KernelError> {
        (**self).take_back(tid)
    }
    fn account(&self, node: u32) -> Result<Account, KernelError> {
        (**self).account(node)
    }
    fn boost_of(&self, pid: u32) -> Option<u32> {
        (**self).boost_of(pid)
    }
    fn node_of(&self, tid: u32) -> Option<u32> {
        (**self).node_of(tid)
    }
    fn exits(&self) -> BorrowedFd<'_> {
        (**self).exits()
    }
    fn take_exited(&self) -> Vec<u32> {
        (**self).take_exited()
    }
    fn failure(&self) -> Option<KernelError> {
        (**self).failure()
    }
    fn dispatches(&self) -> u64 {
        (**self).statistics().map_or(0, |totals| totals.dispatches)
    }
    fn open_timetable(&self, geometry: &Geometry, cpus: &[u32]) -> Result<(), KernelError> {
        (**self).open_timetable(geometry, cpus)
    }
    fn close_timetable(&self) -> Result<(), KernelError> {
        (**self).close_timetable()
    }
    fn name_schedulee(&self, number: u32, schedulee: InSlot) -> Result<bool, KernelError> {
        (**self).name_schedulee(number, schedulee)
    }
    fn publish_slots(&self, words: &[u64], from: Tick) -> Result<Tick, KernelError> {
        (**self).publish_slots(words, from)
    }
    fn look_after_slots(&self) -> Result<(), KernelError> {
        (**self).look_after_slots()
    }
    fn slot_tallies(&self) -> Vec<RowTally> {
        (**self).slot_tallies()
    }
}
