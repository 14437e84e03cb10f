//! A few rows of a run with what became of each, read without the rest of the run.

use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::row_records::{RowRecord, RowRecords};
use super::row_writer::reported_error;
use crate::domain::{Outcome, Phone, Row};
use crate::ledger::{ENDED_EARLY, Ledger, LedgerError, Run, State};

/// A row as a list of rows shows it.
#[derive(Clone, Debug)]
pub struct ListedRow {
    /// The row.
    pub row: Row,
    /// The number that its message went to; nothing where none did, or the number was forgotten.
    pub phone: Option<Phone>,
    /// Its state.
    pub state: State,
    /// Why it is in that state, in the words of the gateway or of who left it out.
    pub reason: Option<String>,
    /// When its last attempt began.
    pub sent_at: Option<Timestamp>,
}

/// These rows of a run, which come in ascending order.
///
/// # Errors
/// When the ledger cannot be read, or the run was purged.
pub async fn listed_rows(
    ledger: &dyn Ledger,
    run: &Run,
    owned: bool,
    rows: &[Row],
) -> Result<Vec<ListedRow>, LedgerError> {
    let few: RoaringBitmap = rows.iter().map(|row| row.get()).collect();
    let left_out = ledger.left_out(run.key).await?;
    let mut records = RowRecords::of_few(ledger, run, owned, &few).await?;
    let mut listed = Vec::with_capacity(rows.len());
    for row in rows {
        let record = records.take(*row).await?;
        let out = left_out.of(*row);
        let (state, reason) = match &record {
            Some(record) => (record.state, reason(record)),
            None => (records.activity().unattempted(out.map(|(state, _)| state)), None),
        };
        let out = match out.filter(|(of, _)| *of == state) {
            None if state == State::Skipped => Some(records.activity().skip_reason()),
            out => out.map(|(_, why)| why),
        };
        let out = out.map(str::to_owned);
        let sent_at = record.as_ref().map(|record| record.begun_at);
        let phone = record.as_ref().and_then(|record| record.phone);
        listed.push(ListedRow { row: *row, phone, state, reason: out.or(reason), sent_at });
    }
    Ok(listed)
}

/// The last reported reason why a message did not arrive. Later proof of its state replaces an earlier reason.
fn reason(record: &RowRecord) -> Option<String> {
    let state = record.state;
    let told = reported_error(record.told.as_ref().map(|told| &told.last.receipt), state);
    let answered = match record.settled.as_ref().map(|(_, outcome)| outcome) {
        Some(Outcome::Rejected { error }) if !state.has_left() => Some(error.as_str()),
        Some(Outcome::NotSent { reason } | Outcome::InDoubt { reason }) if !state.is_proven() => Some(reason.as_ref()),
        None if state == State::InDoubt => Some(ENDED_EARLY),
        _ => None,
    };
    told.or(answered).map(str::to_owned)
}
