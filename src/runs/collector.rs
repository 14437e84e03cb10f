//! Gathers receipts that come at the same time, and has the ledger keep them in one commit.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::WebhookReceiver;
use crate::ledger::{LedgerError, NewReceipt, ReceiptOutcome};

/// The most webhooks that wait for a commit; who comes when there are more waits at the door.
const MAX_WAITING: usize = 4_096;

/// What came with one webhook, and who waits for it to be kept.
struct QueuedReceipts {
    receipts: Vec<NewReceipt>,
    kept: oneshot::Sender<Vec<ReceiptOutcome>>,
}

/// The way to the collector.
#[derive(Clone)]
pub struct ReceiptCollector(mpsc::Sender<QueuedReceipts>);

/// A collector, and its work: it ends when nobody can bring anything any more, or when the ledger fails.
pub fn create_collector(
    receiver: Arc<WebhookReceiver>,
) -> (ReceiptCollector, impl Future<Output = Result<(), LedgerError>>) {
    let (sender, deliveries) = mpsc::channel(MAX_WAITING);
    (ReceiptCollector(sender), collect_receipts(receiver, deliveries))
}

impl ReceiptCollector {
    /// Has receipts kept; nothing if they could not be.
    pub async fn keep_receipts(&self, receipts: Vec<NewReceipt>) -> Option<Vec<ReceiptOutcome>> {
        let (kept, keeping) = oneshot::channel();
        self.0.send(QueuedReceipts { receipts, kept }).await.ok()?;
        keeping.await.ok()
    }
}

async fn collect_receipts(
    receiver: Arc<WebhookReceiver>,
    mut deliveries: mpsc::Receiver<QueuedReceipts>,
) -> Result<(), LedgerError> {
    let mut waiting: Vec<QueuedReceipts> = Vec::with_capacity(MAX_WAITING);
    // While one commit is under way the next ones gather: the more there are, the fewer commits each of them costs.
    while deliveries.recv_many(&mut waiting, MAX_WAITING).await > 0 {
        match commit_receipts(&receiver, &mut waiting).await {
            // A damaged record keeps away its own receipts only.
            Err(error) if error.concerns_records() => {
                for delivery in std::mem::take(&mut waiting) {
                    commit_alone(&receiver, delivery).await?;
                }
            }
            kept => kept?,
        }
    }
    Ok(())
}

/// Keeps what came with some webhooks in one commit, and tells those who wait.
async fn commit_receipts(receiver: &WebhookReceiver, waiting: &mut Vec<QueuedReceipts>) -> Result<(), LedgerError> {
    let receipts = waiting.iter().flat_map(|delivery| delivery.receipts.iter().cloned()).collect();
    match receiver.store_receipts(receipts).await {
        Ok(receptions) => {
            let mut receptions = receptions.into_iter();
            for QueuedReceipts { receipts, kept } in waiting.drain(..) {
                // Who does not wait any more has it brought again.
                let _ = kept.send(receptions.by_ref().take(receipts.len()).collect());
            }
        }
        Err(LedgerError::Busy { who, .. }) => {
            tracing::warn!("receipts are rejected until the ledger is writable again: {who}");
            waiting.clear();
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Keeps what came with one webhook. If a record that it needs is damaged, the sender brings it again later.
async fn commit_alone(receiver: &WebhookReceiver, delivery: QueuedReceipts) -> Result<(), LedgerError> {
    match commit_receipts(receiver, &mut vec![delivery]).await {
        Err(error) if error.concerns_records() => {
            tracing::error!("a receipt was rejected: {}; run `campaign ledger check`", error.describe_damage());
            Ok(())
        }
        kept => kept,
    }
}
