//! The fold: the records of a run's rows, one after another, become its figures. Pure.

use roaring::RoaringBitmap;

use super::{ArrivalKind, RunFigures};
use crate::domain::{FALLBACK_NOT_REPORTED, OperationOutcome, Row};
use crate::ledger::{ExcludedRows, RowChange, RowState, Run, RunActivity};
use crate::report::row_records::RowRecord;

/// Figures that are being made.
pub(in crate::report) struct Fold<'f> {
    figures: RunFigures,
    left_out: &'f ExcludedRows,
    /// The rows that have a record.
    attempted: RoaringBitmap,
    /// The reason for skipped rows that are not in `left_out`.
    skip_reason: &'static str,
}

impl<'f> Fold<'f> {
    /// A fold of the records of a run.
    pub(in crate::report) fn for_run(run: &Run, left_out: &'f ExcludedRows) -> Self {
        let (figures, attempted) = Default::default();
        let skip_reason = RunActivity::from_progress(run.progress, false).skip_reason();
        Self { figures, left_out, attempted, skip_reason }
    }

    /// Adds the record of a row.
    pub(in crate::report) fn add_row(&mut self, row: Row, record: &RowRecord) {
        self.attempted.insert(row.get());
        self.figures.counts.add(record.state, 1);
        self.figures.channels.add_record(record);
        self.figures.doubts.add_row(row, record);
        match record.state {
            RowState::Skipped => {
                let why = self.left_out.find_reason(row).map_or(self.skip_reason, |(_, why)| why);
                self.figures.left_out.add_rows(RowState::Skipped, why, 1);
            }
            RowState::Rejected | RowState::Failed | RowState::NotSent => {
                let words = find_failure_reason(record);
                let words =
                    record.phone.map_or(words.into(), |phone| phone.hide_in_text(words, &phone.format_masked()));
                self.figures.failures.add_rows(record.state, &words, 1);
            }
            _ => {}
        }
        if super::ACCEPTED_STATES.contains(&record.state) {
            self.add_accepted(record);
        }
    }

    /// Adds a message that the gateway took.
    fn add_accepted(&mut self, record: &RowRecord) {
        let channel = record.channel();
        let place = channel.and_then(|channel| record.chain.channels().position(|on| on == channel));
        if record.chain.is_known() {
            let figure = self.figures.chains.entry(record.chain.channels().collect()).or_default();
            let place = place.and_then(|place| u8::try_from(place).ok());
            figure.places.entry(place).or_default().add(record.state, 1);
        }
        if let Some(delivery) = record.delivery() {
            let kind = ArrivalKind { channel, first: place.map(|place| place == 0) };
            self.figures.arrivals.add_count(delivery.chart_time(), kind, 1);
        }
    }

    /// The figures, once all records are in; `activity` is what is being done about the run, which has so many recipients.
    pub(in crate::report) fn finish(self, activity: RunActivity, recipients: u64) -> RunFigures {
        let Self { mut figures, left_out, attempted, skip_reason, .. } = self;
        for (state, why, rows) in left_out.sets() {
            let rows = rows.len() - rows.intersection_len(&attempted);
            figures.left_out.add_rows(state, why, rows);
            figures.counts.add(state, rows);
        }
        let untouched = recipients.saturating_sub(figures.counts.total());
        let state = activity.unattempted_state(None);
        if state == RowState::Skipped {
            figures.left_out.add_rows(state, skip_reason, untouched);
        }
        figures.counts.add(state, untouched);
        figures
    }
}

/// Why a row was refused or did not arrive: in the gateway's words where it said any.
fn find_failure_reason(record: &RowRecord) -> &str {
    if record.lacks_fallback() {
        return FALLBACK_NOT_REPORTED;
    }
    let told = record.receipt_summary.as_ref().map(|told| &told.last.receipt);
    if let Some(receipt) = told.filter(|receipt| receipt.status.is_failure()) {
        return receipt.error.as_deref().filter(|error| !error.trim().is_empty()).unwrap_or(receipt.status.name());
    }
    let last = record.amendment.as_ref().and_then(|amendment| amendment.last.as_ref());
    match (last, &record.settled) {
        (Some((_, RowChange::Found { status, .. })), _) => status,
        (Some((_, RowChange::NotSent { why, .. })), _) => why.as_deref().unwrap_or_default(),
        (_, Some((_, OperationOutcome::Rejected { error }))) => error,
        (_, Some((_, OperationOutcome::NotSent { reason }))) => reason,
        _ => "",
    }
}
