//! Anomalies in single messages: placeholder cells, mistyped words, and conditions that do not mean what they say.
//!
//! Each row is examined once. Everything that all rows have in common is prepared before, so ordinary rows cost little.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use roaring::RoaringBitmap;

use super::compiled_campaign::Recipe;
use super::rules::{
    DatabaseValue, breaks_link, find_database_value, find_mixed_word, has_empty_greeting, is_code_behind_apostrophe,
    is_insecure_link, may_break_link,
};
use super::text_damage::{TextDamage, find_damage};
use campaign_content::audience::{RecordFields, trim_cell};
use campaign_content::message::{ConditionKind, FilledMessage, find_condition_checks, find_looped_names};
use campaign_core::domain::{NamedTemplate, Row};

/// Placeholders that programs write for missing values.
const EMPTY_MARKERS: [&str; 39] = [
    "None",
    "none",
    "NONE",
    "nan",
    "NaN",
    "NAN",
    "null",
    "Null",
    "NULL",
    "undefined",
    "Undefined",
    "N/A",
    "n/a",
    "<NA>",
    "NaT",
    "(null)",
    "(none)",
    "[null]",
    "\\N",
    "#N/A",
    "#REF!",
    "#VALUE!",
    "#NAME?",
    "#DIV/0!",
    "#NULL!",
    "#NUM!",
    "#Н/Д",
    "#ССЫЛКА!",
    "#ЗНАЧ!",
    "#ИМЯ?",
    "#ДЕЛ/0!",
    "#ПОСИЛАННЯ!",
    "#ЗНАЧ!",
    "-",
    "--",
    "–",
    "—",
    "?",
    "[object Object]",
];
/// Lower-case words that mean no, but count as true in a condition.
const NEGATIVE_WORDS: [&str; 10] = ["false", "no", "0", "n", "off", "ні", "нет", "nein", "non", "хибність"];
/// The maximum length of both.
const MAX_WORD_BYTES: usize = 24;

/// An anomaly of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowAnomaly {
    /// Its message contains this placeholder for a missing value.
    EmptyMarker(&'static str),
    /// A word of its cell mixes alphabets.
    MixedAlphabets,
    /// A program damaged its cell.
    Damaged(TextDamage),
    /// Its message shows a date or an amount in database format.
    DatabaseFormat(DatabaseValue),
    /// Its cell breaks a link in its message.
    BreaksLink,
    /// Its cell is a link without `https://`.
    InsecureLink,
    /// Its cell is a code after an apostrophe.
    Apostrophe,
    /// Its message shows that a value is missing.
    EmptyGreeting,
    /// Its cell means no, but a condition takes it for true.
    TakenForTrue,
    /// Its cell contains a list, but a loop goes over its letters.
    LoopedList,
    /// Its cell nearly equals the text of the comparison with this index.
    NearMatch(usize),
}

/// Rows with the same anomaly in a column.
#[derive(Clone, Debug, Default)]
pub struct AnomalyRows {
    /// The cell of the first row, or the affected word.
    pub example: String,
    /// The rows.
    pub rows: RoaringBitmap,
}

/// The anomalous rows by column and anomaly.
pub type AnomalyRowsByColumn = BTreeMap<(usize, RowAnomaly), AnomalyRows>;

/// A condition that compares a column with a text.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The column.
    pub column: usize,
    /// Its name in templates.
    pub name: String,
    /// The text.
    pub text: String,
}

/// Finds anomalies in the rows of a campaign.
pub(super) struct AnomalyDetector {
    /// The columns that texts use, except the phone columns.
    columns: Vec<usize>,
    /// Columns that a condition uses as true or false.
    truth_tested: Vec<usize>,
    /// Columns that a loop uses unchanged.
    looped: Vec<usize>,
    /// Whether a text has a link.
    has_link: bool,
    comparisons: Vec<Comparison>,
    /// The comparisons that matched a row.
    matched: Vec<AtomicBool>,
}

/// An anomaly in a row: column, kind and example.
pub(super) type FoundAnomaly = (usize, RowAnomaly, Box<str>);

impl AnomalyDetector {
    /// A detector for a campaign with these texts.
    pub(super) fn for_texts<'t>(recipe: &Recipe, texts: impl Iterator<Item = &'t NamedTemplate>) -> Self {
        let (mut whether, mut comparisons) = (Vec::new(), Vec::new());
        let texts: Vec<&NamedTemplate> = texts.collect();
        let has_link = texts.iter().any(|text| text.source.contains("://"));
        let looped = texts.iter().flat_map(|text| find_looped_names(text));
        let looped: BTreeSet<usize> = looped.filter_map(|(name, _)| recipe.find_column(&name)).collect();
        for check in texts.into_iter().flat_map(find_condition_checks) {
            let Some(column) = recipe.find_column(&check.name) else { continue };
            match check.kind {
                ConditionKind::IsTruthy if !whether.contains(&column) => whether.push(column),
                ConditionKind::IsText(text) => comparisons.push(Comparison { column, name: check.name, text }),
                ConditionKind::IsTruthy | ConditionKind::IsBool(_) | ConditionKind::IsNumber(_) => {}
            }
        }
        let columns = recipe.text_columns().into_iter().filter(|column| !recipe.phones.contains(*column)).collect();
        let passed = comparisons.iter().map(|_| AtomicBool::new(false)).collect();
        Self {
            columns,
            truth_tested: whether,
            looped: looped.into_iter().collect(),
            has_link,
            comparisons,
            matched: passed,
        }
    }

    /// The anomalies of a row with a message; `shows_empty` is whether the message uses an empty cell.
    pub(super) fn find_anomalies(
        &self,
        fields: RecordFields<'_>,
        message: FilledMessage<'_>,
        shows_empty: bool,
    ) -> Vec<FoundAnomaly> {
        let (mut odd, mut empty) = (Vec::new(), false);
        for &column in &self.columns {
            let cell = trim_cell(fields.get(column));
            empty |= cell.is_empty();
            let found = find_cell_anomaly(cell).filter(|(oddity, word)| match oddity {
                RowAnomaly::Damaged(_) => message.texts().any(|(_, text)| text.contains(word)),
                _ => is_in_message(message, word),
            });
            odd.extend(found.map(|(oddity, word)| (column, oddity, word.into())));
            if let Some(value) = find_database_value(cell).filter(|_| is_in_message(message, cell)) {
                odd.push((column, RowAnomaly::DatabaseFormat(value), cell.into()));
            }
            if self.has_link && may_break_link(cell) && message.texts().any(|(_, text)| breaks_link(text, cell)) {
                odd.push((column, RowAnomaly::BreaksLink, cell.into()));
            }
        }
        for &column in &self.truth_tested {
            let cell = fields.get(column).trim();
            if cell.len() <= MAX_WORD_BYTES && NEGATIVE_WORDS.contains(&cell.to_lowercase().as_str()) {
                odd.push((column, RowAnomaly::TakenForTrue, cell.into()));
            }
        }
        for &column in &self.looped {
            let cell = fields.get(column);
            if let Some(at) = cell.find([',', ';', '|']) {
                odd.push((column, RowAnomaly::LoopedList, cell[at..=at].into()));
            }
        }
        for (index, comparison) in self.comparisons.iter().enumerate() {
            let cell = fields.get(comparison.column).trim();
            if cell == comparison.text {
                if !self.matched[index].load(Ordering::Relaxed) {
                    self.matched[index].store(true, Ordering::Relaxed);
                }
            } else if cell.len() <= comparison.text.len() * 2 + MAX_WORD_BYTES && is_near_match(cell, &comparison.text)
            {
                odd.push((comparison.column, RowAnomaly::NearMatch(index), cell.into()));
            }
        }
        // The use of an empty cell has a separate finding.
        if empty && !shows_empty && message_texts(message).any(has_empty_greeting) {
            odd.push((0, RowAnomaly::EmptyGreeting, Box::default()));
        }
        odd
    }

    /// The comparisons that matched no row, with their index.
    pub(super) fn into_unmatched(self) -> Vec<(usize, Comparison)> {
        let Self { comparisons, matched: passed, .. } = self;
        let each = comparisons.into_iter().zip(passed).enumerate();
        each.filter(|(_, (_, passed))| !passed.load(Ordering::Relaxed))
            .map(|(index, (comparison, _))| (index, comparison))
            .collect()
    }
}

/// The anomaly of a cell, and the affected word.
fn find_cell_anomaly(cell: &str) -> Option<(RowAnomaly, &str)> {
    let (mut foreign, mut brace) = (0, false);
    for &byte in cell.as_bytes() {
        foreign |= byte & 0x80;
        brace |= byte == b'{';
    }
    if matches!(
        cell.as_bytes().first(),
        Some(b'N' | b'n' | b'u' | b'U' | b'#' | b'(' | b'<' | b'[' | b'\\' | b'-' | b'?' | 0xe2)
    ) && let Some(nothing) = EMPTY_MARKERS.into_iter().find(|nothing| *nothing == cell)
    {
        return Some((RowAnomaly::EmptyMarker(nothing), cell));
    }
    if brace && (cell.contains("{{") || cell.contains("{%")) {
        return Some((RowAnomaly::EmptyMarker("{{"), cell));
    }
    if matches!(cell.as_bytes().first(), Some(b'h' | b'H' | b'w' | b'W')) && is_insecure_link(cell) {
        return Some((RowAnomaly::InsecureLink, cell));
    }
    if is_code_behind_apostrophe(cell) {
        return Some((RowAnomaly::Apostrophe, cell));
    }
    if let Some((damage, word)) = find_damage(cell) {
        return Some((RowAnomaly::Damaged(damage), &cell[word]));
    }
    if foreign != 0 {
        return find_mixed_word(cell).map(|word| (RowAnomaly::MixedAlphabets, &cell[word]));
    }
    None
}

/// Whether the message contains a word of a cell as a separate word. A dash counts only before punctuation.
fn is_in_message(message: FilledMessage<'_>, word: &str) -> bool {
    let sign = !word.contains(char::is_alphanumeric);
    let ends = |rest: &str| match rest.chars().next() {
        Some(next) if sign => matches!(next, ',' | '!' | '.' | ';'),
        Some(next) => !next.is_alphanumeric(),
        None => true,
    };
    let begins = |before: &str| !before.ends_with(char::is_alphanumeric);
    let stands =
        |text: &str| text.match_indices(word).any(|(at, _)| begins(&text[..at]) && ends(&text[at + word.len()..]));
    message.texts().any(|(_, text)| stands(text))
}

/// The message texts of the channels.
fn message_texts(message: FilledMessage<'_>) -> impl Iterator<Item = &str> {
    message.texts().filter(|(field, _)| field.key == "message").map(|(_, text)| text)
}

/// Whether two texts differ only in case and surrounding spaces.
fn is_near_match(cell: &str, text: &str) -> bool {
    let (cell, text) = (cell.trim(), text.trim());
    !cell.is_empty()
        && (cell.eq_ignore_ascii_case(text) || !cell.is_ascii() && cell.to_lowercase() == text.to_lowercase())
}

/// Adds the anomalies of a row.
pub(super) fn add_anomalies(rows: &mut AnomalyRowsByColumn, row: Row, odd: Vec<FoundAnomaly>) {
    for (column, oddity, example) in odd {
        let alike = rows.entry((column, oddity)).or_default();
        if alike.rows.is_empty() {
            alike.example = example.into();
        }
        alike.rows.insert(row.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_markers_are_distinguished_from_values() {
        let found = |cell: &'static str| find_cell_anomaly(cell);
        for nothing in EMPTY_MARKERS {
            assert_eq!(found(nothing), Some((RowAnomaly::EmptyMarker(nothing), nothing)));
        }
        assert_eq!(found("{{ first_name }}"), Some((RowAnomaly::EmptyMarker("{{"), "{{ first_name }}")));
        assert_eq!(found("http://a.example"), Some((RowAnomaly::InsecureLink, "http://a.example")));
        assert_eq!(found("Олeна"), Some((RowAnomaly::MixedAlphabets, "Олeна")));
        for value in ["Nan", "Noné", "Nullam", "0", "-5", "https://a.example", "Олена", "hello", "#1", "{x}", "What?"]
        {
            assert_eq!(found(value), None, "{value}");
        }
    }

    #[test]
    fn near_matches_differ_in_case_and_spaces_only() {
        assert!(is_near_match("TRUE", "true") && is_near_match(" gold", "gold") && is_near_match("КИЇВ", "Київ"));
        assert!(!is_near_match("", "") && !is_near_match("golden", "gold"));
    }
}
