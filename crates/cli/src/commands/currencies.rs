//! `mkcur`, `rmcur` and `lscur` (1994, 4.7).

use anyhow::Result;
use prorata_protocol::{Connection, CurrencyReport, Request, Response};
use prorata_report::table::{Side, Table};

use crate::args::ledger::{Mkcur, Rmcur};
use crate::args::view::Lscur;
use crate::caller::{Caller, ask, create, tell, unexpected, user_name, user_number};
use crate::output;

/// `prorata mkcur`.
pub fn mkcur(caller: &Caller, args: &Mkcur) -> Result<()> {
    let owner = args.owner.as_deref().map(user_number).transpose()?;
    let request = Request::CreateCurrency {
        name: args.name.clone(),
        owner,
        mode: args.mode,
    };
    let id = create(&mut caller.open()?, &request)?;
    output::created(args.format, &id)
}

/// `prorata rmcur`.
pub fn rmcur(caller: &Caller, args: &Rmcur) -> Result<()> {
    tell(
        &mut caller.open()?,
        &Request::DestroyCurrency {
            name: args.name.clone(),
        },
    )
}

/// All currencies that we may see.
pub fn currencies(connection: &mut Connection) -> Result<Vec<CurrencyReport>> {
    match ask(connection, &Request::Currencies)? {
        Response::Currencies(currencies) => Ok(currencies),
        other => Err(unexpected(&other)),
    }
}

/// `prorata lscur`.
pub fn lscur(caller: &Caller, args: &Lscur) -> Result<()> {
    let currencies = currencies(&mut caller.open()?)?;
    if args.format.json {
        return output::json(&currencies);
    }
    let mut table = Table::new(&[
        ("ID", Side::Left),
        ("NAME", Side::Left),
        ("OWNER", Side::Left),
        ("MODE", Side::Left),
        ("ISSUED", Side::Right),
        ("ACTIVE", Side::Right),
        ("VALUE", Side::Right),
        ("BACKING", Side::Left),
    ]);
    for currency in &currencies {
        table.row(vec![
            currency.id.clone(),
            currency.name.clone(),
            user_name(currency.owner),
            currency.mode.clone(),
            currency.issued.to_string(),
            currency.active.to_string(),
            format!("{:.1}", currency.value),
            if currency.backing.is_empty() {
                "-".to_owned()
            } else {
                currency.backing.join(" ")
            },
        ]);
    }
    output::table(&table, "prorata: there is no currency that you may see")
}
