//! Decisions about rows in doubt: by inquiry to the platform, by the campaign's rule, or by a person.

use std::time::Duration;

use tokio::time::Instant;

use super::judge::Sighting;
use super::ledger::ProcessLedger;
use super::mistakes::Mistake;
use super::plan::{FinalDecision, SimulationRandom};
use super::platform::SimulatedGateway;
use super::process::wall_now;
use super::world::{SimulatedWorld, load_run};
use crate::delivery::{
    ChainLifetimes, ConfirmedStatus, MessageInDoubt, MessagesInDoubt, PendingMessage, Reconciler, Snapshot,
    StatusPoller,
};
use campaign_core::domain::Row;
use campaign_ledger::{
    Allowance, Author, Lease, Ledger, LedgerError, NewRowEvent, RetriedRow, RetryOrder, RowChange, RowState, RowUpdate,
    Run,
};

impl SimulatedWorld {
    /// Asks about rows in doubt, and applies the campaign's rule to rows that were not found.
    pub(super) async fn reconcile(
        &self,
        ledger: &ProcessLedger,
        gateway: &SimulatedGateway,
        lease: Lease,
        states: &[RowState],
    ) {
        let began = wall_now();
        let Some((run, snapshot)) = load_run(ledger, false).await else { return };
        let Ok(mut doubts) = MessagesInDoubt::load(ledger, &run, &snapshot.states, states).await else { return };
        self.check_no_proven_row_is_asked(began, run.key, &doubts);
        if doubts.rows.is_empty() {
            return;
        }
        let allowance = Allowance::new(run.account.as_str(), self.plan.account_rate);
        let reconciler =
            Reconciler { ledger, gateway, run: &run, lease, allowance, max_batch: self.plan.batch, clock: wall_now };
        let Ok(reconciliation) = reconciler.ask_rows(&mut doubts, Instant::now() + Duration::from_secs(600)).await
        else {
            return;
        };
        self.record_sighting(Sighting::Found, reconciliation.found);
        self.record_sighting(Sighting::Unresolved, reconciliation.unresolved);
        let trusts_one_denial = self.mistake == Some(Mistake::OneDenialIsEnough);
        if self.plan.resend_if_not_found || trusts_one_denial {
            let is_denial = |answer: &str| answer.starts_with("no such message");
            doubts.rows.retain(|doubt| {
                let is_denied = || doubt.history.as_ref().is_some_and(|history| is_denial(&history.answer));
                doubt.not_found || (trusts_one_denial && is_denied())
            });
            self.record_sighting(Sighting::ResentByRule, doubts.rows.len() as u64);
            let by = Author::Policy("on_in_doubt: resend_if_not_found".into());
            let change = RowChange::SendAgain { by, why: None };
            let events = doubts.rows.iter().map(|doubt| row_event(doubt.row, doubt.envelope, &change)).collect();
            let _ = ledger.update_rows(lease, RowUpdate::Events(events)).await;
        }
    }

    /// Makes a person's final decision about rows in doubt and rejected rows.
    pub(super) async fn decide_at_end(&self) {
        self.apply_decision(self.plan.decision, self.plan.retry_rejected).await;
    }

    /// Decides that messages that are still in doubt were not sent. A message that was resent and rejected stays in
    /// doubt until a person decides.
    pub(super) async fn decide_remaining_doubt(&self) {
        self.apply_decision(FinalDecision::NotSent, false).await;
    }

    async fn apply_decision(&self, decision: FinalDecision, retry_rejected: bool) {
        let ledger = self.process_ledger(&self.immortal_life());
        let Some(lease) = self.claim_current_run(ledger.as_ref()).await else { return };
        let Some((run, snapshot)) = load_run(ledger.as_ref(), false).await else { return };
        let undecided_states = [RowState::InDoubt, RowState::Unresolved];
        let Ok(doubts) = MessagesInDoubt::load(ledger.as_ref(), &run, &snapshot.states, &undecided_states).await else {
            return;
        };
        let rows: Vec<(Row, u32)> = doubts.rows.iter().map(|doubt| (doubt.row, doubt.envelope)).collect();
        let (by, why) = (Author::Person("olena".into()), None);
        let (change, allowed, sighting) = match decision {
            FinalDecision::AssumeSent => (RowChange::AssumedSent { by: by.clone(), why }, 0, Sighting::CountedAsSent),
            FinalDecision::NotSent => (RowChange::NotSent { by: by.clone(), why }, 0, Sighting::CountedAsNotSent),
            FinalDecision::NotSentThenRetry => {
                (RowChange::NotSent { by: by.clone(), why }, 1, Sighting::CountedAsNotSent)
            }
            FinalDecision::SendAgain => (RowChange::SendAgain { by: by.clone(), why }, 1, Sighting::SentAgain),
        };
        if decision != FinalDecision::AssumeSent {
            rows.iter().for_each(|(row, _)| self.judge.allow_more(*row, allowed));
        }
        if matches!(decision, FinalDecision::NotSent | FinalDecision::NotSentThenRetry) {
            rows.iter().for_each(|(row, _)| self.judge.note_decision(*row));
        }
        self.record_sighting(sighting, rows.len() as u64);
        let events = rows.iter().map(|(row, envelope)| row_event(*row, *envelope, &change)).collect();
        let _ = ledger.update_rows(lease, RowUpdate::Events(events)).await;
        let mut to_retry = if decision == FinalDecision::NotSentThenRetry { rows } else { Vec::new() };
        if retry_rejected {
            let rejected = [RowState::Rejected, RowState::Failed];
            let Ok(rejected) = MessagesInDoubt::load(ledger.as_ref(), &run, &snapshot.states, &rejected).await else {
                return;
            };
            let Ok(rejected) = self.select_retryable(&run, &snapshot, rejected.rows).await else { return };
            to_retry.extend(rejected.iter().map(|doubt| (doubt.row, doubt.envelope)));
        }
        if !to_retry.is_empty() {
            self.record_sighting(Sighting::Retried, to_retry.len() as u64);
            let random = self.with_random(SimulationRandom::next_bits);
            let rows = to_retry.into_iter().map(|(row, envelope)| RetriedRow { row, envelope }).collect();
            let _ = ledger.update_rows(lease, RowUpdate::Retry(RetryOrder { rows, by, random })).await;
        }
    }
}

impl SimulatedWorld {
    /// Selects the messages that can be retried. A failed message with a fallback can be retried only if the platform
    /// confirms the failure. Other messages need no confirmation.
    async fn select_retryable(
        &self,
        run: &Run,
        snapshot: &Snapshot,
        candidates: Vec<MessageInDoubt>,
    ) -> Result<Vec<MessageInDoubt>, LedgerError> {
        let needs_confirmation = |doubt: &MessageInDoubt| {
            doubt.chain.has_fallback() && snapshot.states.recorded_state(doubt.row) == Some(RowState::Failed)
        };
        if self.mistake == Some(Mistake::RetryWithoutInquiry) {
            return Ok(candidates);
        }
        let (failed_messages, mut to_retry): (Vec<MessageInDoubt>, Vec<MessageInDoubt>) =
            candidates.into_iter().partition(needs_confirmation);
        let life = self.immortal_life();
        let (ledger, gateway) = (self.process_ledger(&life), self.simulated_gateway(0, &life));
        let allowance = Allowance::new(run.account.as_str(), self.plan.account_rate);
        let (ledger, gateway, max_batch) = (ledger.as_ref(), gateway.as_ref(), self.plan.batch);
        let poller = StatusPoller { ledger, gateway, run, allowance, max_batch, clock: wall_now };
        let to_pending = |doubt: &MessageInDoubt| {
            let order = run.find_message(doubt.id).and_then(|(_, order)| order);
            PendingMessage::new(doubt.row, order, doubt.id, doubt.chain, doubt.since, &ChainLifetimes::default())
        };
        let messages: Vec<PendingMessage> = failed_messages.iter().map(to_pending).collect();
        let statuses = poller.ask_before_retry(&messages, Instant::now() + Duration::from_secs(600)).await?;
        let skipped = statuses
            .iter()
            .filter(|status| matches!(status, ConfirmedStatus::Delivered | ConfirmedStatus::InProgress))
            .count();
        self.record_sighting(Sighting::RetrySkipped, skipped as u64);
        let confirmed =
            failed_messages.into_iter().zip(statuses).filter(|(_, status)| *status == ConfirmedStatus::Failed);
        to_retry.extend(confirmed.map(|(doubt, _)| doubt));
        Ok(to_retry)
    }
}

fn row_event(row: Row, envelope: u32, change: &RowChange) -> NewRowEvent {
    NewRowEvent { row, envelope, change: change.clone() }
}
