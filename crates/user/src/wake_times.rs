//! When the decision thread wakes without an event.

use crate::job_control;
use crate::signals;
use crate::time::SECOND_NS;

/// How often the engine looks for processes that escaped from their trees.
pub(crate) const SURVEY_INTERVAL_NS: u64 = SECOND_NS;

/// The times of the next decision, poll, survey and so on, on the monotonic clock.
#[derive(Debug)]
pub(crate) struct WakeTimes {
    decision_ns: u64,
    /// When the decision became due that is still to be taken. Earlier than `decision_ns` if
    /// it was put off because the dispatcher's lock was not to be had.
    due_ns: u64,
    /// When winners are polled; never where a CPU that a winner leaves does not fall idle.
    poll_ns: u64,
    /// When children are stopped whose parents had yet to stop; mostly never.
    stops_ns: u64,
    /// When signals are looked for; never while no process is held down.
    signals_ns: u64,
    /// When those are looked for that were not there before. Not earlier than `signals_ns`.
    new_signals_ns: u64,
    /// When the next survey is due. A survey is part of a decision; the thread does not wake for it
    /// alone.
    survey_ns: u64,
}

impl WakeTimes {
    /// Never.
    pub(crate) fn new() -> Self {
        Self {
            decision_ns: u64::MAX,
            due_ns: u64::MAX,
            poll_ns: u64::MAX,
            stops_ns: u64::MAX,
            signals_ns: u64::MAX,
            new_signals_ns: 0,
            survey_ns: 0,
        }
    }

    pub(crate) fn first_ns(&self) -> u64 {
        let enforcement_ns = self.signals_ns.min(self.stops_ns);
        self.decision_ns.min(self.poll_ns).min(enforcement_ns)
    }

    pub(crate) fn decision_ns(&self) -> u64 {
        self.decision_ns
    }

    pub(crate) fn poll_is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.poll_ns
    }

    pub(crate) fn decision_is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.decision_ns
    }

    /// Whether a decision is later than it was due by more than this.
    pub(crate) fn is_later_than(&self, grace_ns: u64, now_ns: u64) -> bool {
        now_ns > self.due_ns.saturating_add(grace_ns)
    }

    /// Whether a survey is due. If so, the next one is due an interval later.
    pub(crate) fn take_survey(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns >= self.survey_ns;
        if is_due {
            self.survey_ns = now_ns + SURVEY_INTERVAL_NS;
        }
        is_due
    }

    /// From when on turns count that begin with a decision at `now_ns`. A decision that is late by
    /// less than a quantum counts from when it was due, so that decisions keep in step.
    pub(crate) fn begin_of_turns(&self, now_ns: u64, quantum_ns: u64) -> u64 {
        let due_ns = self.decision_ns;
        let in_step = due_ns <= now_ns && now_ns - due_ns < quantum_ns;
        match in_step {
            true => due_ns,
            false => now_ns,
        }
    }

    /// Plans the next decision for an interval after the last one was due, so that decisions keep
    /// in step. If that is over, plans it for an interval from now.
    pub(crate) fn plan_decision(&mut self, now_ns: u64, interval_ns: u64) {
        let in_step_ns = self.decision_ns.saturating_add(interval_ns);
        self.decision_ns = if in_step_ns > now_ns && self.decision_ns <= now_ns {
            in_step_ns
        } else {
            now_ns.saturating_add(interval_ns)
        };
    }

    /// Plans a decision for this time.
    pub(crate) fn decide_at(&mut self, at_ns: u64) {
        self.decision_ns = at_ns;
    }

    /// Plans a decision for this time at the latest.
    pub(crate) fn decide_by(&mut self, by_ns: u64) {
        self.decision_ns = self.decision_ns.min(by_ns);
    }

    /// Notes that a decision was taken, and that the next one is due when it is planned.
    pub(crate) fn decided(&mut self) {
        self.due_ns = self.decision_ns;
    }

    pub(crate) fn plan_poll(&mut self, now_ns: u64, interval_ns: u64) {
        self.poll_ns = now_ns.saturating_add(interval_ns);
    }

    pub(crate) fn stops_are_due(&self, now_ns: u64) -> bool {
        now_ns >= self.stops_ns
    }

    /// Plans the next stop of children if some wait for that.
    pub(crate) fn plan_stops(&mut self, now_ns: u64, any_waits: bool) {
        self.stops_ns = match any_waits {
            true => now_ns + job_control::STOP_INTERVAL_NS,
            false => u64::MAX,
        };
    }

    pub(crate) fn signals_are_due(&self, now_ns: u64) -> bool {
        now_ns >= self.signals_ns
    }

    /// Whether new signals are due. If so, they are due again an interval later.
    pub(crate) fn take_new_signals(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns >= self.new_signals_ns;
        if is_due {
            self.new_signals_ns = now_ns + signals::LOOK_INTERVAL_NS;
        }
        is_due
    }

    /// Plans the next look for signals: none, one for new ones, or one for the delivery of known
    /// ones.
    pub(crate) fn plan_signals(&mut self, now_ns: u64, held_down: bool, awaits_delivery: bool) {
        self.signals_ns = match (held_down, awaits_delivery) {
            (_, true) => now_ns + signals::DELIVERY_INTERVAL_NS,
            (true, false) => self.new_signals_ns.max(now_ns),
            (false, false) => u64::MAX,
        };
    }
}
