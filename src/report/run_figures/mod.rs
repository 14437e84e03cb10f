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

pub use doubts::{DoubtfulRow, Doubts};
pub use reasons::{Reason, Reasons};
pub use requests::RequestFigures;
#[cfg(test)]
pub(crate) use scenes::{Fate, fate, new_run, scene};
pub use terms::Terms;
pub use timeline::{Point, Timeline};
pub use ways::{Way, WayFigure};

use std::collections::BTreeMap;

pub(super) use fold::Fold;
use kept::KeptFigures;

use super::RowRecords;
use super::channel_figures::{ChannelFigures, TAKEN};
use crate::domain::{Channel, Row};
use crate::ledger::{Ledger, LedgerError, Progress, Run, RunFilter, RunId, StateCounts};

/// What a message arrived by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrived {
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
    pub left_out: Reasons,
    /// What became of its messages by channel.
    pub channels: ChannelFigures,
    /// On which channels its messages were tried, and where they ended.
    pub ways: BTreeMap<Way, WayFigure>,
    /// When its messages arrived, and by what.
    pub arrived: Timeline<Arrived>,
    /// Why messages were refused or did not arrive, or were given up.
    pub failures: Reasons,
    /// Its rows in doubt.
    pub doubts: Doubts,
    /// Its requests.
    pub requests: RequestFigures,
    /// On what terms it is sent, where that was kept.
    pub terms: Option<Terms>,
}

impl RunFigures {
    /// The figures of a run that nobody sends, as they were kept when its rows were counted, if nothing became known since.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn kept(ledger: &dyn Ledger, run: &Run) -> Result<Option<Self>, LedgerError> {
        // Of a run that was purged nothing more becomes known.
        let counted = if run.purged_at.is_some() { run.counts.as_ref() } else { run.standing_counts() };
        let Some((counts, _)) = counted else { return Ok(None) };
        let read = if run.purged_at.is_some() { KeptFigures::read } else { KeptFigures::read_current };
        let kept = ledger.figures(run.key).await?.and_then(|kept| read(&kept));
        let kept = kept.map(|kept| if run.progress == Progress::Replaced { kept.replaced() } else { kept });
        let is_true = |kept: &KeptFigures| kept.is_of(counts, run.receipts) || run.purged_at.is_some();
        Ok(kept.filter(is_true).and_then(KeptFigures::figures).filter(|figures| figures.counts == *counts))
    }

    /// Makes the figures of a run that just ended or was counted, and keeps them, with these terms or those that were kept
    /// before. What cannot be kept is made again by whoever wants it.
    pub async fn keep(ledger: &dyn Ledger, run: RunId, terms: Option<Terms>) {
        if let Err(error) = Self::try_to_keep(ledger, run, terms).await {
            tracing::debug!("cannot store the figures of a run: {error}");
        }
    }

    async fn try_to_keep(ledger: &dyn Ledger, run: RunId, terms: Option<Terms>) -> Result<(), LedgerError> {
        let Some(run) = ledger.runs(RunFilter::one(run)).await?.pop() else { return Ok(()) };
        if run.standing_counts().is_none() {
            return Ok(());
        }
        let figures = Self::read(ledger, &run, false).await?;
        let figures = Self { terms: terms.or(figures.terms), ..figures };
        match KeptFigures::of(&figures, run.receipts).written() {
            Some(kept) => ledger.keep_figures(run.key, kept).await,
            None => Ok(()),
        }
    }

    /// Keeps these, which were made when the run had so many receipts; what cannot be kept is made again by whoever wants it.
    pub async fn keep_made(self, ledger: &dyn Ledger, run: RunId, receipts: u64) {
        let Some(kept) = KeptFigures::of(&self, receipts).written() else { return };
        if let Err(error) = ledger.keep_figures(run, kept).await {
            tracing::debug!("cannot store the figures of a run: {error}");
        }
    }

    /// Keeps on what terms a run is sent from now on, beside what was kept of it before.
    pub async fn keep_terms(ledger: &dyn Ledger, run: RunId, terms: Terms) {
        let kept = async {
            let before = ledger.figures(run).await?.and_then(|kept| KeptFigures::read_current(&kept));
            match before.unwrap_or_default().on(terms).written() {
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
    pub async fn read(ledger: &dyn Ledger, run: &Run, owned: bool) -> Result<Self, LedgerError> {
        let left_out = ledger.left_out(run.key).await?;
        let fold = Fold::of(run, &left_out);
        let mut records = RowRecords::new(ledger, run, owned).await?.folding(fold);
        for row in Row::FIRST.get()..=records.last().map_or(0, Row::get) {
            records.take(Row::new(row)).await?;
        }
        let mut figures = records.into_figures(run.recipients).unwrap_or_default();
        figures.terms = ledger.figures(run.key).await?.and_then(|kept| KeptFigures::read(&kept)?.terms());
        Ok(figures)
    }
}
