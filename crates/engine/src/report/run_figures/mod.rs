//! Figures of a run, the source of all its numbers and charts.
//!
//! The figures are calculated in one pass over the records of the run's rows. They are stored when the run ends or is
//! recounted, so viewing a run of ten million rows reads no rows. Figures that are shown together come from the same
//! pass.

mod breakdowns;
mod channels;
mod stored;

use std::collections::BTreeMap;

use jiff::Timestamp;
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::row_records::RowRecord;
use super::{RowRecords, counts_json};
use campaign_core::domain::{Budget, Channel, FALLBACK_NOT_REPORTED, OperationOutcome, Row};
use campaign_ledger::{
    ExcludedRows, Ledger, LedgerError, RowChange, RowState, Run, RunActivity, RunFilter, RunId, RunProgress, RunUpdate,
    StateCounts,
};
pub use channels::ACCEPTED_STATES;
use stored::StoredFigures;

pub use breakdowns::{
    FallbackChain, FallbackChainFigure, ReasonCount, ReasonCounts, RequestFigures, RowInDoubt, RowsInDoubt, RunCost,
    Timeline, TimelinePoint,
};
pub use channels::{ChannelFigure, ChannelFigures, DeliveryTimes};

/// The channel by which a message arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArrivalKind {
    /// The channel; `None` if it was not reported.
    pub channel: Option<Channel>,
    /// Whether it was the first channel of the fallback chain; `None` if that is unknown.
    pub first: Option<bool>,
}

/// The counts, times and costs that are shown about a run.
#[derive(Clone, Debug, Default)]
pub struct RunFigures {
    /// Rows by state.
    pub counts: StateCounts,
    /// Skipped and invalid rows, by reason.
    pub left_out: ReasonCounts,
    /// Messages by channel.
    pub channels: ChannelFigures,
    /// Messages by fallback chain, and where they ended.
    pub chains: BTreeMap<FallbackChain, FallbackChainFigure>,
    /// Delivered messages by time and channel.
    pub arrivals: Timeline<ArrivalKind>,
    /// Messages that were rejected, failed or not sent, by reason.
    pub failures: ReasonCounts,
    /// Rows in doubt.
    pub doubts: RowsInDoubt,
    /// Requests, with their answer times, billed parts and costs.
    pub requests: RequestFigures,
    /// The rate and budget of the run, if they were stored.
    pub terms: Option<RunTerms>,
}

impl RunFigures {
    /// Loads the stored figures of a run that is not being sent, if nothing has changed since the figures were stored.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load_stored(ledger: &dyn Ledger, run: &Run) -> Result<Option<Self>, LedgerError> {
        // A purged run can no longer change.
        let is_purged = run.purged_at.is_some();
        let counted = if is_purged { run.counts.as_ref() } else { run.current_counts() };
        let Some((counts, _)) = counted else { return Ok(None) };
        let decode = if is_purged { StoredFigures::decode } else { StoredFigures::decode_current };
        let stored = ledger.load_figures(run.key).await?.and_then(|stored| decode(&stored));
        let is_replaced = run.progress == RunProgress::Replaced;
        let stored = stored.map(|stored| if is_replaced { stored.mark_replaced() } else { stored });
        let is_valid = |stored: &StoredFigures| stored.is_current(counts, run.receipts) || is_purged;
        Ok(stored.filter(is_valid).and_then(StoredFigures::into_figures).filter(|figures| figures.counts == *counts))
    }

    /// Calculates and stores the figures of a run that just ended or was counted, with `terms` or, if there are none,
    /// the stored terms. If storing fails, the next reader calculates the figures again.
    pub async fn compute_and_store(ledger: &dyn Ledger, run: RunId, terms: Option<RunTerms>) {
        if let Err(error) = Self::try_store(ledger, run, terms).await {
            tracing::debug!("cannot store the figures of a run: {error}");
        }
    }

    async fn try_store(ledger: &dyn Ledger, run: RunId, terms: Option<RunTerms>) -> Result<(), LedgerError> {
        let Some(run) = ledger.list_runs(RunFilter::with_key(run)).await?.pop() else { return Ok(()) };
        if run.current_counts().is_none() {
            return Ok(());
        }
        let figures = Self::load(ledger, &run, false).await?;
        let figures = Self { terms: terms.or(figures.terms), ..figures };
        match StoredFigures::from_figures(&figures, run.receipts).encode() {
            Some(stored) => ledger.update_runs(vec![run.key], RunUpdate::Figures(stored)).await,
            None => Ok(()),
        }
    }

    /// Stores these figures, which were calculated when the run had `receipts` receipts. If storing fails, the next
    /// reader calculates the figures again.
    pub async fn store_computed(self, ledger: &dyn Ledger, run: RunId, receipts: u64) {
        let Some(stored) = StoredFigures::from_figures(&self, receipts).encode() else { return };
        if let Err(error) = ledger.update_runs(vec![run], RunUpdate::Figures(stored)).await {
            tracing::debug!("cannot store the figures of a run: {error}");
        }
    }

    /// Stores the terms that apply to a run from now on, and keeps the stored figures.
    pub async fn store_terms(ledger: &dyn Ledger, run: RunId, terms: RunTerms) {
        let stored = async {
            let earlier = ledger.load_figures(run).await?.and_then(|stored| StoredFigures::decode_current(&stored));
            match earlier.unwrap_or_default().with_terms(terms).encode() {
                Some(stored) => ledger.update_runs(vec![run], RunUpdate::Figures(stored)).await,
                None => Ok(()),
            }
        };
        let stored: Result<(), LedgerError> = stored.await;
        if let Err(error) = stored {
            tracing::debug!("cannot store the rate and budget of a run: {error}");
        }
    }

    /// Calculates the figures of a run from its requests and receipts; `owned` says whether a process is sending the
    /// run.
    ///
    /// # Errors
    /// If the ledger cannot be read, or the run was purged.
    pub async fn load(ledger: &dyn Ledger, run: &Run, owned: bool) -> Result<Self, LedgerError> {
        let left_out = ledger.load_excluded_rows(run.key).await?;
        let fold = Fold::for_run(run, &left_out);
        let mut records = RowRecords::open(ledger, run, owned).await?.with_fold(fold);
        for row in Row::FIRST.get()..=records.last_row().map_or(0, Row::get) {
            records.take_record(Row::new(row)).await?;
        }
        let mut figures = records.into_figures(run.recipients).unwrap_or_default();
        figures.terms =
            ledger.load_figures(run.key).await?.and_then(|stored| StoredFigures::decode(&stored)?.parse_terms());
        Ok(figures)
    }
}

/// Calculates the figures of a run from its records.
pub(in crate::report) struct Fold<'f> {
    figures: RunFigures,
    left_out: &'f ExcludedRows,
    /// The rows that have a record.
    attempted: RoaringBitmap,
    /// The reason for skipped rows that are not in `left_out`.
    skip_reason: &'static str,
}

impl<'f> Fold<'f> {
    /// Creates a fold, which calculates the figures of a run.
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
                let reason = self.left_out.find_reason(row).map_or(self.skip_reason, |(_, reason)| reason);
                self.figures.left_out.add_rows(RowState::Skipped, reason, 1);
            }
            RowState::Rejected | RowState::Failed | RowState::NotSent => {
                self.figures.failures.add_rows(record.state, &normalize_failure_reason(record), 1);
            }
            _ => {}
        }
        if ACCEPTED_STATES.contains(&record.state) {
            self.add_accepted(record);
        }
    }

    /// Adds a message that the gateway accepted.
    fn add_accepted(&mut self, record: &RowRecord) {
        let channel = record.channel();
        let position = channel.and_then(|channel| record.chain.channels().position(|other| other == channel));
        if record.chain.is_known() {
            let figure = self.figures.chains.entry(record.chain.channels().collect()).or_default();
            let position = position.and_then(|position| u8::try_from(position).ok());
            figure.places.entry(position).or_default().add(record.state, 1);
        }
        if let Some(delivery) = record.delivery() {
            let kind = ArrivalKind { channel, first: position.map(|position| position == 0) };
            self.figures.arrivals.add_count(delivery.chart_time(), kind, 1);
        }
    }

    /// Returns the figures after all records were added; rows without a record are counted according to the run's
    /// activity.
    pub(in crate::report) fn finish(self, activity: RunActivity, recipients: u64) -> RunFigures {
        let Self { mut figures, left_out, attempted, skip_reason, .. } = self;
        for (state, reason, rows) in left_out.sets() {
            let rows = rows.len() - rows.intersection_len(&attempted);
            figures.left_out.add_rows(state, reason, rows);
            figures.counts.add(state, rows);
        }
        let unattempted = recipients.saturating_sub(figures.counts.total());
        let state = activity.unattempted_state(None);
        if state == RowState::Skipped {
            figures.left_out.add_rows(state, skip_reason, unattempted);
        }
        figures.counts.add(state, unattempted);
        figures
    }
}

/// The reason why a row was rejected, failed or not sent, in the form that the figures count: short, and with a masked
/// phone number.
pub(in crate::report) fn normalize_failure_reason(record: &RowRecord) -> String {
    let text = find_failure_reason(record);
    let text = record.phone.map_or(text.into(), |phone| phone.hide_in_text(text, &phone.format_masked()));
    breakdowns::shorten_reason(&text)
}

/// The reason why a row was rejected, failed or not sent, in the gateway's words if there are any.
fn find_failure_reason(record: &RowRecord) -> &str {
    if record.lacks_fallback_report() {
        return FALLBACK_NOT_REPORTED;
    }
    let receipt = record.receipt_summary.as_ref().map(|summary| &summary.last.receipt);
    // A receipt gives the reason only for a failure. For a rejection, the response gives the reason, not a later
    // report.
    if let Some(receipt) = receipt.filter(|receipt| record.state == RowState::Failed && receipt.status.is_failure()) {
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

impl RunFigures {
    /// The figures as JSON, without phone numbers.
    pub fn to_json(&self) -> Value {
        let terms = self.terms.as_ref();
        json!({
            "counts": counts_json(&self.counts),
            "left_out": reasons_json(&self.left_out),
            "failures": reasons_json(&self.failures),
            "ways": self.chains.iter().map(|(chain, figure)| fallback_chain_json(chain, figure)).collect::<Vec<_>>(),
            "arrived": { "seconds": self.arrivals.point_seconds(), "points": self.arrivals_json() },
            "delivery_times": self.channels.iter().map(|(channel, figure)| (channel_name(channel).to_owned(), spans_json(&figure.times)))
                .collect::<Map<_, _>>(),
            "doubt": {
                "since": self.doubts.since.map(|at| at.to_string()),
                "rows": self.doubts.rows.iter().map(|row| json!({
                    "row": row.row, "state": row.state.name(), "why": row.why, "asked": row.asked,
                    "sent_at": Timestamp::from_second(row.sent_at).ok().map(|at| at.to_string()),
                })).collect::<Vec<_>>(),
            },
            "requests": requests_json(&self.requests),
            "money": money_json(&self.requests, terms),
            "rate_allowed": terms.and_then(|terms| terms.rate),
        })
    }

    fn arrivals_json(&self) -> Vec<Value> {
        let kind_json = |ArrivalKind { channel, first }: &ArrivalKind, count: &u64| json!({ "channel": channel_name(*channel), "first": first, "messages": count });
        let points = self.arrivals.points().map(|(_, point)| {
            let kinds: Vec<Value> = point.counts.iter().map(|(kind, count)| kind_json(kind, count)).collect();
            json!({ "from": point.from.to_string(), "by": kinds })
        });
        points.collect()
    }
}

fn channel_name(channel: Option<Channel>) -> &'static str {
    channel.map_or("unknown", Channel::name)
}

fn reasons_json(reasons: &ReasonCounts) -> Value {
    let reason_json =
        |reason: &ReasonCount<'_>| json!({ "state": reason.state.name(), "why": reason.text, "rows": reason.rows });
    json!({ "by": reasons.most_frequent().iter().map(reason_json).collect::<Vec<_>>(), "others": reasons.others(), "rows": reasons.count_rows() })
}

fn fallback_chain_json(chain: &FallbackChain, figure: &FallbackChainFigure) -> Value {
    let channel_json = |(position, channel): (u8, &Channel)| {
        let ended = figure.places.get(&Some(position)).map(counts_json);
        json!({ "channel": channel.name(), "reached": figure.count_reached(position), "ended": ended })
    };
    json!({ "channels": (0..).zip(chain).map(channel_json).collect::<Vec<_>>(), "untold": figure.count_unknown() })
}

fn spans_json(times: &DeliveryTimes) -> Value {
    let span_json =
        |(longest, messages): (Option<u64>, u64)| json!({ "within_seconds": longest, "messages": messages });
    times.iter_spans().map(span_json).collect()
}

fn points_json(timeline: &Timeline<()>) -> Vec<Value> {
    let points = timeline.points();
    points
        .map(|(_, point)| json!({ "from": point.from.to_string(), "messages": point.counts.values().sum::<u64>() }))
        .collect()
}

fn requests_json(figures: &RequestFigures) -> Value {
    let seconds = |percent| figures.answer_quantile(percent).map(|time| time.as_secs_f64());
    json!({
        "requests": figures.requests, "unanswered": figures.unanswered, "messages": figures.messages,
        "median_seconds": seconds(50), "p95_seconds": seconds(95),
        "sent": { "seconds": figures.sent.point_seconds(), "points": points_json(&figures.sent) },
    })
}

fn money_json(figures: &RequestFigures, terms: Option<&RunTerms>) -> Value {
    let Some(RunCost { used, unpriced }) = figures.cost() else { return Value::Null };
    let mut money = json!({
        "used_at_most": used.trim_decimals(), "given_back": figures.given_back.trim_decimals(),
        "budget": terms.and_then(|terms| terms.budget.cost), "currency": terms.and_then(|terms| terms.currency.as_deref()),
    });
    if unpriced > 0 {
        money["unpriced"] = unpriced.into();
    }
    money
}

/// The rate and budget of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTerms {
    /// Operations per second; `None` without a limit, or if none was stored.
    pub rate: Option<f64>,
    /// The budget of all runs of its edition together.
    pub budget: Budget,
    /// The currency of the prices.
    pub currency: Option<String>,
}

#[cfg(test)]
mod tests;
