//! The figures of a run: what all that shows a run makes its numbers and charts of.
//!
//! They are folded from the records of its rows in one pass, and kept in the ledger when the run ends or is counted, so that
//! who looks at ten million rows reads none of them. Whatever is shown of a run beside each other is of one pass.

mod doubts;
mod fold;
mod json;
mod kept;
mod reasons;
mod requests;
#[cfg(test)]
mod scenes;
mod terms;
#[cfg(test)]
mod tests;
mod timeline;
mod ways;

pub use doubts::{RowInDoubt, RowsInDoubt};
pub use reasons::{ReasonCount, ReasonCounts};
pub use requests::RequestFigures;
#[cfg(test)]
pub(crate) use scenes::{RowCase, build_run, new_run, row_case};
pub use terms::RunTerms;
pub use timeline::{Timeline, TimelinePoint};
pub use ways::{FallbackChain, FallbackChainFigure};

use std::collections::BTreeMap;

pub(super) use fold::Fold;
use kept::StoredFigures;

use super::RowRecords;
use super::channel_figures::{ACCEPTED_STATES, ChannelFigures};
use crate::domain::{Channel, Row};
use crate::ledger::{Ledger, LedgerError, Run, RunFilter, RunId, RunProgress, StateCounts};

/// What a message arrived by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArrivalKind {
    /// The channel; nothing where nobody told it.
    pub channel: Option<Channel>,
    /// Whether that was the first on which it was tried; nothing where nobody can tell.
    pub first: Option<bool>,
}

/// The figures of a run.
#[derive(Clone, Debug, Default)]
pub struct RunFigures {
    /// Its rows by state.
    pub counts: StateCounts,
    /// Who is left out, by reason.
    pub left_out: ReasonCounts,
    /// What became of its messages by channel.
    pub channels: ChannelFigures,
    /// On which channels its messages were tried, and where they ended.
    pub chains: BTreeMap<FallbackChain, FallbackChainFigure>,
    /// When its messages arrived, and by what.
    pub arrivals: Timeline<ArrivalKind>,
    /// Why messages were refused or did not arrive, or were given up.
    pub failures: ReasonCounts,
    /// Its rows in doubt.
    pub doubts: RowsInDoubt,
    /// Its requests.
    pub requests: RequestFigures,
    /// On what terms it is sent, where that was kept.
    pub terms: Option<RunTerms>,
}

impl RunFigures {
    /// The figures of a run that nobody sends, as they were kept when its rows were counted, if nothing became known since.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn load_stored(ledger: &dyn Ledger, run: &Run) -> Result<Option<Self>, LedgerError> {
        // Of a run that was purged nothing more becomes known.
        let counted = if run.purged_at.is_some() { run.counts.as_ref() } else { run.current_counts() };
        let Some((counts, _)) = counted else { return Ok(None) };
        let read = if run.purged_at.is_some() { StoredFigures::decode } else { StoredFigures::decode_current };
        let kept = ledger.load_figures(run.key).await?.and_then(|kept| read(&kept));
        let kept = kept.map(|kept| if run.progress == RunProgress::Replaced { kept.mark_replaced() } else { kept });
        let is_true = |kept: &StoredFigures| kept.is_current(counts, run.receipts) || run.purged_at.is_some();
        Ok(kept.filter(is_true).and_then(StoredFigures::into_figures).filter(|figures| figures.counts == *counts))
    }

    /// Makes the figures of a run that just ended or was counted, and keeps them, with these terms or those that were kept
    /// before. What cannot be kept is made again by whoever wants it.
    pub async fn store(ledger: &dyn Ledger, run: RunId, terms: Option<RunTerms>) {
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
            Some(kept) => ledger.keep_figures(run.key, kept).await,
            None => Ok(()),
        }
    }

    /// Keeps these, which were made when the run had so many receipts; what cannot be kept is made again by whoever wants it.
    pub async fn store_computed(self, ledger: &dyn Ledger, run: RunId, receipts: u64) {
        let Some(kept) = StoredFigures::from_figures(&self, receipts).encode() else { return };
        if let Err(error) = ledger.keep_figures(run, kept).await {
            tracing::debug!("cannot store the figures of a run: {error}");
        }
    }

    /// Keeps on what terms a run is sent from now on, beside what was kept of it before.
    pub async fn store_terms(ledger: &dyn Ledger, run: RunId, terms: RunTerms) {
        let kept = async {
            let before = ledger.load_figures(run).await?.and_then(|kept| StoredFigures::decode_current(&kept));
            match before.unwrap_or_default().with_terms(terms).encode() {
                Some(kept) => ledger.keep_figures(run, kept).await,
                None => Ok(()),
            }
        };
        let kept: Result<(), LedgerError> = kept.await;
        if let Err(error) = kept {
            tracing::debug!("cannot store the rate and budget of a run: {error}");
        }
    }

    /// The figures of a run, from its envelopes and receipts; `owned` tells whether a process is sending it.
    ///
    /// # Errors
    /// When the ledger cannot be read, or the run was purged.
    pub async fn load(ledger: &dyn Ledger, run: &Run, owned: bool) -> Result<Self, LedgerError> {
        let left_out = ledger.load_excluded_rows(run.key).await?;
        let fold = Fold::for_run(run, &left_out);
        let mut records = RowRecords::open(ledger, run, owned).await?.with_fold(fold);
        for row in Row::FIRST.get()..=records.last_row().map_or(0, Row::get) {
            records.take_record(Row::new(row)).await?;
        }
        let mut figures = records.into_figures(run.recipients).unwrap_or_default();
        figures.terms =
            ledger.load_figures(run.key).await?.and_then(|kept| StoredFigures::decode(&kept)?.parse_terms());
        Ok(figures)
    }
}
