//! `mktkt`, `rmtkt`, `fund`, `unfund` and `lstkt` (1994, 4.7).

use anyhow::Result;
use prorata_protocol::{Connection, Funding, Request, Response, TicketReport};
use prorata_report::table::{Side, Table};

use crate::args::ledger::{Fund, Mktkt, Rmtkt, Unfund};
use crate::args::view::Lstkt;
use crate::caller::{Caller, ask, create, tell, unexpected};
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

/// Tickets that we may see; of one currency if given.
pub fn tickets(connection: &mut Connection, currency: Option<&str>) -> Result<Vec<TicketReport>> {
    match ask(
        connection,
        &Request::Tickets {
            currency: currency.map(str::to_owned),
        },
    )? {
        Response::Tickets(tickets) => Ok(tickets),
        other => Err(unexpected(&other)),
    }
}

/// `prorata lstkt`.
pub fn lstkt(caller: &Caller, args: &Lstkt) -> Result<()> {
    let tickets = tickets(&mut caller.open()?, args.currency.as_deref())?;
    if args.format.json {
        return output::json(&tickets);
    }
    let mut table = Table::new(&[
        ("ID", Side::Left),
        ("AMOUNT", Side::Right),
        ("LENT", Side::Right),
        ("CURRENCY", Side::Left),
        ("FUNDS", Side::Left),
        ("STATE", Side::Left),
        ("VALUE", Side::Right),
        ("TRANSFER", Side::Left),
    ]);
    for ticket in tickets {
        table.row(vec![
            ticket.id,
            ticket.amount.to_string(),
            ticket.lent.to_string(),
            ticket.currency,
            ticket.target.unwrap_or_else(|| "-".to_owned()),
            if ticket.active { "active" } else { "inactive" }.to_owned(),
            format!("{:.1}", ticket.value),
            ticket.transfer.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    output::table(&table, "prorata: there is no ticket that you may see")
}
