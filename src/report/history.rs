//! The history of one message: attempts, answers, questions, decisions.

use jiff::Timestamp;

use super::Recipient;
use super::rows_page::{RowSummary, load_row_summaries};
use crate::delivery::Snapshot;
use crate::domain::{MessageId, OperationOutcome, Phone, Receipt, Row};
use crate::ledger::{AskedRow, EnvelopeRecord, Ledger, LedgerError, RowChange, RowEvents, RowState, Run};

/// What is known of one message, and how it came to that.
#[derive(Clone, Debug)]
pub struct MessageHistory {
    /// The row of its recipient.
    pub row: Row,
    /// Its number, if the list has one there.
    pub phone: Option<Phone>,
    /// Its state now.
    pub state: RowState,
    /// Why it is never sent.
    pub left_out: Option<String>,
    /// What happened, in the order of time.
    pub entries: Vec<HistoryEntry>,
}

/// Something that happened to a message.
#[derive(Clone, Debug)]
pub struct HistoryEntry {
    /// When.
    pub at: Timestamp,
    /// What.
    pub event: HistoryEvent,
}

/// What can happen to a message.
#[derive(Clone, Debug)]
pub enum HistoryEvent {
    /// It was sent in an envelope.
    Attempt {
        /// The envelope.
        envelope: u32,
        /// Our identifier.
        id: Option<MessageId>,
        /// How many other messages the envelope has.
        others: u64,
    },
    /// What the attempt in an envelope came to.
    Outcome {
        /// The envelope.
        envelope: u32,
        /// The outcome.
        outcome: OperationOutcome,
    },
    /// The gateway's answer to an envelope, where it was kept for a person to look at.
    Answer {
        /// The envelope.
        envelope: u32,
        /// The body.
        body: String,
    },
    /// The gateway was asked about it; the time is that of the last question.
    Questions(AskedRow),
    /// The gateway told of it.
    Receipt(Receipt),
    /// Something was learnt or decided about the attempt in an envelope.
    Change {
        /// The envelope.
        envelope: u32,
        /// What.
        change: RowChange,
    },
}

impl MessageHistory {
    /// The history of the message to one of these recipients: the first that was sent to, else the first.
    ///
    /// Nothing when there is none of them. `owned` tells whether a process is sending the run.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn load_for_recipients(
        ledger: &dyn Ledger,
        run: &Run,
        owned: bool,
        recipients: &[Recipient],
    ) -> Result<Option<Self>, LedgerError> {
        let snapshot = Snapshot::load(ledger, run, owned).await?;
        // A number that is there more than once was sent to in one of its rows.
        let sent_to = recipients.iter().find(|recipient| snapshot.states.recorded_state(recipient.row).is_some());
        match sent_to.or(recipients.first()) {
            Some(recipient) => Self::load_recipient(ledger, run, &snapshot, *recipient).await.map(Some),
            None => Ok(None),
        }
    }

    /// The histories of the messages to all of these recipients. `owned` tells whether a process is sending the run.
    ///
    /// # Errors
    /// When the ledger cannot be read.
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
        // One that was left out after an attempt may have come to something else since.
        let left_out =
            snapshot.left_out.find_reason(row).filter(|(out, _)| *out == state).map(|(_, why)| why.to_owned());
        let entries = load_entries(ledger, run, row, snapshot.states.events()).await?;
        Ok(Self { row, phone, state, left_out, entries })
    }

    /// The history of the message of a row, read without the rest of the run; its number is known where it was sent to.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn load_row(ledger: &dyn Ledger, run: &Run, owned: bool, row: Row) -> Result<Option<Self>, LedgerError> {
        let Some(RowSummary { phone, state, .. }) = load_row_summaries(ledger, run, owned, &[row]).await?.pop() else {
            return Ok(None);
        };
        let left_out = ledger.load_excluded_rows(run.key).await?;
        let events = RowEvents::from(ledger.load_events(run.key).await?).with_excluded_rows(&left_out);
        let left_out = left_out.find_reason(row).filter(|(out, _)| *out == state).map(|(_, why)| why.to_owned());
        let entries = load_entries(ledger, run, row, &events).await?;
        Ok(Some(Self { row, phone, state, left_out, entries }))
    }

    /// How often the message was sent.
    #[must_use]
    pub fn count_attempts(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry.event, HistoryEvent::Attempt { .. })).count()
    }

    /// What the gateway answered to a lookup or a code call, as JSON.
    #[must_use]
    pub fn find_answer(&self) -> Option<&str> {
        self.entries.iter().rev().find_map(|entry| match &entry.event {
            HistoryEvent::Outcome { outcome: OperationOutcome::Accepted { answer, .. }, .. } => answer.as_deref(),
            _ => None,
        })
    }

    /// The questions about it, if there were any.
    #[must_use]
    pub fn find_questions(&self) -> Option<&AskedRow> {
        self.entries.iter().find_map(|entry| match &entry.event {
            HistoryEvent::Questions(question) => Some(question),
            _ => None,
        })
    }
}

/// What happened to the message of a row, in the order of time.
async fn load_entries(
    ledger: &dyn Ledger,
    run: &Run,
    row: Row,
    events: &RowEvents,
) -> Result<Vec<HistoryEntry>, LedgerError> {
    let mut entries = load_attempts(ledger, run, row, events).await?;
    let questions = ledger.load_asked_rows(run.key).await?.into_iter().filter(|question| question.row == row);
    entries.extend(
        questions.map(|question| HistoryEntry { at: question.last_at, event: HistoryEvent::Questions(question) }),
    );
    entries.extend(events.for_row(row).iter().map(|event| HistoryEntry {
        at: event.at,
        event: HistoryEvent::Change { envelope: event.envelope, change: event.change.clone() },
    }));
    let rows = row.get()..row.get().saturating_add(1);
    let told = ledger.load_receipts(run.key, rows).await?.into_iter().flat_map(|(_, receipts)| receipts);
    entries.extend(told.map(|kept| HistoryEntry { at: kept.at, event: HistoryEvent::Receipt(kept.receipt) }));
    entries.sort_by_key(|entry| entry.at);
    Ok(entries)
}

/// The attempts to send a row, with what came of each.
async fn load_attempts(
    ledger: &dyn Ledger,
    run: &Run,
    row: Row,
    events: &RowEvents,
) -> Result<Vec<HistoryEntry>, LedgerError> {
    let mut entries = Vec::new();
    for summary in ledger.list_envelope_summaries(run.key).await? {
        if row < summary.first || row > summary.last {
            continue;
        }
        for envelope in ledger.load_envelopes(run.key, summary.envelope..=summary.envelope).await? {
            let Some(index) = envelope.rows.iter().position(|sent| sent.row == row) else { continue };
            let id = run.message_id(row, events.find_order(row, envelope.envelope));
            entries.extend(attempt_entries(&envelope, index, id));
            if let Some((at, _)) = envelope.settled
                && let Some(body) = ledger.load_evidence(run.key, envelope.envelope).await?
            {
                entries.push(HistoryEntry { at, event: HistoryEvent::Answer { envelope: envelope.envelope, body } });
            }
        }
    }
    Ok(entries)
}

/// The attempt that is the envelope's row at this index, and its outcome.
fn attempt_entries(record: &EnvelopeRecord, index: usize, id: Option<MessageId>) -> impl Iterator<Item = HistoryEntry> {
    let (envelope, others) = (record.envelope, record.rows.len() as u64 - 1);
    let begun = HistoryEntry { at: record.begun_at, event: HistoryEvent::Attempt { envelope, id, others } };
    let outcome = record.settled.as_ref().and_then(|(at, outcomes)| Some((*at, outcomes.get(index)?.clone())));
    let ended = outcome.map(|(at, outcome)| HistoryEntry { at, event: HistoryEvent::Outcome { envelope, outcome } });
    [begun].into_iter().chain(ended)
}
