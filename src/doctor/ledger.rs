//! Check of the ledger: it opens, has this version's tables, is intact, and can be written.

use std::sync::Arc;

use jiff::Timestamp;

use super::super::context::{Context, FoundLedger};
use super::super::exit;
use super::super::exit::{CommandFailure, Explanation};
use super::machine::LatestRun;
use super::{CheckResult, CheckStatus};
use campaign_engine::report::format_count;
use campaign_ledger::memory::{LedgerContents, MemoryLedger};
use campaign_ledger::{Backup, DamagedRun, IntegrityReport, Ledger, LedgerError, RunFilter};

/// The name of the check.
const CHECK: &str = "ledger";

/// The ledger for inquiries: only a ledger records the trusted hosts, and shares the rate limit with other processes.
pub(super) enum LedgerAccess {
    /// Inquiries use this ledger. If there is no ledger file, this is an empty ledger in memory.
    Open(Arc<dyn Ledger>),
    /// The API key must not be sent, because the trusted hosts are unknown.
    Closed,
}

/// The result of the check, and the facts that other checks need.
pub(super) struct LedgerCheck {
    pub(super) result: CheckResult,
    pub(super) access: LedgerAccess,
    pub(super) latest_run: Option<LatestRun>,
}

/// Checks the ledger. Does not create or upgrade it.
pub(super) async fn check_ledger(context: &Context) -> LedgerCheck {
    let place = match context.ledger_location() {
        Ok(place) => place,
        Err(failure) => return closed_ledger(result_from_failure(context, failure)),
    };
    match context.open_ledger_unchanged().await {
        Err(failure) => closed_ledger(result_from_failure(context, failure)),
        Ok(FoundLedger::Older) => closed_ledger(CheckResult::warning(
            CHECK,
            format!("the ledger in `{place}` was last used by an earlier version of campaign"),
            format!(
                "copy the folder if you might go back to that version, then upgrade the ledger: {}",
                context.output.command("status")
            ),
        )),
        Ok(FoundLedger::Missing) => LedgerCheck {
            result: CheckResult::ok(CHECK, format!("no ledger yet in `{place}`; the first run creates it")),
            access: LedgerAccess::Open(Arc::new(MemoryLedger::new(LedgerContents::default(), Timestamp::now))),
            latest_run: None,
        },
        Ok(FoundLedger::Usable { ledger, has_older_tables }) => match check_contents(context, ledger.as_ref()).await {
            Err(error) => closed_ledger(result_from_failure(context, error)),
            Ok((runs, latest_run)) => LedgerCheck {
                result: describe_usable_ledger(context, &place, runs, has_older_tables),
                access: LedgerAccess::Open(ledger),
                latest_run,
            },
        },
    }
}

fn closed_ledger(result: CheckResult) -> LedgerCheck {
    LedgerCheck { result, access: LedgerAccess::Closed, latest_run: None }
}

/// Checks the contents of an open ledger, and returns the number of runs and the latest run.
async fn check_contents(context: &Context, ledger: &dyn Ledger) -> Result<(u64, Option<LatestRun>), CommandFailure> {
    let IntegrityReport { storage, records } = ledger.check_integrity().await;
    storage?;
    if let Some(Backup { made_at, restored_at: None }) = ledger.load_risks().await?.backup {
        let at = campaign_engine::report::format_local_minute(made_at);
        return Err(CommandFailure::new(exit::STORAGE, format!("the ledger is a backup from {at} and cannot be used"))
            .with_help(format!("restore it: {}", context.output.command("ledger restore DIR"))));
    }
    if let Some(damaged) = records?.into_iter().next() {
        return Err(LedgerError::Damaged { what: damaged.what }.into());
    }
    let runs = ledger.list_stored_runs(RunFilter::all()).await?;
    if let Some(DamagedRun { error, .. }) = runs.iter().find_map(|run| run.as_ref().err()) {
        return Err(error.clone().into());
    }
    ledger.check_writable().await?;
    let latest = runs.iter().flatten().max_by_key(|run| run.began_at);
    let latest = latest.map(|run| LatestRun { name: run.name(), began_at: run.began_at });
    Ok((runs.len() as u64, latest))
}

fn describe_usable_ledger(context: &Context, place: &str, runs: u64, has_older_tables: bool) -> CheckResult {
    let message = format!("{} in `{place}`, intact and writable", format_count(runs, "run"));
    match has_older_tables {
        false => CheckResult::ok(CHECK, message),
        true => CheckResult::warning(
            CHECK,
            format!("{message}, with tables from an earlier version"),
            format!(
                "once all machines have this version, upgrade the tables: {}",
                context.output.command("ledger upgrade")
            ),
        ),
    }
}

/// Converts a failure into a failed check, or into a warning if another process is using the ledger.
fn result_from_failure(context: &Context, failure: CommandFailure) -> CheckResult {
    let failure: Explanation = failure.into_explanation(&context.output.options);
    let is_busy = failure.message.contains("is using the ledger") || failure.message.contains("is still sending");
    let fallback_help = format!("see what is damaged: {}", context.output.command("ledger check"));
    let result = CheckResult::from_failure(CHECK, failure, fallback_help);
    // A long commit of another process is not a fault of the ledger.
    if is_busy { CheckResult { status: CheckStatus::Warning, ..result } } else { result }
}
