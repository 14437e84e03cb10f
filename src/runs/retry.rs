//! Sending rows of a run again that were rejected, not sent or failed, as new messages with identifiers of their own.

use std::collections::BTreeMap;

use roaring::{RoaringBitmap, RoaringTreemap};

use super::find::found;
use super::launch::{Preparation, RetryScope, RunToSend, Session};
use super::{Error, Event, check_host, person};
use crate::delivery::{SingleKind, Snapshot};
use crate::domain::{Outcome, Phone, Row, Status};
use crate::failpoint;
use crate::ledger::{
    Activity, Attempt, Author, Change, NumberSet, Ownership, Progress, ReceiptWalk, RetriedRow, RetryOrder, Run,
    RunFilter, RunId, State, Walk,
};

/// A row that can be sent again: the attempt that was refused, its number, and the gateway's words.
struct RefusedRow {
    row: Row,
    attempt: Attempt,
    phone: Phone,
    /// What the row came to.
    state: State,
    /// The status by which it failed; "" where it was refused at once.
    status: String,
    error: String,
}

impl RefusedRow {
    /// Whether it is in one of these states. What was queued and refused at intake was rejected, although it failed by a
    /// status that came later (contract, notes on the asynchronous endpoint); what was accepted went out.
    fn is_in(&self, states: &[State]) -> bool {
        let is_refusal = self.state == State::Failed && self.status == Status::Rejected.name();
        let at_intake = is_refusal && self.attempt.state != State::Accepted;
        states.contains(&self.state) || at_intake && states.contains(&State::Rejected)
    }

    /// Whether these words are in its error.
    fn says(&self, error: Option<&str>) -> bool {
        error.is_none_or(|error| self.error.to_lowercase().contains(&error.to_lowercase()))
    }
}

/// The status with which the gateway refused what it had queued, or what was in doubt.
fn refused_by_status(snapshot: &Snapshot, row: Row, envelope: u32) -> String {
    let about = snapshot.states.events().of(row).iter().rev().filter(|event| event.envelope == envelope);
    let mut statuses = about.filter_map(|event| match &event.change {
        Change::Found { status, .. } => Some(status.clone()),
        _ => None,
    });
    statuses.next().unwrap_or_default()
}

impl Session {
    /// Orders that rows of a run go out again as new messages, and selects the run.
    pub(super) async fn prepare_retry(&self, scope: &RetryScope) -> Result<Preparation, Error> {
        let ledger = self.adapters.ledger.as_ref();
        let run = found(ledger, scope.run).await?;
        let runs = ledger.runs(RunFilter::of_campaign(&run.campaign)).await?;
        self.refuse_retry(&run, &runs)?;
        let hold = self.hold_of(&run).await?;
        let changes = self.changes(&run).await?.what;
        if !changes.is_empty() {
            return Err(Error::RetryChanged { run: run.name(), changes });
        }
        let snapshot = Snapshot::read(ledger, &run, false).await?;
        let refused = self.refused(&run, &snapshot).await?.into_iter().filter(|row| row.says(scope.error.as_deref()));
        let (rows, others): (Vec<RefusedRow>, Vec<RefusedRow>) = refused.partition(|row| row.is_in(&scope.states));
        let mut guarded = self.has_message_elsewhere(&run, &runs).await?;
        guarded |= NumberSet::new(self.suppressed().await?, None);
        let (guarded, rows): (Vec<RefusedRow>, Vec<RefusedRow>) =
            rows.into_iter().partition(|row| guarded.contains(row.phone));
        if rows.is_empty() {
            let (error, guarded) = (scope.error.clone(), guarded.len() as u64);
            let failed = others.iter().filter(|row| row.state == State::Failed).count() as u64;
            return Err(Error::NothingToRetry { run: run.name(), failed, error, guarded });
        }
        let number = rows.len() as u64;
        self.refuse_restored_retry(&run, number).await?;
        self.refuse_unapproved_retry(&run, number).await?;
        if let Some(profile) = self.inputs().destination.remote() {
            check_host(ledger, profile).await?;
            let cost = match self.consent.can_come() {
                true => {
                    let again: RoaringBitmap = rows.iter().map(|refused| refused.row.get()).collect();
                    Some(self.cost_among(profile, &run, |_| Ok(again)).await?)
                }
                false => None,
            };
            self.agree_to_go_on((self.consent.as_ref(), profile), (&run, &snapshot), number, cost).await?;
        }
        let lease = ledger.claim(&hold, run.key).await?.lease;
        let order = RetryOrder {
            rows: rows
                .iter()
                .map(|refused| RetriedRow { row: refused.row, envelope: refused.attempt.envelope })
                .collect(),
            by: Author::Person(person()),
            random: rand::random(),
        };
        if ledger.retry(lease, order).await? == Ownership::Lost {
            return Err(Error::Taken { run: run.name() });
        }
        failpoint::pass("retry.ordered");
        (self.adapters.observer)(Event::Retrying { run: run.name(), rows: number });
        // With the identifiers that the order reserved.
        let run = found(ledger, scope.run).await?;
        Ok(Preparation::Send(Box::new(RunToSend {
            suppressed: RoaringTreemap::new(),
            run,
            snapshot: None,
            hold,
            limit: self.launch.request.limit,
            retry: true,
            earlier_edition: false,
            before: None,
        })))
    }

    /// Why nothing of a run can be sent again now.
    fn refuse_retry(&self, run: &Run, runs: &[Run]) -> Result<(), Error> {
        if SingleKind::of(run).is_some() {
            return Err(Error::SingleRun { run: run.name() });
        }
        match run.progress {
            Progress::Replaced => return Err(Error::Replaced { run: run.name() }),
            Progress::Cancelled => return Err(Error::Cancelled { run: run.name() }),
            Progress::Open | Progress::Finished => {}
        }
        let same = |other: &&Run| other.live == run.live && other.went_through(&run.gateway, &run.account);
        match runs.iter().filter(same).find(|other| other.progress == Progress::Open) {
            Some(open) => {
                let campaign = &self.inputs().campaign;
                let (file, gateway) = (campaign.file.clone(), campaign.brief.gateway.clone());
                Err(Error::RetryUnfinished { run: open.name(), file, gateway })
            }
            None => Ok(()),
        }
    }

    /// The rows whose last attempt was refused or failed, or that a person decided were not sent.
    async fn refused(&self, run: &Run, snapshot: &Snapshot) -> Result<Vec<RefusedRow>, Error> {
        let ledger = self.adapters.ledger.as_ref();
        let mut found = BTreeMap::new();
        let mut envelopes = Walk::over(ledger, run.key);
        while let Some(envelope) = envelopes.next().await? {
            for (index, sent) in envelope.rows.iter().enumerate() {
                let state = snapshot.states.recorded(sent.row);
                let Some(state @ (State::Rejected | State::NotSent | State::Failed)) = state else { continue };
                let outcome = envelope.settled.as_ref().and_then(|(_, outcomes)| outcomes.get(index));
                let (status, error) = match outcome {
                    Some(Outcome::Rejected { error }) => (String::new(), error.clone()),
                    _ => {
                        let status = refused_by_status(snapshot, sent.row, envelope.envelope);
                        (status.clone(), status)
                    }
                };
                // Nothing is sent any more to who was forgotten.
                let Some(phone) = sent.to.number() else { continue };
                let attempt = Activity::Over.attempt(envelope.envelope, outcome);
                let refused = RefusedRow { row: sent.row, attempt, phone, state, status, error };
                // A later attempt takes the place of the one before.
                found.insert(sent.row, refused);
            }
        }
        let mut receipts = ReceiptWalk::over(ledger, run.key, run.last_row());
        while let Some(told) = receipts.next().await? {
            for (row, receipts) in told {
                let Some(refused) = found.get_mut(&row) else { continue };
                let judged = Activity::Over.attempted(row, refused.attempt, snapshot.states.events(), &receipts);
                if let Some(last) = judged.moved {
                    refused.status = last.receipt.status.name().to_owned();
                    refused.error = last.receipt.error.clone().unwrap_or_else(|| refused.status.clone());
                }
            }
        }
        Ok(found.into_values().collect())
    }

    /// Whoever got a message of the same campaign and edition by another run meanwhile.
    async fn has_message_elsewhere(&self, run: &Run, runs: &[Run]) -> Result<NumberSet, Error> {
        let same = |other: &&Run| {
            other.edition == run.edition
                && other.live == run.live
                && other.went_through(&run.gateway, &run.account)
                && other.round >= run.round
                && other.key != run.key
        };
        let others: Vec<RunId> = runs.iter().filter(same).map(|other| other.key).collect();
        Ok(self.adapters.ledger.numbers_sent_to(&others).await?)
    }
}
