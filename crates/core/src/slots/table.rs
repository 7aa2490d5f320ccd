//! The claims as decided, with the orders in which they are looked for.
//!
//! Each look-up and each change costs at most the logarithm of the number of claims.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use super::claim::{Claim, Schedulee};
use super::expiry::Expiries;
use super::geometry::{Cell, Geometry};
use super::row_set::RowSet;
use super::schedulees::Schedulees;
use super::word::{Word, expiry_period};
use crate::ids::ClientId;

/// The claims of a table.
#[derive(Clone, Debug)]
pub struct Table {
    geometry: Geometry,
    claims: Vec<Option<Claim>>,
    claimed: usize,
    pub(crate) rows: Vec<RowSet>,
    pub(crate) schedulees: Schedulees,
    pub(crate) expiries: Expiries,
    /// Claims of clients, of whichever user.
    clients: BTreeSet<(ClientId, usize)>,
    runs: BTreeSet<(Schedulee, usize)>,
    /// Threads by column: a thread runs on one CPU at a time.
    threads: BTreeSet<(Schedulee, u32)>,
}

impl Table {
    pub(crate) fn new(geometry: Geometry) -> Self {
        Self {
            geometry,
            claims: vec![None; geometry.cells()],
            claimed: 0,
            rows: vec![RowSet::new(geometry.columns()); geometry.rows() as usize],
            schedulees: Schedulees::default(),
            expiries: Expiries::default(),
            clients: BTreeSet::new(),
            runs: BTreeSet::new(),
            threads: BTreeSet::new(),
        }
    }

    /// The table's shape.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The number of claimed slots.
    pub fn claimed(&self) -> usize {
        self.claimed
    }

    /// The claim of a cell; none outside the table.
    pub fn get(&self, cell: Cell) -> Option<&Claim> {
        self.claims[self.geometry.index(cell).ok()?].as_ref()
    }

    /// The claims, row by row.
    pub fn claims(&self) -> impl Iterator<Item = (Cell, &Claim)> {
        self.claims
            .iter()
            .enumerate()
            .filter_map(|(index, claim)| Some((self.geometry.cell(index), claim.as_ref()?)))
    }

    pub(crate) fn at_index(&self, index: usize) -> Option<Claim> {
        self.claims[index]
    }

    pub(crate) fn thread_runs(&self, thread: Schedulee, column: u32) -> bool {
        self.threads.contains(&(thread, column))
    }

    /// The first cell of a client that is an owner, of whichever user.
    pub(crate) fn of_client(&self, client: ClientId) -> Option<usize> {
        let all = (client, 0)..=(client, usize::MAX);
        self.clients.range(all).next().map(|&(_, index)| index)
    }

    pub(crate) fn of_schedulee(&self, schedulee: Schedulee) -> Option<usize> {
        let all = (schedulee, 0)..=(schedulee, usize::MAX);
        self.runs.range(all).next().map(|&(_, index)| index)
    }

    /// Puts a claim, or none, in place of what was there.
    pub(crate) fn put(&mut self, index: usize, new: Option<Claim>) {
        let cell = self.geometry.cell(index);
        if let Some(old) = self.claims[index] {
            self.claimed -= 1;
            if let Some(client) = old.owner.client {
                self.clients.remove(&(client, index));
            }
            self.runs.remove(&(old.schedulee, index));
            self.threads.remove(&(old.schedulee, cell.column));
            if let Some(expires) = old.expires {
                self.expiries.remove(expires, index);
            }
        }
        if let Some(new) = new {
            self.claimed += 1;
            self.schedulees.hold(new.schedulee);
            if let Some(client) = new.owner.client {
                self.clients.insert((client, index));
            }
            self.runs.insert((new.schedulee, index));
            if matches!(new.schedulee, Schedulee::Thread { .. }) {
                self.threads.insert((new.schedulee, cell.column));
            }
            if let Some(expires) = new.expires {
                self.expiries.add(expires, index);
            }
        }
        if let Some(old) = core::mem::replace(&mut self.claims[index], new) {
            self.schedulees.release(&old.schedulee);
        }
        self.rows[cell.row as usize].set(cell.column, new.is_some());
    }

    /// The word of a cell.
    pub(crate) fn word(&self, index: usize) -> u64 {
        let Some(claim) = &self.claims[index] else {
            return 0;
        };
        let (cell, columns) = (self.geometry.cell(index), self.geometry.columns());
        let row = &self.rows[cell.row as usize];
        let next = row.next((cell.column + 1) % columns).unwrap_or(cell.column);
        let distance = (next + columns - cell.column - 1) % columns + 1;
        let expiry = claim
            .expires
            .and_then(|expires| expiry_period(expires, cell.column, columns));
        Word {
            schedulee: self.schedulees.number(&claim.schedulee).unwrap_or(0),
            distance,
            expiry: expiry.unwrap_or(0),
        }
        .pack()
    }
}
