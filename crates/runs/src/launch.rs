//! Launch of a run, whether new, resumed or retried: its request, its session, and its outcome.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use roaring::{RoaringBitmap, RoaringTreemap};
use secrecy::SecretString;
use tokio::sync::watch;

use super::erasure::finish_forgetting;
use super::ledger_health::{move_loss_signs_aside, refuse_backup, refuse_lost_ledger, refuse_stray_copies};
use super::plan::RequiredPlan;
use super::ports::ConsentInAdvance;
use super::profiles::{load_hook, refuse_other_secret};
use super::retry_rows::RetryPreview;
use super::retry_rows::SkippedRetries;
use super::{
    Adapters, Consent, EarlierSending, Error, Inputs, ListSurvey, ProtectedFiles, RunPhase, current_person,
    lock_campaign, read_destination_key,
};
use campaign_core::calendar::Occurrence;
use campaign_core::domain::{Row, RowSet};
use campaign_engine::check::{Consents, RecipientZones};
use campaign_engine::delivery::{DeviationCounts, ErrorCounts, FrozenRun, Interrupt, Snapshot, Stop};
use campaign_engine::report::{ResultsBackup, ResultsTarget, RunInDoubt, check_target};
use campaign_gateway::WebhookUrls;
use campaign_ledger::{
    CampaignLock, ExcludedRows, Ledger, LedgerError, RowState, Run, RunId, StateCounts, StopKind, StrayCopies,
};
use campaign_manifest::{Destination, Profile};
use campaign_sandbox::{Counts, Scenario};

/// The time after a second signal before the invocation is aborted.
const EXIT_GRACE: Duration = Duration::from_millis(700);

/// A campaign to be sent, checked as far as possible without a ledger.
pub struct Launch {
    pub(super) inputs: Arc<Inputs>,
    pub(super) request: RunRequest,
    pub(super) key: SecretString,
    pub(super) hook: Option<WebhookUrls>,
    pub(super) target: ResultsTarget,
}

/// Rows of a run to retry.
#[derive(Clone, Debug)]
pub struct RetryScope {
    /// The ledger's key of the run whose rows are retried.
    pub run: RunId,
    /// Only rows in these states. Messages refused at intake count as rejected, even if the gateway reports this later.
    pub states: Vec<RowState>,
    /// Only rows with one of these texts in their error; all if there are none.
    pub errors: Vec<String>,
}

/// A launch in progress, with its adapters and the lock of its campaign.
pub(super) struct Session {
    pub(super) launch: Launch,
    pub(super) adapters: Adapters,
    pub(super) consent: Arc<dyn Consent>,
    pub(super) interrupt: watch::Receiver<Interrupt>,
    /// The lock of the campaign. `None` for a preview, which sends nothing.
    lock: Option<Arc<CampaignLock>>,
    /// The plan that the invocation must follow.
    pub(super) required_plan: Option<RequiredPlan>,
    /// The copies of runs that were loaded. They do not change while the campaign is locked.
    frozen_runs: Mutex<HashMap<RunId, Arc<FrozenRun>>>,
}

/// The run that an invocation sends.
pub(super) struct RunToSend {
    pub(super) run: Run,
    /// The lock on its campaign and its original account.
    pub(super) lock: Arc<CampaignLock>,
    /// The state of the run while it is locked. `None` if it must be read again.
    pub(super) snapshot: Option<Snapshot>,
    /// Numbers in the current suppression files. A resumed run sends nothing to them.
    pub(super) suppressed: RoaringTreemap,
    /// The current consents, if they are required. A resumed run sends nothing to recipients without a consent.
    pub(super) consents: Option<Consents>,
    /// The maximum number of messages that this invocation sends.
    pub(super) limit: Option<u64>,
    /// Rows of a resumed run to skip first, so that it sends only messages that were counted and approved.
    pub(super) exclusions: Vec<RowExclusion>,
    /// Whether this invocation retries rows.
    pub(super) is_retry: bool,
    pub(super) notes: SelectionNotes,
}

/// Rows to skip for a reason.
pub(super) struct RowExclusion {
    pub(super) rows: RoaringBitmap,
    pub(super) reason: &'static str,
}

/// Facts about the selection of a run that its outcome reports.
#[derive(Clone, Debug, Default)]
pub struct SelectionNotes {
    /// The rows that a retry did not send.
    pub skipped: SkippedRetries,
    /// Whether the run belongs to an earlier edition. The current edition begins after this run.
    pub earlier_edition: bool,
    /// The earlier run that sent to skipped recipients, if there are any.
    pub before: Option<EarlierSending>,
    /// The runs of the same edition that were stopped for good, if that is why recipients are skipped.
    pub cancelled_in: Vec<String>,
    /// The time zones of recipients, if this invocation began the run.
    pub zones: Option<RecipientZones>,
}

impl RunToSend {
    /// Selects all remaining rows of a run.
    pub(super) fn new(run: Run, lock: Arc<CampaignLock>) -> Self {
        Self {
            run,
            lock,
            snapshot: None,
            suppressed: RoaringTreemap::new(),
            consents: None,
            exclusions: Vec::new(),
            limit: None,
            is_retry: false,
            notes: SelectionNotes::default(),
        }
    }
}

/// The result of preparing an invocation.
pub(super) enum Preparation {
    /// This run is to be sent.
    Send(Box<RunToSend>),
    /// Nothing is sent.
    Nothing(RunOutcome),
}

impl Launch {
    /// Prepares to send a campaign as requested.
    ///
    /// # Errors
    /// If the API key or a webhook secret is missing or unusable, or the results could not be written.
    pub fn prepare(inputs: Arc<Inputs>, request: RunRequest, files: ProtectedFiles<'_>) -> Result<Self, Error> {
        let key = read_destination_key(&inputs.destination)?;
        let hook = match inputs.destination.profile() {
            Some(profile) if inputs.campaign.receipts.uses_webhooks() => load_hook(profile)?,
            _ => None,
        };
        // A results file that cannot be written is reported before sending, not after.
        let target = files.results_target(&inputs.campaign, inputs.campaign.results_file());
        check_target(&target)?;
        Ok(Self { inputs, request, key, hook, target })
    }

    /// The destination of the run.
    pub fn destination(&self) -> &Destination {
        &self.inputs.destination
    }

    /// Whether the request accepts a ledger that stray copies or results contradict.
    pub fn accepts_any_ledger(&self) -> bool {
        self.request.new_ledger
    }

    /// Refuses to create a ledger if there are signs of another ledger, which might be restored later.
    ///
    /// # Errors
    /// If the campaign's results, or these stray copies in the state folder, are signs of another ledger.
    pub async fn check_new_ledger(&self, state: &Path, copies: Vec<StrayCopies>) -> Result<(), Error> {
        refuse_stray_copies(copies, state, &self.inputs).await
    }

    /// Sends the campaign, or resumes its unfinished run.
    ///
    /// # Errors
    /// If the run was refused or failed before anything was sent, or if a second signal arrived.
    pub async fn run(
        self,
        adapters: Adapters,
        consent: Arc<dyn Consent>,
        interrupt: watch::Receiver<Interrupt>,
    ) -> Result<RunOutcome, Error> {
        let session = self.start_session(adapters, consent, interrupt).await?;
        session.send_editions().await
    }

    /// Retries rows of a run as new messages.
    ///
    /// # Errors
    /// If nothing was sent, or a second signal arrived.
    pub async fn retry(
        self,
        adapters: Adapters,
        consent: Arc<dyn Consent>,
        interrupt: watch::Receiver<Interrupt>,
        scope: RetryScope,
    ) -> Result<RunOutcome, Error> {
        let session = self.start_session(adapters, consent, interrupt).await?;
        session.send_prepared(session.prepare_retry(&scope)).await
    }

    /// Previews what a retry would send, without sending it. Asks the gateway about failed messages if necessary, and
    /// stores its answers.
    ///
    /// # Errors
    /// If the retry would be refused.
    pub(super) async fn preview_retry(self, adapters: Adapters, scope: &RetryScope) -> Result<RetryPreview, Error> {
        self.refuse_unusable_ledger(adapters.ledger.as_ref()).await?;
        refuse_lost_ledger(adapters.ledger.as_ref(), &self.inputs).await?;
        let (consent, (_, interrupt)) = (Arc::new(ConsentInAdvance), watch::channel(Interrupt::None));
        // The preview takes no lock, so it does not delay or prevent anything that sends.
        self.build_session(adapters, consent, interrupt, None).await?.preview_retry(scope).await
    }

    /// Refuses to send with a backup, or with webhooks whose secret differs from the webhook endpoint's secret.
    async fn refuse_unusable_ledger(&self, ledger: &dyn Ledger) -> Result<(), Error> {
        if let Some(profile) = self.inputs.destination.profile() {
            refuse_other_secret(ledger, profile, self.hook.as_ref()).await?;
        }
        match self.inputs.destination.is_live() {
            true => refuse_backup(ledger).await,
            false => Ok(()),
        }
    }

    /// Checks the ledger and locks the campaign for sending.
    async fn start_session(
        self,
        adapters: Adapters,
        consent: Arc<dyn Consent>,
        interrupt: watch::Receiver<Interrupt>,
    ) -> Result<Session, Error> {
        let (brief, account) = (&self.inputs.campaign.brief, self.inputs.destination.account_name());
        let ledger = adapters.ledger.as_ref();
        self.refuse_unusable_ledger(ledger).await?;
        let lock = Arc::new(lock_campaign(ledger, &brief.name, &brief.gateway, account).await?);
        // Results files are checked after locking, so that no other process writes them in the meantime.
        match self.request.new_ledger {
            true => move_loss_signs_aside(ledger, &self.inputs, &adapters.observer).await?,
            false => refuse_lost_ledger(ledger, &self.inputs).await?,
        }
        finish_forgetting(&adapters, &lock).await;
        self.build_session(adapters, consent, interrupt, Some(lock)).await
    }

    /// Builds the session with the plan that the request names. Without a lock, the session is a preview.
    async fn build_session(
        self,
        adapters: Adapters,
        consent: Arc<dyn Consent>,
        interrupt: watch::Receiver<Interrupt>,
        lock: Option<Arc<CampaignLock>>,
    ) -> Result<Session, Error> {
        let profile = self.inputs.destination.profile();
        let required_plan = RequiredPlan::load_for_request(adapters.ledger.as_ref(), &self.request, profile).await?;
        let frozen_runs = Mutex::default();
        Ok(Session { launch: self, adapters, consent, interrupt, lock, required_plan, frozen_runs })
    }
}

impl Session {
    /// The campaign's inputs.
    pub(super) fn inputs(&self) -> &Arc<Inputs> {
        &self.launch.inputs
    }

    /// Returns the campaign lock, or an error in a preview, which must not send.
    pub(super) fn lock(&self) -> Result<&Arc<CampaignLock>, Error> {
        self.lock.as_ref().ok_or_else(|| Error::Internal("a preview must not send".to_owned()))
    }

    /// Returns the session's lock if it covers the run, or else locks the campaign for the account of the run.
    pub(super) async fn lock_for_run(&self, run: &Run) -> Result<Arc<CampaignLock>, Error> {
        let lock = self.lock()?;
        if lock.covers_run(run) {
            return Ok(Arc::clone(lock));
        }
        let gateway = &self.inputs().campaign.brief.gateway;
        let lock = lock_campaign(self.adapters.ledger.as_ref(), &run.campaign, gateway, &run.account).await?;
        // Before this lock was taken, another process could have replaced the run's copies.
        self.lock_frozen_runs().remove(&run.key);
        Ok(Arc::new(lock))
    }

    /// Returns the frozen copies of a run, which are loaded only once.
    pub(super) async fn load_frozen(&self, run: &Run) -> Result<Arc<FrozenRun>, LedgerError> {
        if let Some(frozen) = self.lock_frozen_runs().get(&run.key) {
            return Ok(Arc::clone(frozen));
        }
        let frozen = Arc::new(FrozenRun::load(self.adapters.ledger.as_ref(), run).await?);
        self.lock_frozen_runs().insert(run.key, Arc::clone(&frozen));
        Ok(frozen)
    }

    fn lock_frozen_runs(&self) -> MutexGuard<'_, HashMap<RunId, Arc<FrozenRun>>> {
        self.frozen_runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the campaign. If the first run completes an earlier edition, the current edition is sent next.
    async fn send_editions(&self) -> Result<RunOutcome, Error> {
        let first = self.send_prepared(self.prepare_run()).await?;
        let RunOutcome::Ended(mut ended) = first else { return Ok(first) };
        let request = &self.launch.request;
        if request.is_partial() || ended.kind.is_some() || !ended.notes.earlier_edition {
            return Ok(RunOutcome::Ended(ended));
        }
        match self.send_prepared(self.prepare_run()).await {
            Ok(second) => Ok(second.with_earlier_run(ended)),
            Err(error) => {
                // The first run is reported, even if the next edition fails.
                ended.not_begun_error = Some(Box::new(error));
                Ok(RunOutcome::Ended(ended))
            }
        }
    }

    /// Prepares a run and sends it. If a signal arrives during the preparation, nothing is sent.
    async fn send_prepared(
        &self,
        prepare: impl Future<Output = Result<Preparation, Error>>,
    ) -> Result<RunOutcome, Error> {
        let prepared = tokio::select! {
            prepared = prepare => prepared?,
            signal = self.wait_for_signal() => return Err(Error::Interrupted { signal, phase: RunPhase::Preparing }),
        };
        match prepared {
            Preparation::Send(selected) => tokio::select! {
                ended = self.send_run(*selected) => ended,
                // The engine handles the first signal itself. This branch covers later work, such as writing large
                // results.
                signal = self.wait_for_second_signal() => Err(Error::Interrupted { signal, phase: RunPhase::Ending }),
            },
            Preparation::Nothing(outcome) => Ok(outcome),
        }
    }

    /// Waits for a signal, which might already have arrived.
    pub(super) async fn wait_for_signal(&self) -> u8 {
        Interrupt::wait_for_signal(&mut self.interrupt.clone()).await
    }

    /// Waits for a second signal, and then for the grace period.
    async fn wait_for_second_signal(&self) -> u8 {
        let mut interrupt = self.interrupt.clone();
        let is_immediate = |interrupt: &Interrupt| matches!(interrupt, Interrupt::Immediate(_));
        match interrupt.wait_for(is_immediate).await.map(|signal| *signal) {
            Ok(Interrupt::Immediate(signal)) => {
                tokio::time::sleep(EXIT_GRACE).await;
                signal
            }
            _ => std::future::pending().await,
        }
    }
}

/// The recipients to whom an invocation sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Round {
    /// Recipients without a message.
    #[default]
    Same,
    /// All recipients again, with the number of recipients that was confirmed.
    Again(u64),
}

/// Options of a request to send a campaign. The default sends all remaining messages.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    /// Only these rows. `None` for all rows.
    pub rows: Option<RowSet>,
    /// The maximum number of rows to send.
    pub limit: Option<u64>,
    /// Whether recipients who have a message get the message again.
    pub round: Round,
    /// Whether a new run replaces an unfinished run whose inputs have changed.
    pub accept_changes: bool,
    /// Whether all runs of the campaign belong to this campaign file, even if they began from another file.
    pub moved: bool,
    /// The number of recipients that is accepted above the profile's limit.
    pub up_to: Option<u64>,
    /// The number of recipients outside the profile's `home` that is accepted above its limit.
    pub up_to_abroad: Option<u64>,
    /// Whether the run continues even if many messages are rejected.
    pub keep_going: bool,
    /// Whether to send without first asking a live gateway about the key, sender names and balance.
    pub offline: bool,
    /// Whether a rehearsal runs in real time.
    pub real_time: bool,
    /// Whether the run stops instead of waiting for its window or the next day, and reconciles rows in doubt only once
    /// at the end.
    pub no_wait: bool,
    /// Whether workers can take shards of the run.
    pub shared: bool,
    /// Whether the ledger is accepted even if stray copies or results contradict it.
    pub new_ledger: bool,
    /// The number of recipients who might get a message twice after a restore from a backup, as accepted.
    pub accept_duplicates: Option<u64>,
    /// The occurrence of the campaign's schedule. It fires at most once.
    pub occurrence: Option<Occurrence>,
    /// The digest of the required plan, or its beginning.
    pub plan: Option<String>,
    /// Whether sending requires an approval of the plan, even through a gateway on this machine.
    pub approved_only: bool,
    /// A signed approval from elsewhere, with the plan that it names.
    pub approval: Option<String>,
    /// The digest that approves all occurrences of the active schedule.
    pub schedule_digest: Option<String>,
    /// The scenario of a rehearsal. `None` for the usual sandbox.
    pub scenario: Option<Arc<Scenario>>,
    /// The confirmation of a retry that was requested on the dashboard.
    pub confirmed_retry: Option<ConfirmedRetry>,
}

/// The confirmation of a retry by a person who saw its preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmedRetry {
    /// The number of messages. Any other number is refused.
    pub messages: u64,
    /// The person.
    pub by: String,
}

impl RunRequest {
    /// The person who requested a retry.
    pub(super) fn retry_author(&self) -> String {
        self.confirmed_retry.as_ref().map_or_else(current_person, |confirmed| confirmed.by.clone())
    }

    /// Selects the rows that this invocation sends from the remaining rows.
    ///
    /// # Errors
    /// If the list does not have the requested rows.
    pub(super) fn choose_rows(&self, remaining: &RoaringBitmap, last: Row) -> Result<RoaringBitmap, Error> {
        let mut chosen = match &self.rows {
            None => remaining.clone(),
            Some(rows) if rows.last_row() > last => return Err(Error::NoSuchRow { row: rows.last_row(), last }),
            Some(rows) => remaining.iter().filter(|row| rows.contains(Row::new(*row))).collect(),
        };
        let limit = self.limit.and_then(|limit| u32::try_from(limit).ok());
        if let Some(beyond) = limit.and_then(|limit| chosen.select(limit)) {
            chosen.remove_range(beyond..);
        }
        Ok(chosen)
    }

    /// Whether only some of the rows are requested.
    pub(super) fn is_partial(&self) -> bool {
        self.limit.is_some() || self.rows.is_some()
    }

    /// Checks the recipient count against the count in the request and the profile's limit.
    pub(super) fn check_recipient_count(&self, profile: Option<&Profile>, number: u64) -> Result<(), Error> {
        match self.round {
            Round::Again(expected) if expected != number => return Err(Error::OtherNumber { expected, number }),
            Round::Again(_) | Round::Same => {}
        }
        let limit = profile.and_then(|profile| profile.recipients_limit).map(u64::from);
        match limit.filter(|limit| number > (*limit).max(self.up_to.unwrap_or(0))) {
            None => Ok(()),
            Some(limit) => Err(Error::TooManyRecipients { number, limit }),
        }
    }

    /// Checks the number of recipients outside the profile's `home`, over all runs of the edition, against the
    /// profile's limit.
    pub(super) fn check_abroad_count(&self, profile: Option<&Profile>, list: &ListSurvey) -> Result<(), Error> {
        let Some(profile) = profile else { return Ok(()) };
        let (home, limit) = match profile.home.as_ref().zip(profile.abroad_limit) {
            Some((home, limit)) => (home, u64::from(limit)),
            None => return Ok(()),
        };
        let number = list.count_abroad(profile);
        match number > limit.max(self.up_to_abroad.unwrap_or(0)) {
            true => Err(Error::TooManyAbroad { number, limit, home: home.to_string() }),
            false => Ok(()),
        }
    }
}

/// The outcome of a request to send a campaign.
#[derive(Debug)]
pub enum RunOutcome {
    /// A run was sent, completely or not.
    Ended(Box<EndedRun>),
    /// No recipients were left.
    NothingLeft(Box<NothingLeft>),
}

impl RunOutcome {
    /// Adds the ended run of an earlier edition to the outcome of the current edition.
    #[must_use]
    pub(super) fn with_earlier_run(mut self, earlier: Box<EndedRun>) -> Self {
        match &mut self {
            RunOutcome::Ended(ended) => ended.earlier = Some(earlier),
            RunOutcome::NothingLeft(nothing) => nothing.earlier = Some(earlier),
        }
        self
    }
}

/// A run after it was sent.
#[derive(Debug)]
pub struct EndedRun {
    /// The run before its end was recorded.
    pub run: Run,
    /// The reason the run stopped early, even if something else failed too.
    pub stop: Option<Stop>,
    /// The recorded kind of the run's end.
    pub kind: Option<StopKind>,
    /// The run's rows by state.
    pub counts: StateCounts,
    /// The number of messages that this invocation sent or might have sent.
    pub sent: u64,
    /// Facts about the selection of the run.
    pub notes: SelectionNotes,
    /// Recipients who opted out during the run: before their message was sent or, in a rehearsal, also by a reply.
    pub opted_out: u64,
    /// Rows of these recipients that were skipped. Their other rows keep the state of an earlier attempt.
    pub skipped_opt_outs: u64,
    /// The billed parts, if the gateway reported them.
    pub parts: u64,
    /// Whether more parts might be billed than the gateway reported, or this is unknown.
    pub has_unreported_parts: bool,
    /// The duration of this invocation.
    pub time: Duration,
    /// Skipped and invalid rows by reason. If the run sent messages, only those beyond a cap or outside the allowed
    /// countries.
    pub excluded: ExcludedRows,
    /// Rows with an earlier message that were to be sent again and were skipped, by reason. They keep their state.
    pub not_resent: ExcludedRows,
    /// The errors of this invocation.
    pub errors: ErrorCounts,
    /// Unexpected contents of the responses in this invocation.
    pub deviations: DeviationCounts,
    /// The written results, or why they were not written. `None` if another process has the run.
    pub results: Option<Result<PathBuf, Error>>,
    /// The backup of another run's results that were at this path.
    pub kept: Option<ResultsBackup>,
    /// The reason the current edition did not begin after this run of an earlier edition, or ended without an outcome.
    pub not_begun_error: Option<Box<Error>>,
    /// Delivery statuses of a rehearsal with a scenario.
    pub played: Option<Counts>,
    /// Other runs of the campaign with rows in doubt.
    pub open_doubts: Vec<RunInDoubt>,
    /// The number of messages that were delivered only in part; 0 if it is unknown.
    pub in_part: u64,
    /// The run of an earlier edition that this invocation finished first.
    pub earlier: Option<Box<EndedRun>>,
}

/// A campaign without recipients left.
#[derive(Debug)]
pub struct NothingLeft {
    /// The survey of the list.
    pub survey: ListSurvey,
    /// The selected rows by state: the requested rows if the list still has planned rows, else all rows.
    pub selected: StateCounts,
    /// The earlier run that sent to the recipients, if there is one.
    pub before: Option<EarlierSending>,
    /// The runs of the same edition that were stopped for good, if that is why recipients are skipped.
    pub cancelled_in: Vec<String>,
    /// Whether some messages of the edition are in doubt.
    pub doubt: bool,
    /// Other runs of the campaign with rows in doubt.
    pub open_doubts: Vec<RunInDoubt>,
    /// The run of an earlier edition that this invocation finished first.
    pub earlier: Option<Box<EndedRun>>,
}
