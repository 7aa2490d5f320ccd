//! Claiming and freeing slots, tokens and reservations.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Result, bail};
use prorata_protocol::Connection;
use prorata_protocol::slots::{
    Amount, Cell, Runs, SlotRequest, SlotsAnswer, SlotsRequest, TokensReport,
};
use prorata_report::table::{Side, Table};

use super::{ask, row_of, table};
use crate::args::WrongUsage;
use crate::args::timetable::{ClaimArgs, DonateArgs, FreeArgs, Places, ReserveArgs, TokensArgs};
use crate::caller::Caller;
use crate::output;

/// `prorata slots claim`: fails if a slot could not be claimed.
pub fn claim(caller: &Caller, args: &ClaimArgs) -> Result<ExitCode> {
    let mut connection = caller.open()?;
    let runs = match (&args.client, args.process, args.thread) {
        (Some(client), ..) => Runs::Client(client.clone()),
        (_, Some(pid), _) => Runs::Process(pid),
        (.., Some(tid)) => Runs::Thread(tid),
        _ => bail!("name what shall run: --client, --process or --thread"),
    };
    let expires_ns = args.expires.map(|time| time.as_nanos() as u64);
    let request = |cell| SlotRequest {
        cell,
        runs: runs.clone(),
        level: args.level,
        expires_ns,
    };
    let cells = cells(&mut connection, &args.slots)?;
    let request = SlotsRequest::Claim {
        requests: cells.iter().copied().map(request).collect(),
        all: args.all,
        generation: None,
    };
    let answer = ask(&mut connection, request)?;
    if args.format.json {
        output::json(&answer)?;
    }
    let SlotsAnswer::Claimed { refused, .. } = answer else {
        return Err(super::unexpected(answer));
    };
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, why) in &refused {
        *reasons.entry(why).or_default() += 1;
    }
    for (why, count) in reasons {
        match count {
            1 => output::say(why),
            _ => output::say(format_args!("{count} slots: {why}")),
        }
    }
    Ok(match refused.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// `prorata slots free`: fails if a slot could not be freed.
pub fn free(caller: &Caller, args: &FreeArgs) -> Result<ExitCode> {
    let mut connection = caller.open()?;
    let cells = cells(&mut connection, &args.slots)?;
    let kept = match ask(&mut connection, SlotsRequest::Free { cells })? {
        SlotsAnswer::Freed { kept } => kept,
        other => return Err(super::unexpected(other)),
    };
    for cell in &kept {
        output::say(format_args!(
            "slot {cell} is not yours, or nobody has claimed it"
        ));
    }
    Ok(match kept.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The cells of slots that are named by CPU.
fn cells(connection: &mut Connection, places: &[Places]) -> Result<Vec<Cell>> {
    let report = table(connection)?;
    let mut cells = Vec::new();
    for place in places {
        let row = row_of(&report.cpus, place.cpu)?;
        for range in &place.columns {
            if range.last >= report.columns {
                let (last, columns) = (range.last, report.columns);
                bail!(
                    "there is no slot {last}: the table has the slots 0 to {}",
                    columns - 1
                );
            }
            cells.extend((range.first..=range.last).map(|column| Cell { row, column }));
        }
    }
    Ok(cells)
}

/// `prorata slots tokens`.
pub fn tokens(caller: &Caller, args: &TokensArgs) -> Result<ExitCode> {
    let request = match (args.account.clone(), args.level) {
        (Some(account), Some(level)) => SlotsRequest::SetTokens {
            account,
            level,
            amount: amount(args)?,
            weight: args.weight,
        },
        (account, _) => SlotsRequest::Tokens { account },
    };
    let mut connection = match request {
        SlotsRequest::Tokens { .. } => caller.open_to_read()?,
        _ => caller.open()?,
    };
    match ask(&mut connection, request)? {
        SlotsAnswer::Tokens(report) if args.format.json => output::json(&report)?,
        SlotsAnswer::Tokens(report) => print_tokens(&report)?,
        other => return Err(super::unexpected(other)),
    }
    Ok(ExitCode::SUCCESS)
}

fn amount(args: &TokensArgs) -> Result<Amount, WrongUsage> {
    match (args.set, args.add, args.remove) {
        (Some(count), ..) => Ok(Amount::Absolute(count)),
        (_, Some(more), _) => Ok(Amount::Delta(i64::from(more))),
        (.., Some(fewer)) => Ok(Amount::Delta(-i64::from(fewer))),
        _ if args.weight.is_some() => Ok(Amount::Delta(0)),
        _ => Err(WrongUsage(
            "nothing is to be set: give --set, --add, --remove or --weight with --level".into(),
        )),
    }
}

fn print_tokens(report: &TokensReport) -> Result<()> {
    output::line(&format!("tokens of {}", report.account))?;
    let mut table = Table::new(&[
        ("LEVEL", Side::Left),
        ("FREE", Side::Right),
        ("IN CLAIMS", Side::Right),
        ("WEIGHT", Side::Right),
    ]);
    for level in report.levels.iter().rev() {
        let numbers = [level.free, level.spent, u64::from(level.weight)];
        let numbers = numbers.iter().map(ToString::to_string);
        table.row(
            [level.level.to_string()]
                .into_iter()
                .chain(numbers)
                .collect(),
        );
    }
    output::table(&table, "")
}

/// `prorata slots donate`: fails if there were too few tokens.
pub fn donate(caller: &Caller, args: &DonateArgs) -> Result<ExitCode> {
    let request = SlotsRequest::Donate {
        to: args.to.clone(),
        level: args.level,
        count: args.count,
    };
    match ask(&mut caller.open()?, request)? {
        SlotsAnswer::Donated { moved } if moved == u64::from(args.count) => Ok(ExitCode::SUCCESS),
        SlotsAnswer::Donated { moved } => {
            let (count, level) = (args.count, args.level);
            output::say(format_args!(
                "{moved} of {count} tokens moved: no more were free at level {level}"
            ));
            Ok(ExitCode::FAILURE)
        }
        other => Err(super::unexpected(other)),
    }
}

/// `prorata slots reserve`.
pub fn reserve(caller: &Caller, args: &ReserveArgs) -> Result<ExitCode> {
    let mut connection = caller.open()?;
    let report = table(&mut connection)?;
    let row = args.cpu.map(|cpu| row_of(&report.cpus, cpu)).transpose()?;
    let request = SlotsRequest::Reserve {
        row,
        fraction: args.fraction,
        immediate: args.immediate,
    };
    match ask(&mut connection, request)? {
        SlotsAnswer::Reserved { revoked: 0 } => {}
        SlotsAnswer::Reserved { revoked } => output::line(&format!(
            "{} revoked",
            output::count(revoked as u64, "claim")
        ))?,
        other => return Err(super::unexpected(other)),
    }
    Ok(ExitCode::SUCCESS)
}
