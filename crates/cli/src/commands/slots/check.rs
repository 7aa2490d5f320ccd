//! `slots check`: whether claims fit a table together.

use std::process::ExitCode;

use anyhow::Result;
use prorata_core::slots::check::check as check_claims;

use super::file::Claims;
use super::report::Report;
use crate::args::slots::CheckArgs;
use crate::output;

pub fn check(args: &CheckArgs) -> Result<ExitCode> {
    let claims = Claims::of_file(&args.file)?;
    let outcome = check_claims(&claims.empty, &claims.claimants);
    let report = Report::new(&claims, &outcome, false);
    if args.format.json {
        output::json(&report)?;
    } else {
        report.print()?;
    }
    Ok(report.exit_code())
}
