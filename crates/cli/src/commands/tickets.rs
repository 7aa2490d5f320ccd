//! `mktkt`, `rmtkt`, `fund`, `unfund` and `lstkt` (1994, 4.7).

use anyhow::Result;
use prorata_protocol::{Connection, Funding, Request, Response, TicketReport};
use prorata_report::table::{Column, Side};

use crate::args::ledger::{FundArgs, MktktArgs, RmtktArgs, UnfundArgs};
use crate::args::view::LstktArgs;
use crate::caller::{Caller, answer, create, tell};
use crate::output;

pub fn mktkt(caller: &Caller, args: &MktktArgs) -> Result<()> {
    let funding = Funding {
        amount: args.amount,
        currency: args.currency.clone(),
    };
    let id = create(
        &mut caller.open()?,
        &Request::Issue {
            funding,
            target: args.fund.clone(),
        },
    )?;
    output::created(args.format, &id)
}

pub fn rmtkt(caller: &Caller, args: &RmtktArgs) -> Result<()> {
    let mut connection = caller.open()?;
    args.tickets.iter().try_for_each(|ticket| {
        tell(
            &mut connection,
            &Request::DestroyTicket {
                ticket: ticket.clone(),
            },
        )
    })
}

pub fn fund(caller: &Caller, args: &FundArgs) -> Result<()> {
    tell(
        &mut caller.open()?,
        &Request::Fund {
            ticket: args.ticket.clone(),
            target: args.target.clone(),
        },
    )
}

pub fn unfund(caller: &Caller, args: &UnfundArgs) -> Result<()> {
    tell(
        &mut caller.open()?,
        &Request::Unfund {
            ticket: args.ticket.clone(),
        },
    )
}

/// The tickets that the caller may see, of `currency` if given.
pub fn tickets(connection: &mut Connection, currency: Option<&str>) -> Result<Vec<TicketReport>> {
    let currency = currency.map(str::to_owned);
    answer!(
        connection,
        &Request::Tickets { currency },
        Response::Tickets
    )
}

pub fn lstkt(caller: &Caller, args: &LstktArgs) -> Result<()> {
    let tickets = tickets(&mut caller.open_to_read()?, args.currency.as_deref())?;
    let columns: [Column<TicketReport>; 8] = [
        ("ID", Side::Left, |ticket| ticket.id.clone()),
        ("AMOUNT", Side::Right, |ticket| ticket.amount.to_string()),
        ("LENT", Side::Right, |ticket| ticket.lent.to_string()),
        ("CURRENCY", Side::Left, |ticket| ticket.currency.clone()),
        ("FUNDS", Side::Left, |ticket| {
            output::or_dash(ticket.target.as_ref())
        }),
        ("STATE", Side::Left, |ticket| {
            output::activity(ticket.active)
        }),
        ("VALUE", Side::Right, |ticket| output::value(ticket.value)),
        ("TRANSFER", Side::Left, |ticket| {
            output::or_dash(ticket.transfer.as_ref())
        }),
    ];
    let nothing = "prorata: there are no tickets that you may see";
    output::list(args.format, &tickets, &columns, nothing)
}
