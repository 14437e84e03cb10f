//! Start of a run: resuming an unfinished run, or beginning a new run with a survey, the guard, a confirmation and
//! frozen copies.

use std::sync::Arc;

use super::check_campaign::refuse_failed_tests;
use super::fetch::reconcile_past_runs;
use super::find::{absolute_file_path, refuse_other_file};
use super::guard::{StartExclusions, suppression_policy};
use super::inputs::Includes;
use super::launch::{NothingLeft, Preparation, RunOutcome, RunToSend, SelectionNotes, Session};
use super::plan::check_profile;
use super::ports::{Consent, ConsentInAdvance, confirm};
use super::resume::{RunChanges, compare_inputs};
use super::send::{refuse_expired_campaign, refuse_unsendable_start};
use super::{
    CampaignList, CancelledRecipients, ChangedInputs, EarlierEdition, Error, Inputs, ListSurvey, Proposal, Round,
    RunEvent, ScheduleRefusal, SentRecipients, fetch_list, find_sent_recipients, list_campaign_runs, occurrence_key,
    run_blocking,
};
use campaign_core::calendar::Occurrence;
use campaign_core::failpoint;
use campaign_engine::check::RunStart;
use campaign_engine::delivery::{FrozenInputs, FrozenRun};
use campaign_engine::report::{find_runs_in_doubt, is_owned};
use campaign_ledger::{
    CopiesPurpose, Ledger, LedgerError, NewRun, NumberFilter, OccurrenceFilter, OccurrenceOutcome, RowState, Run,
    RunId, RunProgress, RunUpdate, ScheduledOccurrence, StopRequest, find_occurrence,
};

impl Session {
    /// Chooses the run to resume, or begins a new run.
    pub(super) async fn prepare_run(&self) -> Result<Preparation, Error> {
        let (inputs, ledger) = (self.inputs(), self.adapters.ledger.as_ref());
        let runs = list_campaign_runs(ledger, inputs).await?;
        self.refuse_changed_resources()?;
        let listed = self.load_inputs_with_list(&runs).await?;
        let texts = TodaysTexts::compile(&listed).await?;
        if !inputs.destination.is_live() {
            // The earlier rehearsal reached no recipients, so there is nothing to protect or to resume.
            let open = runs.into_iter().rfind(|run| run.progress == RunProgress::Open);
            return self.begin_run(&listed, &texts, open).await;
        }
        if !self.launch.request.moved {
            refuse_other_file(ledger, &runs, inputs, &texts.includes).await?;
        }
        let Some(open) = self.find_run_to_resume(&runs).await? else {
            return self.begin_run(&listed, &texts, None).await;
        };
        // Earlier stop requests do not apply to this invocation; later ones do.
        ledger.update_runs(vec![open.key], RunUpdate::Stop(StopRequest::Withdraw)).await?;
        if self.launch.request.round != Round::Same {
            return Err(Error::RoundUnfinished { run: open.name() });
        }
        let lock = self.lock_for_run(&open).await?;
        match self.refuse_changes(&open, &texts.edition).await {
            Ok(()) => {
                let resumed = self.resume_run(open, &texts.edition, lock).await?;
                self.record_campaign_file().await?;
                Ok(resumed)
            }
            Err(Error::InputsChanged(_)) if self.launch.request.accept_changes => {
                self.refuse_active_shards(&open).await?;
                let listed = self.fetch_list().await?;
                self.begin_run(&listed, &TodaysTexts::compile(&listed).await?, Some(open)).await
            }
            Err(error) => Err(error),
        }
    }

    /// Refuses to replace a run while workers hold shards of it, because the workers would send the same messages as
    /// the new run.
    async fn refuse_active_shards(&self, run: &Run) -> Result<(), Error> {
        if run.sharding.is_none() || self.adapters.ledger.load_claimed_rows(run.key).await?.is_empty() {
            return Ok(());
        }
        Err(Error::Busy { campaign: run.campaign.clone(), gateway: run.gateway.clone(), since: None })
    }

    /// Records the campaign file for runs without a known file, or for all runs if `moved` is set. Callers do this only
    /// after all checks, so a refused invocation records nothing.
    async fn record_campaign_file(&self) -> Result<(), Error> {
        let (inputs, ledger, moved) = (self.inputs(), self.adapters.ledger.as_ref(), self.launch.request.moved);
        if !inputs.destination.is_live() {
            return Ok(());
        }
        let runs = list_campaign_runs(ledger, inputs).await?;
        let keys: Vec<RunId> = runs.iter().filter(|run| moved || run.file.is_none()).map(|run| run.key).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let file = absolute_file_path(&inputs.campaign.file);
        Ok(ledger.update_runs(keys, RunUpdate::CampaignFile(file)).await?)
    }

    /// Surveys the list, asks for confirmation, and creates the run. The run `replaced` ends in its current state.
    async fn begin_run(
        &self,
        listed: &Arc<Inputs>,
        texts: &TodaysTexts,
        replaced: Option<Run>,
    ) -> Result<Preparation, Error> {
        let (inputs, ledger) = (self.inputs(), self.adapters.ledger.as_ref());
        let (live, again) = (inputs.destination.is_live(), self.launch.request.round != Round::Same);
        if live {
            refuse_expired_campaign(inputs, (self.adapters.clock)())?;
        }
        let edition = self.choose_edition(&texts.edition, replaced.as_ref().filter(|_| live)).await;
        if let Some(replaced) = replaced.as_ref().filter(|_| live && edition != texts.edition) {
            let edition = edition.to_owned();
            (self.adapters.observer)(RunEvent::EditionKept { replaced: replaced.name(), edition });
        }
        let mut sent = find_sent_recipients(ledger, inputs, edition).await?;
        if again {
            sent.begin_round();
        } else if replaced.is_none() && !self.launch.request.accept_changes {
            refuse_other_text(ledger, &sent, inputs, &texts.includes).await?;
        }
        if let Some(replaced) = replaced.as_ref().filter(|_| live) {
            // Recipients of the replaced run are excluded in every edition, so that an unrelated change does not cause
            // a second message to them.
            sent.numbers |= ledger.load_numbers(NumberFilter::Sent(&[replaced.key])).await?;
        }
        let random = rand::random();
        let mut copies = ledger.prepare_copies(CopiesPurpose::NewRun(self.lock()?)).await?;
        let list = copies.list_writer()?;
        let cancelled = if again { CancelledRecipients::default() } else { sent.find_cancelled(ledger).await? };
        let CancelledRecipients { numbers: cancelled, runs: cancelled_in } = cancelled;
        let replaces = replaced.as_ref().filter(|_| live);
        let observer = &self.adapters.observer;
        let StartExclusions { survey: excluded, opt_out_version: version } =
            sent.find_exclusions(ledger, listed, cancelled, replaces, observer).await?;
        let surveyed = Arc::clone(listed);
        let survey = run_blocking(move || surveyed.run_survey(&excluded, Some(list))).await??;
        let survey = survey.with_spending(ledger, inputs, &sent.edition).await?;
        let survey = survey.with_earlier_countries(Some(ledger), inputs, &sent.numbers).await?;
        tracing::info!(recipients = survey.survey.recipients, planned = survey.survey.count_planned(), "surveyed");
        if live {
            refuse_unsendable_start(inputs, &survey.survey, (self.adapters.clock)())?;
        }
        if self.launch.request.occurrence.is_none() {
            refuse_failed_tests(listed, &self.adapters.observer).await?;
        }
        self.refuse_unplanned(&survey)?;
        let chosen = self.launch.request.choose_rows(&survey.survey.planned_rows(), survey.survey.last_row)?;
        // A list without valid recipients becomes a run whose results list the invalid rows. If earlier runs sent to
        // the list, their results exist already. If sending requires an approval, no run begins, because a run without
        // recipients cannot be approved.
        let only_invalid = !self.launch.request.approved_only
            && survey.survey.count_planned() == 0
            && sent.numbers.is_empty()
            && cancelled_in.is_empty()
            && survey.survey.recipients > 0;
        if chosen.is_empty() && !only_invalid {
            return self.end_without_recipients(survey, &sent, cancelled_in, replaced).await;
        }
        self.refuse_restored_ledger(survey.survey.count_planned()).await?;
        self.launch.request.check_recipient_count(inputs.destination.profile(), survey.survey.count_planned())?;
        self.launch.request.check_abroad_count(inputs.destination.profile(), &survey)?;
        if let Some(profile) = inputs.destination.profile().filter(|_| !chosen.is_empty()) {
            check_profile(&self.adapters, profile).await?;
        }
        let in_edition = |run: &Run| run.edition == edition || replaced.as_ref().is_some_and(|old| old.key == run.key);
        let approval = self.find_new_run_approval(&survey, &chosen, in_edition).await?;
        self.refuse_unapproved(approval.is_some(), chosen.len())?;
        let consent: &dyn Consent = if approval.is_some() { &ConsentInAdvance } else { self.consent.as_ref() };
        let remote = inputs.destination.remote_profile().filter(|_| !chosen.is_empty());
        if remote.is_none() || !consent.shows_proposals() {
            (self.adapters.observer)(RunEvent::Warnings(survey.warnings_for_rows(
                inputs,
                &chosen,
                RunStart::At((self.adapters.clock)()),
            )));
        }
        if let Some(profile) = remote {
            let is_shown = consent.shows_proposals();
            let balance = match self.queries_gateway_first(consent) {
                true => self.check_new_messages(profile, &survey.survey, &chosen, is_shown).await?,
                false => None,
            };
            let samples = if is_shown { survey.pick_samples(listed, &chosen)? } else { Vec::new() };
            let (samples, balance) = (samples.as_slice(), balance.as_ref());
            let proposal = Proposal::Begin { inputs, profile, survey: &survey, rows: &chosen, samples, balance, again };
            confirm(consent, proposal).await?;
        }
        self.refuse_unstorable_evidence(&survey)?;
        self.record_campaign_file().await?;
        let run = self.create_run(&self.new_run(&survey, edition, sent.round, version, random)).await?;
        failpoint::pass("run.created");
        let bytes = freeze_inputs(inputs, &survey).to_bytes();
        let bytes = bytes.map_err(|error| Error::Storage(format!("cannot store the run's inputs: {error}")))?;
        copies.freeze(bytes, &run).await?;
        tracing::info!(run = run.name(), "frozen");
        self.record_evidence(&run, &survey).await?;
        let replaced = replaced.map(|run| run.key);
        let token = approval.as_ref().map(|approval| approval.token.as_str());
        let is_open = ledger.open_run(run.key, replaced, token).await?;
        if let Some(approval) = approval.as_ref().filter(|_| !is_open) {
            // The approval became invalid in the meantime, for example because another run used it. This run was not
            // opened.
            return Err(Self::used_approval_error(approval));
        }
        failpoint::pass("run.opened");
        let before = sent.first_sending().filter(|_| survey.survey.left_out.count_rows(RowState::Skipped) > 0);
        let zones = Some(survey.survey.zones);
        let notes = SelectionNotes { before, cancelled_in, zones, ..SelectionNotes::default() };
        let (lock, limit) = (Arc::clone(self.lock()?), self.launch.request.limit);
        Ok(Preparation::Send(Box::new(RunToSend { limit, notes, ..RunToSend::new(run, lock) })))
    }

    /// Creates the run together with the record of its occurrence. A rehearsal by a person records no occurrence, because
    /// the live run of the same occurrence must still be sent.
    async fn create_run(&self, new: &NewRun) -> Result<Run, Error> {
        let ledger = self.adapters.ledger.as_ref();
        let request = &self.launch.request;
        let occurrence = request.occurrence.as_ref().filter(|_| new.live || request.schedule_digest.is_some());
        let scheduled = occurrence.map(|occurrence| ScheduledOccurrence {
            key: occurrence_key(&new.campaign, occurrence),
            at: occurrence.at,
        });
        let created = ledger.create_run(new, scheduled.as_ref()).await?;
        created.ok_or_else(|| {
            let nominal = occurrence.map(Occurrence::format_nominal_time).unwrap_or_default();
            Error::Schedule(ScheduleRefusal::Recorded { nominal })
        })
    }

    /// Finds the unfinished run that this invocation resumes, in any edition: a run that began yesterday keeps its
    /// edition until it ends. An occurrence resumes only its own run, so an earlier stopped run does not block it.
    async fn find_run_to_resume(&self, runs: &[Run]) -> Result<Option<Run>, Error> {
        match self.select_unfinished_run(runs).await? {
            None if self.launch.request.occurrence.is_none() => self.reconcile_finished_run(runs).await,
            unfinished => Ok(unfinished),
        }
    }

    /// Finds the unfinished run in `runs`. For an occurrence of a schedule, only the run of that occurrence is
    /// considered.
    pub(super) async fn select_unfinished_run(&self, runs: &[Run]) -> Result<Option<Run>, Error> {
        let Some(occurrence) = &self.launch.request.occurrence else {
            return Ok(runs.iter().rfind(|run| run.progress == RunProgress::Open).cloned());
        };
        let key = occurrence_key(&self.inputs().campaign.brief.name, occurrence);
        let recorded = find_occurrence(self.adapters.ledger.as_ref(), OccurrenceFilter::Key(&key)).await?;
        match recorded.map(|record| record.outcome) {
            Some(OccurrenceOutcome::Fired(key)) => {
                let open_run = runs.iter().find(|run| run.key == key && run.progress == RunProgress::Open);
                Ok(open_run.cloned())
            }
            Some(OccurrenceOutcome::Skipped(_)) | None => Ok(None),
        }
    }

    /// Ends an invocation that has no recipients left. The run `replaced` is retired if the list has no planned rows
    /// either.
    async fn end_without_recipients(
        &self,
        survey: ListSurvey,
        sent: &SentRecipients,
        cancelled_in: Vec<String>,
        replaced: Option<Run>,
    ) -> Result<Preparation, Error> {
        self.record_campaign_file().await?;
        let ledger = self.adapters.ledger.as_ref();
        let has_planned_rows = survey.survey.count_planned() > 0;
        if let Some(replaced) = replaced.filter(|_| !has_planned_rows) {
            ledger.update_runs(vec![replaced.key], RunUpdate::Retired).await?;
        }
        let selected = survey.survey.count_matching(|row| {
            self.launch.request.rows.as_ref().filter(|_| has_planned_rows).is_none_or(|rows| rows.contains(row))
        });
        let open_doubts = find_runs_in_doubt(&list_campaign_runs(ledger, self.inputs()).await?, None);
        let (before, doubt) = (sent.first_sending(), sent.has_messages_in_doubt());
        let nothing = NothingLeft { survey, selected, before, cancelled_in, doubt, open_doubts, earlier: None };
        Ok(Preparation::Nothing(RunOutcome::NothingLeft(Box::new(nothing))))
    }

    /// The edition of a new run. A run that replaces another keeps the edition of the replaced run, such as yesterday's
    /// date, unless the campaign's `edition` has changed.
    async fn choose_edition<'e>(&self, rendered: &'e str, replaced: Option<&'e Run>) -> &'e str {
        let Some(replaced) = replaced else { return rendered };
        match self.load_frozen(replaced).await {
            Ok(frozen) if frozen.inputs.brief.edition == self.inputs().campaign.brief.edition => &replaced.edition,
            _ => rendered,
        }
    }

    fn new_run(&self, survey: &ListSurvey, edition: &str, round: u32, version: u64, random: u64) -> NewRun {
        let inputs = self.inputs();
        let brief = &inputs.campaign.brief;
        NewRun {
            campaign: brief.name.clone(),
            edition: edition.to_owned(),
            gateway: brief.gateway.clone(),
            account: inputs.destination.account_name().to_owned(),
            endpoint: brief.endpoint,
            kind: brief.content.kind,
            live: inputs.destination.is_live(),
            round,
            recipients: survey.survey.recipients,
            last_row: survey.survey.last_row,
            excluded: survey.survey.left_out.clone(),
            suppression: suppression_policy(inputs, version),
            file: Some(absolute_file_path(&inputs.campaign.file)),
            began_at: (self.adapters.clock)(),
            random,
        }
    }
}

/// The edition and the included texts of a campaign, compiled for today.
pub(super) struct TodaysTexts {
    /// The edition, rendered.
    pub(super) edition: String,
    /// The included and extended texts, by name.
    pub(super) includes: Includes,
}

impl TodaysTexts {
    /// Opens the list and compiles the texts.
    pub(super) async fn compile(inputs: &Arc<Inputs>) -> Result<Self, Error> {
        let inputs = Arc::clone(inputs);
        run_blocking(move || {
            let prepared = inputs.compile_campaign()?;
            Ok(Self { includes: prepared.recipe.list_included_sources().to_vec(), edition: prepared.edition })
        })
        .await?
    }
}

/// The frozen inputs of a new run.
pub(super) fn freeze_inputs(inputs: &Inputs, survey: &ListSurvey) -> FrozenInputs {
    let campaign = &inputs.campaign;
    FrozenInputs {
        brief: campaign.brief.clone(),
        includes: survey.includes.clone(),
        today: inputs.today.clone(),
        // An absolute path, because later commands can run in any folder.
        campaign_file: std::path::absolute(&campaign.file).unwrap_or_else(|_| campaign.file.clone()),
        list: campaign.recipients.list_file().map(|list| list.path().into()),
        recipients_sha256: survey.sha256.clone(),
        forgotten: Vec::new(),
        trims_cells: true,
    }
}

/// Refuses inputs that the command `run` would not send because of earlier runs. Returns the unfinished run that the
/// command would resume with this list.
///
/// # Errors
/// If the command would not send, or the ledger or an input cannot be read.
pub(super) async fn refuse_start(ledger: &dyn Ledger, inputs: &Arc<Inputs>) -> Result<Option<Run>, Error> {
    if !inputs.destination.is_live() {
        return Ok(None);
    }
    let texts = TodaysTexts::compile(inputs).await?;
    let runs = list_campaign_runs(ledger, inputs).await?;
    refuse_other_file(ledger, &runs, inputs, &texts.includes).await?;
    let Some(open) = runs.into_iter().rfind(|run| run.progress == RunProgress::Open) else {
        let sent = find_sent_recipients(ledger, inputs, &texts.edition).await?;
        return refuse_other_text(ledger, &sent, inputs, &texts.includes).await.map(|()| None);
    };
    let copies = FrozenRun::load(ledger, &open).await.map(Arc::new);
    let frozen_list = copies.as_ref().ok().map(|frozen| frozen.inputs.recipients_sha256.clone());
    match refuse_changes(&open, copies, inputs, &texts.edition).await {
        Ok(()) => {}
        // The process that sends the run uses the stored copies, so changes to the files do not matter.
        Err(Error::InputsChanged(_)) if is_owned(ledger, &open).await? => return Ok(None),
        Err(error) => return Err(error),
    }
    // A run uses its own copy of a fetched list, so its rows might not be those of the list that was fetched now.
    let listed = Arc::clone(inputs);
    let is_same_list = match inputs.list {
        CampaignList::Fetched(_) => {
            let (_, sha256) = run_blocking(move || listed.compute_fingerprint()).await??;
            frozen_list == Some(sha256)
        }
        CampaignList::File(_) | CampaignList::Copies(_) | CampaignList::NotFetched(_) => true,
    };
    Ok(Some(open).filter(|_| is_same_list))
}

/// Refuses to resume a run whose campaign, texts or list have changed since it began. `edition` is the current edition.
async fn refuse_changes(
    run: &Run,
    copies: Result<Arc<FrozenRun>, LedgerError>,
    inputs: &Arc<Inputs>,
    edition: &str,
) -> Result<(), Error> {
    let RunChanges { changes: Some(changes), keeps_edition } = compare_inputs(copies, inputs).await? else {
        return Ok(());
    };
    let earlier_edition = (run.edition != edition).then(|| EarlierEdition {
        unfinished: run.edition.clone(),
        current: edition.to_owned(),
        is_kept: keeps_edition,
    });
    let (run, file, current) = (run.name(), inputs.campaign.file.clone(), &inputs.campaign.brief.gateway);
    let gateway = (*current != inputs.own_gateway).then(|| current.clone());
    Err(Error::InputsChanged(Box::new(ChangedInputs { run, file, gateway, changes, earlier_edition })))
}

/// Refuses a different text within an edition if some recipients already have a message, because they would not get the
/// new text.
pub(super) async fn refuse_other_text(
    ledger: &dyn Ledger,
    sent: &SentRecipients,
    inputs: &Inputs,
    includes: &Includes,
) -> Result<(), Error> {
    let Some(run) = sent.last_run().filter(|_| !sent.numbers.is_empty()) else { return Ok(()) };
    // If the texts cannot be compared, nothing is refused: recipients with a message are skipped anyway.
    let Ok(frozen) = FrozenInputs::load_for_run(ledger, run).await else { return Ok(()) };
    let changes = frozen.describe_message_changes(&inputs.campaign.brief, includes);
    match changes.is_empty() {
        true => Ok(()),
        false => {
            let (run, began_at) = (run.name(), run.began_at);
            Err(Error::TextChanged { run, began_at, people: sent.numbers.len(), changes })
        }
    }
}

impl Session {
    /// Refuses to resume a run whose campaign, texts or list have changed since it began.
    async fn refuse_changes(&self, run: &Run, edition: &str) -> Result<(), Error> {
        refuse_changes(run, self.load_frozen(run).await, self.inputs(), edition).await
    }

    /// Loads the campaign with its list. If an unfinished run will be resumed, a list that would have to be fetched is
    /// read from the stored copy of that run instead.
    pub(super) async fn load_inputs_with_list(&self, runs: &[Run]) -> Result<Arc<Inputs>, Error> {
        let inputs = self.inputs();
        if inputs.destination.is_live()
            && let Some(open) = self.select_unfinished_run(runs).await?
        {
            return self.load_inputs_with_stored_list(&open).await;
        }
        self.fetch_list().await
    }

    /// Loads the campaign with the stored copy of a run's list. A list that is a file is not replaced. If the copy is
    /// lost, the list is fetched again.
    pub(super) async fn load_inputs_with_stored_list(&self, run: &Run) -> Result<Arc<Inputs>, Error> {
        let inputs = self.inputs();
        if !inputs.list.is_unfetched() {
            return Ok(Arc::clone(inputs));
        }
        match self.load_frozen(run).await {
            Ok(frozen) => Ok(Arc::new(inputs.with_list(CampaignList::Copies(frozen.copies.clone())))),
            Err(_) => self.fetch_list().await,
        }
    }

    /// Fetches the list, unless it is a file, after updating the statuses of the earlier runs that the campaign uses.
    /// Returns the campaign with the list.
    pub(super) async fn fetch_list(&self) -> Result<Arc<Inputs>, Error> {
        let (inputs, adapters) = (self.inputs(), &self.adapters);
        reconcile_past_runs(adapters, inputs).await?;
        fetch_list(inputs, adapters.fetch_context()).await
    }
}
