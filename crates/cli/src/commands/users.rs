//! `show-tickets`, `set-funding`, `show-funding` and `chuser` (1999, 4.2).

use anyhow::Result;
use prorata_protocol::{ClientReport, Request};
use prorata_report::table::{Column, Side};
use serde::Serialize;

use super::clients::{NO_CLIENTS, change};
use super::currencies::currencies;
use super::tickets::tickets;
use crate::args::ledger::{ChuserArgs, SetFundingArgs};
use crate::args::view::{ShowFundingArgs, ShowTicketsArgs};
use crate::caller::{Caller, clients, tell, user_name, user_number};
use crate::output;

/// Name of the base currency.
const BASE: &str = "base";

/// `prorata show-tickets`: like `ps`, with the tickets of each client.
pub fn show_tickets(caller: &Caller, args: &ShowTicketsArgs) -> Result<()> {
    let owner = args.user.as_deref().map(user_number).transpose()?;
    let mut clients = clients(&mut caller.open_to_read()?)?;
    clients.retain(|client| owner.is_none_or(|owner| client.owner == owner));
    let columns: [Column<ClientReport>; 5] = [
        ("PID", Side::Right, |client| client.pid.to_string()),
        ("USER", Side::Left, |client| user_name(client.owner)),
        ("TICKETS", Side::Left, |client| {
            output::tickets(&client.tickets)
        }),
        ("VALUE", Side::Right, |client| output::value(client.value)),
        ("NAME", Side::Left, |client| client.name.clone()),
    ];
    output::list(args.format, &clients, &columns, NO_CLIENTS)
}

pub fn set_funding(caller: &Caller, args: &SetFundingArgs) -> Result<()> {
    tell(
        &mut caller.open()?,
        &Request::SetFunding {
            user: args.user.clone(),
            amount: args.amount,
        },
    )
}

/// A row of `prorata show-funding`.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct FundingReport {
    currency: String,
    owner: u32,
    /// Face value of the base tickets that back it.
    base_tickets: u64,
    /// Whether any of them is active.
    active: bool,
}

pub fn show_funding(caller: &Caller, args: &ShowFundingArgs) -> Result<()> {
    let owner = args.user.as_deref().map(user_number).transpose()?;
    let mut connection = caller.open_to_read()?;
    let backing = tickets(&mut connection, Some(BASE))?;
    let mut reports = Vec::new();
    for currency in currencies(&mut connection)? {
        let target = format!("currency:{}", currency.name);
        let backs = || {
            backing
                .iter()
                .filter(|ticket| ticket.target.as_ref() == Some(&target))
        };
        if currency.name != BASE && owner.is_none_or(|owner| currency.owner == owner) {
            reports.push(FundingReport {
                owner: currency.owner,
                base_tickets: backs().map(|ticket| u64::from(ticket.amount)).sum(),
                active: backs().any(|ticket| ticket.active),
                currency: currency.name,
            });
        }
    }
    let columns: [Column<FundingReport>; 4] = [
        ("USER", Side::Left, |report| user_name(report.owner)),
        ("CURRENCY", Side::Left, |report| report.currency.clone()),
        ("BASE TICKETS", Side::Right, |report| {
            report.base_tickets.to_string()
        }),
        ("STATE", Side::Left, |report| {
            output::activity(report.active)
        }),
    ];
    let nothing = "prorata: no user has a currency yet";
    output::list(args.format, &reports, &columns, nothing)
}

pub fn chuser(caller: &Caller, args: &ChuserArgs) -> Result<()> {
    let request = Request::ChangeUser {
        client: args.client.clone(),
        user: args.user.clone(),
    };
    let mut connection = caller.open()?;
    change(caller, &mut connection, &args.client, &request, args.format)
}
