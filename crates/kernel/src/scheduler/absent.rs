//! Replaces the scheduler in builds without the feature `bpf`.

#![allow(missing_docs, reason = "the documentation stands where the feature is")]

use std::convert::Infallible;
use std::os::fd::BorrowedFd;

use prorata_core::cpu_limit::CpuLimit;
use prorata_core::slots::geometry::{Geometry, Tick};

use super::{Account, InSlot, Options, Policy, RowTally, Statistics, Ticket, Trace};
use crate::KernelError;

/// There is no scheduler.
pub struct Scheduler(Infallible);

impl Scheduler {
    pub fn load(_: &Options) -> Result<Self, KernelError> {
        Err(KernelError::NotBuiltIn)
    }

    pub fn load_traced(_: &Options) -> Result<Self, KernelError> {
        Err(KernelError::NotBuiltIn)
    }

    pub fn take_decisions(&self) -> Result<Trace, KernelError> {
        match self.0 {}
    }

    pub fn set_policy(&self, _: Policy) -> Result<(), KernelError> {
        match self.0 {}
    }

    pub fn set_quantum_ns(&self, _: u64) -> Result<(), KernelError> {
        match self.0 {}
    }

    pub fn set_client_quantum_ns(&self, _: u32, _: Option<u64>) -> Result<(), KernelError> {
        match self.0 {}
    }

    pub fn set_limit(&self, _: u32, _: Option<CpuLimit>) -> Result<(), KernelError> {
        match self.0 {}
    }

    pub fn holds_limits(&self) -> bool {
        match self.0 {}
    }

    pub fn set_tickets(&self, _: u32, _: &[Ticket]) -> Result<(), KernelError> {
        match self.0 {}
    }

    pub fn remove(&self, _: u32) -> Result<(), KernelError> {
        match self.0 {}
    }

    pub fn forget_all(&self) -> Result<(), KernelError> {
        match self.0 {}
    }

    pub fn give(&self, _: u32, _: u32) -> Result<(), KernelError> {
        match self.0 {}
    }

    pub fn take_back(&self, _: u32) -> Result<(), KernelError> {
        match self.0 {}
    }

    pub fn boost_of(&self, _: u32) -> Option<u32> {
        match self.0 {}
    }

    pub fn account(&self, _: u32) -> Result<Account, KernelError> {
        match self.0 {}
    }

    pub fn node_of(&self, _: u32) -> Option<u32> {
        match self.0 {}
    }

    pub fn exits(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }

    pub fn take_exited(&self) -> Vec<u32> {
        match self.0 {}
    }

    pub fn failure(&self) -> Option<KernelError> {
        match self.0 {}
    }

    pub fn open_timetable(&self, _: &Geometry, _: &[u32]) -> Result<(), KernelError> {
        match self.0 {}
    }

    pub fn close_timetable(&self) -> Result<(), KernelError> {
        match self.0 {}
    }

    pub fn name_schedulee(&self, _: u32, _: InSlot) -> Result<bool, KernelError> {
        match self.0 {}
    }

    pub fn publish_slots(&self, _: &[u64], _: Tick) -> Result<Tick, KernelError> {
        match self.0 {}
    }

    pub fn look_after_slots(&self) -> Result<(), KernelError> {
        match self.0 {}
    }

    pub fn slot_tallies(&self) -> Vec<RowTally> {
        match self.0 {}
    }

    pub fn statistics(&self) -> Result<Statistics, KernelError> {
        match self.0 {}
    }
}

pub fn possible_cpus() -> u32 {
    1
}

/// There is no trace.
pub struct Tap(Infallible);

impl Tap {
    pub fn open() -> Result<Self, KernelError> {
        Err(KernelError::NotBuiltIn)
    }

    pub fn take_decisions(&self) -> Result<Trace, KernelError> {
        match self.0 {}
    }
}
