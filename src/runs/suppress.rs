//! Putting numbers on the suppression list and taking them off, by hand or from a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use super::{Error, blocking, person};
use crate::audience::{PhoneProblem, decode, parse, read_columns, suggest};
use crate::domain::{ListForm, Phone, Region, Row};
use crate::finding::{Finding, rules};
use crate::ledger::{Additions, Ledger, OptOut, Reach, Removal, Scope};
use crate::regular_file;
use crate::report::OPT_OUT_COLUMNS;

/// Rows that are named of those that have the same wrong with them.
const NAMED: usize = 5;

/// What a person says of who opts out.
#[derive(Clone, Debug, Default)]
pub struct OptOutTerms {
    /// One campaign, by its name; else everything.
    pub campaign: Option<String>,
    /// Why, in words.
    pub reason: Option<String>,
    /// The country of national numbers.
    pub region: Option<Region>,
    /// Who says so; the person at this computer where nobody is named.
    pub by: Option<String>,
}

/// What came of an import.
#[derive(Clone, Debug)]
pub struct Import {
    /// How many rows the file has.
    pub rows: u64,
    /// What is new on the list.
    pub additions: Additions,
}

/// Puts a number on the list, as somebody says; tells since when it stands there, if it did before.
///
/// # Errors
/// When the ledger cannot be written.
pub async fn suppress(
    ledger: &dyn Ledger,
    phone: Phone,
    terms: &OptOutTerms,
    now: Timestamp,
) -> Result<(OptOut, Additions), Error> {
    let opt_out = OptOut {
        who: phone.into(),
        scope: Scope::of(terms.campaign.as_deref()),
        reach: Reach::AllGateways,
        reason: terms.reason.as_deref().unwrap_or("by hand").into(),
        source: terms.by.clone().unwrap_or_else(person).into(),
        at: now,
    };
    let additions = ledger.suppress(vec![opt_out.clone()]).await?;
    Ok((opt_out, additions))
}

/// Takes a number off the list: out of one campaign, or out of all that it opted out of. Tells what was taken off.
///
/// # Errors
/// When the ledger cannot be written.
pub async fn unsuppress(ledger: &dyn Ledger, phone: Phone, terms: &OptOutTerms) -> Result<Vec<OptOut>, Error> {
    let scope = terms.campaign.as_deref().map(|name| Scope::of(Some(name)));
    let why = terms.reason.as_deref().map(Arc::from);
    Ok(ledger.unsuppress(Removal { phone, scope, by: person().into(), why }).await?)
}

/// Puts everybody in a file on the list, or nobody where a row of it is wrong.
///
/// The file is a list with a column of numbers; what it says in the columns of an export counts, but for what `terms` say.
///
/// # Errors
/// When the file cannot be read, with every row that is wrong; or when the ledger cannot be written.
pub async fn import(ledger: &dyn Ledger, file: &Path, terms: &OptOutTerms, now: Timestamp) -> Result<Import, Error> {
    let (path, terms) = (file.to_owned(), terms.clone());
    let opt_outs = blocking(move || read(&path, &terms, now)).await??;
    let rows = opt_outs.len() as u64;
    Ok(Import { rows, additions: ledger.suppress(opt_outs).await? })
}

/// The numbers in a file that is read like one of people who opted out.
///
/// # Errors
/// When the file cannot be read, with every row that is wrong.
pub async fn numbers_in(file: &Path, region: Option<Region>) -> Result<BTreeSet<Phone>, Error> {
    let (path, terms) = (file.to_owned(), OptOutTerms { region, ..OptOutTerms::default() });
    let listed = blocking(move || read(&path, &terms, Timestamp::UNIX_EPOCH)).await??;
    Ok(listed.into_iter().filter_map(|listed| listed.who.number()).collect())
}

fn read(file: &Path, terms: &OptOutTerms, now: Timestamp) -> Result<Vec<OptOut>, Error> {
    let refused = |finding: Box<Finding>| Error::Findings(vec![*finding]);
    let open = || {
        let opened = regular_file::open(file);
        let opened = opened.map_err(|error| Error::Input(format!("`{}` cannot be read: {error}", file.display())))?;
        decode(opened, file, &ListForm::default(), terms.region).map_err(refused)
    };
    let [phone, columns @ ..] = OPT_OUT_COLUMNS;
    let suggested = suggest(open()?, file).map_err(refused)?.phone;
    let [scope, reason, source, at, gateways] = columns;
    let headers = [suggested.as_deref().unwrap_or(phone), scope, reason, source, at, gateways];
    let name = file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned());
    let mut intake = Intake {
        terms,
        now,
        source: format!("{name}, {}", person()).into(),
        texts: BTreeMap::new(),
        opt_outs: Vec::new(),
        wrong: BTreeMap::new(),
    };
    let [has_phones, ..] =
        read_columns(open()?, file, headers, |row, cells| intake.take(row, cells)).map_err(refused)?;
    if !has_phones {
        let finding = Finding::new(&rules::NO_PHONES, format!("no column of `{}` holds phone numbers", file.display()));
        return Err(Error::Findings(vec![finding.help("the first row names the columns, such as `phone`")]));
    }
    intake.end(file)
}

/// What is read of a file.
struct Intake<'t> {
    terms: &'t OptOutTerms,
    now: Timestamp,
    /// What the file is the source of.
    source: Arc<str>,
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
                "a number without its country's code; write it with `+`, or say its country: `--region UA`".to_owned()
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
            name => Reach::from_name(name).ok_or("`gateways` is `all` or `loopback`")?,
        };
        let at = match at {
            "" => self.now,
            at => at.parse().map_err(|_| "`at` is no time such as 2026-12-01T10:00:00Z")?,
        };
        let reason = match (&self.terms.reason, unquoted(reason)) {
            (Some(reason), _) => self.text(reason),
            (None, "") => self.text("imported"),
            (None, reason) => self.text(reason),
        };
        let source = if source.is_empty() { Arc::clone(&self.source) } else { self.text(unquoted(source)) };
        Ok(OptOut { who: phone.into(), scope, reach, reason, source, at })
    }

    fn scope(&mut self, scope: &str) -> Result<Scope, String> {
        match scope.strip_prefix("campaign:") {
            Some(name) if crate::manifest::is_slug(name) => Ok(Scope::Campaign(self.text(name))),
            None if scope == "everything" => Ok(Scope::Everything),
            _ => Err("`scope` is `everything` or a campaign, such as `campaign:autumn-sale`".to_owned()),
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
