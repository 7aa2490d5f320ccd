//! `top`: clients live.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use prorata_control::Connection;
use prorata_control::protocol::{ClientReport, Funding, Request};
use prorata_report::bar::share_bar;
use prorata_report::table::{Side, Table};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::clients::{NO_CLIENTS, state};
use crate::args::view::Top;
use crate::caller::{Caller, clients, tell};
use crate::terminal::{Screen, selected, size};
use crate::wrapper::ending::Ending;
use crate::wrapper::signals::Signals;
use crate::{output, shares};

const BAR_COLUMNS: usize = 24;

/// The least time between two looks: less only costs.
const LEAST_DELAY: Duration = Duration::from_millis(100);

/// The longest; it must fit the system's clocks.
const LONGEST_DELAY: Duration = Duration::from_secs(3600);

const SIGNALS: [Signal; 6] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGTSTP,
    Signal::SIGWINCH,
];

/// `prorata top`.
pub fn top(caller: &Caller, args: &Top) -> Result<()> {
    let terminal = rustix::termios::isatty(io::stdin()) && rustix::termios::isatty(io::stdout());
    ensure!(
        terminal,
        "top needs a terminal: use `prorata ps`, or `prorata ps --json`"
    );
    ensure!(
        (LEAST_DELAY..=LONGEST_DELAY).contains(&args.delay),
        "a delay of {:?} is not between {LEAST_DELAY:?} and {LONGEST_DELAY:?}: give one such as 1s",
        args.delay
    );
    let mut connection = caller.open()?;
    let signals = Signals::block(&SIGNALS).context("cannot handle signals")?;
    let screen = Screen::take().context("cannot use the terminal")?;
    let ended_by = watch(&mut connection, args.delay, &signals, &screen);
    drop(screen);
    if let Some(signal) = ended_by? {
        // Does not return; should the signal not end us, we are done anyway.
        let _ = Ending::Killed(signal).pass_on();
    }
    Ok(())
}

/// Shows and obeys until the user has seen enough; the signal that said so, if
/// it was one.
fn watch(
    connection: &mut Connection,
    delay: Duration,
    signals: &Signals,
    screen: &Screen,
) -> Result<Option<Signal>> {
    let mut view = View::default();
    view.look(clients(connection)?);
    let mut next = Instant::now() + delay;
    loop {
        screen.draw(&view.lines())?;
        let left = next.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).context("the delay is bounded")?;
        let (stdin, arriving) = (io::stdin(), signals.as_fd());
        let mut fds = [
            PollFd::new(&stdin, PollFlags::IN),
            PollFd::new(&arriving, PollFlags::IN),
        ];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let pressed = !fds[0].revents().is_empty();
        while let Some(received) = signals.next()? {
            match received.signal {
                Signal::SIGWINCH => {}
                Signal::SIGTSTP => screen.pause(|| Signals::suffer(Signal::SIGTSTP))?,
                signal => return Ok(Some(signal)),
            }
        }
        if pressed {
            let keys = screen.keys()?;
            // Readable without bytes: the terminal has gone.
            if keys.is_empty() {
                return Ok(None);
            }
            for key in decode(&keys) {
                if view.obey(key, connection)? {
                    return Ok(None);
                }
            }
        }
        if Instant::now() >= next {
            view.look(clients(connection)?);
            next = Instant::now() + delay;
        }
    }
}

/// What a key asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Key {
    Quit,
    Up,
    Down,
    Inflate,
    Deflate,
    Sort,
    Reverse,
}

/// Keys that mean nothing are left out.
fn decode(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let Some((&first, rest)) = bytes.split_first() {
        let (key, rest) = match (first, rest) {
            (0x1b, [b'[', b'A', rest @ ..]) => (Some(Key::Up), rest),
            (0x1b, [b'[', b'B', rest @ ..]) => (Some(Key::Down), rest),
            (0x1b, [b'[', rest @ ..]) => {
                // Another sequence, which its final byte ends.
                let end = rest
                    .iter()
                    .position(|byte| (0x40..=0x7e).contains(byte))
                    .map_or(rest.len(), |end| end + 1);
                (None, &rest[end..])
            }
            (b'q' | b'Q', rest) => (Some(Key::Quit), rest),
            (b'k', rest) => (Some(Key::Up), rest),
            (b'j', rest) => (Some(Key::Down), rest),
            (b'+' | b'=', rest) => (Some(Key::Inflate), rest),
            (b'-', rest) => (Some(Key::Deflate), rest),
            (b's', rest) => (Some(Key::Sort), rest),
            (b'r', rest) => (Some(Key::Reverse), rest),
            (_, rest) => (None, rest),
        };
        keys.extend(key);
        bytes = rest;
    }
    keys
}

/// What rows are sorted by.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Order {
    #[default]
    Share,
    Received,
    Error,
    Name,
}

impl Order {
    fn next(self) -> Self {
        match self {
            Order::Share => Order::Received,
            Order::Received => Order::Error,
            Order::Error => Order::Name,
            Order::Name => Order::Share,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Order::Share => "specified share",
            Order::Received => "received share",
            Order::Error => "error",
            Order::Name => "name",
        }
    }
}

/// What is on the screen.
#[derive(Default, Debug)]
struct View {
    /// Clients with the share that each received between the last two looks.
    rows: Vec<(ClientReport, f64)>,
    order: Order,
    reversed: bool,
    /// Identifier of the selected client.
    selected: Option<String>,
    /// What the daemon said to the last key.
    message: String,
}

impl View {
    fn look(&mut self, clients: Vec<ClientReport>) {
        let before: Vec<ClientReport> = self.rows.drain(..).map(|(client, _)| client).collect();
        let received = shares::received(&before, &clients);
        self.rows = clients.into_iter().zip(received).collect();
        self.sort();
    }

    fn sort(&mut self) {
        let order = self.order;
        self.rows.sort_by(|(a, a_received), (b, b_received)| {
            let by_order = match order {
                Order::Share => b.share.total_cmp(&a.share),
                Order::Received => b_received.total_cmp(a_received),
                Order::Error => b.error_quanta.abs().total_cmp(&a.error_quanta.abs()),
                Order::Name => a.name.cmp(&b.name),
            };
            by_order.then_with(|| a.id.cmp(&b.id))
        });
        if self.reversed {
            self.rows.reverse();
        }
    }

    /// Row of the selected client: the first, if that has gone or none was
    /// selected yet.
    fn selected_row(&self) -> usize {
        self.rows
            .iter()
            .position(|(client, _)| Some(&client.id) == self.selected.as_ref())
            .unwrap_or(0)
    }

    /// Does what a key asks for; whether that is to end.
    fn obey(&mut self, key: Key, connection: &mut Connection) -> Result<bool> {
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
        self.selected = self.rows.get(row).map(|(client, _)| client.id.clone());
    }

    /// Changes the selected client's first tickets.
    fn change(&mut self, by: fn(u32) -> u32, connection: &mut Connection) -> Result<()> {
        let row = self.selected_row();
        self.select(row);
        let Some((client, _)) = self.rows.get(row) else {
            return Ok(());
        };
        let Some((amount, currency)) = client.tickets.first() else {
            self.message = format!(
                "{} holds no tickets: give it some with `prorata set`",
                client.name
            );
            return Ok(());
        };
        let funding = Funding {
            amount: by(*amount),
            currency: Some(currency.clone()),
        };
        let said = format!("{} now holds {}.{currency}", client.name, funding.amount);
        let done = tell(
            connection,
            &Request::SetTickets {
                client: client.id.clone(),
                funding,
            },
        );
        self.message = done.map_or_else(|error| format!("{error:#}"), |()| said);
        let received: Vec<f64> = self.rows.iter().map(|(_, received)| *received).collect();
        let known: Vec<String> = self
            .rows
            .iter()
            .map(|(client, _)| client.id.clone())
            .collect();
        let fresh = clients(connection)?;
        self.rows = fresh
            .into_iter()
            .map(|client| {
                let place = known.iter().position(|id| *id == client.id);
                (client, place.map_or(0.0, |place| received[place]))
            })
            .collect();
        Ok(())
    }

    fn lines(&self) -> Vec<String> {
        let mut table = Table::new(&[
            ("ID", Side::Left),
            ("NAME", Side::Left),
            ("TICKETS", Side::Left),
            ("VALUE", Side::Right),
            ("SPECIFIED", Side::Right),
            ("RECEIVED", Side::Right),
            ("ERROR", Side::Right),
            ("STATE", Side::Left),
            ("", Side::Left),
        ]);
        for (client, received) in &self.rows {
            table.row(vec![
                client.id.clone(),
                client.name.clone(),
                output::tickets(&client.tickets),
                format!("{:.1}", client.value),
                output::percent(client.share),
                output::percent(*received),
                output::quanta(client.error_quanta),
                state(client.state).to_owned(),
                share_bar(*received, client.share, BAR_COLUMNS),
            ]);
        }
        let direction = if self.reversed { ", reversed" } else { "" };
        let mut lines = vec![
            format!(
                "prorata top: {} clients, by {}{direction}",
                self.rows.len(),
                self.order.name()
            ),
            prorata_report::text::printable(&self.message),
        ];
        if self.rows.is_empty() {
            lines.push(NO_CLIENTS.to_owned());
        } else {
            let rows = table.lines(None);
            let chosen = self.selected_row() + 1;
            // Scrolled so far that the selected row is on the screen.
            let room = size().1.saturating_sub(lines.len() + 3).max(1);
            let first = chosen.saturating_sub(room).max(0) + 1;
            lines.push(rows[0].clone());
            for (row, line) in rows.iter().enumerate().skip(first).take(room) {
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

/// A tenth more, at least one.
fn inflated(amount: u32) -> u32 {
    amount.saturating_add((amount / 10).max(1))
}

/// A tenth less, at least one, never nothing.
fn deflated(amount: u32) -> u32 {
    (amount - (amount / 10).max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_sequences() {
        assert_eq!(
            decode(b"\x1b[A\x1b[Bkj"),
            [Key::Up, Key::Down, Key::Up, Key::Down]
        );
        assert_eq!(
            decode(b"\x1b[15~s\x1b[1;5C+q"),
            [Key::Sort, Key::Inflate, Key::Quit]
        );
        assert_eq!(decode(b"\x1b["), []);
        assert_eq!(decode(b"\x1b"), []);
    }

    #[test]
    fn inflation_and_deflation_stay_within_the_amounts() {
        assert_eq!([1, 5, 100, u32::MAX].map(inflated), [2, 6, 110, u32::MAX]);
        assert_eq!([1, 2, 100, 110].map(deflated), [1, 1, 90, 99]);
    }
}
