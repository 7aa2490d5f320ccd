//! What a CPU does in the kernel: `schedule()`, `reschedule_idle()` and
//! interrupts (2001, 2).

use crate::run_queue::{DecisionStep, LockIndex, Scheduled};
use prorata_scenario::threads::{NO_CPU, NO_THREAD, ThreadState};

use crate::locks::Wanted;
use crate::open_decision::{Asked, Decided, OpenDecision, Waking};
use crate::processor::{Doing, Leaves, Then};
use crate::simulation::{Due, SmpSimulation};

impl SmpSimulation {
    /// A CPU works until its work takes time.
    pub(crate) fn go_on(&mut self, cpu: u32) {
        self.here = cpu;
        while self.failure.is_none() && self.goes_on(cpu) {}
    }

    /// The CPU's next work. Returns whether the CPU goes on at once.
    fn goes_on(&mut self, cpu: u32) -> bool {
        let state = &mut self.cpus[cpu as usize];
        if state.decision.is_some() {
            return self.decide(cpu);
        }
        if state.soft_interrupt_is_next() {
            let ns = std::mem::take(&mut state.soft_interrupt_ns);
            return self.stay(cpu, self.costs.on_bus_ns(ns), Then::GoesOn);
        }
        if let Some(asked) = state.next_decision() {
            return self.begin(cpu, asked);
        }
        if state.task == NO_THREAD {
            state.doing = Doing::Idles;
            return false;
        }
        let remaining_ns = self.threads.all[state.task as usize].remaining_ns;
        if remaining_ns == 0 {
            return self.next_step(cpu);
        }
        state.doing = Doing::Computes;
        state.since_ns = self.now_ns;
        self.expect(cpu, self.now_ns + remaining_ns);
        false
    }

    /// The CPU stays in the kernel for some time. Returns false.
    pub(crate) fn stay(&mut self, cpu: u32, ns: u64, then: Then) -> bool {
        self.cpus[cpu as usize].doing = Doing::Busy(then);
        self.expect(cpu, self.now_ns + ns);
        false
    }

    fn expect(&mut self, cpu: u32, at_ns: u64) {
        let stamp = self.cpus[cpu as usize].stamp;
        self.queue.push(at_ns, Due::Cpu { cpu, stamp });
    }

    /// A CPU ends what it did, unless an interrupt broke that off.
    pub(crate) fn cpu_due(&mut self, cpu: u32, stamp: u32) {
        let state = &mut self.cpus[cpu as usize];
        if state.stamp != stamp {
            return;
        }
        self.here = cpu;
        match state.doing {
            Doing::Computes => self.threads.all[state.task as usize].remaining_ns = 0,
            Doing::Busy(Then::GoesOn) => {}
            Doing::Busy(Then::Granted(granted)) => {
                if let Some(decision) = &mut state.decision {
                    decision.granted(granted);
                    // schedule() clears need_resched under the lock.
                    state.needs_schedule &= !decision.is_schedule();
                }
            }
            Doing::Busy(Then::Acts) => {
                let task = state.task;
                self.take_step(cpu, task);
            }
            Doing::Busy(Then::Steps) => {
                if !self.carry_out(cpu) {
                    return;
                }
            }
            Doing::Idles | Doing::Spins => unreachable!("no event ends that"),
        }
        self.go_on(cpu);
    }

    /// An interrupt breaks off a CPU and takes so long.
    pub(crate) fn interrupt(&mut self, cpu: u32, ns: u64) {
        let state = &mut self.cpus[cpu as usize];
        if state.doing == Doing::Computes {
            let used_ns = self.now_ns - state.since_ns;
            self.threads.all[state.task as usize].remaining_ns -= used_ns;
        }
        state.stamp = state.stamp.wrapping_add(1);
        self.stay(cpu, ns, Then::GoesOn);
    }

    /// An interrupt from another CPU arrives. It has no effect at once on a CPU
    /// in the kernel.
    pub(crate) fn interrupt_due(&mut self, cpu: u32) {
        let state = &self.cpus[cpu as usize];
        let open = matches!(state.doing, Doing::Idles | Doing::Computes);
        if open && state.needs_schedule {
            self.interrupt(cpu, 0);
        }
    }

    /// The timer of a CPU ticks. With pools, each tick balances them. Without, an
    /// idle CPU ignores the tick.
    pub(crate) fn tick_due(&mut self, cpu: u32) {
        self.queue
            .push(self.now_ns + self.costs.tick.0, Due::Tick { cpu });
        let state = &mut self.cpus[cpu as usize];
        if state.task == NO_THREAD && !self.queues.balances() {
            return;
        }
        state.ticks = true;
        state.balances = self.queues.balances();
        if matches!(state.doing, Doing::Computes | Doing::Idles) {
            self.interrupt(cpu, self.costs.timer.0);
        }
    }

    /// A CPU begins a decision. Returns whether the CPU goes on at once.
    fn begin(&mut self, cpu: u32, asked: Asked) -> bool {
        match asked {
            Asked::Schedule(_) => {
                self.counts.schedules += 1;
                self.lengths.count(self.queues.length(cpu));
            }
            Asked::Wake(waking) => self.counts.wakes += u64::from(!waking.again),
            Asked::Balance => self.counts.balances += 1,
            Asked::Displaced(_) | Asked::Tick => {}
        }
        let decision = OpenDecision::new(&mut self.queues, cpu, asked, self.now_ns);
        let state = &mut self.cpus[cpu as usize];
        state.decision = Some(decision);
        state.decides_since_ns = self.now_ns;
        let wakeup_ns = self.costs.on_bus_ns(self.costs.wakeup.0);
        match asked {
            Asked::Wake(waking) if wakeup_ns > 0 && !waking.again => {
                self.stay(cpu, wakeup_ns, Then::GoesOn)
            }
            _ => true,
        }
    }

    /// A decision goes on to its next step, after the time for all that it
    /// examined on the way.
    fn decide(&mut self, cpu: u32) -> bool {
        let Some(decision) = &mut self.cpus[cpu as usize].decision else {
            return true;
        };
        let ahead_ns = decision.spend_ahead(&mut self.queues, &self.costs, cpu);
        if ahead_ns > 0 {
            return self.stay(cpu, ahead_ns, Then::GoesOn);
        }
        let ns = decision.advance(&mut self.queues, &self.costs, cpu);
        match ns {
            0 => self.carry_out(cpu),
            _ => self.stay(cpu, ns, Then::Steps),
        }
    }

    /// Carries out the step that a decision asked for. Returns whether the CPU
    /// goes on at once.
    fn carry_out(&mut self, cpu: u32) -> bool {
        let Some(decision) = &mut self.cpus[cpu as usize].decision else {
            return true;
        };
        match decision.step() {
            DecisionStep::Lock(LockIndex(lock)) => {
                match self.locks.lock(lock as usize, cpu, self.now_ns) {
                    Wanted::From(from_ns) => {
                        self.stay(cpu, from_ns - self.now_ns, Then::Granted(true))
                    }
                    Wanted::Spins => {
                        self.cpus[cpu as usize].doing = Doing::Spins;
                        false
                    }
                }
            }
            DecisionStep::TryLock(LockIndex(lock)) => {
                let (taken, from_ns) = self.locks.try_lock(lock as usize, cpu, self.now_ns);
                self.stay(cpu, from_ns - self.now_ns, Then::Granted(taken))
            }
            DecisionStep::Unlock(LockIndex(lock)) => {
                if let Some((next, from_ns)) = self.locks.unlock(lock as usize, cpu, self.now_ns) {
                    self.stay(next, from_ns - self.now_ns, Then::Granted(true));
                }
                true
            }
            DecisionStep::Interrupt(other) => {
                self.tell(cpu, other.0);
                true
            }
            DecisionStep::Examined { .. } => true,
            DecisionStep::Done => self.end(cpu),
        }
    }

    /// Sets `need_resched` on a CPU, and sends it an interrupt.
    fn tell(&mut self, cpu: u32, other: u32) {
        self.cpus[other as usize].needs_schedule = true;
        if other != cpu {
            let at_ns = self.now_ns + self.costs.interrupt.0;
            self.queue.push(at_ns, Due::Interrupt { cpu: other });
        }
    }

    /// A decision is made.
    fn end(&mut self, cpu: u32) -> bool {
        let state = &mut self.cpus[cpu as usize];
        match state.decision.take().map(OpenDecision::decided) {
            Some(Decided::Next(outcome, leaves)) => {
                self.counts.schedules_ns += self.now_ns - state.decides_since_ns;
                self.switch(cpu, outcome, leaves)
            }
            Some(Decided::Ticked { expired }) => {
                state.needs_schedule |= expired;
                true
            }
            Some(Decided::Balanced(Some(moving))) => {
                self.counts.moves += 1;
                state.decision = Some(OpenDecision::moved(moving));
                true
            }
            Some(Decided::Placed(again)) => {
                if let Some(waking) = again {
                    self.wake_again(cpu, waking);
                }
                true
            }
            Some(Decided::Balanced(None)) | None => true,
        }
    }

    /// A task was in no queue, and its CPU had not handed it over. That CPU wakes it as soon as
    /// it does so, unless it has by now.
    fn wake_again(&mut self, cpu: u32, waking: Waking) {
        let home = self.cpus.get(waking.cpu as usize);
        let decides = home.is_some_and(|home| home.task == waking.task);
        let by = if decides { waking.cpu } else { cpu };
        self.cpus[by as usize].wakes.push_front(waking);
    }

    /// `schedule()` has chosen the next task; none is the idle task.
    fn switch(&mut self, cpu: u32, outcome: Scheduled, leaves: Option<Leaves>) -> bool {
        let state = &mut self.cpus[cpu as usize];
        let next = outcome.next.map_or(NO_THREAD, |next| next.0);
        let last = std::mem::replace(&mut state.task, next);
        state.displaced = outcome.displaced;
        // Before the CPU idles, it looks for work in other pools.
        state.balances |= next == NO_THREAD && self.queues.balances();
        let left = outcome.blocked.is_some();
        match outcome.blocked {
            Some(_) if leaves == Some(Leaves::Exits) => {
                self.threads.free(last);
                self.alive -= 1;
            }
            Some(task) => self.queues.put_aside(task),
            None if next != last => {
                if let Some(thread) = self.threads.all.get_mut(last as usize) {
                    thread.state = ThreadState::Ready;
                }
            }
            None => {}
        }
        if next == last {
            if let Some(thread) = self.threads.all.get_mut(last as usize) {
                // A task that stays because it was woken before it blocked.
                thread.state = ThreadState::Running;
            }
            return true;
        }
        self.counts.switches += 1;
        let stays = u64::from(last != NO_THREAD && !left);
        self.queues
            .switched(cpu, stays + u64::from(next != NO_THREAD));
        let mut ns = self.costs.context_switch.0;
        if let Some(thread) = self.threads.all.get_mut(next as usize) {
            let before = std::mem::replace(&mut thread.cpu, cpu as u16);
            if before != NO_CPU && u32::from(before) != cpu {
                ns += self.costs.cache_refill.0;
                self.counts.migrations += 1;
            }
            thread.state = ThreadState::Running;
        }
        self.stay(cpu, self.costs.on_bus_ns(ns), Then::GoesOn)
    }
}
