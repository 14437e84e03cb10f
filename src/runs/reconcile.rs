//! What a run asks about its rows in doubt: at its start and at its end, bounded in time.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::find::reload_run;
use super::launch::Session;
use super::{Connection, Error, HeldRun, RunEvent, check_host};
use crate::delivery::{
    MAX_STAY, MessageInDoubt, MessagesInDoubt, RECONCILE_WAITS, Reconciler, Reconciliation, SendEnding, Snapshot, Stop,
};
use crate::domain::{Endpoint, MessageContent};
use crate::gateway::Gateway;
use crate::ledger::{Author, Lease, NewRowEvent, RowChange, RowState, Run, RunProgress, StopKind};
use crate::manifest::{Destination, InDoubtPolicy};

/// How long a start waits for answers about rows in doubt.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// How the asking about the rows in doubt of a run ended.
#[derive(Default)]
struct ReconciliationEnd {
    /// The rows in doubt that are left.
    doubts: MessagesInDoubt,
    /// What was learnt about the others.
    learnt: Reconciliation,
    /// The signal that ended the asking before its time.
    interrupted: Option<u8>,
}

impl ReconciliationEnd {
    /// Whether a row may be in another state than before; what was learnt when a signal came is not known here.
    fn has_changes(&self) -> bool {
        let Reconciliation { found, failed, not_found, unresolved, .. } = self.learnt;
        self.interrupted.is_some() || found + failed + not_found + unresolved > 0
    }
}

impl Session {
    /// Asks at the start of a run that stands like this, and orders again what its rule says; tells whether that changed
    /// the state of any row.
    pub(super) async fn reconcile_first(
        &self,
        run: &Run,
        lease: Lease,
        gateway: &dyn Gateway,
        snapshot: &Snapshot,
    ) -> Result<bool, Error> {
        // The sandbox of the start before is gone.
        if !self.inputs().destination.is_live() {
            return Ok(false);
        }
        let asked = self
            .ask_until_settled(&self.build_reconciler(run, lease, gateway), snapshot, &[Duration::ZERO], START_TIMEOUT)
            .await?;
        let mut changed = asked.has_changes();
        if self.inputs().campaign.delivery.on_in_doubt == InDoubtPolicy::ResendIfNotFound && self.may_resend(run) {
            let rows = asked.doubts.rows.iter().filter(|doubt| doubt.not_found);
            changed |= self.apply_rule(lease, rows, |by| RowChange::SendAgain { by, why: None }).await?;
        }
        Ok(changed)
    }

    /// Asks about the last finished run if it has rows in doubt; gives it back if it has something to send by that.
    ///
    /// Of a run whose campaign, texts or list changed since nothing is ordered: it could not go on.
    pub(super) async fn reconcile_finished(&self, runs: &[Run]) -> Result<Option<Run>, Error> {
        let doubtful = |run: &&Run| run.counts.as_ref().is_some_and(|(counts, _)| counts.get(RowState::InDoubt) > 0);
        let Destination::Live(profile) = &self.inputs().destination else { return Ok(None) };
        let Some(run) = runs.last().filter(doubtful) else { return Ok(None) };
        let ledger = &self.adapters.ledger;
        check_host(ledger.as_ref(), profile).await?;
        let connection = Connection::Gateway(profile, self.launch.key.clone());
        let gateway =
            connection.create_client(self.adapters.connect, run.endpoint, self.inputs().campaign.delivery.timeout)?;
        let unchanged = self.find_changes(run).await?.what.is_none();
        let held = HeldRun::claim(&self.adapters, self.hold_for_run(run).await?, run.clone()).await?;
        let asked = self.reconcile_held(&held, gateway.as_ref(), unchanged).await;
        let released = held.release().await?;
        if let Some(unwritten) = released.stale_results {
            (self.adapters.observer)(RunEvent::ResultsUnwritten(unwritten));
        }
        asked?;
        let now = reload_run(ledger.as_ref(), run.key).await?;
        Ok((now.progress == RunProgress::Open).then_some(now))
    }

    async fn reconcile_held(&self, held: &HeldRun, gateway: &dyn Gateway, unchanged: bool) -> Result<(), Error> {
        let snapshot = held.read_snapshot().await?;
        if unchanged {
            return self.reconcile_first(&held.run, held.lease, gateway, &snapshot).await.map(drop);
        }
        let reconciler = self.build_reconciler(&held.run, held.lease, gateway);
        self.ask_until_settled(&reconciler, &snapshot, &[Duration::ZERO], START_TIMEOUT).await.map(drop)
    }

    /// Asks at the end of a run. Its rule decides only when everything was asked that there was time for.
    pub(super) async fn reconcile_last(
        &self,
        run: &Run,
        lease: Lease,
        gateway: &dyn Gateway,
        ending: &mut SendEnding,
    ) -> Result<(), Error> {
        let at_once = !self.inputs().destination.is_live() || self.launch.request.no_wait;
        let waits: &[Duration] = if at_once { &[Duration::ZERO] } else { &RECONCILE_WAITS };
        // Nothing is on its way any more: an intent without an outcome is doubt.
        let mut snapshot = Snapshot::load(self.adapters.ledger.as_ref(), run, false).await?;
        let asked =
            self.ask_until_settled(&self.build_reconciler(run, lease, gateway), &snapshot, waits, MAX_STAY).await?;
        let mut changed = asked.has_changes();
        if self.inputs().campaign.delivery.on_in_doubt == InDoubtPolicy::AssumeSent && asked.interrupted.is_none() {
            let rows = asked.doubts.rows.iter();
            changed |= self.apply_rule(lease, rows, |by| RowChange::AssumedSent { by, why: None }).await?;
        }
        if changed {
            snapshot = Snapshot::load(self.adapters.ledger.as_ref(), run, false).await?;
        }
        ending.counts = snapshot.counts;
        if let (None, Some(signal)) = (&ending.stopped, asked.interrupted) {
            ending.stopped = Some(Stop::new(StopKind::Interrupted(signal), "interrupted"));
        }
        Ok(())
    }

    fn build_reconciler<'i>(&'i self, run: &'i Run, lease: Lease, gateway: &'i dyn Gateway) -> Reconciler<'i> {
        let (destination, ledger) = (&self.inputs().destination, self.adapters.ledger.as_ref());
        let account = run.allowance(destination.account_rate().per_second());
        let most = destination.largest_envelope();
        Reconciler { ledger, gateway, run, lease, account, most, clock: self.adapters.clock }
    }

    /// Asks after each of the waits as long as there is something to ask.
    async fn ask_until_settled(
        &self,
        reconciler: &Reconciler<'_>,
        snapshot: &Snapshot,
        waits: &[Duration],
        longest: Duration,
    ) -> Result<ReconciliationEnd, Error> {
        if snapshot.counts.get(RowState::InDoubt) == 0 {
            return Ok(ReconciliationEnd::default());
        }
        let mut doubts =
            MessagesInDoubt::load(reconciler.ledger, reconciler.run, &snapshot.states, &[RowState::InDoubt]).await?;
        (self.adapters.observer)(RunEvent::AskingAboutDoubt { rows: doubts.rows.len() as u64 });
        let deadline = Instant::now() + longest;
        let mut learnt = Reconciliation::default();
        for wait in waits {
            if doubts.rows.is_empty() || learnt.lost {
                break;
            }
            let asked = tokio::select! {
                biased;
                signal = self.wait_for_signal() => {
                    return Ok(ReconciliationEnd { doubts, learnt, interrupted: Some(signal) });
                }
                asked = async { sleep(*wait).await; reconciler.ask_rows(&mut doubts, deadline).await } => asked?,
            };
            // How often is not how many.
            let Reconciliation { blind, unclear, .. } = asked;
            learnt = Reconciliation { asked: learnt.asked.max(asked.asked), blind, unclear, ..learnt.merge(asked) };
        }
        (self.adapters.observer)(RunEvent::Reconciliation(learnt));
        Ok(ReconciliationEnd { doubts, learnt, interrupted: None })
    }

    /// Decides about rows as the campaign's own rule says; tells whether there was any.
    async fn apply_rule(
        &self,
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
        let any = !events.is_empty();
        self.adapters.ledger.record_events(lease, events).await?;
        Ok(any)
    }

    /// Whether a row that was not found may be sent again: a second code or call harms, and a queue may only be slow.
    fn may_resend(&self, run: &Run) -> bool {
        // What a newer run took the place of, or a person ended, is not opened again.
        let open = matches!(run.progress, RunProgress::Open | RunProgress::Finished);
        open && run.endpoint == Endpoint::Sync
            && self.inputs().campaign.brief.all_contents().all(MessageContent::may_repeat)
    }
}
