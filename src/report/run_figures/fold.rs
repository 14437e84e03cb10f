//! The fold: the records of a run's rows, one after another, become its figures. Pure.

use roaring::RoaringBitmap;

use super::{Arrived, RunFigures};
use crate::domain::{FALLBACK_NOT_REPORTED, Outcome, Row};
use crate::ledger::{Activity, Change, LeftOut, Run, State};
use crate::report::row_records::RowRecord;

/// Figures that are being made.
pub(in crate::report) struct Fold<'f> {
    figures: RunFigures,
    left_out: &'f LeftOut,
    /// The rows that have a record.
    attempted: RoaringBitmap,
    /// The reason for skipped rows that are not in `left_out`.
    skip_reason: &'static str,
}

impl<'f> Fold<'f> {
    /// A fold of the records of a run.
    pub(in crate::report) fn of(run: &Run, left_out: &'f LeftOut) -> Self {
        let (figures, attempted) = Default::default();
        let skip_reason = Activity::of(run.progress, false).skip_reason();
        Self { figures, left_out, attempted, skip_reason }
    }

    /// Adds the record of a row.
    pub(in crate::report) fn add(&mut self, row: Row, record: &RowRecord) {
        self.attempted.insert(row.get());
        self.figures.counts.add(record.state, 1);
        self.figures.channels.add(record);
        self.figures.doubts.add(row, record);
        match record.state {
            State::Skipped => {
                let why = self.left_out.of(row).map_or(self.skip_reason, |(_, why)| why);
                self.figures.left_out.add(State::Skipped, why, 1);
            }
            State::Rejected | State::Failed | State::NotSent => {
                let words = why_failed(record);
                let words = record.phone.map_or(words.into(), |phone| phone.hidden_in(words, &phone.masked()));
                self.figures.failures.add(record.state, &words, 1);
            }
            _ => {}
        }
        if super::TAKEN.contains(&record.state) {
            self.taken(record);
        }
    }

    /// Adds a message that the gateway took.
    fn taken(&mut self, record: &RowRecord) {
        let channel = record.channel();
        let place = channel.and_then(|channel| record.chain.channels().position(|on| on == channel));
        if record.chain.is_known() {
            let figure = self.figures.ways.entry(record.chain.channels().collect()).or_default();
            let place = place.and_then(|place| u8::try_from(place).ok());
            figure.places.entry(place).or_default().add(record.state, 1);
        }
        if let Some(delivery) = record.delivery() {
            let kind = Arrived { channel, first: place.map(|place| place == 0) };
            self.figures.arrived.add(delivery.counts_at(), kind, 1);
        }
    }

    /// The figures, once all records are in; `activity` is what is being done about the run, which has so many recipients.
    pub(in crate::report) fn end(self, activity: Activity, recipients: u64) -> RunFigures {
        let Self { mut figures, left_out, attempted, skip_reason, .. } = self;
        for (state, why, rows) in left_out.sets() {
            let rows = rows.len() - rows.intersection_len(&attempted);
            figures.left_out.add(state, why, rows);
            figures.counts.add(state, rows);
        }
        let untouched = recipients.saturating_sub(figures.counts.total());
        let state = activity.unattempted(None);
        if state == State::Skipped {
            figures.left_out.add(state, skip_reason, untouched);
        }
        figures.counts.add(state, untouched);
        figures
    }
}

/// Why a row was refused or did not arrive: in the gateway's words where it said any.
fn why_failed(record: &RowRecord) -> &str {
    if record.lacks_fallback() {
        return FALLBACK_NOT_REPORTED;
    }
    let told = record.told.as_ref().map(|told| &told.last.receipt);
    if let Some(receipt) = told.filter(|receipt| receipt.status.is_failure()) {
        return receipt.error.as_deref().filter(|error| !error.trim().is_empty()).unwrap_or(receipt.status.name());
    }
    let last = record.amendment.as_ref().and_then(|amendment| amendment.last.as_ref());
    match (last, &record.settled) {
        (Some((_, Change::Found { status, .. })), _) => status,
        (Some((_, Change::NotSent { why, .. })), _) => why.as_deref().unwrap_or_default(),
        (_, Some((_, Outcome::Rejected { error }))) => error,
        (_, Some((_, Outcome::NotSent { reason }))) => reason,
        _ => "",
    }
}
