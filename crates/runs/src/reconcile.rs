//! Inquiries about sent messages, bounded in time: reconciliation of messages in doubt, and polling of delivery
//! statuses within the account's rate.

use std::time::Duration;

use campaign_core::domain::{Endpoint, MessageContent};
use campaign_engine::delivery::{
    ChainLifetimes, MAX_RECONCILE_TIME, MessageInDoubt, MessagesInDoubt, PollCounts, RECONCILE_WAITS, Reconciler,
    Reconciliation, SendEnding, Snapshot, StatusPoller, Stop, load_pending,
};
use campaign_engine::report::is_owned;
use campaign_gateway::Gateway;
use campaign_ledger::{
    Author, Lease, NewRowEvent, Ownership, RowChange, RowState, RowUpdate, Run, RunFilter, RunProgress, StopKind,
};
use campaign_manifest::{CampaignDay, Destination, InDoubtPolicy, ReceiptMode, load_campaign};
use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::find::reload_run;
use super::launch::Session;
use super::profiles::{REQUEST_TIMEOUT, load_profile_of_run};
use super::{Adapters, Connection, Error, HeldRun, ReleasedRun, RunEvent, check_host, read_api_key};

/// The time for which the start of a run waits for answers about rows in doubt.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// The result of reconciling the rows in doubt of a run.
#[derive(Default)]
struct ReconciliationEnd {
    /// The remaining rows in doubt.
    doubts: MessagesInDoubt,
    /// The information about the other rows.
    reconciliation: Reconciliation,
    /// The signal that ended the reconciliation early.
    interrupted: Option<u8>,
}

impl ReconciliationEnd {
    /// Whether the state of a row might have changed. After a signal, the result is `true`, because it is unknown what
    /// the gateway answered before the signal.
    fn has_changes(&self) -> bool {
        let Reconciliation { found, failed, not_found, unresolved, .. } = self.reconciliation;
        self.interrupted.is_some() || found + failed + not_found + unresolved > 0
    }
}

impl Session {
    /// Reconciles messages in doubt at the start of a run, and applies the campaign's `on_in_doubt` rule. Returns
    /// whether the state of any row might have changed.
    pub(super) async fn reconcile_at_start(
        &self,
        run: &Run,
        lease: Lease,
        gateway: &dyn Gateway,
        snapshot: &Snapshot,
    ) -> Result<bool, Error> {
        // The built-in sandbox ended with the earlier process, so it cannot be asked about messages of this run.
        if !self.inputs().destination.is_live() {
            return Ok(false);
        }
        let end = self
            .reconcile_until_settled(
                &self.build_reconciler(run, lease, gateway),
                snapshot,
                &[Duration::ZERO],
                START_TIMEOUT,
            )
            .await?;
        let mut has_changes = end.has_changes();
        if self.inputs().campaign.delivery.on_in_doubt == InDoubtPolicy::ResendIfNotFound && self.may_resend(run) {
            let rows = end.doubts.rows.iter().filter(|doubt| doubt.not_found);
            has_changes |=
                self.apply_in_doubt_rule(run, lease, rows, |by| RowChange::SendAgain { by, why: None }).await?;
        }
        Ok(has_changes)
    }

    /// Reconciles the last finished run if it has rows in doubt. Returns the run if there is then something to send.
    ///
    /// If the campaign, texts or list have changed, nothing is sent again, because the run could not be resumed.
    pub(super) async fn reconcile_finished_run(&self, runs: &[Run]) -> Result<Option<Run>, Error> {
        let has_doubts = |run: &&Run| run.counts.as_ref().is_some_and(|(counts, _)| counts.get(RowState::InDoubt) > 0);
        let Destination::Live(profile) = &self.inputs().destination else { return Ok(None) };
        let Some(run) = runs.last().filter(has_doubts) else { return Ok(None) };
        let ledger = &self.adapters.ledger;
        check_host(ledger.as_ref(), profile).await?;
        let connection = Connection::Gateway(profile, self.launch.key.clone());
        let gateway =
            connection.create_client(self.adapters.connect, run.endpoint, self.inputs().campaign.delivery.timeout)?;
        let is_unchanged = self.find_changes(run).await?.changes.is_none();
        let held_run = HeldRun::claim(&self.adapters, self.lock_for_run(run).await?, run.clone()).await?;
        let reconciled = self.reconcile_held_run(&held_run, gateway.as_ref(), is_unchanged).await;
        let released = held_run.release().await?;
        if let Some(unwritten) = released.stale_results {
            (self.adapters.observer)(RunEvent::ResultsUnwritten(unwritten));
        }
        reconciled?;
        let current = reload_run(ledger.as_ref(), run.key).await?;
        Ok((current.progress == RunProgress::Open).then_some(current))
    }

    /// Reconciles a claimed run. The campaign's `on_in_doubt` rule applies only if the inputs are unchanged.
    async fn reconcile_held_run(
        &self,
        held_run: &HeldRun,
        gateway: &dyn Gateway,
        is_unchanged: bool,
    ) -> Result<(), Error> {
        let snapshot = held_run.read_snapshot().await?;
        if is_unchanged {
            return self.reconcile_at_start(&held_run.run, held_run.lease, gateway, &snapshot).await.map(drop);
        }
        let reconciler = self.build_reconciler(&held_run.run, held_run.lease, gateway);
        self.reconcile_until_settled(&reconciler, &snapshot, &[Duration::ZERO], START_TIMEOUT).await.map(drop)
    }

    /// Reconciles messages in doubt at the end of a run. The campaign's `on_in_doubt` rule is applied to rows that are
    /// still in doubt, unless a signal interrupts the reconciliation.
    pub(super) async fn reconcile_at_end(
        &self,
        run: &Run,
        lease: Lease,
        gateway: &dyn Gateway,
        ending: &mut SendEnding,
    ) -> Result<(), Error> {
        let at_once = !self.inputs().destination.is_live() || self.launch.request.no_wait;
        let waits: &[Duration] = if at_once { &[Duration::ZERO] } else { &RECONCILE_WAITS };
        // No message is in flight now, so an intent without an outcome is in doubt.
        let mut snapshot = Snapshot::load(self.adapters.ledger.as_ref(), run, false).await?;
        let end = self
            .reconcile_until_settled(&self.build_reconciler(run, lease, gateway), &snapshot, waits, MAX_RECONCILE_TIME)
            .await?;
        let mut has_changes = end.has_changes();
        if self.inputs().campaign.delivery.on_in_doubt == InDoubtPolicy::AssumeSent && end.interrupted.is_none() {
            let rows = end.doubts.rows.iter();
            has_changes |=
                self.apply_in_doubt_rule(run, lease, rows, |by| RowChange::AssumedSent { by, why: None }).await?;
        }
        if has_changes {
            snapshot = Snapshot::load(self.adapters.ledger.as_ref(), run, false).await?;
        }
        ending.counts = snapshot.counts;
        if let (None, Some(signal)) = (&ending.stopped, end.interrupted) {
            ending.stopped = Some(Stop::new(StopKind::Interrupted(signal), "interrupted"));
        }
        Ok(())
    }

    fn build_reconciler<'i>(&'i self, run: &'i Run, lease: Lease, gateway: &'i dyn Gateway) -> Reconciler<'i> {
        let (destination, ledger) = (&self.inputs().destination, self.adapters.ledger.as_ref());
        let allowance = run.allowance(destination.account_rate().per_second());
        let batch_size = destination.max_envelope_size();
        Reconciler { ledger, gateway, run, lease, allowance, max_batch: batch_size, clock: self.adapters.clock }
    }

    /// Reconciles after each of these waits until no rows are in doubt or the time limit is reached.
    async fn reconcile_until_settled(
        &self,
        reconciler: &Reconciler<'_>,
        snapshot: &Snapshot,
        waits: &[Duration],
        time_limit: Duration,
    ) -> Result<ReconciliationEnd, Error> {
        if snapshot.counts.get(RowState::InDoubt) == 0 {
            return Ok(ReconciliationEnd::default());
        }
        let mut doubts =
            MessagesInDoubt::load(reconciler.ledger, reconciler.run, &snapshot.states, &[RowState::InDoubt]).await?;
        (self.adapters.observer)(RunEvent::AskingAboutDoubt { rows: doubts.rows.len() as u64 });
        let deadline = Instant::now() + time_limit;
        let mut reconciliation = Reconciliation::default();
        for wait in waits {
            if doubts.rows.is_empty() || reconciliation.lost {
                break;
            }
            let round = tokio::select! {
                biased;
                signal = self.wait_for_signal() => {
                    return Ok(ReconciliationEnd { doubts, reconciliation, interrupted: Some(signal) });
                }
                round = async { sleep(*wait).await; reconciler.ask_rows(&mut doubts, deadline).await } => round?,
            };
            // Each round asks about the same messages, so `asked`, `blind` and `unclear` are not added up.
            let Reconciliation { blind, unclear, .. } = round;
            reconciliation = Reconciliation {
                asked: reconciliation.asked.max(round.asked),
                blind,
                unclear,
                ..reconciliation.merge(round)
            };
        }
        (self.adapters.observer)(RunEvent::Reconciliation(reconciliation));
        Ok(ReconciliationEnd { doubts, reconciliation, interrupted: None })
    }

    /// Records a change for each of these messages in doubt, in the name of the campaign's `on_in_doubt` rule. Returns
    /// whether there were any messages.
    async fn apply_in_doubt_rule(
        &self,
        run: &Run,
        lease: Lease,
        doubts: impl Iterator<Item = &MessageInDoubt>,
        change: impl Fn(Author) -> RowChange,
    ) -> Result<bool, Error> {
        let rule = format!("on_in_doubt: {}", self.inputs().campaign.delivery.on_in_doubt.name());
        let events: Vec<NewRowEvent> = doubts
            .map(|doubt| NewRowEvent {
                row: doubt.row,
                envelope: doubt.envelope,
                change: change(Author::Policy(rule.clone())),
            })
            .collect();
        let has_events = !events.is_empty();
        match self.adapters.ledger.update_rows(lease, RowUpdate::Events(events)).await? {
            Ownership::Held => Ok(has_events),
            Ownership::Lost => Err(Error::Taken { run: run.name() }),
        }
    }

    /// Whether a message that the gateway did not find can be sent again. A second code or call would do harm, and a
    /// message that the gateway queues might only be delayed.
    fn may_resend(&self, run: &Run) -> bool {
        // A run that was replaced or cancelled is not reopened.
        let can_reopen = matches!(run.progress, RunProgress::Open | RunProgress::Finished);
        can_reopen
            && run.endpoint == Endpoint::Sync
            && self.inputs().campaign.brief.all_contents().all(MessageContent::may_repeat)
    }
}

/// The time limit for all inquiries about a run. Many rows in doubt at a low rate take a long time.
const RECONCILE_TIMEOUT: Duration = Duration::from_secs(3_600);

/// A run after its reconciliation.
#[derive(Debug)]
pub struct ReconciledRun {
    /// The result of the inquiries.
    pub reconciliation: Reconciliation,
    /// The state of the run.
    pub released: ReleasedRun,
}

/// Asks the gateway about all rows in doubt of a run.
///
/// # Errors
/// If another process has the run, the gateway cannot be asked, or the ledger cannot be written.
pub async fn reconcile_run(adapters: &Adapters, run: Run) -> Result<ReconciledRun, Error> {
    let held_run = HeldRun::take(adapters, run).await?;
    let reconciliation = reconcile_doubts(&held_run).await;
    // The run is released even if the inquiry failed.
    let released = held_run.release().await?;
    Ok(ReconciledRun { reconciliation: reconciliation?, released })
}

async fn reconcile_doubts(held_run: &HeldRun) -> Result<Reconciliation, Error> {
    let HeldRun { adapters, run, lease, .. } = held_run;
    let (ledger, snapshot) = (adapters.ledger.as_ref(), held_run.read_snapshot().await?);
    let mut doubts =
        MessagesInDoubt::load(ledger, run, &snapshot.states, &[RowState::InDoubt, RowState::Unresolved]).await?;
    if doubts.rows.is_empty() {
        return Ok(Reconciliation::default());
    }
    let profile = load_profile_of_run(adapters, run).await?;
    let key = read_api_key(&profile)?;
    let gateway = Connection::Gateway(&profile, key).create_client(adapters.connect, run.endpoint, REQUEST_TIMEOUT)?;
    let reconciler = Reconciler {
        ledger,
        gateway: gateway.as_ref(),
        run,
        lease: *lease,
        allowance: run.allowance(profile.rate.per_second()),
        max_batch: profile.max_envelope_size(),
        clock: adapters.clock,
    };
    Ok(reconciler.ask_rows(&mut doubts, Instant::now() + RECONCILE_TIMEOUT).await?)
}

/// The share of an account's rate for inquiries while messages are sent.
const RATE_SHARE_WHILE_SENDING: f64 = 0.1;

/// The messages of a run to poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// All accepted and queued messages without a final status.
    Open,
    /// Messages with a failed earlier channel, after the lifetimes of all channels. A failure in the answer is final.
    UnreportedFallbacks,
}

/// Polls the statuses of the messages that `polling` selects, until the time limit.
///
/// # Errors
/// If the gateway cannot be asked, or the ledger cannot be written.
pub async fn poll_run(
    adapters: &Adapters,
    run: &Run,
    polling: Polling,
    time_limit: Duration,
) -> Result<PollCounts, Error> {
    let ledger = adapters.ledger.as_ref();
    let snapshot = Snapshot::load(ledger, run, is_owned(ledger, run).await?).await?;
    let times = ChainLifetimes::load_for_run(ledger, run).await;
    let (mut pending, now) = (load_pending(ledger, run, &snapshot, &times).await?, (adapters.clock)());
    let mut polled = PollCounts::default();
    if polling == Polling::UnreportedFallbacks {
        let unreported = snapshot.states.unreported_fallbacks();
        pending.retain(|message| unreported.contains(message.row.get()));
        let unreported = pending.len();
        pending.retain(|message| message.has_expired(now));
        polled.waiting = (unreported - pending.len()) as u64;
        // Polling starts at a random message, so that messages without an answer do not hold up the others.
        if !pending.is_empty() {
            let first = rand::random_range(..pending.len());
            pending.rotate_left(first);
        }
    }
    if pending.is_empty() {
        return Ok(polled);
    }
    let profile = load_profile_of_run(adapters, run).await?;
    let key = read_api_key(&profile)?;
    let gateway = Connection::Gateway(&profile, key).create_client(adapters.connect, run.endpoint, REQUEST_TIMEOUT)?;
    let allowance = run.allowance(profile.rate.per_second());
    let (gateway, batch_size, clock) = (gateway.as_ref(), profile.max_envelope_size(), adapters.clock);
    let poller = StatusPoller { ledger, gateway, run, allowance, max_batch: batch_size, clock };
    let deadline = Instant::now() + time_limit;
    for group in pending.chunks(poller.group_size()) {
        // Another run of the account can begin or end between two groups.
        let share = if is_sending(adapters, &run.account).await? { RATE_SHARE_WHILE_SENDING } else { 1.0 };
        if poller.ask_group(group, share, deadline, &mut polled).await?.is_none() {
            polled.left = pending.len() as u64 - polled.asked;
            break;
        }
    }
    Ok(polled)
}

/// Whether receipts of a run are wanted, according to its current campaign file. If the file cannot be loaded, the
/// default applies.
pub fn wants_receipts(run: &Run, now: Timestamp) -> bool {
    let campaign = run.file.as_deref().and_then(|file| load_campaign(file.as_ref(), CampaignDay::Of(now)).value);
    campaign.map(|campaign| campaign.receipts).unwrap_or_default() != ReceiptMode::Off
}

/// Whether a process is sending through an account.
async fn is_sending(adapters: &Adapters, account: &str) -> Result<bool, Error> {
    let open = adapters.ledger.list_stored_runs(RunFilter { open: true, ..RunFilter::all() }).await?;
    for run in open.iter().flatten().filter(|run| run.account == account) {
        if is_owned(adapters.ledger.as_ref(), run).await? {
            return Ok(true);
        }
    }
    Ok(false)
}
