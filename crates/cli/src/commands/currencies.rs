//! `mkcur`, `rmcur` and `lscur` (1994, 4.7).

use anyhow::Result;
use prorata_protocol::{Connection, CurrencyReport, Request, Response};
use prorata_report::table::Side;

use crate::args::ledger::{Mkcur, Rmcur};
use crate::args::view::Lscur;
use crate::caller::{Caller, answer, create, tell, user_name, user_number};
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

/// All currencies that the caller may see.
pub fn currencies(connection: &mut Connection) -> Result<Vec<CurrencyReport>> {
    answer!(connection, &Request::Currencies, Response::Currencies)
}

/// `prorata lscur`.
pub fn lscur(caller: &Caller, args: &Lscur) -> Result<()> {
    let currencies = currencies(&mut caller.open()?)?;
    let columns = [
        ("ID", Side::Left),
        ("NAME", Side::Left),
        ("OWNER", Side::Left),
        ("MODE", Side::Left),
        ("ISSUED", Side::Right),
        ("ACTIVE", Side::Right),
        ("VALUE", Side::Right),
        ("BACKING", Side::Left),
    ];
    let row = |currency: &CurrencyReport| {
        vec![
            currency.id.clone(),
            currency.name.clone(),
            user_name(currency.owner),
            currency.mode.clone(),
            currency.issued.to_string(),
            currency.active.to_string(),
            format!("{:.1}", currency.value),
            output::joined(&currency.backing),
        ]
    };
    let nothing = "prorata: there are no currencies that you may see";
    output::list(args.format, &currencies, &columns, row, nothing)
}
