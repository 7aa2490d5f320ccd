//! `mkcur`, `rmcur` and `lscur` (1994, 4.7).

use anyhow::Result;
use prorata_core::ledger::Ledger;
use prorata_protocol::{Connection, CurrencyReport, Request, Response, TicketReport};
use prorata_report::table::{Column, Side};

use crate::args::ledger::{MkcurArgs, RmcurArgs};
use crate::args::view::LscurArgs;
use crate::caller::{Caller, answer, create, tell, user_name, user_number};
use crate::output;

pub fn mkcur(caller: &Caller, args: &MkcurArgs) -> Result<()> {
    let owner = args.owner.as_deref().map(user_number).transpose()?;
    let request = Request::CreateCurrency {
        name: args.name.clone(),
        owner,
        mode: args.mode,
    };
    let id = create(&mut caller.open()?, &request)?;
    output::created(args.format, &id)
}

pub fn rmcur(caller: &Caller, args: &RmcurArgs) -> Result<()> {
    tell(
        &mut caller.open()?,
        &Request::DestroyCurrency {
            name: args.name.clone(),
        },
    )
}

/// All currencies that the caller may see.
pub fn currencies(connection: &mut Connection) -> Result<Vec<CurrencyReport>> {
    answer!(connection, &Request::Currencies, Response::Currencies)
}

/// Whether tickets in a currency are worth anything, as far as the caller may see.
pub fn is_funded(connection: &mut Connection, name: &str) -> Result<bool> {
    let currencies = currencies(connection)?;
    let every = Request::Tickets { currency: None };
    let tickets: Vec<TicketReport> = answer!(connection, &every, Response::Tickets)?;
    let mut backing = vec![name];
    let mut seen = 0;
    // The currencies that back `name`, nearest first; each once.
    while let Some(&name) = backing.get(seen) {
        seen += 1;
        let known = currencies.iter().find(|currency| currency.name == name);
        let Some(currency) = known.filter(|_| name != Ledger::BASE) else {
            return Ok(true);
        };
        for id in &currency.backing {
            // A ticket that the caller may not see may be worth something.
            let Some(ticket) = tickets.iter().find(|ticket| ticket.id == *id) else {
                return Ok(true);
            };
            if ticket.amount > 0 && !backing.contains(&ticket.currency.as_str()) {
                backing.push(&ticket.currency);
            }
        }
    }
    Ok(false)
}

pub fn lscur(caller: &Caller, args: &LscurArgs) -> Result<()> {
    let currencies = currencies(&mut caller.open_to_read()?)?;
    let columns: [Column<CurrencyReport>; 8] = [
        ("ID", Side::Left, |currency| currency.id.clone()),
        ("NAME", Side::Left, |currency| currency.name.clone()),
        ("OWNER", Side::Left, |currency| user_name(currency.owner)),
        ("MODE", Side::Left, |currency| currency.mode.clone()),
        ("ISSUED", Side::Right, |currency| {
            currency.issued.to_string()
        }),
        ("ACTIVE", Side::Right, |currency| {
            currency.active.to_string()
        }),
        ("VALUE", Side::Right, |currency| {
            output::value(currency.value)
        }),
        ("BACKING", Side::Left, |currency| {
            output::joined(&currency.backing)
        }),
    ];
    let nothing = "prorata: there are no currencies that you may see";
    output::list(args.format, &currencies, &columns, nothing)
}
