//! Receipts of messages, and what they make of a message's state. Pure but for the walk over them.

use std::ops::Range;

use jiff::Timestamp;

use super::{Ledger, LedgerError, LedgerFuture, OptOut, RunId, StateCounts};
use crate::domain::{Addressee, DeliveryState, Receipt, ReceiptSource, Row};

/// A receipt about a message of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReceipt {
    /// The run.
    pub run: RunId,
    /// The row.
    pub row: Row,
    /// The order whose identifier it names; nothing for the run's own.
    pub order: Option<u32>,
    /// What it tells.
    pub receipt: Receipt,
    /// The opt-out in its replies. It is recorded even if the receipt is not stored.
    pub opt_out: Option<OptOut>,
}

/// A receipt that the ledger keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptReceipt {
    /// The order whose identifier it names; nothing for the run's own.
    pub order: Option<u32>,
    /// When it came, in whole milliseconds.
    pub at: Timestamp,
    /// What it tells.
    pub receipt: Receipt,
}

/// A row with its receipts, in the order in which they came.
pub type RowReceipts = (Row, Vec<KeptReceipt>);

/// What the ledger did with a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiptOutcome {
    /// It is stored.
    Stored,
    /// It repeats a stored receipt, or its message has as many as are stored; only its opt-out was recorded.
    Known,
}

/// The receipts of the rows of a run.
pub trait ReceiptStore {
    /// Stores receipts, whichever process has their runs: they are evidence. The same commit records every opt-out in them,
    /// also those of receipts that are not stored. Returns one reception for each receipt, in order.
    fn store_receipts(&self, receipts: Vec<NewReceipt>) -> LedgerFuture<'_, Vec<ReceiptOutcome>>;

    /// Keeps by which check values the secrets are known that webhooks to an address are verified with.
    fn keep_webhook_secrets<'a>(&'a self, address: &'a str, check_values: Vec<String>) -> LedgerFuture<'a, ()>;

    /// The check values of the secrets that webhooks to an address are verified with; none where nobody ever took any.
    fn load_webhook_secrets<'a>(&'a self, address: &'a str) -> LedgerFuture<'a, Vec<String>>;

    /// Keeps what the rows of a run come to, as they were counted when it had so many receipts.
    fn store_counts(&self, run: RunId, counts: StateCounts, parts: u64, receipts: u64) -> LedgerFuture<'_, ()>;

    /// Keeps what a projection made of all rows of a run, so that nobody has to make it again; the ledger does not read it,
    /// and may keep nothing.
    fn keep_figures(&self, _run: RunId, _figures: Vec<u8>) -> LedgerFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// What was last kept of that, however old it is.
    fn load_figures(&self, _run: RunId) -> LedgerFuture<'_, Option<Vec<u8>>> {
        Box::pin(async { Ok(None) })
    }

    /// Whom a row of a run was sent to; nothing for a row without an envelope.
    fn find_addressee(&self, run: RunId, row: Row) -> LedgerFuture<'_, Option<Addressee>>;

    /// The receipts about rows of a run that are in this range, by row; of each row in the order in which they came.
    fn load_receipts(&self, run: RunId, rows: Range<u32>) -> LedgerFuture<'_, Vec<RowReceipts>>;
}

impl KeptReceipt {
    /// When the status changed, as well as that is known.
    #[must_use]
    pub fn reported_at(&self) -> Timestamp {
        self.receipt.updated.unwrap_or(self.at)
    }
}

/// The most receipts that are stored for one message, apart from those that change its state.
const MAX_RECEIPTS: usize = 64;

/// Adds a receipt to those of its row, unless it tells what is known.
pub(super) fn add_receipt(kept: &mut Vec<KeptReceipt>, new: KeptReceipt) -> ReceiptOutcome {
    let same: Vec<&KeptReceipt> = kept.iter().filter(|known| known.order == new.order).collect();
    let known = same.iter().any(|known| known.receipt == new.receipt);
    let noise = same.len() >= MAX_RECEIPTS && !adds_news(&same, &new.receipt);
    if known || noise {
        return ReceiptOutcome::Known;
    }
    kept.push(new);
    ReceiptOutcome::Stored
}

/// Whether a receipt may change the state of a message that has these: none of them reports the same of the same channel.
fn adds_news(same: &[&KeptReceipt], new: &Receipt) -> bool {
    let arrival = new.status.delivery_state();
    // All other words for a channel are one.
    let channel = |receipt: &Receipt| (receipt.channel.is_some(), receipt.known_channel());
    let reports = |known: &Receipt| {
        known.status.delivery_state() == arrival
            && channel(known) == channel(new)
            && (known.source == ReceiptSource::AskedLast) == (new.source == ReceiptSource::AskedLast)
    };
    arrival != DeliveryState::Pending && !same.iter().any(|known| reports(&known.receipt))
}

/// Rows whose receipts are read at once.
const ROWS_PER_READ: u32 = 16_384;

/// A walk over the receipts of a run, by row, a few in memory at a time.
pub struct ReceiptReader<'a> {
    ledger: &'a dyn Ledger,
    run: RunId,
    next: u32,
    last: u32,
}

impl<'a> ReceiptReader<'a> {
    /// A walk over the receipts of all rows of a run up to this one.
    #[must_use]
    pub fn new(ledger: &'a dyn Ledger, run: RunId, last: Row) -> Self {
        Self { ledger, run, next: 0, last: last.get() }
    }

    /// The receipts of the next rows; nothing after the last.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn next_receipts(&mut self) -> Result<Option<Vec<RowReceipts>>, LedgerError> {
        if self.next > self.last {
            return Ok(None);
        }
        let rows = self.next..self.next.saturating_add(ROWS_PER_READ);
        self.next = rows.end;
        self.ledger.load_receipts(self.run, rows).await.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ReportedChannel, Status};

    fn receipt(status: Status, second: i64) -> KeptReceipt {
        let at = Timestamp::from_second(second).unwrap();
        let receipt = Receipt { updated: Some(at), ..Receipt::new(ReceiptSource::Webhook, status) };
        KeptReceipt { order: None, at, receipt }
    }

    fn by(channel: &str, kept: KeptReceipt) -> KeptReceipt {
        let channel = ReportedChannel::parse(channel);
        KeptReceipt { receipt: Receipt { channel, ..kept.receipt }, ..kept }
    }

    #[test]
    fn repeated_receipt_is_stored_once() {
        let mut kept = Vec::new();
        assert_eq!(add_receipt(&mut kept, receipt(Status::Delivered, 1)), ReceiptOutcome::Stored);
        let again = KeptReceipt { at: Timestamp::from_second(99).unwrap(), ..receipt(Status::Delivered, 1) };
        assert_eq!(add_receipt(&mut kept, again), ReceiptOutcome::Known);
        let other = KeptReceipt { order: Some(1), ..receipt(Status::Delivered, 1) };
        assert_eq!(add_receipt(&mut kept, other), ReceiptOutcome::Stored, "another message of the row");
    }

    #[test]
    fn stored_receipts_are_limited_but_for_news() {
        let mut kept = Vec::new();
        let all: Vec<ReceiptOutcome> =
            (1..200).map(|second| add_receipt(&mut kept, receipt(Status::Routing, second))).collect();
        assert_eq!(all.iter().filter(|reception| **reception == ReceiptOutcome::Stored).count(), MAX_RECEIPTS);
        let expired = |second| by("viber", receipt(Status::Expired, second));
        assert_eq!(add_receipt(&mut kept, expired(200)), ReceiptOutcome::Stored, "the first failure of a channel");
        assert_eq!(add_receipt(&mut kept, by("sms", expired(201))), ReceiptOutcome::Stored, "and that of another one");
        assert_eq!(add_receipt(&mut kept, expired(202)), ReceiptOutcome::Known);
        let mut last = expired(203);
        last.receipt.source = ReceiptSource::AskedLast;
        assert_eq!(add_receipt(&mut kept, last), ReceiptOutcome::Stored, "the answer to the last question");
        assert_eq!(add_receipt(&mut kept, receipt(Status::Read, 204)), ReceiptOutcome::Stored);
        let words =
            (0..99).filter(|n| add_receipt(&mut kept, by(&format!("w{n}"), expired(300))) == ReceiptOutcome::Stored);
        assert_eq!(words.count(), 1, "unknown words for a channel are not counted apart");
        assert_eq!(
            add_receipt(&mut kept, receipt(Status::Expired, 301)),
            ReceiptOutcome::Stored,
            "the failure of the whole message"
        );
    }
}
