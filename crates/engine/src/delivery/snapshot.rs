//! The state of a run's rows, read from its envelopes, events and receipts.

use std::collections::{BTreeMap, HashMap};

use roaring::RoaringBitmap;

use campaign_core::domain::{IdRange, Row};
use campaign_ledger::{
    BilledParts, EnvelopeReader, ExcludedRows, Ledger, LedgerError, ReceiptReader, RowActivities, RowEvents, RowState,
    RowStates, Run, StateCounts,
};

/// A snapshot of the rows of a run.
#[derive(Debug)]
pub struct Snapshot {
    /// Counts by state.
    pub counts: StateCounts,
    /// The billed parts, if the gateway reported them.
    pub parts: BilledParts,
    /// Rows that are never sent.
    pub left_out: ExcludedRows,
    /// Rows that need no sending: skipped, or with a final envelope.
    pub settled: RoaringBitmap,
    /// The message hashes of rows that are resent as the same message.
    pub digests: HashMap<Row, [u8; 8]>,
    /// Resent rows whose message was in doubt, so that it might have been sent before.
    pub repeated: RoaringBitmap,
    /// Rows that are sent with the identifiers of a retry order, each set with these identifiers.
    pub renumbered: Vec<(RoaringBitmap, IdRange)>,
    /// The state of each row with an envelope, including decisions.
    pub states: RowStates,
}

impl Snapshot {
    /// Reads the state of `run`. `is_owned` means that a process is sending the run.
    ///
    /// # Errors
    /// If the ledger cannot be read, or the run was purged.
    pub async fn load(ledger: &dyn Ledger, run: &Run, is_owned: bool) -> Result<Self, LedgerError> {
        LedgerError::refuse_purged(run)?;
        let left_out = ledger.load_excluded_rows(run.key).await?;
        let events = RowEvents::new(ledger.load_events(run.key).await?, run.endpoint).with_excluded_rows(&left_out);
        let mut states = RowStates::new(RowActivities::load(ledger, run, is_owned).await?, events);
        let mut settled = left_out.rows();
        let mut digests = HashMap::new();
        let mut envelopes = EnvelopeReader::new(ledger, run.key);
        while let Some(envelope) = envelopes.next_envelope().await? {
            states.add_envelope(&envelope);
            for sent in &envelope.rows {
                if states.recorded_state(sent.row) == Some(RowState::Planned) {
                    settled.remove(sent.row.get());
                    digests.insert(sent.row, sent.digest);
                } else {
                    settled.insert(sent.row.get());
                    digests.remove(&sent.row);
                }
            }
        }
        let mut receipts = ReceiptReader::new(ledger, run.key, run.last_row());
        while let Some(reported) = receipts.next_receipts().await? {
            for (row, receipts) in reported {
                states.add_receipts(row, &receipts);
                match states.recorded_state(row) {
                    // A receipt reported the failure, and a retry was ordered.
                    Some(RowState::Planned) => drop(settled.remove(row.get())),
                    // A message that was sent after all is not resent.
                    Some(_) => {
                        settled.insert(row.get());
                        digests.remove(&row);
                    }
                    None => {}
                }
            }
        }
        let counts = states.count_states(run.recipients, &left_out);
        let renumbered = find_renumbered_rows(run, &states, &mut digests);
        let planned = states.events().rows().filter(|row| states.recorded_state(*row) == Some(RowState::Planned));
        let repeated = planned.filter(|row| states.events().repeats_message_in_doubt(*row)).map(Row::get).collect();
        let parts = states.billed_parts();
        Ok(Self { counts, parts, left_out, settled, digests, repeated, renumbered, states })
    }

    /// Whether the gateway has accepted a message of the run.
    pub fn has_accepted(&self) -> bool {
        let accepted = [RowState::Accepted, RowState::Queued, RowState::Delivered, RowState::Read];
        accepted.into_iter().any(|state| self.counts.get(state) > 0)
    }

    /// The state of a row, which can also be planned or excluded.
    pub fn row_state(&self, row: Row) -> RowState {
        self.states.row_state(row, &self.left_out)
    }

    /// The planned rows with an order to send their message again.
    pub fn list_planned_resends(&self) -> RoaringBitmap {
        let ordered = self.states.events().rows();
        ordered.filter(|row| self.states.recorded_state(*row) == Some(RowState::Planned)).map(Row::get).collect()
    }

    /// Whether `stop --for-good` cancelled a row.
    pub fn is_cancelled(&self, row: Row) -> bool {
        self.row_state(row) == RowState::Skipped && self.left_out.find_reason(row).is_none()
    }
}

/// The rows whose message identifiers are not in the run's own range. Removes the digests of rows that get a new
/// message, because there is nothing to compare the message with.
fn find_renumbered_rows(
    run: &Run,
    states: &RowStates,
    digests: &mut HashMap<Row, [u8; 8]>,
) -> Vec<(RoaringBitmap, IdRange)> {
    let mut orders: BTreeMap<u32, RoaringBitmap> = BTreeMap::new();
    let events = states.events();
    for row in events.rows().filter(|row| states.recorded_state(*row) == Some(RowState::Planned)) {
        let Some(order) = events.next_order(row) else { continue };
        orders.entry(order).or_default().insert(row.get());
        if states.last_attempt(row).is_none_or(|last| events.find_order(row, last.envelope) != Some(order)) {
            digests.remove(&row);
        }
    }
    let find_ids = |order: u32| run.orders.get(usize::try_from(order).ok()?.checked_sub(1)?).copied();
    orders.into_iter().filter_map(|(order, rows)| Some((rows, find_ids(order)?))).collect()
}
