//! Sending a run together with others: share by share, until nobody has any.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::find::found;
use super::freeze::thaw;
use super::launch::Session;
use super::sender::{Sender, Start, has_taken};
use super::{Error, Event};
use crate::delivery::{DeliveryEvent, Ending, Interrupt, ShareDraw, Snapshot, Stop};
use crate::failpoint;
use crate::gateway::{Gateway, RunHook};
use crate::ledger::{Lease, Ownership, Parts, Run, Share, State, StateCounts, StopKind};
use crate::manifest::SendingTerms;

/// How long until somebody who waits for what others have asks again.
const ASKS_AGAIN: Duration = Duration::from_millis(500);
/// How often whoever waits is told where the run stands, and how much less time than that goes into looking.
const TELLS: Duration = Duration::from_secs(2);
const LOOKS: u32 = 10;
/// How much longer than for an answer others are waited for that are to stop.
const GRACE: Duration = Duration::from_secs(15);

/// Why a process draws no more shares of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drawn {
    /// Everything was drawn, and nobody has any of it.
    Through,
    /// It stopped.
    Stopped,
    /// The run is over, or somebody shared it out anew.
    Over,
}

impl Sender<'_> {
    /// Draws shares of a run and sends them, and waits for what others have: they may leave some.
    pub(super) async fn send_shares(
        &self,
        run: &Run,
        (gateway, hook): (&Arc<dyn Gateway>, Option<&RunHook>),
        retry: bool,
    ) -> Result<(Ending, Drawn), Error> {
        let ledger = &self.adapters.ledger;
        let Some(seat) = ledger.take_seat(run, self.adapters.process.clone()).await? else {
            return Ok((Ending::default(), Drawn::Over));
        };
        let (seat, size) = (Arc::new(seat), self.share_size());
        // What nobody drew since the run was shared out is as it was then.
        let mut snapshot = Snapshot::read(ledger.as_ref(), run, true).await?;
        let (mut ending, mut next, mut told) = (Ending::default(), None, Teller::default());
        loop {
            let share = match next.take() {
                Some(share) => share,
                None => ledger.draw_share(&seat, size, true).await?,
            };
            let shares = match share {
                Share::Fresh(rows) => ShareDraw::from(Arc::clone(ledger), Arc::clone(&seat), rows, size),
                Share::TakenOver { rows, doubtful } => {
                    tracing::info!(run = run.name(), shares = rows.len(), doubtful, "taken over");
                    if doubtful > 0 {
                        (self.adapters.observer)(Event::DoubtFromBefore { requests: doubtful });
                    }
                    failpoint::pass("share.taken_over");
                    snapshot = Snapshot::read(ledger.as_ref(), run, true).await?;
                    ShareDraw::of(Arc::clone(ledger), Arc::clone(&seat), rows)
                }
                Share::InOtherHands => {
                    if let Some(stop) = self.waited().await {
                        ending.stopped = Some(stop);
                        return Ok((ending, Drawn::Stopped));
                    }
                    told.tell(self, run).await?;
                    continue;
                }
                Share::Through => return Ok((ending, Drawn::Through)),
                Share::Over => {
                    ending.stopped = self.asked_to_stop(run).await?;
                    let drawn = if ending.stopped.is_some() { Drawn::Stopped } else { Drawn::Over };
                    return Ok((ending, drawn));
                }
            };
            failpoint::pass("share.drawn");
            let (_, prepared) = thaw(ledger.as_ref(), run).await?;
            let (lease, hook, drawing) = (seat.lease, hook.cloned(), Some(shares.clone()));
            let start =
                Start { run, lease, snapshot: &snapshot, rows: None, limit: None, retry, hook, shares: drawing };
            ending = ending.and(self.engine(start, Arc::clone(gateway), prepared).await?);
            snapshot.counts = ending.counts.clone();
            if let Some(stop) = &ending.stopped {
                if stop.kind == StopKind::Asked {
                    ending.stopped = self.asked_to_stop(run).await?.or(ending.stopped);
                }
                return Ok((ending, Drawn::Stopped));
            }
            next = shares.take_last();
            if !matches!(next, Some(Share::Fresh(_) | Share::TakenOver { .. })) {
                ledger.finish_shares(&seat).await?;
            }
        }
    }

    /// Waits a moment, unless a signal came.
    async fn waited(&self) -> Option<Stop> {
        let mut interrupt = self.interrupt.clone();
        let signalled = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None);
        let signal = tokio::select! {
            biased;
            signal = signalled => signal.map(|signal| *signal),
            () = tokio::time::sleep(ASKS_AGAIN) => return None,
        };
        match signal {
            Ok(Interrupt::Gently(signal) | Interrupt::AtOnce(signal)) => {
                Some(Stop::new(StopKind::Interrupted(signal), "interrupted"))
            }
            // Nobody can interrupt any more.
            Ok(Interrupt::None) | Err(_) => {
                tokio::time::sleep(ASKS_AGAIN).await;
                None
            }
        }
    }

    /// Why somebody has everybody stop who sends a run, if somebody does.
    async fn asked_to_stop(&self, run: &Run) -> Result<Option<Stop>, Error> {
        let now = found(self.adapters.ledger.as_ref(), run.key).await?;
        let why = now.stopped.unwrap_or_else(|| "asked to stop".to_owned());
        Ok(now.stop_requested.then(|| Stop::new(now.stop.unwrap_or(StopKind::Asked), why)))
    }
}

/// Tells where a run stands while others send it.
#[derive(Default)]
struct Teller(Option<Instant>);

impl Teller {
    async fn tell(&mut self, sender: &Sender<'_>, run: &Run) -> Result<(), Error> {
        if self.0.is_some_and(|next| Instant::now() < next) {
            return Ok(());
        }
        let began = Instant::now();
        let counts = Snapshot::read(sender.adapters.ledger.as_ref(), run, true).await?.counts;
        (sender.adapters.observer)(Event::Sending(DeliveryEvent::Settled { counts }));
        // A large run is looked at less often.
        self.0 = Some(Instant::now() + TELLS.max(began.elapsed() * LOOKS));
        Ok(())
    }
}

/// Whether a stop of one process is one of all that send the run: the others may well go on where one is interrupted, has
/// another key or no connection.
pub(super) fn stops_all(kind: StopKind) -> bool {
    matches!(
        kind,
        StopKind::Breaker | StopKind::OffContract | StopKind::Credit | StopKind::Budget | StopKind::Inconsistent
    )
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
        let (ledger, sender) = (self.adapters.ledger.as_ref(), self.sender(terms));
        let before = Snapshot::read(ledger, run, true).await?;
        let (mut ending, mut left) = (Ending::default(), u64::MAX);
        loop {
            let now = Snapshot::read(ledger, run, true).await?;
            let planned = now.counts.get(State::Planned);
            // What was planned again meanwhile is sent too, as long as that comes to something.
            if planned >= left {
                break;
            }
            left = planned;
            let run = self.share_out((run, lease), terms, retry || has_taken(&now.counts)).await?;
            let (next, drawn) = sender.send_shares(&run, (&gateway, hook.as_ref()), retry).await?;
            ending = ending.and(next);
            match drawn {
                Drawn::Through if !ending.expired => {}
                Drawn::Through | Drawn::Stopped => break,
                Drawn::Over => {
                    ending.stopped = Some(Stop::new(StopKind::NotOwner, "another process took the run"));
                    break;
                }
            }
        }
        let run = found(ledger, run.key).await?;
        if let Some(stop) = ending.stopped.as_ref().filter(|stop| !is_lost(stop.kind)) {
            ledger.halt(run.key, stop.kind, stop.reason.clone()).await?;
            self.others_let_go(&run, terms.delivery.timeout + GRACE).await?;
        }
        let now = Snapshot::read(ledger, &run, false).await?;
        let parts = Parts {
            billed: now.parts.billed.saturating_sub(before.parts.billed),
            messages: now.parts.messages.saturating_sub(before.parts.messages),
        };
        let sent = went_out(&now.counts).saturating_sub(went_out(&before.counts));
        Ok(Ending { counts: now.counts, parts, sent, ..ending })
    }

    /// Has others draw shares of a run from now on, on these terms.
    async fn share_out(&self, (run, lease): (&Run, Lease), terms: &SendingTerms, proven: bool) -> Result<Run, Error> {
        let ledger = self.adapters.ledger.as_ref();
        let terms = serde_json::to_string(terms).map_err(|error| Error::Internal(error.to_string()))?;
        match ledger.share_out(lease, terms, proven).await? {
            Ownership::Held => {}
            Ownership::Lost => return Err(Error::Taken { run: run.name() }),
        }
        failpoint::pass("run.shared_out");
        // With the identifiers of its orders, and how it is shared out.
        found(ledger, run.key).await
    }

    /// Waits until nobody has anything of a run that is to stop, for so long at most.
    async fn others_let_go(&self, run: &Run, longest: Duration) -> Result<(), Error> {
        let (ledger, began) = (self.adapters.ledger.as_ref(), Instant::now());
        while began.elapsed() < longest && !ledger.rows_in_hand(run.key).await?.is_empty() {
            tokio::time::sleep(ASKS_AGAIN).await;
        }
        Ok(())
    }
}

/// Whether nothing can be told to others any more.
fn is_lost(kind: StopKind) -> bool {
    matches!(kind, StopKind::Ledger | StopKind::NotOwner)
}

/// How many messages went out or may have.
fn went_out(counts: &StateCounts) -> u64 {
    State::ALL.into_iter().filter(|state| state.has_operation()).map(|state| counts.get(state)).sum()
}
