//! Rejections that receipts report while a run is sending.
//!
//! The asynchronous endpoint only queues messages, so its answers contain few rejections. The receipts of a run are
//! read again only if new ones arrived, and reading them takes only a small share of the time.

use std::time::Duration;

use jiff::Timestamp;
use roaring::RoaringBitmap;
use tokio::time::Instant;

use campaign_core::domain::{Chain, DeliveryState, OperationOutcome, Row, Status};
use campaign_gateway::{Envelope, GatewayReply};
use campaign_ledger::{EnvelopeFilter, Ledger, LedgerError, RunFilter, RunId, StoredReceipt};

/// The minimum time between two readings of receipts.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// The time until the next reading, as a multiple of the time that a reading takes.
const INTERVAL_FACTOR: u32 = 20;
/// The number of rows in one reading.
const ROWS_PER_READ: u32 = 16_384;

/// The messages that the gateway accepted or queued since this start of a run, and those that it rejected later.
#[derive(Debug, Default)]
pub(super) struct ReportedRejections {
    /// The rows whose messages were accepted or queued, by the channels of the message.
    sent: Vec<(Chain, RoaringBitmap)>,
    /// The rows whose rejection is known.
    rejected: RoaringBitmap,
    /// The first envelope of this start. Earlier receipts are about earlier messages.
    first_envelope: Option<u32>,
    /// The number of receipts at the last reading.
    receipts: u64,
    /// The time at which receipts are read next.
    next_at: Option<Instant>,
}

impl ReportedRejections {
    /// Adds the accepted and queued messages of an answered envelope.
    pub(super) fn add_answered(&mut self, number: u32, envelope: &Envelope, reply: &GatewayReply) {
        self.first_envelope = Some(self.first_envelope.map_or(number, |first| first.min(number)));
        let answered = envelope.operations().iter().zip(&reply.outcomes).filter(|(_, outcome)| {
            matches!(outcome, OperationOutcome::Accepted { .. } | OperationOutcome::Queued { .. })
        });
        for (operation, _) in answered {
            let row = operation.row.get();
            match self.sent.iter_mut().find(|(chain, _)| *chain == operation.chain) {
                Some((_, rows)) => drop(rows.insert(row)),
                None => self.sent.push((operation.chain, RoaringBitmap::from_iter([row]))),
            }
        }
    }

    /// Adds a message whose rejection is known from an inquiry.
    pub(super) fn add_known_rejection(&mut self, row: Row) {
        self.rejected.insert(row.get());
    }

    /// Counts the rejections that were reported since the last call.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub(super) async fn count_new_rejections(&mut self, ledger: &dyn Ledger, run: RunId) -> Result<u64, LedgerError> {
        let began = Instant::now();
        let Some(first) = self.first_envelope.filter(|_| self.next_at.is_none_or(|at| at <= began)) else {
            return Ok(0);
        };
        self.next_at = Some(began + MIN_INTERVAL);
        let receipts = ledger.list_runs(RunFilter::with_key(run)).await?.pop().map_or(0, |run| run.receipts);
        if receipts == self.receipts {
            return Ok(0);
        }
        let envelopes = ledger.load_envelopes(run, EnvelopeFilter::Numbers(first..=first)).await?;
        let Some(since) = envelopes.first().map(|envelope| envelope.begun_at) else { return Ok(0) };
        let before = self.rejected.len();
        let sent: RoaringBitmap = self.sent.iter().fold(RoaringBitmap::new(), |all, (_, rows)| all | rows);
        let (mut next, last) = (sent.min(), sent.max().unwrap_or_default());
        while let Some(from) = next {
            let rows = from..from.saturating_add(ROWS_PER_READ);
            next = sent.range(rows.end..=last.max(rows.end)).next();
            for (row, stored_receipts) in ledger.load_receipts(run, rows).await? {
                if self.is_rejected(row, &stored_receipts, since) {
                    self.rejected.insert(row.get());
                }
            }
        }
        self.receipts = receipts;
        self.next_at = Some(Instant::now() + MIN_INTERVAL.max(began.elapsed() * INTERVAL_FACTOR));
        Ok(self.rejected.len() - before)
    }

    /// Whether receipts from `since` on report that the message of a row was rejected on its last channel, and none of
    /// them reports a delivery.
    fn is_rejected(&self, row: Row, stored_receipts: &[StoredReceipt], since: Timestamp) -> bool {
        let Some((chain, _)) = self.sent.iter().find(|(_, rows)| rows.contains(row.get())) else { return false };
        // Receipts are stored with their time in whole milliseconds.
        let is_new = |stored: &&StoredReceipt| stored.at.as_millisecond() >= since.as_millisecond();
        let receipts = || stored_receipts.iter().filter(is_new).map(|stored| &stored.receipt);
        let is_delivered = receipts()
            .any(|receipt| matches!(receipt.status.delivery_state(), DeliveryState::Delivered | DeliveryState::Read));
        let is_rejected = receipts()
            .any(|receipt| receipt.status == Status::Rejected && chain.is_exhausted_by(receipt.channel.as_ref()));
        is_rejected && !is_delivered
    }
}
