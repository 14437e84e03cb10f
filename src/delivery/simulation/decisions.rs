//! What is asked about rows in doubt, and what the campaign's rule and a person decide about them.

use std::time::Duration;

use tokio::time::Instant;

use super::chance::Chance;
use super::ledger::ProcessLedger;
use super::life::wall;
use super::line::Line;
use super::mistake::Mistake;
use super::plan::Decision;
use super::sighting::Sighting;
use super::story::{World, look};
use crate::delivery::{ChainTimes, Doubt, Doubts, Fate, Pending, Poller, Reconciler, Snapshot};
use crate::domain::Row;
use crate::ledger::{
    Allowance, Author, Change, Lease, Ledger, LedgerError, NewRowEvent, RetriedRow, RetryOrder, Run, State,
};

impl World {
    /// Asks about rows in doubt, and applies the campaign's rule to those that were not found.
    pub(super) async fn reconcile(&self, ledger: &ProcessLedger, line: &Line, lease: Lease, wanted: &[State]) {
        let began = wall();
        let Some((run, snapshot)) = look(ledger, false).await else { return };
        let Ok(mut doubts) = Doubts::read(ledger, &run, &snapshot.states, wanted).await else { return };
        self.nothing_proven_is_asked(began, run.key, &doubts);
        if doubts.rows.is_empty() {
            return;
        }
        let account = Allowance::new(run.account.as_str(), self.plan.account_rate);
        let reconciler =
            Reconciler { ledger, gateway: line, run: &run, lease, account, most: self.plan.batch, clock: wall };
        let Ok(learnt) = reconciler.ask(&mut doubts, Instant::now() + Duration::from_secs(600)).await else { return };
        self.saw(Sighting::Found, learnt.found);
        self.saw(Sighting::Unresolved, learnt.unresolved);
        let hasty = self.mistake == Some(Mistake::OneDenialIsEnough);
        if self.plan.resend_if_not_found || hasty {
            let denied = |answer: &str| answer.starts_with("no such message");
            doubts.rows.retain(|doubt| {
                doubt.not_found || (hasty && doubt.question.as_ref().is_some_and(|asked| denied(&asked.answer)))
            });
            self.saw(Sighting::ResentByRule, doubts.rows.len() as u64);
            let by = Author::Policy("on_in_doubt: resend_if_not_found".into());
            let again = Change::SendAgain { by, why: None };
            let events = doubts.rows.iter().map(|doubt| event(doubt.row, doubt.envelope, &again)).collect();
            let _ = ledger.record(lease, events).await;
        }
    }

    /// What a person decides in the end about rows in doubt and rows that were refused.
    pub(super) async fn decide(&self) {
        self.decide_on(self.plan.decision, self.plan.retry_rejected).await;
    }

    /// A message that was in doubt, sent again and refused is in doubt still; a person leaves it at that.
    pub(super) async fn give_up(&self) {
        self.decide_on(Decision::NotSent, false).await;
    }

    async fn decide_on(&self, decision: Decision, retry_rejected: bool) {
        let ledger = self.ledger(&self.immortal());
        let Some(lease) = self.take(ledger.as_ref()).await else { return };
        let Some((run, snapshot)) = look(ledger.as_ref(), false).await else { return };
        let wanted = [State::InDoubt, State::Unresolved];
        let Ok(doubts) = Doubts::read(ledger.as_ref(), &run, &snapshot.states, &wanted).await else { return };
        let rows: Vec<(Row, u32)> = doubts.rows.iter().map(|doubt| (doubt.row, doubt.envelope)).collect();
        let (by, why) = (Author::Person("olena".into()), None);
        let (change, more, seen) = match decision {
            Decision::AssumeSent => (Change::AssumedSent { by: by.clone(), why }, 0, Sighting::CountedAsSent),
            Decision::NotSent => (Change::NotSent { by: by.clone(), why }, 0, Sighting::CountedAsNotSent),
            Decision::NotSentThenRetry => (Change::NotSent { by: by.clone(), why }, 1, Sighting::CountedAsNotSent),
            Decision::SendAgain => (Change::SendAgain { by: by.clone(), why }, 1, Sighting::SentAgain),
        };
        if decision != Decision::AssumeSent {
            rows.iter().for_each(|(row, _)| self.judge.accepted(*row, more));
        }
        if matches!(decision, Decision::NotSent | Decision::NotSentThenRetry) {
            rows.iter().for_each(|(row, _)| self.judge.decided(*row));
        }
        self.saw(seen, rows.len() as u64);
        let events = rows.iter().map(|(row, envelope)| event(*row, *envelope, &change)).collect();
        let _ = ledger.record(lease, events).await;
        let mut again = if decision == Decision::NotSentThenRetry { rows } else { Vec::new() };
        if retry_rejected {
            let refused = [State::Rejected, State::Failed];
            let Ok(refused) = Doubts::read(ledger.as_ref(), &run, &snapshot.states, &refused).await else { return };
            let Ok(refused) = self.confirmed(&run, &snapshot, refused.rows).await else { return };
            again.extend(refused.iter().map(|doubt| (doubt.row, doubt.envelope)));
        }
        if !again.is_empty() {
            self.saw(Sighting::Retried, again.len() as u64);
            let random = self.chance(Chance::bits);
            let rows = again.into_iter().map(|(row, envelope)| RetriedRow { row, envelope }).collect();
            let _ = ledger.retry(lease, RetryOrder { rows, by, random }).await;
        }
    }
}

impl World {
    /// Those of the refused messages that the platform confirms to have failed; what has one channel needs no confirmation.
    async fn confirmed(&self, run: &Run, snapshot: &Snapshot, refused: Vec<Doubt>) -> Result<Vec<Doubt>, LedgerError> {
        let seems_failed =
            |doubt: &Doubt| doubt.chain.has_fallback() && snapshot.states.recorded(doubt.row) == Some(State::Failed);
        if self.mistake == Some(Mistake::RetryUnasked) {
            return Ok(refused);
        }
        let (asked, mut again): (Vec<Doubt>, Vec<Doubt>) = refused.into_iter().partition(seems_failed);
        let life = self.immortal();
        let (ledger, line) = (self.ledger(&life), self.line(0, &life));
        let account = Allowance::new(run.account.as_str(), self.plan.account_rate);
        let (ledger, gateway, most) = (ledger.as_ref(), line.as_ref(), self.plan.batch);
        let poller = Poller { ledger, gateway, run, account, most, clock: wall };
        let message = |doubt: &Doubt| {
            let order = run.message_of(doubt.id).and_then(|(_, order)| order);
            Pending::new((doubt.row, order, doubt.id), (doubt.chain, doubt.since), &ChainTimes::default())
        };
        let messages: Vec<Pending> = asked.iter().map(message).collect();
        let fates = poller.ask_before_retry(&messages, Instant::now() + Duration::from_secs(600)).await?;
        let left_out = fates.iter().filter(|fate| matches!(fate, Fate::Delivered | Fate::UnderWay)).count();
        self.saw(Sighting::RetryLeftOut, left_out as u64);
        let confirmed = asked.into_iter().zip(fates).filter(|(_, fate)| *fate == Fate::Failed);
        again.extend(confirmed.map(|(doubt, _)| doubt));
        Ok(again)
    }
}

fn event(row: Row, envelope: u32, change: &Change) -> NewRowEvent {
    NewRowEvent { row, envelope, change: change.clone() }
}
