//! The asking about rows in doubt: by our own identifiers, at the account's pace, every answer kept.
//!
//! It sends nothing. What it learns goes into the ledger as events before anybody is told.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::doubt::{MessageInDoubt, StatusTrust, denial_wait, evaluate_answer};
use super::questions::{MAX_QUESTIONS, StatusQuery, to_receipt};
use crate::domain::{Chain, MessageId, OperationOutcome, ReceiptSource, Row};
use crate::failpoint;
use crate::gateway::{Gateway, StatusAnswer};
use crate::ledger::{
    Allowance, AskedRow, EnvelopeReader, EnvelopeRecord, Lease, Ledger, LedgerError, NewReceipt, NewRowEvent,
    Ownership, RowChange, RowState, RowStates, Run,
};

/// Who asks about rows in doubt, for which run, of which gateway, at whose pace.
pub struct Reconciler<'a> {
    /// The ledger.
    pub ledger: &'a dyn Ledger,
    /// The gateway.
    pub gateway: &'a dyn Gateway,
    /// The run.
    pub run: &'a Run,
    /// By what right.
    pub lease: Lease,
    /// The account whose pace it takes from.
    pub account: Allowance,
    /// The most operations of an envelope.
    pub most: usize,
    /// The wall clock.
    pub clock: fn() -> Timestamp,
}

/// The rows in doubt of a run, and what there is to compare the answers with.
#[derive(Debug, Default)]
pub struct MessagesInDoubt {
    /// The rows.
    pub rows: Vec<MessageInDoubt>,
    /// A message that the gateway surely took.
    pub reference: Option<MessageId>,
}

/// What came of asking about rows in doubt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconciliation {
    /// Rows that were asked about.
    pub asked: u64,
    /// Rows that the gateway has.
    pub found: u64,
    /// Rows that it had and refused.
    pub failed: u64,
    /// Rows that it does not know, after everything that proves it to be asked long enough.
    pub not_found: u64,
    /// Rows about which nothing more is asked.
    pub unresolved: u64,
    /// Rows whose answers proved nothing, because the gateway does not tell the sent from the never sent.
    pub blind: u64,
    /// Rows about which there was no usable answer.
    pub unclear: u64,
    /// Whether another process took the run, and nothing more was asked.
    pub lost: bool,
}

impl MessagesInDoubt {
    /// The rows of a run in one of these states, and the latest message that the gateway surely took.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn load(
        ledger: &dyn Ledger,
        run: &Run,
        states: &RowStates,
        wanted: &[RowState],
    ) -> Result<Self, LedgerError> {
        let mut questions: HashMap<Row, AskedRow> =
            ledger.load_asked_rows(run.key).await?.into_iter().map(|question| (question.row, question)).collect();
        let mut rows = HashMap::new();
        let mut reference = None;
        let mut envelopes = EnvelopeReader::new(ledger, run.key);
        while let Some(envelope) = envelopes.next_envelope().await? {
            reference = find_reference(run, states, &envelope).or(reference);
            for sent in &envelope.rows {
                if states.recorded_state(sent.row).is_some_and(|state| wanted.contains(&state)) {
                    // A later attempt takes the place of the one before. It may have waited long before it left.
                    let since = envelope.settled.as_ref().map_or(envelope.begun_at, |(at, _)| *at);
                    rows.insert(sent.row, ((envelope.envelope, envelope.chain(sent)), since));
                }
            }
        }
        let doubt = |(row, ((envelope, chain), since))| {
            let events = states.events();
            let about = events.for_row(row).iter().filter(|event| event.envelope == envelope);
            let not_found = about.into_iter().any(|event| matches!(event.change, RowChange::NotFound { .. }));
            let id = run.message_id(row, events.find_order(row, envelope))?;
            // What was said of an attempt before says nothing of this one.
            let question = questions.remove(&row).filter(|question| question.envelope == envelope);
            let unresolved = states.recorded_state(row) == Some(RowState::Unresolved);
            Some(MessageInDoubt { row, id, envelope, chain, since, history: question, not_found, unresolved })
        };
        let mut rows: Vec<MessageInDoubt> = rows.into_iter().filter_map(doubt).collect();
        rows.sort_by_key(|doubt| doubt.row);
        Ok(Self { rows, reference })
    }
}

/// The last message of an envelope that the gateway took: it has to know that one.
fn find_reference(run: &Run, states: &RowStates, envelope: &EnvelopeRecord) -> Option<MessageId> {
    let (_, outcomes) = envelope.settled.as_ref()?;
    let took = |outcome: &OperationOutcome| {
        matches!(outcome, OperationOutcome::Accepted { .. } | OperationOutcome::Queued { .. })
    };
    let (sent, _) = envelope.rows.iter().zip(outcomes).rfind(|(_, outcome)| took(outcome))?;
    run.message_id(sent.row, states.events().find_order(sent.row, envelope.envelope))
}

impl Reconciler<'_> {
    /// Asks about every row once, and keeps what was learnt; rows that are settled by it leave `doubts`.
    ///
    /// What cannot be asked before `deadline` is not asked.
    ///
    /// # Errors
    /// When the ledger cannot be read or written.
    pub async fn ask_rows(
        &self,
        doubts: &mut MessagesInDoubt,
        deadline: Instant,
    ) -> Result<Reconciliation, LedgerError> {
        let mut learnt = Reconciliation::default();
        let mut left = Vec::new();
        let mut rows = std::mem::take(&mut doubts.rows).into_iter().peekable();
        while rows.peek().is_some() && !learnt.lost {
            let mut group: Vec<MessageInDoubt> = rows.by_ref().take(self.group_size(deadline)).collect();
            let ids = group.iter().map(|doubt| doubt.id);
            let answers = self.status_query().ask_trusted(ids, doubts.reference, deadline).await?;
            let in_time = answers.is_some();
            if let Some((sight, answers)) = answers {
                self.store_answers(&mut group, sight, &answers, &mut learnt).await?;
            }
            left.append(&mut group);
            if !in_time {
                break;
            }
        }
        left.extend(rows);
        doubts.rows = left;
        Ok(learnt)
    }

    fn status_query(&self) -> StatusQuery<'_> {
        let Self { ledger, gateway, run, ref account, most, .. } = *self;
        StatusQuery { ledger, gateway, run, account, most }
    }

    /// How many rows are asked about together, so that little room of the pace is taken in vain before `deadline`.
    fn group_size(&self, deadline: Instant) -> usize {
        let seconds = deadline.saturating_duration_since(Instant::now()).as_secs_f64();
        let most = self.account.rate.map_or(MAX_QUESTIONS, |rate| (seconds * rate) as usize);
        // The probe and the reference go with every group; there is room for one row at least.
        most.min(MAX_QUESTIONS).min(self.most).saturating_sub(2).max(1)
    }

    /// Keeps the answers about a group; rows that are settled by them leave it.
    async fn store_answers(
        &self,
        group: &mut Vec<MessageInDoubt>,
        sight: StatusTrust,
        answers: &[StatusAnswer],
        learnt: &mut Reconciliation,
    ) -> Result<(), LedgerError> {
        let (now, patience) = ((self.clock)(), denial_wait(self.run.endpoint, self.run.lag));
        let (mut questions, mut events) = (Vec::new(), Vec::new());
        let (mut left, mut receipts) = (Vec::new(), Vec::new());
        for (mut doubt, answer) in std::mem::take(group).into_iter().zip(answers) {
            receipts.extend(self.build_receipt(&doubt, answer).filter(|_| sight != StatusTrust::Blind));
            let (question, change) = evaluate_answer(&doubt, sight, answer, patience, now);
            learnt.asked += 1;
            let unclear = matches!(answer, StatusAnswer::Unclear(_));
            learnt.unclear += u64::from(unclear);
            learnt.blind += u64::from(sight == StatusTrust::Blind && !unclear);
            questions.push(question.clone());
            doubt.history = Some(question);
            let settled = change.as_ref().is_some_and(|change| learnt.count_change(change, doubt.chain));
            if let Some(change) = change {
                doubt.not_found |= matches!(change, RowChange::NotFound { .. });
                events.push(NewRowEvent { row: doubt.row, envelope: doubt.envelope, change });
            }
            if !settled {
                left.push(doubt);
            }
        }
        *group = left;
        self.ledger.keep_asked_rows(self.run.key, questions).await?;
        failpoint::pass("questions.kept");
        if self.ledger.record_events(self.lease, events).await? == Ownership::Lost {
            learnt.lost = true;
        }
        // The event proves that the message was sent; its delivery status is judged like that of every other receipt.
        self.ledger.store_receipts(receipts).await?;
        failpoint::pass("events.kept");
        Ok(())
    }
}

impl Reconciler<'_> {
    /// What an answer reports of a message; nothing if the gateway does not know it.
    fn build_receipt(&self, doubt: &MessageInDoubt, answer: &StatusAnswer) -> Option<NewReceipt> {
        let receipt = to_receipt(answer.clone(), ReceiptSource::Asked)?;
        let (_, order) = self.run.find_message(doubt.id)?;
        Some(NewReceipt { run: self.run.key, row: doubt.row, order, receipt, opt_out: None })
    }
}

impl Reconciliation {
    /// Counts what was learnt about a row, and tells whether that ends the asking.
    fn count_change(&mut self, change: &RowChange, chain: Chain) -> bool {
        match (change, change.resulting_state(chain)) {
            (RowChange::Found { .. }, Some(RowState::Failed)) => self.failed += 1,
            (RowChange::Found { .. }, _) => self.found += 1,
            (RowChange::Unresolved { .. }, _) => self.unresolved += 1,
            (RowChange::NotFound { .. }, _) => {
                self.not_found += 1;
                return false;
            }
            // Nobody learns a decision by asking.
            _ => {}
        }
        true
    }

    /// This and what was learnt before.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self {
            asked: self.asked + other.asked,
            found: self.found + other.found,
            failed: self.failed + other.failed,
            not_found: self.not_found + other.not_found,
            unresolved: self.unresolved + other.unresolved,
            blind: self.blind + other.blind,
            unclear: self.unclear + other.unclear,
            lost: self.lost || other.lost,
        }
    }
}

/// The waits after the end of a run before its rows in doubt are asked about.
pub const RECONCILE_WAITS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(15)];
/// How long a run stays for its rows in doubt at most.
pub const MAX_STAY: Duration = Duration::from_secs(30);
