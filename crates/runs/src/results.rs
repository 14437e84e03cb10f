//! Writing the results of runs, without overwriting any other file.
//!
//! Results are written when sending ends or stops, together with the run's record and its notification. They are
//! updated after new statuses or decisions.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use campaign_content::message::Notice;
use campaign_core::domain::NotificationEvent;
use campaign_core::failpoint;
use campaign_core::finding::{Finding, rules};
use campaign_engine::delivery::{FrozenInputs, SendEnding, Snapshot, Stop};
use campaign_engine::report::{
    ProtectedPath, ResultsBackup, ResultsTarget, RunFigures, RunResults, find_runs_in_doubt, is_owned,
};
use campaign_ledger::{
    BilledParts, CAPPED, COUNTRY, Lease, NewNotification, RowState, Run, RunEnd, RunFilter, RunProgress, RunUpdate,
    StateCounts, StopKind,
};
use campaign_manifest::{Campaign, CampaignPath, NotifySettings, load_campaign};
use campaign_sandbox::Counts;
use tokio::time::{Instant, sleep};

use roaring::RoaringBitmap;

use super::find::{find_stored_run, reload_run};
use super::launch::{SelectionNotes, Session};
use super::{
    Adapters, EndedRun, Error, Inputs, Profiles, RunEvent, RunPhase, find_later_run, is_folder_gone,
    list_campaign_runs, run_blocking,
};
use crate::notify::{create_notification, run_notice};

/// The interval at which outdated results are looked for.
const UPDATE_INTERVAL: Duration = Duration::from_secs(60);
/// The pause after an update, as a multiple of the duration of the update. Writing results thus takes less than 1/20 of
/// the time.
const REST_FACTOR: u32 = 20;

/// The reason the results of a run were not updated.
#[derive(Debug, thiserror::Error)]
pub enum StaleResults {
    /// A later run wrote its results to the same file.
    #[error("`{path}` contains the results of {later}")]
    Later {
        /// The name of the run whose results were not updated.
        run: String,
        /// The later run.
        later: String,
        /// The path of the results.
        path: PathBuf,
    },
    /// The campaign's folder no longer exists at the path of the results.
    #[error("the folder that contained `{path}` no longer exists")]
    Gone {
        /// The name of the run whose results were not updated.
        run: String,
        /// The path of the results.
        path: PathBuf,
    },
    /// The results could not be written.
    #[error("{0}")]
    Failed(Error),
}

/// Writes the results of a run again, from its `current` record, unless a later run wrote its results to the same file.
/// Returns the reason if the results were not written.
pub(super) async fn rewrite_results(adapters: &Adapters, run: &Run, current: &Run) -> Option<StaleResults> {
    let (path, ledger) = (run.results.as_ref()?, adapters.ledger.as_ref());
    if is_folder_gone(ledger, run, Path::new(path)).await {
        return Some(StaleResults::Gone { run: current.name(), path: PathBuf::from(path) });
    }
    match find_later_run(ledger, current, path).await {
        Ok(None) => write_results_to(adapters, current, Path::new(path)).await.err().map(StaleResults::Failed),
        Ok(Some(later)) => Some(StaleResults::Later { run: current.name(), later, path: PathBuf::from(path) }),
        Err(error) => Some(StaleResults::Failed(error.into())),
    }
}

async fn write_results_to(adapters: &Adapters, current: &Run, path: &Path) -> Result<(), Error> {
    let Adapters { state, profiles, ledger, .. } = adapters;
    let results = RunResults::open(ledger.as_ref(), current, false).await?;
    let target = ProtectedFiles { state, profiles }.results_target_of_run(results.frozen_inputs(), path.to_owned());
    if let Some(backup) = results.write_file(&target).await? {
        (adapters.observer)(RunEvent::ResultsKept(backup));
    }
    Ok(())
}

/// Updates results that receipts have made outdated, until the shutdown.
pub async fn update_results_until_shutdown(adapters: Adapters, shutdown: impl Future<Output = ()>) {
    let work = async {
        loop {
            let began = Instant::now();
            if let Err(error) = update_stale_results(&adapters).await {
                tracing::warn!("outdated results cannot be updated: {error}");
            }
            sleep(UPDATE_INTERVAL.max(began.elapsed() * REST_FACTOR)).await;
        }
    };
    tokio::select! { () = shutdown => {}, () = work => {} }
}

/// Updates the results of runs that received receipts after their rows were counted, except runs that are being sent.
async fn update_stale_results(adapters: &Adapters) -> Result<(), Error> {
    let stale = adapters.ledger.list_stored_runs(RunFilter { uncounted: true, ..RunFilter::all() }).await?;
    for run in stale.into_iter().flatten().filter(|run| run.counts.is_some()) {
        if let Some(stale_results) = refresh_run(adapters, &run).await? {
            tracing::debug!(run = run.name(), "the results were not updated: {stale_results}");
        }
    }
    Ok(())
}

/// Counts the rows of a run again and updates its results, unless a process is sending the run. Returns the reason if
/// the results could not be written, for example because a later run has the same results file.
///
/// # Errors
/// If the ledger cannot be read or written.
pub(super) async fn refresh_run(adapters: &Adapters, run: &Run) -> Result<Option<StaleResults>, Error> {
    let ledger = adapters.ledger.as_ref();
    loop {
        let before = reload_run(ledger, run.key).await?;
        if is_owned(ledger, &before).await? {
            return Ok(None);
        }
        let snapshot = Snapshot::load(ledger, &before, false).await?;
        let unwritten = rewrite_results(adapters, &before, &before).await;
        let current = reload_run(ledger, run.key).await?;
        // If these values differ, another process took and released the run in the meantime. The results written here
        // might have replaced newer results of that process, so they are written again.
        if (current.ended_at, current.epoch) == (before.ended_at, before.epoch) {
            ledger
                .update_runs(
                    vec![run.key],
                    RunUpdate::Counts {
                        counts: snapshot.counts,
                        parts: snapshot.parts.billed,
                        receipts: before.receipts,
                    },
                )
                .await?;
            RunFigures::compute_and_store(ledger, run.key, None).await;
            return Ok(unwritten);
        }
    }
}

/// Files that results never overwrite in any campaign: the state folder and the profiles.
#[derive(Clone, Copy)]
pub struct ProtectedFiles<'a> {
    /// The state folder.
    pub state: &'a Path,
    /// Where gateway profiles are loaded from.
    pub profiles: &'a Profiles,
}

impl ProtectedFiles<'_> {
    /// The target for the results of a campaign at `path`.
    pub fn results_target(self, campaign: &Campaign, path: CampaignPath) -> ResultsTarget {
        let mut protected = self.list_protected_paths(Some(&campaign.file));
        protected.extend(list_user_files(campaign));
        ResultsTarget::new(path, protected)
    }

    /// The target for the results of a run at `path`, even if the campaign has changed or disappeared since.
    pub fn results_target_of_run(self, frozen: &FrozenInputs, path: PathBuf) -> ResultsTarget {
        let file = frozen.campaign_file.as_path();
        // A lookup or a verification call has no campaign.
        let has_campaign = !file.as_os_str().is_empty();
        let mut protected = self.list_protected_paths(has_campaign.then_some(file));
        if has_campaign {
            protected.push(ProtectedPath { path: file.to_owned(), what: "the campaign file" });
            let list = frozen.list.clone();
            protected.extend(list.map(|path| ProtectedPath { path, what: "the recipient list" }));
            protected.extend(load_campaign(file, frozen.day()).value.iter().flat_map(list_user_files));
        }
        ResultsTarget::new(CampaignPath::anywhere(path), protected)
    }

    /// Returns a finding if the results of this campaign cannot be written to the path in the campaign file.
    pub fn check_results_target(self, inputs: &Inputs) -> Option<Finding> {
        let campaign = &inputs.campaign;
        let problem = self.results_target(campaign, campaign.results_file()).resolve_path().err()?;
        let finding = Finding::new(&rules::RESULTS_OVERWRITE, format!("cannot write the results: {problem}"));
        let help =
            "specify another file under `results`, or move the existing file; only a results file can be overwritten";
        Some(finding.at(campaign.places.locate_key("results")).help(help))
    }

    fn list_protected_paths(self, campaign: Option<&Path>) -> Vec<ProtectedPath> {
        let gateways = self.profiles.list_files(campaign).into_iter();
        let gateways = gateways.map(|path| ProtectedPath { path, what: "the gateway profiles file" });
        let state = ProtectedPath { path: self.state.to_owned(), what: "in the state folder, where the ledger is" };
        gateways.chain([state]).collect()
    }
}

fn list_user_files(campaign: &Campaign) -> Vec<ProtectedPath> {
    let mut protected = vec![ProtectedPath { path: campaign.file.clone(), what: "the campaign file" }];
    let protect = |file: &CampaignPath, description| ProtectedPath { path: file.path().to_owned(), what: description };
    protected.extend(campaign.recipients.list_file().map(|list| protect(list, "the recipient list")));
    protected.extend(campaign.data.iter().map(|table| protect(&table.file, "one of the campaign's data tables")));
    protected.extend(campaign.suppress.iter().map(|list| protect(&list.file, "a suppression list")));
    let description = "one of the campaign's templates";
    protected
        .extend(campaign.places.text_files().map(|path| ProtectedPath { path: path.to_owned(), what: description }));
    protected
}

/// A run whose sending has ended.
pub(super) struct SentRun {
    pub(super) run: Run,
    pub(super) lease: Lease,
    pub(super) ending: SendEnding,
    /// Whether rows with an earlier attempt were planned. If they are skipped, they keep the state of that attempt.
    pub(super) has_resends: bool,
    /// The rows that this command was to send again.
    pub(super) resends: RoaringBitmap,
    pub(super) notes: SelectionNotes,
    /// The billed parts before this invocation.
    pub(super) parts_before: BilledParts,
    /// The time at which this invocation began.
    pub(super) began: std::time::Instant,
    /// Delivery statuses of a rehearsal with a scenario.
    pub(super) played: Option<Counts>,
}

impl Session {
    /// Writes the results and records the end of the run.
    pub(super) async fn end_run(&self, sent_run: SentRun) -> Result<EndedRun, Error> {
        let SentRun { run, lease, ending, has_resends, resends, notes, parts_before, began, played } = sent_run;
        let SendEnding { stopped: stop, counts, sent, opted_out, replied_opt_outs, parts, errors, .. } = ending;
        let (deviations, lag) = (ending.deviations, ending.lag);
        let (kind, sending) = (stop.as_ref().map(|stop| stop.kind), counts.get(RowState::Sending));
        if let Some(StopKind::Interrupted(signal)) = kind
            && sending > 0
        {
            // After a second signal, the process exits at once. Messages in flight will be in doubt when the ledger is
            // next read.
            return Err(Error::Interrupted { signal, phase: RunPhase::Sending(sending) });
        }
        let current = reload_run(self.adapters.ledger.as_ref(), run.key).await?;
        let snapshot = match current.receipts == run.receipts && !has_resends {
            true => None,
            // The counts from sending lack receipts that arrived in the meantime, and the earlier states of skipped
            // rows.
            false => Some(Snapshot::load(self.adapters.ledger.as_ref(), &current, false).await?),
        };
        let counts = snapshot.as_ref().map_or(counts, |snapshot| snapshot.counts.clone());
        let open_doubts =
            find_runs_in_doubt(&list_campaign_runs(self.adapters.ledger.as_ref(), self.inputs()).await?, Some(run.key));
        let target = self.choose_results_target(&current).await;
        let path = target.as_ref().unwrap_or(&self.launch.target).path().to_owned();
        let (results, figures, backup) = match (kind, target) {
            (Some(StopKind::LeaseLost), _) => (None, None, None),
            (_, Ok(target)) => match self.write_results(&run, &target).await {
                Ok((figures, backup)) => (Some(Ok(path.clone())), Some(figures), backup),
                Err(error) => (Some(Err(error)), None, None),
            },
            (_, Err(error)) => (Some(Err(error)), None, None),
        };
        let has_unreported_parts = figures.as_ref().is_none_or(|figures| figures.requests.has_unreported_parts());
        let in_part = figures.as_ref().map_or(0, |figures| figures.channels.count_partial());
        let is_unwritten = results.as_ref().is_some_and(Result::is_err);
        let stopped_by = if is_unwritten { Some(StopKind::ResultsUnwritten) } else { kind };
        let parts = parts_before.plus(parts);
        if kind != Some(StopKind::Ledger) && kind != Some(StopKind::LeaseLost) {
            let is_complete =
                matches!(kind, None | Some(StopKind::DeadlineReached)) && counts.get(RowState::Planned) + sending == 0;
            let end = RunEnd {
                // A run is finished only after its results are written.
                progress: if is_complete && !is_unwritten { RunProgress::Finished } else { RunProgress::Open },
                stop: stopped_by,
                stop_reason: stop.as_ref().map(ToString::to_string),
                counts: counts.clone(),
                parts: parts.billed,
                receipts: current.receipts,
                results: Some(absolute_path(&path)),
                lag,
                at: (self.adapters.clock)(),
                notifications: self.create_end_notifications(
                    &Run { results: Some(absolute_path(&path)), ..run.clone() },
                    stopped_by,
                    stop.as_ref(),
                    &counts,
                    in_part,
                    is_complete && !is_unwritten,
                ),
            };
            self.adapters.ledger.end_run(lease, end).await?;
            failpoint::pass("run.marked");
            let (ledger, terms) = (self.adapters.ledger.as_ref(), Some(self.stored_terms()));
            match figures.filter(|figures| figures.counts == counts) {
                Some(figures) => {
                    RunFigures { terms, ..figures }.store_computed(ledger, run.key, current.receipts).await
                }
                // A status arrived in between, or the results could not be written.
                None => RunFigures::compute_and_store(ledger, run.key, terms).await,
            }
        }
        let time = began.elapsed();
        let is_sent = counts.get(RowState::Skipped) + counts.get(RowState::Invalid) < counts.total();
        let all = self.adapters.ledger.load_excluded_rows(run.key).await?;
        let keeps_state = |row| match snapshot.as_ref().and_then(|snapshot| snapshot.states.recorded_state(row)) {
            None | Some(RowState::Skipped) => false,
            Some(_) => true,
        };
        let excluded = all.filter(|row, reason| (!is_sent || [CAPPED, COUNTRY].contains(&reason)) && !keeps_state(row));
        let not_resent = all.filter(|row, _| keeps_state(row) && resends.contains(row.get()));
        let skipped_opt_outs = (&opted_out - not_resent.rows()).len();
        Ok(EndedRun {
            run,
            stop,
            kind: stopped_by,
            counts,
            sent,
            notes,
            opted_out: opted_out.len() + replied_opt_outs,
            skipped_opt_outs,
            parts: parts.billed,
            has_unreported_parts,
            time,
            excluded,
            not_resent,
            errors,
            deviations,
            results,
            kept: backup,
            not_begun_error: None,
            earlier: None,
            played,
            open_doubts,
            in_part,
        })
    }

    /// Creates the notifications about the end of a run. Each notification setting gets the most important occasion
    /// that the setting selects.
    fn create_end_notifications(
        &self,
        run: &Run,
        kind: Option<StopKind>,
        stop: Option<&Stop>,
        counts: &StateCounts,
        in_part: u64,
        is_finished: bool,
    ) -> Vec<NewNotification> {
        let inputs = self.inputs();
        let is_stopped = kind.is_some_and(|kind| !matches!(kind, StopKind::Limit | StopKind::DeadlineReached));
        let has_doubt = counts.get(RowState::InDoubt) + counts.get(RowState::Unresolved) > 0;
        let occasions = [
            (NotificationEvent::Doubt, has_doubt),
            (NotificationEvent::Stopped, is_stopped),
            (NotificationEvent::Finished, is_finished),
        ];
        let stop_reason = match (stop, kind) {
            (Some(stop), _) if is_stopped => Some(stop.to_string()),
            (_, Some(StopKind::ResultsUnwritten)) => Some("the results could not be written".to_owned()),
            _ => None,
        };
        let create_first_notification = |notify: &NotifySettings| {
            occasions.into_iter().filter(|(_, has_occurred)| *has_occurred).find_map(|(occasion, _)| {
                let notice = run_notice(run, occasion, counts, in_part, stop_reason.clone(), (self.adapters.clock)());
                create_notification(notify, &Notice { results: run.results.clone(), ..notice })
            })
        };
        inputs
            .campaign
            .notify_settings(inputs.destination.profile())
            .filter(|_| run.live)
            .filter_map(create_first_notification)
            .collect()
    }

    /// Chooses the target for the results of a run. If a later run has the campaign's results file, a live run keeps
    /// its own file.
    async fn choose_results_target(&self, run: &Run) -> Result<ResultsTarget, Error> {
        let (ledger, target) = (self.adapters.ledger.as_ref(), self.launch.target.clone());
        let usual_path = absolute_path(target.path());
        if !run.live || !self.is_file_of_later_run(run, &usual_path).await? {
            return Ok(target);
        }
        let recorded = run.results.as_ref().filter(|path| **path != usual_path).map(PathBuf::from);
        let recorded = match recorded {
            Some(path) if is_folder_gone(ledger, run, &path).await => None,
            recorded => recorded,
        };
        let name = run.name();
        run_blocking(move || target.choose_for_earlier_run(&name, recorded.as_deref())).await
    }

    /// Whether the campaign's results file belongs to a later run, according to the ledger or to the file itself.
    async fn is_file_of_later_run(&self, run: &Run, path: &str) -> Result<bool, Error> {
        let ledger = self.adapters.ledger.as_ref();
        if find_later_run(ledger, run, path).await?.is_some() {
            return Ok(true);
        }
        let target = self.launch.target.clone();
        let Some(name) = run_blocking(move || target.read_run_name()).await? else { return Ok(false) };
        let (campaign, _) = name.rsplit_once('@').unwrap_or((&name, ""));
        Ok(find_stored_run(ledger, campaign, &name).await?.is_some_and(|other| other.key.0 > run.key.0))
    }

    /// Writes the results of a run and calculates the figures. Results of another run at the same path are kept as a
    /// backup.
    async fn write_results(
        &self,
        run: &Run,
        target: &ResultsTarget,
    ) -> Result<(RunFigures, Option<ResultsBackup>), Error> {
        let results = RunResults::open(self.adapters.ledger.as_ref(), run, false).await?;
        let written = results.write_file_with_figures(target).await?;
        tracing::info!(run = run.name(), "results written");
        Ok(written)
    }
}

/// Makes a path absolute, so that the results can be found from any working folder later.
fn absolute_path(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
