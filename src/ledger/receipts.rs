//! Receipts of messages, and what they make of a message's state. Pure but for the walk over them.

use std::ops::Range;

use jiff::Timestamp;

use super::{Ledger, LedgerError, LedgerFuture, OptOut, RunId, State, StateCounts};
use crate::domain::{Addressee, Arrival, Receipt, Row};

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
    /// Whom it puts on the suppression list, if it is kept: somebody answered with a word that opts out.
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
    /// It is kept.
    Kept,
    /// It tells what is known already, or more than anybody has to know of one message; nothing was written.
    Known,
}

/// The receipts of the rows of a run.
pub trait Receipts {
    /// Keeps receipts, whoever has their runs: they are evidence. Who opted out by one is on the suppression list from the
    /// same commit on. Tells of each what became of it, in their order.
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

/// The most receipts that are kept of one message: its way has fewer stations, whoever tells more makes noise.
const MOST: usize = 64;

/// Adds a receipt to those of its row, unless it tells what is known.
pub(super) fn keep(kept: &mut Vec<KeptReceipt>, new: KeptReceipt) -> Reception {
    let same: Vec<&KeptReceipt> = kept.iter().filter(|known| known.order == new.order).collect();
    let known = same.iter().any(|known| known.receipt == new.receipt);
    let noise = same.len() >= MOST && {
        let mut standing = Standing::of(State::Accepted);
        for known in same {
            standing.hear(known);
        }
        !standing.hear(&new)
    };
    if known || noise {
        return Reception::Known;
    }
    kept.push(new);
    Reception::Kept
}

/// Where a message stands while what is known of it is heard, one after another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) state: State,
    /// When it failed, if it did.
    pub(super) failed_at: Option<Timestamp>,
    /// Whether a new message was ordered in its place.
    pub(super) replaced: bool,
}

impl Standing {
    /// A message in this state.
    pub(super) fn of(state: State) -> Self {
        Self { state, failed_at: None, replaced: false }
    }

    /// Hears a receipt; tells whether it moved the message.
    pub(super) fn hear(&mut self, kept: &KeptReceipt) -> bool {
        let arrival = kept.receipt.status.arrival();
        let next = match arrival {
            Arrival::Pending => State::Accepted,
            Arrival::Delivered => State::Delivered,
            Arrival::Read => State::Read,
            Arrival::Failed => State::Failed,
        };
        let fits = match (self.state, arrival) {
            // That the old message failed is why there is a new one.
            (State::Planned, Arrival::Pending | Arrival::Failed) if self.replaced => false,
            // Proof that it went out wins over everything that was only concluded.
            (State::Planned, _) | (State::Sending, Arrival::Pending) => true,
            // What is not final proves that it went out, and nothing else.
            (State::Queued, Arrival::Pending) => false,
            (State::Failed, Arrival::Delivered | Arrival::Read) => self.failed_at.is_none_or(|at| at < kept.told_at()),
            _ => self.state.can_become(next),
        };
        if fits {
            let failed_at = (next == State::Failed).then(|| kept.told_at());
            *self = Self { state: next, failed_at, replaced: false };
        }
        fits
    }
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
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{ReceiptSource, Status};

    fn receipt(status: Status, second: i64) -> KeptReceipt {
        let at = Timestamp::from_second(second).unwrap();
        let receipt = Receipt { updated: Some(at), ..Receipt::new(ReceiptSource::Webhook, status) };
        KeptReceipt { order: None, at, receipt }
    }

    /// Where a message stands after these receipts.
    fn after(state: State, receipts: &[KeptReceipt]) -> State {
        let mut standing = Standing::of(state);
        for receipt in receipts {
            standing.hear(receipt);
        }
        standing.state
    }

    fn statuses() -> impl Strategy<Value = Status> {
        let other = Just(Status::Other("PAUSED".into()));
        prop_oneof![proptest::sample::select(Status::KNOWN.to_vec()), other]
    }

    proptest! {
        #[test]
        fn a_message_only_moves_forward_in_whatever_order_receipts_come(
            told in proptest::collection::vec((statuses(), 0_i64..100), 0..8),
            state in proptest::sample::select(State::ALL.to_vec()),
        ) {
            let receipts: Vec<KeptReceipt> = told.into_iter().map(|(status, at)| receipt(status, at)).collect();
            let mut known = state;
            for end in 1..=receipts.len() {
                let next = after(state, &receipts[..end]);
                let forward = next == known || match known {
                    State::Planned => next.has_operation(),
                    State::Accepted | State::Queued => matches!(next, State::Delivered | State::Read | State::Failed),
                    State::Failed => matches!(next, State::Delivered | State::Read),
                    State::Delivered => next == State::Read,
                    State::Sending | State::InDoubt | State::Unresolved | State::AssumedSent | State::NotSent =>
                        matches!(next, State::Accepted | State::Delivered | State::Read | State::Failed),
                    State::Skipped | State::Invalid | State::Rejected | State::Read => false,
                };
                prop_assert!(forward, "{known} -> {next}");
                known = next;
            }
        }
    }

    #[test]
    fn a_failure_gives_way_to_a_later_delivery_and_to_no_earlier_one() {
        let (expired, late, early) =
            (receipt(Status::Expired, 50), receipt(Status::Delivered, 60), receipt(Status::Delivered, 40));
        assert_eq!(after(State::Accepted, &[expired.clone(), late.clone()]), State::Delivered);
        assert_eq!(after(State::Accepted, &[expired.clone(), early]), State::Failed);
        assert_eq!(after(State::Accepted, &[late, expired]), State::Delivered);
    }

    #[test]
    fn a_receipt_proves_a_row_in_doubt_and_one_that_is_not_final_changes_nothing_else() {
        let routing = [receipt(Status::Routing, 1)];
        for doubtful in [State::InDoubt, State::Unresolved, State::AssumedSent, State::NotSent, State::Sending] {
            assert_eq!(after(doubtful, &routing), State::Accepted, "{doubtful}");
        }
        for known in [State::Queued, State::Accepted, State::Delivered, State::Read, State::Failed, State::Rejected] {
            assert_eq!(after(known, &routing), known);
        }
    }

    #[test]
    fn the_end_of_an_old_message_takes_nothing_from_the_new_one_and_its_arrival_does() {
        let told = |status| {
            let mut standing = Standing { replaced: true, ..Standing::of(State::Planned) };
            standing.hear(&receipt(status, 1)).then_some(standing.state)
        };
        assert_eq!(told(Status::Rejected), None);
        assert_eq!(told(Status::Routing), None);
        assert_eq!(told(Status::Delivered), Some(State::Delivered));
    }

    #[test]
    fn what_is_told_twice_is_kept_once_and_noise_has_an_end() {
        let mut kept = Vec::new();
        assert_eq!(keep(&mut kept, receipt(Status::Delivered, 1)), Reception::Kept);
        let again = KeptReceipt { at: Timestamp::from_second(99).unwrap(), ..receipt(Status::Delivered, 1) };
        assert_eq!(keep(&mut kept, again), Reception::Known);
        let all: Vec<Reception> = (2..200).map(|second| keep(&mut kept, receipt(Status::Routing, second))).collect();
        assert_eq!(all.iter().filter(|reception| **reception == Reception::Kept).count(), MOST - 1);
        assert_eq!(keep(&mut kept, receipt(Status::Read, 200)), Reception::Kept, "it says more than all of them");
        let other = KeptReceipt { order: Some(1), ..receipt(Status::Delivered, 1) };
        assert_eq!(keep(&mut kept, other), Reception::Kept, "another message of the row");
    }
}
