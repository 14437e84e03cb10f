//! Whether this machine meets a ledger for the first time in which others have sent: it may be an older copy.

use jiff::{SignedDuration, Timestamp};

use crate::check::unfamiliar_ledger_finding;
use crate::finding::Finding;
use crate::ledger::{Ledger, LedgerError, Run, RunFilter, RunProgress};

/// For how long after its end a run is a sign that the ledger is in use: longer than snapshots of a database are usually kept.
const RECENT_AGE: SignedDuration = SignedDuration::from_hours(24 * 90);

/// The warning that a machine without a high-water mark gets about a ledger with live runs of others. It is given until a command
/// on this machine changes the ledger, which makes the mark.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn unfamiliar_ledger_warning(ledger: &dyn Ledger, now: Timestamp) -> Result<Option<Finding>, LedgerError> {
    if !ledger.lacks_high_water_mark() {
        return Ok(None);
    }
    let live = ledger.list_stored_runs(RunFilter { live: true, ..RunFilter::all() }).await?;
    let counting: Vec<Run> = live.into_iter().flatten().filter(|run| is_sign_of_use(run, now)).collect();
    let place = ledger.describe_location();
    Ok(counting.last().map(|latest| {
        let latest = format!("{} of {}", latest.name(), latest.began_at.strftime("%Y-%m-%d %H:%M UTC"));
        unfamiliar_ledger_finding(&place, (counting.len() as u64, &latest))
    }))
}

/// Whether a run sent to people, and is unfinished or ended lately.
fn is_sign_of_use(run: &Run, now: Timestamp) -> bool {
    let reaches_people = !run.suppression.loopback && !run.is_lookup_run();
    let is_recent = run.ended_at.is_none_or(|ended| now.duration_since(ended) <= RECENT_AGE);
    reaches_people && (run.progress == RunProgress::Open || is_recent)
}
