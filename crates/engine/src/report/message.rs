//! One message: its history of attempts, answers, status requests and decisions, and its delivery.
//!
//! The times of a delivery are those of the gateway. A time that is later than the arrival of its own receipt, or
//! earlier than the request, cannot be right. It is reported as uncertain and excluded from delivery times.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Recipient;
use super::row_pages::{RowSummary, load_row_summaries};
use crate::delivery::Snapshot;
use campaign_core::domain::{Channel, DeliveryState, MessageId, OperationOutcome, Phone, Receipt, Row, Status};
use campaign_ledger::{
    AskedRow, EnvelopeFilter, EnvelopeRecord, Ledger, LedgerError, RowChange, RowEvents, RowState, Run, StoredReceipt,
};

/// A row's message with its attempts, answers, inquiries and receipts.
#[derive(Clone, Debug)]
pub struct MessageHistory {
    /// The row of the list.
    pub row: Row,
    /// The phone number, if the row has one.
    pub phone: Option<Phone>,
    /// The current state.
    pub state: RowState,
    /// The reason why the row is never sent. `None` if the row was or can be sent.
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
        /// The outcome at the time of the answer; later changes are separate entries.
        outcome: OperationOutcome,
    },
    /// The gateway's answer to a request, if it was kept.
    Answer {
        /// The number of the request.
        envelope: u32,
        /// The beginning of the body; long bodies are cut off.
        body: String,
    },
    /// The gateway was asked about the message. The time of the entry is that of the last inquiry.
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
    /// Loads the histories of at most `limit` messages to a number in these rows, and counts the other messages.
    ///
    /// Skipped rows have no message; if all rows were skipped, the history is that of the first row.
    ///
    /// `owned` means that a process is sending the run.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load_for_number(
        ledger: &dyn Ledger,
        run: &Run,
        owned: bool,
        rows: &[Recipient],
        limit: usize,
    ) -> Result<(Vec<Self>, u64), LedgerError> {
        let snapshot = Snapshot::load(ledger, run, owned).await?;
        let is_not_skipped = |recipient: &&Recipient| snapshot.row_state(recipient.row) != RowState::Skipped;
        let mut messages: Vec<&Recipient> = rows.iter().filter(is_not_skipped).collect();
        if messages.is_empty() {
            messages.extend(rows.first());
        }
        let other_count = messages.len().saturating_sub(limit) as u64;
        let mut histories = Vec::new();
        for recipient in messages.into_iter().take(limit) {
            histories.push(Self::load_recipient(ledger, run, &snapshot, *recipient).await?);
        }
        Ok((histories, other_count))
    }

    /// Loads the histories of the messages to all `recipients`. `owned` means that a process is sending the run.
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
        let left_out = snapshot
            .left_out
            .find_reason(row)
            .filter(|(excluded, _)| *excluded == state)
            .map(|(_, text)| text.to_owned());
        let entries = load_entries(ledger, run, row, snapshot.states.events()).await?;
        Ok(Self { row, phone, state, left_out, entries })
    }

    /// Loads the history of a row's message without reading the rest of the run. The phone number is known only if the
    /// message was sent.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load_row(ledger: &dyn Ledger, run: &Run, owned: bool, row: Row) -> Result<Option<Self>, LedgerError> {
        let Some(RowSummary { phone, state, .. }) = load_row_summaries(ledger, run, owned, &[row]).await?.pop() else {
            return Ok(None);
        };
        let left_out = ledger.load_excluded_rows(run.key).await?;
        let events = RowEvents::new(ledger.load_events(run.key).await?, run.endpoint).with_excluded_rows(&left_out);
        let left_out =
            left_out.find_reason(row).filter(|(excluded, _)| *excluded == state).map(|(_, text)| text.to_owned());
        let entries = load_entries(ledger, run, row, &events).await?;
        Ok(Some(Self { row, phone, state, left_out, entries }))
    }

    /// The number of attempts to send the message.
    pub fn count_attempts(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry.event, HistoryEvent::Attempt { .. })).count()
    }

    /// The gateway's latest answer to a lookup or a code call, as JSON. `None` if there is no answer.
    pub fn find_answer(&self) -> Option<&str> {
        self.entries.iter().rev().find_map(|entry| match &entry.event {
            HistoryEvent::Outcome { outcome: OperationOutcome::Accepted { answer, .. }, .. } => answer.as_deref(),
            _ => None,
        })
    }

    /// The status inquiries about the message, if there were any.
    pub fn find_inquiries(&self) -> Option<&AskedRow> {
        self.entries.iter().find_map(|entry| match &entry.event {
            HistoryEvent::Inquiries(inquiry) => Some(inquiry),
            _ => None,
        })
    }
}

/// Loads the events of a row's message, oldest first.
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
    entries.extend(receipts.map(|stored| HistoryEntry { at: stored.at, event: HistoryEvent::Receipt(stored.receipt) }));
    entries.sort_by_key(|entry| entry.at);
    Ok(entries)
}

/// Loads the attempts to send a row's message, each with its outcome.
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

/// The history entries for the message at `index` of a request: the attempt and, if it is known, the outcome.
fn attempt_entries(record: &EnvelopeRecord, index: usize, id: Option<MessageId>) -> impl Iterator<Item = HistoryEntry> {
    let (envelope, others) = (record.envelope, record.rows.len() as u64 - 1);
    let attempt = HistoryEntry { at: record.begun_at, event: HistoryEvent::Attempt { envelope, id, others } };
    let outcome = record.settled.as_ref().and_then(|(at, outcomes)| Some((*at, outcomes.get(index)?.clone())));
    let outcome = outcome.map(|(at, outcome)| HistoryEntry { at, event: HistoryEvent::Outcome { envelope, outcome } });
    [attempt].into_iter().chain(outcome)
}

/// The tolerated clock skew between the gateway and this machine.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);

/// The maximum time by which the clock of the built-in sandbox is ahead: a rehearsal does not wait for its messages.
const REHEARSAL_AHEAD: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The clock of a gateway's reported times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GatewayClock {
    /// The real time.
    Real,
    /// The time of the built-in sandbox, which can be ahead of the real time.
    Simulated,
}

/// The certainty of a delivery time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeCertainty {
    /// The gateway reported the time of the delivery.
    Exact,
    /// An upper bound: the gateway reported only when the message was read, or no time.
    AtLatest,
    /// The reported time cannot be right.
    Uncertain,
}

/// The delivery of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageDelivery {
    /// The channel that delivered the message first. `None` if no receipt names a known channel.
    pub channel: Option<Channel>,
    /// The reported time; the arrival of the receipt if it reports none.
    pub at: Timestamp,
    /// The certainty of that time.
    pub certainty: TimeCertainty,
    /// The time when the receipt with that time arrived.
    pub received: Timestamp,
    /// The time from the request to the delivery. `None` if the time of the delivery is uncertain.
    pub time: Option<Duration>,
    /// The channel that reported the message as read, or the channel of the delivery if that receipt names none. `None`
    /// if the message was not read.
    pub read_by: Option<Channel>,
    /// Whether the gateway reported only some of the message's parts as delivered.
    pub in_part: bool,
}

impl GatewayClock {
    /// The clock of a run's gateway.
    pub(super) fn for_run(run: &Run) -> Self {
        if run.live { Self::Real } else { Self::Simulated }
    }

    /// Whether a receipt that arrived at `received` can report the time `reported` for a message that was first sent at
    /// `sent`.
    fn accepts_time(self, reported: Timestamp, sent: Timestamp, received: Timestamp) -> bool {
        let after = |at: Timestamp, time: SignedDuration| at.checked_add(time).unwrap_or(Timestamp::MAX);
        let latest = match self {
            Self::Real => after(received, CLOCK_SKEW),
            Self::Simulated => after(sent, REHEARSAL_AHEAD).max(received),
        };
        let earliest = sent.checked_sub(CLOCK_SKEW).unwrap_or(Timestamp::MIN);
        (earliest..=latest).contains(&reported)
    }
}

/// A receipt that proves a delivery, with the certainty of its time.
struct Evidence<'r> {
    receipt: &'r StoredReceipt,
    state: DeliveryState,
    certainty: TimeCertainty,
}

impl<'r> Evidence<'r> {
    fn from_receipt(receipt: &'r StoredReceipt, sent: Timestamp, clock: GatewayClock) -> Option<Self> {
        let state = receipt.receipt.status.delivery_state();
        let certainty = match (state, receipt.receipt.updated) {
            (DeliveryState::Pending | DeliveryState::Failed, _) => return None,
            (_, Some(reported)) if !clock.accepts_time(reported, sent, receipt.at) => TimeCertainty::Uncertain,
            (DeliveryState::Delivered, Some(_)) => TimeCertainty::Exact,
            (DeliveryState::Delivered | DeliveryState::Read, _) => TimeCertainty::AtLatest,
        };
        Some(Self { receipt, state, certainty })
    }

    /// A sort key that puts better evidence first: plausible times before uncertain times, then earlier times before
    /// later times.
    fn rank(&self) -> (bool, Timestamp, TimeCertainty) {
        let is_uncertain = self.certainty == TimeCertainty::Uncertain;
        (is_uncertain, if is_uncertain { self.receipt.at } else { self.receipt.reported_at() }, self.certainty)
    }

    fn channel(&self) -> Option<Channel> {
        self.receipt.receipt.known_channel()
    }
}

impl MessageDelivery {
    /// The delivery that the receipts of one message prove, if there is one. `sent` are the times at which the message
    /// was sent, earliest first; a message is sent again if an earlier request had no answer.
    pub(super) fn from_receipts<'r>(
        receipts: impl Iterator<Item = &'r StoredReceipt>,
        sent: &[Timestamp],
        clock: GatewayClock,
    ) -> Option<Self> {
        let first_sent = *sent.first()?;
        let mut evidence: Vec<Evidence<'r>> =
            receipts.filter_map(|receipt| Evidence::from_receipt(receipt, first_sent, clock)).collect();
        evidence.sort_by_key(Evidence::rank);
        let best = evidence.first()?;
        let read = evidence.iter().find(|evidence| evidence.state == DeliveryState::Read);
        let read_by = read.and_then(Evidence::channel);
        let channel = best.channel().or(read_by).or_else(|| evidence.iter().find_map(Evidence::channel));
        let is_partial = |evidence: &Evidence<'_>| evidence.receipt.receipt.status == Status::PartiallyDelivered;
        let at = best.receipt.reported_at();
        Some(Self {
            channel,
            at,
            certainty: best.certainty,
            received: best.receipt.at,
            time: (best.certainty != TimeCertainty::Uncertain).then(|| time_since(sent, at)),
            read_by: read_by.or(channel).filter(|_| read.is_some()),
            in_part: evidence.iter().all(is_partial),
        })
    }

    /// The time of the delivery in charts: the reported time or, if it is uncertain, the time at which the receipt
    /// arrived.
    pub(super) fn chart_time(&self) -> Timestamp {
        if self.certainty == TimeCertainty::Uncertain { self.received } else { self.at }
    }
}

impl TimeCertainty {
    /// The certainty's name in the results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::AtLatest => "at_latest",
            Self::Uncertain => "uncertain",
        }
    }
}

/// The time from the last request before a delivery to the delivery; zero if the gateway's clock is behind.
fn time_since(sent: &[Timestamp], delivered: Timestamp) -> Duration {
    let latest = delivered.checked_add(CLOCK_SKEW).unwrap_or(Timestamp::MAX);
    let request = sent.iter().rfind(|sent| **sent <= latest).or(sent.first());
    request.and_then(|sent| Duration::try_from(delivered.duration_since(*sent)).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::TimeCertainty::{AtLatest, Exact, Uncertain};
    use super::*;
    use campaign_core::domain::{Receipt, ReceiptSource, ReportedChannel};

    const SENT: i64 = 1_000_000;
    const DAY: i64 = 86_400;

    /// A receipt for a channel with a status; `reported` and `arrived` are seconds after the request.
    fn receipt(channel: &str, status: Status, reported: Option<i64>, arrived: i64) -> StoredReceipt {
        let at = |second: i64| Timestamp::from_second(SENT + second).unwrap();
        let receipt = Receipt {
            updated: reported.map(at),
            channel: ReportedChannel::parse(channel),
            ..Receipt::new(ReceiptSource::Webhook, status)
        };
        StoredReceipt { order: None, at: at(arrived), receipt }
    }

    fn delivery(receipts: &[StoredReceipt], clock: GatewayClock) -> MessageDelivery {
        let sent = [Timestamp::from_second(SENT).unwrap()];
        MessageDelivery::from_receipts(receipts.iter(), &sent, clock).expect("a delivery")
    }

    #[test]
    fn receipts_determine_the_certainty_of_the_delivery_time() {
        use Status::{Delivered, Read, Undeliverable};
        let table: &[(&[StoredReceipt], TimeCertainty, Option<u64>)] = &[
            (&[receipt("sms", Delivered, Some(30), 31)], Exact, Some(30)),
            (&[receipt("sms", Read, Some(900), 901), receipt("sms", Delivered, Some(30), 902)], Exact, Some(30)),
            (&[receipt("viber", Read, Some(900), 901)], AtLatest, Some(900)),
            (&[receipt("sms", Delivered, None, 45)], AtLatest, Some(45)),
            (&[receipt("sms", Delivered, Some(365 * DAY), 31)], Uncertain, None),
            (&[receipt("sms", Delivered, Some(3_600), 31)], Uncertain, None),
            (&[receipt("sms", Delivered, Some(-3_600), 31)], Uncertain, None),
            (&[receipt("sms", Delivered, Some(60), 31)], Exact, Some(60)),
            (&[receipt("sms", Delivered, Some(-60), 31)], Exact, Some(0)),
            (&[receipt("sms", Delivered, Some(-DAY), 31), receipt("sms", Read, Some(90), 91)], AtLatest, Some(90)),
            (&[receipt("viber", Undeliverable, Some(5), 6), receipt("sms", Delivered, Some(8), 9)], Exact, Some(8)),
        ];
        for (receipts, certainty, seconds) in table {
            let delivery = delivery(receipts, GatewayClock::Real);
            let time = delivery.time.map(|time| time.as_secs());
            assert_eq!((delivery.certainty, time), (*certainty, *seconds), "{receipts:?}");
        }
    }

    #[test]
    fn rehearsal_accepts_times_in_the_near_future() {
        let ahead =
            |days: i64| delivery(&[receipt("sms", Status::Delivered, Some(days * DAY), 1)], GatewayClock::Simulated);
        assert_eq!((ahead(2).certainty, ahead(365).certainty), (Exact, Uncertain));
    }

    #[test]
    fn read_receipt_counts_for_the_channel_that_reported_it() {
        use Status::{Delivered, Read};
        let (sms, viber) = (Some(Channel::Sms), Some(Channel::Viber));
        let table: &[(&[StoredReceipt], Option<Channel>, Option<Channel>)] = &[
            (&[receipt("sms", Delivered, Some(8), 9), receipt("viber", Read, Some(99), 99)], sms, viber),
            (&[receipt("viber", Read, Some(99), 99), receipt("sms", Delivered, Some(8), 100)], sms, viber),
            (&[receipt("sms", Delivered, Some(8), 9), receipt("", Read, Some(99), 99)], sms, sms),
            (&[receipt("", Delivered, Some(8), 9), receipt("viber", Read, Some(99), 99)], viber, viber),
            (&[receipt("", Delivered, Some(8), 9), receipt("", Read, Some(99), 99)], None, None),
        ];
        for (receipts, delivered_by, read_by) in table {
            let delivery = delivery(receipts, GatewayClock::Real);
            assert_eq!((delivery.channel, delivery.read_by), (*delivered_by, *read_by));
        }
    }

    #[test]
    fn message_is_delivered_in_part_until_more_is_reported() {
        use Status::{Delivered, PartiallyDelivered, Read};
        let partial = || receipt("sms", PartiallyDelivered, Some(5), 6);
        let in_part = |receipts: &[StoredReceipt]| delivery(receipts, GatewayClock::Real).in_part;
        assert!(in_part(&[partial()]));
        assert!(!in_part(&[partial(), receipt("sms", Delivered, Some(9), 9)]));
        assert!(!in_part(&[receipt("viber", Read, Some(9), 9), partial()]));
    }

    #[test]
    fn delivery_time_starts_at_the_last_request_before_delivery() {
        let sent = [0, 7_200].map(|second| Timestamp::from_second(SENT + second).unwrap());
        for (reported, seconds) in [(40, 40), (7_230, 30)] {
            let receipts = [receipt("sms", Status::Delivered, Some(reported), 7_300)];
            let delivery =
                MessageDelivery::from_receipts(receipts.iter(), &sent, GatewayClock::Real).expect("a delivery");
            assert_eq!(delivery.time.map(|time| time.as_secs()), Some(seconds));
        }
    }
}
