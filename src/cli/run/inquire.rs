//! What a run asks about its rows in doubt: at its start and at its end, bounded in time.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use std::sync::Arc;

use super::{Start, reach};
use crate::cli::after::{Held, learnt_line};
use crate::cli::exit::Failure;
use crate::cli::runs;
use crate::delivery::{Doubts, Inquest, Interrupt, LONGEST_STAY, Learnt, WAITS};
use crate::domain::Endpoint;
use crate::gateway::Gateway;
use crate::ledger::{Author, Change, NewEvent, Owner, Progress, Run, State};
use crate::manifest::OnInDoubt;
use crate::report::plural;

/// How long a start waits for answers about rows in doubt.
const AT_START: Duration = Duration::from_secs(10);

impl Start<'_> {
    /// Asks at the start of a resumed run, and orders again what its rule says.
    pub(super) async fn inquire_first(&self, run: &Run, owner: Owner, gateway: &dyn Gateway) -> Result<(), Failure> {
        // The sandbox of the start before is gone.
        if self.inputs.campaign.is_rehearsal() {
            return Ok(());
        }
        let inquest = self.inquest(run, owner, gateway);
        let Some((mut doubts, _)) = self.ask(&inquest, &[Duration::ZERO], AT_START).await? else { return Ok(()) };
        if self.inputs.campaign.delivery.on_in_doubt == OnInDoubt::ResendIfNotFound && self.may_resend(run) {
            doubts.rows.retain(|doubt| doubt.not_found);
            self.apply(run, owner, &doubts, |by| Change::SendAgain { by, why: None }).await?;
        }
        Ok(())
    }

    /// Asks about the last finished run if it has rows in doubt; gives it back if it has something to send by that.
    pub(super) async fn ask_finished(&self, runs: &[Run]) -> Result<Option<Run>, Failure> {
        let doubtful = |run: &&Run| run.counts.as_ref().is_some_and(|(counts, _)| counts.get(State::InDoubt) > 0);
        let Some(profile) = &self.inputs.profile else { return Ok(None) };
        let Some(run) = runs.last().filter(doubtful) else { return Ok(None) };
        if !profile.is_loopback() {
            runs::check_host(&self.context.output, self.ledger.as_ref(), profile).await?;
        }
        let gateway = reach(Some(profile), None, (run.endpoint, self.inputs.campaign.delivery.timeout), &self.key)?;
        let held = Held::of(self.context, Arc::clone(&self.ledger), run.clone()).await?;
        let asked = self.inquire_first(&held.run, held.owner, gateway.as_ref()).await;
        held.give_back().await?;
        asked?;
        let now = self.ledger.runs().await?.into_iter().find(|now| now.key == run.key);
        Ok(now.filter(|now| now.progress == Progress::Open))
    }

    /// Asks at the end of a run; tells what was learnt, if anything was asked.
    pub(super) async fn inquire_last(
        &self,
        run: &Run,
        owner: Owner,
        gateway: &dyn Gateway,
    ) -> Result<Option<Learnt>, Failure> {
        let at_once = self.inputs.campaign.is_rehearsal() || self.args.no_wait;
        let waits: &[Duration] = if at_once { &[Duration::ZERO] } else { &WAITS };
        let inquest = self.inquest(run, owner, gateway);
        let Some((doubts, learnt)) = self.ask(&inquest, waits, LONGEST_STAY).await? else { return Ok(None) };
        if self.inputs.campaign.delivery.on_in_doubt == OnInDoubt::AssumeSent {
            self.apply(run, owner, &doubts, |by| Change::AssumedSent { by, why: None }).await?;
        }
        Ok(Some(learnt))
    }

    fn inquest<'i>(&'i self, run: &'i Run, owner: Owner, gateway: &'i dyn Gateway) -> Inquest<'i> {
        let rate = self.inputs.profile.as_ref().and_then(|profile| profile.rate.per_second());
        let account = (run.account.as_str().into(), rate);
        Inquest { ledger: self.ledger.as_ref(), gateway, run, owner, account, clock: Timestamp::now }
    }

    /// Asks after each of the waits as long as there is something to ask; what is left of it, and what was learnt.
    async fn ask(
        &self,
        inquest: &Inquest<'_>,
        waits: &[Duration],
        longest: Duration,
    ) -> Result<Option<(Doubts, Learnt)>, Failure> {
        let standing = runs::standing(inquest.ledger, inquest.run, false).await?;
        if standing.counts.get(State::InDoubt) == 0 {
            return Ok(None);
        }
        let mut doubts = Doubts::read(inquest.ledger, inquest.run, &standing.states, &[State::InDoubt]).await?;
        let rows = plural(doubts.rows.len() as u64, "row");
        self.context.output.note(&format!("asking the gateway about {rows} in doubt; nothing is sent again"));
        let deadline = Instant::now() + longest;
        let mut learnt = Learnt::default();
        for wait in waits {
            if self.interrupted_within(*wait).await || doubts.rows.is_empty() || learnt.lost {
                break;
            }
            let mut interrupt = self.interrupt.clone();
            let asked = tokio::select! {
                asked = inquest.ask(&mut doubts, deadline) => asked?,
                _ = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => break,
            };
            // How often is not how many.
            let Learnt { blind, unclear, .. } = asked;
            learnt = Learnt { asked: learnt.asked.max(asked.asked), blind, unclear, ..learnt.and(asked) };
        }
        self.context.output.note(&learnt_line(&learnt));
        Ok(Some((doubts, learnt)))
    }

    /// Waits, and tells whether a signal came meanwhile or before.
    async fn interrupted_within(&self, wait: Duration) -> bool {
        let mut interrupt = self.interrupt.clone();
        tokio::select! {
            () = sleep(wait) => *self.interrupt.borrow() != Interrupt::None,
            _ = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => true,
        }
    }

    /// Decides about rows as the campaign's own rule says.
    async fn apply(
        &self,
        run: &Run,
        owner: Owner,
        doubts: &Doubts,
        change: impl Fn(Author) -> Change,
    ) -> Result<(), Failure> {
        let rule = format!("on_in_doubt: {}", self.inputs.campaign.delivery.on_in_doubt.name());
        let events: Vec<NewEvent> = doubts
            .rows
            .iter()
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
