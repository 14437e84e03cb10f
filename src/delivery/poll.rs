//! The asking about messages that were taken and have no end yet: by our own identifiers, at a part of the account's pace.
//!
//! It sends nothing. What the gateway tells is a receipt like any other, and is kept before anybody is told.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::Snapshot;
use super::doubt::Sight;
use crate::domain::{MessageId, MsgId, Receipt, ReceiptSource, Row};
use crate::gateway::{Gateway, StatusAnswer};
use crate::ledger::{Allowance, Ledger, LedgerError, NewReceipt, Reception, Run, State, Walk};

/// The most questions in an envelope, the probe and the reference among them.
const LARGEST: usize = 50;

/// A message that has no end yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its row.
    pub row: Row,
    /// The order whose identifier it has; nothing for the run's own.
    pub order: Option<u32>,
    /// Our identifier.
    pub id: MessageId,
}

/// What came of asking about messages without an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
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
}

/// Who asks about the messages of a run.
pub struct Poller<'a> {
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
}

/// The messages of a run that were taken and have no end yet, in the order in which they were sent.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn pending(ledger: &dyn Ledger, run: &Run, snapshot: &Snapshot) -> Result<Vec<Pending>, LedgerError> {
    let mut pending = Vec::new();
    let mut envelopes = Walk::over(ledger, run.key);
    let events = snapshot.states.events();
    while let Some(envelope) = envelopes.next().await? {
        for sent in &envelope.rows {
            let order = events.order(sent.row, envelope.envelope);
            // Of a row that was sent more than once the last message counts.
            let last = events.next_order(sent.row) == order;
            if last
                && matches!(snapshot.state(sent.row), State::Accepted | State::Queued)
                && let Some(id) = run.id(sent.row, order)
            {
                pending.push(Pending { row: sent.row, order, id });
            }
        }
    }
    pending.sort_by_key(|message| message.id);
    pending.dedup();
    Ok(pending)
}

impl Poller<'_> {
    /// Asks about each of these once, at this share of the account's pace, as long as there is time.
    ///
    /// # Errors
    /// When the ledger cannot be read or written.
    pub async fn ask(&self, pending: &[Pending], share: f64, deadline: Instant) -> Result<Polled, LedgerError> {
        let mut polled = Polled::default();
        // Two go with every group: the probe, and a message that was surely taken.
        let room = LARGEST.min(self.most).saturating_sub(2).max(1);
        let reference = pending.last().map(|message| message.id);
        for group in pending.chunks(room) {
            let began = Instant::now();
            let Some((sight, answers)) = self.answers(group, reference, deadline).await? else {
                polled.left = pending.len() as u64 - polled.asked;
                break;
            };
            self.keep(group, sight, answers, &mut polled).await?;
            let operations = group.len() as f64 + 2.0;
            let turn = self.account.rate.map_or(Duration::ZERO, |rate| {
                Duration::from_secs_f64((operations / (rate * share).max(0.001)).min(3_600.0))
            });
            sleep(turn.saturating_sub(began.elapsed())).await;
        }
        Ok(polled)
    }

    async fn answers(
        &self,
        group: &[Pending],
        reference: Option<MessageId>,
        deadline: Instant,
    ) -> Result<Option<(Sight, Vec<StatusAnswer>)>, LedgerError> {
        // The identifier of the header's row is never sent.
        let Some(probe) = self.run.ids.id(Row::HEADER) else { return Ok(None) };
        let ids: Vec<MessageId> =
            [probe].into_iter().chain(reference).chain(group.iter().map(|message| message.id)).collect();
        let mut answers = Vec::with_capacity(ids.len());
        for asked in ids.chunks(self.most.max(1)) {
            let count = u32::try_from(asked.len()).unwrap_or(u32::MAX);
            let wait = self.ledger.reserve(&self.account, count).await?.time;
            if Instant::now() + wait > deadline {
                return Ok(None);
            }
            sleep(wait).await;
            let Ok(told) = timeout_at(deadline, self.gateway.statuses(asked)).await else { return Ok(None) };
            answers.extend(told);
        }
        let mut answers = answers.into_iter();
        let unclear = || StatusAnswer::Unclear("no answer".to_owned());
        let probe = answers.next().unwrap_or_else(unclear);
        let reference = reference.map(|_| answers.next().unwrap_or_else(unclear));
        Ok(Some((Sight::of(&probe, reference.as_ref()), answers.collect())))
    }

    async fn keep(
        &self,
        group: &[Pending],
        sight: Sight,
        answers: Vec<StatusAnswer>,
        polled: &mut Polled,
    ) -> Result<(), LedgerError> {
        let mut receipts = Vec::new();
        for (message, answer) in group.iter().zip(answers) {
            polled.asked += 1;
            match answer {
                StatusAnswer::Unclear(_) => polled.unclear += 1,
                _ if sight == Sight::Blind => polled.blind += 1,
                // A gateway may forget in time what became of a message; that it was taken stays proven.
                StatusAnswer::Denied(_) => {}
                StatusAnswer::Known { status, msg_id, channel, updated } => receipts.push(NewReceipt {
                    run: self.run.key,
                    row: message.row,
                    order: message.order,
                    opt_out: None,
                    receipt: Receipt {
                        msg_id: msg_id.map(MsgId::plain),
                        channel,
                        updated,
                        ..Receipt::new(ReceiptSource::Asked, status)
                    },
                }),
            }
        }
        let receptions = self.ledger.receive(receipts).await?;
        polled.told += receptions.iter().filter(|reception| **reception == Reception::Kept).count() as u64;
        Ok(())
    }
}
