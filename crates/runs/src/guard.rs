//! Guard against duplicate messages, and other exclusions: recipients who already have a message of an edition, opted
//! out, reached a cap, or are excluded.
//!
//! With `duplicates: allow`, texts are compared: the lists of earlier runs are read from their copies. The texts of
//! each earlier run are rendered for its list and for the current one. Nothing is sent or recorded here. If the copy of
//! a run cannot be read, rows with numbers of that run are skipped.

use std::io::{BufReader, Sink};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::{Error, Inputs, RunEvent, RunObserver, run_blocking};
use campaign_content::audience::Chunk;
use campaign_core::calendar::SentByDay;
use campaign_core::domain::{FrequencyCap, Phone, Purpose, Row};
use campaign_core::finding::{Finding, did_you_mean, rules};
use campaign_engine::check::{
    CappedNumbers, CompiledCampaign, CurrentRow, EarlierOutcome, EarlierRow, EarlierRun, SentRows, SurveyExclusions,
    Tee, TextHash,
};
use campaign_engine::delivery::{FrozenInputs, Snapshot, compile_without_condition, for_each_text_hash};
use campaign_engine::report::{IN_DOUBT_STATES, format_count, load_cancelled_numbers, load_run_numbers};
use campaign_ledger::{
    CapQuery, Copies, EnvelopeReader, Ledger, LedgerError, NumberFilter, NumberSet, Run, RunFilter, RunId, RunProgress,
    SuppressedNumbers, SuppressionPolicy,
};
use campaign_manifest::{CampaignBrief, Destination, DuplicatePolicy, PastRecipients};

/// Recipients who already have a message of a campaign and edition through an account.
#[derive(Debug)]
pub struct SentRecipients {
    /// The numbers of these recipients.
    pub numbers: NumberSet,
    /// The round of the edition.
    pub round: u32,
    /// The runs of that round, oldest first.
    runs: Vec<Run>,
    /// The edition of the messages.
    pub(super) edition: String,
}

/// Recipients of an edition whom `stop --for-good` cancelled.
#[derive(Clone, Debug, Default)]
pub struct CancelledRecipients {
    /// The numbers of these recipients.
    pub numbers: NumberSet,
    /// The names of the runs that were stopped for good, oldest first.
    pub runs: Vec<String>,
}

/// The first run that sent to recipients of an edition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierSending {
    /// The first run that sent to these recipients.
    pub run: String,
    /// The time at which the run began.
    pub began_at: Timestamp,
    /// The campaign file that the run began from, if known.
    pub file: Option<PathBuf>,
    /// The number of later runs of the same edition and round.
    pub later: usize,
    /// Whether the run was purged, so that its results can no longer be updated.
    pub purged: bool,
}

impl SentRecipients {
    /// Begins a new round, in which no recipient has a message yet.
    pub(super) fn begin_round(&mut self) {
        (self.numbers, self.round, self.runs) = (NumberSet::default(), self.round + 1, Vec::new());
    }

    /// The runs of the round, oldest first.
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The last run that might have sent to these recipients.
    pub(super) fn last_run(&self) -> Option<&Run> {
        self.runs.last()
    }

    /// The recipients whom `stop --for-good` cancelled in runs of the same edition and round.
    ///
    /// # Errors
    /// See [`find_cancelled_recipients`].
    pub(super) async fn find_cancelled(&self, ledger: &dyn Ledger) -> Result<CancelledRecipients, Error> {
        find_cancelled_recipients(ledger, &self.runs).await
    }

    /// Whether any run of the round has messages in doubt.
    pub(super) fn has_messages_in_doubt(&self) -> bool {
        let counts = self.runs.iter().filter_map(|run| run.counts.as_ref());
        counts.into_iter().any(|(counts, _)| IN_DOUBT_STATES.into_iter().any(|state| counts.get(state) > 0))
    }

    /// The first run that sent to these recipients. `None` if no recipient has a message.
    pub fn first_sending(&self) -> Option<EarlierSending> {
        if self.numbers.is_empty() {
            return None;
        }
        // It is unknown what an unfinished run has sent.
        let has_sent = |run: &&Run| {
            run.counts.as_ref().is_none_or(|(counts, _)| counts.iter().any(|(state, _)| state.is_guarded()))
        };
        let sent: Vec<&Run> = self.runs.iter().filter(has_sent).collect();
        // Counts can be older than a receipt.
        let first = sent.first().copied().or(self.runs.first())?;
        Some(EarlierSending {
            run: first.name(),
            began_at: first.began_at,
            file: first.file.as_ref().map(PathBuf::from),
            later: sent.len().saturating_sub(1),
            purged: first.purged_at.is_some(),
        })
    }
}

/// Finds the recipients whom `stop --for-good` cancelled in these runs. These recipients stay cancelled until a new
/// edition or round begins.
///
/// Recipients whose messages were sent, rejected or in doubt when the run was stopped are not included.
///
/// # Errors
/// If the ledger or the copy of a list cannot be read, in which case no message is sent.
pub(super) async fn find_cancelled_recipients(
    ledger: &dyn Ledger,
    runs: impl IntoIterator<Item = &Run>,
) -> Result<CancelledRecipients, Error> {
    let mut cancelled = CancelledRecipients::default();
    for run in runs.into_iter().filter(|run| run.live && run.progress == RunProgress::Cancelled) {
        let mut numbers = ledger.load_numbers(NumberFilter::Cancelled(run.key)).await?;
        if run.purged_at.is_none() {
            numbers |= NumberSet::new(load_cancelled_numbers(ledger, run).await?, None);
        }
        if !numbers.is_empty() {
            cancelled.numbers |= numbers;
            cancelled.runs.push(run.name());
        }
    }
    Ok(cancelled)
}

/// Finds the recipients who were, or might have been, sent a message of this campaign and edition through this
/// account. Only the latest round of a repeated edition counts.
///
/// The built-in sandbox forgets everything between runs, so the guard does not apply to a rehearsal.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn find_sent_recipients(
    ledger: &dyn Ledger,
    inputs: &Inputs,
    edition: &str,
) -> Result<SentRecipients, Error> {
    let mut runs = list_campaign_runs(ledger, inputs).await?;
    runs.retain(|run| run.edition == edition);
    let round = runs.iter().map(|run| run.round).max().unwrap_or(1);
    runs.retain(|run| run.round == round);
    let numbers = match inputs.destination.is_live() {
        true => {
            ledger.load_numbers(NumberFilter::Sent(&runs.iter().map(|run| run.key).collect::<Vec<RunId>>())).await?
        }
        false => NumberSet::default(),
    };
    Ok(SentRecipients { numbers, round, runs, edition: edition.to_owned() })
}

/// The recipients that a survey skips, and the version of the suppression list that was used.
#[derive(Debug)]
pub(super) struct StartExclusions {
    /// The recipients to skip.
    pub(super) survey: SurveyExclusions,
    /// The version of the suppression list.
    pub(super) opt_out_version: u64,
}

impl SentRecipients {
    /// Finds the recipients whom a new run skips because they have a message, are `cancelled`, opted out, reached a
    /// cap, or are excluded. `replaced` is the run that the new run replaces.
    ///
    /// # Errors
    /// If the ledger or a copy of a list cannot be read, or a run under `recipients.exclude` is missing or unfinished.
    pub(super) async fn find_exclusions(
        &self,
        ledger: &dyn Ledger,
        inputs: &Arc<Inputs>,
        cancelled: NumberSet,
        replaced: Option<&Run>,
        observer: &RunObserver,
    ) -> Result<StartExclusions, Error> {
        let SuppressedNumbers { version, numbers: opted_out } = find_opted_out_numbers(ledger, inputs).await?;
        let survey = SurveyExclusions {
            excluded: find_excluded_numbers(Some(ledger), inputs, observer).await?,
            rows: self.find_sent_rows(ledger, inputs, &cancelled, replaced).await?,
            capped: find_capped_numbers(Some(ledger), inputs).await?,
            already_sent: self.numbers.clone(),
            opted_out,
            cancelled,
            sent_by_day: count_sent_by_day(ledger, inputs, &self.edition).await?,
            ..SurveyExclusions::default()
        };
        Ok(StartExclusions { survey, opt_out_version: version })
    }
}

/// Counts the messages that an edition might have sent in all rounds, by day, if the campaign has a daily limit.
///
/// # Errors
/// If the ledger cannot be read.
pub(super) async fn count_sent_by_day(
    ledger: &dyn Ledger,
    Inputs { campaign, destination, .. }: &Inputs,
    edition: &str,
) -> Result<SentByDay, LedgerError> {
    let mut days = SentByDay::new();
    let Some(per_day) = campaign.per_day.as_ref().filter(|_| destination.is_live()) else { return Ok(days) };
    let loopback = destination.is_loopback();
    let is_counted =
        |run: &Run| run.live && !run.shared && run.edition == edition && run.suppression.loopback == loopback;
    let runs = ledger.list_runs(RunFilter::for_campaign(&campaign.brief.name)).await?;
    for run in runs.into_iter().filter(is_counted) {
        let mut envelopes = EnvelopeReader::new(ledger, run.key);
        while let Some(envelope) = envelopes.next_envelope().await? {
            *days.entry(per_day.local_date(envelope.begun_at)).or_default() += envelope.count_possibly_sent();
        }
    }
    Ok(days)
}

/// Finds the numbers that opted out of this campaign and gateway.
///
/// A rehearsal simulates the live run, so it skips the same recipients. Opt-outs from gateways on loopback do not count
/// for a rehearsal.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn find_opted_out_numbers(ledger: &dyn Ledger, inputs: &Inputs) -> Result<SuppressedNumbers, Error> {
    let CampaignBrief { name, content, .. } = &inputs.campaign.brief;
    let policy = suppression_policy(inputs, 0);
    if !policy.covers_kind(content.kind) {
        return Ok(SuppressedNumbers::default());
    }
    Ok(ledger.load_suppressed_numbers(name, policy).await?)
}

/// Returns how the suppression list applies to a campaign. `version` is the version of the suppression list at planning
/// time.
pub(super) fn suppression_policy(inputs: &Inputs, version: u64) -> SuppressionPolicy {
    let CampaignBrief { purpose, mandatory, .. } = inputs.campaign.brief;
    SuppressionPolicy { purpose, mandatory, loopback: inputs.destination.is_loopback(), version }
}

/// The message caps of a campaign, from the campaign file and the profile. Service messages have no caps.
fn message_caps(inputs: &Inputs) -> Vec<FrequencyCap> {
    let Inputs { campaign, destination, .. } = inputs;
    combine_caps(campaign.brief.purpose, campaign.delivery.cap, destination)
}

/// Combines the `campaign_caps` with the profile's cap; service messages have no caps.
pub(super) fn combine_caps(
    purpose: Purpose,
    campaign_caps: impl IntoIterator<Item = FrequencyCap>,
    destination: &Destination,
) -> Vec<FrequencyCap> {
    if purpose == Purpose::Service {
        return Vec::new();
    }
    campaign_caps.into_iter().chain(destination.profile().and_then(|profile| profile.cap)).collect()
}

/// The maximum number of messages in one campaign to a number for which caps are checked in advance. Later messages are
/// checked only before they are sent.
const MAX_CHECKED_MESSAGES: u32 = 32;

/// Finds the recipients who have reached a cap, or reach it with several rows of this campaign. A rehearsal simulates
/// the live run, but only with the cap in the campaign file.
///
/// # Errors
/// If the ledger cannot be read.
pub(super) async fn find_capped_numbers(ledger: Option<&dyn Ledger>, inputs: &Inputs) -> Result<CappedNumbers, Error> {
    let (caps, loopback) = (message_caps(inputs), inputs.destination.is_loopback());
    let Some(max_messages) = caps.iter().map(|cap| cap.messages).min() else { return Ok(CappedNumbers::default()) };
    let Some(ledger) = ledger else { return Ok(CappedNumbers::new(Vec::new(), max_messages)) };
    let checked = match inputs.campaign.brief.duplicates {
        DuplicatePolicy::Allow => max_messages.min(MAX_CHECKED_MESSAGES),
        DuplicatePolicy::Skip | DuplicatePolicy::Refuse => 1,
    };
    let mut reached = Vec::new();
    for planned in 0..checked {
        let lower_cap = |cap: &FrequencyCap| FrequencyCap { messages: cap.messages.saturating_sub(planned), ..*cap };
        let caps: Vec<FrequencyCap> = caps.iter().map(lower_cap).collect();
        reached.push(ledger.load_numbers(NumberFilter::Capped(CapQuery { caps: &caps, loopback, only: None })).await?);
    }
    Ok(CappedNumbers::new(reached, max_messages))
}

/// Lists the runs of this campaign through this account in all editions, oldest first.
///
/// A live run belongs to the account if its profile name or its account matches. Runs through gateways on loopback
/// count only if this campaign's gateway is on loopback too.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn list_campaign_runs(ledger: &dyn Ledger, inputs: &Inputs) -> Result<Vec<Run>, Error> {
    let (brief, live) = (&inputs.campaign.brief, inputs.destination.is_live());
    let mut runs = ledger.list_runs(RunFilter::for_campaign(&brief.name)).await?;
    runs.retain(|run| {
        (run.live, run.suppression.loopback) == (live, inputs.destination.is_loopback())
            && run.uses_gateway(&brief.gateway, inputs.destination.account_name())
    });
    Ok(runs)
}

/// Lists all runs that might have sent to the same recipients: those of the same campaign, edition and account, oldest
/// first.
///
/// The built-in sandbox forgets everything between runs, so a rehearsal is listed alone.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn list_edition_runs(ledger: &dyn Ledger, run: &Run) -> Result<Vec<Run>, Error> {
    let mut runs = ledger.list_runs(RunFilter::for_campaign(&run.campaign)).await?;
    runs.retain(|other| {
        other.key == run.key || run.live && other.edition == run.edition && run.can_share_recipients(other)
    });
    Ok(runs)
}

/// The numbers whose rows are compared: they have a message of the edition, or were cancelled.
pub(super) struct GuardedNumbers<'n> {
    /// Numbers that have a message or might have one.
    pub(super) sent: &'n NumberSet,
    /// Numbers that `stop --for-good` cancelled.
    pub(super) cancelled: &'n NumberSet,
}

impl GuardedNumbers<'_> {
    fn contains(&self, phone: Phone) -> bool {
        self.sent.contains(phone) || self.cancelled.contains(phone)
    }

    fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.cancelled.is_empty()
    }
}

/// Finds the rows of the list that these runs already sent or cancelled. Returns `None` if no numbers are given or the
/// campaign does not have `duplicates: allow`. Without that setting, one message excludes all rows with its number.
///
/// # Errors
/// If the list or the ledger cannot be read, or the list changes in the meantime. In either case, no message is sent.
pub(super) async fn find_sent_rows(
    ledger: &dyn Ledger,
    inputs: &Arc<Inputs>,
    runs: &[Run],
    numbers: GuardedNumbers<'_>,
) -> Result<Option<SentRows>, Error> {
    if inputs.campaign.brief.duplicates != DuplicatePolicy::Allow || numbers.is_empty() {
        return Ok(None);
    }
    let (listed, sha256) = list_numbered_rows(inputs, &numbers).await?;
    let (listed, mut sent) = (Arc::new(listed), SentRows::for_list(sha256));
    for run in runs {
        let numbers = ledger.load_numbers(NumberFilter::Sent(&[run.key])).await?;
        let cancelled = find_cancelled_recipients(ledger, std::slice::from_ref(run)).await?.numbers;
        if numbers.is_empty() && cancelled.is_empty() {
            continue;
        }
        let read = match run.purged_at {
            Some(_) => None,
            None => read_run_rows(ledger, run, inputs, &listed, &sent.sha256).await?,
        };
        let (rows, mut listed) = read.unwrap_or_else(|| (Vec::new(), rows_without_texts(&listed)));
        sent.compare_run(EarlierRun { rows, sent: numbers, cancelled }, &mut listed);
    }
    Ok(Some(sent))
}

impl SentRecipients {
    /// Finds the rows of the list that the runs of this round, or the `replaced` run, already sent or cancelled.
    /// Returns `None` if no number is guarded or the campaign does not have `duplicates: allow`.
    ///
    /// # Errors
    /// See [`find_sent_rows`].
    async fn find_sent_rows(
        &self,
        ledger: &dyn Ledger,
        inputs: &Arc<Inputs>,
        cancelled: &NumberSet,
        replaced: Option<&Run>,
    ) -> Result<Option<SentRows>, Error> {
        let mut runs = self.runs().to_vec();
        runs.extend(replaced.filter(|replaced| runs.iter().all(|run| run.key != replaced.key)).cloned());
        find_sent_rows(ledger, inputs, &runs, GuardedNumbers { sent: &self.numbers, cancelled }).await
    }
}

/// A row of the list whose number has a message or was cancelled.
type NumberedRow = (Row, Phone);

/// Lists the rows that have one of these phone numbers, and computes the SHA-256 of the list.
async fn list_numbered_rows(
    inputs: &Arc<Inputs>,
    numbers: &GuardedNumbers<'_>,
) -> Result<(Vec<NumberedRow>, String), Error> {
    let inputs = Arc::clone(inputs);
    let (sent, cancelled) = (numbers.sent.clone(), numbers.cancelled.clone());
    run_blocking(move || {
        let numbers = GuardedNumbers { sent: &sent, cancelled: &cancelled };
        let mut tee = Tee::new(BufReader::with_capacity(BUFFER_BYTES, inputs.open_list()?), None::<Sink>);
        let CompiledCampaign { mut reader, recipe, .. } = inputs.compile_list(&mut tee)?;
        let (mut listed, mut chunk) = (Vec::new(), Chunk::new());
        while reader.read_chunk(&mut chunk).map_err(|finding| Error::Findings(vec![*finding]))? {
            let numbered = chunk.iter().filter_map(|record| Some((record.row, recipe.parse_phone(record)?)));
            listed.extend(numbered.filter(|(_, phone)| numbers.contains(*phone)));
        }
        drop(reader);
        let sha256 = tee.finish().map_err(|error| inputs.unreadable_error(&error))?;
        Ok((listed, sha256))
    })
    .await?
}

/// The size of the read buffer for lists, in bytes.
const BUFFER_BYTES: usize = 1 << 16;

/// Reads the rows of an earlier run, and hashes the texts that the run would send to the current rows. Returns `None`
/// if the copies of the run cannot be used.
async fn read_run_rows(
    ledger: &dyn Ledger,
    run: &Run,
    inputs: &Arc<Inputs>,
    listed: &Arc<Vec<NumberedRow>>,
    sha256: &str,
) -> Result<Option<(Vec<EarlierRow>, Vec<CurrentRow>)>, Error> {
    let copies = match ledger.load_copies(run).await {
        Ok(copies) => copies,
        Err(LedgerError::CopiesUnreadable { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let outcomes = RowOutcomes::read(ledger, run).await?;
    let (inputs, listed, sha256) = (Arc::clone(inputs), Arc::clone(listed), sha256.to_owned());
    run_blocking(move || {
        let Some((frozen, earlier)) = read_earlier_rows(&copies, &outcomes) else { return Ok(None) };
        let (texts, current_sha256) = hash_listed_texts(&inputs, &frozen)?;
        if current_sha256 != sha256 {
            return Err(inputs.changed_error());
        }
        let Some(texts) = texts else { return Ok(None) };
        let find_text = |row: Row| {
            let place = texts.binary_search_by_key(&row, |(row, _)| *row).ok()?;
            texts.get(place).map(|(_, text)| *text)
        };
        let listed = listed.iter().map(|&(row, phone)| CurrentRow { phone, text: find_text(row), row });
        Ok(Some((earlier, listed.collect())))
    })
    .await?
}

/// Converts the listed rows to current rows whose texts are unknown.
fn rows_without_texts(listed: &[NumberedRow]) -> Vec<CurrentRow> {
    listed.iter().map(|&(row, phone)| CurrentRow { phone, text: None, row }).collect()
}

/// The outcomes of the rows of a run.
struct RowOutcomes {
    sent: RoaringBitmap,
    /// The rows that were planned when the run was stopped for good.
    cancelled: RoaringBitmap,
}

impl RowOutcomes {
    async fn read(ledger: &dyn Ledger, run: &Run) -> Result<Self, Error> {
        let sent = ledger.load_sent_rows(run.key).await?;
        let mut cancelled = RoaringBitmap::new();
        if run.live && run.progress == RunProgress::Cancelled {
            let snapshot = Snapshot::load(ledger, run, false).await?;
            let rows = Row::FIRST.get()..=run.last_row().get();
            cancelled.extend(rows.filter(|row| snapshot.is_cancelled(Row::new(*row))));
        }
        Ok(Self { sent, cancelled })
    }

    fn find_outcome(&self, row: Row) -> EarlierOutcome {
        if self.sent.contains(row.get()) {
            EarlierOutcome::Sent
        } else if self.cancelled.contains(row.get()) {
            EarlierOutcome::Cancelled
        } else {
            EarlierOutcome::NotSent
        }
    }
}

/// Reads the frozen inputs of an earlier run, and the rows with the hashes of their texts. Returns `None` if the copies
/// of the run are damaged.
fn read_earlier_rows(copies: &Copies, outcomes: &RowOutcomes) -> Option<(FrozenInputs, Vec<EarlierRow>)> {
    let frozen = FrozenInputs::from_copies(copies).ok()?;
    let mut tee = Tee::new(BufReader::with_capacity(BUFFER_BYTES, copies.open_list().ok()?), None::<Sink>);
    let prepared = compile_without_condition(&frozen, &mut tee, copies.place().as_ref()).ok()?;
    let mut rows = Vec::new();
    let mut add = |row, phone, text| rows.push(EarlierRow { phone, text, outcome: outcomes.find_outcome(row) });
    for_each_text_hash(prepared, &mut add).ok()?;
    let sha256 = tee.finish().ok()?;
    (sha256 == frozen.recipients_sha256).then_some((frozen, rows))
}

/// The hash of the text of each row that has a message, in the order of the rows.
type TextHashes = Vec<(Row, TextHash)>;

/// Hashes the texts of an earlier run for each row of the current list, in row order, and computes the list's SHA-256.
/// Returns no hashes if the texts do not fit the list.
fn hash_listed_texts(inputs: &Inputs, frozen: &FrozenInputs) -> Result<(Option<TextHashes>, String), Error> {
    let mut tee = Tee::new(BufReader::with_capacity(BUFFER_BYTES, inputs.open_list()?), None::<Sink>);
    let texts = match compile_without_condition(frozen, &mut tee, inputs.list.place()) {
        Ok(prepared) => {
            let mut texts = Vec::new();
            for_each_text_hash(prepared, &mut |row, _, text| texts.extend(text.map(|text| (row, text))))
                .map_err(|finding| Error::Findings(vec![*finding]))?;
            Some(texts)
        }
        Err(_) => None,
    };
    let sha256 = tee.finish().map_err(|error| inputs.unreadable_error(&error))?;
    Ok((texts, sha256))
}

/// Finds the phone numbers that `recipients.exclude` excludes. The set is empty if the campaign does not have this key.
///
/// # Errors
/// If a named run does not exist or is unfinished, or the ledger cannot be read. In these cases, nothing is sent.
pub(super) async fn find_excluded_numbers(
    ledger: Option<&dyn Ledger>,
    inputs: &Inputs,
    observer: &RunObserver,
) -> Result<NumberSet, Error> {
    let mut numbers = NumberSet::default();
    let Some(past) = &inputs.campaign.brief.exclude else { return Ok(numbers) };
    let refuse =
        |finding: Finding| Error::Findings(vec![finding.at(inputs.campaign.places.locate_key("recipients.exclude"))]);
    let Some(ledger) = ledger else { return Err(refuse(unknown_run_finding(past, None))) };
    let runs = find_excluding_runs(ledger, past, inputs).await?.map_err(refuse)?;
    for run in &runs {
        if run.progress == RunProgress::Open {
            let message = format!("{} is unfinished, so the recipients to exclude are not known yet", run.name());
            let finding = Finding::new(&rules::EXCLUDE, message);
            return Err(refuse(finding.help("wait until the run ends, or cancel it with `stop --for-good`")));
        }
        let (run_numbers, undecided) = load_run_numbers(ledger, run, &past.states).await?;
        if undecided > 0 && inputs.destination.is_live() {
            observer(RunEvent::NotFinal { run: run.name(), messages: format_count(undecided, "message") });
        }
        numbers |= run_numbers;
    }
    Ok(numbers)
}

/// Finds the runs under `exclude`: the named run, or all runs of the latest edition of the named campaign.
///
/// A live campaign considers only live runs, because rehearsals reached no recipients: runs through gateways on this
/// machine if the campaign uses such a gateway, and otherwise runs through other gateways. A rehearsal prefers live
/// runs.
pub(super) async fn find_excluding_runs(
    ledger: &dyn Ledger,
    past: &PastRecipients,
    inputs: &Inputs,
) -> Result<Result<Vec<Run>, Finding>, Error> {
    let (campaign, is_single) = match past.run.rsplit_once('@') {
        Some((campaign, _)) => (campaign, true),
        None => (past.run.as_str(), false),
    };
    let campaign_runs = ledger.list_runs(RunFilter::for_campaign(campaign)).await?;
    let named: Vec<Run> =
        campaign_runs.into_iter().filter(|run| !run.shared && (!is_single || run.name() == past.run)).collect();
    let (live, loopback) = (inputs.destination.is_live(), inputs.destination.is_loopback());
    let is_considered = |run: &&Run| if live { run.live && run.suppression.loopback == loopback } else { run.live };
    let considered: Vec<Run> = match named.iter().any(|run| is_considered(&run)) || live {
        true => named.iter().filter(is_considered).cloned().collect(),
        false => named.clone(),
    };
    let Some(edition) = considered.last().map(|run| run.edition.clone()) else {
        let names: Vec<String> = ledger.list_runs(RunFilter::all()).await?.iter().map(Run::name).collect();
        return Ok(Err(match named.last() {
            Some(run) => {
                let name = run.name();
                let message = match run.live && !run.suppression.loopback {
                    true => {
                        format!("{name} used a gateway that is not on this machine, so the campaign cannot exclude it")
                    }
                    false => {
                        format!(
                            "{name} sent no real messages: the run was a rehearsal or used a gateway on this machine"
                        )
                    }
                };
                Finding::new(&rules::EXCLUDE, message).help(
                    "specify a run that sent messages; without `exclude`, all recipients in the list get this message",
                )
            }
            None => unknown_run_finding(past, did_you_mean(&past.run, names.iter().map(String::as_str))),
        }));
    };
    Ok(Ok(considered.into_iter().filter(|run| run.edition == edition).collect()))
}

fn unknown_run_finding(past: &PastRecipients, near: Option<&str>) -> Finding {
    let finding = Finding::new(&rules::EXCLUDE, format!("there is no run `{}` in this ledger", past.run));
    match near {
        Some(near) => finding.help(format!("did you mean `{near}`?")),
        None => finding.help("run `campaign status` to list the runs"),
    }
}
