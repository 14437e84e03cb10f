//! Rules about cell values in messages, from the list or a lookup table: placeholders, database formats, apostrophes,
//! lists, and missing values.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::skipped_rows::describe_first;
use super::{collect_texts, damaged_text, expressions, links, read_included_texts, wording};
use crate::check::compiled_campaign::to_finding;
use crate::check::row_anomalies::find_cell_anomaly;
use crate::check::{AnomalyRows, DateComparison, EmptyCells, RowAnomaly, Survey};
use campaign_content::message::{LookupTable, problem_at};
use campaign_core::define_rules;
use campaign_core::domain::variable::is_variable;
use campaign_core::domain::{NamedTemplate, format_count};
use campaign_core::finding::{Finding, join_names};
use campaign_manifest::{Campaign, SourceMap};

define_rules! {
    TEXTS:
    warning LOOP_OVER_TEXT = "loop-over-text" {
        cause: "A loop splits a cell into individual characters. Cells are always text, even if they look like a list.",
        example: [
            "message: \"{% for item in code %}{{ item }} {% endfor %}\"",
            "list.csv: phone,code",
            "          380501234567,\"bread,milk\"",
        ],
        fix: "split the cell: `{% for item in code | split(pat=\",\") %}`",
    }
}

define_rules! {
    RECIPIENTS:
    warning PLACEHOLDER_VALUE = "placeholder-value" {
        cause: "A cell contains a word for “no value”. Recipients would read “Hello, None!”.",
        example: [
            "message: \"Hello, {{ first_name }}!\"",
            "list.csv: phone,first_name",
            "          380501234567,None",
        ],
        fix: "clear these cells, and set a default: `{{ first_name | default(value=\"friend\", boolean=true) }}`",
    }
    warning LEADING_APOSTROPHE = "leading-apostrophe" {
        cause: "A cell starts with an apostrophe. Spreadsheets hide the apostrophe, but recipients would see it.",
        example: ["message: \"Your code: {{ code }}\"", "list.csv: phone,code", "          380501234567,'00123"],
        fix: "remove the apostrophes from the column, or export the list again without them",
    }
    warning DATABASE_VALUE = "database-value" {
        cause: "A value is in a database format. Recipients would read `2031-12-05 00:00:00` or `1250.000000`.",
        example: [
            "message: \"Pay by {{ code }}\"",
            "list.csv: phone,code",
            "          380501234567,2031-12-05 00:00:00",
        ],
        fix: "use a filter, for example `{{ due | date }}` or `{{ sum | money }}`, or export the list in a readable \
              format",
    }
    pub(super) warning EMPTY_CELL = "empty-cell" {
        cause: "A cell that the message uses is empty. The message has a gap: “Hello, !”.",
        example: ["message: \"Hello, {{ first_name }}!\"", "list.csv: phone,first_name", "          380501234567,"],
        fix: "fill in the cell, or set a default: `{{ first_name | default(value=\"friend\", boolean=true) }}`",
    }
    warning EMPTY_GREETING = "empty-greeting" {
        cause: "A missing value leaves a gap in a message. The message reads “Hello , …” or starts with a comma.",
        example: [
            "message: \"Hello {% if first_name %}{{ first_name }}{% endif %}, -20% today!\"",
            "list.csv: phone,first_name",
            "          380501234567,",
        ],
        fix: "move the comma and the space into the condition: `Hello{% if first_name %}, {{ first_name }}{% endif \
              %}!`",
    }
}

/// Findings about anomalies in cells and messages, one per column and kind, each with a row count and the first row.
pub fn check_row_anomalies(survey: &Survey) -> Vec<Finding> {
    let find_column = |index: usize| survey.columns.iter().find(|column| column.index == index);
    let header = |index| find_column(index).map_or("", |column| column.header.as_str());
    let name = |index| find_column(index).map_or("", |column| column.name.as_str());
    let create_finding = |(&(column, anomaly), AnomalyRows { example, rows }): (&(usize, RowAnomaly), &AnomalyRows)| {
        let (header, place) = (header(column), describe_first(rows));
        match anomaly {
            RowAnomaly::EmptyMarker(_) => Some(report_placeholder_value(header, example, &place)),
            RowAnomaly::Damaged(damage) => Some(damaged_text::report_damaged_text(damage, header, example, &place)),
            RowAnomaly::DatabaseFormat(value) => Some(report_database_value(value, name(column), example, &place)),
            RowAnomaly::BreaksLink => Some(links::report_cell_in_link(name(column), example, &place)),
            RowAnomaly::MixedAlphabets => Some(wording::report_mixed_alphabets(header, example, &place)),
            RowAnomaly::Apostrophe => Some(report_leading_apostrophe(header, example, &place)),
            RowAnomaly::InsecureLink => Some(links::report_insecure_link(header, &place)),
            RowAnomaly::EmptyGreeting => report_empty_greeting(rows),
            RowAnomaly::TakenForTrue => Some(expressions::report_truthy_cells(name(column), example, &place)),
            RowAnomaly::LoopedList => Some(report_loop_over_text(name(column), example, &place)),
            RowAnomaly::NearMatch(index) => {
                let (_, comparison) = survey.unmatched_comparisons.iter().find(|(unmatched, _)| *unmatched == index)?;
                Some(expressions::report_near_match(&comparison.name, &comparison.text, example, &place))
            }
            RowAnomaly::UnlikeDate(index) => {
                let DateComparison { name, corrected, .. } = survey.date_comparisons.get(index)?;
                Some(expressions::report_unlike_dates(name, corrected, example, &place))
            }
        }
    };
    survey.anomalies.iter().filter_map(create_finding).collect()
}

/// A finding about placeholder values in a column, which recipients would see.
pub(super) fn report_placeholder_value(column: &str, value: &str, rows: &str) -> Finding {
    let message = format!("the column `{column}` contains `{value}` in {rows}, and recipients would see this value");
    let help = if value.starts_with('#') {
        "correct the formula in the spreadsheet, and export the list again".to_owned()
    } else if value.contains(['{', '}', '%']) {
        "replace the placeholders with values: cells are sent as they are".to_owned()
    } else {
        "clear these cells, and set a default in the message: `{{ NAME | default(value='…', boolean=true) }}`"
            .to_owned()
    };
    Finding::new(&PLACEHOLDER_VALUE, message).help(help)
}

/// A finding about cells of a column that begin with an apostrophe.
pub(super) fn report_leading_apostrophe(column: &str, example: &str, rows: &str) -> Finding {
    let message =
        format!("in {rows}, the column `{column}` contains a value that starts with an apostrophe: `{example}`");
    Finding::new(&LEADING_APOSTROPHE, message).help("remove the apostrophes from the column, or they will be sent")
}

/// Whether a cell is a number or a code after an apostrophe. A short year or decade, such as `'90` or `'90s`, is not a
/// code.
pub(in crate::check) fn is_code_after_apostrophe(cell: &str) -> bool {
    let Some(code) = cell.strip_prefix('\'') else { return false };
    let is_code = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase() || b"+-./= ".contains(&byte);
    let begins = code.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '='));
    begins && code.len() > 2 && code.bytes().all(is_code) && code.bytes().any(|byte| byte.is_ascii_digit())
}

/// The format in which a database exports a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DatabaseValue {
    /// A date with the time 00:00:00.
    DateAtMidnight,
    /// A number with at least four decimals, which are all zeros after the second.
    PaddedNumber,
}

/// The kind of database value that a cell contains, if any.
pub(in crate::check) fn find_database_value(cell: &str) -> Option<DatabaseValue> {
    /// The length of `2031-12-05T00:00:00.000000+00:00`.
    const LONGEST: usize = 32;
    if cell.len() > LONGEST || !cell.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return None;
    }
    if is_date_at_midnight(cell) {
        return Some(DatabaseValue::DateAtMidnight);
    }
    let (integer, decimals) = cell.split_once('.')?;
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_padded = decimals.len() >= 4 && is_number(decimals) && decimals[2..].bytes().all(|byte| byte == b'0');
    (is_padded && is_number(integer.strip_prefix('-').unwrap_or(integer))).then_some(DatabaseValue::PaddedNumber)
}

fn is_date_at_midnight(cell: &str) -> bool {
    let Some((day, time)) = cell.split_once([' ', 'T']) else { return false };
    let is_day = day.len() == "2031-12-05".len()
        && day
            .bytes()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() });
    // Excel writes the hour of midnight with one digit.
    let Some(rest) = time.strip_prefix("00:00:00").or_else(|| time.strip_prefix("0:00:00")) else { return false };
    let rest = rest.strip_prefix('.').map_or(rest, |rest| rest.trim_start_matches('0'));
    is_day && matches!(rest, "" | "Z" | "+00" | "+00:00" | "+0000" | " UTC")
}

/// A finding about cells that contain values in a database format; `name` is the column's name in templates.
pub(super) fn report_database_value(value: DatabaseValue, name: &str, example: &str, rows: &str) -> Finding {
    let cell = if is_variable(name) { name.to_owned() } else { format!("recipient[{name:?}]") };
    let message = format!("in {rows}, the column `{name}` contains a value in a database format: `{example}`");
    let help = match value {
        DatabaseValue::DateAtMidnight => format!(
            "write `{{{{ {cell} | date }}}}` for a date with the month name, or `{{{{ {cell} | date(format=\"%d.%m.%Y\") }}}}` \
             for a numeric date"
        ),
        DatabaseValue::PaddedNumber => {
            format!("write `{{{{ {cell} | money }}}}` for an amount, or shorten these numbers in the list")
        }
    };
    Finding::new(&DATABASE_VALUE, message).help(help)
}

/// Findings about empty cells in messages, one per column and text, each with a row count and the first row.
pub fn check_empty_cells(survey: &Survey, places: &SourceMap) -> Vec<Finding> {
    let create_finding = |EmptyCells { place, messages, rows }: &EmptyCells| {
        let name = &place.name;
        let keys: Vec<String> = messages.iter().map(|(channel, key)| format!("{channel}.{key}")).collect();
        let keys = join_names(keys.iter().map(String::as_str));
        let message = format!("`{name}` is empty in {}, which leaves a gap in {keys}", describe_first(rows));
        let help =
            format!("fill in the cells, or set a default: `{{{{ {name} | default(value='…', boolean=true) }}}}`");
        to_finding(problem_at(&place.text, place.span.clone(), &EMPTY_CELL, message, &help), Some(places))
    };
    survey.empty.iter().map(create_finding).collect()
}

/// A finding about rows whose message has a gap before punctuation, as in `Hello , …`.
pub(super) fn report_empty_greeting(rows: &RoaringBitmap) -> Option<Finding> {
    let rows = Some(rows).filter(|rows| !rows.is_empty())?;
    let message = format!("the message has a gap in {}, as in `Hello , …`", describe_first(rows));
    let help = "move the comma and the space into the condition: `Hello{% if name %}, {{ name }}{% endif %}!`";
    Some(Finding::new(&EMPTY_GREETING, message).help(help))
}

/// A finding about a single message that has a gap before punctuation, as in `Hello , …`.
pub(super) fn report_empty_greeting_in_message() -> Finding {
    let help = "fill in the value, or remove the comma and the space";
    Finding::new(&EMPTY_GREETING, "the message has a gap, as in `Hello , …`").help(help)
}

/// Whether a message has a gap before punctuation: it begins with a punctuation mark, or has a single comma,
/// exclamation mark or semicolon after a space. A full stop after a space counts only at the end.
pub(in crate::check) fn has_empty_greeting(message: &str) -> bool {
    let bytes = message.as_bytes();
    if matches!(bytes.first(), Some(b',' | b'!' | b'.' | b';' | b':')) {
        return true;
    }
    bytes
        .windows(3)
        .any(|window| window[0] == b' ' && matches!(window[1], b',' | b'!' | b';') && !window[2].is_ascii_punctuation())
        || matches!(bytes, [.., b' ', b',' | b'!' | b'.' | b';'])
}

/// A finding about a loop over cells that contain a list as text; `example` is the separator in this list.
pub(super) fn report_loop_over_text(name: &str, example: &str, rows: &str) -> Finding {
    let message = format!(
        "in {rows}, the loop over `{name}` splits the cell into individual characters, although the cell looks like \
         a list"
    );
    Finding::new(&LOOP_OVER_TEXT, message).help(format!("write `{name} | split(pat=\"{example}\")` in the loop"))
}

/// Findings about the cells of a lookup table, one per column and kind, in the columns that the campaign's texts and
/// their included texts name.
pub fn check_lookup_table(campaign: &Campaign, name: &str, table: &LookupTable) -> Vec<Finding> {
    let mut texts = collect_texts(campaign);
    let mut load = |name: &str| campaign.folders.read_text(name).ok().map(|(_, text)| text);
    texts.extend(read_included_texts(texts.iter(), &mut load).into_iter().flatten());
    let uses = |text: &&NamedTemplate, header: &str| text.source.contains(name) && text.source.contains(header);
    let mut findings = Vec::new();
    for (column, header) in table.columns.iter().enumerate() {
        let users: Vec<&NamedTemplate> = texts.iter().filter(|text| !header.is_empty() && uses(text, header)).collect();
        if users.is_empty() {
            continue;
        }
        let cells = || table.rows.values().filter_map(|cells| cells.get(column)).map(|cell| cell.trim());
        let place = |rows: u64| format!("{} of the table `{name}`", format_count(rows, "row"));
        let empty = cells().filter(|cell| cell.is_empty()).count() as u64;
        if empty > 0 && users.iter().any(|text| leaves_gap(&text.source, name, header)) {
            findings.push(report_empty_cells(name, header, &place(empty)));
        }
        let mut anomalies: BTreeMap<RowAnomaly, (&str, u64)> = BTreeMap::new();
        for (anomaly, example) in cells().filter_map(find_cell_anomaly) {
            anomalies.entry(anomaly).or_insert((example, 0)).1 += 1;
        }
        findings.extend(anomalies.into_iter().filter_map(|(anomaly, (example, rows))| {
            let place = place(rows);
            Some(match anomaly {
                RowAnomaly::EmptyMarker(_) => report_placeholder_value(header, example, &place),
                RowAnomaly::Damaged(damage) => damaged_text::report_damaged_text(damage, header, example, &place),
                RowAnomaly::MixedAlphabets => wording::report_mixed_alphabets(header, example, &place),
                RowAnomaly::Apostrophe => report_leading_apostrophe(header, example, &place),
                RowAnomaly::InsecureLink => links::report_insecure_link(header, &place),
                _ => return None,
            })
        }));
    }
    let key = campaign.places.locate_key(&format!("data.{name}"));
    findings.into_iter().map(|finding| finding.at(key.clone())).collect()
}

/// Whether a text shows an empty cell as a gap: it prints the cell without a default, and no condition tests the cell.
fn leaves_gap(source: &str, table: &str, header: &str) -> bool {
    let tags = |open: &'static str, close: &'static str| {
        source.split(open).skip(1).filter_map(move |rest| rest.split_once(close)).map(|(tag, _)| tag)
    };
    let is_tested = tags("{%", "%}").any(|tag| tag.contains(header));
    !is_tested && tags("{{", "}}").any(|tag| tag.contains(table) && tag.contains(header) && !tag.contains("default"))
}

fn report_empty_cells(table: &str, header: &str, rows: &str) -> Finding {
    let message = format!("the column `{header}` is empty in {rows}, which leaves a gap in messages");
    Finding::new(&EMPTY_CELL, message).help(format!(
        "fill in the cells, or set a default: `{{{{ {table}[COLUMN].{header} | default(value='…', boolean=true) }}}}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinguished_from_words_and_years() {
        for cell in ["'00123", "'0007", "'+380501234567", "'=1+1", "'-12", "'1/2", "'12-AB"] {
            assert!(is_code_after_apostrophe(cell), "{cell}");
        }
        for cell in
            ["", "'", "'90", "'90s", "'1990s", "'n'", "'tis", "00123", "O'Neil", "''00123", "'00123'", "'Акція 20"]
        {
            assert!(!is_code_after_apostrophe(cell), "{cell}");
        }
    }

    #[test]
    fn database_values_are_distinguished_from_typed_values() {
        for cell in [
            "2031-12-05 00:00:00",
            "2031-12-05T00:00:00",
            "2031-12-05 0:00:00",
            "2031-12-05 00:00:00.000",
            "2031-12-05T00:00:00Z",
            "2031-12-05 00:00:00.000000+00:00",
        ] {
            assert_eq!(find_database_value(cell), Some(DatabaseValue::DateAtMidnight), "{cell}");
        }
        for cell in ["1250.000000", "90.500000", "-3.1000", "0.0000"] {
            assert_eq!(find_database_value(cell), Some(DatabaseValue::PaddedNumber), "{cell}");
        }
        for cell in [
            "",
            "-",
            "2031-12-05",
            "2031-12-05 14:30:00",
            "05.12.2031 00:00:00",
            "00:00:00",
            "1250.00",
            "1.250",
            "50.4501",
            "3.14159",
            "1.2.0000",
            "10.0.0.0",
            "NEW-1.0000",
            "1250.0000 UAH",
            ".0000",
            "1250,000000",
        ] {
            assert_eq!(find_database_value(cell), None, "{cell}");
        }
    }

    #[test]
    fn help_names_the_filter_and_the_column() {
        let help = |value, name| report_database_value(value, name, "x", "row 2").help.unwrap();
        assert!(help(DatabaseValue::DateAtMidnight, "due").contains("`{{ due | date }}`"));
        assert!(help(DatabaseValue::PaddedNumber, "To pay").contains("`{{ recipient[\"To pay\"] | money }}`"));
    }

    #[test]
    fn punctuation_after_an_empty_name_is_found() {
        for text in ["Hello , your code", ", -20% today", "Hi !", "! Sale", "Dear ; x", "Вітаємо , знижки"]
        {
            assert!(has_empty_greeting(text), "{text}");
        }
        for text in ["Hello, you", "Hi! -20%", "…", "3 : 4", "wow !!", "a .b", ""] {
            assert!(!has_empty_greeting(text), "{text}");
        }
    }
}

#[cfg(test)]
mod lookup_table_tests {
    use super::*;

    #[test]
    fn default_or_condition_closes_a_gap() {
        for (source, expected) in [
            ("At {{ stores[city].address }}!", true),
            ("At {{ stores[city].address | upper }}!", true),
            ("At {{ stores[city].address | default(value='us', boolean=true) }}!", false),
            ("{% if stores[city].address %}At {{ stores[city].address }}{% endif %}!", false),
            ("At {{ stores[city].hours }}!", false),
        ] {
            assert_eq!(leaves_gap(source, "stores", "address"), expected, "{source}");
        }
    }
}
