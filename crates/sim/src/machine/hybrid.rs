//! Hybrid scheduling (1999): a wake may preempt, and accounts are brought up to date before
//! a client begins or ceases to compete.

use prorata_core::dispatcher::Dispatcher;
use prorata_core::hybrid::WakeClass;
use prorata_scenario::plan::client_id;

use super::{NONE, Simulation};
use crate::observer::Observer;

impl<O: Observer> Simulation<O> {
    /// The class of a wake of a thread that is new or has waited.
    pub(super) fn wake_class(&self, thread: u32) -> WakeClass {
        let machine = &self.machine;
        let state = &machine.threads.all[thread as usize];
        // The last instruction of a program is no wait: a new thread follows one, or none.
        let before = state.instruction.checked_sub(1);
        before.map_or(WakeClass::User, |before| {
            let waited_in = machine.code.instructions[before as usize];
            machine.objects.wake_class(waited_in)
        })
    }

    /// Another number of a client's threads can run; one of them woke from a sleep of this
    /// class.
    pub(super) fn runnable_changed_hybrid(&mut self, client: u32, class: WakeClass) {
        let runnable = self.machine.clients[client as usize].runnable;
        let id = client_id(client);
        let competed = self.machine.dispatcher.competes(id);
        if competed != (runnable > 0) {
            // So the time before the change is due to the clients that competed then.
            self.account_all();
        }
        let machine = &mut self.machine;
        let dispatcher: &mut Dispatcher = &mut machine.dispatcher;
        dispatcher.wake(id, runnable, class);
        if !competed && runnable > 0 && dispatcher.mechanisms().abbreviated_quanta {
            machine.woken.push(client);
        }
    }

    /// Clients that woke and got no CPU preempt running clients (1999, 3.2). A client that runs
    /// then may wake further ones.
    #[cold]
    pub(super) fn preempt(&mut self) {
        let mut next = 0;
        while let Some(&client) = self.machine.woken.get(next) {
            next += 1;
            let state = &self.machine.clients[client as usize];
            if state.runnable == 0 || state.turn != NONE {
                continue;
            }
            // What was used up to now counts against a running client.
            self.account_all();
            let Some(runner) = self.machine.dispatcher.preempted_by(client_id(client)) else {
                continue;
            };
            self.end_turn(runner.index());
            self.give_free_cpus();
        }
        self.machine.woken.clear();
    }
}
