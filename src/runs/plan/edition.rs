//! How many messages of an edition went out without an approval, so that several runs cannot split one.

use jiff::Timestamp;
use rustc_hash::FxHashMap;

use super::pin::is_valid_approval;
use crate::domain::Row;
use crate::ledger::{EnvelopeReader, KeptApproval, Ledger, LedgerError, Run, RunId};
use crate::manifest::ApprovalRule;
use crate::runs::Error;

/// The recipients with a message of these runs that no approval covers; a recipient counts once per run.
pub(super) async fn count_unapproved(
    ledger: &dyn Ledger,
    runs: impl IntoIterator<Item = &Run>,
    rule: &ApprovalRule,
) -> Result<u64, Error> {
    let mut sent = 0;
    for run in runs {
        let reached = ledger.load_sent_numbers(&[run.key]).await?.len();
        sent += match find_approval_time(run, &ledger.list_run_approvals(run.key).await?, rule) {
            None => reached,
            // The envelopes of a purged run are gone; it ended with the approval that it had.
            Some(_) if run.purged_at.is_some() => 0,
            Some(since) => reached.min(count_attempted_before(ledger, run.key, since, |_| true).await?),
        };
    }
    Ok(sent)
}

/// Since when a run has an approval.
pub(super) fn find_approval_time(run: &Run, approvals: &[KeptApproval], rule: &ApprovalRule) -> Option<Timestamp> {
    let valid = approvals.iter().filter(|kept| is_valid_approval(&kept.approval, Some(rule)));
    // The ledger tells the last use alone. A standing approval that another run used since covered this one from its start.
    let own =
        |kept: &KeptApproval| kept.used.filter(|used| used.run == Some(run.key)).map_or(run.began_at, |used| used.at);
    valid.map(own).min()
}

/// How many of these rows have their last attempt before this time.
pub(super) async fn count_attempted_before(
    ledger: &dyn Ledger,
    run: RunId,
    since: Timestamp,
    counts: impl Fn(Row) -> bool,
) -> Result<u64, LedgerError> {
    let (mut last, mut envelopes) = (FxHashMap::default(), EnvelopeReader::new(ledger, run));
    while let Some(envelope) = envelopes.next_envelope().await? {
        for sent in &envelope.rows {
            last.insert(sent.row, envelope.begun_at);
        }
    }
    Ok(last.into_iter().filter(|(row, begun_at)| *begun_at < since && counts(*row)).count() as u64)
}
