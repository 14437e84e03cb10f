//! Results of one run, or of the recipients of several runs: the rows to show, as a file, CSV or JSON.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write;
use std::path::Path;

use roaring::{RoaringBitmap, RoaringTreemap};
use rustc_hash::FxHashSet;

use super::columns::RecipientColumns;
use super::earlier_messages::EarlierRuns;
use super::layout::{Layout, ResultsFormat};
use super::listing::{FrozenList, ListSource, Listing, RowSelection};
use super::results_file::{
    ResultsBackup, back_up_results, read_run_name, resolve_target, write_results, write_results_file,
};
use super::run_figures::{Fold, RunFigures};
use super::{ResultsError, ResultsTarget, RowRecords, find_unknown_results, is_owned, is_workbook, load_copies};
use crate::check::TextHash;
use crate::delivery::{FrozenInputs, compile_without_condition, for_each_text_hash};
use campaign_core::domain::{Phone, Row};
use campaign_ledger::{Copies, ExcludedRows, Ledger, RowState, Run, RunFilter, RunUpdate};
use campaign_manifest::DuplicatePolicy;

/// The results of a run, or of the recipients of several runs, for any output.
pub struct RunResults<'a> {
    ledger: &'a dyn Ledger,
    /// The listed runs, oldest first; never empty.
    parts: Vec<ListedRun<'a>>,
    selection: RowSelection,
    excel: bool,
}

struct ListedRun<'a> {
    run: &'a Run,
    owned: bool,
    name: String,
    copies: Copies,
    frozen: FrozenInputs,
    left_out: ExcludedRows,
    /// Selects rows by number; `None` for all rows.
    only: Option<RoaringBitmap>,
}

impl<'a> RunResults<'a> {
    /// Opens the results of a run; `owned` says whether a process is sending the run.
    ///
    /// # Errors
    /// If the ledger or the frozen inputs of the run cannot be read.
    pub async fn open(ledger: &'a dyn Ledger, run: &'a Run, owned: bool) -> Result<Self, ResultsError> {
        let parts = vec![ListedRun::open(ledger, run, owned).await?];
        Ok(Self { ledger, parts, selection: RowSelection::default(), excel: false })
    }

    /// Opens results with one row per recipient of `runs`, from the run that decides the recipient's result. The oldest
    /// run comes first in `runs`.
    ///
    /// # Errors
    /// If the ledger or the frozen inputs of a run cannot be read.
    pub async fn open_for_recipients(ledger: &'a dyn Ledger, runs: &'a [Run]) -> Result<Self, ResultsError> {
        let mut parts = Vec::with_capacity(runs.len());
        for run in runs {
            parts.push(ListedRun::open(ledger, run, is_owned(ledger, run).await?).await?);
        }
        let mut listings = Vec::with_capacity(runs.len());
        let texts = parts.last().map(|newest| newest.frozen.clone()).filter(|frozen| {
            // With `duplicates: allow`, each row of a number has its own message.
            frozen.brief.duplicates == DuplicatePolicy::Allow
        });
        for part in &parts {
            let listing = Listing { earlier: None, ..part.open_listing(ledger, &RowSelection::default()).await? };
            listings.push((listing, part.hash_texts(texts.as_ref()).await?));
        }
        let chosen = choose_rows(listings).await?;
        for (part, only) in parts.iter_mut().zip(chosen) {
            part.only = Some(only);
        }
        Ok(Self { ledger, parts, selection: RowSelection::default(), excel: false })
    }

    /// Lists only the rows that match `selection`.
    #[must_use]
    pub fn with_selection(self, selection: RowSelection) -> Self {
        Self { selection, ..self }
    }

    /// Lists only `rows` of the newest run.
    #[must_use]
    pub fn with_rows(mut self, rows: RoaringBitmap) -> Self {
        if let Some(newest) = self.parts.last_mut() {
            newest.only = Some(rows);
        }
        self
    }

    /// Chooses CSV for spreadsheets if `excel` is true, otherwise CSV for programs.
    #[must_use]
    pub fn with_excel(self, excel: bool) -> Self {
        Self { excel, ..self }
    }

    /// The frozen inputs of the newest run.
    pub fn frozen_inputs(&self) -> &FrozenInputs {
        &self.newest_run().frozen
    }

    /// Writes the results to a CSV file or a workbook, unless the existing file contains messages that the ledger does
    /// not know. If the existing file contains the results of another run, it is backed up, and the path of the backup
    /// is returned.
    ///
    /// # Errors
    /// If the ledger or the recipients cannot be read, or the file cannot be written, backed up or replaced.
    pub async fn write_file(&self, target: &ResultsTarget) -> Result<Option<ResultsBackup>, ResultsError> {
        let mut listings = self.open_listings().await?;
        // A workbook has a sheet of figures, unless it lists only some rows.
        if is_workbook(target.path()) && self.is_single_full_run() {
            self.attach_figures(&mut listings);
        }
        Ok(self.write_listings(target, listings).await?.1)
    }

    /// Writes the results, and returns the figures of the newest run, calculated in the same pass.
    ///
    /// # Errors
    /// Fails in the same cases as [`RunResults::write_file`].
    pub async fn write_file_with_figures(
        &self,
        target: &ResultsTarget,
    ) -> Result<(RunFigures, Option<ResultsBackup>), ResultsError> {
        let mut listings = self.open_listings().await?;
        self.attach_figures(&mut listings);
        let (mut figures, backup) = self.write_listings(target, listings).await?;
        Ok((figures.pop().unwrap_or_default(), backup))
    }

    /// Whether all rows of one run are listed.
    fn is_single_full_run(&self) -> bool {
        self.parts.len() == 1 && self.selection.is_unfiltered() && self.newest_run().only.is_none()
    }

    /// Makes the newest listing calculate the figures of its run while the rows are written.
    fn attach_figures<'l>(&'l self, listings: &mut [Listing<'l>]) {
        if let Some(newest) = listings.last_mut() {
            let ListedRun { run, left_out, .. } = self.newest_run();
            let fold = Fold::for_run(run, left_out);
            newest.records = newest.records.take().map(|records| records.with_fold(fold));
        }
    }

    async fn write_listings(
        &self,
        target: &ResultsTarget,
        listings: Vec<Listing<'_>>,
    ) -> Result<(Vec<RunFigures>, Option<ResultsBackup>), ResultsError> {
        if self.newest_run().run.live
            && let Some(sign) = find_unknown_results(Some(self.ledger), target.file()).await?
        {
            return Err(ResultsError::LedgerIncomplete { run: self.newest_run().name.clone(), sign });
        }
        let backup = self.back_up_other_results(target).await?;
        Ok((write_results_file(target, self.text_format(), listings).await?, backup))
    }

    /// Backs up the results of another run at this path, and records the path of the backup in the ledger.
    ///
    /// If both results are from rehearsals, the earlier results are replaced without a backup.
    async fn back_up_other_results(&self, target: &ResultsTarget) -> Result<Option<ResultsBackup>, ResultsError> {
        let file = target.file().clone();
        let read = tokio::task::spawn_blocking(move || read_run_name(&file)).await;
        let Some(run) = read.ok().flatten().filter(|run| self.parts.iter().all(|part| part.name != *run)) else {
            return Ok(None);
        };
        let (campaign, _) = run.rsplit_once('@').unwrap_or((&run, ""));
        let other = self
            .ledger
            .list_runs(RunFilter::for_campaign(campaign))
            .await?
            .into_iter()
            .find(|other| other.name() == run);
        if !self.newest_run().run.live && other.as_ref().is_some_and(|other| !other.live) {
            return Ok(None);
        }
        let (path, folder) = resolve_target(target)?;
        let failed = |error| ResultsError::BackupFailed { path: target.path().to_owned(), error };
        let backup = back_up_results(&path, &run).map_err(failed)?;
        // The opened path can lead through the handle of its folder, so the original path is reported.
        let backup_path = match folder {
            Some(_) => target.path().with_file_name(backup.file_name().unwrap_or_default()),
            None => backup,
        };
        let to_absolute =
            |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string();
        let is_at_target = |other: &Run| other.results.as_deref() == Some(to_absolute(target.path()).as_str());
        if let Some(other) = other.filter(is_at_target) {
            self.ledger.update_runs(vec![other.key], RunUpdate::ResultsFile(to_absolute(&backup_path))).await?;
        }
        Ok(Some(ResultsBackup { run, path: backup_path }))
    }

    /// Writes the results as CSV.
    ///
    /// # Errors
    /// If the ledger or the recipients cannot be read, or `out` cannot be written.
    pub async fn write_csv(&self, out: impl Write) -> Result<(), ResultsError> {
        write_results(out, self.text_format(), self.open_listings().await?).await.map(drop)
    }

    /// Writes the results as JSON objects, separated by commas.
    ///
    /// # Errors
    /// If the ledger or the recipients cannot be read, or `out` cannot be written.
    pub async fn write_json(&self, out: impl Write) -> Result<(), ResultsError> {
        write_results(out, ResultsFormat::Json, self.open_listings().await?).await.map(drop)
    }

    /// Loads the rows of the newest run that are listed.
    ///
    /// # Errors
    /// If the ledger or the recipients cannot be read.
    pub async fn load_listed_rows(&self) -> Result<RoaringBitmap, ResultsError> {
        let mut listed = RoaringBitmap::new();
        let listing = self.newest_run().open_listing(self.ledger, &self.selection).await?;
        let reader = listing.open_reader()?;
        let formatter = listing.row_formatter(Layout::Json(Vec::new()), &RecipientColumns::default(), reader.header());
        let mut rows = listing.into_rows(reader)?;
        while let Some((chunk, facts)) = rows.next_chunk().await? {
            listed.extend(formatter.find_listed_rows(&chunk, &facts).into_iter().map(Row::get));
        }
        rows.finish().await?;
        Ok(listed)
    }

    fn text_format(&self) -> ResultsFormat {
        if self.excel { ResultsFormat::Excel } else { ResultsFormat::Csv }
    }

    fn newest_run(&self) -> &ListedRun<'a> {
        self.parts.last().expect("results have at least one run")
    }

    /// Opens the listings of all runs in these results, oldest first.
    pub(super) async fn open_listings(&self) -> Result<Vec<Listing<'_>>, ResultsError> {
        let mut listings = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            listings.push(part.open_listing(self.ledger, &self.selection).await?);
        }
        Ok(listings)
    }
}

impl<'a> ListedRun<'a> {
    /// Hashes the newest run's texts for the rows of this run's list. If the newest run's texts do not fit the list,
    /// this run's own texts are used. `None` if `newest` is `None`.
    async fn hash_texts(&self, newest: Option<&FrozenInputs>) -> Result<RowTextHashes, ResultsError> {
        let Some(newest) = newest.cloned() else { return Ok(None) };
        let (copies, own_inputs) = (self.copies.clone(), self.frozen.clone());
        let read = tokio::task::spawn_blocking(move || {
            let open = || FrozenList::open(ListSource::Copies(&copies));
            let place = copies.place().as_ref();
            let compiled = match compile_without_condition(&newest, open()?, place) {
                Ok(compiled) => compiled,
                Err(_) => compile_without_condition(&own_inputs, open()?, place)?,
            };
            let mut texts = Vec::new();
            for_each_text_hash(compiled, &mut |row, _, text| texts.extend(text.map(|text| (row, text))))
                .map_err(|finding| vec![*finding])?;
            Ok(Some(texts))
        });
        read.await.map_err(|error| ResultsError::Recipients(error.to_string()))?
    }

    async fn open(ledger: &dyn Ledger, run: &'a Run, owned: bool) -> Result<Self, ResultsError> {
        let copies = load_copies(ledger, run).await?;
        let frozen = FrozenInputs::from_copies(&copies)?;
        let left_out = ledger.load_excluded_rows(run.key).await?;
        Ok(Self { run, owned, name: run.name(), copies, frozen, left_out, only: None })
    }

    async fn open_listing<'l>(
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
            records: Some(RowRecords::open(ledger, self.run, self.owned).await?),
            earlier: EarlierRuns::load(ledger, self.run, &self.left_out, &self.copies, &self.frozen.brief).await?,
        })
    }
}

/// The texts of a list's rows, in their order. `None` if all rows of a number count as one recipient.
pub(super) type RowTextHashes = Option<Vec<(Row, TextHash)>>;

/// Chooses the rows of each listing that represent a recipient, oldest run first.
///
/// The newest run that has sent, or is going to send, a message to a recipient decides. A run that skipped the
/// recipient decides only if there is no such run. Rows without a phone number have no recipient, and appear only in
/// the newest list.
pub(super) async fn choose_rows(
    listings: Vec<(Listing<'_>, RowTextHashes)>,
) -> Result<Vec<RoaringBitmap>, ResultsError> {
    let mut listed = ListedRecipients::default();
    let mut chosen = Vec::with_capacity(listings.len());
    for (listing, texts) in listings.into_iter().rev() {
        let is_newest = chosen.is_empty();
        let mut candidates = RowCandidates::read_listing(listing, texts, &mut listed).await?;
        let waiting = std::mem::take(&mut candidates.waiting);
        listed.add_new_rows(&mut candidates.rows, &waiting);
        if is_newest {
            candidates.rows |= std::mem::take(&mut candidates.without_number);
        }
        chosen.push(candidates);
    }
    let rows = chosen.into_iter().map(|mut candidates| {
        listed.add_new_rows(&mut candidates.rows, &candidates.left_out);
        candidates.rows
    });
    let mut rows: Vec<RoaringBitmap> = rows.collect();
    rows.reverse();
    Ok(rows)
}

#[derive(Clone, Copy)]
enum RecipientIdentity {
    Number(Phone),
    /// A hash of the row's number, its text, and the number of earlier rows with the same pair, for `duplicates:
    /// allow`.
    Row(u64),
}

/// The recipients that already have a row.
#[derive(Default)]
struct ListedRecipients {
    numbers: RoaringTreemap,
    rows: FxHashSet<u64>,
}

impl ListedRecipients {
    /// Adds the rows whose recipients have no row yet.
    fn add_new_rows(&mut self, rows: &mut RoaringBitmap, candidates: &[(Row, RecipientIdentity)]) {
        for (row, recipient) in candidates {
            let is_new = match recipient {
                RecipientIdentity::Number(phone) => self.numbers.insert(phone.to_u64()),
                RecipientIdentity::Row(hash) => self.rows.insert(*hash),
            };
            if is_new {
                rows.insert(row.get());
            }
        }
    }
}

/// Identifies the rows of a list by their numbers, or by their numbers and texts.
struct RowIdentifier {
    texts: Option<std::iter::Peekable<std::vec::IntoIter<(Row, TextHash)>>>,
    /// The number of earlier rows with the same number and text.
    repeats: HashMap<(Phone, Option<TextHash>), u32>,
}

impl RowIdentifier {
    fn new(texts: RowTextHashes) -> Self {
        Self { texts: texts.map(|texts| texts.into_iter().peekable()), repeats: HashMap::new() }
    }

    /// Identifies the recipient of a row. Rows must be passed in ascending order.
    fn identify(&mut self, row: Row, phone: Phone) -> RecipientIdentity {
        let Some(texts) = &mut self.texts else { return RecipientIdentity::Number(phone) };
        while texts.next_if(|(text_row, _)| *text_row < row).is_some() {}
        let text = texts.next_if(|(text_row, _)| *text_row == row).map(|(_, text)| text);
        let count = self.repeats.entry((phone, text)).or_default();
        let mut hasher = DefaultHasher::new();
        (phone, text, *count).hash(&mut hasher);
        *count += 1;
        RecipientIdentity::Row(hasher.finish())
    }
}

/// The rows of a run that can represent recipients.
#[derive(Default)]
struct RowCandidates {
    /// The rows that represent a recipient, beginning with those whose message was or might have been sent.
    rows: RoaringBitmap,
    /// Rows that are neither guarded, skipped nor invalid, such as planned and rejected rows.
    waiting: Vec<(Row, RecipientIdentity)>,
    /// Skipped and invalid rows.
    left_out: Vec<(Row, RecipientIdentity)>,
    /// Rows without a valid number.
    without_number: RoaringBitmap,
}

impl RowCandidates {
    async fn read_listing(
        listing: Listing<'_>,
        texts: RowTextHashes,
        listed: &mut ListedRecipients,
    ) -> Result<Self, ResultsError> {
        let (region, activity) = (listing.brief.region, listing.activity());
        let reader = listing.open_reader()?;
        let columns = reader.header().phones().clone();
        let mut rows = listing.into_rows(reader)?;
        let (mut candidates, mut identifier) = (Self::default(), RowIdentifier::new(texts));
        while let Some((chunk, facts)) = rows.next_chunk().await? {
            for (record, row_facts) in chunk.iter().zip(&facts) {
                let row = record.row;
                let phone = row_facts.phone(record.fields, &columns, region);
                let recipient = phone.map(|phone| identifier.identify(row, phone));
                candidates.add_row(row, recipient, row_facts.state(activity), listed);
            }
        }
        rows.finish().await?;
        Ok(candidates)
    }

    fn add_row(
        &mut self,
        row: Row,
        recipient: Option<RecipientIdentity>,
        state: RowState,
        listed: &mut ListedRecipients,
    ) {
        let Some(recipient) = recipient else {
            self.without_number.insert(row.get());
            return;
        };
        match state {
            RowState::Skipped | RowState::Invalid => self.left_out.push((row, recipient)),
            _ if state.is_guarded() => listed.add_new_rows(&mut self.rows, &[(row, recipient)]),
            _ => self.waiting.push((row, recipient)),
        }
    }
}
