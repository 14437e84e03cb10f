//! The end of a call: results, the record of the end, and the notification.

use std::path::Path;
use std::time::Instant;

use super::find::reload_run;
use super::launch::{SelectionNotes, Session};
use super::{EndedRun, Error, RunPhase, list_campaign_runs};
use crate::notify::{create_notification, run_notice};
use campaign_content::message::Notice;
use campaign_core::domain::NotificationEvent;
use campaign_core::failpoint;
use campaign_engine::delivery::{SendEnding, Snapshot, Stop};
use campaign_engine::report::{ResultsBackup, RunFigures, RunResults, find_runs_in_doubt};
use campaign_ledger::{
    BilledParts, ExcludedRows, Lease, NewNotification, RowState, Run, RunEnd, RunProgress, StateCounts, StopKind,
};
use campaign_manifest::NotifySettings;
use campaign_sandbox::Counts;

/// A run whose sending has ended.
pub(super) struct SentRun {
    pub(super) run: Run,
    pub(super) lease: Lease,
    pub(super) ending: SendEnding,
    pub(super) notes: SelectionNotes,
    /// The billed parts before this call.
    pub(super) parts_before: BilledParts,
    /// When this call began.
    pub(super) began: Instant,
    /// Delivery statuses of a rehearsal with a scenario.
    pub(super) played: Option<Counts>,
}

impl Session {
    /// Writes the results and records the end of the run.
    pub(super) async fn end_run(&self, sent_run: SentRun) -> Result<EndedRun, Error> {
        let SentRun { run, lease, ending, notes, parts_before, began, played } = sent_run;
        let SendEnding { stopped: stop, counts, sent, opted_out, parts, errors, oddities, lag, .. } = ending;
        let (kind, sending) = (stop.as_ref().map(|stop| stop.kind), counts.get(RowState::Sending));
        if let Some(StopKind::Interrupted(signal)) = kind
            && sending > 0
        {
            // After a second signal, leave at once. Messages in flight are in doubt from the next reading on.
            return Err(Error::Interrupted { signal, phase: RunPhase::Sending(sending) });
        }
        let now = reload_run(self.adapters.ledger.as_ref(), run.key).await?;
        let counts = match now.receipts == run.receipts && run.orders.is_empty() {
            true => counts,
            // The counts from sending lack receipts that arrived in the meantime, and the earlier states of rows that a
            // retry skipped.
            false => Snapshot::load(self.adapters.ledger.as_ref(), &now, false).await?.counts,
        };
        let open_doubts =
            find_runs_in_doubt(&list_campaign_runs(self.adapters.ledger.as_ref(), self.inputs()).await?, Some(run.key));
        let (results, figures, kept) = match kind {
            Some(StopKind::LeaseLost) => (None, None, None),
            _ => match self.write_results(&run).await {
                Ok((figures, kept)) => (Some(Ok(self.results_path())), Some(figures), kept),
                Err(error) => (Some(Err(error)), None, None),
            },
        };
        let in_part = figures.as_ref().map_or(0, |figures| figures.channels.count_partial());
        let unwritten = results.as_ref().is_some_and(Result::is_err);
        let stopped_by = if unwritten { Some(StopKind::ResultsUnwritten) } else { kind };
        let parts = parts_before.plus(parts);
        if kind != Some(StopKind::Ledger) && kind != Some(StopKind::LeaseLost) {
            let done =
                matches!(kind, None | Some(StopKind::DeadlineReached)) && counts.get(RowState::Planned) + sending == 0;
            let end = RunEnd {
                // Results are written first: a run without them is not finished.
                progress: if done && !unwritten { RunProgress::Finished } else { RunProgress::Open },
                stop: stopped_by,
                stop_reason: stop.as_ref().map(ToString::to_string),
                counts: counts.clone(),
                parts: parts.billed,
                receipts: now.receipts,
                results: Some(absolute_path(&self.results_path())),
                lag,
                at: (self.adapters.clock)(),
                notifications: self.end_notification(
                    &run,
                    stopped_by,
                    stop.as_ref(),
                    &counts,
                    in_part,
                    done && !unwritten,
                ),
            };
            self.adapters.ledger.end_run(lease, end).await?;
            failpoint::pass("run.marked");
            let (ledger, terms) = (self.adapters.ledger.as_ref(), Some(self.stored_terms()));
            match figures.filter(|figures| figures.counts == counts) {
                Some(figures) => RunFigures { terms, ..figures }.store_computed(ledger, run.key, now.receipts).await,
                // A status arrived in between, or the results could not be written.
                None => RunFigures::store(ledger, run.key, terms).await,
            }
        }
        let time = began.elapsed();
        let never = counts.get(RowState::Skipped) + counts.get(RowState::Invalid);
        let excluded = match never == counts.total() {
            true => self.adapters.ledger.load_excluded_rows(run.key).await?,
            false => ExcludedRows::default(),
        };
        Ok(EndedRun {
            run,
            stop,
            kind: stopped_by,
            counts,
            sent,
            notes,
            opted_out,
            parts,
            time,
            excluded,
            errors,
            oddities,
            results,
            kept,
            not_begun_error: None,
            earlier: None,
            played,
            open_doubts,
            in_part,
        })
    }

    /// The notification about the end of a run, for the most important selected occasion.
    fn end_notification(
        &self,
        run: &Run,
        kind: Option<StopKind>,
        stop: Option<&Stop>,
        counts: &StateCounts,
        in_part: u64,
        finished: bool,
    ) -> Vec<NewNotification> {
        let inputs = self.inputs();
        let stopped = kind.is_some_and(|kind| !matches!(kind, StopKind::Limit | StopKind::DeadlineReached));
        let doubt = counts.get(RowState::InDoubt) + counts.get(RowState::Unresolved) > 0;
        let occasions = [
            (NotificationEvent::Doubt, doubt),
            (NotificationEvent::Stopped, stopped),
            (NotificationEvent::Finished, finished),
        ];
        let why = match (stop, kind) {
            (Some(stop), _) if stopped => Some(stop.to_string()),
            (_, Some(StopKind::ResultsUnwritten)) => Some("the results could not be written".to_owned()),
            _ => None,
        };
        let wanted = |notify: &NotifySettings| {
            occasions.into_iter().filter(|(_, was)| *was).find_map(|(occasion, _)| {
                let notice = run_notice(run, occasion, counts, in_part, why.clone(), (self.adapters.clock)());
                create_notification(notify, &Notice { results: Some(absolute_path(&self.results_path())), ..notice })
            })
        };
        inputs.campaign.notify_settings(inputs.destination.profile()).filter(|_| run.live).filter_map(wanted).collect()
    }

    /// Writes the results and calculates the figures of the run. The results of another run at that place are kept.
    async fn write_results(&self, run: &Run) -> Result<(RunFigures, Option<ResultsBackup>), Error> {
        let results = RunResults::open(self.adapters.ledger.as_ref(), run, false).await?;
        let written = results.write_file_with_figures(&self.launch.target).await?;
        tracing::info!(run = run.name(), "results written");
        Ok(written)
    }
}

/// The absolute path, so that the results are found from any folder later.
fn absolute_path(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
