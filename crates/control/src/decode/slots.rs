//! What requests about the timetable name, and which of them are the administrator's.

use std::cell::Cell;

use prorata_core::ids::ClientId;
use prorata_core::slots::Mode;
use prorata_core::slots::admission::CLASSES;
use prorata_core::slots::claim::{Account, Caller, Owner, Schedulee, VECTOR};
use prorata_core::slots::reservation::{Onset, Reservation};
use prorata_protocol::slots::{AccountName, Fraction, Runs, SlotRequest, SlotsRequest};

use super::Decoder;
use crate::refusal::Refusal;
use crate::slots::{Call, SlotsCall, Wanted};

/// How far up an asker's client is looked for.
const MOST_ANCESTORS: usize = 32;
/// For so long an asker counts as outside of all clients, unless the engine says otherwise: a look at
/// all its ancestors takes longer than a claim.
const OUTSIDE_NS: u64 = 1_000_000_000;

impl Decoder<'_> {
    pub(super) fn slots(&self, request: &SlotsRequest) -> Result<SlotsCall, Refusal> {
        let call = self.slots_call(request)?;
        let client = self.client_of_asker();
        let user = self.who.uid;
        Ok(SlotsCall {
            caller: Caller {
                owner: Owner { user, client },
                privileged: self.who.acts_for(self.view.host.own_uid()),
            },
            call,
            funding: self.funding_of_user(user),
            groups: self.who.gids.clone(),
            client_name: client
                .and_then(|client| self.ledger().client(client))
                .map(|client| client.name.to_owned()),
        })
    }

    /// The client to which the asker belongs: an engine may not have noticed a young process yet, but
    /// knows its parents.
    fn client_of_asker(&self) -> Option<ClientId> {
        let client = self.view.engine.find(self.asker_pid);
        let now_ns = self.view.host.now_ns();
        let outside_at_ns = self.outside_at_ns.and_then(Cell::get);
        if client.is_some() || outside_at_ns.is_some_and(|at_ns| now_ns < at_ns + OUTSIDE_NS) {
            return client;
        }
        let client = self.client_of_ancestors();
        if let (None, Some(outside_at_ns)) = (client, self.outside_at_ns) {
            outside_at_ns.set(Some(now_ns));
        }
        client
    }

    fn client_of_ancestors(&self) -> Option<ClientId> {
        let mut pid = self.asker_pid;
        for _ in 0..MOST_ANCESTORS {
            if let Some(client) = self.view.engine.find(pid) {
                return Some(client);
            }
            let process = self.view.host.process(pid)?;
            if process.uid != self.who.uid || process.parent == 0 {
                return None;
            }
            pid = process.parent;
        }
        None
    }

    fn slots_call(&self, request: &SlotsRequest) -> Result<Call, Refusal> {
        Ok(match request {
            SlotsRequest::Open {
                columns,
                slot_ns,
                reserve,
                hold,
            } => {
                self.check_daemon_owner("open a timetable")?;
                Call::Open {
                    columns: *columns,
                    slot_ns: *slot_ns,
                    reserve: reservation(*reserve),
                    hold: *hold,
                }
            }
            SlotsRequest::Close => {
                self.check_daemon_owner("close the timetable")?;
                Call::Close
            }
            SlotsRequest::Status => Call::Status,
            SlotsRequest::Claim {
                requests,
                all,
                generation,
            } => Call::Claim {
                wanted: self.wanted(requests)?,
                mode: match all {
                    true => Mode::AllOrNothing,
                    false => Mode::BestEffort,
                },
                generation: *generation,
            },
            SlotsRequest::Free { cells } => Call::Free {
                cells: cells.clone(),
            },
            SlotsRequest::Tokens { account } => Call::Tokens {
                account: account
                    .as_ref()
                    .map(|name| self.account(name))
                    .transpose()?,
            },
            SlotsRequest::SetTokens {
                account,
                level,
                amount,
                weight,
            } => {
                self.check_daemon_owner("set tokens")?;
                Call::SetTokens {
                    account: self.account(account)?,
                    level: *level,
                    amount: *amount,
                    weight: *weight,
                }
            }
            SlotsRequest::Donate { to, level, count } => Call::Donate {
                to: self.account(to)?,
                level: *level,
                count: *count,
            },
            SlotsRequest::Reserve {
                row,
                fraction,
                immediate,
            } => {
                self.check_daemon_owner("reserve slots")?;
                Call::Reserve {
                    row: *row,
                    reservation: reservation(*fraction),
                    onset: match immediate {
                        true => Onset::Immediate,
                        false => Onset::Lazy,
                    },
                }
            }
            SlotsRequest::Admit { policy } => {
                self.check_daemon_owner("give tokens by a policy")?;
                if policy.classes.len() > CLASSES {
                    return Err(Refusal::ManyClasses(policy.classes.len()));
                }
                Call::Admit {
                    policy: policy.clone(),
                }
            }
            SlotsRequest::Watch { freed } => Call::Watch { freed: *freed },
        })
    }

    fn account(&self, name: &AccountName) -> Result<Account, Refusal> {
        Ok(match name {
            AccountName::User(user) => Account::User(self.user(user)?),
            AccountName::Client(client) => Account::Client(self.client(client)?),
        })
    }

    fn wanted(&self, requests: &[SlotRequest]) -> Result<Vec<Wanted>, Refusal> {
        // The core refuses a longer vector; nothing is looked up for it.
        let mut wanted = Vec::new();
        let mut last: Option<(&Runs, Schedulee)> = None;
        for request in requests.iter().take(VECTOR + 1) {
            let schedulee = match last {
                // Most vectors are for one schedulee.
                Some((runs, schedulee)) if *runs == request.runs => schedulee,
                _ => self.schedulee(&request.runs)?,
            };
            last = Some((&request.runs, schedulee));
            wanted.push(Wanted {
                cell: request.cell,
                schedulee,
                level: request.level,
                expires_ns: request.expires_ns,
            });
        }
        Ok(wanted)
    }

    /// A schedulee that this daemon manages, of any user.
    fn schedulee(&self, runs: &Runs) -> Result<Schedulee, Refusal> {
        let managed = |pid| match self.view.engine.find(pid) {
            Some(_) => Ok(()),
            None => Err(Refusal::NotManaged(pid)),
        };
        Ok(match runs {
            Runs::Client(client) => Schedulee::Client(self.client(client)?),
            &Runs::Process(pid) => {
                let process = self.view.host.process(pid);
                let process = process.ok_or(Refusal::NoProcess(pid))?;
                managed(pid)?;
                Schedulee::Process {
                    pid,
                    started: process.id.start_time_ticks,
                }
            }
            &Runs::Thread(tid) => {
                let thread = self.view.host.thread(tid);
                let (pid, started) = thread.ok_or(Refusal::NoThread(tid))?;
                managed(pid)?;
                Schedulee::Thread { tid, started }
            }
        })
    }
}

fn reservation(fraction: Fraction) -> Reservation {
    Reservation {
        numerator: fraction.numerator,
        denominator: fraction.denominator,
    }
}
