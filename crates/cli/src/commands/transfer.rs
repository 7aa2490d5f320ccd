//! `transfer`: lending tickets (1994, 3.1).

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use prorata_protocol::{Connection, Request, Response, TransferPortion};
use prorata_report::table::{Side, Table};

use crate::args::WrongUsage;
use crate::args::ledger::TransferArgs;
use crate::args::values::Receiver;
use crate::caller::{Caller, answer, create, tell};
use crate::output;
use crate::wrapper::gate::Gated;
use crate::wrapper::supervise::{block_signals, supervise};

/// `prorata transfer`.
pub fn transfer(caller: &Caller, args: &TransferArgs) -> Result<ExitCode> {
    if args.list {
        return list(&mut caller.open_to_read()?, args.format.json).map(|()| ExitCode::SUCCESS);
    }
    if let Some(transfer) = &args.end {
        tell(
            &mut caller.open()?,
            &Request::EndTransfer {
                transfer: transfer.clone(),
            },
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let from = args
        .from
        .clone()
        .expect("required without --list and --end");
    let portion = portion(args)?;
    let hold = !args.command.is_empty();
    let mut connection = caller.open()?;
    let id = create(
        &mut connection,
        &Request::Transfer {
            from,
            portion,
            hold,
        },
    )?;
    if hold {
        return while_command_runs(args);
    }
    output::created(args.format, &id)?;
    Ok(ExitCode::SUCCESS)
}

fn portion(args: &TransferArgs) -> Result<TransferPortion, WrongUsage> {
    if args.all {
        return match args.to.iter().find(|receiver| receiver.amount.is_some()) {
            Some(receiver) => Err(WrongUsage(format!(
                "--all lends everything in equal parts, so {} takes no amount: leave out --all or the amount",
                receiver.target
            ))),
            None => Ok(TransferPortion::Whole(
                args.to
                    .iter()
                    .map(|receiver| receiver.target.clone())
                    .collect(),
            )),
        };
    }
    let share = |receiver: &Receiver| match receiver.amount {
        Some(amount) => Ok((receiver.target.clone(), amount)),
        None => Err(WrongUsage(format!(
            "receiver {0} has no amount: write {0}=AMOUNT, or lend everything with --all",
            receiver.target
        ))),
    };
    let shares = args.to.iter().map(share).collect::<Result<_, _>>()?;
    Ok(TransferPortion::Part {
        currency: args.currency.clone(),
        shares,
    })
}

/// Runs the command and then exits. The daemon undoes the transfer when our
/// connection closes, so a crash of this process undoes it too.
fn while_command_runs(args: &TransferArgs) -> Result<ExitCode> {
    let signals = block_signals().context("cannot handle signals")?;
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    let gated = Gated::fork(command, signals.mask_before()).context("cannot start a process")?;
    let pid = gated.pid();
    gated.let_go(None);
    Ok(supervise(pid, &signals, None)?.pass_on())
}

fn list(connection: &mut Connection, json: bool) -> Result<()> {
    let transfers: Vec<_> = answer!(connection, &Request::Transfers, Response::Transfers)?;
    if json {
        return output::json(&transfers);
    }
    let mut table = Table::new(&[
        ("ID", Side::Left),
        ("FROM", Side::Left),
        ("AMOUNT", Side::Right),
        ("CURRENCY", Side::Left),
        ("TO", Side::Left),
    ]);
    for transfer in &transfers {
        for (target, currency, amount) in &transfer.shares {
            let amount = amount.to_string();
            let row = [&transfer.id, &transfer.from, &amount, currency, target];
            table.row(row.map(String::clone).to_vec());
        }
    }
    output::table(&table, "prorata: there are no active transfers")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args;

    fn parsed(line: &str) -> Result<TransferPortion, WrongUsage> {
        match args::Cli::parse_from(line.split(' ')).command {
            args::Command::Transfer(args) => portion(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn receivers_get_amounts_or_equal_parts_of_everything() {
        let part = TransferPortion::Part {
            currency: Some("batch".into()),
            shares: vec![("viewer".into(), 50), ("currency:x".into(), 2)],
        };
        assert_eq!(
            parsed("prorata transfer build viewer=50 currency:x=2 -c batch"),
            Ok(part)
        );
        let whole = TransferPortion::Whole(vec!["viewer".into(), "x".into()]);
        assert_eq!(
            parsed("prorata transfer build viewer x --all -- sleep 1"),
            Ok(whole)
        );
    }

    #[test]
    fn a_missing_or_needless_amount_is_refused_by_name() {
        let too_few = parsed("prorata transfer build viewer=50 x")
            .unwrap_err()
            .to_string();
        assert!(too_few.contains("x=AMOUNT"), "{too_few}");
        let too_many = parsed("prorata transfer build viewer=50 --all")
            .unwrap_err()
            .to_string();
        assert!(too_many.contains("viewer"), "{too_many}");
    }
}
