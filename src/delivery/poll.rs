//! The asking about messages that were taken and have no end yet: by our own identifiers, at a part of the account's pace.
//!
//! It sends nothing. What the gateway tells is a receipt like any other, and is kept before anybody is told.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Snapshot;
use super::doubt::Sight;
use super::questions::{LARGEST, Questions};
use crate::domain::{MessageId, MsgId, Receipt, ReceiptSource, Row};
use crate::gateway::{Gateway, StatusAnswer};
use crate::ledger::{Allowance, Ledger, LedgerError, NewReceipt, Reception, Run, State, Walk};

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
    /// How many messages are asked about together: the probe goes with every group.
    #[must_use]
    pub fn room(&self) -> usize {
        LARGEST.min(self.most).saturating_sub(1).max(1)
    }

    /// Asks about a group of messages once, and takes as long for it as this share of the account's pace has room for; tells
    /// whether there was time.
    ///
    /// # Errors
    /// When the ledger cannot be read or written.
    pub async fn ask(
        &self,
        group: &[Pending],
        share: f64,
        deadline: Instant,
        polled: &mut Polled,
    ) -> Result<bool, LedgerError> {
        let Self { ledger, gateway, run, ref account, most } = *self;
        let questions = Questions { ledger, gateway, run, account, most };
        let began = Instant::now();
        // Nothing has to be compared with a message that was surely taken, since no denial counts here.
        let ids = group.iter().map(|message| message.id);
        let Some((sight, answers)) = questions.ask(ids, None, deadline).await? else { return Ok(false) };
        self.keep(group, sight, answers, polled).await?;
        let operations = group.len() as f64 + 1.0;
        let turn = self.account.rate.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64((operations / (rate * share).max(0.001)).min(3_600.0))
        });
        sleep(turn.saturating_sub(began.elapsed())).await;
        Ok(true)
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
