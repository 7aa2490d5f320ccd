//! The calls of the thesis (2005, Figures 2.3 and 2.4), over the daemon's socket.

use std::collections::BTreeSet;
use std::path::Path;

use prorata_bulletin::{Reader, Snapshot};
use prorata_core::slots::geometry::Cell;
use prorata_core::slots::level::Level;
use prorata_core::slots::place::View;
use prorata_core::slots::reservation::Reservation;
use prorata_protocol::slots::{
    AccountName, Amount, Fraction, SlotRequest, SlotsAnswer, SlotsReport, SlotsRequest,
    TokensReport,
};
use prorata_protocol::{Connection, DaemonPaths, Request, Response, SlotsWatch};

use crate::error::SlotsError;

/// How often a plan is made anew because the table has changed meanwhile.
const ATTEMPTS: usize = 16;

/// An open timetable: to look at without a call, and to change by calls.
#[derive(Debug)]
pub struct Slots {
    paths: DaemonPaths,
    connection: Connection,
    table: Reader,
}

/// What became of a vector of claims.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Claimed {
    /// The slots that were claimed.
    pub claimed: Vec<Cell>,
    /// The others: place in the vector, and why.
    pub refused: Vec<(usize, String)>,
}

impl Slots {
    /// Connects to the daemon on a socket, or to the one that serves this user.
    ///
    /// # Errors
    ///
    /// If none runs, or if no table is open.
    pub fn open(socket: Option<&Path>) -> Result<Self, SlotsError> {
        let paths = DaemonPaths::to_ask(socket)?;
        let mut connection = Connection::open(&paths.socket)?;
        let report = report(&mut connection)?;
        let table = Reader::open(Path::new(&report.path))?;
        Ok(Self {
            paths,
            connection,
            table,
        })
    }

    /// Connects again, after the daemon has ended.
    pub(crate) fn reopen(&mut self) -> Result<(), SlotsError> {
        *self = Self::open(Some(self.paths.socket.path()))?;
        Ok(())
    }

    /// The table.
    pub fn table(&self) -> &Reader {
        &self.table
    }

    /// What may be claimed at a level, and the generation of the table that this is true of: unclaimed
    /// slots, and those of lower levels. Unclaimed slots that a reservation permits one by one, but
    /// not all together, count as open beside claims of lower levels.
    ///
    /// Cost: a call, for the reservations, and a copy of the claims.
    pub fn view(&mut self, level: Level) -> Result<(View, u64), SlotsError> {
        let report = report(&mut self.connection)?;
        let snapshot = self.table.snapshot().ok_or(SlotsError::Restless)?;
        let unclaimed = self.unclaimed(&report, &snapshot);
        let lower: BTreeSet<Cell> = snapshot
            .claims
            .iter()
            .filter(|claim| claim.level < level && self.table.is_online(claim.cell.row))
            .map(|claim| claim.cell)
            .collect();
        if lower.is_empty() {
            return Ok((unclaimed, snapshot.generation));
        }
        let may_take = |cell| lower.contains(&cell) || unclaimed.is_open(cell);
        let view = View::new(unclaimed.rows(), unclaimed.columns(), may_take);
        Ok((view, snapshot.generation))
    }

    /// What may be claimed without taking a claim from anybody.
    fn unclaimed(&self, report: &SlotsReport, snapshot: &Snapshot) -> View {
        let geometry = self.table.geometry();
        let reservations = report.reservations.iter().map(|fraction| Reservation {
            numerator: fraction.numerator,
            denominator: fraction.denominator,
        });
        let mut view = View::new(geometry.rows(), geometry.columns(), |_| true)
            .with_reservations(reservations.collect());
        snapshot
            .claims
            .iter()
            .for_each(|claim| view.close(claim.cell));
        for row in (0..geometry.rows()).filter(|&row| !self.table.is_online(row)) {
            (0..geometry.columns()).for_each(|column| view.close(Cell { row, column }));
        }
        view
    }

    /// `claim_slots`: claims what it can.
    pub fn claim(&mut self, requests: Vec<SlotRequest>) -> Result<Claimed, SlotsError> {
        self.claim_as(requests, false, None)
    }

    /// Claims all that `plan` chooses at a level, or nothing. The plan is made again if the table changes before
    /// it is claimed; `None` gives up.
    pub fn claim_planned(
        &mut self,
        level: Level,
        mut plan: impl FnMut(&View) -> Option<Vec<SlotRequest>>,
    ) -> Result<Option<Vec<Cell>>, SlotsError> {
        for _ in 0..ATTEMPTS {
            // Nobody is preempted where there is room.
            let (view, generation) = self.view(Level::Background)?;
            let requests = match plan(&view) {
                None => plan(&self.view(level)?.0),
                planned => planned,
            };
            let Some(requests) = requests else {
                return Ok(None);
            };
            match self.claim_as(requests, true, Some(generation)) {
                Ok(claimed) => return Ok(Some(claimed.claimed)),
                // Refused because of a change: look again. Otherwise the refusal stands.
                Err(error) if self.table.generation() == generation => return Err(error),
                Err(_) => {}
            }
        }
        Err(SlotsError::Restless)
    }

    fn claim_as(
        &mut self,
        requests: Vec<SlotRequest>,
        all: bool,
        generation: Option<u64>,
    ) -> Result<Claimed, SlotsError> {
        let request = SlotsRequest::Claim {
            requests,
            all,
            generation,
        };
        match ask(&mut self.connection, request)? {
            SlotsAnswer::Claimed {
                claimed, refused, ..
            } => Ok(Claimed { claimed, refused }),
            other => Err(unexpected(&other)),
        }
    }

    /// `free_slots`. Returns those that were not freed: others', and unclaimed ones.
    pub fn free(&mut self, cells: Vec<Cell>) -> Result<Vec<Cell>, SlotsError> {
        match ask(&mut self.connection, SlotsRequest::Free { cells })? {
            SlotsAnswer::Freed { kept } => Ok(kept),
            other => Err(unexpected(&other)),
        }
    }

    /// `get_tokens`: of an account, or of the one that pays for this process's claims.
    pub fn tokens(&mut self, account: Option<AccountName>) -> Result<TokensReport, SlotsError> {
        match ask(&mut self.connection, SlotsRequest::Tokens { account })? {
            SlotsAnswer::Tokens(report) => Ok(report),
            other => Err(unexpected(&other)),
        }
    }

    /// `set_tokens`, for the daemon's owner.
    pub fn set_tokens(
        &mut self,
        account: AccountName,
        level: Level,
        amount: Amount,
        weight: Option<u32>,
    ) -> Result<TokensReport, SlotsError> {
        let request = SlotsRequest::SetTokens {
            account,
            level,
            amount,
            weight,
        };
        match ask(&mut self.connection, request)? {
            SlotsAnswer::Tokens(report) => Ok(report),
            other => Err(unexpected(&other)),
        }
    }

    /// `reserve_slots`, for the daemon's owner: on one row or all. Returns how many claims were
    /// revoked.
    pub fn reserve(
        &mut self,
        row: Option<u32>,
        fraction: Fraction,
        immediate: bool,
    ) -> Result<usize, SlotsError> {
        let request = SlotsRequest::Reserve {
            row,
            fraction,
            immediate,
        };
        match ask(&mut self.connection, request)? {
            SlotsAnswer::Reserved { revoked } => Ok(revoked),
            other => Err(unexpected(&other)),
        }
    }

    /// `donate_tokens`: returns how many moved, which are fewer if there were no more.
    pub fn donate(&mut self, to: AccountName, level: Level, count: u32) -> Result<u64, SlotsError> {
        match ask(
            &mut self.connection,
            SlotsRequest::Donate { to, level, count },
        )? {
            SlotsAnswer::Donated { moved } => Ok(moved),
            other => Err(unexpected(&other)),
        }
    }

    /// News of this user's claims, and with `freed` of slots that become free, by a connection of
    /// their own. News of before this call are not told.
    pub fn watch(&self, freed: bool) -> Result<SlotsWatch, SlotsError> {
        Ok(Connection::open(&self.paths.socket)?.watch_slots(freed)?)
    }
}

fn report(connection: &mut Connection) -> Result<SlotsReport, SlotsError> {
    match ask(connection, SlotsRequest::Status)? {
        SlotsAnswer::Open(report) => Ok(report),
        other => Err(unexpected(&other)),
    }
}

fn ask(connection: &mut Connection, request: SlotsRequest) -> Result<SlotsAnswer, SlotsError> {
    match connection.call(&Request::Slots(request))? {
        Response::Slots(answer) => Ok(answer),
        Response::Refused { message } | Response::NotKept { message } => {
            Err(SlotsError::Refused(message))
        }
        other => Err(malformed(&format!("{other:?}"))),
    }
}

fn unexpected(answer: &SlotsAnswer) -> SlotsError {
    malformed(&format!("{answer:?}"))
}

fn malformed(text: &str) -> SlotsError {
    prorata_protocol::ConnectError::Malformed(text.into()).into()
}
