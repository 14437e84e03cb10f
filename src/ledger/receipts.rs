//! Receipts of messages, and what they make of a message's state. Pure but for the walk over them.

use std::ops::Range;

use jiff::Timestamp;

use super::{Ledger, LedgerError, LedgerFuture, OptOut, RunId, StateCounts};
use crate::domain::{Addressee, Arrival, Receipt, ReceiptSource, Row};

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
pub enum Reception {
    /// It is stored.
    Kept,
    /// It repeats a stored receipt, or its message has as many as are stored; only its opt-out was recorded.
    Known,
}

/// The receipts of the rows of a run.
pub trait Receipts {
    /// Stores receipts, whichever process has their runs: they are evidence. The same commit records every opt-out in them,
    /// also those of receipts that are not stored. Returns one reception for each receipt, in order.
    fn receive(&self, receipts: Vec<NewReceipt>) -> LedgerFuture<'_, Vec<Reception>>;

    /// Keeps by which check values the secrets are known that webhooks to an address are verified with.
    fn keep_hook_secrets<'a>(&'a self, address: &'a str, check_values: Vec<String>) -> LedgerFuture<'a, ()>;

    /// The check values of the secrets that webhooks to an address are verified with; none where nobody ever took any.
    fn hook_secrets<'a>(&'a self, address: &'a str) -> LedgerFuture<'a, Vec<String>>;

    /// Keeps what the rows of a run come to, as they were counted when it had so many receipts.
    fn counted(&self, run: RunId, counts: StateCounts, parts: u64, receipts: u64) -> LedgerFuture<'_, ()>;

    /// Keeps what a projection made of all rows of a run, so that nobody has to make it again; the ledger does not read it,
    /// and may keep nothing.
    fn keep_figures(&self, _run: RunId, _figures: Vec<u8>) -> LedgerFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// What was last kept of that, however old it is.
    fn figures(&self, _run: RunId) -> LedgerFuture<'_, Option<Vec<u8>>> {
        Box::pin(async { Ok(None) })
    }

    /// Whom a row of a run was sent to; nothing for a row without an envelope.
    fn sent_to(&self, run: RunId, row: Row) -> LedgerFuture<'_, Option<Addressee>>;

    /// The receipts about rows of a run that are in this range, by row; of each row in the order in which they came.
    fn receipts(&self, run: RunId, rows: Range<u32>) -> LedgerFuture<'_, Vec<RowReceipts>>;
}

impl KeptReceipt {
    /// When the status changed, as well as that is known.
    #[must_use]
    pub fn told_at(&self) -> Timestamp {
        self.receipt.updated.unwrap_or(self.at)
    }
}

/// The most receipts that are stored for one message, apart from those that change its state.
const MOST: usize = 64;

/// Adds a receipt to those of its row, unless it tells what is known.
pub(super) fn keep(kept: &mut Vec<KeptReceipt>, new: KeptReceipt) -> Reception {
    let same: Vec<&KeptReceipt> = kept.iter().filter(|known| known.order == new.order).collect();
    let known = same.iter().any(|known| known.receipt == new.receipt);
    let noise = same.len() >= MOST && !adds_news(&same, &new.receipt);
    if known || noise {
        return Reception::Known;
    }
    kept.push(new);
    Reception::Kept
}

/// Whether a receipt may change the state of a message that has these: none of them reports the same of the same channel.
fn adds_news(same: &[&KeptReceipt], new: &Receipt) -> bool {
    let arrival = new.status.arrival();
    // All other words for a channel are one.
    let channel = |receipt: &Receipt| (receipt.channel.is_some(), receipt.known_channel());
    let reports = |known: &Receipt| {
        known.status.arrival() == arrival
            && channel(known) == channel(new)
            && (known.source == ReceiptSource::AskedLast) == (new.source == ReceiptSource::AskedLast)
    };
    arrival != Arrival::Pending && !same.iter().any(|known| reports(&known.receipt))
}

/// Rows whose receipts are read at once.
const BLOCK: u32 = 16_384;

/// A walk over the receipts of a run, by row, a few in memory at a time.
pub struct ReceiptWalk<'a> {
    ledger: &'a dyn Ledger,
    run: RunId,
    next: u32,
    last: u32,
}

impl<'a> ReceiptWalk<'a> {
    /// A walk over the receipts of all rows of a run up to this one.
    #[must_use]
    pub fn over(ledger: &'a dyn Ledger, run: RunId, last: Row) -> Self {
        Self { ledger, run, next: 0, last: last.get() }
    }

    /// The receipts of the next rows; nothing after the last.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<RowReceipts>>, LedgerError> {
        if self.next > self.last {
            return Ok(None);
        }
        let rows = self.next..self.next.saturating_add(BLOCK);
        self.next = rows.end;
        self.ledger.receipts(self.run, rows).await.map(Some)
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
        let channel = ReportedChannel::from_word(channel);
        KeptReceipt { receipt: Receipt { channel, ..kept.receipt }, ..kept }
    }

    #[test]
    fn repeated_receipt_is_stored_once() {
        let mut kept = Vec::new();
        assert_eq!(keep(&mut kept, receipt(Status::Delivered, 1)), Reception::Kept);
        let again = KeptReceipt { at: Timestamp::from_second(99).unwrap(), ..receipt(Status::Delivered, 1) };
        assert_eq!(keep(&mut kept, again), Reception::Known);
        let other = KeptReceipt { order: Some(1), ..receipt(Status::Delivered, 1) };
        assert_eq!(keep(&mut kept, other), Reception::Kept, "another message of the row");
    }

    #[test]
    fn stored_receipts_are_limited_but_for_news() {
        let mut kept = Vec::new();
        let all: Vec<Reception> = (1..200).map(|second| keep(&mut kept, receipt(Status::Routing, second))).collect();
        assert_eq!(all.iter().filter(|reception| **reception == Reception::Kept).count(), MOST);
        let expired = |second| by("viber", receipt(Status::Expired, second));
        assert_eq!(keep(&mut kept, expired(200)), Reception::Kept, "the first failure of a channel");
        assert_eq!(keep(&mut kept, by("sms", expired(201))), Reception::Kept, "and that of another one");
        assert_eq!(keep(&mut kept, expired(202)), Reception::Known);
        let mut last = expired(203);
        last.receipt.source = ReceiptSource::AskedLast;
        assert_eq!(keep(&mut kept, last), Reception::Kept, "the answer to the last question");
        assert_eq!(keep(&mut kept, receipt(Status::Read, 204)), Reception::Kept);
        let words = (0..99).filter(|n| keep(&mut kept, by(&format!("w{n}"), expired(300))) == Reception::Kept);
        assert_eq!(words.count(), 1, "unknown words for a channel are not counted apart");
        assert_eq!(keep(&mut kept, receipt(Status::Expired, 301)), Reception::Kept, "the failure of the whole message");
    }
}
