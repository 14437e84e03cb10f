//! Sending rows of a run again that were rejected, not sent or failed, as new messages with identifiers of their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roaring::{RoaringBitmap, RoaringTreemap};
use tokio::time::Instant;

use super::find::found;
use super::guard::cancelled_in;
use super::launch::{Preparation, RetryScope, RunToSend, Session};
use super::plan::check_profile;
use super::poll::TIMEOUT;
use super::profiles::refuse_other_reach;
use super::resume::RestToConfirm;
use super::sent_rows::{GuardedNumbers, sent_rows};
use super::stop::cancelled;
use super::{Connection, Error, Event, List, RetryRefusal, opted_out, person};
use crate::check::Excluded;
use crate::delivery::{ChainTimes, Fate, Pending, Poller, SingleKind, Snapshot};
use crate::domain::{Outcome, Phone, Row, Status};
use crate::failpoint;
use crate::ledger::{
    Activity, Attempt, Author, Change, NumberSet, Ownership, Progress, ReceiptWalk, RetriedRow, RetryOrder, Run,
    RunFilter, RunId, State, Walk,
};

/// How long all questions before a retry may take.
const LONGEST: Duration = Duration::from_secs(3_600);

/// A row that can be sent again: the attempt that was refused, its number, and the gateway's words.
struct RefusedRow {
    row: Row,
    attempt: Attempt,
    /// When that attempt was recorded.
    begun_at: Timestamp,
    phone: Phone,
    /// What the row came to.
    state: State,
    /// The status by which it failed; "" where it was refused at once.
    status: String,
    error: String,
    /// Whether the gateway refused it before any channel was tried.
    refused_at_intake: bool,
}

impl RefusedRow {
    /// Whether it is in one of these states.
    fn is_in(&self, states: &[State]) -> bool {
        states.contains(&self.state) || self.counts_as_rejected() && states.contains(&State::Rejected)
    }

    /// Whether it counts as rejected: the gateway queued it and rejected it later (contract, notes on the asynchronous endpoint).
    /// If it has several channels, only a rejection at intake counts. An accepted message was sent, so it does not count.
    fn counts_as_rejected(&self) -> bool {
        let is_refusal = self.state == State::Failed && self.status == Status::Rejected.name();
        is_refusal && self.attempt.state != State::Accepted && !self.needs_question()
    }

    /// Whether another channel may have reached the recipient, so that the gateway is asked before the row is sent again.
    fn needs_question(&self) -> bool {
        self.state == State::Failed && self.attempt.chain.has_fallback() && !self.refused_at_intake
    }

    /// Whether its error contains one of these texts, in any case, or there are none.
    fn has_error(&self, texts: &[String]) -> bool {
        let error = self.error.to_lowercase();
        texts.is_empty() || texts.iter().any(|text| error.contains(&text.to_lowercase()))
    }
}

/// How many of the rows that a retry sends again have an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetriedError {
    /// Their state.
    pub state: State,
    /// The error, or the status of the gateway; empty if there is neither.
    pub text: String,
    /// Their number.
    pub rows: u64,
}

/// The errors of these rows, each once.
fn errors_of(rows: &[RefusedRow]) -> Vec<RetriedError> {
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry((row.state, row.error.trim())).or_default() += 1;
    }
    counts.into_iter().map(|((state, text), rows)| RetriedError { state, text: text.to_owned(), rows }).collect()
}

/// Rows that a retry does not send, by their reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryLeftOut {
    /// Their messages were delivered after all.
    pub delivered: u64,
    /// The gateway is still trying their channels.
    pub under_way: u64,
    /// The gateway did not confirm that their messages failed.
    pub unconfirmed: u64,
    /// Their recipients opted out, got a message by another run, or were skipped by an earlier retry.
    pub guarded: u64,
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
        if let Some(changes) = self.changes(&run).await?.what {
            let (run, file, gateway) = (run.name(), self.inputs().campaign.file.clone(), run.gateway.clone());
            return Err(RetryRefusal::Changed { run, file, gateway, changes }.into());
        }
        let snapshot = Snapshot::read(ledger, &run, false).await?;
        let refused = self.refused(&run, &snapshot).await?.into_iter().filter(|row| row.has_error(&scope.errors));
        let (rows, others): (Vec<RefusedRow>, Vec<RefusedRow>) = refused.partition(|row| row.is_in(&scope.states));
        let elsewhere = self.guarded_elsewhere(&run, &runs).await?;
        let mut guarded = NumberSet::new(self.suppressed().await?, None);
        guarded |= opted_out(ledger, self.inputs()).await?.numbers;
        // A row that an earlier retry skipped is never sent: the ledger keeps it left out.
        let skipped = snapshot.left_out.rows();
        let is_guarded = |row: &RefusedRow| {
            elsewhere.contains(row.row, row.phone) || guarded.contains(row.phone) || skipped.contains(row.row.get())
        };
        let (guarded, rows): (Vec<RefusedRow>, Vec<RefusedRow>) = rows.into_iter().partition(is_guarded);
        let mut left_out = RetryLeftOut { guarded: guarded.len() as u64, ..RetryLeftOut::default() };
        if let Some(profile) = self.inputs().destination.profile() {
            refuse_other_reach(&run, profile)?;
            check_profile(&self.adapters, profile).await?;
        }
        let (rows, snapshot) = self.without_reached((&run, snapshot), rows, &mut left_out).await?;
        let (number, unconfirmed) = (rows.len() as u64, left_out.unconfirmed);
        let said = self.launch.request.accept_duplicates;
        if unconfirmed > 0 && (number == 0 || said.is_some_and(|said| said != number)) {
            return Err(RetryRefusal::Unconfirmed { run: run.name(), rows: unconfirmed, said }.into());
        }
        if number == 0 {
            let failed = others.iter().filter(|row| row.state == State::Failed).count() as u64;
            let error = (!scope.errors.is_empty()).then(|| scope.errors.join("` or `"));
            return Err(RetryRefusal::Nothing { run: run.name(), failed, error, left_out }.into());
        }
        self.refuse_restored_retry(&run, number).await?;
        self.refuse_unapproved_retry(&run, number).await?;
        let (planned, errors) = (scope.clone(), errors_of(&rows));
        (self.adapters.observer)(Event::RetryPlanned {
            run: run.name(),
            rows: number,
            left_out,
            errors,
            scope: planned,
        });
        if let Some(profile) = self.inputs().destination.remote() {
            let again: RoaringBitmap = rows.iter().map(|refused| refused.row.get()).collect();
            let rest = match self.consent.shows_proposals() {
                true => self.rest_of(&run, |_| Ok(again.clone())).await.ok(),
                false => None,
            };
            let cost = match (&rest, self.consent.can_come()) {
                (Some(rest), true) => Some(self.cost_of_rest(profile, rest)),
                (None, true) => Some(self.cost_among(profile, &run, |_| Ok(again)).await?),
                (_, false) => None,
            };
            let rest = RestToConfirm { number, cost, balance: None, rest, is_retry: true };
            self.agree_to_go_on((self.consent.as_ref(), profile), (&run, &snapshot), rest).await?;
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
            unconfirmed,
            earlier_edition: false,
            before: None,
            cancelled_in: Vec::new(),
        })))
    }

    /// Asks the gateway about rows with a fallback. Returns the rows that can be retried and a fresh snapshot of the run; counts
    /// the others in `left_out`.
    async fn without_reached(
        &self,
        (run, snapshot): (&Run, Snapshot),
        rows: Vec<RefusedRow>,
        left_out: &mut RetryLeftOut,
    ) -> Result<(Vec<RefusedRow>, Snapshot), Error> {
        let (asked, mut rows): (Vec<RefusedRow>, Vec<RefusedRow>) =
            rows.into_iter().partition(RefusedRow::needs_question);
        let destination = &self.inputs().destination;
        // Rehearsals reach no recipients, and an unconfirmed retry sends nothing, so neither needs the question.
        let sends = destination.is_live() && (destination.remote().is_none() || self.consent.can_come());
        if asked.is_empty() || !sends {
            rows.extend(asked);
            rows.sort_by_key(|refused| refused.row);
            return Ok((rows, snapshot));
        }
        let times = ChainTimes::of_run(self.adapters.ledger.as_ref(), run).await;
        let message = |refused: &RefusedRow| {
            let Attempt { envelope, chain, .. } = refused.attempt;
            let order = snapshot.states.events().order(refused.row, envelope);
            let id = run.id(refused.row, order)?;
            Some(Pending::new((refused.row, order, id), (chain, refused.begun_at), &times))
        };
        let (mut messages, mut questions, mut unconfirmed) = (Vec::new(), Vec::new(), Vec::new());
        for refused in asked {
            match message(&refused) {
                Some(message) => {
                    messages.push(message);
                    questions.push(refused);
                }
                // Without its identifier nobody can ask about it.
                None => unconfirmed.push(refused),
            }
        }
        (self.adapters.observer)(Event::AskingBeforeRetry { rows: messages.len() as u64 });
        for (refused, fate) in questions.into_iter().zip(self.ask_before_retry(run, &messages).await?) {
            match fate {
                Fate::Failed => rows.push(refused),
                Fate::Delivered => left_out.delivered += 1,
                Fate::UnderWay => left_out.under_way += 1,
                Fate::Unknown => unconfirmed.push(refused),
            }
        }
        // A restored ledger wants the number of all rows that are sent, these among them.
        let numbers = [unconfirmed.len(), rows.len() + unconfirmed.len()].map(|number| Some(number as u64));
        if numbers.contains(&self.launch.request.accept_duplicates) {
            rows.append(&mut unconfirmed);
        }
        left_out.unconfirmed = unconfirmed.len() as u64;
        rows.sort_by_key(|refused| refused.row);
        Ok((rows, Snapshot::read(self.adapters.ledger.as_ref(), run, false).await?))
    }

    /// Asks the gateway what became of messages of a run.
    async fn ask_before_retry(&self, run: &Run, messages: &[Pending]) -> Result<Vec<Fate>, Error> {
        let Some(profile) = self.inputs().destination.profile() else { return Ok(vec![Fate::Unknown; messages.len()]) };
        let connection = Connection::Gateway(profile, self.launch.key.clone());
        let gateway = connection.client(self.adapters.connect, run.endpoint, TIMEOUT)?;
        let account = run.allowance(profile.rate.per_second());
        let (ledger, most, clock) = (self.adapters.ledger.as_ref(), profile.largest_envelope(), self.adapters.clock);
        let poller = Poller { ledger, gateway: gateway.as_ref(), run, account, most, clock };
        Ok(poller.ask_before_retry(messages, Instant::now() + LONGEST).await?)
    }

    /// Why nothing of a run can be sent again now.
    fn refuse_retry(&self, run: &Run, runs: &[Run]) -> Result<(), Error> {
        if SingleKind::of(run).is_some() {
            return Err(Error::SingleRun { run: run.name() });
        }
        match run.progress {
            Progress::Replaced => return Err(RetryRefusal::Replaced { run: run.name() }.into()),
            Progress::Cancelled => return Err(cancelled(run)),
            Progress::Open | Progress::Finished => {}
        }
        let same = |other: &&Run| run.shares_recipients(other);
        match runs.iter().filter(same).find(|other| other.progress == Progress::Open) {
            Some(open) => {
                let campaign = &self.inputs().campaign;
                let (file, gateway) = (campaign.file.clone(), campaign.brief.gateway.clone());
                Err(RetryRefusal::Unfinished { run: open.name(), file, gateway }.into())
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
                let attempt = Activity::Over.attempt((envelope.envelope, envelope.chain(sent)), outcome);
                let begun_at = envelope.begun_at;
                let events = snapshot.states.events();
                let refused_at_intake = Activity::Over.attempted(sent.row, &[attempt], events, &[]).refused_at_intake;
                let refused =
                    RefusedRow { row: sent.row, attempt, begun_at, phone, state, status, error, refused_at_intake };
                // A later attempt takes the place of the one before.
                found.insert(sent.row, refused);
            }
        }
        let mut receipts = ReceiptWalk::over(ledger, run.key, run.last_row());
        while let Some(told) = receipts.next().await? {
            for (row, receipts) in told {
                let Some(refused) = found.get_mut(&row) else { continue };
                let judged = Activity::Over.attempted(row, &[refused.attempt], snapshot.states.events(), &receipts);
                refused.refused_at_intake = judged.refused_at_intake;
                if let Some(last) = judged.moved {
                    refused.status = last.receipt.status.name().to_owned();
                    refused.error = last.receipt.error.clone().unwrap_or_else(|| refused.status.clone());
                }
            }
        }
        Ok(found.into_values().collect())
    }

    /// Recipients who got a message of the same campaign and edition by another run meanwhile, or whom `stop --for-good`
    /// cancelled there.
    async fn guarded_elsewhere(&self, run: &Run, runs: &[Run]) -> Result<GuardedElsewhere, Error> {
        let same = |other: &&Run| {
            other.edition == run.edition
                && run.shares_recipients(other)
                && other.round >= run.round
                && other.key != run.key
        };
        let others: Vec<Run> = runs.iter().filter(same).cloned().collect();
        let ledger = self.adapters.ledger.as_ref();
        let keys: Vec<RunId> = others.iter().map(|other| other.key).collect();
        let sent = ledger.numbers_sent_to(&keys).await?;
        let cancelled = cancelled_in(ledger, &others).await?.numbers;
        if sent.is_empty() && cancelled.is_empty() {
            return Ok(GuardedElsewhere(Excluded::default()));
        }
        // The rows of the retry are those of the run's own list, whatever becomes of the user's list meanwhile.
        let listed = Arc::new(self.inputs().with_list(List::Copies(ledger.copies(run).await?)));
        let numbers = GuardedNumbers { sent: &sent, cancelled: &cancelled };
        let rows = sent_rows(ledger, &listed, &others, numbers).await?;
        Ok(GuardedElsewhere(Excluded { already: sent, rows, cancelled, ..Excluded::default() }))
    }
}

/// The rows that other runs of the edition sent or cancelled in the meantime.
struct GuardedElsewhere(Excluded);

impl GuardedElsewhere {
    fn contains(&self, row: Row, phone: Phone) -> bool {
        self.0.reason(row, phone).is_some()
    }
}
