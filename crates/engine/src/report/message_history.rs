//! History of one message: attempts, answers, status requests and decisions.

use jiff::Timestamp;

use super::Recipient;
use super::row_pages::{RowSummary, load_row_summaries};
use crate::delivery::Snapshot;
use campaign_core::domain::{MessageId, OperationOutcome, Phone, Receipt, Row};
use campaign_ledger::{
    AskedRow, EnvelopeFilter, EnvelopeRecord, Ledger, LedgerError, RowChange, RowEvents, RowState, Run,
};

/// A message and its history.
#[derive(Clone, Debug)]
pub struct MessageHistory {
    /// The row of the list.
    pub row: Row,
    /// The phone number, if the row has one.
    pub phone: Option<Phone>,
    /// The current state.
    pub state: RowState,
    /// The reason if it is never sent.
    pub left_out: Option<String>,
    /// The events, oldest first.
    pub entries: Vec<HistoryEntry>,
}

/// An event of a message.
#[derive(Clone, Debug)]
pub struct HistoryEntry {
    /// The time.
    pub at: Timestamp,
    /// The event.
    pub event: HistoryEvent,
}

/// The kind of an event.
#[derive(Clone, Debug)]
pub enum HistoryEvent {
    /// The message was sent in a request.
    Attempt {
        /// The number of the request.
        envelope: u32,
        /// Our identifier.
        id: Option<MessageId>,
        /// The number of other messages in the request.
        others: u64,
    },
    /// The outcome of an attempt.
    Outcome {
        /// The number of the request.
        envelope: u32,
        /// The outcome.
        outcome: OperationOutcome,
    },
    /// The gateway's answer to a request, if it was kept.
    Answer {
        /// The number of the request.
        envelope: u32,
        /// The body.
        body: String,
    },
    /// The gateway was asked about it, last at this time.
    Inquiries(AskedRow),
    /// A delivery receipt arrived.
    Receipt(Receipt),
    /// A fact or decision about an attempt was recorded.
    Change {
        /// The number of the request.
        envelope: u32,
        /// The fact or decision.
        change: RowChange,
    },
}

impl MessageHistory {
    /// The history of the message to one of these recipients: the first to whom a message was sent, or else the first.
    ///
    /// `None` without recipients. `owned` is whether a process is sending the run.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load_for_recipients(
        ledger: &dyn Ledger,
        run: &Run,
        owned: bool,
        recipients: &[Recipient],
    ) -> Result<Option<Self>, LedgerError> {
        let snapshot = Snapshot::load(ledger, run, owned).await?;
        // If a number is in several rows, only one of them was sent.
        let sent_to = recipients.iter().find(|recipient| snapshot.states.recorded_state(recipient.row).is_some());
        match sent_to.or(recipients.first()) {
            Some(recipient) => Self::load_recipient(ledger, run, &snapshot, *recipient).await.map(Some),
            None => Ok(None),
        }
    }

    /// The histories of the messages to all of these recipients. `owned` is whether a process is sending the run.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load_all(
        ledger: &dyn Ledger,
        run: &Run,
        owned: bool,
        recipients: &[Recipient],
    ) -> Result<Vec<Self>, LedgerError> {
        let snapshot = Snapshot::load(ledger, run, owned).await?;
        let mut histories = Vec::with_capacity(recipients.len());
        for recipient in recipients {
            histories.push(Self::load_recipient(ledger, run, &snapshot, *recipient).await?);
        }
        Ok(histories)
    }

    async fn load_recipient(
        ledger: &dyn Ledger,
        run: &Run,
        snapshot: &Snapshot,
        Recipient { row, phone }: Recipient,
    ) -> Result<Self, LedgerError> {
        let state = snapshot.row_state(row);
        // A row that was skipped after an attempt can have an outcome.
        let left_out =
            snapshot.left_out.find_reason(row).filter(|(out, _)| *out == state).map(|(_, why)| why.to_owned());
        let entries = load_entries(ledger, run, row, snapshot.states.events()).await?;
        Ok(Self { row, phone, state, left_out, entries })
    }

    /// The history of a row's message, read without the rest of the run. The phone number is known only if the message
    /// was sent.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load_row(ledger: &dyn Ledger, run: &Run, owned: bool, row: Row) -> Result<Option<Self>, LedgerError> {
        let Some(RowSummary { phone, state, .. }) = load_row_summaries(ledger, run, owned, &[row]).await?.pop() else {
            return Ok(None);
        };
        let left_out = ledger.load_excluded_rows(run.key).await?;
        let events = RowEvents::new(ledger.load_events(run.key).await?, run.endpoint).with_excluded_rows(&left_out);
        let left_out = left_out.find_reason(row).filter(|(out, _)| *out == state).map(|(_, why)| why.to_owned());
        let entries = load_entries(ledger, run, row, &events).await?;
        Ok(Some(Self { row, phone, state, left_out, entries }))
    }

    /// The number of attempts.
    #[must_use]
    pub fn count_attempts(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry.event, HistoryEvent::Attempt { .. })).count()
    }

    /// The gateway's latest answer to a lookup or a code call, as JSON. `None` if there is none.
    #[must_use]
    pub fn find_answer(&self) -> Option<&str> {
        self.entries.iter().rev().find_map(|entry| match &entry.event {
            HistoryEvent::Outcome { outcome: OperationOutcome::Accepted { answer, .. }, .. } => answer.as_deref(),
            _ => None,
        })
    }

    /// The status requests about it, if any.
    #[must_use]
    pub fn find_inquiries(&self) -> Option<&AskedRow> {
        self.entries.iter().find_map(|entry| match &entry.event {
            HistoryEvent::Inquiries(inquiry) => Some(inquiry),
            _ => None,
        })
    }
}

/// The events of a row's message, oldest first.
async fn load_entries(
    ledger: &dyn Ledger,
    run: &Run,
    row: Row,
    events: &RowEvents,
) -> Result<Vec<HistoryEntry>, LedgerError> {
    let mut entries = load_attempts(ledger, run, row, events).await?;
    let inquiries = ledger.load_asked_rows(run.key).await?.into_iter().filter(|inquiry| inquiry.row == row);
    entries
        .extend(inquiries.map(|inquiry| HistoryEntry { at: inquiry.last_at, event: HistoryEvent::Inquiries(inquiry) }));
    entries.extend(events.for_row(row).iter().map(|event| HistoryEntry {
        at: event.at,
        event: HistoryEvent::Change { envelope: event.envelope, change: event.change.clone() },
    }));
    let rows = row.get()..row.get().saturating_add(1);
    let receipts = ledger.load_receipts(run.key, rows).await?.into_iter().flat_map(|(_, receipts)| receipts);
    entries.extend(receipts.map(|kept| HistoryEntry { at: kept.at, event: HistoryEvent::Receipt(kept.receipt) }));
    entries.sort_by_key(|entry| entry.at);
    Ok(entries)
}

/// The attempts of a row, with their outcomes.
async fn load_attempts(
    ledger: &dyn Ledger,
    run: &Run,
    row: Row,
    events: &RowEvents,
) -> Result<Vec<HistoryEntry>, LedgerError> {
    let mut entries = Vec::new();
    for envelope in ledger.load_envelopes(run.key, EnvelopeFilter::Row(row)).await? {
        let Some(index) = envelope.rows.iter().position(|sent| sent.row == row) else { continue };
        let id = run.message_id(row, events.find_order(row, envelope.envelope));
        entries.extend(attempt_entries(&envelope, index, id));
        if let (Some((at, _)), Some(body)) = (envelope.settled, envelope.evidence) {
            entries.push(HistoryEntry { at, event: HistoryEvent::Answer { envelope: envelope.envelope, body } });
        }
    }
    Ok(entries)
}

/// The attempt at this index of a request, and its outcome.
fn attempt_entries(record: &EnvelopeRecord, index: usize, id: Option<MessageId>) -> impl Iterator<Item = HistoryEntry> {
    let (envelope, others) = (record.envelope, record.rows.len() as u64 - 1);
    let begun = HistoryEntry { at: record.begun_at, event: HistoryEvent::Attempt { envelope, id, others } };
    let outcome = record.settled.as_ref().and_then(|(at, outcomes)| Some((*at, outcomes.get(index)?.clone())));
    let ended = outcome.map(|(at, outcome)| HistoryEntry { at, event: HistoryEvent::Outcome { envelope, outcome } });
    [begun].into_iter().chain(ended)
}
