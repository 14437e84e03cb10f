//! Events: facts learned later and decisions made about single rows of settled envelopes, and how they affect a row's
//! attempts.

use std::fmt;

use jiff::Timestamp;
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::message_state::MessageState;
use super::{Attempt, ExcludedRows, RowState, RunActivity, StoredReceipt};
use campaign_core::domain::{Chain, DeliveryState, Endpoint, GatewayMessageId, ReportedChannel, Row, Status};

/// A fact or decision about one row. Events are appended and never changed.
#[derive(Clone, Debug, PartialEq)]
pub struct RowEvent {
    /// The row.
    pub row: Row,
    /// The envelope of the attempt.
    pub envelope: u32,
    /// The time at which the event was recorded.
    pub at: Timestamp,
    /// The change.
    pub change: RowChange,
}

/// An event to be recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRowEvent {
    /// The row.
    pub row: Row,
    /// The envelope of the attempt.
    pub envelope: u32,
    /// The change.
    pub change: RowChange,
}

/// A fact or decision about a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredChange", into = "StoredChange")]
pub enum RowChange {
    /// The gateway knows the message: it was sent, or was rejected after it was queued.
    Found {
        /// The gateway's name for the status.
        status: String,
        /// The gateway's identifier.
        msg_id: Option<GatewayMessageId>,
        /// The channel in the answer, if there is one.
        channel: Option<ReportedChannel>,
    },
    /// The gateway was asked enough times over a long enough period, and does not know the message. The message stays
    /// in doubt.
    NotFound {
        /// The number of inquiries.
        asked: u32,
    },
    /// All inquiries are used up.
    Unresolved {
        /// The number of inquiries.
        asked: u32,
    },
    /// A decision: the message counts as sent.
    AssumedSent {
        /// The author of the decision.
        by: Author,
        /// The author's reason.
        why: Option<String>,
    },
    /// A decision: the message counts as not sent, and is not sent again automatically.
    NotSent {
        /// The author of the decision.
        by: Author,
        /// The author's reason.
        why: Option<String>,
    },
    /// A decision: the message is sent again with the same identifier.
    SendAgain {
        /// The author of the decision.
        by: Author,
        /// The author's reason.
        why: Option<String>,
    },
    /// A decision: the row is sent as a new message, with an identifier of this order.
    Retry {
        /// The author of the decision.
        by: Author,
        /// The number of the order, from 1.
        order: u32,
    },
}

/// The stored form of a change.
///
/// Stored by position: only append. A ledger contains the index of a variant and not its name. An inserted variant
/// would change the meaning of stored events, and the checksum would not detect it.
#[derive(Clone, Serialize, Deserialize)]
enum StoredChange {
    /// [`RowChange::Found`] without a channel.
    Found {
        status: String,
        msg_id: Option<GatewayMessageId>,
    },
    NotFound {
        asked: u32,
    },
    Unresolved {
        asked: u32,
    },
    AssumedSent {
        by: Author,
        why: Option<String>,
    },
    NotSent {
        by: Author,
        why: Option<String>,
    },
    SendAgain {
        by: Author,
        why: Option<String>,
    },
    Retry {
        by: Author,
        order: u32,
    },
    /// [`RowChange::Found`] with the name of a channel.
    FoundOnChannel {
        status: String,
        msg_id: Option<GatewayMessageId>,
        channel: String,
    },
}

impl From<StoredChange> for RowChange {
    fn from(stored: StoredChange) -> Self {
        match stored {
            StoredChange::Found { status, msg_id } => Self::Found { status, msg_id, channel: None },
            StoredChange::FoundOnChannel { status, msg_id, channel } => {
                Self::Found { status, msg_id, channel: ReportedChannel::parse(&channel) }
            }
            StoredChange::NotFound { asked } => Self::NotFound { asked },
            StoredChange::Unresolved { asked } => Self::Unresolved { asked },
            StoredChange::AssumedSent { by, why } => Self::AssumedSent { by, why },
            StoredChange::NotSent { by, why } => Self::NotSent { by, why },
            StoredChange::SendAgain { by, why } => Self::SendAgain { by, why },
            StoredChange::Retry { by, order } => Self::Retry { by, order },
        }
    }
}

impl From<RowChange> for StoredChange {
    fn from(change: RowChange) -> Self {
        match change {
            RowChange::Found { status, msg_id, channel: None } => Self::Found { status, msg_id },
            RowChange::Found { status, msg_id, channel: Some(channel) } => {
                Self::FoundOnChannel { status, msg_id, channel: channel.as_str().to_owned() }
            }
            RowChange::NotFound { asked } => Self::NotFound { asked },
            RowChange::Unresolved { asked } => Self::Unresolved { asked },
            RowChange::AssumedSent { by, why } => Self::AssumedSent { by, why },
            RowChange::NotSent { by, why } => Self::NotSent { by, why },
            RowChange::SendAgain { by, why } => Self::SendAgain { by, why },
            RowChange::Retry { by, order } => Self::Retry { by, order },
        }
    }
}

/// The rows that a person's order or decision plans again. If they were skipped after an attempt, that skip ends. Its
/// reason might no longer apply, and each message is checked again before it is sent.
///
/// A rule of the campaign does not end a skip. Otherwise, it would plan the row again after every run.
pub(crate) fn list_included_rows(events: &[NewRowEvent]) -> RoaringBitmap {
    let is_planned = |event: &&NewRowEvent| match &event.change {
        RowChange::Retry { by, .. } | RowChange::SendAgain { by, .. } => matches!(by, Author::Person(_)),
        _ => false,
    };
    events.iter().filter(is_planned).map(|event| event.row.get()).collect()
}

/// The author of a decision.
///
/// Stored by position: only append. A ledger contains the index of a variant and not its name. An inserted variant
/// would change the meaning of stored events, and the checksum would not detect it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Author {
    /// A person, by user name on this computer.
    Person(String),
    /// A rule of the campaign, as written there.
    Policy(String),
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Author::Person(name) => f.write_str(name),
            Author::Policy(rule) => write!(f, "the campaign (`{rule}`)"),
        }
    }
}

impl RowChange {
    /// The new state of a row whose message has this chain. `None` if the state does not change.
    pub(super) fn resulting_state(&self, chain: Chain) -> Option<RowState> {
        match self {
            RowChange::Found { status, channel, .. } => {
                let failed = Status::from_name(status).is_failure() && chain.is_exhausted_by(channel.as_ref());
                Some(if failed { RowState::Failed } else { RowState::Accepted })
            }
            RowChange::NotFound { .. } => None,
            RowChange::Unresolved { .. } => Some(RowState::Unresolved),
            RowChange::AssumedSent { .. } => Some(RowState::AssumedSent),
            RowChange::NotSent { .. } => Some(RowState::NotSent),
            RowChange::SendAgain { .. } | RowChange::Retry { .. } => Some(RowState::Planned),
        }
    }

    /// The state of a message in doubt after this change. `None` if the message stays in doubt.
    pub fn settled_state(&self, chain: Chain, endpoint: Endpoint) -> Option<RowState> {
        let mut message = MessageState::new(RowState::InDoubt, chain, endpoint);
        (message.add_change(self) && message.state != RowState::InDoubt).then_some(message.state)
    }

    /// Whether this change applies to a row in `state` whose message has this chain.
    pub fn applies_to(&self, state: RowState, chain: Chain) -> bool {
        match (self, self.resulting_state(chain)) {
            // A retry is a new message, so final states of the old message permit it.
            (RowChange::Retry { .. }, _) => matches!(state, RowState::Rejected | RowState::NotSent | RowState::Failed),
            // Proof that a message was sent overrides every conclusion.
            (RowChange::Found { .. }, _) if state == RowState::Planned => true,
            // A message that is being sent has no final state, so there is nothing to decide yet.
            (RowChange::NotSent { .. } | RowChange::SendAgain { .. }, _) if state == RowState::Sending => false,
            (_, Some(next)) => state.can_become(next),
            (_, None) => state == RowState::InDoubt,
        }
    }
}

/// The inquiries about a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedRow {
    /// The row that the gateway was asked about.
    pub row: Row,
    /// The envelope of the attempt.
    pub envelope: u32,
    /// The number of inquiries.
    pub asked: u32,
    /// The number of valid denials: long enough after the sending and after each other.
    pub negatives: u32,
    /// The first inquiry.
    pub first_at: Timestamp,
    /// The last inquiry.
    pub last_at: Timestamp,
    /// The last valid denial.
    pub negative_at: Option<Timestamp>,
    /// The last answer, as text.
    pub answer: String,
}

/// A row that is sent again as a new message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetriedRow {
    /// The row.
    pub row: Row,
    /// The envelope of the unsuccessful attempt.
    pub envelope: u32,
}

/// A change to rows by the holder of the lease.
#[derive(Clone, Debug)]
pub enum RowUpdate {
    /// Facts and decisions. An event that plans a row again reopens the run.
    Events(Vec<NewRowEvent>),
    /// A retry order: reserves identifiers and plans its rows as new messages.
    Retry(RetryOrder),
    /// These planned rows are skipped, with or without an earlier attempt.
    Skipped {
        /// The planned rows that will not be sent.
        rows: Vec<Row>,
        /// The reason as text, such as `opted out`.
        reason: &'static str,
    },
    /// The run is sharded, so that workers can draw its rows. Rows that no worker holds are drawn again.
    Sharded {
        /// The terms for the workers.
        terms: String,
        /// Whether the gateway accepted a message of the run.
        proven: bool,
    },
    /// The shards of a worker are complete and not to be drawn again.
    ShardsFinished,
    /// A drawn block does not count towards the hourly limit, because the gateway rejected the key.
    NotCounted,
}

/// An order to send rows again as new messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryOrder {
    /// The rows.
    pub rows: Vec<RetriedRow>,
    /// The author of the order.
    pub by: Author,
    /// A random number for its identifiers.
    pub random: u64,
}

/// The events of a run by row. Contains only rows with events.
#[derive(Clone, Debug, Default)]
pub struct RowEvents {
    /// The endpoint of the run.
    endpoint: Endpoint,
    rows: FxHashMap<Row, Vec<RowEvent>>,
    /// The skipped rows. Their planned messages are no longer sent.
    excluded: RoaringBitmap,
}

/// The facts about an attempt from its events and receipts.
#[derive(Clone, Copy, Debug)]
pub struct Judgement<'e> {
    /// The resulting state.
    pub state: RowState,
    /// The last event that applied.
    pub event: Option<&'e RowEvent>,
    /// The last receipt that made the message final.
    pub final_receipt: Option<&'e StoredReceipt>,
    /// The latest receipt.
    pub last_receipt: Option<&'e StoredReceipt>,
    /// Whether the gateway rejected the message before it tried any channel.
    pub refused_at_intake: bool,
    /// Whether a receipt proves that the message was sent, even if it failed later.
    pub(super) proven_by_receipt: bool,
    /// The retry order of the message's identifier. `None` for identifiers of the run itself.
    pub order: Option<u32>,
    /// The state before a retry whose new message is not sent yet.
    pub(super) before_retry: Option<RowState>,
    /// The event before the last one. It is used only if the last event is that retry.
    pub(super) event_before_retry: Option<&'e RowEvent>,
}

impl<'e> Judgement<'e> {
    /// The judgement of a message about which only the state is known.
    fn from_state(state: RowState) -> Self {
        Self {
            state,
            event: None,
            final_receipt: None,
            last_receipt: None,
            refused_at_intake: false,
            proven_by_receipt: false,
            order: None,
            before_retry: None,
            event_before_retry: None,
        }
    }

    /// Whether the last report about the message is the failure of an earlier channel.
    pub(super) fn awaits_fallback(&self) -> bool {
        let failed = match (self.last_receipt, self.event.map(|event| &event.change)) {
            (Some(last), _) => last.receipt.status.is_failure(),
            (None, Some(RowChange::Found { status, .. })) => Status::from_name(status).is_failure(),
            _ => false,
        };
        failed && matches!(self.state, RowState::Accepted | RowState::Queued)
    }

    /// The judgement of a message that these receipts prove delivered. `None` if no receipt proves a delivery.
    fn from_deliveries(receipts: impl Iterator<Item = &'e StoredReceipt>) -> Option<Self> {
        let mut delivered: Option<Self> = None;
        for receipt in receipts {
            let state = match receipt.receipt.status.delivery_state() {
                DeliveryState::Read => RowState::Read,
                DeliveryState::Delivered => RowState::Delivered,
                DeliveryState::Pending | DeliveryState::Failed => continue,
            };
            let judgement = delivered.get_or_insert(Self { order: receipt.order, ..Self::from_state(state) });
            if state == RowState::Read || judgement.final_receipt.is_none() {
                (judgement.state, judgement.final_receipt, judgement.order) = (state, Some(receipt), receipt.order);
            }
        }
        delivered
    }
}

impl RowEvents {
    /// Groups the events of a run on this endpoint by row. Keeps the order of the events of each row.
    pub fn new(events: Vec<RowEvent>, endpoint: Endpoint) -> Self {
        let mut rows = FxHashMap::<Row, Vec<RowEvent>>::default();
        for event in events {
            rows.entry(event.row).or_default().push(event);
        }
        Self { endpoint, rows, excluded: RoaringBitmap::new() }
    }

    /// Adds the excluded rows, some of which might have been skipped after an attempt.
    #[must_use]
    pub fn with_excluded_rows(self, excluded: &ExcludedRows) -> Self {
        Self { excluded: excluded.rows(), ..self }
    }

    /// The rows with events.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.rows.keys().copied()
    }

    /// Whether a row has events.
    pub fn has_events(&self, row: Row) -> bool {
        self.rows.contains_key(&row)
    }

    /// The events of a row, in order.
    pub fn for_row(&self, row: Row) -> &[RowEvent] {
        self.rows.get(&row).map_or(&[], Vec::as_slice)
    }

    /// Judges a row by its attempts, events and receipts.
    ///
    /// The last attempt counts. If the last message was not delivered, the delivery of an earlier message to the row
    /// counts, because the recipient has that message. If it was delivered and an earlier message was read, the row is
    /// read. A row that is skipped before its retry is sent, or whose run is over before that, keeps its earlier state.
    pub(super) fn judge_row<'e>(
        &'e self,
        activity: RunActivity,
        row: Row,
        attempts: &[Attempt],
        receipts: &'e [StoredReceipt],
    ) -> Judgement<'e> {
        let Some((last, earlier)) = attempts.split_last() else { return Judgement::from_state(RowState::Planned) };
        let is_void = self.voids_resends(activity, row);
        let judgement = self.judge_message(row, *last, receipts, is_void);
        let is_undelivered =
            matches!(judgement.state, RowState::Planned | RowState::NotSent | RowState::Rejected | RowState::Failed);
        if !is_undelivered && judgement.state != RowState::Delivered {
            return judgement;
        }
        let earlier_receipts = receipts.iter().filter(|receipt| receipt.order < judgement.order);
        let delivered = Judgement::from_deliveries(earlier_receipts);
        if let Some(delivered) = delivered.filter(|earlier| is_undelivered || earlier.state == RowState::Read) {
            return delivered;
        }
        if judgement.state != RowState::Planned || !is_void {
            return judgement;
        }
        match judgement.before_retry {
            Some(state @ (RowState::Rejected | RowState::Failed)) => {
                return Judgement { state, event: judgement.event_before_retry, ..judgement };
            }
            Some(state @ RowState::NotSent) if activity.is_over() => {
                return Judgement { state, event: judgement.event_before_retry, ..judgement };
            }
            _ => {}
        }
        // The last attempt was proven not sent, but an earlier attempt of the same message might be in doubt.
        let same_message =
            earlier.iter().filter(|earlier| self.find_known_order(row, earlier.envelope) == judgement.order);
        let judgements = same_message.map(|attempt| self.judge_message(row, *attempt, receipts, true));
        let is_in_doubt = |judgement: &Judgement<'_>| {
            matches!(judgement.state, RowState::InDoubt | RowState::Unresolved) && self.repeats_message_in_doubt(row)
        };
        if let Some(doubt) = judgements.clone().rfind(is_in_doubt) {
            // Later inquiries and decisions are about the last attempt.
            let last = Attempt { state: doubt.state, ..*last };
            let judged = self.judge_message(row, last, receipts, true);
            return Judgement { event: judged.event.or(doubt.event), ..judged };
        }
        let decided = judgements.clone().rfind(|judgement| judgement.state == RowState::NotSent);
        if let Some(unsent) = decided.filter(|_| activity.is_over()) {
            return unsent;
        }
        let is_earlier = |attempt: &Attempt| self.find_known_order(row, attempt.envelope) < judgement.order;
        match earlier.iter().rposition(is_earlier) {
            Some(index) => self.judge_row(activity, row, &earlier[..=index], receipts),
            None => Judgement { state: RowState::Skipped, ..judgement },
        }
    }

    /// Judges the message of an attempt by the events and receipts of its row.
    ///
    /// An event or receipt that does not apply changes nothing. If nothing more is sent to the row, an order to send a
    /// message in doubt again is void, and the message stays in doubt.
    fn judge_message<'e>(
        &'e self,
        row: Row,
        attempt: Attempt,
        receipts: &'e [StoredReceipt],
        sends_nothing_more: bool,
    ) -> Judgement<'e> {
        let is_void = |event: &&RowEvent| sends_nothing_more && matches!(event.change, RowChange::SendAgain { .. });
        let order = self.find_known_order(row, attempt.envelope);
        let relevant = self.for_row(row).iter().filter(|event| event.envelope == attempt.envelope && !is_void(event));
        let mut events = relevant.peekable();
        let mut receipts = receipts.iter().filter(|receipt| receipt.order == order).peekable();
        let mut message = MessageState::new(attempt.state, attempt.chain, self.endpoint);
        let mut judgement = Judgement { order, ..Judgement::from_state(attempt.state) };
        // Events and receipts apply in chronological order. An event precedes a receipt of the same time.
        loop {
            let event = events.next_if(|event| receipts.peek().is_none_or(|receipt| event.at <= receipt.at));
            if let Some(event) = event {
                if message.add_change(&event.change) {
                    judgement.event_before_retry = judgement.event;
                    judgement.event = Some(event);
                }
                continue;
            }
            let Some(receipt) = receipts.next() else { break };
            judgement.last_receipt = Some(receipt);
            if !message.add_receipt(receipt) {
                continue;
            }
            let is_refusal = message.state == RowState::Failed && receipt.receipt.status == Status::Rejected;
            judgement.proven_by_receipt |= !is_refusal;
            if message.state != RowState::Accepted {
                judgement.final_receipt = Some(receipt);
            }
        }
        (judgement.state, judgement.before_retry) = (message.state, message.before_retry);
        judgement.refused_at_intake = message.refused_at_intake;
        judgement
    }

    /// Whether orders to send a message of the row again are void: the run is over, or the row is skipped.
    fn voids_resends(&self, activity: RunActivity, row: Row) -> bool {
        activity.is_over() || self.excluded.contains(row.get())
    }

    /// Judges the message of each attempt of a row.
    fn judge_messages<'e>(
        &'e self,
        activity: RunActivity,
        row: Row,
        attempts: &[Attempt],
        receipts: &'e [StoredReceipt],
    ) -> impl DoubleEndedIterator<Item = Judgement<'e>> + Clone {
        let is_void = self.voids_resends(activity, row);
        attempts.iter().map(move |attempt| self.judge_message(row, *attempt, receipts, is_void))
    }

    /// Whether a receipt proves that the message of an attempt was sent, and not rejected. Callers ask only about
    /// attempts that do not count as sent yet, because receipts of an accepted attempt prove nothing new.
    pub(super) fn is_proven_sent(&self, row: Row, attempt: Attempt, receipts: &[StoredReceipt]) -> bool {
        self.judge_message(row, attempt, receipts, self.voids_resends(RunActivity::Idle, row)).proven_by_receipt
    }

    /// Like [`RowEvents::find_order`], with a shortcut for rows without events.
    pub(super) fn find_known_order(&self, row: Row, envelope: u32) -> Option<u32> {
        if self.has_events(row) { self.find_order(row, envelope) } else { None }
    }

    /// The retry order whose identifier the attempt in this envelope uses. `None` if the attempt uses the run's own
    /// identifier.
    pub fn find_order(&self, row: Row, envelope: u32) -> Option<u32> {
        let before = self.for_row(row).iter().filter(|event| event.envelope < envelope);
        before.rev().find_map(|event| match event.change {
            RowChange::Retry { order, .. } => Some(order),
            _ => None,
        })
    }

    /// The retry order whose identifier the next attempt uses. `None` if the attempt uses the run's own identifier.
    pub fn next_order(&self, row: Row) -> Option<u32> {
        self.find_order(row, u32::MAX)
    }

    /// Whether the next attempt of a row repeats a message in doubt, which might have been sent.
    pub fn repeats_message_in_doubt(&self, row: Row) -> bool {
        let order = self.next_order(row);
        let is_send_again = |event: &&RowEvent| matches!(event.change, RowChange::SendAgain { .. });
        self.for_row(row).iter().filter(is_send_again).any(|event| self.find_order(row, event.envelope) == order)
    }

    /// Whether a row has or might have a message. `attempts` are all attempts of the row, in order.
    ///
    /// An order to send again does not remove the doubt about earlier attempts. A decision that nothing was sent
    /// removes the doubt about earlier attempts of the same message. A message that failed was sent, even if a retry of
    /// it is planned.
    pub fn has_message(
        &self,
        activity: RunActivity,
        row: Row,
        attempts: &[Attempt],
        receipts: &[StoredReceipt],
    ) -> bool {
        let mut judgements = self.judge_messages(activity, row, attempts, receipts);
        // The decision is about the message of the last attempt. A message with another identifier stays in doubt.
        let is_unsent = |last: &Judgement<'_>| [Some(last.state), last.before_retry].contains(&Some(RowState::NotSent));
        let unsent_order = judgements.clone().next_back().filter(is_unsent).map(|last| last.order);
        judgements.any(|Judgement { state, event, before_retry, order, .. }| match state {
            RowState::InDoubt | RowState::Unresolved => unsent_order != Some(order),
            RowState::Planned => {
                let repeats_doubt = event.is_some_and(|event| matches!(event.change, RowChange::SendAgain { .. }));
                (repeats_doubt && unsent_order != Some(order)) || before_retry.is_some_and(RowState::is_guarded)
            }
            known => known.is_guarded(),
        })
    }

    /// Proof that an attempt before `envelope` was sent after all, although the message was sent again with the same
    /// identifier on the same channels.
    pub fn find_duplicate(&self, row: Row, envelope: u32, chain: Chain) -> Option<&RowEvent> {
        let order = self.find_order(row, envelope);
        self.for_row(row).iter().find(|event| {
            let is_earlier_attempt = event.envelope < envelope && self.find_order(row, event.envelope) == order;
            is_earlier_attempt
                && matches!(event.change, RowChange::Found { .. })
                && event.change.resulting_state(chain) != Some(RowState::Failed)
        })
    }

    /// Whether receipts prove the delivery of a message of the row, although the gateway also has a later message with
    /// another identifier.
    pub fn has_two_messages(&self, row: Row, attempts: &[Attempt], receipts: &[StoredReceipt]) -> bool {
        let judgements = self.judge_messages(RunActivity::Idle, row, attempts, receipts);
        let delivered = judgements.clone().filter(|judgement| judgement.state.is_delivered());
        let first_delivered = delivered.map(|judgement| judgement.order).min();
        first_delivered
            .is_some_and(|first| judgements.clone().any(|later| later.order > first && later.state.is_with_gateway()))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::Author;
    use campaign_core::domain::{OperationKind, Receipt, ReceiptSource};

    fn row() -> Row {
        Row::new(7)
    }

    fn events(changes: Vec<(u32, RowChange)>) -> RowEvents {
        let event = |(envelope, change)| RowEvent { row: row(), envelope, at: Timestamp::UNIX_EPOCH, change };
        RowEvents::new(changes.into_iter().map(event).collect(), Endpoint::Sync)
    }

    fn attempt(envelope: u32, state: RowState) -> Attempt {
        Attempt { envelope, state, chain: OperationKind::Sms.into() }
    }

    fn found(status: &str) -> RowChange {
        RowChange::Found { status: status.into(), msg_id: None, channel: None }
    }

    fn author() -> Author {
        Author::Person("olena".into())
    }

    #[test]
    fn proof_overrides_decisions_and_decisions_override_doubt() {
        let sent = || RowChange::AssumedSent { by: author(), why: None };
        let unresolved = || RowChange::Unresolved { asked: 20 };
        for (changes, state) in [
            (vec![], RowState::InDoubt),
            (vec![RowChange::NotFound { asked: 3 }], RowState::InDoubt),
            (vec![unresolved()], RowState::Unresolved),
            (vec![unresolved(), sent()], RowState::AssumedSent),
            (vec![sent(), found("DELIVERED")], RowState::Accepted),
            (vec![found("REJECTED")], RowState::Failed),
            (vec![found("DELIVERED"), sent()], RowState::Accepted),
            (vec![found("DELIVERED"), RowChange::SendAgain { by: author(), why: None }], RowState::Accepted),
            (vec![RowChange::SendAgain { by: author(), why: None }], RowState::Planned),
            (vec![RowChange::NotSent { by: author(), why: None }], RowState::NotSent),
        ] {
            let events = events(changes.iter().cloned().map(|change| (3, change)).collect());
            assert_eq!(
                events.judge_row(RunActivity::Idle, row(), &[attempt(3, RowState::InDoubt)], &[]).state,
                state,
                "{changes:?}"
            );
        }
    }

    #[test]
    fn events_of_earlier_attempts_do_not_change_the_state() {
        let events = events(vec![(3, RowChange::SendAgain { by: author(), why: None }), (3, found("DELIVERED"))]);
        let judgement = events.judge_row(RunActivity::Idle, row(), &[attempt(5, RowState::Rejected)], &[]);
        assert_eq!((judgement.state, judgement.event), (RowState::Rejected, None));
        assert!(events.find_duplicate(row(), 5, Chain::UNKNOWN).is_some(), "the first attempt was sent after all");
        assert!(events.find_duplicate(row(), 3, Chain::UNKNOWN).is_none());
    }

    #[test]
    fn send_again_decision_keeps_the_earlier_message_in_doubt() {
        let again = || RowChange::SendAgain { by: author(), why: None };
        let not_sent = || RowChange::NotSent { by: author(), why: None };
        let doubt = |envelope| attempt(envelope, RowState::InDoubt);
        for (changes, attempts, expected) in [
            (vec![], vec![doubt(3)], true),
            (vec![(3, again())], vec![doubt(3)], true),
            (vec![(3, again())], vec![doubt(3), attempt(5, RowState::Rejected)], true),
            (vec![(3, not_sent())], vec![doubt(3)], false),
            (vec![(3, again()), (5, not_sent())], vec![doubt(3), doubt(5)], false),
            (vec![(3, again()), (5, not_sent()), (3, found("READ"))], vec![doubt(3), doubt(5)], true),
            (vec![], vec![attempt(3, RowState::Rejected)], false),
            (vec![], vec![attempt(3, RowState::Planned), attempt(4, RowState::Accepted)], true),
        ] {
            let events = events(changes.clone());
            assert_eq!(
                events.has_message(RunActivity::Idle, row(), &attempts, &[]),
                expected,
                "{changes:?} {attempts:?}"
            );
        }
        assert!(events(vec![(3, again())]).repeats_message_in_doubt(row()));
        assert!(!events(vec![(3, not_sent())]).repeats_message_in_doubt(row()));
        let retried = events(vec![(3, again()), (5, RowChange::Retry { by: author(), order: 1 })]);
        assert!(!retried.repeats_message_in_doubt(row()), "a new message is not in doubt");
    }

    #[test]
    fn retry_is_a_new_message_with_its_own_identifiers() {
        let retry = |order| RowChange::Retry { by: author(), order };
        let events = events(vec![(3, retry(1)), (5, retry(2)), (3, found("DELIVERED"))]);
        assert_eq!(
            events.judge_row(RunActivity::Idle, row(), &[attempt(5, RowState::Rejected)], &[]).state,
            RowState::Planned
        );
        assert_eq!(
            events.judge_row(RunActivity::Idle, row(), &[attempt(3, RowState::NotSent)], &[]).state,
            RowState::Accepted,
            "proof before the retry was sent"
        );
        let orders = [3, 4, 5, 6].map(|envelope| events.find_order(row(), envelope));
        assert_eq!(orders, [None, Some(1), Some(1), Some(2)]);
        assert_eq!(events.next_order(row()), Some(2));
        assert!(events.find_duplicate(row(), 6, Chain::UNKNOWN).is_none(), "the old message does not count");
    }

    #[test]
    fn skipped_retry_keeps_the_state_of_the_sent_message() {
        let retry = RowChange::Retry { by: author(), order: 1 };
        let excluded = ExcludedRows::from_skipped(&[row()], "opted out");
        let stored = |status| StoredReceipt {
            order: None,
            at: Timestamp::UNIX_EPOCH,
            receipt: Receipt::new(ReceiptSource::Webhook, status),
        };
        let (first, new) = (attempt(3, RowState::Accepted), attempt(5, RowState::Planned));
        let failed = [stored(Status::Expired)];
        let mut event = RowEvent { row: row(), envelope: 3, at: Timestamp::from_second(9).unwrap(), change: retry };
        let judge = |event: &RowEvent, attempts: &[Attempt], receipts: &[StoredReceipt]| {
            let events = RowEvents::new(vec![event.clone()], Endpoint::Sync).with_excluded_rows(&excluded);
            events.judge_row(RunActivity::Idle, row(), attempts, receipts).state
        };
        assert_eq!(judge(&event, &[first], &failed), RowState::Failed, "the retry was only ordered");
        assert_eq!(judge(&event, &[first, new], &failed), RowState::Failed, "the new message was proven not sent");
        let rejected = attempt(3, RowState::Rejected);
        assert_eq!(judge(&event, &[rejected, new], &[]), RowState::Rejected);
        assert_eq!(judge(&event, &[attempt(3, RowState::NotSent)], &[]), RowState::Skipped, "nothing was ever sent");
        event.change = found("ACCEPTED");
        assert_eq!(judge(&event, &[attempt(3, RowState::Planned)], &[]), RowState::Accepted);
    }

    #[test]
    fn receipt_disproves_a_not_sent_decision_despite_a_retry() {
        let not_sent = RowChange::NotSent { by: author(), why: None };
        let events = events(vec![(3, not_sent), (3, RowChange::Retry { by: author(), order: 1 })]);
        let attempts = [attempt(3, RowState::InDoubt)];
        for (status, state) in [(Status::Accepted, RowState::Accepted), (Status::Expired, RowState::Failed)] {
            let at = Timestamp::from_second(9).unwrap();
            let receipts = [StoredReceipt { order: None, at, receipt: Receipt::new(ReceiptSource::Webhook, status) }];
            for activity in [RunActivity::Idle, RunActivity::Cancelled] {
                assert_eq!(events.judge_row(activity, row(), &attempts, &receipts).state, state);
            }
            assert!(events.has_message(RunActivity::Idle, row(), &attempts, &receipts));
        }
        assert!(
            !events.has_message(RunActivity::Idle, row(), &attempts, &[]),
            "nothing was sent, as the person decided"
        );
    }

    #[test]
    fn decision_that_nothing_was_sent_is_about_one_message() {
        let (by, why) = (author(), None);
        let mut changes = vec![
            (3, RowChange::SendAgain { by: by.clone(), why: why.clone() }),
            (5, RowChange::Retry { by: by.clone(), order: 1 }),
            (7, RowChange::NotSent { by: by.clone(), why }),
        ];
        let attempts = [(3, RowState::InDoubt), (5, RowState::Rejected), (7, RowState::InDoubt)];
        let attempts = attempts.map(|(envelope, state)| attempt(envelope, state));
        assert!(
            events(changes.clone()).has_message(RunActivity::Idle, row(), &attempts, &[]),
            "the first message might have been sent"
        );
        changes.push((7, RowChange::Retry { by, order: 2 }));
        assert!(events(changes).has_message(RunActivity::Idle, row(), &attempts, &[]));
    }

    #[test]
    fn cancelled_resend_of_an_unsent_message_is_not_guarded() {
        let not_sent = RowChange::NotSent { by: author(), why: None };
        let send_again = RowChange::SendAgain { by: author(), why: None };
        let events = events(vec![(5, not_sent), (5, send_again)]);
        // The message was ordered again, and the new attempt was proven not sent.
        let attempts = [attempt(5, RowState::InDoubt), attempt(7, RowState::Planned)];
        for attempts in [&attempts[..1], &attempts] {
            assert_eq!(events.judge_row(RunActivity::Cancelled, row(), attempts, &[]).state, RowState::NotSent);
        }
        assert!(events.has_message(RunActivity::Idle, row(), &attempts[..1], &[]), "it can still be sent");
        assert!(!events.has_message(RunActivity::Cancelled, row(), &attempts[..1], &[]));
    }

    #[test]
    fn latest_doubt_counts_if_an_order_to_send_again_is_void() {
        let order = || RowChange::SendAgain { by: author(), why: None };
        let events = events(vec![(3, RowChange::Unresolved { asked: 20 }), (3, order()), (5, order())]);
        let attempts = [(3, RowState::InDoubt), (5, RowState::InDoubt), (7, RowState::Planned)];
        let attempts = attempts.map(|(envelope, state)| attempt(envelope, state));
        assert_eq!(events.judge_row(RunActivity::Cancelled, row(), &attempts, &[]).state, RowState::InDoubt);
        let judgement = events.judge_row(RunActivity::Cancelled, row(), &[attempts[0], attempts[2]], &[]);
        assert_eq!(judgement.state, RowState::Unresolved);
        assert!(judgement.event.is_some(), "the inquiries explain the state");
    }

    #[test]
    fn decisions_apply_after_a_void_resend_order() {
        let attempts = [attempt(3, RowState::InDoubt), attempt(5, RowState::Planned)];
        let (by, why) = (author(), None);
        for (change, state) in [
            (None, RowState::InDoubt),
            (Some(RowChange::AssumedSent { by: by.clone(), why: why.clone() }), RowState::AssumedSent),
            (Some(RowChange::NotSent { by: by.clone(), why: why.clone() }), RowState::NotSent),
            (Some(RowChange::Unresolved { asked: 20 }), RowState::Unresolved),
            (Some(found("DELIVERED")), RowState::Accepted),
        ] {
            let order = (3, RowChange::SendAgain { by: by.clone(), why: why.clone() });
            let changes = [order].into_iter().chain(change.map(|change| (5, change)));
            let events = events(changes.collect());
            assert_eq!(events.judge_row(RunActivity::Cancelled, row(), &attempts, &[]).state, state);
            let skipped = events.with_excluded_rows(&ExcludedRows::from_skipped(&[row()], "opted out"));
            assert_eq!(skipped.judge_row(RunActivity::Idle, row(), &attempts, &[]).state, state);
        }
    }

    #[test]
    fn earlier_delivery_counts_if_the_last_message_failed() {
        let events = events(vec![(3, RowChange::Retry { by: author(), order: 1 })]);
        let stored = |order, status| StoredReceipt {
            order,
            at: Timestamp::from_second(9).unwrap(),
            receipt: Receipt::new(ReceiptSource::Webhook, status),
        };
        let late = stored(None, Status::Delivered);
        for (last, receipts, state) in [
            (RowState::Planned, vec![late.clone()], RowState::Delivered),
            (RowState::Rejected, vec![late.clone()], RowState::Delivered),
            (RowState::Accepted, vec![late.clone(), stored(Some(1), Status::Expired)], RowState::Delivered),
            (RowState::Accepted, vec![stored(Some(1), Status::Read), late.clone()], RowState::Read),
            (RowState::Accepted, vec![late.clone()], RowState::Accepted),
            (RowState::InDoubt, vec![late.clone()], RowState::InDoubt),
            (RowState::Accepted, vec![stored(None, Status::Read), stored(Some(1), Status::Delivered)], RowState::Read),
            (RowState::Accepted, vec![stored(Some(1), Status::Delivered), stored(None, Status::Read)], RowState::Read),
            (RowState::Accepted, vec![late.clone(), stored(Some(1), Status::Delivered)], RowState::Delivered),
        ] {
            let judgement = events.judge_row(
                RunActivity::Idle,
                row(),
                &[attempt(3, RowState::Accepted), attempt(5, last)],
                &receipts,
            );
            assert_eq!(judgement.state, state, "{last} {receipts:?}");
        }
    }

    #[test]
    fn row_with_a_delivery_and_a_later_message_has_two_messages() {
        let events = events(vec![(3, RowChange::Retry { by: author(), order: 1 })]);
        let stored = |order, status| StoredReceipt {
            order,
            at: Timestamp::from_second(9).unwrap(),
            receipt: Receipt::new(ReceiptSource::Webhook, status),
        };
        let (first, second) = (|status| stored(None, status), |status| stored(Some(1), status));
        for (last, receipts, expected) in [
            (RowState::Accepted, vec![], false),
            (RowState::Accepted, vec![first(Status::Undeliverable)], false),
            (RowState::Accepted, vec![second(Status::Read)], false),
            (RowState::Accepted, vec![first(Status::Delivered)], true),
            (RowState::Queued, vec![first(Status::Read)], true),
            (RowState::Accepted, vec![second(Status::Delivered), first(Status::Delivered)], true),
            (RowState::Accepted, vec![second(Status::Undeliverable), first(Status::Read)], false),
            (RowState::Rejected, vec![first(Status::Delivered)], false),
            (RowState::Planned, vec![first(Status::Delivered)], false),
        ] {
            let attempts = [attempt(3, RowState::NotSent), attempt(5, last)];
            assert_eq!(events.has_two_messages(row(), &attempts, &receipts), expected, "{last} {receipts:?}");
        }
    }
}
