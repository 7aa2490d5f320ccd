//! Watching a simulation.

use prorata_scenario::event::Event;

use crate::machine::Machine;

/// An observer of a run. Dispatch is static: observing nothing costs nothing.
pub trait Observer {
    /// Whether events are wanted at all.
    const WATCHES: bool = true;

    /// Something happened at `now_ns`; `machine` is as it was just after.
    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine);
}

/// Observes nothing.
impl Observer for () {
    const WATCHES: bool = false;

    fn observe(&mut self, _: u64, _: Event<'_>, _: &Machine) {}
}

/// Two observers of the same run.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const WATCHES: bool = A::WATCHES || B::WATCHES;

    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        self.0.observe(now_ns, event, machine);
        self.1.observe(now_ns, event, machine);
    }
}

impl<O: Observer> Observer for &mut O {
    const WATCHES: bool = O::WATCHES;

    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        (**self).observe(now_ns, event, machine);
    }
}

/// Observes if present.
impl<O: Observer> Observer for Option<O> {
    const WATCHES: bool = O::WATCHES;

    fn observe(&mut self, now_ns: u64, event: Event<'_>, machine: &Machine) {
        if let Some(observer) = self {
            observer.observe(now_ns, event, machine);
        }
    }
}
