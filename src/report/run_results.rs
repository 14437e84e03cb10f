//! The results of a run, or of the people of several, from the ledger and what the runs froze.

use std::io::Write;
use std::path::Path;

use roaring::RoaringBitmap;

use super::earlier_messages::EarlierRuns;
use super::frozen_list::{FrozenList, ListSource};
use super::kept_results::{KeptResults, keep, run_at};
use super::layout::{Layout, Style};
use super::listing::Listing;
use super::own_columns::OwnColumns;
use super::people::{self, RowTexts};
use super::results::{ResultsError, place, write_file, write_results};
use super::row_selection::RowSelection;
use super::run_figures::{Fold, RunFigures};
use super::{RowRecords, Target, copies_of, is_owned, is_workbook, unknown_results};
use crate::delivery::{FrozenInputs, compile_for_everybody, each_text};
use crate::domain::Row;
use crate::ledger::{Copies, Ledger, LeftOut, Run, RunFilter};
use crate::manifest::Duplicates;

/// The results of a run, or of the people of several, which can be written to any place.
pub struct RunResults<'a> {
    ledger: &'a dyn Ledger,
    /// The oldest first; never empty.
    parts: Vec<Part<'a>>,
    selection: RowSelection,
    excel: bool,
}

/// One run of what is listed.
struct Part<'a> {
    run: &'a Run,
    owned: bool,
    name: String,
    copies: Copies,
    frozen: FrozenInputs,
    left_out: LeftOut,
    /// Only these rows; all where there is nothing.
    only: Option<RoaringBitmap>,
}

impl<'a> RunResults<'a> {
    /// The results of a run; `owned` tells whether a process is sending it.
    ///
    /// # Errors
    /// When the ledger or what the run froze cannot be read.
    pub async fn open(ledger: &'a dyn Ledger, run: &'a Run, owned: bool) -> Result<Self, ResultsError> {
        let parts = vec![Part::open(ledger, run, owned).await?];
        Ok(Self { ledger, parts, selection: RowSelection::default(), excel: false })
    }

    /// One row per person of these runs, whichever has the last word on them; `runs` are the oldest first.
    ///
    /// # Errors
    /// When the ledger or what the runs froze cannot be read.
    pub async fn of_people(ledger: &'a dyn Ledger, runs: &'a [Run]) -> Result<Self, ResultsError> {
        let mut parts = Vec::with_capacity(runs.len());
        for run in runs {
            parts.push(Part::open(ledger, run, is_owned(ledger, run).await?).await?);
        }
        let mut listings = Vec::with_capacity(runs.len());
        let texts = parts.last().map(|newest| newest.frozen.clone()).filter(|frozen| {
            // Each row of a number has a message of its own there.
            frozen.brief.duplicates == Duplicates::Allow
        });
        for part in &parts {
            let listing = Listing { earlier: None, ..part.listing(ledger, &RowSelection::default()).await? };
            listings.push((listing, part.texts(texts.as_ref()).await?));
        }
        let chosen = people::choose(listings).await?;
        for (part, only) in parts.iter_mut().zip(chosen) {
            part.only = Some(only);
        }
        Ok(Self { ledger, parts, selection: RowSelection::default(), excel: false })
    }

    /// Only the rows that match this selection.
    #[must_use]
    pub fn selecting(self, selection: RowSelection) -> Self {
        Self { selection, ..self }
    }

    /// Only these rows of the newest run.
    #[must_use]
    pub fn only(mut self, rows: RoaringBitmap) -> Self {
        if let Some(newest) = self.parts.last_mut() {
            newest.only = Some(rows);
        }
        self
    }

    /// As spreadsheets want them, or as programs do.
    #[must_use]
    pub fn for_excel(self, excel: bool) -> Self {
        Self { excel, ..self }
    }

    /// What the newest run froze.
    #[must_use]
    pub fn frozen(&self) -> &FrozenInputs {
        &self.newest().frozen
    }

    /// Writes them to a file as CSV, unless that file has messages that the ledger does not know. The results of another run
    /// in that file are kept, and their new path is returned.
    ///
    /// # Errors
    /// When the ledger or the recipients cannot be read, or the file cannot be written, kept or replaced.
    pub async fn to_file(&self, target: &Target) -> Result<Option<KeptResults>, ResultsError> {
        let mut listings = self.listings().await?;
        // A workbook has a sheet of figures, unless it lists only some rows.
        if is_workbook(target.path()) && self.is_one_whole_run() {
            self.fold_newest(&mut listings);
        }
        Ok(self.write(target, listings).await?.1)
    }

    /// The same, and the figures of the newest run, which are made on the way.
    ///
    /// # Errors
    /// As for [`RunResults::to_file`].
    pub async fn to_file_with_figures(
        &self,
        target: &Target,
    ) -> Result<(RunFigures, Option<KeptResults>), ResultsError> {
        let mut listings = self.listings().await?;
        self.fold_newest(&mut listings);
        let (mut figures, kept) = self.write(target, listings).await?;
        Ok((figures.pop().unwrap_or_default(), kept))
    }

    /// Whether all rows of one run are listed.
    fn is_one_whole_run(&self) -> bool {
        self.parts.len() == 1 && self.selection.is_everything() && self.newest().only.is_none()
    }

    /// Calculates the figures of the newest run while its rows are written.
    fn fold_newest<'l>(&'l self, listings: &mut [Listing<'l>]) {
        if let Some(newest) = listings.last_mut() {
            let Part { run, left_out, .. } = self.newest();
            let fold = Fold::of(run, left_out);
            newest.records = newest.records.take().map(|records| records.folding(fold));
        }
    }

    async fn write(
        &self,
        target: &Target,
        listings: Vec<Listing<'_>>,
    ) -> Result<(Vec<RunFigures>, Option<KeptResults>), ResultsError> {
        if self.newest().run.live
            && let Some(sign) = unknown_results(Some(self.ledger), target.file()).await?
        {
            return Err(ResultsError::Contradicted { run: self.newest().name.clone(), sign });
        }
        let kept = self.keep_others(target).await?;
        Ok((write_file(target, self.style(), listings).await?, kept))
    }

    /// Keeps the results of another run at this place, and records their new path in the ledger.
    ///
    /// The results of a rehearsal are replaced by those of another rehearsal.
    async fn keep_others(&self, target: &Target) -> Result<Option<KeptResults>, ResultsError> {
        let file = target.file().clone();
        let read = tokio::task::spawn_blocking(move || run_at(&file)).await;
        let Some(run) = read.ok().flatten().filter(|run| self.parts.iter().all(|part| part.name != *run)) else {
            return Ok(None);
        };
        let (campaign, _) = run.rsplit_once('@').unwrap_or((&run, ""));
        let known =
            self.ledger.runs(RunFilter::of_campaign(campaign)).await?.into_iter().find(|known| known.name() == run);
        if !self.newest().run.live && known.as_ref().is_some_and(|known| !known.live) {
            return Ok(None);
        }
        let (path, folder) = place(target)?;
        let failed = |error| ResultsError::Kept { path: target.path().to_owned(), error };
        let kept = keep(&path, &run).map_err(failed)?;
        // The opened path can go through the handle of its folder.
        let place = match folder {
            Some(_) => target.path().with_file_name(kept.file_name().unwrap_or_default()),
            None => kept,
        };
        let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string();
        let is_there = |known: &Run| known.results.as_deref() == Some(whole(target.path()).as_str());
        if let Some(known) = known.filter(is_there) {
            self.ledger.results_moved(known.key, whole(&place)).await?;
        }
        Ok(Some(KeptResults { run, path: place }))
    }

    /// Writes them as CSV.
    ///
    /// # Errors
    /// When the ledger or the recipients cannot be read, or `out` cannot be written.
    pub async fn to_csv(&self, out: impl Write) -> Result<(), ResultsError> {
        write_results(out, self.style(), self.listings().await?).await.map(drop)
    }

    /// Writes them as JSON objects with commas between them.
    ///
    /// # Errors
    /// When the ledger or the recipients cannot be read, or `out` cannot be written.
    pub async fn to_objects(&self, out: impl Write) -> Result<(), ResultsError> {
        write_results(out, Style::Json, self.listings().await?).await.map(drop)
    }

    /// The rows of the newest run that are listed, in the order of its list.
    ///
    /// # Errors
    /// When the ledger or the recipients cannot be read.
    pub async fn rows(&self) -> Result<RoaringBitmap, ResultsError> {
        let mut listed = RoaringBitmap::new();
        let listing = self.newest().listing(self.ledger, &self.selection).await?;
        let reader = listing.reader()?;
        let writer = listing.writer(Layout::Json(Vec::new()), &OwnColumns::default(), reader.header());
        let mut rows = listing.rows(reader)?;
        while let Some((chunk, facts)) = rows.next().await? {
            listed.extend(writer.listed_rows(&chunk, &facts).into_iter().map(Row::get));
        }
        rows.finish().await?;
        Ok(listed)
    }

    fn style(&self) -> Style {
        if self.excel { Style::Excel } else { Style::Csv }
    }

    fn newest(&self) -> &Part<'a> {
        self.parts.last().expect("what is listed has a run")
    }

    /// Its runs as they are listed, the oldest first.
    pub(super) async fn listings(&self) -> Result<Vec<Listing<'_>>, ResultsError> {
        let mut listings = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            listings.push(part.listing(self.ledger, &self.selection).await?);
        }
        Ok(listings)
    }
}

impl<'a> Part<'a> {
    /// These texts for the rows of its list, or its own texts if they do not fit the list. `None` without texts.
    async fn texts(&self, newest: Option<&FrozenInputs>) -> Result<RowTexts, ResultsError> {
        let Some(newest) = newest.cloned() else { return Ok(None) };
        let (copies, own) = (self.copies.clone(), self.frozen.clone());
        let read = tokio::task::spawn_blocking(move || {
            let open = || FrozenList::open(ListSource::Copies(&copies));
            let place = copies.place().as_ref();
            let compiled = match compile_for_everybody(&newest, (open()?, place)) {
                Ok(compiled) => compiled,
                Err(_) => compile_for_everybody(&own, (open()?, place))?,
            };
            let mut texts = Vec::new();
            each_text(compiled, |row, _, text| texts.extend(text.map(|text| (row, text))))
                .map_err(|finding| vec![*finding])?;
            Ok(Some(texts))
        });
        read.await.map_err(|error| ResultsError::Recipients(error.to_string()))?
    }

    async fn open(ledger: &dyn Ledger, run: &'a Run, owned: bool) -> Result<Self, ResultsError> {
        let copies = copies_of(ledger, run).await?;
        let frozen = FrozenInputs::of(&copies)?;
        let left_out = ledger.left_out(run.key).await?;
        Ok(Self { run, owned, name: run.name(), copies, frozen, left_out, only: None })
    }

    async fn listing<'l>(
        &'l self,
        ledger: &'l dyn Ledger,
        selection: &RowSelection,
    ) -> Result<Listing<'l>, ResultsError> {
        Ok(Listing {
            recipients: ListSource::Copies(&self.copies),
            recipients_sha256: &self.frozen.recipients_sha256,
            brief: &self.frozen.brief,
            run: Some(self.run),
            kind: self.run.kind,
            left_out: &self.left_out,
            selection: selection.clone(),
            only: self.only.as_ref(),
            records: Some(RowRecords::new(ledger, self.run, self.owned).await?),
            earlier: EarlierRuns::of(ledger, self.run, &self.left_out, (&self.copies, &self.frozen.brief)).await?,
        })
    }
}
