//! The daemon without its socket: requests in, answers out.
//!
//! ```text
//!   request -> decode -> journal -> own ledger -> dispatcher -> engine -> answer
//!              may refuse  may refuse             cannot refuse
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use prorata_core::dispatcher::Dispatcher;
use prorata_core::ids::{ClientId, TransferId};
use prorata_core::ledger::{Operation, Outcome, Principal};
use prorata_protocol::{Envelope, PROTOCOL_VERSION, Request, Response};
use prorata_user::ownership::KnownClient;
use serde::Deserialize;

use crate::decode::{self, Answer, Plan, View};
use crate::engine::{Engine, lock};
use crate::host::Host;
use crate::journal::Journal;
use crate::peer::Peer;
use crate::policy;
use crate::process::{ProcessId, ProcessInfo};
use crate::refusal::{self, Refusal};
use crate::report::{Reporter, RunningChoice};
use crate::roots::RootWatch;
use crate::slots::{Call, Slots};
use crate::state::{Change, Settings, State};
use crate::users::{Census, runs_prorata};

/// The state that requests change.
pub(crate) struct Control {
    /// Follows the journal: every change is in the journal, or will be in its
    /// next image.
    pub state: State,
    pub journal: Journal,
    /// Its ledger equals `state.ledger` except for active clients.
    pub dispatcher: Arc<Mutex<Dispatcher>>,
    pub engine: Box<dyn Engine>,
    pub choice: RunningChoice,
    pub host: Box<dyn Host>,
    pub roots: RootWatch,
    pub census: Census,
    /// The suspended client that a sweep looked at last.
    pub resumed_until: Option<ClientId>,
    pub slots: Slots,
}

/// What ends with the connection that requested it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Held {
    Transfer(TransferId),
    /// The timetable of this number, see [`Slots::opened`].
    Timetable(u64),
}

/// The outcome of a request.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub response: Response,
    /// What ends with the connection from now on.
    pub held: Option<Held>,
    /// Whether the daemon ends now.
    pub stop: bool,
    /// The connection watches the timetable from now on; whether it wants slots that become free.
    pub watches: Option<bool>,
}

impl From<Refusal> for Outgoing {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        let response = match refusal {
            Refusal::Journal(_) => Response::NotKept { message },
            _ => Response::Refused { message },
        };
        Outgoing {
            response,
            held: None,
            stop: false,
            watches: None,
        }
    }
}

impl Control {
    /// Answers one frame of `peer`.
    pub fn handle(&mut self, peer: &Peer, frame: &[u8]) -> Outgoing {
        self.answer(peer, frame).unwrap_or_else(|refusal| {
            tracing::debug!(uid = peer.principal.uid, "refused: {refusal}");
            refusal.into()
        })
    }

    fn answer(&mut self, peer: &Peer, frame: &[u8]) -> Result<Outgoing, Refusal> {
        let request = parse(frame)?;
        let view = View {
            state: &self.state,
            engine: self.engine.as_ref(),
            host: self.host.as_ref(),
        };
        let Plan { changes, answer } = decode::decode(&request, peer, view)?;
        if let Answer::Slots(call) = answer {
            let watches = match call.call {
                Call::Watch { freed } => Some(freed),
                _ => None,
            };
            let response = Response::Slots(self.serve_slots(&call)?);
            let holds = matches!(call.call, Call::Open { hold: true, .. });
            return Ok(Outgoing {
                response,
                held: holds.then_some(Held::Timetable(self.slots.opened)),
                stop: false,
                watches,
            });
        }
        let created = match answer {
            // A full disk does not keep the daemon from ending.
            Answer::Stop => {
                self.close_slots();
                self.happened(&changes)
            }
            _ => self.commit(&changes)?,
        };
        let held = match created {
            Outcome::Transfer(transfer) if self.state.held.contains(&transfer) => {
                Some(Held::Transfer(transfer))
            }
            _ => None,
        };
        let stop = answer == Answer::Stop;
        let response = self.respond(&peer.principal, answer, created);
        Ok(Outgoing {
            response,
            held,
            stop,
            watches: None,
        })
    }

    /// Makes decoded changes, all or none. Returns the outcome of the last
    /// operation.
    fn commit(&mut self, changes: &[Change]) -> Result<Outcome, Refusal> {
        if changes.is_empty() {
            return Ok(Outcome::Done);
        }
        let outcomes = self.keep(changes)?;
        for change in changes {
            match change {
                Change::Roots { client, roots } => self
                    .manage_new(*client, roots)
                    .inspect_err(|_| self.undo(&outcomes))?,
                Change::Adopter { client, parent } => self.adopt(*client, *parent),
                Change::Quantum { client, quantum_ns } => {
                    self.engine.set_client_quantum(*client, *quantum_ns);
                }
                _ => {}
            }
        }
        self.engine.nudge();
        Ok(last(&outcomes))
    }

    /// Makes changes once the journal has them. Returns the outcomes of the operations.
    pub(crate) fn keep(&mut self, changes: &[Change]) -> Result<Vec<Outcome>, Refusal> {
        self.journal.append(changes, &self.state)?;
        Ok(self.carry_out(changes))
    }

    /// Hands a new client's process to the engine. The engine refuses a process
    /// that has just ended.
    fn manage_new(&mut self, client: ClientId, roots: &[ProcessId]) -> Result<(), Refusal> {
        for root in roots {
            self.engine
                .manage(client, *root)
                .map_err(|source| Refusal::Engine {
                    pid: root.pid,
                    source,
                })?;
        }
        self.roots.watch(client, roots);
        Ok(())
    }

    /// A parent that has ended or cannot be watched inherits nothing.
    fn adopt(&mut self, client: ClientId, parent: ProcessId) {
        if let Err(error) = self.engine.adopt(client, parent) {
            tracing::warn!("orphans of client {client} are found by their markers only: {error}");
        }
        // `prorata run` puts things right where daemon and guardian are killed.
        let host = self.host.as_ref();
        if self.state.settings.users
            && runs_prorata(host, parent.pid)
            && !self.census.computes(host, parent.pid)
        {
            self.engine.let_out(&[parent]);
        }
    }

    /// Destroys what operations created, the last one first.
    fn undo(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes.iter().rev() {
            let operation = match *outcome {
                Outcome::Currency(currency) => Operation::DestroyCurrency { currency },
                Outcome::Ticket(ticket) => Operation::DestroyTicket { ticket },
                Outcome::Client(client) => Operation::DestroyClient { client },
                Outcome::Transfer(transfer) => Operation::EndTransfer { transfer },
                Outcome::Done => continue,
            };
            self.happened(&[Change::Ledger(operation)]);
        }
    }

    /// Hands the engine the daemon's initial settings. A policy that the engine
    /// does not know, chosen under another engine, gives way to one that it
    /// knows.
    pub fn configure_again(&mut self, mut settings: Settings) {
        let known = self.engine.policies();
        if !known.contains(&settings.policy) {
            settings.policy = known.first().copied().unwrap_or_default();
            tracing::warn!(
                "the engine does not know the policy {}: from now on it is {}",
                self.state.settings.policy,
                settings.policy
            );
        }
        if settings == self.state.settings {
            self.engine.configure(settings.quantum_ns, settings.policy);
        } else {
            self.happened(&[Change::Configure(settings)]);
        }
    }

    /// Hands the engine every client of a restored state of which a process
    /// lives, and forgets the others.
    pub fn manage_again(&mut self) {
        let mut roots: Vec<(ProcessId, ClientId)> = Vec::new();
        for (client, all) in &self.state.roots {
            roots.extend(all.iter().map(|root| (*root, *client)));
        }
        // A root takes its descendants along, except those of another client. So a
        // client inside another one goes first.
        roots.sort_by_key(|(root, _)| Reverse((root.start_time_ticks, root.pid)));
        let mut found = BTreeSet::new();
        for (root, client) in roots {
            match self.engine.manage(client, root) {
                Ok(()) => drop(found.insert(client)),
                Err(error) => tracing::info!("client {client} has lost a process: {error}"),
            }
        }
        for (client, parent) in self.state.adopters.clone() {
            self.adopt(client, parent);
        }
        let all = self.state.roots.clone();
        let known: Vec<KnownClient> = all
            .iter()
            .filter_map(|(client, roots)| {
                Some(KnownClient {
                    id: *client,
                    user: self.state.ledger.client(*client)?.owner,
                    since_ticks: roots.iter().map(|root| root.start_time_ticks).min()?,
                })
            })
            .collect();
        let marked = self.engine.manage_marked(&known);
        let marked: BTreeMap<ClientId, u32> =
            known.iter().map(|client| client.id).zip(marked).collect();
        for (client, roots) in all {
            let marked = marked.get(&client).copied().unwrap_or(0);
            if marked == 0 && !found.contains(&client) {
                self.undo(&[Outcome::Client(client)]);
                continue;
            }
            self.roots.watch(client, &roots);
            if let Some(quantum_ns) = self.state.quanta_ns.get(&client) {
                self.engine.set_client_quantum(client, Some(*quantum_ns));
            }
            if self.state.suspended.contains(&client) {
                self.engine.suspend(client);
            }
        }
        self.engine.nudge();
    }

    /// Makes changes that no request asks for and that cannot be refused: a
    /// client's last process has ended, or the connection of a held transfer.
    /// They take effect even if the journal cannot be written; the next daemon
    /// finds them out by itself. A permitted stop is such a change too, but
    /// without the journal the next daemon finds its clients again.
    pub(crate) fn happened(&mut self, changes: &[Change]) -> Outcome {
        self.journal.note(changes, &self.state);
        let outcomes = self.carry_out(changes);
        self.engine.nudge();
        last(&outcomes)
    }

    /// Changes the state, then dispatcher and engine. The engine learns of a
    /// suspension with the answer, of which it is a part.
    ///
    /// Returns the outcomes of the operations.
    fn carry_out(&mut self, changes: &[Change]) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for change in changes {
            if let Change::Ledger(Operation::DestroyClient { client }) = change {
                self.look_again_at(*client);
                self.engine.release(*client);
                self.roots.forget(*client);
                self.end_slots_of(*client);
            }
            let Settings { policy, hybrid, .. } = self.state.settings;
            let outcome = self
                .state
                .apply(change)
                .expect("it was decoded in this state");
            match change {
                Change::Ledger(operation) => {
                    outcomes.push(outcome);
                    let mut dispatcher = lock(&self.dispatcher);
                    let checked = dispatcher
                        .ledger()
                        .check(&Principal::ROOT, operation.clone());
                    dispatcher.apply(checked.expect("both ledgers are equal"));
                }
                Change::Configure(settings) => {
                    let follows_dispatcher = self.engine.status().hybrid.is_none();
                    {
                        let mut dispatcher = lock(&self.dispatcher);
                        dispatcher.set_quantum(settings.quantum_ns);
                        if settings.policy != policy {
                            dispatcher.set_policy(policy::new(settings.policy));
                        }
                        if settings.hybrid != hybrid && follows_dispatcher {
                            dispatcher.set_mechanisms_beside(settings.mechanisms());
                        }
                    }
                    self.engine.configure(settings.quantum_ns, settings.policy);
                }
                Change::Resume(client) => self.engine.resume(*client),
                Change::Roots { .. }
                | Change::Adopter { .. }
                | Change::Quantum { .. }
                | Change::Suspend(_)
                | Change::Rest { .. }
                | Change::Funding { .. }
                | Change::Hold
                | Change::Timetable(_)
                | Change::Slots(_)
                | Change::Admission(_)
                | Change::Granted(_) => {}
            }
        }
        outcomes
    }

    /// Ends what a connection held and what has not ended yet.
    pub fn end_held(&mut self, held: &[Held]) {
        for held in held {
            match *held {
                // The end of one transfer may end another.
                Held::Transfer(transfer) if self.state.held.contains(&transfer) => {
                    self.happened(&[Change::Ledger(Operation::EndTransfer { transfer })]);
                }
                // Another connection may have opened another table since.
                Held::Timetable(number)
                    if self.slots.opened == number && self.slots.open.is_some() =>
                {
                    self.happened(&[Change::Timetable(None)]);
                    self.close_slots();
                }
                Held::Transfer(_) | Held::Timetable(_) => {}
            }
        }
    }

    /// Removes the clients whose last process has ended.
    pub fn remove_exited(&mut self) {
        let mut exited = self.engine.take_exited();
        exited.retain(|client| self.state.ledger.client(*client).is_some());
        let owners = self.owners_to_collect(&exited);
        let clients = exited.into_iter();
        let changes: Vec<Change> = clients
            .map(|client| Change::Ledger(Operation::DestroyClient { client }))
            .collect();
        if !changes.is_empty() {
            self.happened(&changes);
        }
        for owner in owners {
            self.collect_currency(owner);
        }
    }

    /// Finds new roots for each client with a root that has ended: that root
    /// does not lead to the client's other processes any more.
    pub fn renew_roots(&mut self) {
        self.engine.look();
        for client in self.roots.take_ended() {
            let alive: BTreeMap<u32, ProcessInfo> = self
                .engine
                .processes(client)
                .into_iter()
                .filter_map(|id| self.host.process(id.pid).filter(|process| process.id == id))
                .map(|process| (process.id.pid, process))
                .collect();
            let is_root = |process: &&ProcessInfo| !alive.contains_key(&process.parent);
            let roots: Vec<ProcessId> = alive
                .values()
                .filter(is_root)
                .map(|process| process.id)
                .collect();
            // Without a root, the engine is about to report the client's exit.
            let known = self.state.roots.get(&client).filter(|_| !roots.is_empty());
            let Some(is_new) = known.map(|known| *known != roots) else {
                continue;
            };
            self.roots.watch(client, &roots);
            if is_new {
                self.happened(&[Change::Roots { client, roots }]);
            }
        }
    }

    fn respond(&self, who: &Principal, answer: Answer, created: Outcome) -> Response {
        let report = Reporter {
            state: &self.state,
            dispatcher: &self.dispatcher,
            engine: self.engine.as_ref(),
            choice: &self.choice,
            host: self.host.as_ref(),
            census: &self.census,
            who,
        };
        match answer {
            Answer::Done | Answer::Stop => Response::Done,
            Answer::Slots(_) => unreachable!("these are served by themselves"),
            Answer::Created => Response::Created(match created {
                Outcome::Currency(currency) => currency.to_string(),
                Outcome::Ticket(ticket) => ticket.to_string(),
                Outcome::Client(client) => client.to_string(),
                Outcome::Transfer(transfer) => transfer.to_string(),
                Outcome::Done => unreachable!("something was created"),
            }),
            Answer::Client(client) => {
                Response::Client(report.client(client).expect("it was registered just now"))
            }
            Answer::Suspended(client) => Response::Suspended {
                was_stopped: self.engine.suspend(client),
            },
            Answer::Status => Response::Status(report.status()),
            Answer::Clients => Response::Clients(report.clients()),
            Answer::Found(client) => Response::Found(client.map(|client| client.to_string())),
            Answer::Processes(client) => Response::Processes(report.processes(client)),
            Answer::Currencies => Response::Currencies(report.currencies()),
            Answer::Tickets(currency) => Response::Tickets(report.tickets(currency)),
            Answer::Transfers => Response::Transfers(report.transfers()),
            Answer::Events(count) => Response::Events(report.events(count as usize)),
        }
    }
}

/// The outcome of the last of several operations.
fn last(outcomes: &[Outcome]) -> Outcome {
    outcomes.last().copied().unwrap_or(Outcome::Done)
}

/// Parses a frame. Its version is checked before its request.
pub(crate) fn parse(frame: &[u8]) -> Result<Request, Refusal> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let malformed =
        |error: serde_json::Error| Refusal::Malformed(refusal::shortened(&error.to_string()));
    let Version { version } = serde_json::from_slice(frame).map_err(malformed)?;
    if version != PROTOCOL_VERSION {
        return Err(Refusal::Version(version));
    }
    let Envelope { request, .. } = serde_json::from_slice(frame).map_err(malformed)?;
    Ok(request)
}
