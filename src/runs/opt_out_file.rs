//! A file of recipients who opted out: its rows as opt-outs, and what its other columns say about them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::opt_out_date::{find_date_header, normalize_header, parse_date};
use super::{Error, OptOutTerms, current_person, run_blocking};
use crate::audience::{
    DecodedText, PhoneProblem, clean_cell, decode_table, parse_header_number, parse_phone_number, read_columns,
    read_rows, suggest_for_number_file,
};
use crate::domain::{OptOutState, Phone, Region, Row, read_opt_out_state};
use crate::finding::{Finding, rules};
use crate::ledger::{Additions, Ledger, OptOut, OptOutReach, OptOutScope, import_source};
use crate::regular_file;
use crate::report::OPT_OUT_COLUMNS;

/// Rows that are named of those that have the same wrong with them.
const MAX_NAMED_ROWS: usize = 5;

/// A file of recipients who opted out, as it was read.
#[derive(Clone, Debug)]
pub struct OptOutFile {
    /// How many rows it has.
    pub rows: u64,
    /// Its opt-outs, each once.
    pub opt_outs: Vec<OptOut>,
    /// The columns that say of some recipients that they did not opt out.
    pub mixed: Vec<MixedColumn>,
    /// The column of dates, where there is one: its header, and how many of its dates cannot be read.
    pub dates: Option<(String, u64)>,
    /// The source of the opt-outs that have no source of their own.
    source: Arc<str>,
}

/// A column that says of some recipients that they did not opt out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedColumn {
    /// Its header.
    pub header: String,
    /// How many recipients opted out by it.
    pub opted_out: u64,
    /// How many recipients can be sent to by it.
    pub reachable: u64,
    /// What it says of the first of the latter.
    pub example: String,
}

impl OptOutFile {
    /// Reads a file: a list with a column of numbers. The columns of an export count, and dates of opt-outs in other programs'
    /// columns, but `terms` come first.
    ///
    /// # Errors
    /// When the file cannot be read, with every row that is wrong.
    pub async fn read(file: &Path, terms: &OptOutTerms, now: Timestamp) -> Result<Self, Error> {
        let (path, terms) = (file.to_owned(), terms.clone());
        run_blocking(move || read_file(&path, &terms, now)).await?
    }

    /// What adding it to the list would come to; changes nothing.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn preview_additions(&self, ledger: &dyn Ledger) -> Result<Additions, Error> {
        Ok(ledger.preview_additions(&self.opt_outs).await?)
    }

    /// Puts everybody in it on the list.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub async fn import(self, ledger: &dyn Ledger) -> Result<Additions, Error> {
        Ok(ledger.add_opt_outs(self.opt_outs).await?)
    }

    /// Whether undoing the import finds an opt-out of it: the rows of an export keep their own sources.
    #[must_use]
    pub fn undoable_source(&self) -> Option<&str> {
        let is_own = self.opt_outs.iter().any(|opt_out| opt_out.is_from_import(&self.source));
        is_own.then_some(&self.source)
    }

    /// How many rows say what an earlier row said.
    #[must_use]
    pub fn count_repeated(&self) -> u64 {
        self.rows - self.opt_outs.len() as u64
    }
}

/// The numbers in a file that is read like one of people who opted out.
///
/// # Errors
/// When the file cannot be read, with every row that is wrong.
pub async fn read_numbers(file: &Path, region: Option<Region>) -> Result<BTreeSet<Phone>, Error> {
    let terms = OptOutTerms { region, ..OptOutTerms::default() };
    let listed = OptOutFile::read(file, &terms, Timestamp::UNIX_EPOCH).await?;
    Ok(listed.opt_outs.into_iter().filter_map(|listed| listed.who.phone()).collect())
}

/// The name of a file, without its folder.
pub(super) fn file_name(file: &Path) -> String {
    file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn read_file(file: &Path, terms: &OptOutTerms, now: Timestamp) -> Result<OptOutFile, Error> {
    let refused = |finding: Box<Finding>| Error::Findings(vec![*finding]);
    let open = || {
        let opened = regular_file::open(file);
        let opened = opened.map_err(|error| Error::Input(format!("`{}` cannot be read: {error}", file.display())))?;
        decode_table(opened, file, terms.region).map_err(refused)
    };
    let [phone, columns @ ..] = OPT_OUT_COLUMNS;
    let suggestion = suggest_for_number_file(open()?, file).map_err(refused)?;
    let others: Vec<&str> = suggestion.columns.iter().map(|(_, header)| header.as_str()).collect();
    let has = |column: &str| others.iter().any(|header| normalize_header(header) == column);
    let date = find_date_header(others.iter().copied()).filter(|_| !has("at"));
    let [scope, reason, source, at, gateways] = columns;
    let at = date.unwrap_or(at);
    let headers = [suggestion.phone.as_deref().unwrap_or(phone), scope, reason, source, at, gateways];
    let mut intake = OptOutReader {
        terms,
        now,
        source: import_source(&file_name(file), &current_person(), now).into(),
        is_export: columns.iter().all(|column| has(column)),
        zone: date.map(|_| TimeZone::system()),
        undated: 0,
        texts: BTreeMap::new(),
        opt_outs: Vec::new(),
        wrong: BTreeMap::new(),
    };
    // A file of numbers alone has one where others have their header.
    if parse_header_number(headers[0], terms.region).is_some() {
        intake.add_row(Row::HEADER, [headers[0], "", "", "", "", ""]);
    }
    let [has_phones, ..] =
        read_columns(open()?, file, headers, |row, cells| intake.add_row(row, cells)).map_err(refused)?;
    if !has_phones {
        let finding =
            Finding::new(&rules::NO_PHONES, format!("no column of `{}` contains phone numbers", file.display()));
        return Err(Error::Findings(vec![finding.help("name the columns in the first row, for example `phone`")]));
    }
    let (undated, source) = (intake.undated, Arc::clone(&intake.source));
    let mut opt_outs = intake.finish(file)?;
    let rows = opt_outs.len() as u64;
    let mut seen = HashSet::new();
    opt_outs.retain(|OptOut { who, scope, reach, .. }| seen.insert((who.to_u64(), scope.clone(), *reach)));
    let mixed = find_mixed_columns(open()?, file).map_err(refused)?;
    let dates = date.map(|header| (header.to_owned(), undated));
    Ok(OptOutFile { rows, opt_outs, mixed, dates, source })
}

/// The columns that say of some recipients that they did not opt out.
fn find_mixed_columns(list: DecodedText, file: &Path) -> Result<Vec<MixedColumn>, Box<Finding>> {
    let mut columns: BTreeMap<usize, MixedColumn> = BTreeMap::new();
    read_rows(list, file, |headers, _, fields| {
        for (column, header) in headers.iter().enumerate() {
            let cell = clean_cell(fields.get(column));
            let Some(state) = read_opt_out_state(header, cell) else { continue };
            let known = columns.entry(column).or_insert_with(|| MixedColumn {
                header: header.clone(),
                opted_out: 0,
                reachable: 0,
                example: String::new(),
            });
            match state {
                OptOutState::OptedOut => known.opted_out += 1,
                OptOutState::Reachable => {
                    known.reachable += 1;
                    if known.example.is_empty() {
                        known.example = cell.to_owned();
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(columns.into_values().filter(|column| column.reachable > 0).collect())
}

/// What is read of a file.
struct OptOutReader<'t> {
    terms: &'t OptOutTerms,
    now: Timestamp,
    /// What the file is the source of.
    source: Arc<str>,
    /// Whether it is an export of this list, whose rows have their own sources.
    is_export: bool,
    /// The time zone of dates in another program's column; nothing if the column `at` of an export has them.
    zone: Option<TimeZone>,
    /// Rows with a date that cannot be read.
    undated: u64,
    /// Texts that were met, of which many rows have the same.
    texts: BTreeMap<String, Arc<str>>,
    opt_outs: Vec<OptOut>,
    /// What is wrong, with the rows.
    wrong: BTreeMap<String, Vec<Row>>,
}

impl OptOutReader<'_> {
    fn add_row(&mut self, row: Row, cells: [&str; 6]) {
        match self.parse_opt_out(cells) {
            Ok(opt_out) => self.opt_outs.push(opt_out),
            Err(wrong) => self.wrong.entry(wrong).or_default().push(row),
        }
    }

    fn parse_opt_out(&mut self, [phone, scope, reason, source, at, gateways]: [&str; 6]) -> Result<OptOut, String> {
        let phone = parse_phone_number(phone, self.terms.region).map_err(|problem| match problem {
            PhoneProblem::National => {
                "the number has no country code; write it with `+`, or set its country: `--region UA`".to_owned()
            }
            problem => problem.to_string(),
        })?;
        let scope = match (&self.terms.campaign, scope) {
            (Some(name), _) => OptOutScope::Campaign(self.intern_text(name)),
            (None, "") => OptOutScope::Everything,
            (None, scope) => self.parse_scope(scope)?,
        };
        let reach = match gateways {
            "" => OptOutReach::AllGateways,
            name => OptOutReach::from_name(name).ok_or("`gateways` must be `all` or `loopback`")?,
        };
        let at = self.parse_time(at)?;
        let reason = match (&self.terms.reason, strip_formula_quote(reason)) {
            (Some(reason), _) => self.intern_text(reason),
            (None, "") => self.intern_text("imported"),
            (None, reason) => self.intern_text(reason),
        };
        let source = match (source, self.is_export) {
            ("", _) => Arc::clone(&self.source),
            (source, true) => self.intern_text(strip_formula_quote(source)),
            // So that undoing the import finds it.
            (source, false) => self.intern_text(&format!("{}, {}", self.source, strip_formula_quote(source))),
        };
        Ok(OptOut { who: phone.into(), scope, reach, reason, source, at })
    }

    /// Since when a recipient opted out.
    fn parse_time(&mut self, at: &str) -> Result<Timestamp, String> {
        match (at, &self.zone) {
            ("", _) => Ok(self.now),
            (at, None) => at.parse().map_err(|_| "`at` must be a time in the form 2026-12-01T10:00:00Z".to_owned()),
            (at, Some(zone)) => Ok(parse_date(at, zone, self.now).unwrap_or_else(|| {
                self.undated += 1;
                self.now
            })),
        }
    }

    fn parse_scope(&mut self, scope: &str) -> Result<OptOutScope, String> {
        match scope.strip_prefix("campaign:") {
            Some(name) if crate::manifest::is_slug(name) => Ok(OptOutScope::Campaign(self.intern_text(name))),
            None if scope == "everything" => Ok(OptOutScope::Everything),
            _ => Err("`scope` must be `everything` or `campaign:NAME`".to_owned()),
        }
    }

    fn intern_text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.texts.insert(text.to_owned(), Arc::clone(&new));
        new
    }

    /// All that were read, or what is wrong.
    fn finish(self, file: &Path) -> Result<Vec<OptOut>, Error> {
        if self.wrong.is_empty() {
            return Ok(self.opt_outs);
        }
        let finding = |(what, rows): (String, Vec<Row>)| {
            let named: Vec<String> = rows.iter().take(MAX_NAMED_ROWS).map(Row::to_string).collect();
            let more = rows.len().saturating_sub(named.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let s = if rows.len() == 1 { "" } else { "s" };
            let message = format!("{}:{}: {what} (row{s} {}{more})", file.display(), rows[0], named.join(", "));
            Finding::new(&rules::OPT_OUT_ROW, message)
        };
        Err(Error::Findings(self.wrong.into_iter().map(finding).collect()))
    }
}

/// The text of a cell that was kept from being a formula.
fn strip_formula_quote(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|text| text.starts_with(['=', '@', '+', '-'])).unwrap_or(cell)
}
