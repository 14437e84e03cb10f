//! Sending a run together with others: what a process of ours does by itself.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::find::found;
use super::freeze::thaw;
use super::launch::Session;
use super::sender::{Sender, Start};
use super::{Error, Event};
use crate::delivery::{
    ASKS_AGAIN, DeliveryEvent, Ending, Interrupt, Participant, ShareDraw, ShareSender, Snapshot, Stop,
};
use crate::gateway::{Gateway, RunHook};
use crate::ledger::{Lease, Parts, Run, State, StateCounts, StopKind};
use crate::manifest::SendingTerms;

/// How often whoever waits is told where the run stands, and how much less time than that goes into looking.
const TELLS: Duration = Duration::from_secs(2);
const LOOKS: u32 = 10;
/// How much longer than for an answer others are waited for that are to stop.
const GRACE: Duration = Duration::from_secs(15);

/// A sender of shares.
pub(super) struct Hand<'h> {
    sender: Sender<'h>,
    gateway: Arc<dyn Gateway>,
    hook: Option<RunHook>,
    /// Whether a first rejection says nothing of the others.
    retry: bool,
    /// When somebody is told again where the run stands.
    tells_at: Mutex<Option<Instant>>,
}

impl<'h> Hand<'h> {
    pub(super) fn new(sender: Sender<'h>, gateway: Arc<dyn Gateway>, hook: Option<RunHook>, retry: bool) -> Self {
        Self { sender, gateway, hook, retry, tells_at: Mutex::default() }
    }

    /// What it takes part in runs as.
    pub(super) fn participant(&self) -> Participant<'_, Self> {
        let Sender { adapters, .. } = &self.sender;
        let (by, size) = (adapters.process.clone(), self.sender.share_size());
        Participant { ledger: &adapters.ledger, by, size, sender: self }
    }

    /// Tells where a run stands while others send it.
    async fn tell(&self, run: &Run) -> Result<(), Error> {
        let tells_at = || self.tells_at.lock().unwrap_or_else(PoisonError::into_inner);
        if tells_at().is_some_and(|next| Instant::now() < next) {
            return Ok(());
        }
        let (began, adapters) = (Instant::now(), self.sender.adapters);
        let counts = Snapshot::read(adapters.ledger.as_ref(), run, true).await?.counts;
        (adapters.observer)(Event::Sending(DeliveryEvent::Settled { counts }));
        // A large run is looked at less often.
        *tells_at() = Some(Instant::now() + TELLS.max(began.elapsed() * LOOKS));
        Ok(())
    }
}

impl ShareSender for Hand<'_> {
    type Error = Error;

    async fn send(&self, run: &Run, (lease, snapshot): (Lease, &Snapshot), shares: ShareDraw) -> Result<Ending, Error> {
        let (_, prepared) = thaw(self.sender.adapters.ledger.as_ref(), run).await?;
        let (retry, hook, shares) = (self.retry, self.hook.clone(), Some(shares));
        let start = Start { run, lease, snapshot, rows: None, limit: None, retry, hook, shares };
        self.sender.engine(start, Arc::clone(&self.gateway), prepared).await
    }

    fn takes_over(&self, run: &Run, shares: usize, doubtful: usize) {
        tracing::info!(run = run.name(), shares, doubtful, "taken over");
        if doubtful > 0 {
            (self.sender.adapters.observer)(Event::DoubtFromBefore { requests: doubtful });
        }
    }

    async fn wait(&self, run: &Run) -> Result<Option<Stop>, Error> {
        let mut interrupt = self.sender.interrupt.clone();
        let signalled = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None);
        let signal = tokio::select! {
            biased;
            signal = signalled => signal.map(|signal| *signal).ok(),
            () = tokio::time::sleep(ASKS_AGAIN) => Some(Interrupt::None),
        };
        match signal {
            Some(Interrupt::Gently(signal) | Interrupt::AtOnce(signal)) => {
                return Ok(Some(Stop::new(StopKind::Interrupted(signal), "interrupted")));
            }
            Some(Interrupt::None) => {}
            // Nobody can interrupt any more.
            None => tokio::time::sleep(ASKS_AGAIN).await,
        }
        self.tell(run).await.map(|()| None)
    }
}

impl Session {
    /// Shares the run out, sends what this process draws of it, and stays until nobody has any.
    pub(super) async fn send_together(
        &self,
        (run, lease): (&Run, Lease),
        gateway: Arc<dyn Gateway>,
        hook: Option<RunHook>,
        (terms, retry): (&SendingTerms, bool),
    ) -> Result<Ending, Error> {
        let ledger = self.adapters.ledger.as_ref();
        let before = Snapshot::read(ledger, run, true).await?;
        let hand = Hand::new(self.sender(terms), gateway, hook, retry);
        let for_workers = terms.for_workers(self.inputs().destination.profile());
        let terms_told = serde_json::to_string(&for_workers).map_err(|error| Error::Internal(error.to_string()))?;
        let longest = terms.delivery.timeout + GRACE;
        let led = hand.participant().lead((run, lease), &terms_told, retry, longest).await?;
        let ending = led.ok_or_else(|| Error::Taken { run: run.name() })?;
        let run = found(ledger, run.key).await?;
        let now = Snapshot::read(ledger, &run, false).await?;
        let parts = Parts {
            billed: now.parts.billed.saturating_sub(before.parts.billed),
            messages: now.parts.messages.saturating_sub(before.parts.messages),
        };
        let sent = went_out(&now.counts).saturating_sub(went_out(&before.counts));
        Ok(Ending { counts: now.counts, parts, sent, ..ending })
    }
}

/// How many messages went out or may have.
fn went_out(counts: &StateCounts) -> u64 {
    State::ALL.into_iter().filter(|state| state.has_operation()).map(|state| counts.get(state)).sum()
}
