//! The state that a daemon keeps, and its changes.
//!
//! The journal keeps each [`Change`]. Replaying the same changes on the same
//! [`State`] gives the same state, identifiers included.

use std::collections::{BTreeMap, BTreeSet};

use prorata_core::hybrid::Mechanisms;
use prorata_core::ids::{ClientId, TransferId};
use prorata_core::ledger::{Ledger, LedgerError, Limits, Operation, Outcome, Principal};
use prorata_core::slots::admission::{Grant, Policy};
use prorata_core::slots::claim::Account;
use prorata_core::slots::image::Deed;
use prorata_protocol::{EngineChoice, HybridChoice, PolicyName};
use serde::{Deserialize, Serialize};

use crate::process::ProcessId;
use crate::slots::KeptTable;

/// Shortest quantum that an engine enforces.
pub(crate) const MIN_QUANTUM_NS: u64 = 1_000_000;

/// Longest quantum.
pub(crate) const MAX_QUANTUM_NS: u64 = 1_000_000_000;

/// Limits of a daemon's ledger: far more than one machine runs, and few enough
/// for every answer to fit in a frame.
pub(crate) const LIMITS: Limits = Limits {
    currencies: 1 << 12,
    tickets: 1 << 16,
    clients: 1 << 14,
    transfers: 1 << 12,
    depth: 16,
    lending_depth: 16,
    receivers: 64,
    name_bytes: 64,
};

/// How decisions are made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// From [`MIN_QUANTUM_NS`] to [`MAX_QUANTUM_NS`].
    pub quantum_ns: u64,
    pub policy: PolicyName,
    /// The mechanisms of hybrid lottery scheduling where the engine follows the dispatcher, if a
    /// user chose some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hybrid: Option<HybridChoice>,
    /// The engine of this daemon and the next, if a user chose one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineChoice>,
    /// The CPUs that they share out, if a user chose some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<u32>>,
    /// Whether the daemon stays without clients until it is stopped, or until
    /// the machine boots.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
    /// Whether what users run without a request is a client of each.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub users: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            quantum_ns: 20_000_000,
            policy: PolicyName::default(),
            hybrid: None,
            engine: None,
            cpus: None,
            stays: false,
            users: false,
        }
    }
}

impl Settings {
    /// The mechanisms for an engine that follows the dispatcher.
    pub fn mechanisms(&self) -> Mechanisms {
        self.hybrid.unwrap_or_default().into()
    }
}

/// One step from a state to the next.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Change {
    /// An operation on the ledger. Its permissions were checked when it was
    /// requested.
    Ledger(Operation),
    /// The processes from which the client's other processes descend.
    Roots {
        /// A client of the ledger.
        client: ClientId,
        /// Not empty.
        roots: Vec<ProcessId>,
    },
    /// The process that inherits the client's orphans.
    Adopter {
        /// A client of the ledger.
        client: ClientId,
        /// Parent of its first root.
        parent: ProcessId,
    },
    /// The client's own quantum, or none from now on.
    Quantum {
        /// A client of the ledger.
        client: ClientId,
        /// From [`MIN_QUANTUM_NS`] to [`MAX_QUANTUM_NS`].
        quantum_ns: Option<u64>,
    },
    /// The client's user stopped it.
    Suspend(ClientId),
    /// The client's user continued it.
    Resume(ClientId),
    /// The client that has what this user runs without a request.
    Rest {
        /// The user.
        user: u32,
        /// A client of the ledger.
        client: ClientId,
    },
    /// Base tickets behind the currency of a user whenever it is made.
    Funding {
        /// The user.
        user: u32,
        /// Any number.
        amount: u32,
    },
    /// The transfer of the operation before this one ends with the connection
    /// that requested it.
    Hold,
    /// The settings from now on.
    Configure(Settings),
    /// The timetable from now on, or none.
    Timetable(Option<Box<KeptTable>>),
    /// Changes of the open timetable.
    Slots(Vec<Deed>),
    /// The policy that gives tokens from now on.
    Admission(Policy),
    /// Tokens that it gave.
    Granted(Vec<Grant>),
}

/// A ledger and what the daemon knows beside it.
///
/// No client of this ledger is ever active. Requests are decoded against it
/// without holding up the engine, which has a copy that follows in its
/// dispatcher.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    pub ledger: Ledger,
    /// Every client of the ledger that was registered completely, with the
    /// processes from which its others descend.
    #[serde(with = "pairs")]
    pub roots: BTreeMap<ClientId, Vec<ProcessId>>,
    /// The process that inherits a client's orphans, if there is one.
    #[serde(with = "pairs")]
    pub adopters: BTreeMap<ClientId, ProcessId>,
    /// The quanta of clients that have their own.
    #[serde(with = "pairs")]
    pub quanta_ns: BTreeMap<ClientId, u64>,
    /// Clients that their users have stopped.
    pub suspended: BTreeSet<ClientId>,
    /// The clients that have what users run without a request, by user.
    #[serde(default, with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    pub rests: BTreeMap<u32, ClientId>,
    /// Base tickets that were set for the currencies of users.
    #[serde(default, with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    pub fundings: BTreeMap<u32, u32>,
    /// Transfers of the ledger that end with a connection.
    pub held: BTreeSet<TransferId>,
    pub settings: Settings,
    /// The open timetable, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timetable: Option<Box<KeptTable>>,
    /// The transfer that the last operation started.
    #[serde(skip)]
    last_transfer: Option<TransferId>,
}

impl State {
    /// Nothing but a base currency, which belongs to `owner` and `group`.
    pub fn new(owner: u32, group: u32) -> Self {
        Self {
            ledger: Ledger::with_base_owner(LIMITS, owner, group),
            roots: BTreeMap::new(),
            adopters: BTreeMap::new(),
            quanta_ns: BTreeMap::new(),
            suspended: BTreeSet::new(),
            rests: BTreeMap::new(),
            fundings: BTreeMap::new(),
            held: BTreeSet::new(),
            settings: Settings::default(),
            timetable: None,
            last_transfer: None,
        }
    }

    /// Takes one step. A change fails only if it comes from a journal with
    /// unnoticed damage or from another version.
    pub fn apply(&mut self, change: &Change) -> Result<Outcome, LedgerError> {
        match change {
            Change::Ledger(operation) => {
                let outcome = self.ledger.execute(&Principal::ROOT, operation.clone())?;
                self.last_transfer = match outcome {
                    Outcome::Transfer(transfer) => Some(transfer),
                    _ => None,
                };
                self.forget_what_ended(operation);
                return Ok(outcome);
            }
            Change::Roots { client, roots } => {
                self.known(*client)?;
                self.roots.insert(*client, roots.clone());
            }
            Change::Adopter { client, parent } => {
                self.known(*client)?;
                self.adopters.insert(*client, *parent);
            }
            Change::Quantum { client, quantum_ns } => {
                self.known(*client)?;
                match quantum_ns {
                    Some(quantum_ns) => self.quanta_ns.insert(*client, *quantum_ns),
                    None => self.quanta_ns.remove(client),
                };
            }
            Change::Suspend(client) => {
                self.known(*client)?;
                self.suspended.insert(*client);
            }
            Change::Resume(client) => {
                self.suspended.remove(client);
            }
            Change::Rest { user, client } => {
                self.known(*client)?;
                self.rests.insert(*user, *client);
            }
            Change::Funding { user, amount } => {
                self.fundings.insert(*user, *amount);
            }
            Change::Hold => self.held.extend(self.last_transfer.take()),
            Change::Configure(settings) => self.settings.clone_from(settings),
            Change::Timetable(timetable) => self.timetable.clone_from(timetable),
            Change::Slots(_) | Change::Admission(_) | Change::Granted(_) => {
                if let Some(timetable) = &mut self.timetable {
                    match change {
                        Change::Slots(deeds) => timetable.apply(deeds),
                        Change::Admission(policy) => timetable.admit(policy),
                        Change::Granted(grants) => timetable.grant(grants),
                        _ => {}
                    }
                }
            }
        }
        Ok(Outcome::Done)
    }

    /// Whether this client has what a user runs without a request.
    pub fn is_rest(&self, client: ClientId) -> bool {
        self.rests.values().any(|rest| *rest == client)
    }

    fn known(&self, client: ClientId) -> Result<(), LedgerError> {
        self.ledger
            .client(client)
            .map(drop)
            .ok_or(LedgerError::UnknownClient(client))
    }

    fn forget_what_ended(&mut self, operation: &Operation) {
        if let Operation::DestroyClient { client } = operation {
            self.roots.remove(client);
            self.adopters.remove(client);
            self.quanta_ns.remove(client);
            self.suspended.remove(client);
            if let Some(timetable) = &mut self.timetable {
                timetable.forget(Account::Client(*client));
            }
            self.rests.retain(|_, rest| rest != client);
        }
        if !matches!(operation, Operation::Transfer { .. }) && !self.held.is_empty() {
            let ledger = &self.ledger;
            self.held
                .retain(|transfer| ledger.transfer(*transfer).is_some());
        }
    }
}

/// Maps with keys that are no strings, as lists of pairs.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<K, V, S>(map: &BTreeMap<K, V>, serializer: S) -> Result<S::Ok, S::Error>
    where
        K: Serialize,
        V: Serialize,
        S: Serializer,
    {
        serializer.collect_seq(map)
    }

    pub fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Vec::deserialize(deserializer).map(BTreeMap::from_iter)
    }
}
