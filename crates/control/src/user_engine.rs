//! The user engine behind the daemon's contract.

use std::os::fd::BorrowedFd;

use prorata_core::ids::ClientId;
use prorata_protocol::{
    ClientState, EventKind, EventReport, MOST_EVENTS, OutsideReport, SleepKind, TurnEndKind,
};
use prorata_user::ownership::KnownClient;
use prorata_user::{
    ClientActivity, ClientEvent, EngineConfig, Happening, Mechanism, MissingRight, OutsideLoad,
    SlotMechanism, TurnEnd, UserEngine, outrank_slots, wake_as_others,
};

use prorata_bulletin::Reader;
use prorata_protocol::slots::RowReport;

use crate::engine::{Engine, EngineError, EngineSetup, EngineStatus, Stray};
use crate::process::ProcessId;

/// Starts the engine for ordinary Linux, which shares out CPUs as the dispatcher
/// decides. Without a mechanism the engine takes the best that a trial permits.
///
/// # Errors
///
/// If it cannot start; nothing has changed.
pub fn user_engine(
    setup: EngineSetup,
    mechanism: Option<Mechanism>,
) -> Result<Box<dyn Engine>, EngineError> {
    let EngineSetup {
        dispatcher,
        directory,
        socket,
        cpus,
        user_funding: _,
    } = setup;
    let config = EngineConfig {
        cpus: Some(cpus.clone()),
        state_directory: directory,
        socket,
        mechanism,
    };
    let engine = UserEngine::start(config, dispatcher)?;
    Ok(Box::new(ForUser { engine, cpus }))
}

/// A user engine and the CPUs that it was told to share out.
struct ForUser {
    engine: UserEngine,
    cpus: Vec<u32>,
}

impl Engine for ForUser {
    fn manage(&self, client: ClientId, root: ProcessId) -> Result<(), EngineError> {
        Ok(self.engine.manage(client, root)?)
    }

    fn would_stop(&self, root: ProcessId, is_limited: bool) -> bool {
        self.engine.would_stop(root, is_limited)
    }

    // These fail only if the engine has failed, which the engine reports itself.

    fn take_in(&self, client: ClientId, strays: &[Stray]) -> Vec<bool> {
        let taken = self.engine.take_in(client, strays);
        taken.unwrap_or_else(|_| vec![false; strays.len()])
    }

    fn would_take_in(&self, strays: &[Stray]) -> bool {
        self.engine.would_take_in(strays)
    }

    fn let_out(&self, processes: &[ProcessId]) {
        self.engine.let_out(processes);
    }

    fn adopt(&self, client: ClientId, parent: ProcessId) -> Result<(), EngineError> {
        Ok(self.engine.also_children_of(client, parent)?)
    }

    fn manage_marked(&self, clients: &[KnownClient]) -> Vec<u32> {
        let joined = self.engine.manage_marked(clients);
        joined.unwrap_or_else(|_| vec![0; clients.len()])
    }

    fn release(&self, client: ClientId) {
        self.engine.release(client);
    }

    fn set_client_quantum(&self, client: ClientId, quantum_ns: Option<u64>) {
        self.engine.set_client_quantum(client, quantum_ns);
    }

    fn suspend(&self, client: ClientId) -> bool {
        self.engine.suspend(client)
    }

    fn resume(&self, client: ClientId) {
        self.engine.resume(client);
    }

    fn nudge(&self) {
        self.engine.nudge();
    }

    fn exits(&self) -> BorrowedFd<'_> {
        self.engine.exits()
    }

    fn take_exited(&self) -> Vec<ClientId> {
        self.engine.take_exited()
    }

    fn find(&self, pid: u32) -> Option<ClientId> {
        self.engine.find(pid)
    }

    fn find_all(&self, pids: &[u32]) -> Vec<Option<ClientId>> {
        self.engine.find_all(pids)
    }

    fn processes(&self, client: ClientId) -> Vec<ProcessId> {
        self.engine.processes(client)
    }

    fn state(&self, client: ClientId) -> Option<ClientState> {
        self.engine.state(client).map(|activity| match activity {
            ClientActivity::Running => ClientState::Running,
            ClientActivity::Waiting => ClientState::Waiting,
            ClientActivity::Blocked => ClientState::Blocked,
            ClientActivity::Limited => ClientState::Limited,
            ClientActivity::Suspended => ClientState::Suspended,
        })
    }

    fn keeps_events(&self) -> bool {
        true
    }

    fn events(&self) -> Vec<(ClientId, EventReport)> {
        let events = self.engine.events().into_iter();
        events
            .map(|event| (event.client, event_report(event)))
            .collect()
    }

    fn status(&self) -> EngineStatus {
        let status = self.engine.status();
        EngineStatus {
            engine: "user",
            mechanism: match status.mechanism {
                Mechanism::Idle => "idle",
                Mechanism::GroupIdle => "group-idle",
                Mechanism::GroupFreeze => "group-freeze",
                Mechanism::Stop => "stop",
            },
            cpus: self.cpus.clone(),
            queues: None,
            hybrid: None,
            traced: false,
            decisions: status.decisions,
            own_cpu_ns: status.own_cpu_ns,
            uptime_ns: status.uptime_ns,
            outside: status.outside.iter().map(outside_report).collect(),
            advice: status.missing_right.map(advice),
            trouble: None,
        }
    }

    fn enforce_slots(&self, table: Option<Reader>) -> Result<&'static str, EngineError> {
        let mechanism = self.engine.set_timetable(table)?;
        Ok(match mechanism {
            Some(SlotMechanism::Raise) => {
                // Claims are made and freed although all slots are taken (2005, Figure 3.2).
                outrank_slots();
                "raise"
            }
            Some(SlotMechanism::Lower) => "lower",
            Some(SlotMechanism::Stop) => "stop",
            None => {
                wake_as_others();
                "none"
            }
        })
    }

    fn slot_rows(&self) -> Vec<RowReport> {
        let report = self.engine.slot_report();
        let rows = report.into_iter().flat_map(|report| report.rows);
        rows.map(|row| RowReport {
            cpu: row.cpu,
            begun: row.boundaries,
            missed: row.missed,
            ran: row.ran,
            idle: row.not_runnable,
            lost: row.lost,
            late_median_ns: row.late_p50_ns,
            late_99th_ns: row.late_p99_ns,
            late_most_ns: row.late_max_ns,
            stolen_ns: row.stolen_ns,
        })
        .collect()
    }

    fn failure(&self) -> Option<String> {
        self.engine.status().failure
    }
}

fn advice(missing: MissingRight) -> &'static str {
    match missing {
        MissingRight::LeaveIdle => {
            "losers have to be stopped: a nice limit of 20 (`nice 0` in limits.conf, \
             `LimitNICE=20` in a systemd unit) or a delegated cpu controller (`Delegate=cpu`) \
             spares them that"
        }
        MissingRight::CpuController => {
            "losers have to be stopped, as clients are in different sessions or control groups: \
             a delegated cpu controller (`Delegate=cpu`) spares them that"
        }
        MissingRight::Linger => {
            "processes of logins, such as by ssh, have to be stopped by signals: with `loginctl \
             enable-linger`, and after `prorata stop`, control groups hold them down"
        }
    }
}

const _: () = assert!(MOST_EVENTS == prorata_user::MOST_EVENTS as u32);

fn event_report(event: ClientEvent) -> EventReport {
    let sleep_kind = |in_kernel| match in_kernel {
        true => SleepKind::Kernel,
        false => SleepKind::User,
    };
    let what = match event.what {
        Happening::Woke {
            is_early,
            from_kernel,
        } => EventKind::Woke {
            early: is_early,
            from: sleep_kind(from_kernel),
        },
        Happening::Slept { in_kernel, place } => EventKind::Slept {
            on: sleep_kind(in_kernel),
            place: place.map(Into::into),
        },
        Happening::EarlyEnded => EventKind::EarlyEnded,
        Happening::TurnEnded {
            reason, lasted_ns, ..
        } => EventKind::TurnEnded {
            reason: match reason {
                TurnEnd::Quantum => TurnEndKind::Quantum,
                TurnEnd::Sleep => TurnEndKind::Sleep,
                TurnEnd::Change => TurnEndKind::Change,
                TurnEnd::Limit => TurnEndKind::Limit,
                TurnEnd::Suspended => TurnEndKind::Suspended,
            },
            lasted_ns,
        },
    };
    EventReport {
        time_ns: event.time_ns,
        client: None,
        name: String::new(),
        thread: None,
        what,
    }
}

fn outside_report(load: &OutsideLoad) -> OutsideReport {
    OutsideReport {
        cpu: load.cpu,
        percent: load.percent,
    }
}
