//! How the daemon serves requests about the timetable, and what becomes of it without requests.

use std::io;
use std::time::Duration;

use prorata_bulletin::Reader;
use prorata_core::cpu_list;
use prorata_core::ids::ClientId;
use prorata_core::slots::admission::Applicant;
use prorata_core::slots::claim::{Account, Owner, Schedulee};
use prorata_core::slots::error::SlotError;
use prorata_core::slots::geometry::Geometry;
use prorata_core::slots::level::Level;
use prorata_core::slots::reservation::Reservation;
use prorata_protocol::slots::{
    Fraction, LevelReport, SlotsAnswer, SlotsNews, SlotsReport, TokensReport,
};

use super::call::{Call, SlotsCall};
use super::kept::KeptTable;
use super::news::{Audience, News};
use super::open::{Done, Draft, Ends, OpenTable};
use crate::control::Control;
use crate::refusal::Refusal;
use crate::state::Change;

impl Control {
    /// Carries out a decoded call.
    pub(crate) fn serve_slots(&mut self, call: &SlotsCall) -> Result<SlotsAnswer, Refusal> {
        match call.call {
            Call::Open {
                columns,
                slot_ns,
                reserve,
                hold,
            } => {
                self.open_slots(columns, slot_ns, reserve, hold)?;
                self.slots_report()
            }
            Call::Close => {
                self.slots_report()?;
                self.commit_timetable(None)?;
                self.close_slots();
                Ok(SlotsAnswer::News(SlotsNews::Closed))
            }
            Call::Admit { ref policy } => {
                self.slots_report()?;
                self.keep(&[Change::Admission(policy.clone())])?;
                Ok(SlotsAnswer::Admitted)
            }
            Call::Status | Call::Watch { .. } => self.slots_report(),
            _ => self.call_slots(call),
        }
    }

    fn call_slots(&mut self, call: &SlotsCall) -> Result<SlotsAnswer, Refusal> {
        self.admit(call)?;
        let now_ns = self.host.now_ns();
        let open = self.slots.open.as_mut().ok_or(Refusal::NoTimetable)?;
        let kept = self.state.timetable.as_ref().ok_or(Refusal::NoTimetable)?;
        let done = if call.call.may_last() {
            let draft = open.decide(call, &kept.image, now_ns);
            let draft = draft.map_err(|error| self.refusal_of(error))?;
            self.make_last(draft, None)?
        } else {
            let called = open.call(call, now_ns);
            let (done, ends) = called.map_err(|error| self.refusal_of(error))?;
            self.tell_ends(ends);
            done
        };
        Ok(self.answer_slots(done))
    }

    /// Keeps what a draft decides, with another change, and makes it known.
    fn make_last(&mut self, mut draft: Draft, beside: Option<Change>) -> Result<Done, Refusal> {
        let deeds = std::mem::take(&mut draft.deeds);
        let deeds = (!deeds.is_empty()).then_some(Change::Slots(deeds));
        let changes: Vec<Change> = deeds.into_iter().chain(beside).collect();
        if !changes.is_empty() {
            self.keep(&changes)?;
        }
        let open = self.slots.open.as_mut().ok_or(Refusal::NoTimetable)?;
        let (done, ends) = open.commit(draft, self.host.now_ns());
        self.tell_ends(ends);
        Ok(done)
    }

    /// Gives the caller the tokens that the policy has for it, if it has not got them yet.
    fn admit(&mut self, call: &SlotsCall) -> Result<(), Refusal> {
        let kept = self.state.timetable.as_ref().ok_or(Refusal::NoTimetable)?;
        let applicant = Applicant {
            owner: call.caller.owner,
            groups: &call.groups,
            client_name: call.client_name.as_deref(),
        };
        // Most tables have no policy.
        if kept.policy.classes.is_empty() {
            return Ok(());
        }
        let grants = kept.granted().decide(&kept.policy, &applicant);
        if grants.is_empty() {
            return Ok(());
        }
        let now_ns = self.host.now_ns();
        let open = self.slots.open.as_mut().ok_or(Refusal::NoTimetable)?;
        let draft = open.decide_grants(&grants, &kept.image, now_ns)?;
        self.make_last(draft, Some(Change::Granted(grants)))
            .map(drop)
    }

    /// Opens a table, or gives the open one another shape while nothing is claimed.
    fn open_slots(
        &mut self,
        columns: u32,
        slot_ns: u64,
        reserve: Reservation,
        held: bool,
    ) -> Result<(), Refusal> {
        if let Some(open) = &self.slots.open
            && open.table().table().claimed() > 0
        {
            return Err(Refusal::ClaimedTimetable(open.table().table().claimed()));
        }
        let cpus = self.engine.status().cpus;
        let geometry = Geometry::new(cpus.len() as u32, columns, slot_ns, self.host.now_ns())?;
        let image = OpenTable::image(geometry, reserve)?;
        let mut kept = KeptTable::new(cpus, image);
        kept.held = held;
        let before = self.state.timetable.clone();
        self.commit_timetable(Some(Box::new(kept.clone())))?;
        match self.show_slots(&kept) {
            Ok(open) => self.begin_slots(open),
            Err(refusal) => {
                self.happened(&[Change::Timetable(before)]);
                return Err(refusal);
            }
        }
        Ok(())
    }

    fn show_slots(&self, kept: &KeptTable) -> Result<OpenTable, Refusal> {
        let path = &self.slots.path;
        OpenTable::open(kept, path, self.host.now_ns()).map_err(|source| Refusal::Bulletin {
            path: path.clone(),
            source,
        })
    }

    fn commit_timetable(&mut self, kept: Option<Box<KeptTable>>) -> Result<(), Refusal> {
        self.keep(&[Change::Timetable(kept)]).map(drop)
    }

    /// Puts an open table in the place of any other, and tells the engine.
    fn begin_slots(&mut self, mut open: OpenTable) {
        let table = Reader::open(&self.slots.path).map_err(io::Error::other);
        let enforced = table
            .map_err(Into::into)
            .and_then(|table| self.engine.enforce_slots(Some(table)));
        open.enforcement = enforced.map(str::to_owned).map_err(|error| {
            tracing::warn!("slots are not enforced: {error}");
            error.to_string()
        });
        // The file of the old one has gone already: the new one has its name.
        if let Some(old) = self.slots.open.replace(open) {
            old.give_way();
            self.slots.tell([News {
                audience: Audience::All,
                news: SlotsNews::Closed,
            }]);
        }
        self.slots.opened += 1;
        self.advance_slots();
    }

    /// Opens the table that an earlier daemon of this boot had. A table for other CPUs is closed.
    pub(crate) fn open_slots_again(&mut self) {
        let Some(kept) = self.state.timetable.clone() else {
            // A killed daemon leaves the file of a table that a connection held.
            let _ = std::fs::remove_file(&self.slots.path);
            return;
        };
        let cpus = self.engine.status().cpus;
        if kept.cpus != cpus {
            tracing::warn!(
                "the timetable is closed: it is for the CPUs {:?}",
                kept.cpus
            );
            self.happened(&[Change::Timetable(None)]);
            return;
        }
        match self.show_slots(&kept) {
            Ok(open) => self.begin_slots(open),
            Err(error) => {
                tracing::warn!("the timetable is closed: {error}");
                self.happened(&[Change::Timetable(None)]);
                return;
            }
        }
        for client in kept.image.clients() {
            if self.state.ledger.client(client).is_none() {
                self.end_slots_of(client);
            }
        }
    }

    /// Closes the table, if one is open.
    pub(crate) fn close_slots(&mut self) {
        if self.slots.open.take().is_some() {
            if let Err(error) = self.engine.enforce_slots(None) {
                tracing::warn!("the engine goes on with slots: {error}");
            }
            self.slots.tell([News {
                audience: Audience::All,
                news: SlotsNews::Closed,
            }]);
        }
    }

    /// How long to wait for the next call of [`Control::advance_slots`].
    pub(crate) fn slots_wait(&self) -> Option<Duration> {
        let wakes_at_ns = self.slots.open.as_ref()?.wakes_at_ns();
        let wait_ns = wakes_at_ns.saturating_sub(self.host.now_ns());
        Some(Duration::from_nanos(wait_ns))
    }

    /// Lets time pass: claims expire, and once a second processes and CPUs are looked at.
    pub(crate) fn advance_slots(&mut self) {
        let now_ns = self.host.now_ns();
        let Some(open) = self.slots.open.as_mut() else {
            return;
        };
        let mut all = vec![open.advance(now_ns)];
        if open.looks(now_ns) {
            let host = self.host.as_ref();
            let dead = open.schedulees().into_iter();
            let dead: Vec<_> = dead.filter(|&schedulee| !lives(host, schedulee)).collect();
            // Looking takes time, and changes come into force after they are decided.
            all.push(open.end_schedulees(&dead, host.now_ns()));
            let online = host.text("/sys/devices/system/cpu/online");
            // A machine that does not tell has them all.
            if let Ok(online) = cpu_list::parse(&online)
                && !online.is_empty()
            {
                open.set_online(|cpu| online.contains(&cpu));
            }
        }
        all.into_iter().for_each(|ends| self.tell_ends(ends));
    }

    /// A client has ended, with its claims and tokens.
    pub(crate) fn end_slots_of(&mut self, client: ClientId) {
        let now_ns = self.host.now_ns();
        if let Some(open) = &mut self.slots.open {
            let ends = open.end_client(client, now_ns);
            self.tell_ends(ends);
        }
    }

    fn tell_ends(&mut self, ends: Ends) {
        let name_of = |owner: Owner| self.owner_name(owner);
        let client_name = |id: ClientId| match self.state.ledger.client(id) {
            Some(client) => client.name.to_owned(),
            None => id.to_string(),
        };
        let ended: Vec<News> = ends
            .notices
            .iter()
            .map(|notice| News::ended(notice, &name_of, &client_name))
            .collect();
        self.slots
            .tell(ended.into_iter().chain(News::freed(ends.freed)));
    }

    fn owner_name(&self, owner: Owner) -> String {
        match owner.client {
            Some(client) => self.account_name(Account::Client(client)),
            None => self.account_name(Account::User(owner.user)),
        }
    }

    fn account_name(&self, account: Account) -> String {
        let (kind, name) = self.account_words(account);
        format!("{kind} {name}")
    }

    /// The kind of an account, and its name.
    fn account_words(&self, account: Account) -> (&'static str, String) {
        match account {
            Account::User(user) => match self.host.account_of(user) {
                Some(account) => ("user", account.name),
                None => ("user", user.to_string()),
            },
            Account::Client(client) => match self.state.ledger.client(client) {
                Some(client) => ("client", client.name.to_string()),
                None => ("client", client.to_string()),
            },
        }
    }

    /// The same reason with the names and commands of the daemon.
    fn refusal_of(&self, error: SlotError) -> Refusal {
        match error {
            SlotError::NoToken { account, level } => {
                let (kind, name) = self.account_words(account);
                Refusal::NoToken {
                    level,
                    account: format!("{kind} {name}"),
                    word: format!("{kind}:{name}"),
                }
            }
            error => error.into(),
        }
    }

    fn answer_slots(&self, done: Done) -> SlotsAnswer {
        match done {
            Done::Claimed(claimed) => {
                let open = self.slots.open.as_ref();
                let refused = claimed.refused.into_iter();
                SlotsAnswer::Claimed {
                    generation: open.map_or(0, |open| open.table().generation()),
                    claimed: claimed.claimed.iter().map(|request| request.cell).collect(),
                    refused: refused
                        .map(|(place, error)| (place, self.refusal_of(error).to_string()))
                        .collect(),
                }
            }
            Done::Freed(kept) => SlotsAnswer::Freed { kept },
            Done::Tokens(account, tokens) => {
                let levels = Level::ALL.iter().zip(tokens);
                SlotsAnswer::Tokens(TokensReport {
                    account: self.account_name(account),
                    levels: levels
                        .map(|(&level, tokens)| LevelReport {
                            level,
                            free: tokens.count,
                            spent: tokens.spent,
                            weight: tokens.weight,
                        })
                        .collect(),
                })
            }
            Done::Granted => SlotsAnswer::Admitted,
            Done::Donated(moved) => SlotsAnswer::Donated { moved },
            Done::Reserved(revoked) => SlotsAnswer::Reserved { revoked },
        }
    }

    fn slots_report(&self) -> Result<SlotsAnswer, Refusal> {
        let open = self.slots.open.as_ref().ok_or(Refusal::NoTimetable)?;
        let (table, geometry) = (open.table(), open.table().geometry());
        let reservations = (0..geometry.rows()).filter_map(|row| table.reservation(row));
        let reservations = reservations.map(|reservation| Fraction {
            numerator: reservation.numerator,
            denominator: reservation.denominator,
        });
        Ok(SlotsAnswer::Open(SlotsReport {
            path: self.slots.path.display().to_string(),
            cpus: open.cpus.clone(),
            columns: geometry.columns(),
            slot_ns: geometry.slot_ns(),
            claimed: table.table().claimed(),
            generation: table.generation(),
            reservations: reservations.collect(),
            mechanism: open.enforcement.as_ref().ok().cloned(),
            trouble: open.enforcement.as_ref().err().cloned(),
            rows: self.engine.slot_rows(),
        }))
    }
}

fn lives(host: &dyn crate::host::Host, schedulee: Schedulee) -> bool {
    match schedulee {
        // Its end is told.
        Schedulee::Client(_) => true,
        Schedulee::Process { pid, started } => host
            .process(pid)
            .is_some_and(|process| process.id.start_time_ticks == started),
        Schedulee::Thread { tid, started } => host
            .thread(tid)
            .is_some_and(|(_, thread_started)| thread_started == started),
    }
}
