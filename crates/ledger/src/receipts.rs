//! Receipts: delivery status by webhook or inquiry, and the check values of webhook secrets.

use std::ops::Range;

use jiff::Timestamp;

use super::{Ledger, LedgerError, LedgerFuture, OptIn, OptOut, RunId};
use campaign_core::domain::{DeliveryState, Receipt, ReceiptSource, Row};

/// A receipt to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReceipt {
    /// The run that sent the message.
    pub run: RunId,
    /// The row of the message.
    pub row: Row,
    /// The retry order of its identifier. `None` for identifiers of the run itself.
    pub order: Option<u32>,
    /// The receipt.
    pub receipt: Receipt,
    /// The opt-out in its replies. It is recorded even if the receipt is not stored.
    pub opt_out: Option<OptOut>,
    /// The wish in its replies to get messages again. It counts even if the receipt is not stored.
    pub opt_in: Option<OptIn>,
}

impl NewReceipt {
    /// Limits the times of the wishes in a repeated receipt to its first arrival. Without this, a repetition could look
    /// like a new wish, because the gateway's clock can be ahead, or a reply can lack a time.
    ///
    /// An opt-out without a time of its own stays new: the recipient might have sent the same words again.
    pub(super) fn limit_wish_times(&mut self, stored: &[StoredReceipt]) {
        let Self { order, receipt, opt_out, opt_in, .. } = self;
        let Some(first) = stored.iter().find(|known| known.order == *order && known.receipt == *receipt) else {
            return;
        };
        // Without its texts, the receipt of a forgotten recipient can equal other receipts.
        if receipt.replies.is_empty() && receipt.error.is_none() {
            return;
        }
        let is_timed = receipt.replies.iter().all(|reply| reply.at.is_some());
        if let Some(opt_out) = opt_out.as_mut().filter(|_| is_timed) {
            opt_out.at = opt_out.at.min(first.at);
        }
        if let Some(opt_in) = opt_in {
            opt_in.at = opt_in.at.min(first.at);
        }
    }
}

/// A receipt in the ledger, with its time of arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReceipt {
    /// The retry order of its identifier. `None` for identifiers of the run itself.
    pub order: Option<u32>,
    /// The time of arrival, in whole milliseconds.
    pub at: Timestamp,
    /// The receipt. For a forgotten recipient, it contains no error, digits or replies.
    pub receipt: Receipt,
}

/// A row with its receipts, in order of arrival.
pub type RowReceipts = (Row, Vec<StoredReceipt>);

/// The result of storing a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiptOutcome {
    /// The receipt is stored.
    Stored,
    /// The receipt is not stored: it repeats a stored receipt, its message has the maximum number of receipts, or its
    /// run was purged. An opt-out or opt-in in the receipt counts nevertheless.
    Known,
}

/// The receipts of a ledger.
pub trait ReceiptStore {
    /// Stores receipts, whichever process owns the runs, because receipts are evidence. The same commit records all
    /// opt-outs and then ends the opt-outs that precede an opt-in, even for receipts that are not stored. An opt-out is
    /// not recorded if a later opt-in has already ended one of the same kind. Returns one outcome per receipt, in
    /// order.
    fn store_receipts(&self, receipts: Vec<NewReceipt>) -> LedgerFuture<'_, Vec<ReceiptOutcome>>;

    /// Stores the check values of the secrets that verify webhooks to an address, if any are given. Returns the
    /// address's current check values, or an empty list if none were ever stored.
    fn remember_check_values<'a>(
        &'a self,
        address: &'a str,
        check_values: Option<Vec<String>>,
    ) -> LedgerFuture<'a, Vec<String>>;

    /// The last stored figures of a run, however old.
    fn load_figures(&self, _run: RunId) -> LedgerFuture<'_, Option<Vec<u8>>> {
        Box::pin(async { Ok(None) })
    }

    /// The receipts of rows in this range, by row and in order of arrival.
    fn load_receipts(&self, run: RunId, rows: Range<u32>) -> LedgerFuture<'_, Vec<RowReceipts>>;
}

impl StoredReceipt {
    /// The time at which the status changed, or the time of arrival if the receipt reports no time.
    pub fn reported_at(&self) -> Timestamp {
        self.receipt.updated.unwrap_or(self.at)
    }
}

/// The maximum number of stored receipts per message, apart from receipts with news.
const MAX_RECEIPTS: usize = 64;

/// Adds a receipt to the receipts of a row. Ignores a repeated receipt, and a receipt without news once the maximum is
/// reached.
pub(super) fn add_receipt(stored: &mut Vec<StoredReceipt>, new: StoredReceipt) -> ReceiptOutcome {
    let earlier: Vec<&StoredReceipt> = stored.iter().filter(|known| known.order == new.order).collect();
    let is_repeated = earlier.iter().any(|known| known.receipt == new.receipt);
    let is_noise = earlier.len() >= MAX_RECEIPTS && !adds_news(&earlier, &new.receipt);
    if is_repeated || is_noise {
        return ReceiptOutcome::Known;
    }
    stored.push(new);
    ReceiptOutcome::Stored
}

/// Whether a receipt reports a delivery, reading or failure that no earlier receipt of the message reports for the same
/// channel. The answer to the last inquiry is compared only with answers to the last inquiry.
fn adds_news(earlier: &[&StoredReceipt], new: &Receipt) -> bool {
    let delivery = new.status.delivery_state();
    // All unknown channel names count as one channel.
    let channel = |receipt: &Receipt| (receipt.channel.is_some(), receipt.known_channel());
    let reports_same = |known: &Receipt| {
        known.status.delivery_state() == delivery
            && channel(known) == channel(new)
            && (known.source == ReceiptSource::AskedLast) == (new.source == ReceiptSource::AskedLast)
    };
    delivery != DeliveryState::Pending && !earlier.iter().any(|known| reports_same(&known.receipt))
}

/// The number of rows that are read at once.
const ROWS_PER_READ: u32 = 16_384;

/// Reads the receipts of a run by row, a few at a time.
pub struct ReceiptReader<'a> {
    ledger: &'a dyn Ledger,
    run: RunId,
    next: u32,
    last: u32,
}

impl<'a> ReceiptReader<'a> {
    /// A reader for the rows of a run up to `last`.
    pub fn new(ledger: &'a dyn Ledger, run: RunId, last: Row) -> Self {
        Self { ledger, run, next: 0, last: last.get() }
    }

    /// The receipts of the next rows. `None` at the end.
    ///
    /// # Errors
    /// If the ledger cannot be read.
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
    use campaign_core::domain::{ReportedChannel, Status};

    fn receipt(status: Status, second: i64) -> StoredReceipt {
        let at = Timestamp::from_second(second).unwrap();
        let receipt = Receipt { updated: Some(at), ..Receipt::new(ReceiptSource::Webhook, status) };
        StoredReceipt { order: None, at, receipt }
    }

    fn with_channel(channel: &str, stored: StoredReceipt) -> StoredReceipt {
        let channel = ReportedChannel::parse(channel);
        StoredReceipt { receipt: Receipt { channel, ..stored.receipt }, ..stored }
    }

    #[test]
    fn repeated_receipt_is_stored_once() {
        let mut receipts = Vec::new();
        assert_eq!(add_receipt(&mut receipts, receipt(Status::Delivered, 1)), ReceiptOutcome::Stored);
        let again = StoredReceipt { at: Timestamp::from_second(99).unwrap(), ..receipt(Status::Delivered, 1) };
        assert_eq!(add_receipt(&mut receipts, again), ReceiptOutcome::Known);
        let other = StoredReceipt { order: Some(1), ..receipt(Status::Delivered, 1) };
        assert_eq!(add_receipt(&mut receipts, other), ReceiptOutcome::Stored, "another message of the row");
    }

    #[test]
    fn receipt_limit_does_not_apply_to_new_information() {
        let mut receipts = Vec::new();
        let all: Vec<ReceiptOutcome> =
            (1..200).map(|second| add_receipt(&mut receipts, receipt(Status::Routing, second))).collect();
        assert_eq!(all.iter().filter(|outcome| **outcome == ReceiptOutcome::Stored).count(), MAX_RECEIPTS);
        let expired = |second| with_channel("viber", receipt(Status::Expired, second));
        assert_eq!(add_receipt(&mut receipts, expired(200)), ReceiptOutcome::Stored, "the first failure of a channel");
        assert_eq!(
            add_receipt(&mut receipts, with_channel("sms", expired(201))),
            ReceiptOutcome::Stored,
            "the first failure of another channel"
        );
        assert_eq!(add_receipt(&mut receipts, expired(202)), ReceiptOutcome::Known);
        let mut last = expired(203);
        last.receipt.source = ReceiptSource::AskedLast;
        assert_eq!(add_receipt(&mut receipts, last), ReceiptOutcome::Stored, "the answer to the last inquiry");
        assert_eq!(add_receipt(&mut receipts, receipt(Status::Read, 204)), ReceiptOutcome::Stored);
        let channels = (0..99).filter(|n| {
            add_receipt(&mut receipts, with_channel(&format!("w{n}"), expired(300))) == ReceiptOutcome::Stored
        });
        assert_eq!(channels.count(), 1, "unknown channel names count as one channel");
        assert_eq!(
            add_receipt(&mut receipts, receipt(Status::Expired, 301)),
            ReceiptOutcome::Stored,
            "the failure of the whole message"
        );
    }
}
