//! The content of `top`, and the actions of its keys.

use std::time::{Duration, Instant};

use anyhow::Result;
use prorata_protocol::{ClientReport, Connection, Funding, Request};
use prorata_report::bar::share_bar;
use prorata_report::table::{Side, Table};

use super::super::clients::{MAX, NO_CLIENTS, TURNS_COLUMNS, hybrid_columns, max, state};
use super::super::tickets::tickets;
use super::keys::Key;
use crate::caller::{clients, tell};
use crate::sentence::sentence;
use crate::terminal::{selected, size};
use crate::{output, shares};

const BAR_COLUMNS: usize = 24;

/// The column that rows are sorted by.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum SortKey {
    #[default]
    Share,
    Received,
    Error,
    Name,
}

impl SortKey {
    fn next(self) -> Self {
        match self {
            SortKey::Share => SortKey::Received,
            SortKey::Received => SortKey::Error,
            SortKey::Error => SortKey::Name,
            SortKey::Name => SortKey::Share,
        }
    }

    fn name(self) -> &'static str {
        match self {
            SortKey::Share => "specified share",
            SortKey::Received => "received share",
            SortKey::Error => "error",
            SortKey::Name => "name",
        }
    }
}

/// A client and its measures between the last two samples.
#[derive(Debug)]
struct Row {
    client: ClientReport,
    received: f64,
    /// 1 is one CPU.
    cpu_use: f64,
}

/// Columns that are left out where the terminal is too narrow, the first ones first.
const LESS: [&str; 10] = [
    "NICE",
    "BOOST",
    "LEAD",
    "TURNS",
    "MOVES",
    "WAIT 50 %",
    "WAIT 99 %",
    BAR,
    "VALUE",
    "SPECIFIED",
];

/// The place of the column of limits, after the CPU use.
const MAX_PLACE: usize = 7;

/// Heading of the bars.
const BAR: &str = "";

/// The content of the screen.
#[derive(Default, Debug)]
pub struct TopView {
    rows: Vec<Row>,
    /// When the last sample was taken.
    sampled: Option<Instant>,
    /// The quantum of clients without one of their own.
    common_quantum_ns: u64,
    order: SortKey,
    reversed: bool,
    /// Identifier of the selected client.
    selected: Option<String>,
    /// The result of the last key.
    message: String,
}

impl TopView {
    /// Nothing yet. Clients without a quantum of their own have this one.
    pub fn new(common_quantum_ns: u64) -> Self {
        Self {
            common_quantum_ns,
            ..Self::default()
        }
    }

    /// Shows a new sample of the clients.
    pub fn sample(&mut self, clients: Vec<ClientReport>) {
        let before: Vec<ClientReport> = self.rows.drain(..).map(|row| row.client).collect();
        let received = shares::received(&before, &clients);
        let now = Instant::now();
        let time = self.sampled.map_or(Duration::ZERO, |before| now - before);
        let cpu_use = shares::cpu_use(&before, &clients, time);
        self.sampled = Some(now);
        let measures = received.into_iter().zip(cpu_use);
        self.rows = clients
            .into_iter()
            .zip(measures)
            .map(|(client, (received, cpu_use))| Row {
                client,
                received,
                cpu_use,
            })
            .collect();
        self.sort();
    }

    fn sort(&mut self) {
        let order = self.order;
        self.rows.sort_by(|a_row, b_row| {
            let (a, b) = (&a_row.client, &b_row.client);
            let by_order = match order {
                SortKey::Share => b.share.total_cmp(&a.share),
                SortKey::Received => b_row.received.total_cmp(&a_row.received),
                SortKey::Error => b.error_quanta.abs().total_cmp(&a.error_quanta.abs()),
                SortKey::Name => a.name.cmp(&b.name),
            };
            by_order.then_with(|| a.id.cmp(&b.id))
        });
        if self.reversed {
            self.rows.reverse();
        }
    }

    /// The row of the selected client. The first row if no client is selected or
    /// the selected client is gone.
    fn selected_row(&self) -> usize {
        self.rows
            .iter()
            .position(|row| Some(&row.client.id) == self.selected.as_ref())
            .unwrap_or(0)
    }

    /// Performs a key's action; returns whether to quit.
    pub fn press(&mut self, key: Key, connection: &mut Connection) -> Result<bool> {
        self.message.clear();
        match key {
            Key::Quit => return Ok(true),
            Key::Up => self.select(self.selected_row().saturating_sub(1)),
            Key::Down => self.select(self.selected_row() + 1),
            Key::Inflate => self.change(inflated, connection)?,
            Key::Deflate => self.change(deflated, connection)?,
            Key::Sort => self.order = self.order.next(),
            Key::Reverse => self.reversed = !self.reversed,
        }
        self.sort();
        Ok(false)
    }

    fn select(&mut self, row: usize) {
        let row = row.min(self.rows.len().saturating_sub(1));
        self.selected = self.rows.get(row).map(|row| row.client.id.clone());
    }

    /// Changes the selected client's tickets in the first of its currencies.
    /// Includes tickets that the client has lent, and excludes those lent to it.
    fn change(&mut self, by: fn(u32) -> u32, connection: &mut Connection) -> Result<()> {
        let row = self.selected_row();
        self.select(row);
        let Some(Row { client, .. }) = self.rows.get(row) else {
            return Ok(());
        };
        let target = format!("client:{}", client.name);
        let mut own = tickets(connection, None)?;
        own.retain(|ticket| ticket.target.as_ref() == Some(&target) && ticket.transfer.is_none());
        let Some(currency) = own.first().map(|ticket| ticket.currency.clone()) else {
            self.message = format!(
                "{} holds no tickets: give it some with `prorata set`",
                client.name
            );
            return Ok(());
        };
        let held = own.iter().filter(|ticket| ticket.currency == currency);
        let amount = held.fold(0_u32, |sum, ticket| {
            sum.saturating_add(ticket.amount.saturating_add(ticket.lent))
        });
        let success = format!("{} now holds {}.{currency}", client.name, by(amount));
        let funding = Funding {
            amount: by(amount),
            currency: Some(currency),
        };
        let done = tell(
            connection,
            &Request::SetTickets {
                client: client.id.clone(),
                funding,
            },
        );
        self.message = done.map_or_else(|error| sentence(&error), |()| success);
        self.refresh(clients(connection)?);
        Ok(())
    }

    /// Shows the new state of the clients. Keeps the measures, because the time
    /// since the last sample is too short for new ones.
    fn refresh(&mut self, clients: Vec<ClientReport>) {
        let old = std::mem::take(&mut self.rows);
        let measures = |id: &str| {
            let row = old.iter().find(|row| row.client.id == id);
            row.map_or((0.0, 0.0), |row| (row.received, row.cpu_use))
        };
        let rows = clients.into_iter().map(|client| {
            let (received, cpu_use) = measures(&client.id);
            Row {
                client,
                received,
                cpu_use,
            }
        });
        self.rows = rows.collect();
    }

    fn table(&self) -> Table {
        let counts_turns = self.rows.iter().any(|row| row.client.turns.is_some());
        let mut columns = vec![
            ("ID", Side::Left),
            ("NAME", Side::Left),
            ("TICKETS", Side::Left),
            ("VALUE", Side::Right),
            ("SPECIFIED", Side::Right),
            ("RECEIVED", Side::Right),
            ("CPU", Side::Right),
            ("ERROR", Side::Right),
            ("STATE", Side::Left),
            ("QUANTUM", Side::Right),
            (BAR, Side::Left),
        ];
        let hybrid = hybrid_columns(self.rows.iter().map(|row| &row.client));
        columns.extend(hybrid.iter().map(|(heading, side, _)| (*heading, *side)));
        if counts_turns {
            columns.extend(TURNS_COLUMNS.map(|(heading, side, _)| (heading, side)));
        }
        if self.rows.iter().any(|row| row.client.max.is_some()) {
            columns.insert(MAX_PLACE, (MAX, Side::Right));
        }
        let shows_max = columns[MAX_PLACE].0 == MAX;
        let mut table = Table::new(&columns);
        for row in &self.rows {
            let client = &row.client;
            let mut cells = vec![
                client.id.clone(),
                client.name.clone(),
                output::tickets(&client.tickets),
                output::value(client.value),
                output::percent(client.share),
                output::percent(row.received),
                output::percent(row.cpu_use),
                output::quanta(client.error_quanta),
                state(client.state).to_owned(),
                output::milliseconds(client.quantum_ns.unwrap_or(self.common_quantum_ns)),
                share_bar(row.received, client.share, BAR_COLUMNS),
            ];
            if shows_max {
                cells.insert(MAX_PLACE, max(client));
            }
            cells.extend(hybrid.iter().map(|(.., cell)| cell(client)));
            if counts_turns {
                cells.extend(TURNS_COLUMNS.map(|(.., cell)| cell(client)));
            }
            table.row(cells);
        }
        table.fit(size().0, &LESS);
        table
    }

    /// The screen, from top to bottom.
    pub fn lines(&self) -> Vec<String> {
        let direction = if self.reversed { ", reversed" } else { "" };
        let mut lines = vec![
            format!(
                "prorata top: {} client{}, by {}{direction}",
                self.rows.len(),
                if self.rows.len() == 1 { "" } else { "s" },
                self.order.name()
            ),
            prorata_report::text::printable(&self.message),
        ];
        if self.rows.is_empty() {
            lines.push(NO_CLIENTS.to_owned());
        } else {
            let rows = self.table().lines(None);
            let chosen = self.selected_row() + 1;
            // Scrolls until the selected row is on the screen.
            let height = size().1.saturating_sub(lines.len() + 3).max(1);
            let first = chosen.saturating_sub(height) + 1;
            lines.push(rows[0].clone());
            for (row, line) in rows.iter().enumerate().skip(first).take(height) {
                lines.push(if row == chosen {
                    selected(line)
                } else {
                    line.clone()
                });
            }
        }
        lines.push(String::new());
        lines.push(
            "up/down select   + inflate   - deflate   s sort   r reverse   q quit".to_owned(),
        );
        lines
    }
}

/// A tenth more, by at least one ticket.
fn inflated(amount: u32) -> u32 {
    amount.saturating_add((amount / 10).max(1))
}

/// A tenth less, by at least one ticket, but never below one.
fn deflated(amount: u32) -> u32 {
    (amount - (amount / 10).max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inflation_and_deflation_stay_within_the_amounts() {
        assert_eq!([1, 5, 100, u32::MAX].map(inflated), [2, 6, 110, u32::MAX]);
        assert_eq!([1, 2, 100, 110].map(deflated), [1, 1, 90, 99]);
    }
}
