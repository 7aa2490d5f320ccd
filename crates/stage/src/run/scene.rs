//! The run's processes as a world in which threads meet.

use std::sync::MutexGuard;

use prorata_core::dispatcher::Dispatcher;
use prorata_core::ledger::{Ledger, Operation, Outcome, Principal};
use prorata_scenario::event::{Event, Why};
use prorata_scenario::plan::{Code, Instruction};
use prorata_scenario::world::{Objects, Waiting, World};

use super::crew::Crew;
use super::looks::Looks;
use crate::message::Order;
use crate::stage::Stage;
use crate::worker::monotonic_ns;

/// A moment at which something happens between threads, or to rights. The
/// dispatcher is held meanwhile, so what is to be told is kept for
/// [`Scene::play`] to tell afterwards.
pub(super) struct Scene<'a> {
    crew: &'a mut Crew,
    code: &'a Code,
    looks: &'a mut Looks,
    dispatcher: MutexGuard<'a, Dispatcher>,
    now_ns: u64,
    orders: Vec<(u32, Order)>,
    /// Whether rights have changed.
    changed: bool,
}

impl<'a> Scene<'a> {
    /// Has something happen, and then tells threads and engine.
    pub(super) fn play(
        stage: &'a Stage,
        crew: &'a mut Crew,
        code: &'a Code,
        looks: &'a mut Looks,
        action: impl FnOnce(&mut Scene<'a>),
    ) {
        let mut scene = Scene {
            crew,
            code,
            looks,
            dispatcher: stage.dispatcher(),
            now_ns: monotonic_ns(),
            orders: Vec::new(),
            changed: false,
        };
        action(&mut scene);
        let Scene {
            crew,
            dispatcher,
            orders,
            changed,
            ..
        } = scene;
        drop(dispatcher);
        if changed {
            stage.nudge();
        }
        for (thread, order) in orders {
            if let Some(Some(thread)) = crew.threads.get(thread as usize) {
                // A thread that has exited is found by its closed socket.
                let _ = order.send(&thread.socket);
            }
        }
    }

    pub(super) fn dispatcher(&mut self) -> &mut Dispatcher {
        &mut self.dispatcher
    }

    /// Tells a thread something afterwards.
    pub(super) fn order(&mut self, thread: u32, order: Order) {
        self.orders.push((thread, order));
    }

    /// The engine is to decide anew afterwards.
    pub(super) fn rights_changed(&mut self) {
        self.changed = true;
    }

    /// A thread exits: it releases its mutexes and answers its call now.
    pub(super) fn remove(&mut self, thread: u32) {
        if self.crew.thread(thread).since_ns.is_some() {
            self.stop_waiting(thread);
        }
        self.drop_obligations(thread);
        self.crew.remove(thread);
    }
}

impl World for Scene<'_> {
    fn objects(&mut self) -> &mut Objects {
        &mut self.crew.objects
    }

    fn ledger(&self) -> &Ledger {
        self.dispatcher.ledger()
    }

    fn apply(&mut self, operation: Operation) -> Option<Outcome> {
        match self.dispatcher.ledger().check(&Principal::ROOT, operation) {
            Ok(checked) => {
                self.changed = true;
                Some(self.dispatcher.apply(checked))
            }
            Err(error) => {
                self.looks.run.told.note(Event::Refused { error: &error });
                None
            }
        }
    }

    fn client_of(&self, thread: u32) -> u32 {
        self.crew.thread(thread).client
    }

    fn threads_of(&self, client: u32) -> u32 {
        self.crew.clients[client as usize].threads
    }

    fn waits_in(&self, thread: u32) -> Instruction {
        self.code.instructions[self.crew.thread(thread).instruction as usize]
    }

    fn waited_ns(&self, thread: u32) -> u64 {
        let since_ns = self.crew.thread(thread).since_ns;
        since_ns.map_or(0, |since_ns| self.now_ns.saturating_sub(since_ns))
    }

    fn block(&mut self, thread: u32, _: Why) {
        self.crew.thread_mut(thread).since_ns = Some(self.now_ns);
    }

    fn ready(&mut self, thread: u32) {
        self.crew.thread_mut(thread).since_ns = None;
        self.order(thread, Order::Wake(self.now_ns));
    }

    fn tell(&mut self, event: Event<'_>) {
        self.looks.run.told.note(event);
    }
}
