//! A file of recipients who opted out: its rows as opt-outs, and what its other columns say about them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::opt_out_date::{date_header, parse_date, squashed};
use super::{Error, OptOutTerms, blocking, person};
use crate::audience::{
    Decoded, PhoneProblem, decode_table, number_in_header, parse, plain, read_columns, read_rows, suggest_for_numbers,
};
use crate::domain::{OptOutState, Phone, Region, Row, opt_out_state};
use crate::finding::{Finding, rules};
use crate::ledger::{Additions, Ledger, OptOut, Reach, Scope, import_source};
use crate::regular_file;
use crate::report::OPT_OUT_COLUMNS;

/// Rows that are named of those that have the same wrong with them.
const NAMED: usize = 5;

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
        blocking(move || read(&path, &terms, now)).await?
    }

    /// What adding it to the list would come to; changes nothing.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn additions(&self, ledger: &dyn Ledger) -> Result<Additions, Error> {
        Ok(ledger.additions(&self.opt_outs).await?)
    }

    /// Puts everybody in it on the list.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub async fn import(self, ledger: &dyn Ledger) -> Result<Additions, Error> {
        Ok(ledger.suppress(self.opt_outs).await?)
    }

    /// Whether undoing the import finds an opt-out of it: the rows of an export keep their own sources.
    #[must_use]
    pub fn undoable_source(&self) -> Option<&str> {
        let is_own = self.opt_outs.iter().any(|opt_out| opt_out.is_of_import(&self.source));
        is_own.then_some(&self.source)
    }

    /// How many rows say what an earlier row said.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.rows - self.opt_outs.len() as u64
    }
}

/// The numbers in a file that is read like one of people who opted out.
///
/// # Errors
/// When the file cannot be read, with every row that is wrong.
pub async fn numbers_in(file: &Path, region: Option<Region>) -> Result<BTreeSet<Phone>, Error> {
    let terms = OptOutTerms { region, ..OptOutTerms::default() };
    let listed = OptOutFile::read(file, &terms, Timestamp::UNIX_EPOCH).await?;
    Ok(listed.opt_outs.into_iter().filter_map(|listed| listed.who.number()).collect())
}

/// The name of a file, without its folder.
pub(super) fn file_name(file: &Path) -> String {
    file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn read(file: &Path, terms: &OptOutTerms, now: Timestamp) -> Result<OptOutFile, Error> {
    let refused = |finding: Box<Finding>| Error::Findings(vec![*finding]);
    let open = || {
        let opened = regular_file::open(file);
        let opened = opened.map_err(|error| Error::Input(format!("`{}` cannot be read: {error}", file.display())))?;
        decode_table(opened, file, terms.region).map_err(refused)
    };
    let [phone, columns @ ..] = OPT_OUT_COLUMNS;
    let suggestion = suggest_for_numbers(open()?, file).map_err(refused)?;
    let others: Vec<&str> = suggestion.columns.iter().map(|(_, header)| header.as_str()).collect();
    let has = |column: &str| others.iter().any(|header| squashed(header) == column);
    let date = date_header(others.iter().copied()).filter(|_| !has("at"));
    let [scope, reason, source, at, gateways] = columns;
    let at = date.unwrap_or(at);
    let headers = [suggestion.phone.as_deref().unwrap_or(phone), scope, reason, source, at, gateways];
    let mut intake = Intake {
        terms,
        now,
        source: import_source(&file_name(file), &person(), now).into(),
        is_export: columns.iter().all(|column| has(column)),
        zone: date.map(|_| TimeZone::system()),
        undated: 0,
        texts: BTreeMap::new(),
        opt_outs: Vec::new(),
        wrong: BTreeMap::new(),
    };
    // A file of numbers alone has one where others have their header.
    if number_in_header(headers[0], terms.region).is_some() {
        intake.take(Row::HEADER, [headers[0], "", "", "", "", ""]);
    }
    let [has_phones, ..] =
        read_columns(open()?, file, headers, |row, cells| intake.take(row, cells)).map_err(refused)?;
    if !has_phones {
        let finding =
            Finding::new(&rules::NO_PHONES, format!("no column of `{}` contains phone numbers", file.display()));
        return Err(Error::Findings(vec![finding.help("name the columns in the first row, for example `phone`")]));
    }
    let (undated, source) = (intake.undated, Arc::clone(&intake.source));
    let mut opt_outs = intake.end(file)?;
    let rows = opt_outs.len() as u64;
    let mut seen = HashSet::new();
    opt_outs.retain(|OptOut { who, scope, reach, .. }| seen.insert((who.get(), scope.clone(), *reach)));
    let mixed = mixed_columns(open()?, file).map_err(refused)?;
    let dates = date.map(|header| (header.to_owned(), undated));
    Ok(OptOutFile { rows, opt_outs, mixed, dates, source })
}

/// The columns that say of some recipients that they did not opt out.
fn mixed_columns(list: Decoded, file: &Path) -> Result<Vec<MixedColumn>, Box<Finding>> {
    let mut columns: BTreeMap<usize, MixedColumn> = BTreeMap::new();
    read_rows(list, file, |headers, _, fields| {
        for (column, header) in headers.iter().enumerate() {
            let cell = plain(fields.get(column));
            let Some(state) = opt_out_state(header, cell) else { continue };
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
struct Intake<'t> {
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

impl Intake<'_> {
    fn take(&mut self, row: Row, cells: [&str; 6]) {
        match self.opt_out(cells) {
            Ok(opt_out) => self.opt_outs.push(opt_out),
            Err(wrong) => self.wrong.entry(wrong).or_default().push(row),
        }
    }

    fn opt_out(&mut self, [phone, scope, reason, source, at, gateways]: [&str; 6]) -> Result<OptOut, String> {
        let phone = parse(phone, self.terms.region).map_err(|problem| match problem {
            PhoneProblem::National => {
                "the number has no country code; write it with `+`, or set its country: `--region UA`".to_owned()
            }
            problem => problem.to_string(),
        })?;
        let scope = match (&self.terms.campaign, scope) {
            (Some(name), _) => Scope::Campaign(self.text(name)),
            (None, "") => Scope::Everything,
            (None, scope) => self.scope(scope)?,
        };
        let reach = match gateways {
            "" => Reach::AllGateways,
            name => Reach::from_name(name).ok_or("`gateways` must be `all` or `loopback`")?,
        };
        let at = self.at(at)?;
        let reason = match (&self.terms.reason, unquoted(reason)) {
            (Some(reason), _) => self.text(reason),
            (None, "") => self.text("imported"),
            (None, reason) => self.text(reason),
        };
        let source = match (source, self.is_export) {
            ("", _) => Arc::clone(&self.source),
            (source, true) => self.text(unquoted(source)),
            // So that undoing the import finds it.
            (source, false) => self.text(&format!("{}, {}", self.source, unquoted(source))),
        };
        Ok(OptOut { who: phone.into(), scope, reach, reason, source, at })
    }

    /// Since when a recipient opted out.
    fn at(&mut self, at: &str) -> Result<Timestamp, String> {
        match (at, &self.zone) {
            ("", _) => Ok(self.now),
            (at, None) => at.parse().map_err(|_| "`at` must be a time in the form 2026-12-01T10:00:00Z".to_owned()),
            (at, Some(zone)) => Ok(parse_date(at, zone, self.now).unwrap_or_else(|| {
                self.undated += 1;
                self.now
            })),
        }
    }

    fn scope(&mut self, scope: &str) -> Result<Scope, String> {
        match scope.strip_prefix("campaign:") {
            Some(name) if crate::manifest::is_slug(name) => Ok(Scope::Campaign(self.text(name))),
            None if scope == "everything" => Ok(Scope::Everything),
            _ => Err("`scope` must be `everything` or `campaign:NAME`".to_owned()),
        }
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.texts.insert(text.to_owned(), Arc::clone(&new));
        new
    }

    /// All that were read, or what is wrong.
    fn end(self, file: &Path) -> Result<Vec<OptOut>, Error> {
        if self.wrong.is_empty() {
            return Ok(self.opt_outs);
        }
        let finding = |(what, rows): (String, Vec<Row>)| {
            let named: Vec<String> = rows.iter().take(NAMED).map(Row::to_string).collect();
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
fn unquoted(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|text| text.starts_with(['=', '@', '+', '-'])).unwrap_or(cell)
}
