//! Sending a run together with others: what a process of ours does by itself.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::find::reload_run;
use super::freeze::open_copies;
use super::launch::Session;
use super::sender::{RunSender, SendJob};
use super::{Error, RunEvent};
use crate::delivery::{
    DeliveryEvent, Interrupt, POLL_INTERVAL, Participant, SendEnding, ShareDraw, ShareSender, Snapshot, Stop,
};
use crate::gateway::{Gateway, RunWebhookUrls};
use crate::ledger::{BilledParts, Lease, RowState, Run, StateCounts, StopKind};
use crate::manifest::SendingTerms;

/// How often whoever waits is told where the run stands, and how much less time than that goes into looking.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);
const REPORT_COST_FACTOR: u32 = 10;
/// How much longer than for an answer others are waited for that are to stop.
const STOP_GRACE: Duration = Duration::from_secs(15);

/// A sender of shares.
pub(super) struct RunShareSender<'h> {
    sender: RunSender<'h>,
    gateway: Arc<dyn Gateway>,
    hook: Option<RunWebhookUrls>,
    /// Whether a first rejection says nothing of the others.
    retry: bool,
    /// When somebody is told again where the run stands.
    next_report: Mutex<Option<Instant>>,
}

impl<'h> RunShareSender<'h> {
    pub(super) fn new(
        sender: RunSender<'h>,
        gateway: Arc<dyn Gateway>,
        hook: Option<RunWebhookUrls>,
        retry: bool,
    ) -> Self {
        Self { sender, gateway, hook, retry, next_report: Mutex::default() }
    }

    /// What it takes part in runs as.
    pub(super) fn participant(&self) -> Participant<'_, Self> {
        let RunSender { adapters, .. } = &self.sender;
        let (by, size) = (adapters.process.clone(), self.sender.share_size());
        Participant { ledger: &adapters.ledger, by, size, sender: self }
    }

    /// Tells where a run stands while others send it.
    async fn report_progress(&self, run: &Run) -> Result<(), Error> {
        let tells_at = || self.next_report.lock().unwrap_or_else(PoisonError::into_inner);
        if tells_at().is_some_and(|next| Instant::now() < next) {
            return Ok(());
        }
        let (began, adapters) = (Instant::now(), self.sender.adapters);
        let counts = Snapshot::load(adapters.ledger.as_ref(), run, true).await?.counts;
        (adapters.observer)(RunEvent::Sending(DeliveryEvent::Settled { counts }));
        // A large run is looked at less often.
        *tells_at() = Some(Instant::now() + REPORT_INTERVAL.max(began.elapsed() * REPORT_COST_FACTOR));
        Ok(())
    }
}

impl ShareSender for RunShareSender<'_> {
    type Error = Error;

    async fn send_drawn(
        &self,
        run: &Run,
        (lease, snapshot): (Lease, &Snapshot),
        shares: ShareDraw,
    ) -> Result<SendEnding, Error> {
        let (_, prepared) = open_copies(self.sender.adapters.ledger.as_ref(), run).await?;
        let (retry, hook, shares) = (self.retry, self.hook.clone(), Some(shares));
        let start = SendJob { run, lease, snapshot, rows: None, limit: None, retry, hook, shares };
        self.sender.run_engine(start, Arc::clone(&self.gateway), prepared).await
    }

    fn note_takeover(&self, run: &Run, shares: usize, doubtful: usize) {
        tracing::info!(run = run.name(), shares, doubtful, "taken over");
        if doubtful > 0 {
            (self.sender.adapters.observer)(RunEvent::DoubtFromBefore { requests: doubtful });
        }
    }

    async fn wait_for_others(&self, run: &Run) -> Result<Option<Stop>, Error> {
        let mut interrupt = self.sender.interrupt.clone();
        let signalled = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None);
        let signal = tokio::select! {
            biased;
            signal = signalled => signal.map(|signal| *signal).ok(),
            () = tokio::time::sleep(POLL_INTERVAL) => Some(Interrupt::None),
        };
        match signal {
            Some(Interrupt::Graceful(signal) | Interrupt::Immediate(signal)) => {
                return Ok(Some(Stop::new(StopKind::Interrupted(signal), "interrupted")));
            }
            Some(Interrupt::None) => {}
            // Nobody can interrupt any more.
            None => tokio::time::sleep(POLL_INTERVAL).await,
        }
        self.report_progress(run).await.map(|()| None)
    }
}

impl Session {
    /// Shares the run out, sends what this process draws of it, and stays until nobody has any.
    pub(super) async fn send_shared_run(
        &self,
        (run, lease): (&Run, Lease),
        gateway: Arc<dyn Gateway>,
        hook: Option<RunWebhookUrls>,
        (terms, retry): (&SendingTerms, bool),
    ) -> Result<SendEnding, Error> {
        let ledger = self.adapters.ledger.as_ref();
        let before = Snapshot::load(ledger, run, true).await?;
        let hand = RunShareSender::new(self.build_sender(terms), gateway, hook, retry);
        let for_workers = terms.to_worker_terms(self.inputs().destination.profile());
        let terms_told = serde_json::to_string(&for_workers).map_err(|error| Error::Internal(error.to_string()))?;
        let longest = terms.delivery.timeout + STOP_GRACE;
        let led = hand.participant().lead_run((run, lease), &terms_told, retry, longest).await?;
        let ending = led.ok_or_else(|| Error::Taken { run: run.name() })?;
        let run = reload_run(ledger, run.key).await?;
        let now = Snapshot::load(ledger, &run, false).await?;
        let parts = BilledParts {
            billed: now.parts.billed.saturating_sub(before.parts.billed),
            messages: now.parts.messages.saturating_sub(before.parts.messages),
        };
        let sent = count_sent(&now.counts).saturating_sub(count_sent(&before.counts));
        Ok(SendEnding { counts: now.counts, parts, sent, ..ending })
    }
}

/// How many messages went out or may have.
fn count_sent(counts: &StateCounts) -> u64 {
    RowState::ALL.into_iter().filter(|state| state.is_guarded()).map(|state| counts.get(state)).sum()
}
