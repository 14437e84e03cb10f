//! Paging through the rows of a run: row sets by state, and the rows of one page, read without the rest of the run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::columns::{VariantLookup, reported_error};
use super::recipients::load_list_rows;
use super::row_records::{RowRecord, RowRecords};
use super::run_figures::normalize_failure_reason;
use crate::delivery::Snapshot;
use campaign_core::domain::{Channel, OperationOutcome, Phone, Row};
use campaign_ledger::{ENDED_EARLY, Ledger, LedgerError, RowState, Run, RunActivity};
use campaign_manifest::CampaignBrief;

/// The rows of a run by state, at one time.
#[derive(Clone, Debug, Default)]
pub struct RowIndex {
    sets: BTreeMap<RowState, RoaringBitmap>,
}

impl RowIndex {
    /// Builds the index from all requests of a run; `owned` says whether a process is sending the run.
    ///
    /// # Errors
    /// If the ledger cannot be read, or the run was purged.
    pub async fn load(ledger: &dyn Ledger, run: &Run, owned: bool) -> Result<Self, LedgerError> {
        let snapshot = Snapshot::load(ledger, run, owned).await?;
        let mut sets: BTreeMap<RowState, RoaringBitmap> = BTreeMap::new();
        let (first, last) = (Row::FIRST.get(), run.last_row().get());
        let mut recorded = RoaringBitmap::new();
        for row in (first..=last).map(Row::new) {
            if snapshot.states.recorded_state(row).is_some() {
                sets.entry(snapshot.row_state(row)).or_default().insert(row.get());
                recorded.insert(row.get());
            }
        }
        for (state, _, rows) in snapshot.left_out.sets() {
            *sets.entry(state).or_default() |= rows - &recorded;
        }
        recorded |= snapshot.left_out.rows();
        let mut unrecorded = RoaringBitmap::new();
        if recorded.len() < run.recipients {
            unrecorded.insert_range(first..=last);
            unrecorded -= &recorded;
        }
        // Blank lines of the list are not rows. If the list cannot be read, blank lines stay in the index, so that no
        // row is lost.
        if recorded.len() + unrecorded.len() > run.recipients
            && let Ok(listed) = load_list_rows(ledger, run).await
        {
            unrecorded &= listed;
        }
        let unattempted = RunActivity::from_progress(run.progress, owned).unattempted_state(None);
        *sets.entry(unattempted).or_default() |= unrecorded;
        Ok(Self { sets })
    }

    /// Restricts the index to `rows`.
    #[must_use]
    pub fn restrict(mut self, rows: &RoaringBitmap) -> Self {
        self.sets.values_mut().for_each(|set| *set &= rows);
        self
    }

    /// All rows in `state`, or in any state if `state` is `None`.
    pub fn rows(&self, state: Option<RowState>) -> RoaringBitmap {
        self.matching_sets(state).fold(RoaringBitmap::new(), |all, set| all | set)
    }

    /// Whether the index contains this row.
    pub fn contains(&self, row: Row) -> bool {
        self.sets.values().any(|set| set.contains(row.get()))
    }

    /// At most `limit` rows in a state (or in any state), starting at row `from`. Ask for one more row than a page
    /// shows to learn whether another page follows.
    pub fn rows_from(&self, state: Option<RowState>, from: Row, limit: usize) -> Vec<Row> {
        let take_rows = |set: &RoaringBitmap| set.range(from.get()..).take(limit).collect::<Vec<u32>>();
        let mut rows: Vec<u32> = self.matching_sets(state).flat_map(take_rows).collect();
        rows.sort_unstable();
        rows.truncate(limit);
        rows.into_iter().map(Row::new).collect()
    }

    /// The first row of the page that ends just before row `before`: a page of at most `limit` rows in a state (or in
    /// any state). `None` if no such row precedes `before`.
    pub fn find_page_start(&self, state: Option<RowState>, before: Row, limit: usize) -> Option<Row> {
        let take_rows = |set: &RoaringBitmap| set.range(..before.get()).rev().take(limit).collect::<Vec<u32>>();
        let mut rows: Vec<u32> = self.matching_sets(state).flat_map(take_rows).collect();
        rows.sort_unstable_by(|first, second| second.cmp(first));
        rows.truncate(limit);
        rows.last().copied().map(Row::new)
    }

    /// The number of rows in a state (or in any state) before row `from`, and the number of all rows in that state.
    pub fn count_before_and_total(&self, state: Option<RowState>, from: Row) -> (u64, u64) {
        let sets = self.matching_sets(state);
        sets.fold((0, 0), |(before, all), set| (before + set.range_cardinality(..from.get()), all + set.len()))
    }

    /// The number of rows in a state.
    pub fn count(&self, state: RowState) -> u64 {
        self.matching_sets(Some(state)).map(RoaringBitmap::len).sum()
    }

    /// The row sets that `state` covers, or all row sets if `state` is `None`.
    fn matching_sets(&self, state: Option<RowState>) -> impl Iterator<Item = &RoaringBitmap> {
        let is_listed = move |other: RowState| state.is_none_or(|state| state.includes_state(other));
        self.sets.iter().filter(move |(other, _)| is_listed(**other)).map(|(_, set)| set)
    }
}

/// Conditions on rows other than their state. The default selects every row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowFilter {
    /// Only messages that count for this channel.
    pub channel: Option<Channel>,
    /// Only rows with this reason, as figures count it.
    pub reason: Option<String>,
    /// Only messages with this variant.
    pub variant: Option<String>,
}

impl RowFilter {
    /// Whether every row matches.
    pub fn is_unfiltered(&self) -> bool {
        *self == Self::default()
    }

    /// Finds the rows of a run that match the filter; `owned` says whether a process is sending the run.
    ///
    /// # Errors
    /// If the ledger cannot be read, or the run was purged.
    pub async fn find_rows(
        &self,
        ledger: &dyn Ledger,
        run: &Run,
        owned: bool,
        brief: &CampaignBrief,
    ) -> Result<RoaringBitmap, LedgerError> {
        let left_out = ledger.load_excluded_rows(run.key).await?;
        let mut records = RowRecords::open(ledger, run, owned).await?;
        let variants = VariantLookup::from_brief(brief, true);
        let mut rows = RoaringBitmap::new();
        for row in Row::FIRST.get()..=run.last_row().get() {
            let record = records.take_record(Row::new(row)).await?;
            let reason =
                || find_counted_reason(record.as_ref(), left_out.find_reason(Row::new(row)), records.activity());
            let channel = || record.as_ref().and_then(RowRecord::channel);
            let variant = || variants.find_name(record.as_ref().and_then(|record| record.phone));
            let matches = self.channel.is_none_or(|expected| channel() == Some(expected))
                && self.variant.as_deref().is_none_or(|expected| variant() == Some(expected))
                && self.reason.as_ref().is_none_or(|expected| reason().as_ref() == Some(expected));
            if matches {
                rows.insert(row);
            }
        }
        Ok(rows)
    }
}

/// A row in a page of rows.
#[derive(Clone, Debug)]
pub struct RowSummary {
    /// The row.
    pub row: Row,
    /// The number to which its message was sent. `None` without a message, or if the number was erased.
    pub phone: Option<Phone>,
    /// The state of the row.
    pub state: RowState,
    /// The reason for its state, from the gateway or from the check that excluded it.
    pub reason: Option<String>,
    /// The time when its last attempt started.
    pub sent_at: Option<Timestamp>,
}

/// The states whose reasons figures count.
const UNDELIVERED_STATES: [RowState; 3] = [RowState::Rejected, RowState::Failed, RowState::NotSent];

/// The reason for a row's state, as figures count it. `excluded` is the state and reason of an excluded row.
fn find_counted_reason(
    record: Option<&RowRecord>,
    excluded: Option<(RowState, &str)>,
    activity: RunActivity,
) -> Option<String> {
    let unattempted = || activity.unattempted_state(excluded.map(|(state, _)| state));
    match (record.map_or_else(unattempted, |record| record.state), record) {
        (RowState::Skipped | RowState::Invalid, _) => {
            Some(excluded.map_or(activity.skip_reason(), |(_, reason)| reason).to_owned())
        }
        (state, Some(record)) if UNDELIVERED_STATES.contains(&state) => Some(normalize_failure_reason(record)),
        _ => None,
    }
}

/// Loads summaries of `rows`, which must be in ascending order.
///
/// # Errors
/// If the ledger cannot be read, or the run was purged.
pub async fn load_row_summaries(
    ledger: &dyn Ledger,
    run: &Run,
    owned: bool,
    rows: &[Row],
) -> Result<Vec<RowSummary>, LedgerError> {
    let row_set: RoaringBitmap = rows.iter().map(|row| row.get()).collect();
    let left_out = ledger.load_excluded_rows(run.key).await?;
    let mut records = RowRecords::open_for_rows(ledger, run, owned, &row_set).await?;
    let mut listed = Vec::with_capacity(rows.len());
    for row in rows {
        let record = records.take_record(*row).await?;
        let exclusion = left_out.find_reason(*row);
        let (state, reason) = match &record {
            Some(record) => (record.state, find_reason(record)),
            None => (records.activity().unattempted_state(exclusion.map(|(state, _)| state)), None),
        };
        let exclusion = match exclusion.filter(|(other, _)| *other == state) {
            None if state == RowState::Skipped => Some(records.activity().skip_reason()),
            exclusion => exclusion.map(|(_, reason)| reason),
        };
        let exclusion = exclusion.map(str::to_owned);
        let sent_at = record.as_ref().map(|record| record.begun_at);
        let phone = record.as_ref().and_then(|record| record.phone);
        // Without an error text, the gateway's status is the reason, as in the figures.
        let counted = record.as_ref().filter(|_| UNDELIVERED_STATES.contains(&state)).map(normalize_failure_reason);
        let reason = exclusion.or(reason).or_else(|| counted.filter(|reason| !reason.is_empty()));
        listed.push(RowSummary { row: *row, phone, state, reason, sent_at });
    }
    Ok(listed)
}

/// The last reported reason why a message did not arrive. Later proof of the message's state replaces an earlier
/// reason.
fn find_reason(record: &RowRecord) -> Option<String> {
    let state = record.state;
    let receipt = record.receipt_summary.as_ref().map(|summary| &summary.last.receipt);
    let answer_reason = match record.settled.as_ref().map(|(_, outcome)| outcome) {
        Some(OperationOutcome::Rejected { error }) if !state.is_with_gateway() => Some(error.as_str()),
        Some(OperationOutcome::NotSent { reason } | OperationOutcome::InDoubt { reason }) if !state.is_proven() => {
            Some(reason.as_ref())
        }
        None if state == RowState::InDoubt => Some(ENDED_EARLY),
        _ => None,
    };
    reported_error(receipt, state).or(answer_reason).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_index() -> RowIndex {
        let set = |rows: &[u32]| rows.iter().copied().collect::<RoaringBitmap>();
        RowIndex { sets: [(RowState::Accepted, set(&[2, 3, 6, 7])), (RowState::Rejected, set(&[4, 5, 8]))].into() }
    }

    fn page(state: Option<RowState>, from: u32, limit: usize) -> Vec<u32> {
        sample_index().rows_from(state, Row::new(from), limit).into_iter().map(Row::get).collect()
    }

    #[test]
    fn pages_can_start_at_any_row_and_go_backwards() {
        assert_eq!(page(None, 2, 4), [2, 3, 4, 5]);
        assert_eq!(page(None, 6, 9), [6, 7, 8]);
        assert_eq!(page(Some(RowState::Rejected), 5, 9), [5, 8]);
        assert_eq!(page(Some(RowState::InDoubt), 2, 9), [0; 0]);
        let before = |state, row, limit| sample_index().find_page_start(state, Row::new(row), limit).map(Row::get);
        assert_eq!(before(None, 8, 3), Some(5));
        assert_eq!(before(Some(RowState::Accepted), 7, 2), Some(3));
        assert_eq!(before(Some(RowState::Accepted), 2, 2), None);
        let position = |state, from| sample_index().count_before_and_total(state, Row::new(from));
        let set = |rows: &[u32]| rows.iter().copied().collect::<RoaringBitmap>();
        let index = RowIndex { sets: [(RowState::Delivered, set(&[2, 5])), (RowState::Read, set(&[3, 6]))].into() };
        let delivered = index.rows_from(Some(RowState::Delivered), Row::new(3), 9);
        assert_eq!(delivered.into_iter().map(Row::get).collect::<Vec<_>>(), [3, 5, 6], "read rows are delivered too");
        assert_eq!((index.count(RowState::Delivered), index.count(RowState::Read)), (4, 2));
        assert_eq!(
            (position(None, 6), position(Some(RowState::Rejected), 6), position(Some(RowState::InDoubt), 6)),
            ((4, 7), (2, 3), (0, 0))
        );
    }
}
