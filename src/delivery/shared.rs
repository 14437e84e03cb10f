//! Sending a run together with others: share by share, until nobody has any.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::share_draw::ShareDraw;
use super::snapshot::Snapshot;
use super::start::Ending;
use super::stop::{Stop, StopKind};
use crate::failpoint;
use crate::ledger::{Lease, Ledger, LedgerError, Ownership, Run, RunFilter, Share, State};

/// How long until somebody who waits for what others have asks again.
pub const ASKS_AGAIN: Duration = Duration::from_millis(500);

/// Why a process draws no more shares of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawn {
    /// Everything was drawn, and nobody has any of it.
    Through,
    /// It stopped.
    Stopped,
    /// The run is over, or somebody shared it out anew.
    Over,
}

/// What a process does by itself that sends a run together with others.
pub trait ShareSender: Sync {
    /// Why it cannot go on.
    type Error: From<LedgerError> + Send;

    /// Has the engine send what is drawn of a run that stands so.
    fn send(
        &self,
        run: &Run,
        by: (Lease, &Snapshot),
        shares: ShareDraw,
    ) -> impl Future<Output = Result<Ending, Self::Error>> + Send;

    /// Hears that it takes over so many shares, and how many envelopes are in doubt from here on.
    fn takes_over(&self, run: &Run, shares: usize, doubtful: usize);

    /// Waits a moment for what others have of a run, and gives why it waits no longer.
    fn wait(&self, run: &Run) -> impl Future<Output = Result<Option<Stop>, Self::Error>> + Send;
}

/// A process that sends runs together with others.
pub struct Participant<'p, S> {
    /// The ledger that they have in common.
    pub ledger: &'p Arc<dyn Ledger>,
    /// How people know the process.
    pub by: String,
    /// How many rows it draws at once.
    pub size: u32,
    /// What it does by itself.
    pub sender: &'p S,
}

impl<S: ShareSender> Participant<'_, S> {
    /// Takes part in a run that somebody shared out, until none of it is left for this process; stops it for everybody where
    /// going on would do harm.
    ///
    /// # Errors
    /// When it cannot go on.
    pub async fn take_part(&self, run: &Run) -> Result<(Ending, Drawn), S::Error> {
        let (ending, drawn) = self.send_shares(run, None).await?;
        if let Some(stop) = ending.stopped.as_ref().filter(|stop| stops_all(stop.kind)) {
            self.ledger.halt(run.key, stop.kind, stop.reason.clone()).await?;
        }
        Ok((ending, drawn))
    }

    /// Shares a run out on these terms, sends what this process draws of it, and stays until nobody has any, after a stop for
    /// so long at most; nothing where another process has the run. `proven` tells whether a first rejection says nothing.
    ///
    /// # Errors
    /// When it cannot go on.
    pub async fn lead(
        &self,
        (run, lease): (&Run, Lease),
        terms: &str,
        proven: bool,
        longest: Duration,
    ) -> Result<Option<Ending>, S::Error> {
        let (mut ending, mut left) = (Ending::default(), u64::MAX);
        loop {
            let now = Snapshot::read(self.ledger.as_ref(), run, true).await?;
            let planned = now.counts.get(State::Planned);
            // What was planned again meanwhile is sent too, as long as that comes to something.
            if planned >= left {
                break;
            }
            left = planned;
            let proven = proven || now.has_taken();
            match self.ledger.share_out(lease, terms.to_owned(), proven).await? {
                Ownership::Held => {}
                Ownership::Lost => return Ok(None),
            }
            failpoint::pass("run.shared_out");
            // With the identifiers of its orders, and how it is shared out.
            let run = self.known(run).await?;
            let (next, drawn) = self.send_shares(&run, Some(lease)).await?;
            ending = ending.and(next);
            match drawn {
                Drawn::Through if !ending.expired => {}
                Drawn::Through | Drawn::Stopped => break,
                Drawn::Over => {
                    ending.stopped = Some(Stop::new(StopKind::NotOwner, "another process has taken over the run"));
                    break;
                }
            }
        }
        if let Some(stop) = ending.stopped.as_ref().filter(|stop| !is_lost(stop.kind)) {
            self.ledger.halt(run.key, stop.kind, stop.reason.clone()).await?;
            self.others_let_go(run, longest).await?;
        }
        Ok(Some(ending))
    }

    /// Draws shares of a run and sends them, and waits for what others have: they may leave some. Whoever leads has the whole
    /// run by this right.
    async fn send_shares(&self, run: &Run, leads: Option<Lease>) -> Result<(Ending, Drawn), S::Error> {
        let Self { ledger, by, size, sender } = self;
        let Some(seat) = ledger.take_seat(run, by.clone()).await? else {
            return Ok((Ending::default(), Drawn::Over));
        };
        let seat = Arc::new(seat);
        // What nobody drew since the run was shared out is as it was then.
        let mut snapshot = Snapshot::read(ledger.as_ref(), run, true).await?;
        let (mut ending, mut next) = (Ending::default(), None);
        loop {
            let share = match next.take() {
                Some(share) => share,
                None => ledger.draw_share(&seat, *size, true).await?,
            };
            let shares = match share {
                Share::Fresh(rows) => ShareDraw::from(Arc::clone(ledger), Arc::clone(&seat), rows, *size),
                Share::TakenOver { rows, doubtful } => {
                    sender.takes_over(run, rows.len(), doubtful);
                    failpoint::pass("share.taken_over");
                    snapshot = Snapshot::read(ledger.as_ref(), run, true).await?;
                    ShareDraw::of(Arc::clone(ledger), Arc::clone(&seat), rows)
                }
                Share::InOtherHands => {
                    if let Some(stop) = sender.wait(run).await? {
                        ending.stopped = Some(stop);
                        return Ok((ending, Drawn::Stopped));
                    }
                    // Whoever took it may be gone by now, and then nobody shares it out anew.
                    if let Some(lease) = leads
                        && !self.known(run).await?.is_leased(lease)
                    {
                        return Ok((ending, Drawn::Over));
                    }
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
            ending = ending.and(sender.send(run, (seat.lease, &snapshot), shares.clone()).await?);
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

    /// Why somebody has everybody stop who sends a run, if somebody does.
    async fn asked_to_stop(&self, run: &Run) -> Result<Option<Stop>, S::Error> {
        let now = self.known(run).await?;
        let why = now.stopped.unwrap_or_else(|| "asked to stop".to_owned());
        Ok(now.stop_requested.then(|| Stop::new(now.stop.unwrap_or(StopKind::Asked), why)))
    }

    /// A run as the ledger has it now.
    async fn known(&self, run: &Run) -> Result<Run, S::Error> {
        let known = self.ledger.runs(RunFilter::one(run.key)).await?.pop();
        known.ok_or_else(|| LedgerError::Unreadable(format!("the run {} no longer exists", run.name())).into())
    }

    /// Waits until nobody has anything of a run that is to stop, for so long at most.
    async fn others_let_go(&self, run: &Run, longest: Duration) -> Result<(), S::Error> {
        let began = Instant::now();
        while began.elapsed() < longest && !self.ledger.rows_in_hand(run.key).await?.is_empty() {
            sleep(ASKS_AGAIN).await;
        }
        Ok(())
    }
}

/// Whether a stop of one process is one of all that send the run: the others may well go on where one is interrupted, has
/// another key or no connection.
fn stops_all(kind: StopKind) -> bool {
    matches!(
        kind,
        StopKind::Breaker | StopKind::OffContract | StopKind::Credit | StopKind::Budget | StopKind::Inconsistent
    )
}

/// Whether nothing can be told to others any more.
fn is_lost(kind: StopKind) -> bool {
    matches!(kind, StopKind::Ledger | StopKind::NotOwner)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use tokio::time::timeout;

    use super::*;
    use crate::domain::{Endpoint, OperationKind, Row};
    use crate::ledger::memory::{Contents, MemoryLedger};
    use crate::ledger::{Heed, Hold, LeftOut, NewRun};

    fn clock() -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn new_run() -> NewRun {
        NewRun {
            campaign: "sale".into(),
            edition: String::new(),
            gateway: "main".into(),
            account: "account".into(),
            endpoint: Endpoint::Sync,
            kind: OperationKind::Sms,
            live: true,
            round: 1,
            recipients: 4,
            last_row: Row::new(5),
            file: None,
            left_out: LeftOut::default(),
            heed: Heed::default(),
            began_at: clock(),
            random: 5,
        }
    }

    /// A sender whose run another process takes while it sends.
    struct Overtaken<'o>(&'o dyn Ledger, &'o Hold);

    impl ShareSender for Overtaken<'_> {
        type Error = LedgerError;

        async fn send(&self, run: &Run, _: (Lease, &Snapshot), _: ShareDraw) -> Result<Ending, LedgerError> {
            self.0.claim(self.1, run.key).await?;
            Ok(Ending::default())
        }

        fn takes_over(&self, _: &Run, _: usize, _: usize) {}

        async fn wait(&self, _: &Run) -> Result<Option<Stop>, LedgerError> {
            sleep(ASKS_AGAIN).await;
            Ok(None)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_lost_a_run_does_not_wait_for_who_took_it_and_is_gone() {
        let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new(Contents::default(), clock));
        let run = ledger.create_run(&new_run()).await.unwrap();
        ledger.open_run(run.key, None).await.unwrap();
        let hold = ledger.hold("sale", "account").await.unwrap().expect("nobody has it");
        let lease = ledger.claim(&hold, run.key).await.unwrap().lease;
        let sender = Overtaken(ledger.as_ref(), &hold);
        let participant = Participant { ledger: &ledger, by: "one".into(), size: 2, sender: &sender };
        let led = participant.lead((&run, lease), "", true, Duration::from_secs(1));
        let ending = timeout(Duration::from_secs(3_600), led).await.expect("it ends").unwrap().expect("it had the run");
        assert_eq!(ending.stopped.map(|stop| stop.kind), Some(StopKind::NotOwner));
    }
}
