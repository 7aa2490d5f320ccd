//! `mktkt`, `rmtkt`, `fund`, `unfund` and `lstkt` (1994, 4.7).

use anyhow::Result;
use prorata_protocol::{Connection, Funding, Request, Response, TicketReport};
use prorata_report::table::Side;

use crate::args::ledger::{Fund, Mktkt, Rmtkt, Unfund};
use crate::args::view::Lstkt;
use crate::caller::{Caller, answer, create, tell};
use crate::output;

/// `prorata mktkt`.
pub fn mktkt(caller: &Caller, args: &Mktkt) -> Result<()> {
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

/// `prorata rmtkt`.
pub fn rmtkt(caller: &Caller, args: &Rmtkt) -> Result<()> {
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

/// `prorata fund`.
pub fn fund(caller: &Caller, args: &Fund) -> Result<()> {
    tell(
        &mut caller.open()?,
        &Request::Fund {
            ticket: args.ticket.clone(),
            target: args.target.clone(),
        },
    )
}

/// `prorata unfund`.
pub fn unfund(caller: &Caller, args: &Unfund) -> Result<()> {
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

/// `prorata lstkt`.
pub fn lstkt(caller: &Caller, args: &Lstkt) -> Result<()> {
    let tickets = tickets(&mut caller.open()?, args.currency.as_deref())?;
    let columns = [
        ("ID", Side::Left),
        ("AMOUNT", Side::Right),
        ("LENT", Side::Right),
        ("CURRENCY", Side::Left),
        ("FUNDS", Side::Left),
        ("STATE", Side::Left),
        ("VALUE", Side::Right),
        ("TRANSFER", Side::Left),
    ];
    let row = |ticket: &TicketReport| {
        vec![
            ticket.id.clone(),
            ticket.amount.to_string(),
            ticket.lent.to_string(),
            ticket.currency.clone(),
            output::or_dash(ticket.target.as_ref()),
            output::activity(ticket.active),
            format!("{:.1}", ticket.value),
            output::or_dash(ticket.transfer.as_ref()),
        ]
    };
    let nothing = "prorata: there are no tickets that you may see";
    output::list(args.format, &tickets, &columns, row, nothing)
}
