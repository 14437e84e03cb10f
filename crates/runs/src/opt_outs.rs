//! Opt-outs on the suppression list: adding and removing numbers, and importing files of recipients who opted out.
//!
//! The regions of the campaigns determine how national numbers are read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use roaring::RoaringBitmap;

use super::number_files::name_first_rows;
use super::{Error, current_person, list_campaign_files, run_blocking};
use campaign_content::audience::{DecodedText, NumberColumns, PhoneProblem, clean_cell, decode_table, read_rows};
use campaign_core::calendar::EARLIEST_YEAR;
use campaign_core::domain::{OptOutState, Phone, Region, Row, read_opt_out_state};
use campaign_core::finding::{Finding, rules};
use campaign_core::regular_file;
use campaign_engine::delivery::FrozenInputs;
use campaign_engine::report::OPT_OUT_COLUMNS;
use campaign_ledger::{
    AdditionMode, Additions, Ledger, OptOut, OptOutFilter, OptOutReach, OptOutRemoval, OptOutScope, RemovalTarget, Run,
    RunFilter, import_source,
};
use campaign_manifest::{CampaignDay, load_campaign};

/// A file of recipients who opted out.
#[derive(Clone, Debug)]
pub struct OptOutFile {
    /// The number of rows.
    pub rows: u64,
    /// The opt-outs, each once.
    pub opt_outs: Arc<[OptOut]>,
    /// The number of phone numbers in the file that repeat an earlier opt-out.
    pub repeated: u64,
    /// The columns with phone numbers: their headers, or their positions.
    pub phone_columns: Vec<String>,
    /// The columns that mark some recipients as not opted out.
    pub mixed: Vec<MixedColumn>,
    /// The header of the date column of another program, if there is one, and the number of rows whose date is
    /// unreadable or in the future.
    pub dates: Option<(String, u64)>,
    /// The default source of the opt-outs.
    source: Arc<str>,
}

/// A column that marks some recipients as not opted out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedColumn {
    /// The header of the column.
    pub header: String,
    /// The number of recipients that the column marks as opted out.
    pub opted_out: u64,
    /// The number of recipients that the column marks as reachable.
    pub reachable: u64,
    /// The value of the first recipient that the column marks as reachable.
    pub example: String,
}

impl OptOutFile {
    /// Reads a file of opt-outs, from all of its columns of phone numbers. The columns of an export and the date
    /// columns of other programs are read too, but `terms` take precedence.
    ///
    /// # Errors
    /// If the file cannot be read or has invalid rows, all of which are reported.
    pub async fn read(file: &Path, terms: &OptOutTerms, now: Timestamp) -> Result<Self, Error> {
        let (path, terms) = (file.to_owned(), terms.clone());
        run_blocking(move || read_file(&path, &terms, now, IMPORTED_NATIONAL_NUMBER, |columns| columns)).await?
    }

    /// Previews adding these opt-outs to the suppression list, without changing the list.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn preview_additions(&self, ledger: &dyn Ledger) -> Result<Additions, Error> {
        Ok(ledger.add_opt_outs(Arc::clone(&self.opt_outs), AdditionMode::Preview).await?)
    }

    /// Adds all of these opt-outs to the suppression list.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub async fn import(self, ledger: &dyn Ledger) -> Result<Additions, Error> {
        Ok(ledger.add_opt_outs(self.opt_outs, AdditionMode::Add).await?)
    }

    /// The source by which an import can be undone. Returns `None` if all rows come from an export, in which each row
    /// has its own source.
    pub fn undo_source(&self) -> Option<&str> {
        let has_import_source = self.opt_outs.iter().any(|opt_out| opt_out.is_from_import(&self.source));
        has_import_source.then_some(&self.source)
    }
}

/// The error for a number without a country code in an opt-out file.
const IMPORTED_NATIONAL_NUMBER: &str =
    "the number has no country code; write it with `+` and its country code, or set its country: `--region UA`";
/// The error for a national number in a file of numbers, whose commands have no `--region`.
const NATIONAL_NUMBER: &str = "the number has no country code; write it with `+` and its country code";

/// Reads the international phone numbers in a file that has the format of an opt-out file. Messages can be sent to
/// these numbers, so only the preferred phone column counts.
///
/// # Errors
/// If the file cannot be read or has invalid rows, all of which are reported.
pub async fn read_numbers(file: &Path) -> Result<BTreeSet<Phone>, Error> {
    let path = file.to_owned();
    let (terms, now) = (OptOutTerms::default(), Timestamp::UNIX_EPOCH);
    let read = move || read_file(&path, &terms, now, NATIONAL_NUMBER, NumberColumns::into_preferred_column);
    let listed = run_blocking(read).await??;
    Ok(listed.opt_outs.iter().filter_map(|opt_out| opt_out.who.phone()).collect())
}

/// The name of a file, without its folder.
pub(super) fn file_name(file: &Path) -> String {
    file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Reads a file of opt-outs. `national_number_error` is the error for a number without a country code. `choose` chooses
/// among the phone columns.
fn read_file(
    file: &Path,
    terms: &OptOutTerms,
    now: Timestamp,
    national_number_error: &'static str,
    choose: fn(NumberColumns) -> NumberColumns,
) -> Result<OptOutFile, Error> {
    let refuse = |finding: Box<Finding>| Error::Findings(vec![*finding]);
    let open = || {
        let opened = regular_file::open(file);
        let opened = opened.map_err(|error| Error::Input(format!("`{}` cannot be read: {error}", file.display())))?;
        decode_table(opened, file, terms.region).map_err(refuse)
    };
    let columns = NumberColumns::detect(open()?, file, terms.region, is_other_column).map_err(refuse)?;
    let columns = columns.map(choose).ok_or_else(|| {
        let finding =
            Finding::new(&rules::NO_PHONES, format!("no column in `{}` contains phone numbers", file.display()));
        Error::Findings(vec![finding.help("name the columns in the first row, for example `phone`")])
    })?;
    let headers = columns.other_headers();
    let has_column = |column: &str| headers.clone().any(|header| normalize_header(header) == column);
    let date = find_date_header(headers.clone()).filter(|_| !has_column("at"));
    let [_, others @ ..] = OPT_OUT_COLUMNS;
    let [scope, reason, source, at, gateways] = others;
    let mut reader = OptOutReader {
        terms,
        now,
        national_number_error,
        source: import_source(&file_name(file), &current_person(), now).into(),
        is_export: others.iter().all(|column| has_column(column)),
        zone: date.map(|_| TimeZone::system()),
        undated: RoaringBitmap::new(),
        texts: BTreeMap::new(),
        rows: RoaringBitmap::new(),
        opt_outs: Vec::new(),
        errors: BTreeMap::new(),
    };
    let add_row =
        |row: Row, number: Result<Phone, PhoneProblem>, cells: [&str; 5]| reader.add_number(row, number, cells);
    let others = [scope, reason, source, date.unwrap_or(at), gateways];
    let phone_columns = columns.read_numbers(open()?, file, terms.region, others.map(Some), add_row).map_err(refuse)?;
    let (rows, undated, source) = (reader.rows.len(), reader.undated.len(), Arc::clone(&reader.source));
    let listed = reader.finish(file)?;
    let numbers = listed.len();
    let opt_outs = keep_latest(listed);
    let repeated = (numbers - opt_outs.len()) as u64;
    let mixed = find_mixed_columns(open()?, file).map_err(refuse)?;
    let dates = date.map(|header| (header.to_owned(), undated));
    Ok(OptOutFile { rows, opt_outs: opt_outs.into(), repeated, phone_columns, mixed, dates, source })
}

/// Whether a header belongs to a column of opt-out files that never contains phone numbers.
pub(super) fn is_other_column(header: &str) -> bool {
    let [_, others @ ..] = OPT_OUT_COLUMNS;
    let header = normalize_header(header);
    others.contains(&header.as_str()) || DATE_HEADERS.contains(&header.as_str())
}

/// Keeps the latest of the opt-outs that repeat each other, at the position of the first.
fn keep_latest(listed: Vec<OptOut>) -> Vec<OptOut> {
    let (mut opt_outs, mut places): (Vec<OptOut>, _) = (Vec::new(), HashMap::new());
    for opt_out in listed {
        let place =
            *places.entry((opt_out.who.to_u64(), opt_out.scope.clone(), opt_out.reach)).or_insert(opt_outs.len());
        match opt_outs.get_mut(place) {
            Some(earlier) if earlier.at < opt_out.at => *earlier = opt_out,
            Some(_) => {}
            None => opt_outs.push(opt_out),
        }
    }
    opt_outs
}

/// Finds the columns that mark some recipients as not opted out.
fn find_mixed_columns(list: DecodedText, file: &Path) -> Result<Vec<MixedColumn>, Box<Finding>> {
    let mut columns: BTreeMap<usize, MixedColumn> = BTreeMap::new();
    read_rows(list, file, |headers, _, fields| {
        for (column, header) in headers.iter().enumerate() {
            let cell = clean_cell(fields.get(column));
            let Some(state) = read_opt_out_state(header, cell) else { continue };
            let mixed = columns.entry(column).or_insert_with(|| MixedColumn {
                header: header.clone(),
                opted_out: 0,
                reachable: 0,
                example: String::new(),
            });
            match state {
                OptOutState::OptedOut => mixed.opted_out += 1,
                OptOutState::Reachable => {
                    mixed.reachable += 1;
                    if mixed.example.is_empty() {
                        mixed.example = cell.to_owned();
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(columns.into_values().filter(|column| column.reachable > 0).collect())
}

/// A reader of opt-outs from a file.
struct OptOutReader<'t> {
    terms: &'t OptOutTerms,
    now: Timestamp,
    /// The error for a number without a country code.
    national_number_error: &'static str,
    /// The source that the opt-outs get.
    source: Arc<str>,
    /// Whether the file is an export of this list, whose rows have their own sources.
    is_export: bool,
    /// The time zone of the dates from another program. `None` if there is no date column of another program, so that
    /// the column `at` of an export is read.
    zone: Option<TimeZone>,
    /// Rows with a date that is unreadable or in the future.
    undated: RoaringBitmap,
    /// Interned texts, which many rows share.
    texts: BTreeMap<String, Arc<str>>,
    /// The rows that were read.
    rows: RoaringBitmap,
    opt_outs: Vec<OptOut>,
    /// Errors with their rows.
    errors: BTreeMap<String, Vec<Row>>,
}

impl OptOutReader<'_> {
    /// Adds the opt-out of a number, or records the error with its row.
    fn add_number(&mut self, row: Row, number: Result<Phone, PhoneProblem>, cells: [&str; 5]) {
        self.rows.insert(row.get());
        match self.parse_opt_out(row, number, cells) {
            Ok(opt_out) => self.opt_outs.push(opt_out),
            Err(error) => {
                let rows = self.errors.entry(error).or_default();
                if rows.last() != Some(&row) {
                    rows.push(row);
                }
            }
        }
    }

    fn parse_opt_out(
        &mut self,
        row: Row,
        number: Result<Phone, PhoneProblem>,
        [scope, reason, source, at, gateways]: [&str; 5],
    ) -> Result<OptOut, String> {
        let phone = number.map_err(|problem| match problem {
            PhoneProblem::National => self.national_number_error.to_owned(),
            problem => problem.to_string(),
        })?;
        let scope = match (&self.terms.scope, scope) {
            (Some(scope), _) => scope.clone(),
            (None, "") => OptOutScope::Marketing,
            (None, scope) => self.parse_scope(scope)?,
        };
        let reach = match gateways {
            "" => OptOutReach::AllGateways,
            name => OptOutReach::from_name(name).ok_or("`gateways` must be `all` or `loopback`")?,
        };
        let at = self.parse_time(row, at)?;
        let reason = match (&self.terms.reason, strip_formula_quote(reason)) {
            (Some(reason), _) => self.intern_text(reason),
            (None, "") => self.intern_text("imported"),
            (None, reason) => self.intern_text(reason),
        };
        let source = match (source, self.is_export) {
            ("", _) => Arc::clone(&self.source),
            (source, true) => self.intern_text(strip_formula_quote(source)),
            // Undoing the import finds its entries by this prefix.
            (source, false) => self.intern_text(&format!("{}, {}", self.source, strip_formula_quote(source))),
        };
        Ok(OptOut { who: phone.into(), scope, reach, reason, source, at })
    }

    /// Parses the time of an opt-out. An empty time means now. If there is a time zone, an unreadable or future time
    /// also means now, and the row is recorded as undated.
    fn parse_time(&mut self, row: Row, at: &str) -> Result<Timestamp, String> {
        match (at, &self.zone) {
            ("", _) => Ok(self.now),
            (at, None) => at.parse().map_err(|_| "`at` must be a time in the form 2026-12-01T10:00:00Z".to_owned()),
            (at, Some(zone)) => Ok(parse_date(at, zone, self.now).unwrap_or_else(|| {
                self.undated.insert(row.get());
                self.now
            })),
        }
    }

    fn parse_scope(&mut self, scope: &str) -> Result<OptOutScope, String> {
        match OptOutScope::from_name(scope) {
            Some(OptOutScope::Campaign(name)) if campaign_manifest::is_slug(&name) => {
                Ok(OptOutScope::Campaign(self.intern_text(&name)))
            }
            Some(scope @ (OptOutScope::Marketing | OptOutScope::All)) => Ok(scope),
            _ => Err("`scope` must be `marketing`, `all` or `campaign:NAME`".to_owned()),
        }
    }

    fn intern_text(&mut self, text: &str) -> Arc<str> {
        if let Some(interned) = self.texts.get(text) {
            return Arc::clone(interned);
        }
        let new: Arc<str> = text.into();
        self.texts.insert(text.to_owned(), Arc::clone(&new));
        new
    }

    /// Returns all opt-outs, or the errors.
    fn finish(self, file: &Path) -> Result<Vec<OptOut>, Error> {
        if self.errors.is_empty() {
            return Ok(self.opt_outs);
        }
        let finding = |(problem, rows): (String, Vec<Row>)| {
            let (named, s) = (name_first_rows(rows.iter().map(Row::to_string)), if rows.len() == 1 { "" } else { "s" });
            let message = format!("{}:{}: {problem} (row{s} {named})", file.display(), rows[0]);
            Finding::new(&rules::OPT_OUT_ROW, message)
        };
        Err(Error::Findings(self.errors.into_iter().map(finding).collect()))
    }
}

/// Removes the quote that keeps a cell from being a formula.
fn strip_formula_quote(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|text| text.starts_with(['=', '@', '+', '-'])).unwrap_or(cell)
}

/// Headers of date columns, the most specific headers first.
const DATE_HEADERS: &[&str] = &[
    "unsubscribedat",
    "unsubscribedon",
    "unsubscribeddate",
    "unsubscribedate",
    "dateunsubscribed",
    "unsubscribetime",
    "optedoutat",
    "optedouton",
    "optoutat",
    "optoutdate",
    "optouttime",
    "optedoutdate",
    "dateofoptout",
    "датавідписки",
    "датавідмови",
    "датаотписки",
    "датаотказа",
    "date",
    "datetime",
    "timestamp",
    "дата",
    "датаічас",
    "датаивремя",
];

/// Date formats other than ISO 8601. Dates with slashes are not read, because day and month might be swapped.
const DATE_TIME_FORMATS: &[&str] = &["%d.%m.%Y %H:%M:%S", "%d.%m.%Y, %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y, %H:%M"];
const DATE_FORMATS: &[&str] = &["%d.%m.%Y", "%Y/%m/%d"];

/// Finds the header of the date column among `headers`.
pub(super) fn find_date_header<'h>(headers: impl Iterator<Item = &'h str> + Clone) -> Option<&'h str> {
    DATE_HEADERS.iter().find_map(|known| headers.clone().find(|header| normalize_header(header) == *known))
}

/// Parses a time. A time without an offset is in `zone`. Returns `None` if the time is invalid, in the future or before
/// 1990.
pub(super) fn parse_date(cell: &str, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
    let cell = cell.trim();
    let local = || {
        let date_time = || DATE_TIME_FORMATS.iter().find_map(|format| DateTime::strptime(format, cell).ok());
        let date = || DATE_FORMATS.iter().find_map(|format| Date::strptime(format, cell).ok()).map(DateTime::from);
        let local = cell.parse::<DateTime>().ok().or_else(date_time).or_else(date)?;
        zone.to_timestamp(local).ok()
    };
    let is_plausible = |at: &Timestamp| *at <= now && at.to_zoned(TimeZone::UTC).year() >= EARLIEST_YEAR;
    cell.parse().ok().or_else(local).filter(is_plausible)
}

/// Converts to lower case and removes spaces, dashes and other punctuation: `Opt-Out` and `opt_out` become `optout`.
pub(super) fn normalize_header(text: &str) -> String {
    text.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The number of entries on a page.
const PAGE_SIZE: u32 = 10_000;

/// Options for adding, importing or removing opt-outs.
#[derive(Clone, Debug, Default)]
pub struct OptOutTerms {
    /// The scope that the opt-outs cover. `None` for marketing, or for every scope if opt-outs are removed.
    pub scope: Option<OptOutScope>,
    /// The reason, in words.
    pub reason: Option<String>,
    /// The country of national numbers.
    pub region: Option<Region>,
    /// The author. `None` for the person at this computer.
    pub by: Option<String>,
}

impl OptOutTerms {
    /// The name of the campaign, if the opt-outs cover only one campaign.
    pub fn campaign(&self) -> Option<&str> {
        self.scope.as_ref().and_then(OptOutScope::campaign)
    }

    /// Whether these terms cover an entry of the suppression list.
    fn includes(&self, entry: &OptOut) -> bool {
        self.scope.as_ref().is_none_or(|scope| *scope == entry.scope)
    }
}

/// Adds a phone number to the suppression list. If the number is already on the list, the returned [`Additions`]
/// contain its entry, with the time at which it was added.
///
/// # Errors
/// If the ledger cannot be written.
pub async fn add_opt_out(
    ledger: &dyn Ledger,
    phone: Phone,
    terms: &OptOutTerms,
    now: Timestamp,
) -> Result<(OptOut, Additions), Error> {
    let opt_out = OptOut {
        who: phone.into(),
        scope: terms.scope.clone().unwrap_or(OptOutScope::Marketing),
        reach: OptOutReach::AllGateways,
        reason: terms.reason.as_deref().unwrap_or("by hand").into(),
        source: terms.by.clone().unwrap_or_else(current_person).into(),
        at: now,
    };
    let additions = ledger.add_opt_outs([opt_out.clone()].into(), AdditionMode::Add).await?;
    Ok((opt_out, additions))
}

/// Lists the entries of a phone number in the scope of `terms`, or in all scopes if `terms` has none.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn list_opt_outs(ledger: &dyn Ledger, phone: Phone, terms: &OptOutTerms) -> Result<Vec<OptOut>, Error> {
    let mut entries = ledger.find_opt_outs(phone).await?;
    entries.retain(|entry| terms.includes(entry));
    Ok(entries)
}

/// Removes and returns the entries of a phone number in the scope of `terms`, or in all scopes.
///
/// # Errors
/// If the ledger cannot be written.
pub async fn remove_opt_outs(ledger: &dyn Ledger, phone: Phone, terms: &OptOutTerms) -> Result<Vec<OptOut>, Error> {
    let reason = terms.reason.as_deref().map(Arc::from);
    let target = RemovalTarget::Number { phone, scope: terms.scope.clone() };
    let by = terms.by.clone().unwrap_or_else(current_person).into();
    Ok(ledger.remove_opt_outs(OptOutRemoval { target, by, why: reason }).await?)
}

/// The entries that imports of a file added.
#[derive(Clone, Debug, Default)]
pub struct ImportedEntries {
    /// The entries that can be removed.
    pub entries: Vec<OptOut>,
    /// Entries of recipients who were forgotten since. They stay on the list.
    pub forgotten: u64,
    /// The sources of all imports on the list, each once.
    pub sources: BTreeSet<Arc<str>>,
}

impl ImportedEntries {
    /// Finds the entries of an import by the path or name of its file, or by the source in the list.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn find(ledger: &dyn Ledger, source: &str, terms: &OptOutTerms) -> Result<Self, Error> {
        let (name, mut imported, mut behind) = (file_name(Path::new(source)), Self::default(), None);
        loop {
            let page = ledger.list_opt_outs(OptOutFilter::Listed { behind, at_most: PAGE_SIZE }).await?;
            behind = page.next;
            for entry in page.into_opt_outs().filter(OptOut::is_imported) {
                let is_from_file = entry.is_from_import(source) || entry.is_from_import(&name);
                imported.sources.insert(Arc::clone(&entry.source));
                match is_from_file && terms.includes(&entry) {
                    true if entry.who.phone().is_none() => imported.forgotten += 1,
                    true => imported.entries.push(entry),
                    false => {}
                }
            }
            if behind.is_none() {
                return Ok(imported);
            }
        }
    }

    /// Removes the found entries that have not changed since, and returns the number of removed entries.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub async fn remove(self, ledger: &dyn Ledger, why: Option<&str>) -> Result<u64, Error> {
        let target = RemovalTarget::Entries(self.entries);
        let removal = OptOutRemoval { target, by: current_person().into(), why: why.map(Arc::from) };
        Ok(ledger.remove_opt_outs(removal).await?.len() as u64)
    }
}

/// Lists the names of campaigns with runs or an active schedule. Returns `None` if the campaign `name` is among these
/// campaigns.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn list_other_campaigns(ledger: &dyn Ledger, name: &str) -> Result<Option<BTreeSet<String>>, Error> {
    if !ledger.list_runs(RunFilter { latest: Some(1), ..RunFilter::for_campaign(name) }).await?.is_empty() {
        return Ok(None);
    }
    let runs = ledger.list_runs(RunFilter::all()).await?;
    let campaigns = runs.into_iter().filter(|run| !run.shared).map(|run| run.campaign);
    let schedules = ledger.list_schedules().await?.into_iter();
    let scheduled = schedules.map(|schedule| schedule.map_or_else(|damaged| damaged.name, |active| active.name));
    let names: BTreeSet<String> = campaigns.chain(scheduled).collect();
    Ok((!names.contains(name)).then_some(names))
}

/// The regions that campaigns set for phone numbers without a country code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CampaignRegions {
    /// The names of campaigns by region.
    pub campaigns: Vec<(Region, BTreeSet<String>)>,
    /// Campaign files that cannot be read, so their region is unknown.
    pub unreadable: BTreeSet<String>,
}

impl CampaignRegions {
    /// The region that all campaigns use for national numbers. Returns `None` if the campaigns differ, or a campaign
    /// cannot be read.
    pub fn only_region(&self) -> Option<Region> {
        match &self.campaigns[..] {
            [(only, _)] if self.unreadable.is_empty() => Some(*only),
            _ => None,
        }
    }

    fn add_campaign(&mut self, region: Option<Region>, campaign: &str) {
        let Some(region) = region else { return };
        match self.campaigns.iter_mut().find(|(known, _)| *known == region) {
            Some((_, campaigns)) => drop(campaigns.insert(campaign.to_owned())),
            None => self.campaigns.push((region, BTreeSet::from([campaign.to_owned()]))),
        }
    }
}

/// Finds the regions of the campaigns in a folder and of the latest runs in the ledger, or of the campaign with this
/// name. Campaigns without a region are ignored, because all of their numbers have a country code.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn find_campaign_regions(
    ledger: Option<&dyn Ledger>,
    folder: &Path,
    name: Option<&str>,
    today: CampaignDay,
) -> Result<CampaignRegions, Error> {
    let mut regions = CampaignRegions::default();
    for file in list_campaign_files(folder).unwrap_or_default() {
        let file_name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match load_campaign(&file, today).value {
            Some(campaign) if name.is_none_or(|name| name == campaign.brief.name) => {
                regions.add_campaign(campaign.brief.region, &campaign.brief.name);
            }
            Some(_) => {}
            // An unreadable file might be one of the requested campaigns if no campaign was named, or if its file name
            // matches the name.
            None if name.is_none_or(|name| file.file_stem().is_some_and(|stem| stem == name)) => {
                regions.unreadable.insert(file_name);
            }
            None => {}
        }
    }
    let Some(ledger) = ledger else { return Ok(regions) };
    let filter = name.map_or_else(RunFilter::all, RunFilter::for_campaign);
    let runs = ledger.list_runs(filter).await?.into_iter().filter(|run| !run.shared && run.purged_at.is_none());
    let latest: BTreeMap<String, Run> = runs.map(|run| (run.campaign.clone(), run)).collect();
    for run in latest.into_values() {
        match FrozenInputs::load_for_run(ledger, &run).await {
            Ok(frozen) => regions.add_campaign(frozen.brief.region, &run.campaign),
            Err(_) => drop(regions.unreadable.insert(run.name())),
        }
    }
    Ok(regions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_parsed_in_common_formats() {
        let (kyiv, now) = (TimeZone::get("Europe/Kyiv").unwrap(), "2026-11-26T10:00:00Z".parse().unwrap());
        for (cell, at) in [
            ("2026-03-01T10:00:00Z", Some("2026-03-01T10:00:00Z")),
            ("2026-03-01T10:00:00+02:00", Some("2026-03-01T08:00:00Z")),
            ("2026-03-01 10:00:00", Some("2026-03-01T08:00:00Z")),
            ("2026-03-01 10:00", Some("2026-03-01T08:00:00Z")),
            ("2026-03-01", Some("2026-02-28T22:00:00Z")),
            ("01.03.2026", Some("2026-02-28T22:00:00Z")),
            (" 01.03.2026 10:00 ", Some("2026-03-01T08:00:00Z")),
            ("01.03.2026, 10:00:30", Some("2026-03-01T08:00:30Z")),
            ("2026/03/01", Some("2026-02-28T22:00:00Z")),
            ("03/04/2026", None),
            ("31.02.2026", None),
            ("2027-01-01", None),
            ("05.03.26", None),
            ("05.03.26 10:00", None),
            ("5/3/26", None),
            ("26-03-05", None),
            ("yesterday", None),
            ("380501234567", None),
            ("", None),
        ] {
            let at = at.map(|at| at.parse::<Timestamp>().unwrap());
            assert_eq!(parse_date(cell, &kyiv, now), at, "{cell}");
        }
    }

    #[test]
    fn most_specific_header_selects_the_date_column() {
        let find = |headers: &[&str]| find_date_header(headers.iter().copied()).map(str::to_owned);
        assert_eq!(find(&["Name", "Date", "Unsubscribed At"]).as_deref(), Some("Unsubscribed At"));
        assert_eq!(find(&["Ім'я", "Дата"]).as_deref(), Some("Дата"));
        assert_eq!(find(&["birthday", "created_at", "at"]), None);
    }
}

#[cfg(test)]
mod campaign_regions_tests {
    use super::*;

    fn regions(campaigns: &[(&str, &str)]) -> CampaignRegions {
        let mut regions = CampaignRegions::default();
        campaigns.iter().for_each(|(region, name)| regions.add_campaign(Some(region.parse().unwrap()), name));
        regions
    }

    #[test]
    fn region_is_inferred_only_if_all_campaigns_agree() {
        assert_eq!(regions(&[]).only_region(), None);
        let ukraine = regions(&[("UA", "spring"), ("UA", "autumn")]);
        assert_eq!(ukraine.only_region(), Some("UA".parse().unwrap()));
        assert_eq!(regions(&[("UA", "spring"), ("PL", "autumn")]).only_region(), None);
        let unreadable = BTreeSet::from(["broken.yaml".to_owned()]);
        assert_eq!(
            CampaignRegions { unreadable, ..ukraine }.only_region(),
            None,
            "the unreadable campaign might have another region"
        );
    }
}
