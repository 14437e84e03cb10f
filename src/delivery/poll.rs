//! The asking about messages that were taken and have no end yet: by our own identifiers, at a part of the account's pace.
//!
//! It sends nothing. What the gateway tells is a receipt like any other, and is kept before anybody is told.

use std::cmp::Reverse;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::Snapshot;
use super::chain_times::ChainLifetimes;
use super::doubt::StatusTrust;
use super::questions::{MAX_QUESTIONS, StatusQuery, to_receipt};
use crate::domain::{Chain, MessageId, Receipt, ReceiptSource, Row};
use crate::gateway::{Gateway, StatusAnswer};
use crate::ledger::{Allowance, EnvelopeReader, Ledger, LedgerError, NewReceipt, ReceiptOutcome, RowState, Run};

/// A message that the gateway is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingMessage {
    /// Its row.
    pub row: Row,
    /// The order whose identifier it has; nothing for the run's own.
    pub order: Option<u32>,
    /// Our identifier.
    pub id: MessageId,
    /// Its channels.
    pub chain: Chain,
    /// When the lifetimes of all its channels have passed.
    pub expires_at: Timestamp,
}

/// What came of asking about messages without an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollCounts {
    /// Messages that were asked about.
    pub asked: u64,
    /// Messages of which something new was told.
    pub told: u64,
    /// Messages whose answers proved nothing, because the gateway does not tell the sent from the never sent.
    pub blind: u64,
    /// Messages about which there was no usable answer.
    pub unclear: u64,
    /// Messages that there was no time left to ask about.
    pub left: u64,
    /// Messages whose fallback is unreported, and whose channels still have time.
    pub waiting: u64,
}

/// Who asks about the messages of a run.
pub struct StatusPoller<'a> {
    /// The ledger.
    pub ledger: &'a dyn Ledger,
    /// The gateway.
    pub gateway: &'a dyn Gateway,
    /// The run.
    pub run: &'a Run,
    /// The account whose pace it takes from.
    pub account: Allowance,
    /// The most operations of an envelope.
    pub most: usize,
    /// The wall clock.
    pub clock: fn() -> Timestamp,
}

/// The messages of a run that were taken and have no end yet, in the order in which they were sent.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn load_pending(
    ledger: &dyn Ledger,
    run: &Run,
    snapshot: &Snapshot,
    times: &ChainLifetimes,
) -> Result<Vec<PendingMessage>, LedgerError> {
    let mut pending = Vec::new();
    let mut envelopes = EnvelopeReader::new(ledger, run.key);
    let events = snapshot.states.events();
    while let Some(envelope) = envelopes.next_envelope().await? {
        for sent in &envelope.rows {
            let order = events.find_order(sent.row, envelope.envelope);
            // Of a row that was sent more than once the last message counts; a retry that was not sent is none.
            let last =
                snapshot.states.last_attempt(sent.row).and_then(|last| events.find_order(sent.row, last.envelope));
            if last == order
                && matches!(snapshot.row_state(sent.row), RowState::Accepted | RowState::Queued)
                && let Some(id) = run.message_id(sent.row, order)
            {
                let chain = envelope.chain(sent);
                pending.push(PendingMessage::new((sent.row, order, id), (chain, envelope.begun_at), times));
            }
        }
    }
    // Of several attempts to send one message the last one counts.
    pending.sort_by_key(|message| (message.id, Reverse(message.expires_at)));
    pending.dedup_by_key(|message| message.id);
    Ok(pending)
}

impl PendingMessage {
    /// A message on these channels that was sent at this time.
    #[must_use]
    pub fn new(
        (row, order, id): (Row, Option<u32>, MessageId),
        (chain, sent_at): (Chain, Timestamp),
        times: &ChainLifetimes,
    ) -> Self {
        let over_at = sent_at.checked_add(times.for_chain(chain)).unwrap_or(Timestamp::MAX);
        Self { row, order, id, chain, expires_at: over_at }
    }

    /// Whether the lifetimes of all its channels have passed, so that an answer is the last one.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }
}

impl StatusPoller<'_> {
    /// How many messages are asked about together: the probe goes with every group.
    #[must_use]
    pub fn group_size(&self) -> usize {
        MAX_QUESTIONS.min(self.most).saturating_sub(1).max(1)
    }

    /// Asks about a group of messages once, and takes as long for it as this share of the account's pace has room for. Returns
    /// what the gateway reports of each message, in order: `None` if it does not know the message, or its answer proves nothing.
    /// The whole is `None` if there was no time.
    ///
    /// # Errors
    /// When the ledger cannot be read or written.
    pub async fn ask_group(
        &self,
        group: &[PendingMessage],
        share: f64,
        deadline: Instant,
        polled: &mut PollCounts,
    ) -> Result<Option<Vec<Option<Receipt>>>, LedgerError> {
        let Self { ledger, gateway, run, ref account, most, .. } = *self;
        let questions = StatusQuery { ledger, gateway, run, account, most };
        let began = Instant::now();
        // Nothing has to be compared with a message that was surely taken, since no denial counts here.
        let ids = group.iter().map(|message| message.id);
        let Some((sight, answers)) = questions.ask_trusted(ids, None, deadline).await? else { return Ok(None) };
        let answered = self.store_answers(group, sight, answers, polled).await?;
        let operations = group.len() as f64 + 1.0;
        let turn = self.account.rate.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64((operations / (rate * share).max(0.001)).min(3_600.0))
        });
        sleep(turn.saturating_sub(began.elapsed())).await;
        Ok(Some(answered))
    }

    async fn store_answers(
        &self,
        group: &[PendingMessage],
        sight: StatusTrust,
        answers: Vec<StatusAnswer>,
        polled: &mut PollCounts,
    ) -> Result<Vec<Option<Receipt>>, LedgerError> {
        let (mut answered, now) = (Vec::with_capacity(group.len()), (self.clock)());
        for (message, answer) in group.iter().zip(answers) {
            polled.asked += 1;
            answered.push(match answer {
                StatusAnswer::Unclear(_) => {
                    polled.unclear += 1;
                    None
                }
                _ if sight == StatusTrust::Blind => {
                    polled.blind += 1;
                    None
                }
                // A gateway may forget in time what became of a message; that it was taken stays proven.
                StatusAnswer::Denied(_) => None,
                known @ StatusAnswer::Known { .. } => {
                    let is_last = message.has_expired(now);
                    to_receipt(known, if is_last { ReceiptSource::AskedLast } else { ReceiptSource::Asked })
                }
            });
        }
        let receipts = group.iter().zip(&answered).filter_map(|(message, receipt)| {
            let PendingMessage { row, order, .. } = *message;
            Some(NewReceipt { run: self.run.key, row, order, opt_out: None, receipt: receipt.clone()? })
        });
        let receipts = receipts.collect();
        let receptions = self.ledger.store_receipts(receipts).await?;
        polled.told += receptions.iter().filter(|reception| **reception == ReceiptOutcome::Stored).count() as u64;
        Ok(answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::OperationKind;

    #[test]
    fn answer_after_all_lifetimes_is_final() {
        let sent_at = Timestamp::UNIX_EPOCH;
        let message = |kind: OperationKind| {
            let named = (Row::FIRST, None, MessageId::new(7).unwrap());
            PendingMessage::new(named, (kind.into(), sent_at), &ChainLifetimes::default())
        };
        let after = |days: i64| sent_at + jiff::SignedDuration::from_hours(24 * days);
        assert!(!message(OperationKind::ViberSms).has_expired(after(3)));
        assert!(message(OperationKind::ViberSms).has_expired(after(4)));
        assert!(!message(OperationKind::RcsViberSms).has_expired(after(5)));
        assert!(message(OperationKind::RcsViberSms).has_expired(after(6)));
        assert!(message(OperationKind::Sms).has_expired(after(4)), "four days at least");
    }
}
