//! Clients that may use only some CPUs. Where the CPUs of a winner are taken,
//! running threads migrate to make room: the dispatcher has checked that all
//! winners can be placed.

use prorata_core::matching::find_way;
use prorata_scenario::event::Why;

use super::{Machine, Simulation};
use crate::observer::Observer;

impl<O: Observer> Simulation<O> {
    /// Takes a CPU for a client: the wanted one if the client may use it and it
    /// is idle.
    #[cold]
    pub(super) fn make_room(&mut self, wanted: u32, client: u32) -> u32 {
        let machine = &mut self.machine;
        if machine.cpus.is_idle(wanted) && machine.may_use(client, wanted) {
            machine.cpus.take(wanted);
            return wanted;
        }
        let way = machine.way(client).expect("winners can be placed");
        for step in way.windows(2).rev() {
            self.migrate(step[0], step[1]);
        }
        self.machine.cpus.take(way[0]);
        way[0]
    }

    /// The thread on a CPU goes on on another one, which is idle.
    fn migrate(&mut self, from: u32, to: u32) {
        self.account(from);
        let place = &self.machine.cpus.all[from as usize];
        let (thread, turn) = (place.thread, place.turn);
        self.leave(from, Why::Migrates);
        let machine = &mut self.machine;
        machine.threads.all[thread as usize].since_ns = machine.now_ns;
        machine.cpus.take(to);
        self.place(to, thread, turn);
        self.drive(to);
    }
}

impl Machine {
    /// Whether some client may use only some CPUs.
    pub(crate) fn confines(&self) -> bool {
        self.confines
    }

    /// Whether a client may use a CPU.
    pub fn may_use(&self, client: u32, cpu: u32) -> bool {
        let affinity = self.group(client).affinity.as_ref();
        affinity.is_none_or(|affinity| affinity.contains(cpu))
    }

    /// As [`find_way`], among the threads that run.
    pub(super) fn way(&self, client: u32) -> Option<Vec<u32>> {
        find_way(
            client,
            0..self.machine.cpus,
            |cpu| self.running(cpu).map(|(client, _)| client),
            |client| move |cpu| self.may_use(client, cpu),
        )
    }
}
