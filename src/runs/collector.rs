//! Gathers receipts that come at the same time, and has the ledger keep them in one commit.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::Receiver;
use crate::ledger::{LedgerError, NewReceipt, Reception};

/// The most webhooks that wait for a commit; who comes when there are more waits at the door.
const WAITING: usize = 4_096;

/// What came with one webhook, and who waits for it to be kept.
struct Delivery {
    receipts: Vec<NewReceipt>,
    kept: oneshot::Sender<Vec<Reception>>,
}

/// The way to the collector.
#[derive(Clone)]
pub struct Collector(mpsc::Sender<Delivery>);

/// A collector, and its work: it ends when nobody can bring anything any more, or when the ledger fails.
pub fn collector(receiver: Arc<Receiver>) -> (Collector, impl Future<Output = Result<(), LedgerError>>) {
    let (sender, deliveries) = mpsc::channel(WAITING);
    (Collector(sender), collect(receiver, deliveries))
}

impl Collector {
    /// Has receipts kept; nothing if they could not be.
    pub async fn keep(&self, receipts: Vec<NewReceipt>) -> Option<Vec<Reception>> {
        let (kept, keeping) = oneshot::channel();
        self.0.send(Delivery { receipts, kept }).await.ok()?;
        keeping.await.ok()
    }
}

async fn collect(receiver: Arc<Receiver>, mut deliveries: mpsc::Receiver<Delivery>) -> Result<(), LedgerError> {
    let mut waiting: Vec<Delivery> = Vec::with_capacity(WAITING);
    // While one commit is under way the next ones gather: the more there are, the fewer commits each of them costs.
    while deliveries.recv_many(&mut waiting, WAITING).await > 0 {
        match keep(&receiver, &mut waiting).await {
            // A damaged record keeps away its own receipts only.
            Err(error) if error.concerns_records() => {
                for delivery in std::mem::take(&mut waiting) {
                    keep_alone(&receiver, delivery).await?;
                }
            }
            kept => kept?,
        }
    }
    Ok(())
}

/// Keeps what came with some webhooks in one commit, and tells those who wait.
async fn keep(receiver: &Receiver, waiting: &mut Vec<Delivery>) -> Result<(), LedgerError> {
    let receipts = waiting.iter().flat_map(|delivery| delivery.receipts.iter().cloned()).collect();
    match receiver.keep(receipts).await {
        Ok(receptions) => {
            let mut receptions = receptions.into_iter();
            for Delivery { receipts, kept } in waiting.drain(..) {
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
async fn keep_alone(receiver: &Receiver, delivery: Delivery) -> Result<(), LedgerError> {
    match keep(receiver, &mut vec![delivery]).await {
        Err(error) if error.concerns_records() => {
            tracing::error!("a receipt was rejected: {}; run `campaign ledger check`", error.damage());
            Ok(())
        }
        kept => kept,
    }
}
