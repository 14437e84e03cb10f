//! What a run asks about its rows in doubt: at its start and at its end, bounded in time.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::{Platform, Start};
use crate::cli::after::{Held, learnt_line};
use crate::cli::exit::Failure;
use crate::cli::runs;
use crate::delivery::{Doubt, Doubts, Interrupt, LONGEST_STAY, Reconciler, Reconciliation, RunFolder, WAITS};
use crate::domain::Endpoint;
use crate::gateway::Gateway;
use crate::ledger::{Allowance, Author, Change, NewEvent, Owner, Progress, Run, State};
use crate::manifest::{Destination, OnInDoubt};
use crate::report::plural;

/// How long a start waits for answers about rows in doubt.
const AT_START: Duration = Duration::from_secs(10);

/// The rows in doubt that are left after asking.
#[derive(Default)]
pub(super) struct Asked {
    doubts: Doubts,
    /// The signal that ended the asking before its time.
    pub(super) interrupted: Option<u8>,
}

impl Start<'_> {
    /// Asks at the start of a resumed run, and orders again what its rule says.
    pub(super) async fn inquire_first(&self, run: &Run, owner: Owner, gateway: &dyn Gateway) -> Result<(), Failure> {
        // The sandbox of the start before is gone.
        if !self.inputs.destination.is_live() {
            return Ok(());
        }
        let asked = self.ask(&self.reconciler(run, owner, gateway), &[Duration::ZERO], AT_START).await?;
        if self.inputs.campaign.delivery.on_in_doubt == OnInDoubt::ResendIfNotFound && self.may_resend(run) {
            let rows = asked.doubts.rows.iter().filter(|doubt| doubt.not_found);
            self.apply(run, owner, rows, |by| Change::SendAgain { by, why: None }).await?;
        }
        Ok(())
    }

    /// Asks about the last finished run if it has rows in doubt; gives it back if it has something to send by that.
    ///
    /// Of a run whose campaign, texts or list changed since nothing is ordered: it could not go on.
    pub(super) async fn ask_finished(&self, runs: &[Run]) -> Result<Option<Run>, Failure> {
        let doubtful = |run: &&Run| run.counts.as_ref().is_some_and(|(counts, _)| counts.get(State::InDoubt) > 0);
        let Destination::Live(profile) = &self.inputs.destination else { return Ok(None) };
        let Some(run) = runs.last().filter(doubtful) else { return Ok(None) };
        runs::check_host(&self.context.output, self.ledger.as_ref(), profile).await?;
        let platform = Platform::Gateway(profile, self.key.clone());
        let gateway = platform.client(run.endpoint, self.inputs.campaign.delivery.timeout)?;
        let unchanged = self.changes(&RunFolder::of(&self.state, &run.name())).await?.is_empty();
        let held = Held::of(self.context, Arc::clone(&self.ledger), run.clone()).await?;
        let asked = if unchanged {
            self.inquire_first(&held.run, held.owner, gateway.as_ref()).await
        } else {
            let reconciler = self.reconciler(&held.run, held.owner, gateway.as_ref());
            self.ask(&reconciler, &[Duration::ZERO], AT_START).await.map(drop)
        };
        let given = held.give_back().await?;
        if let Some(unwritten) = given.unwritten {
            self.context.output.note(&unwritten);
        }
        asked?;
        let now = self.ledger.runs().await?.into_iter().find(|now| now.key == run.key);
        Ok(now.filter(|now| now.progress == Progress::Open))
    }

    /// Asks at the end of a run. Its rule decides only when everything was asked that there was time for.
    pub(super) async fn inquire_last(&self, run: &Run, owner: Owner, gateway: &dyn Gateway) -> Result<Asked, Failure> {
        let at_once = !self.inputs.destination.is_live() || self.args.no_wait;
        let waits: &[Duration] = if at_once { &[Duration::ZERO] } else { &WAITS };
        let asked = self.ask(&self.reconciler(run, owner, gateway), waits, LONGEST_STAY).await?;
        if self.inputs.campaign.delivery.on_in_doubt == OnInDoubt::AssumeSent && asked.interrupted.is_none() {
            let rows = asked.doubts.rows.iter();
            self.apply(run, owner, rows, |by| Change::AssumedSent { by, why: None }).await?;
        }
        Ok(asked)
    }

    fn reconciler<'i>(&'i self, run: &'i Run, owner: Owner, gateway: &'i dyn Gateway) -> Reconciler<'i> {
        let destination = &self.inputs.destination;
        let account = Allowance::new(run.account.as_str(), destination.rate().per_second());
        let most = destination.largest_envelope();
        Reconciler { ledger: self.ledger.as_ref(), gateway, run, owner, account, most, clock: Timestamp::now }
    }

    /// Asks after each of the waits as long as there is something to ask.
    async fn ask(&self, reconciler: &Reconciler<'_>, waits: &[Duration], longest: Duration) -> Result<Asked, Failure> {
        let snapshot = runs::snapshot(reconciler.ledger, reconciler.run, false).await?;
        if snapshot.counts.get(State::InDoubt) == 0 {
            return Ok(Asked::default());
        }
        let mut doubts = Doubts::read(reconciler.ledger, reconciler.run, &snapshot.states, &[State::InDoubt]).await?;
        let rows = plural(doubts.rows.len() as u64, "row");
        self.context.output.note(&format!("asking the gateway about {rows} in doubt; nothing is sent again"));
        let deadline = Instant::now() + longest;
        let mut learnt = Reconciliation::default();
        for wait in waits {
            if doubts.rows.is_empty() || learnt.lost {
                break;
            }
            let asked = tokio::select! {
                biased;
                signal = self.signal() => return Ok(Asked { doubts, interrupted: Some(signal) }),
                asked = async { sleep(*wait).await; reconciler.ask(&mut doubts, deadline).await } => asked?,
            };
            // How often is not how many.
            let Reconciliation { blind, unclear, .. } = asked;
            learnt = Reconciliation { asked: learnt.asked.max(asked.asked), blind, unclear, ..learnt.and(asked) };
        }
        self.context.output.note(&learnt_line(&learnt));
        Ok(Asked { doubts, interrupted: None })
    }

    /// Waits for a signal, which may have come before.
    async fn signal(&self) -> u8 {
        let mut interrupt = self.interrupt.clone();
        let signal = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None).await.map(|signal| *signal);
        match signal {
            Ok(Interrupt::Gently(signal) | Interrupt::AtOnce(signal)) => signal,
            Ok(Interrupt::None) | Err(_) => std::future::pending().await,
        }
    }

    /// Decides about rows as the campaign's own rule says.
    async fn apply(
        &self,
        run: &Run,
        owner: Owner,
        doubts: impl Iterator<Item = &Doubt>,
        change: impl Fn(Author) -> Change,
    ) -> Result<(), Failure> {
        let rule = format!("on_in_doubt: {}", self.inputs.campaign.delivery.on_in_doubt.name());
        let events: Vec<NewEvent> = doubts
            .map(|doubt| NewEvent {
                row: doubt.row,
                envelope: doubt.envelope,
                change: change(Author::Policy(rule.clone())),
            })
            .collect();
        self.ledger.record(run.key, owner, events).await?;
        Ok(())
    }

    /// Whether a row that was not found may be sent again: a second code or call harms, and a queue may only be slow.
    fn may_resend(&self, run: &Run) -> bool {
        // What a newer run took the place of is not opened again.
        let open = run.progress != Progress::Replaced;
        open && run.endpoint == Endpoint::Sync && self.inputs.campaign.brief.content.may_repeat()
    }
}
