//! Retries: rows that were rejected, not sent or failed are sent again as new messages with new identifiers.
//!
//! A retry skips rows for every reason for which a run skips recipients; each reason is checked again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roaring::RoaringBitmap;
use tokio::sync::watch;
use tokio::time::Instant;

use super::find::{reload_run, require_campaign_file};
use super::guard::{
    GuardedNumbers, find_cancelled_recipients, find_capped_numbers, find_excluded_numbers, find_sent_rows,
};
use super::held_run::cancelled_error;
use super::launch::{
    ConfirmedRetry, Launch, Preparation, RetryScope, RunOutcome, RunRequest, RunToSend, SelectionNotes, Session,
};
use super::occurrence::{find_occurrence, load_occurrence};
use super::plan::check_profile;
use super::ports::ConsentInAdvance;
use super::profiles::{REQUEST_TIMEOUT, refuse_loopback_change};
use super::resume::RestToConfirm;
use super::send::{open_frozen_list, sending_rules};
use super::{
    Adapters, CampaignList, Connection, Error, Inputs, ProtectedFiles, RetryRefusal, RunEvent, find_opted_out_numbers,
    run_blocking,
};
use campaign_content::audience::Chunk;
use campaign_core::domain::{
    ConsentVerdict, EXPIRED, OperationOutcome, Phone, Row, Status, find_country, format_thousands,
};
use campaign_core::failpoint;
use campaign_engine::check::online::Cost;
use campaign_engine::check::{ALREADY_SENT, CompiledCampaign, SurveyExclusions};
use campaign_engine::delivery::{
    ChainLifetimes, ConfirmedStatus, Interrupt, PendingMessage, SendingHours, SingleKind, Snapshot, StatusPoller,
};
use campaign_ledger::{
    Attempt, Author, EnvelopeReader, NumberFilter, NumberSet, Ownership, ReceiptReader, RetriedRow, RetryOrder,
    RowChange, RowState, RowUpdate, Run, RunActivity, RunFilter, RunId, RunProgress,
};
use campaign_manifest::CampaignDay;

/// The time limit for all inquiries before a retry.
const INQUIRIES_TIMEOUT: Duration = Duration::from_secs(3_600);

/// A row that can be retried, with its last attempt, phone number and error.
struct RetryCandidate {
    row: Row,
    attempt: Attempt,
    /// The time at which the attempt was recorded.
    begun_at: Timestamp,
    phone: Phone,
    /// The state of the row.
    state: RowState,
    /// The status of the failure. Empty if the gateway rejected the message at once.
    status: String,
    error: String,
    /// Whether the gateway rejected the message before trying any channel.
    refused_at_intake: bool,
}

impl RetryCandidate {
    /// Whether the row is in one of these states.
    fn has_state(&self, states: &[RowState]) -> bool {
        states.contains(&self.state) || self.counts_as_rejected() && states.contains(&RowState::Rejected)
    }

    /// Whether the row counts as rejected because the gateway queued the message and rejected it later (see the
    /// contract's notes on the asynchronous endpoint). If the message has several channels, only a rejection at intake
    /// counts. An accepted message was sent, so it does not count.
    fn counts_as_rejected(&self) -> bool {
        let is_refusal = self.state == RowState::Failed && self.status == Status::Rejected.name();
        is_refusal && self.attempt.state != RowState::Accepted && !self.needs_reconciliation()
    }

    /// Whether another channel might have reached the recipient, so the gateway must be asked before the retry.
    fn needs_reconciliation(&self) -> bool {
        self.state == RowState::Failed && self.attempt.chain.has_fallback() && !self.refused_at_intake
    }

    /// Whether the row's error contains one of these texts, ignoring case. Always true if there are no texts.
    fn matches_errors(&self, texts: &[String]) -> bool {
        let error = self.error.to_lowercase();
        texts.is_empty() || texts.iter().any(|text| error.contains(&text.to_lowercase()))
    }
}

/// The number of retried rows with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetriedError {
    /// The state of the rows.
    pub state: RowState,
    /// The error, or the status of the gateway; empty if there is neither.
    pub text: String,
    /// The number of rows.
    pub rows: u64,
}

/// Counts these rows by state and error.
fn count_errors(rows: &[RetryCandidate]) -> Vec<RetriedError> {
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry((row.state, row.error.trim())).or_default() += 1;
    }
    counts.into_iter().map(|((state, text), rows)| RetriedError { state, text: text.to_owned(), rows }).collect()
}

/// The rows of a retry, the state of their run, and the number of rows that are not retried.
struct RetriedRows {
    rows: Vec<RetryCandidate>,
    snapshot: Snapshot,
    skipped: SkippedRetries,
}

/// The states of the rows that a retry on the dashboard, or `campaign retry` without options, sends.
pub const DEFAULT_RETRY_STATES: [RowState; 2] = [RowState::Rejected, RowState::NotSent];

/// A preview of the messages that a retry sends.
#[derive(Debug)]
pub struct RetryPreview {
    /// The campaign with the run's list.
    pub inputs: Arc<Inputs>,
    /// The number of messages.
    pub messages: u64,
    /// The errors of the retried rows, with the number of messages.
    pub errors: Vec<RetriedError>,
    /// The rows that are not retried.
    pub skipped: SkippedRetries,
    /// The highest cost of the messages, if the profile has prices.
    pub cost: Option<Cost>,
    /// Rows whose messages show what is sent.
    pub samples: Vec<Row>,
}

/// Previews what a retry of a run's rejected and unsent messages would send now. No message is sent, and no lock is taken,
/// but the gateway's answers about failed messages are stored.
///
/// # Errors
/// If the retry would be refused by a check of `campaign retry`, or because the profile has an approval rule.
pub async fn preview_retry(adapters: &Adapters, run: &Run) -> Result<RetryPreview, Error> {
    let (launch, scope) = prepare_retry_launch(adapters, run, RunRequest::default()).await?;
    launch.preview_retry(adapters.clone(), &scope).await
}

/// Retries a run's rejected and unsent messages, as confirmed by a person. The retry is subject to every check of
/// `campaign retry`; the function returns when all messages are sent.
///
/// # Errors
/// If nothing was sent, or a second signal arrived.
pub async fn send_confirmed_retry(
    adapters: Adapters,
    run: &Run,
    confirmed: ConfirmedRetry,
    interrupt: watch::Receiver<Interrupt>,
) -> Result<RunOutcome, Error> {
    let request = RunRequest { confirmed_retry: Some(confirmed), ..RunRequest::default() };
    let (launch, scope) = prepare_retry_launch(&adapters, run, request).await?;
    launch.retry(adapters, Arc::new(ConsentInAdvance), interrupt, scope).await
}

/// Loads the campaign of a run as `campaign retry` does.
async fn prepare_retry_launch(
    adapters: &Adapters,
    run: &Run,
    request: RunRequest,
) -> Result<(Launch, RetryScope), Error> {
    let ledger = adapters.ledger.as_ref();
    if SingleKind::from_run(run).is_some() {
        return Err(Error::SingleRun { run: run.name() });
    }
    let occurrence = find_occurrence(ledger, run.key).await?;
    let file = require_campaign_file(ledger, run).await?;
    let (gateway, name) = (run.gateway.clone(), run.name());
    let (adapters, now) = (adapters.clone(), (adapters.clock)());
    let launch = run_blocking(move || {
        let Adapters { state, profiles, .. } = &adapters;
        let inputs = match &occurrence {
            Some(occurrence) => load_occurrence(profiles, &file, Some(&gateway), occurrence)?,
            None => Inputs::load(&file, Some(&gateway), profiles, CampaignDay::Of(now))?,
        };
        // The rule's threshold does not matter here: a click must not replace a second person's approval.
        if inputs.destination.remote_profile().is_some_and(|profile| profile.approval.is_some()) {
            return Err(RetryRefusal::NeedsApproval { run: name, gateway }.into());
        }
        let files = ProtectedFiles { state, profiles };
        if let Some(finding) = files.check_results_target(&inputs) {
            return Err(Error::Findings(vec![finding]));
        }
        Launch::prepare(Arc::new(inputs), request, files)
    });
    Ok((launch.await??, RetryScope { run: run.key, states: DEFAULT_RETRY_STATES.to_vec(), errors: Vec::new() }))
}

/// Finds the gateway's status for a row that was rejected after it was queued or in doubt.
fn find_rejection_status(snapshot: &Snapshot, row: Row, envelope: u32) -> String {
    let envelope_events = snapshot.states.events().for_row(row).iter().rev().filter(|event| event.envelope == envelope);
    let mut statuses = envelope_events.filter_map(|event| match &event.change {
        RowChange::Found { status, .. } => Some(status.clone()),
        _ => None,
    });
    statuses.next().unwrap_or_default()
}

impl Session {
    /// Reserves new message identifiers for the retried rows of a run, and selects the run for sending.
    pub(super) async fn prepare_retry(&self, scope: &RetryScope) -> Result<Preparation, Error> {
        let ledger = self.adapters.ledger.as_ref();
        let run = reload_run(ledger, scope.run).await?;
        let runs = ledger.list_runs(RunFilter::for_campaign(&run.campaign)).await?;
        self.check_retry_allowed(&run, &runs)?;
        let lock = self.lock_for_run(&run).await?;
        let RetriedRows { rows, snapshot, skipped } = self.select_retried_rows(&run, &runs, scope).await?;
        let (number, errors) = (rows.len() as u64, count_errors(&rows));
        self.refuse_unconfirmed_number(&run, number)?;
        (self.adapters.observer)(RunEvent::RetryPlanned {
            run: run.name(),
            rows: number,
            skipped: skipped.clone(),
            errors,
            scope: scope.clone(),
        });
        if let Some(profile) = self.inputs().destination.remote_profile() {
            let retried_rows: RoaringBitmap = rows.iter().map(|candidate| candidate.row.get()).collect();
            let rest = match self.consent.shows_proposals() {
                true => self.survey_rest(&run, |_| Ok(retried_rows.clone())).await.ok(),
                false => None,
            };
            let cost = match (&rest, self.consent.can_confirm()) {
                (Some(rest), true) => Some(self.compute_rest_cost(profile, rest)),
                (None, true) => Some(self.compute_chosen_cost(profile, &run, |_| Ok(retried_rows)).await?),
                (_, false) => None,
            };
            let rest = RestToConfirm { number, cost, balance: None, rest, is_retry: true };
            self.confirm_rest(self.consent.as_ref(), profile, &run, &snapshot, rest).await?;
        }
        let lease = ledger.claim_run(&lock, run.key).await?.lease;
        let order = RetryOrder {
            rows: rows
                .iter()
                .map(|candidate| RetriedRow { row: candidate.row, envelope: candidate.attempt.envelope })
                .collect(),
            by: Author::Person(self.launch.request.retry_author()),
            random: rand::random(),
        };
        if ledger.update_rows(lease, RowUpdate::Retry(order)).await? == Ownership::Lost {
            return Err(Error::Taken { run: run.name() });
        }
        failpoint::pass("retry.ordered");
        (self.adapters.observer)(RunEvent::Retrying { run: run.name(), rows: number });
        // The run is reloaded, because the retry reserved new identifiers.
        let run = reload_run(ledger, scope.run).await?;
        let notes = SelectionNotes { skipped, ..SelectionNotes::default() };
        let limit = self.launch.request.limit;
        Ok(Preparation::Send(Box::new(RunToSend { limit, is_retry: true, notes, ..RunToSend::new(run, lock) })))
    }

    /// Selects the rows of a run that a retry sends, after every check that needs no confirmation.
    async fn select_retried_rows(&self, run: &Run, runs: &[Run], scope: &RetryScope) -> Result<RetriedRows, Error> {
        let ledger = self.adapters.ledger.as_ref();
        if let Some(changes) = self.find_changes(run).await?.changes {
            let (run, file, gateway) = (run.name(), self.inputs().campaign.file.clone(), run.gateway.clone());
            return Err(RetryRefusal::Changed { run, file, gateway, changes }.into());
        }
        let snapshot = Snapshot::load(ledger, run, false).await?;
        let candidates = self
            .find_retry_candidates(run, &snapshot)
            .await?
            .into_iter()
            .filter(|row| row.matches_errors(&scope.errors));
        let (rows, other_rows): (Vec<RetryCandidate>, Vec<RetryCandidate>) =
            candidates.partition(|row| row.has_state(&scope.states));
        let mut exclusions = self.find_retry_exclusions(run, runs).await?;
        let (mut skipped, mut sendable) = (SkippedRetries::default(), Vec::new());
        for candidate in rows {
            match exclusions.find_reason_or_count(candidate.row, candidate.phone) {
                Some(reason) => *skipped.excluded.entry(reason).or_default() += 1,
                None => sendable.push(candidate),
            }
        }
        if let Some(profile) = self.inputs().destination.profile() {
            refuse_loopback_change(run, profile)?;
            check_profile(&self.adapters, profile).await?;
        }
        let (rows, snapshot) = self.keep_retryable_rows(run, snapshot, sendable, &mut skipped).await?;
        let (number, unconfirmed) = (rows.len() as u64, skipped.unconfirmed);
        let accepted = self.launch.request.accept_duplicates;
        if unconfirmed > 0 && (number == 0 || accepted.is_some_and(|accepted| accepted != number)) {
            return Err(RetryRefusal::Unconfirmed { run: run.name(), rows: unconfirmed, accepted }.into());
        }
        if number == 0 {
            let failed = other_rows.iter().filter(|row| row.state == RowState::Failed).count() as u64;
            let error = (!scope.errors.is_empty()).then(|| scope.errors.join("` or `"));
            return Err(RetryRefusal::Nothing { run: run.name(), failed, error, skipped }.into());
        }
        self.refuse_restored_retry(run, number).await?;
        self.refuse_unapproved_retry(run, number).await?;
        Ok(RetriedRows { rows, snapshot, skipped })
    }

    /// Previews what a retry sends, without taking the lock.
    pub(super) async fn preview_retry(&self, scope: &RetryScope) -> Result<RetryPreview, Error> {
        let ledger = self.adapters.ledger.as_ref();
        let run = reload_run(ledger, scope.run).await?;
        let runs = ledger.list_runs(RunFilter::for_campaign(&run.campaign)).await?;
        self.check_retry_allowed(&run, &runs)?;
        let RetriedRows { rows, skipped, .. } = self.select_retried_rows(&run, &runs, scope).await?;
        let retried_rows: RoaringBitmap = rows.iter().map(|candidate| candidate.row.get()).collect();
        let rest = self.survey_rest(&run, |_| Ok(retried_rows)).await?;
        let priced = self.inputs().destination.profile().filter(|profile| !profile.prices.is_empty());
        let cost = priced.map(|profile| self.compute_rest_cost(profile, &rest));
        Ok(RetryPreview {
            messages: rows.len() as u64,
            errors: count_errors(&rows),
            skipped,
            cost,
            samples: rest.samples.iter().map(|sample| sample.row).collect(),
            inputs: rest.inputs,
        })
    }

    /// Refuses a retry if the number of messages differs from the count that a person confirmed.
    fn refuse_unconfirmed_number(&self, run: &Run, number: u64) -> Result<(), Error> {
        match &self.launch.request.confirmed_retry {
            Some(confirmed) if confirmed.messages != number => {
                Err(RetryRefusal::OtherNumber { run: run.name(), confirmed: confirmed.messages, number }.into())
            }
            _ => Ok(()),
        }
    }

    /// Asks the gateway about rows with a fallback channel. Returns the rows that can be retried, and the snapshot, which
    /// is reloaded if the gateway was asked. Counts the other rows in `skipped`.
    async fn keep_retryable_rows(
        &self,
        run: &Run,
        snapshot: Snapshot,
        rows: Vec<RetryCandidate>,
        skipped: &mut SkippedRetries,
    ) -> Result<(Vec<RetryCandidate>, Snapshot), Error> {
        let (to_confirm, mut rows): (Vec<RetryCandidate>, Vec<RetryCandidate>) =
            rows.into_iter().partition(RetryCandidate::needs_reconciliation);
        let destination = &self.inputs().destination;
        // Rehearsals reach no recipients, and an unconfirmed retry sends nothing, so neither needs the inquiry.
        let sends_messages =
            destination.is_live() && (destination.remote_profile().is_none() || self.consent.can_confirm());
        if to_confirm.is_empty() || !sends_messages {
            rows.extend(to_confirm);
            rows.sort_by_key(|candidate| candidate.row);
            return Ok((rows, snapshot));
        }
        let frozen = self.load_frozen(run).await;
        let times = frozen.map(|frozen| ChainLifetimes::from_brief(&frozen.inputs.brief)).unwrap_or_default();
        let build_message = |candidate: &RetryCandidate| {
            let Attempt { envelope, chain, .. } = candidate.attempt;
            let order = snapshot.states.events().find_order(candidate.row, envelope);
            let id = run.message_id(candidate.row, order)?;
            Some(PendingMessage::new(candidate.row, order, id, chain, candidate.begun_at, &times))
        };
        let (mut messages, mut inquiries, mut unconfirmed) = (Vec::new(), Vec::new(), Vec::new());
        for candidate in to_confirm {
            match build_message(&candidate) {
                Some(message) => {
                    messages.push(message);
                    inquiries.push(candidate);
                }
                // Without the message's identifier, the gateway cannot be asked about it.
                None => unconfirmed.push(candidate),
            }
        }
        (self.adapters.observer)(RunEvent::AskingBeforeRetry { rows: messages.len() as u64 });
        for (candidate, status) in inquiries.into_iter().zip(self.ask_before_retry(run, &messages).await?) {
            match status {
                ConfirmedStatus::Failed => rows.push(candidate),
                ConfirmedStatus::Delivered => skipped.delivered += 1,
                ConfirmedStatus::InProgress => skipped.under_way += 1,
                ConfirmedStatus::Unknown => unconfirmed.push(candidate),
            }
        }
        // If the ledger was restored, `accept_duplicates` counts all rows, including the unconfirmed rows.
        let acceptable_counts = [unconfirmed.len(), rows.len() + unconfirmed.len()].map(|count| Some(count as u64));
        if acceptable_counts.contains(&self.launch.request.accept_duplicates) {
            rows.append(&mut unconfirmed);
        }
        skipped.unconfirmed = unconfirmed.len() as u64;
        rows.sort_by_key(|candidate| candidate.row);
        Ok((rows, Snapshot::load(self.adapters.ledger.as_ref(), run, false).await?))
    }

    /// Asks the gateway about messages of a run. Without a profile, the status of every message is unknown.
    async fn ask_before_retry(&self, run: &Run, messages: &[PendingMessage]) -> Result<Vec<ConfirmedStatus>, Error> {
        let Some(profile) = self.inputs().destination.profile() else {
            return Ok(vec![ConfirmedStatus::Unknown; messages.len()]);
        };
        let connection = Connection::Gateway(profile, self.launch.key.clone());
        let gateway = connection.create_client(self.adapters.connect, run.endpoint, REQUEST_TIMEOUT)?;
        let allowance = run.allowance(profile.rate.per_second());
        let (ledger, batch_size, clock) =
            (self.adapters.ledger.as_ref(), profile.max_envelope_size(), self.adapters.clock);
        let poller = StatusPoller { ledger, gateway: gateway.as_ref(), run, allowance, max_batch: batch_size, clock };
        Ok(poller.ask_before_retry(messages, Instant::now() + INQUIRIES_TIMEOUT).await?)
    }

    /// Returns an error if no row of a run can be retried now.
    fn check_retry_allowed(&self, run: &Run, runs: &[Run]) -> Result<(), Error> {
        if SingleKind::from_run(run).is_some() {
            return Err(Error::SingleRun { run: run.name() });
        }
        match run.progress {
            RunProgress::Replaced => return Err(RetryRefusal::Replaced { run: run.name() }.into()),
            RunProgress::Cancelled => return Err(cancelled_error(run)),
            RunProgress::Open | RunProgress::Finished => {}
        }
        let can_share_recipients = |other: &&Run| run.can_share_recipients(other);
        match runs.iter().filter(can_share_recipients).find(|other| other.progress == RunProgress::Open) {
            Some(open) => {
                let campaign = &self.inputs().campaign;
                let (file, gateway) = (campaign.file.clone(), campaign.brief.gateway.clone());
                Err(RetryRefusal::Unfinished { run: open.name(), file, gateway }.into())
            }
            None => Ok(()),
        }
    }

    /// Finds the rows whose last attempt was rejected or failed, or that were not sent according to a person's
    /// decision.
    async fn find_retry_candidates(&self, run: &Run, snapshot: &Snapshot) -> Result<Vec<RetryCandidate>, Error> {
        let ledger = self.adapters.ledger.as_ref();
        let mut candidates = BTreeMap::new();
        let mut envelopes = EnvelopeReader::new(ledger, run.key);
        while let Some(envelope) = envelopes.next_envelope().await? {
            for (sent, outcome) in envelope.iter_rows() {
                let state = snapshot.states.recorded_state(sent.row);
                let Some(state @ (RowState::Rejected | RowState::NotSent | RowState::Failed)) = state else { continue };
                let (status, error) = match outcome {
                    Some(OperationOutcome::Rejected { error }) => (String::new(), error.clone()),
                    _ => {
                        let status = find_rejection_status(snapshot, sent.row, envelope.envelope);
                        (status.clone(), status)
                    }
                };
                // Forgotten recipients get no more messages.
                let Some(phone) = sent.to.phone() else { continue };
                let attempt = RunActivity::Finished.build_attempt(envelope.envelope, envelope.chain(sent), outcome);
                let begun_at = envelope.begun_at;
                let events = snapshot.states.events();
                let refused_at_intake =
                    RunActivity::Finished.judge_row(sent.row, &[attempt], events, &[]).refused_at_intake;
                let candidate =
                    RetryCandidate { row: sent.row, attempt, begun_at, phone, state, status, error, refused_at_intake };
                // A later attempt replaces the earlier one.
                candidates.insert(sent.row, candidate);
            }
        }
        let mut receipts = ReceiptReader::new(ledger, run.key, run.last_row());
        while let Some(reported) = receipts.next_receipts().await? {
            for (row, receipts) in reported {
                let Some(candidate) = candidates.get_mut(&row) else { continue };
                let conclusion =
                    RunActivity::Finished.judge_row(row, &[candidate.attempt], snapshot.states.events(), &receipts);
                candidate.refused_at_intake = conclusion.refused_at_intake;
                if let Some(last) = conclusion.final_receipt {
                    candidate.status = last.receipt.status.name().to_owned();
                    candidate.error = last.receipt.error.clone().unwrap_or_else(|| candidate.status.clone());
                }
            }
        }
        Ok(candidates.into_values().collect())
    }
}

/// Rows that are not retried, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedRetries {
    /// The number of messages that were delivered in the end.
    pub delivered: u64,
    /// The number of messages whose channels the gateway is still trying.
    pub under_way: u64,
    /// The number of messages whose failure the gateway did not confirm.
    pub unconfirmed: u64,
    /// Rows that a run would skip now, by the reason in the results.
    pub excluded: BTreeMap<&'static str, u64>,
}

impl SkippedRetries {
    /// Counts the rows that a run would skip now.
    pub fn count_excluded(&self) -> u64 {
        self.excluded.values().sum()
    }

    /// Describes the rows that a run would skip now, with a text for each reason.
    pub fn describe_excluded(&self) -> impl Iterator<Item = String> {
        let describe = |reason: &&'static str| match *reason {
            ALREADY_SENT => "already sent in another run",
            reason => reason,
        };
        self.excluded.iter().map(move |(reason, rows)| format!("{} {}", format_thousands(*rows), describe(reason)))
    }
}

/// The rows of a run that a retry skips now.
pub(super) struct RetryExclusions {
    number_exclusions: SurveyExclusions,
    /// The rows without consent and the rows that cannot be sent in time, by the reason to skip them.
    row_exclusions: BTreeMap<&'static str, RoaringBitmap>,
    /// The number of messages to each phone number in this retry.
    messages: HashMap<Phone, u32>,
}

impl RetryExclusions {
    /// Finds the reason to skip a row. If there is none, counts the message towards the caps of the phone number.
    pub(super) fn find_reason_or_count(&mut self, row: Row, phone: Phone) -> Option<&'static str> {
        let messages = self.messages.entry(phone).or_default();
        let row_reason =
            self.row_exclusions.iter().find(|(_, rows)| rows.contains(row.get())).map(|(reason, _)| *reason);
        let number_reason = || {
            self.number_exclusions.find_skip_reason(
                Some(row),
                phone,
                find_country(phone),
                ConsentVerdict::Given,
                *messages,
            )
        };
        let reason = row_reason.or_else(number_reason);
        *messages += u32::from(reason.is_none());
        reason
    }
}

impl Session {
    /// Finds the rows that a retry skips: rows that a run would skip now, and rows that other runs of the edition sent
    /// or cancelled in the meantime.
    pub(super) async fn find_retry_exclusions(&self, run: &Run, runs: &[Run]) -> Result<RetryExclusions, Error> {
        let (ledger, inputs) = (self.adapters.ledger.as_ref(), self.inputs());
        let mut opted_out = NumberSet::new(self.read_suppressed_numbers().await?, None);
        opted_out |= find_opted_out_numbers(ledger, inputs).await?.numbers;
        let terms = self.sending_terms();
        let number_exclusions = SurveyExclusions {
            excluded: find_excluded_numbers(Some(ledger), inputs, &self.adapters.observer).await?,
            opted_out,
            capped: find_capped_numbers(Some(ledger), inputs).await?,
            countries: terms.allowed_countries(&inputs.campaign.brief, inputs.destination.profile()),
            ..self.find_sent_elsewhere(run, runs).await?
        };
        let row_exclusions = self.find_row_exclusions(run).await?;
        Ok(RetryExclusions { number_exclusions, row_exclusions, messages: HashMap::new() })
    }

    /// Finds the rows without consent, and the rows that cannot be sent before the end of sending.
    async fn find_row_exclusions(&self, run: &Run) -> Result<BTreeMap<&'static str, RoaringBitmap>, Error> {
        let required = self.read_required_consents().await?;
        let frozen = self.load_frozen(run).await?;
        let CompiledCampaign { mut reader, recipe, .. } = open_frozen_list(&frozen).await?;
        let finder = required.as_ref().map(|consents| self.inputs().find_consent_columns(consents, reader.header()));
        let finder = finder.transpose()?;
        let rules = match self.applies_rate_and_hours() {
            true => {
                let (terms, brief) = (self.sending_terms(), &frozen.inputs.brief);
                sending_rules(&terms, &self.inputs().destination, run, brief, reader.header())?
            }
            false => None,
        };
        let hours = rules
            .filter(|rules| rules.until.is_some())
            .map(|rules| SendingHours::new(rules, Arc::new(self.adapters.clock)));
        if finder.is_none() && hours.is_none() {
            return Ok(BTreeMap::new());
        }
        run_blocking(move || {
            let (mut chunk, mut rows) = (Chunk::new(), BTreeMap::<_, RoaringBitmap>::new());
            while reader.read_chunk(&mut chunk).map_err(|finding| Error::Findings(vec![*finding]))? {
                for record in chunk.iter() {
                    let Some(phone) = recipe.parse_phone(record) else { continue };
                    let verdict = finder.as_ref().map(|finder| finder.judge(record.fields, phone));
                    let is_late =
                        || hours.as_ref().is_some_and(|hours| hours.ends_before_departure(phone, record.fields));
                    let reason = verdict.and_then(ConsentVerdict::skip_reason).or_else(|| is_late().then_some(EXPIRED));
                    if let Some(reason) = reason {
                        rows.entry(reason).or_default().insert(record.row.get());
                    }
                }
            }
            Ok(rows)
        })
        .await?
    }

    /// Finds recipients who have a message of the same campaign and edition from another run of this or a later round,
    /// or whom `stop --for-good` cancelled in such a run.
    ///
    /// The built-in sandbox forgets everything between runs, so other rehearsals do not matter.
    async fn find_sent_elsewhere(&self, run: &Run, runs: &[Run]) -> Result<SurveyExclusions, Error> {
        if !run.live {
            return Ok(SurveyExclusions::default());
        }
        let is_guarding = |other: &&Run| {
            other.edition == run.edition
                && run.can_share_recipients(other)
                && other.round >= run.round
                && other.key != run.key
        };
        let others: Vec<Run> = runs.iter().filter(is_guarding).cloned().collect();
        let ledger = self.adapters.ledger.as_ref();
        let keys: Vec<RunId> = others.iter().map(|other| other.key).collect();
        let sent = ledger.load_numbers(NumberFilter::Sent(&keys)).await?;
        let cancelled = find_cancelled_recipients(ledger, &others).await?.numbers;
        if sent.is_empty() && cancelled.is_empty() {
            return Ok(SurveyExclusions::default());
        }
        // A retry uses the rows of the run's own list, even if the user's list has changed.
        let copies = self.load_frozen(run).await?.copies.clone();
        let listed = Arc::new(self.inputs().with_list(CampaignList::Copies(copies)));
        let numbers = GuardedNumbers { sent: &sent, cancelled: &cancelled };
        let rows = find_sent_rows(ledger, &listed, &others, numbers).await?;
        Ok(SurveyExclusions { already_sent: sent, rows, cancelled, ..SurveyExclusions::default() })
    }
}
