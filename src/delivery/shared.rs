//! Sending a run together with others: share by share, until nobody has any.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::share_draw::ShareDraw;
use super::snapshot::Snapshot;
use super::start::SendEnding;
use super::stop::{Stop, StopKind};
use crate::failpoint;
use crate::ledger::{Lease, Ledger, LedgerError, Ownership, RowState, Run, RunFilter, ShardDraw};

/// How long until somebody who waits for what others have asks again.
pub const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Why a process draws no more shares of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawEnd {
    /// Everything was drawn, and nobody has any of it.
    Finished,
    /// It stopped.
    Stopped,
    /// The run is over, or somebody shared it out anew.
    RunOver,
}

/// What a process does by itself that sends a run together with others.
pub trait ShareSender: Sync {
    /// Why it cannot go on.
    type Error: From<LedgerError> + Send;

    /// Has the engine send what is drawn of a run that stands so.
    fn send_drawn(
        &self,
        run: &Run,
        by: (Lease, &Snapshot),
        shares: ShareDraw,
    ) -> impl Future<Output = Result<SendEnding, Self::Error>> + Send;

    /// Hears that it takes over so many shares, and how many envelopes are in doubt from here on.
    fn note_takeover(&self, run: &Run, shares: usize, doubtful: usize);

    /// Waits a moment for what others have of a run, and gives why it waits no longer.
    fn wait_for_others(&self, run: &Run) -> impl Future<Output = Result<Option<Stop>, Self::Error>> + Send;
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
    pub async fn take_part(&self, run: &Run) -> Result<(SendEnding, DrawEnd), S::Error> {
        let (ending, drawn) = self.send_shares(run, None).await?;
        if let Some(stop) = ending.stopped.as_ref().filter(|stop| is_stop_for_all(stop.kind)) {
            self.ledger.halt_run(run.key, stop.kind, stop.reason.clone()).await?;
        }
        Ok((ending, drawn))
    }

    /// Shares a run out on these terms, sends what this process draws of it, and stays until nobody has any, after a stop for
    /// so long at most; nothing where another process has the run. `proven` tells whether a first rejection says nothing.
    ///
    /// # Errors
    /// When it cannot go on.
    pub async fn lead_run(
        &self,
        (run, lease): (&Run, Lease),
        terms: &str,
        proven: bool,
        longest: Duration,
    ) -> Result<Option<SendEnding>, S::Error> {
        let (mut ending, mut left) = (SendEnding::default(), u64::MAX);
        loop {
            let now = Snapshot::load(self.ledger.as_ref(), run, true).await?;
            let planned = now.counts.get(RowState::Planned);
            // What was planned again meanwhile is sent too, as long as that comes to something.
            if planned >= left {
                break;
            }
            left = planned;
            let proven = proven || now.has_accepted();
            match self.ledger.shard_run(lease, terms.to_owned(), proven).await? {
                Ownership::Held => {}
                Ownership::Lost => return Ok(None),
            }
            failpoint::pass("run.shared_out");
            // With the identifiers of its orders, and how it is shared out.
            let run = self.reload_run(run).await?;
            let (next, drawn) = self.send_shares(&run, Some(lease)).await?;
            ending = ending.merge(next);
            match drawn {
                DrawEnd::Finished if !ending.expired => {}
                DrawEnd::Finished | DrawEnd::Stopped => break,
                DrawEnd::RunOver => {
                    ending.stopped = Some(Stop::new(StopKind::LeaseLost, "another process has taken over the run"));
                    break;
                }
            }
        }
        if let Some(stop) = ending.stopped.as_ref().filter(|stop| !is_ledger_lost(stop.kind)) {
            self.ledger.halt_run(run.key, stop.kind, stop.reason.clone()).await?;
            self.wait_until_released(run, longest).await?;
        }
        Ok(Some(ending))
    }

    /// Draws shares of a run and sends them, and waits for what others have: they may leave some. Whoever leads has the whole
    /// run by this right.
    async fn send_shares(&self, run: &Run, leads: Option<Lease>) -> Result<(SendEnding, DrawEnd), S::Error> {
        let Self { ledger, by, size, sender } = self;
        let Some(seat) = ledger.register_worker(run, by.clone()).await? else {
            return Ok((SendEnding::default(), DrawEnd::RunOver));
        };
        let seat = Arc::new(seat);
        // What nobody drew since the run was shared out is as it was then.
        let mut snapshot = Snapshot::load(ledger.as_ref(), run, true).await?;
        let (mut ending, mut next) = (SendEnding::default(), None);
        loop {
            let share = match next.take() {
                Some(share) => share,
                None => ledger.draw_shard(&seat, *size, true).await?,
            };
            let shares = match share {
                ShardDraw::NewRows(rows) => ShareDraw::draw_from(Arc::clone(ledger), Arc::clone(&seat), rows, *size),
                ShardDraw::TakenOver { rows, doubtful } => {
                    sender.note_takeover(run, rows.len(), doubtful);
                    failpoint::pass("share.taken_over");
                    snapshot = Snapshot::load(ledger.as_ref(), run, true).await?;
                    ShareDraw::fixed(Arc::clone(ledger), Arc::clone(&seat), rows)
                }
                ShardDraw::Unavailable => {
                    if let Some(stop) = sender.wait_for_others(run).await? {
                        ending.stopped = Some(stop);
                        return Ok((ending, DrawEnd::Stopped));
                    }
                    // Whoever took it may be gone by now, and then nobody shares it out anew.
                    if let Some(lease) = leads
                        && !self.reload_run(run).await?.is_leased(lease)
                    {
                        return Ok((ending, DrawEnd::RunOver));
                    }
                    continue;
                }
                ShardDraw::Exhausted => return Ok((ending, DrawEnd::Finished)),
                ShardDraw::Ended => {
                    ending.stopped = self.find_stop_request(run).await?;
                    let drawn = if ending.stopped.is_some() { DrawEnd::Stopped } else { DrawEnd::RunOver };
                    return Ok((ending, drawn));
                }
            };
            failpoint::pass("share.drawn");
            ending = ending.merge(sender.send_drawn(run, (seat.lease, &snapshot), shares.clone()).await?);
            snapshot.counts = ending.counts.clone();
            if let Some(stop) = &ending.stopped {
                if stop.kind == StopKind::StopRequested {
                    ending.stopped = self.find_stop_request(run).await?.or(ending.stopped);
                }
                return Ok((ending, DrawEnd::Stopped));
            }
            next = shares.take_last_share();
            if !matches!(next, Some(ShardDraw::NewRows(_) | ShardDraw::TakenOver { .. })) {
                ledger.finish_shards(&seat).await?;
            }
        }
    }

    /// Why somebody has everybody stop who sends a run, if somebody does.
    async fn find_stop_request(&self, run: &Run) -> Result<Option<Stop>, S::Error> {
        let now = self.reload_run(run).await?;
        let why = now.stop_reason.unwrap_or_else(|| "asked to stop".to_owned());
        Ok(now.stop_requested.then(|| Stop::new(now.stop.unwrap_or(StopKind::StopRequested), why)))
    }

    /// A run as the ledger has it now.
    async fn reload_run(&self, run: &Run) -> Result<Run, S::Error> {
        let known = self.ledger.list_runs(RunFilter::with_key(run.key)).await?.pop();
        known.ok_or_else(|| LedgerError::Unreadable(format!("the run {} no longer exists", run.name())).into())
    }

    /// Waits until nobody has anything of a run that is to stop, for so long at most.
    async fn wait_until_released(&self, run: &Run, longest: Duration) -> Result<(), S::Error> {
        let began = Instant::now();
        while began.elapsed() < longest && !self.ledger.load_claimed_rows(run.key).await?.is_empty() {
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

/// Whether a stop of one process is one of all that send the run: the others may well go on where one is interrupted, has
/// another key or no connection.
fn is_stop_for_all(kind: StopKind) -> bool {
    matches!(
        kind,
        StopKind::Breaker | StopKind::OffContract | StopKind::Credit | StopKind::Budget | StopKind::Inconsistent
    )
}

/// Whether nothing can be told to others any more.
fn is_ledger_lost(kind: StopKind) -> bool {
    matches!(kind, StopKind::Ledger | StopKind::LeaseLost)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use tokio::time::timeout;

    use super::*;
    use crate::domain::{Endpoint, OperationKind, Row};
    use crate::ledger::memory::{LedgerContents, MemoryLedger};
    use crate::ledger::{CampaignLock, ExcludedRows, NewRun, SuppressionPolicy};

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
            excluded: ExcludedRows::default(),
            suppression: SuppressionPolicy::default(),
            began_at: clock(),
            random: 5,
        }
    }

    /// A sender whose run another process takes while it sends.
    struct OvertakenSender<'o>(&'o dyn Ledger, &'o CampaignLock);

    impl ShareSender for OvertakenSender<'_> {
        type Error = LedgerError;

        async fn send_drawn(&self, run: &Run, _: (Lease, &Snapshot), _: ShareDraw) -> Result<SendEnding, LedgerError> {
            self.0.claim_run(self.1, run.key).await?;
            Ok(SendEnding::default())
        }

        fn note_takeover(&self, _: &Run, _: usize, _: usize) {}

        async fn wait_for_others(&self, _: &Run) -> Result<Option<Stop>, LedgerError> {
            sleep(POLL_INTERVAL).await;
            Ok(None)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn process_that_lost_its_run_does_not_wait_for_others() {
        let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new(LedgerContents::default(), clock));
        let run = ledger.create_run(&new_run()).await.unwrap();
        ledger.open_run(run.key, None).await.unwrap();
        let hold = ledger.acquire_campaign_lock("sale", "account").await.unwrap().expect("nobody has it");
        let lease = ledger.claim_run(&hold, run.key).await.unwrap().lease;
        let sender = OvertakenSender(ledger.as_ref(), &hold);
        let participant = Participant { ledger: &ledger, by: "one".into(), size: 2, sender: &sender };
        let led = participant.lead_run((&run, lease), "", true, Duration::from_secs(1));
        let ending = timeout(Duration::from_secs(3_600), led).await.expect("it ends").unwrap().expect("it had the run");
        assert_eq!(ending.stopped.map(|stop| stop.kind), Some(StopKind::LeaseLost));
    }
}
