//! A few rows of a run with what became of each, read without the rest of the run.

use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::row_records::{RowRecord, RowRecords};
use super::row_writer::reported_error;
use crate::domain::{OperationOutcome, Phone, Row};
use crate::ledger::{ENDED_EARLY, Ledger, LedgerError, RowState, Run};

/// A row as a list of rows shows it.
#[derive(Clone, Debug)]
pub struct RowSummary {
    /// The row.
    pub row: Row,
    /// The number that its message went to; nothing where none did, or the number was forgotten.
    pub phone: Option<Phone>,
    /// Its state.
    pub state: RowState,
    /// Why it is in that state, in the words of the gateway or of who left it out.
    pub reason: Option<String>,
    /// When its last attempt began.
    pub sent_at: Option<Timestamp>,
}

/// These rows of a run, which come in ascending order.
///
/// # Errors
/// When the ledger cannot be read, or the run was purged.
pub async fn load_row_summaries(
    ledger: &dyn Ledger,
    run: &Run,
    owned: bool,
    rows: &[Row],
) -> Result<Vec<RowSummary>, LedgerError> {
    let few: RoaringBitmap = rows.iter().map(|row| row.get()).collect();
    let left_out = ledger.load_excluded_rows(run.key).await?;
    let mut records = RowRecords::open_for_rows(ledger, run, owned, &few).await?;
    let mut listed = Vec::with_capacity(rows.len());
    for row in rows {
        let record = records.take_record(*row).await?;
        let out = left_out.find_reason(*row);
        let (state, reason) = match &record {
            Some(record) => (record.state, find_reason(record)),
            None => (records.activity().unattempted_state(out.map(|(state, _)| state)), None),
        };
        let out = match out.filter(|(of, _)| *of == state) {
            None if state == RowState::Skipped => Some(records.activity().skip_reason()),
            out => out.map(|(_, why)| why),
        };
        let out = out.map(str::to_owned);
        let sent_at = record.as_ref().map(|record| record.begun_at);
        let phone = record.as_ref().and_then(|record| record.phone);
        listed.push(RowSummary { row: *row, phone, state, reason: out.or(reason), sent_at });
    }
    Ok(listed)
}

/// The last reported reason why a message did not arrive. Later proof of its state replaces an earlier reason.
fn find_reason(record: &RowRecord) -> Option<String> {
    let state = record.state;
    let told = reported_error(record.receipt_summary.as_ref().map(|told| &told.last.receipt), state);
    let answered = match record.settled.as_ref().map(|(_, outcome)| outcome) {
        Some(OperationOutcome::Rejected { error }) if !state.is_with_gateway() => Some(error.as_str()),
        Some(OperationOutcome::NotSent { reason } | OperationOutcome::InDoubt { reason }) if !state.is_proven() => {
            Some(reason.as_ref())
        }
        None if state == RowState::InDoubt => Some(ENDED_EARLY),
        _ => None,
    };
    told.or(answered).map(str::to_owned)
}
