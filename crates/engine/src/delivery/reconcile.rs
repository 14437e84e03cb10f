//! Reconciliation: asks the gateway about rows in doubt, using our identifiers and staying within the account's rate
//! limit.
//!
//! Reconciliation sends no messages. It stores each answer in the ledger before it reports the answer.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::status_poll::{MAX_INQUIRIES, StatusInquiry, to_receipt};
use campaign_core::domain::{Chain, Endpoint, MessageId, OperationOutcome, ReceiptSource, Row};
use campaign_core::failpoint;
use campaign_gateway::{Gateway, StatusAnswer};
use campaign_ledger::{
    Allowance, AskedRow, EnvelopeReader, EnvelopeRecord, Lease, Ledger, LedgerError, NewReceipt, NewRowEvent,
    Ownership, RowChange, RowState, RowStates, RowUpdate, Run, RunUpdate,
};

/// Asks about the rows in doubt of a run.
pub struct Reconciler<'a> {
    /// Stores the answers as inquiries, row events and receipts.
    pub ledger: &'a dyn Ledger,
    /// Answers whether it has the messages.
    pub gateway: &'a dyn Gateway,
    /// The run with the rows in doubt.
    pub run: &'a Run,
    /// The lease of the run.
    pub lease: Lease,
    /// The account and its rate limit.
    pub allowance: Allowance,
    /// The maximum number of operations in an envelope.
    pub max_batch: usize,
    /// The wall clock.
    pub clock: fn() -> Timestamp,
}

/// The rows in doubt of a run, and a reference for the answers.
#[derive(Debug, Default)]
pub struct MessagesInDoubt {
    /// The rows to ask about, in ascending order.
    pub rows: Vec<MessageInDoubt>,
    /// A message that the gateway certainly accepted.
    pub reference: Option<MessageId>,
}

/// The result of a reconciliation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconciliation {
    /// Rows that were queried.
    pub asked: u64,
    /// Rows whose message the gateway has.
    pub found: u64,
    /// Rows whose message the gateway has, but whose delivery failed.
    pub failed: u64,
    /// Rows whose message the gateway does not know, after enough proof.
    pub not_found: u64,
    /// Rows that are no longer asked about.
    pub unresolved: u64,
    /// Rows whose answers proved nothing, because the gateway cannot tell sent from unsent messages.
    pub blind: u64,
    /// Rows without a usable answer.
    pub unclear: u64,
    /// Whether another process took over the run.
    pub lost: bool,
}

impl MessagesInDoubt {
    /// Loads the rows of a run in one of the `selected_states`, and the latest message that the gateway certainly
    /// accepted.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load(
        ledger: &dyn Ledger,
        run: &Run,
        states: &RowStates,
        selected_states: &[RowState],
    ) -> Result<Self, LedgerError> {
        let mut inquiries: HashMap<Row, AskedRow> =
            ledger.load_asked_rows(run.key).await?.into_iter().map(|inquiry| (inquiry.row, inquiry)).collect();
        let mut rows = HashMap::new();
        let mut reference = None;
        let mut envelopes = EnvelopeReader::new(ledger, run.key);
        while let Some(envelope) = envelopes.next_envelope().await? {
            reference = find_reference(run, states, &envelope).or(reference);
            for sent in &envelope.rows {
                if states.recorded_state(sent.row).is_some_and(|state| selected_states.contains(&state)) {
                    // A later attempt replaces the previous one. An attempt might have waited a long time before it was
                    // sent, so the time of its outcome is used if known.
                    let since = envelope.settled.as_ref().map_or(envelope.begun_at, |(at, _)| *at);
                    rows.insert(sent.row, (envelope.envelope, envelope.chain(sent), since));
                }
            }
        }
        let build_doubt = |(row, (envelope, chain, since))| {
            let events = states.events();
            let not_found = events
                .for_row(row)
                .iter()
                .any(|event| event.envelope == envelope && matches!(event.change, RowChange::NotFound { .. }));
            let id = run.message_id(row, events.find_order(row, envelope))?;
            // Answers about an earlier attempt say nothing about this attempt.
            let inquiry = inquiries.remove(&row).filter(|inquiry| inquiry.envelope == envelope);
            let unresolved = states.recorded_state(row) == Some(RowState::Unresolved);
            Some(MessageInDoubt { row, id, envelope, chain, since, history: inquiry, not_found, unresolved })
        };
        let mut rows: Vec<MessageInDoubt> = rows.into_iter().filter_map(build_doubt).collect();
        rows.sort_by_key(|doubt| doubt.row);
        Ok(Self { rows, reference })
    }
}

/// The last message of an envelope that the gateway accepted or queued, so the gateway must know it.
fn find_reference(run: &Run, states: &RowStates, envelope: &EnvelopeRecord) -> Option<MessageId> {
    let (_, outcomes) = envelope.settled.as_ref()?;
    let is_accepted = |outcome: &OperationOutcome| {
        matches!(outcome, OperationOutcome::Accepted { .. } | OperationOutcome::Queued { .. })
    };
    let (sent, _) = envelope.rows.iter().zip(outcomes).rfind(|(_, outcome)| is_accepted(outcome))?;
    run.message_id(sent.row, states.events().find_order(sent.row, envelope.envelope))
}

impl Reconciler<'_> {
    /// Asks about every row once and stores the results. Settled rows are removed from `doubts`.
    ///
    /// Rows that cannot be asked about before `deadline` stay in `doubts`.
    ///
    /// # Errors
    /// If the ledger cannot be read or written.
    pub async fn ask_rows(
        &self,
        doubts: &mut MessagesInDoubt,
        deadline: Instant,
    ) -> Result<Reconciliation, LedgerError> {
        let mut reconciliation = Reconciliation::default();
        let mut unsettled = Vec::new();
        let mut rows = std::mem::take(&mut doubts.rows).into_iter().peekable();
        while rows.peek().is_some() && !reconciliation.lost {
            let mut group: Vec<MessageInDoubt> = rows.by_ref().take(self.group_size(deadline)).collect();
            let ids = group.iter().map(|doubt| doubt.id);
            let answers = self.status_inquiry().ask_with_probe(ids, doubts.reference, deadline).await?;
            let in_time = answers.is_some();
            if let Some((trust, answers)) = answers {
                self.store_answers(&mut group, trust, &answers, &mut reconciliation).await?;
            }
            unsettled.append(&mut group);
            if !in_time {
                break;
            }
        }
        unsettled.extend(rows);
        doubts.rows = unsettled;
        Ok(reconciliation)
    }

    fn status_inquiry(&self) -> StatusInquiry<'_> {
        let Self { ledger, gateway, run, ref allowance, max_batch, .. } = *self;
        StatusInquiry { ledger, gateway, run, allowance, max_batch }
    }

    /// The size of a group, chosen so that little of the rate is reserved but unused at `deadline`.
    fn group_size(&self, deadline: Instant) -> usize {
        let seconds = deadline.saturating_duration_since(Instant::now()).as_secs_f64();
        let max = self.allowance.rate.map_or(MAX_INQUIRIES, |rate| (seconds * rate) as usize);
        // Each group includes the probe and the reference. A group has at least one row.
        max.min(MAX_INQUIRIES).min(self.max_batch).saturating_sub(2).max(1)
    }

    /// Stores the answers about a group. Settled rows are removed from the group.
    async fn store_answers(
        &self,
        group: &mut Vec<MessageInDoubt>,
        trust: StatusTrust,
        answers: &[StatusAnswer],
        reconciliation: &mut Reconciliation,
    ) -> Result<(), LedgerError> {
        let (now, patience) = ((self.clock)(), denial_wait(self.run.endpoint, self.run.lag));
        let (mut inquiries, mut events) = (Vec::new(), Vec::new());
        let (mut unsettled, mut receipts) = (Vec::new(), Vec::new());
        for (mut doubt, answer) in std::mem::take(group).into_iter().zip(answers) {
            receipts.extend(self.build_receipt(&doubt, answer).filter(|_| trust != StatusTrust::Blind));
            let (inquiry, change) = evaluate_answer(&doubt, trust, answer, patience, now);
            reconciliation.asked += 1;
            let unclear = matches!(answer, StatusAnswer::Unclear(_));
            reconciliation.unclear += u64::from(unclear);
            reconciliation.blind += u64::from(trust == StatusTrust::Blind && !unclear);
            inquiries.push(inquiry.clone());
            doubt.history = Some(inquiry);
            let settled = change.as_ref().is_some_and(|change| {
                let state = change.settled_state(doubt.chain, self.run.endpoint);
                reconciliation.count_change(change, state)
            });
            if let Some(change) = change {
                doubt.not_found |= matches!(change, RowChange::NotFound { .. });
                events.push(NewRowEvent { row: doubt.row, envelope: doubt.envelope, change });
            }
            if !settled {
                unsettled.push(doubt);
            }
        }
        *group = unsettled;
        self.ledger.update_runs(vec![self.run.key], RunUpdate::Inquiries(inquiries)).await?;
        failpoint::pass("inquiries.kept");
        if self.ledger.update_rows(self.lease, RowUpdate::Events(events)).await? == Ownership::Lost {
            reconciliation.lost = true;
        }
        // The event proves that the message was sent. The delivery status in the answer is treated like that of any
        // other receipt.
        self.ledger.store_receipts(receipts).await?;
        failpoint::pass("events.kept");
        Ok(())
    }
}

impl Reconciler<'_> {
    /// The receipt in an answer. `None` if the answer contains no status.
    fn build_receipt(&self, doubt: &MessageInDoubt, answer: &StatusAnswer) -> Option<NewReceipt> {
        let receipt = to_receipt(answer.clone(), ReceiptSource::Asked)?;
        let (_, order) = self.run.find_message(doubt.id)?;
        Some(NewReceipt { run: self.run.key, row: doubt.row, order, receipt, opt_out: None, opt_in: None })
    }
}

impl Reconciliation {
    /// Counts a change to a row whose state is now `state`. Returns whether the row is settled.
    fn count_change(&mut self, change: &RowChange, state: Option<RowState>) -> bool {
        match (change, state) {
            (RowChange::Found { .. }, Some(RowState::Failed)) => self.failed += 1,
            (RowChange::Found { .. }, _) => self.found += 1,
            (RowChange::Unresolved { .. }, _) => self.unresolved += 1,
            (RowChange::NotFound { .. }, _) => {
                self.not_found += 1;
                return false;
            }
            // Answers never contain a decision.
            _ => {}
        }
        true
    }

    /// The sum of this result and `other`.
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

/// The waits after the end of a run before each inquiry about its rows in doubt.
pub const RECONCILE_WAITS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(15)];
/// The maximum time that a finished run spends on reconciling its rows in doubt.
pub const MAX_RECONCILE_TIME: Duration = Duration::from_secs(30);

/// The maximum number of inquiries about a row.
const MAX_ROW_INQUIRIES: u32 = 20;
/// The time after sending during which the gateway is asked about a row.
const MAX_AGE: Duration = Duration::from_secs(24 * 3_600);
/// The number of denials, each after its wait, that make a row `not found`.
const DENIALS_NEEDED: u32 = 3;

/// A row in doubt, with the answers so far.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageInDoubt {
    /// The row.
    pub row: Row,
    /// Our identifier of the message.
    pub id: MessageId,
    /// The envelope of the attempt in doubt.
    pub envelope: u32,
    /// The channels of its message.
    pub chain: Chain,
    /// The time since which the attempt has been in doubt. An envelope without an outcome might have been sent at any
    /// time since it began.
    pub since: Timestamp,
    /// The answers so far.
    pub history: Option<AskedRow>,
    /// Whether the row is already marked as not found.
    pub not_found: bool,
    /// Whether the row is already unresolved. Only proof changes that.
    pub unresolved: bool,
}

/// The trust in the gateway's status answers, based on a message that was never sent and one that was certainly
/// accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusTrust {
    /// The gateway knows accepted messages and denies unsent ones: all its answers count.
    Full,
    /// The gateway denies unsent messages, but no accepted message can be compared: only known messages count.
    KnownOnly,
    /// The gateway's answers prove nothing.
    Blind,
}

impl StatusTrust {
    /// The trust in the gateway's answers that follows from the answers about the probe and the reference. `reference`
    /// is the answer about a message that the gateway certainly accepted, if there is such a message.
    pub(super) fn from_answers(probe: &StatusAnswer, reference: Option<&StatusAnswer>) -> Self {
        match (probe, reference) {
            (StatusAnswer::Denied(_), Some(StatusAnswer::Known { .. })) => StatusTrust::Full,
            (StatusAnswer::Denied(_), None | Some(StatusAnswer::Unclear(_))) => StatusTrust::KnownOnly,
            (StatusAnswer::Denied(_), Some(StatusAnswer::Denied(_)))
            | (StatusAnswer::Known { .. } | StatusAnswer::Unclear(_), _) => StatusTrust::Blind,
        }
    }
}

/// The time that must pass after sending, and after the last denial that counted, before a denial counts.
///
/// `lag` is the longest observed time until the gateway knew a message. The wait is at least ten times as long.
pub fn denial_wait(endpoint: Endpoint, lag: Option<Duration>) -> Duration {
    let minimum = match endpoint {
        Endpoint::Sync => Duration::from_secs(60),
        Endpoint::Async => Duration::from_secs(600),
    };
    minimum.max(lag.unwrap_or_default() * 10)
}

/// Evaluates an answer, and returns the updated inquiry and the change to the row, if there is one.
pub(super) fn evaluate_answer(
    doubt: &MessageInDoubt,
    trust: StatusTrust,
    answer: &StatusAnswer,
    patience: Duration,
    now: Timestamp,
) -> (AskedRow, Option<RowChange>) {
    let mut inquiry = record_answer(doubt, answer, now);
    if let (StatusAnswer::Known { status, msg_id, channel, .. }, StatusTrust::Full | StatusTrust::KnownOnly) =
        (answer, trust)
    {
        let (status, msg_id, channel) = (status.name().to_owned(), msg_id.clone(), channel.clone());
        return (inquiry, Some(RowChange::Found { status, msg_id, channel }));
    }
    if trust == StatusTrust::Blind && !matches!(answer, StatusAnswer::Unclear(_)) {
        inquiry.answer = format!(
            "{}; this is inconclusive, because the gateway gives the same response for sent and unsent messages",
            inquiry.answer
        );
    }
    if matches!((answer, trust), (StatusAnswer::Denied(_), StatusTrust::Full)) {
        let last_counted = inquiry.negative_at.unwrap_or(doubt.since);
        if elapsed(last_counted, now) >= patience {
            inquiry.negatives += 1;
            inquiry.negative_at = Some(now);
        }
    }
    let change = if doubt.unresolved {
        None
    } else if inquiry.negatives >= DENIALS_NEEDED && !doubt.not_found {
        Some(RowChange::NotFound { asked: inquiry.asked })
    } else if inquiry.asked >= MAX_ROW_INQUIRIES || elapsed(doubt.since, now) >= MAX_AGE {
        Some(RowChange::Unresolved { asked: inquiry.asked })
    } else {
        None
    };
    (inquiry, change)
}

/// The record of inquiries about a message, with another answer added.
fn record_answer(doubt: &MessageInDoubt, answer: &StatusAnswer, now: Timestamp) -> AskedRow {
    let answer = match answer {
        StatusAnswer::Known { status, .. } => format!("status {status}"),
        StatusAnswer::Denied(text) if text.is_empty() => "message unknown".to_owned(),
        StatusAnswer::Denied(text) => text.clone(),
        StatusAnswer::Unclear(reason) => format!("no usable response: {reason}"),
    };
    match &doubt.history {
        Some(known) => AskedRow { asked: known.asked + 1, last_at: now, answer, ..known.clone() },
        None => AskedRow {
            row: doubt.row,
            envelope: doubt.envelope,
            asked: 1,
            negatives: 0,
            first_at: now,
            last_at: now,
            negative_at: None,
            answer,
        },
    }
}

/// The time between two instants. Zero if the clock was set back.
fn elapsed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use campaign_core::domain::{GatewayMessageId, Status};

    const PATIENCE: Duration = Duration::from_secs(60);

    fn known() -> StatusAnswer {
        StatusAnswer::Known {
            status: Status::Delivered,
            msg_id: Some(GatewayMessageId::Number(5)),
            channel: None,
            updated: None,
        }
    }

    fn denied() -> StatusAnswer {
        StatusAnswer::Denied("no such message".into())
    }

    fn unclear() -> StatusAnswer {
        StatusAnswer::Unclear("HTTP 502".into())
    }

    fn doubt() -> MessageInDoubt {
        let (row, id) = (Row::new(7), MessageId::new(7).unwrap());
        MessageInDoubt {
            row,
            id,
            envelope: 3,
            chain: Chain::UNKNOWN,
            since: Timestamp::UNIX_EPOCH,
            history: None,
            not_found: false,
            unresolved: false,
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    /// Evaluates each answer at its second. Returns the updated message and the changes.
    fn ask_repeatedly(
        mut doubt: MessageInDoubt,
        trust: StatusTrust,
        answers: &[(i64, StatusAnswer)],
    ) -> (MessageInDoubt, Vec<Option<RowChange>>) {
        let mut changes = Vec::new();
        for (second, answer) in answers {
            let (inquiry, change) = evaluate_answer(&doubt, trust, answer, PATIENCE, at(*second));
            doubt.history = Some(inquiry);
            doubt.not_found |= matches!(change, Some(RowChange::NotFound { .. }));
            doubt.unresolved |= matches!(change, Some(RowChange::Unresolved { .. }));
            changes.push(change);
        }
        (doubt, changes)
    }

    #[test]
    fn trust_depends_on_answers_about_probe_and_reference() {
        for (probe, reference, trust) in [
            (denied(), Some(known()), StatusTrust::Full),
            (denied(), None, StatusTrust::KnownOnly),
            (denied(), Some(unclear()), StatusTrust::KnownOnly),
            (denied(), Some(denied()), StatusTrust::Blind),
            (known(), Some(known()), StatusTrust::Blind),
            (known(), None, StatusTrust::Blind),
            (unclear(), Some(known()), StatusTrust::Blind),
        ] {
            assert_eq!(StatusTrust::from_answers(&probe, reference.as_ref()), trust, "{probe:?} {reference:?}");
        }
    }

    #[test]
    fn known_status_is_proof_unless_status_answers_are_untrusted() {
        let found =
            RowChange::Found { status: "DELIVERED".into(), msg_id: Some(GatewayMessageId::Number(5)), channel: None };
        for (trust, change) in [
            (StatusTrust::Full, Some(found.clone())),
            (StatusTrust::KnownOnly, Some(found)),
            (StatusTrust::Blind, None),
        ] {
            assert_eq!(ask_repeatedly(doubt(), trust, &[(1, known())]).1, [change], "{trust:?}");
        }
    }

    #[test]
    fn row_is_marked_not_found_after_three_spaced_denials() {
        let denials = |seconds: &[i64]| seconds.iter().map(|second| (*second, denied())).collect::<Vec<_>>();
        let not_found = |asked| Some(RowChange::NotFound { asked });
        let (_, changes) = ask_repeatedly(doubt(), StatusTrust::Full, &denials(&[60, 120, 180, 240]));
        assert_eq!(changes, [None, None, not_found(3), None], "marked once");
        let (_, changes) =
            ask_repeatedly(doubt(), StatusTrust::Full, &denials(&[1, 5, 20, 60, 61, 119, 120, 179, 180]));
        assert_eq!(changes.iter().flatten().count(), 1);
        assert_eq!(changes.last(), Some(&not_found(9)), "an early answer does not count");
        for trust in [StatusTrust::KnownOnly, StatusTrust::Blind] {
            let (doubt, changes) = ask_repeatedly(doubt(), trust, &denials(&[60, 120, 180, 240, 300]));
            assert_eq!(changes, vec![None; 5], "{trust:?}");
            assert_eq!(doubt.history.map(|inquiry| inquiry.negatives), Some(0));
        }
    }

    #[test]
    fn row_is_unresolved_after_twenty_inquiries_or_a_day() {
        let answers: Vec<_> = (1..=21).map(|second| (second, unclear())).collect();
        let (_, changes) = ask_repeatedly(doubt(), StatusTrust::Blind, &answers);
        assert_eq!(changes[18..], [None, Some(RowChange::Unresolved { asked: 20 }), None], "marked once");
        let (_, changes) = ask_repeatedly(doubt(), StatusTrust::Full, &[(86_399, unclear()), (86_400, unclear())]);
        assert_eq!(changes, [None, Some(RowChange::Unresolved { asked: 2 })]);
        let late: Vec<_> = [86_400, 90_000, 90_060, 90_120, 90_180].map(|second| (second, denied())).into();
        let (_, changes) = ask_repeatedly(doubt(), StatusTrust::Full, &[&late[..], &[(90_240, known())]].concat());
        let found =
            RowChange::Found { status: "DELIVERED".into(), msg_id: Some(GatewayMessageId::Number(5)), channel: None };
        assert_eq!(changes[1..], [None, None, None, None, Some(found)], "only proof changes it");
    }

    #[test]
    fn clock_set_back_does_not_age_messages_in_doubt() {
        let (_, changes) = ask_repeatedly(
            doubt(),
            StatusTrust::Full,
            &[(-90_000, denied()), (-180_000, denied()), (-270_000, denied())],
        );
        assert_eq!(changes, [None, None, None]);
    }

    #[test]
    fn denial_wait_grows_with_the_observed_lag() {
        assert_eq!(denial_wait(Endpoint::Sync, None), Duration::from_secs(60));
        assert_eq!(denial_wait(Endpoint::Async, Some(Duration::from_secs(2))), Duration::from_secs(600));
        assert_eq!(denial_wait(Endpoint::Sync, Some(Duration::from_secs(30))), Duration::from_secs(300));
    }
}
