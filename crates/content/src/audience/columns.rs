//! Columns of a recipient list: header names, `columns` of the campaign, and checks of both.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use super::list_findings::mask_numbers;
use super::phone_columns;
use super::phone_columns::{PhoneColumns, PhoneTally};
use super::phones::resembles_number;
use super::reader::Chunk;
use super::records::{HeaderLine, find_quoted_lines};
use campaign_core::domain::variable::is_variable;
use campaign_core::domain::{Region, choose_plural, compose_accents, format_count, is_invisible};
use campaign_core::finding::{Finding, did_you_mean, join_alternatives, join_names, quote_for_yaml, rules};

/// The name of the phone column.
const PHONE: &str = "phone";
/// The maximum number of reported columns whose name an earlier column already has.
const MAX_REPORTED: usize = 20;

/// Settings of the campaign for its recipient list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListSettings {
    /// Pairs of a name for templates and the header of its column. Without a pair, a column is named after its header.
    pub columns: Vec<(String, String)>,
    /// The region for which national numbers are valid.
    pub region: Option<Region>,
    /// Whether the list is allowed to have no recipients.
    pub may_be_empty: bool,
}

/// The columns of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListHeader {
    headers: Vec<String>,
    names: Vec<String>,
    phones: PhoneColumns,
}

impl ListHeader {
    /// The headers from the file, trimmed. A header can be empty.
    pub fn headers(&self) -> &[String] {
        &self.headers
    }

    /// The names of the columns in templates: the name that the campaign gives, or else the header, or else a name such
    /// as `column_3`.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The index of the column with this name, or else with this header.
    pub fn find_column(&self, name: &str) -> Option<usize> {
        let find_in = |names: &[String]| names.iter().position(|known| known == name);
        find_in(&self.names).or_else(|| find_in(&self.headers))
    }

    /// The index of the preferred phone column, from 0.
    pub fn phone(&self) -> usize {
        self.phones.first()
    }

    /// All phone columns.
    pub fn phones(&self) -> &PhoneColumns {
        &self.phones
    }
}

/// The columns that templates can use: each header with its name in templates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedColumns {
    /// The headers, in the order of `names`.
    pub headers: Vec<String>,
    /// The names in templates.
    pub names: Vec<String>,
}

/// The names of the columns, and problems with them.
#[derive(Clone)]
pub(super) struct ColumnNames {
    names: Vec<String>,
    /// The columns named `phone`, in order of preference.
    phones: Vec<usize>,
    findings: Vec<Finding>,
    /// Whether the campaign names the phone column, correctly or not.
    phone_was_named: bool,
}

impl ColumnNames {
    /// The columns that templates can use. This includes columns that the campaign names but the list lacks: a finding
    /// already reports such a column, so its uses in templates are not reported again.
    pub(super) fn into_columns(self, line: &HeaderLine, settings: &ListSettings) -> NamedColumns {
        let (mut columns, mut names) = (NamedColumns::default(), HashSet::new());
        let from_list = line.headers.iter().zip(&self.names);
        let from_campaign = settings.columns.iter().map(|(name, header)| (header, name));
        for (header, name) in from_list.chain(from_campaign) {
            if names.insert(name) {
                columns.headers.push(header.clone());
                columns.names.push(name.clone());
            }
        }
        columns
    }

    /// The first column named `phone`.
    pub(super) fn phone(&self) -> Option<usize> {
        self.phones.first().copied()
    }
}

/// Determines the names of the columns in templates, and the phone columns. Also collects findings about wrong headers
/// in the campaign and about duplicate names.
pub(super) fn name_columns(line: &HeaderLine, settings: &ListSettings) -> ColumnNames {
    let headers = &line.headers;
    let mut findings = Vec::new();
    let index = HeaderIndex::new(headers);
    let mut assigned_names: Vec<Option<&str>> = vec![None; headers.len()];
    let mut phones: Vec<usize> = Vec::new();
    let mut repeated_columns = HashSet::new();
    for (name, header) in &settings.columns {
        let header = header.trim();
        match index.find(header) {
            HeaderMatch::Nothing => findings.push(unknown_header(line, name, header)),
            HeaderMatch::Several(columns) => findings.push(ambiguous_header(line, name, header, &columns)),
            HeaderMatch::Column(column) if let Some(other) = find_same_header(headers, column) => {
                if repeated_columns.insert(other) {
                    findings.push(repeated_header(line, [column, other]));
                }
            }
            HeaderMatch::Column(column) if name == PHONE && phones.contains(&column) => {
                findings.push(repeated_phone_column(line, column));
            }
            HeaderMatch::Column(column) if name == PHONE && !phones.is_empty() => phones.push(column),
            HeaderMatch::Column(column) => {
                phones.extend((name == PHONE).then_some(column));
                if let Some(other) = assigned_names[column].replace(name) {
                    findings.push(column_with_two_names(line, column, [other, name]));
                }
            }
        }
    }
    let phone_was_named = settings.columns.iter().any(|(name, _)| name == PHONE);
    if !phone_was_named && let HeaderMatch::Column(column) = index.find(PHONE) {
        assigned_names[column].get_or_insert(PHONE);
    }
    let names: Vec<String> = (0..headers.len())
        .map(|column| match assigned_names[column] {
            Some(name) => name.to_owned(),
            None if headers[column].is_empty() => format!("column_{}", column + 1),
            // The name `phone` is reserved for the preferred phone column.
            None if headers[column] == PHONE && phones.contains(&column) => format!("{PHONE}_{}", column + 1),
            None => headers[column].clone(),
        })
        .collect();
    if repeated_columns.is_empty() {
        findings.extend(duplicate_names(line, &names));
    }
    if phones.is_empty() {
        phones.extend(names.iter().position(|name| name == PHONE));
    }
    ColumnNames { names, phones, findings, phone_was_named }
}

/// Determines the columns of a list, and checks them against the first records.
///
/// # Errors
///
/// If the first row is not a header, the finding about that. Otherwise all findings about the header: unknown,
/// duplicate or missing names, and phone numbers that are in another column or that need a region.
pub(super) fn resolve_columns(
    names: ColumnNames,
    line: &HeaderLine,
    sample: &Chunk,
    region: Option<Region>,
) -> Result<ListHeader, Vec<Finding>> {
    let phone = names.phone();
    let ColumnNames { names, phones, mut findings, phone_was_named } = names;
    if let Some(column) = line.headers.iter().position(|header| resembles_number(header)) {
        return Err(vec![phone_in_header_finding(line, column)]);
    }
    if let Some(quoted) = find_quoted_lines(line, sample).filter(|_| phone.is_none()) {
        return Err(vec![quoted]);
    }
    if let Some(title) = find_title(line, sample).filter(|_| phone.is_none()) {
        return Err(vec![title]);
    }
    match phone {
        None if phone_was_named && !findings.is_empty() => {}
        None => findings.push(missing_phone_column(line, sample, region)),
        Some(phone) => {
            let has_phones = |&other: &usize| PhoneTally::for_column(sample, other, region).is_mostly_phones();
            let another_has_phones = phones.iter().skip(1).any(has_phones);
            findings.extend(check_phone_column(line, sample, phone, region).filter(|_| !another_has_phones));
        }
    }
    match PhoneColumns::from_columns(&phones, &line.headers) {
        Some(phones) if findings.is_empty() => Ok(ListHeader { headers: line.headers.clone(), names, phones }),
        _ => Err(findings),
    }
}

/// The finding about a title in the first row, if the second row looks like the header.
pub(super) fn find_title(line: &HeaderLine, sample: &Chunk) -> Option<Finding> {
    let headers = &line.headers;
    let count_filled = |cells: &mut dyn Iterator<Item = &str>| cells.filter(|cell| !cell.trim().is_empty()).count();
    let next = sample.get(0).map(|record| record.fields);
    let is_title = headers.len() > 1
        && count_filled(&mut headers.iter().map(String::as_str)) == 1
        && next.is_some_and(|cells| count_filled(&mut cells.iter()) > 1 && !cells.iter().any(resembles_number));
    let column = headers.iter().position(|header| !header.is_empty()).filter(|_| is_title)?;
    Some(title_finding(line, column))
}

/// Like [`find_title`], but for a list without a phone column: the first row has one cell, and a later row contains
/// delimiters.
pub(super) fn find_title_without_phone_column(line: &HeaderLine, sample: &Chunk) -> Option<Finding> {
    let has_delimiter = |cell: &str| [',', ';', '\t', '|'].into_iter().any(|delimiter| cell.contains(delimiter));
    let is_title = line.headers.len() == 1 && sample.iter().any(|record| record.fields.iter().any(has_delimiter));
    is_title.then(|| title_finding(line, 0))
}

fn title_finding(line: &HeaderLine, column: usize) -> Finding {
    let header = &line.headers[column];
    if mask_numbers(header) != *header {
        return phone_in_header_finding(line, column);
    }
    let message = format!("the first row contains a title, `{header}`, instead of column headers");
    let finding = Finding::new(&rules::RECIPIENTS_NO_HEADER, message).at(line.header_place(column));
    finding.help("delete the rows above the header")
}

fn phone_in_header_finding(line: &HeaderLine, column: usize) -> Finding {
    Finding::new(&rules::RECIPIENTS_NO_HEADER, "the first row contains a phone number instead of column headers")
        .at(line.header_place(column))
        .help("add a header row above it, with a name for each column, such as `phone`")
}

fn unknown_header(line: &HeaderLine, name: &str, header: &str) -> Finding {
    let message =
        format!("the campaign contains `columns: {{ {name}: {header} }}`, but the list has no column `{header}`");
    let headers: Vec<String> = line.headers.iter().map(|header| mask_numbers(header)).collect();
    let known = headers.iter().map(String::as_str).filter(|known| !known.is_empty());
    let help = match did_you_mean(header, known.clone()) {
        _ if let Some(column_header) = header_by_letters(line, header).map(mask_numbers) => format!(
            "`{header}` looks like a spreadsheet column letter; write the header instead: `{name}: {}`; the \
             list has the columns {}",
            quote_for_yaml(&column_header),
            join_names(known)
        ),
        Some(near) => {
            format!("did you mean `{near}`? Write `{name}: {}` in the campaign", quote_for_yaml(near))
        }
        None if known.clone().any(|known| known == name) && is_variable(header) => {
            format!(
                "write `{header}: {}` in the campaign: first the name that templates use, then the header in the list",
                quote_for_yaml(name)
            )
        }
        None => format!("in the campaign, use one of this list's headers: {}", join_names(known)),
    };
    Finding::new(&rules::RECIPIENTS_UNKNOWN_COLUMN, message)
        .at(line.header_excerpt().place(line.header_excerpt().full_span()))
        .help(help)
}

/// The header of the spreadsheet column with these letters, for example `B` or `AA`.
fn header_by_letters<'l>(line: &'l HeaderLine, letters: &str) -> Option<&'l str> {
    let is_letters = (1..=2).contains(&letters.len()) && letters.bytes().all(|byte| byte.is_ascii_uppercase());
    if !is_letters {
        return None;
    }
    let number = letters.bytes().fold(0, |number, letter| number * 26 + usize::from(letter - b'A') + 1);
    let header = line.headers.get(number - 1).filter(|header| !header.is_empty())?;
    Some(header)
}

fn ambiguous_header(line: &HeaderLine, name: &str, header: &str, columns: &[usize]) -> Finding {
    let headers = join_alternatives(columns.iter().map(|&column| line.headers[column].as_str()));
    let message = format!(
        "`columns` assigns `{name}` to the header `{header}`, which matches several headers in the list: {headers}"
    );
    let finding = Finding::new(&rules::RECIPIENTS_UNKNOWN_COLUMN, message).at(line.header_place(columns[0]));
    finding.help("write the header exactly as in the list")
}

/// Another column with the same non-empty header as `column`.
fn find_same_header(headers: &[String], column: usize) -> Option<usize> {
    (0..headers.len())
        .find(|other| *other != column && !headers[column].is_empty() && headers[*other] == headers[column])
}

fn repeated_header(line: &HeaderLine, columns: [usize; 2]) -> Finding {
    let [first, second] = columns;
    let message = format!("columns {} and {} both have the header `{}`", first + 1, second + 1, line.headers[first]);
    Finding::new(&rules::RECIPIENTS_DUPLICATE_COLUMN, message)
        .at(line.header_place(second))
        .help("rename one of the two columns in the file")
}

/// The finding about a phone column that `columns` lists twice.
fn repeated_phone_column(line: &HeaderLine, column: usize) -> Finding {
    let message = format!("`columns` lists `{}` twice under `{PHONE}`", line.headers[column]);
    Finding::new(&rules::RECIPIENTS_DUPLICATE_COLUMN, message)
        .at(line.header_place(column))
        .help("list each column once")
}

fn column_with_two_names(line: &HeaderLine, column: usize, names: [&str; 2]) -> Finding {
    let [first, second] = names;
    let message = format!("`columns` gives `{}` two names, `{first}` and `{second}`", line.headers[column]);
    Finding::new(&rules::RECIPIENTS_DUPLICATE_COLUMN, message)
        .at(line.header_place(column))
        .help("keep one of the names")
}

/// A finding for each column whose name an earlier column already has, at most [`MAX_REPORTED`].
fn duplicate_names(line: &HeaderLine, names: &[String]) -> Vec<Finding> {
    let mut first_columns = HashMap::with_capacity(names.len());
    let repeated = names.iter().enumerate().filter_map(|(column, name)| {
        let first = *first_columns.entry(name.as_str()).or_insert(column);
        (first != column).then_some([first, column])
    });
    let repeated: Vec<[usize; 2]> = repeated.collect();
    let reported = repeated.iter().take(MAX_REPORTED).map(|columns| duplicate_name(line, &names[columns[1]], *columns));
    let mut findings: Vec<Finding> = reported.collect();
    if let (Some(last), Some(unreported @ 1..)) = (findings.last_mut(), repeated.len().checked_sub(MAX_REPORTED)) {
        let unreported = unreported as u64;
        let columns = format_count(unreported, "more column");
        let have = choose_plural(unreported, "has", "have");
        last.message.push_str(&format!("; {columns} {have} the same name as an earlier column"));
    }
    findings
}

fn duplicate_name(line: &HeaderLine, name: &str, columns: [usize; 2]) -> Finding {
    let [first, second] = columns;
    let message = format!("columns {} and {} are both named `{name}`", first + 1, second + 1);
    let help = if line.headers[first] == line.headers[second] {
        "rename one of the two columns in the file".to_owned()
    } else {
        let other = if line.headers[first] == name { first } else { second };
        format!("give the other column a different name: `columns: {{ other_{name}: {:?} }}`", line.headers[other])
    };
    Finding::new(&rules::RECIPIENTS_DUPLICATE_COLUMN, message).at(line.header_place(second)).help(help)
}

fn missing_phone_column(line: &HeaderLine, sample: &Chunk, region: Option<Region>) -> Finding {
    let finding = Finding::new(&rules::RECIPIENTS_PHONE_COLUMN, format!("no column is named `{PHONE}`"));
    match phone_columns::find_phone_column(sample, &line.headers, region) {
        Some(found) => {
            let header = &line.headers[found.column];
            let region = found.region.map_or_else(String::new, |region| {
                format!(" and {}", describe_guess(line, sample, found.column, region))
            });
            let others = phone_columns::find_other_phone_columns(sample, line.headers.len(), found);
            let others: String = others
                .iter()
                .map(|other| format!("; `{}` also contains phone numbers", line.headers[*other]))
                .collect();
            finding.at(line.header_place(found.column)).help(format!(
                "write `columns: {{ {PHONE}: {} }}`{region} under `recipients`; `{header}` contains phone \
                    numbers{others}",
                quote_for_yaml(header)
            ))
        }
        None => finding.at(line.header_excerpt().place(line.header_excerpt().full_span())).help(format!(
            "write `columns: {{ {PHONE}: \"…\" }}` under `recipients`, with the header of the phone column"
        )),
    }
}

/// The line to write for the guessed region of the numbers in a column.
fn describe_guess(line: &HeaderLine, sample: &Chunk, column: usize, region: Region) -> String {
    let is_certain = phone_columns::find_other_regions(sample, &line.headers, column, region).is_empty();
    format!("`region: {region}`{}", if is_certain { "" } else { " (or the code of another country)" })
}

/// The finding about a phone column with too few phone numbers, if a region or another column can be suggested.
fn check_phone_column(line: &HeaderLine, sample: &Chunk, phone: usize, region: Option<Region>) -> Option<Finding> {
    let tally = PhoneTally::for_column(sample, phone, region);
    if tally.filled == 0 || tally.is_mostly_phones() {
        return None;
    }
    let header = &line.headers[phone];
    let message = match tally.valid {
        0 if tally.filled == 1 => format!("the first cell in `{header}` does not contain a phone number"),
        0 => format!("none of the first {} cells in `{header}` contains a phone number", tally.filled),
        1 => format!("only 1 of the first {} cells in `{header}` contains a phone number", tally.filled),
        valid => format!("only {valid} of the first {} cells in `{header}` contain phone numbers", tally.filled),
    };
    let finding = Finding::new(&rules::RECIPIENTS_PHONE_COLUMN, message).at(line.header_place(phone));
    if region.is_none()
        && tally.valid == 0
        && let Some(home) = phone_columns::guess_region(sample, &line.headers, phone)
    {
        let region = describe_guess(line, sample, phone, home);
        return Some(finding.help(format!(
            "write {region} under `recipients`, or add `+` and the country code to the numbers in the file; they have \
                no country code"
        )));
    }
    let found =
        phone_columns::find_phone_column(sample, &line.headers, region).filter(|found| found.column != phone)?;
    let other = &line.headers[found.column];
    Some(finding.help(format!(
        "write `columns: {{ {PHONE}: {} }}` under `recipients`; `{other}` contains phone numbers",
        quote_for_yaml(other)
    )))
}

/// An index of the headers of a list that tolerates different spellings.
pub(super) struct HeaderIndex<'h> {
    exact: HashMap<&'h str, usize>,
    headers: &'h [String],
    /// The columns by normalized header. Built on first use.
    normalized: OnceCell<HashMap<String, Vec<usize>>>,
}

/// The result of a header lookup.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeaderMatch {
    Column(usize),
    /// Several columns match, but not exactly.
    Several(Vec<usize>),
    Nothing,
}

impl<'h> HeaderIndex<'h> {
    pub(super) fn new(headers: &'h [String]) -> Self {
        let mut exact = HashMap::with_capacity(headers.len());
        for (column, header) in headers.iter().enumerate() {
            exact.entry(header.as_str()).or_insert(column);
        }
        Self { exact, headers, normalized: OnceCell::new() }
    }

    /// The first column with exactly this header, or else the columns that match after normalization.
    pub(super) fn find(&self, header: &str) -> HeaderMatch {
        if let Some(&column) = self.exact.get(header.trim()) {
            return HeaderMatch::Column(column);
        }
        let normalized = self.normalized.get_or_init(|| {
            let mut columns: HashMap<String, Vec<usize>> = HashMap::with_capacity(self.headers.len());
            for (column, header) in self.headers.iter().enumerate().filter(|(_, header)| !header.is_empty()) {
                columns.entry(normalize_header(header)).or_default().push(column);
            }
            columns
        });
        match normalized.get(&normalize_header(header)).map(Vec::as_slice) {
            None => HeaderMatch::Nothing,
            Some([column]) => HeaderMatch::Column(*column),
            Some(several) => HeaderMatch::Several(several.to_vec()),
        }
    }
}

/// Normalizes the case, white space, apostrophes and accents of a header, and removes invisible characters.
fn normalize_header(header: &str) -> String {
    let header = compose_accents(header);
    let plain = header.chars().filter(|character| !is_invisible(*character)).map(|character| match character {
        '\u{2019}' | '\u{2018}' | '\u{2bc}' | '`' | '\u{b4}' => '\'',
        other => other,
    });
    let plain: String = plain.collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_matches_regardless_of_letter_case_and_spacing() {
        let headers =
            ["Phone", "Ім’я  клієнта", "NAME", "Name", "city", "City", "", "Pre\u{301}nom"].map(str::to_owned);
        let headers = HeaderIndex::new(&headers);
        for (header, expected) in [
            ("Phone", HeaderMatch::Column(0)),
            ("phone", HeaderMatch::Column(0)),
            (" \u{a0}PHONE\u{200b} ", HeaderMatch::Column(0)),
            ("ім'я\u{a0}клієнта", HeaderMatch::Column(1)),
            ("Name", HeaderMatch::Column(3)),
            ("name", HeaderMatch::Several(vec![2, 3])),
            ("city", HeaderMatch::Column(4)),
            ("street", HeaderMatch::Nothing),
            ("pr\u{e9}nom", HeaderMatch::Column(7)),
        ] {
            assert_eq!(headers.find(header), expected, "{header:?}");
        }
    }
}
