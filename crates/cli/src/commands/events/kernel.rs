//! Events of the scheduler in the kernel, from its trace. The kernel keeps none from before, so
//! these are of the time for which the command listens.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use prorata_kernel::KernelError;
use prorata_kernel::scheduler::Tap;
use prorata_protocol::{Connection, EventReport, Request, Response, StatusReport};
use prorata_user::procfs;

use super::interpreter::{Interpreter, ThreadEvent};
use crate::caller::answer;
use crate::commands::trace::tick_ns;

/// How long the command listens at most.
const LISTENS: Duration = Duration::from_secs(1);
/// Between two reads of the trace, which holds the decisions of several seconds.
const INTERVAL: Duration = Duration::from_millis(20);

pub fn events(
    connection: &mut Connection,
    status: &StatusReport,
    most: usize,
) -> Result<Vec<EventReport>> {
    if let ("none", Some(trouble)) = (status.mechanism.as_str(), &status.trouble) {
        bail!("the kernel unloaded the daemon's scheduler: {trouble}");
    }
    ensure!(status.traced, KernelError::NotTraced);
    let interpreter = listen(most)?;
    let mut names = Names {
        connection,
        clients: BTreeMap::new(),
    };
    let events = interpreter.into_events().into_iter();
    events.map(|event| names.report(event)).collect()
}

/// Listens to the trace. The tap is closed afterwards: while it is open, decisions cost more.
fn listen(most: usize) -> Result<Interpreter> {
    let tap = Tap::open()?;
    let mut interpreter = Interpreter::new(most, tick_ns());
    let end = Instant::now() + LISTENS;
    while Instant::now() < end && !interpreter.is_full() {
        sleep(INTERVAL);
        for decision in &tap.take_decisions()?.decisions {
            interpreter.take(decision);
        }
        interpreter.find_places(procfs::sleeping_place);
    }
    Ok(interpreter)
}

/// Clients of processes, each asked for once.
struct Names<'a> {
    connection: &'a mut Connection,
    clients: BTreeMap<u32, Option<String>>,
}

impl Names<'_> {
    fn report(&mut self, event: ThreadEvent) -> Result<EventReport> {
        let (client, name) = match event.thread {
            Some(thread) => (self.client_of(thread)?, name_of(thread)),
            None => (None, "-".to_owned()),
        };
        Ok(EventReport {
            time_ns: event.time_ns,
            client,
            name,
            thread: event.thread,
            what: event.what,
        })
    }

    fn client_of(&mut self, thread: u32) -> Result<Option<String>> {
        let Ok(pid) = procfs::process_of_thread(thread) else {
            return Ok(None);
        };
        if let Some(known) = self.clients.get(&pid) {
            return Ok(known.clone());
        }
        let request = Request::FindClient { pid };
        let found = answer!(self.connection, &request, Response::Found)?;
        self.clients.insert(pid, found.clone());
        Ok(found)
    }
}

/// The thread's name; its number if it has ended.
fn name_of(thread: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{thread}/comm"));
    name.map_or_else(|_| thread.to_string(), |name| name.trim_end().to_owned())
}
