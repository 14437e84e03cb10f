//! What a person would wonder at in single messages: cells that say nothing, slips in them, and conditions that mean something else.
//!
//! Each row is looked at once, and what is the same for all rows is known before, so it costs little where nothing is odd.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use roaring::RoaringBitmap;

use super::broken_text::{TextDamage, find_damage};
use super::recipe::Recipe;
use super::rules::{
    DatabaseValue, breaks_link, find_database_value, has_hole, is_code_behind_apostrophe, is_insecure_link,
    may_break_link, slipped_word,
};
use crate::audience::RecordFields;
use crate::domain::{NamedTemplate, Row};
use crate::message::{ConditionKind, FilledMessage, find_condition_checks, find_looped_names};

/// What programs write where they have nothing, as it stands in cells.
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
/// Words that mean no, and are true in a condition all the same; in small letters.
const NEGATIVE_WORDS: [&str; 10] = ["false", "no", "0", "n", "off", "ні", "нет", "nein", "non", "хибність"];
/// The longest of both.
const MAX_WORD_BYTES: usize = 24;

/// What is odd of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowAnomaly {
    /// A program's word for nothing stands in its message, this one of all.
    EmptyMarker(&'static str),
    /// A word of its cell slipped into another alphabet.
    MixedAlphabets,
    /// A program has damaged its cell.
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
    /// Its cell means no, and a condition takes it for true.
    TakenForTrue,
    /// Its cell holds a list, and a loop goes over its letters.
    LoopedList,
    /// Its cell is nearly what a condition compares it with; the comparison's index.
    NearMatch(usize),
}

/// Rows with the same oddity in a column.
#[derive(Clone, Debug, Default)]
pub struct AnomalyRows {
    /// The cell, or the word of it, of the first row that was seen.
    pub example: String,
    /// The rows.
    pub rows: RoaringBitmap,
}

/// The odd rows by column and oddity.
pub type AnomalyRowsByColumn = BTreeMap<(usize, RowAnomaly), AnomalyRows>;

/// A condition that compares a column with a text.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The column.
    pub column: usize,
    /// Its name in texts.
    pub name: String,
    /// The text.
    pub text: String,
}

/// What to look at in each row.
pub(super) struct AnomalyDetector {
    /// The columns that texts use, but for that of the numbers.
    columns: Vec<usize>,
    /// Columns that a condition takes for true or false.
    truth_tested: Vec<usize>,
    /// Columns that a loop goes over as they are.
    looped: Vec<usize>,
    /// Whether a text has a link.
    has_link: bool,
    comparisons: Vec<Comparison>,
    /// Which comparisons some row passed.
    matched: Vec<AtomicBool>,
}

/// One oddity of one row.
pub(super) type FoundAnomaly = (usize, RowAnomaly, Box<str>);

impl AnomalyDetector {
    /// What to look at in the rows of a campaign with these texts.
    pub(super) fn for_texts<'t>(recipe: &Recipe, texts: impl Iterator<Item = &'t NamedTemplate>) -> Self {
        let (mut whether, mut comparisons) = (Vec::new(), Vec::new());
        let texts: Vec<&NamedTemplate> = texts.collect();
        let has_link = texts.iter().any(|text| text.source.contains("://"));
        let looped = texts.iter().flat_map(|text| find_looped_names(text));
        let looped: BTreeSet<usize> = looped.filter_map(|(name, _)| recipe.find_column(&name)).collect();
        for question in texts.into_iter().flat_map(find_condition_checks) {
            let Some(column) = recipe.find_column(&question.name) else { continue };
            match question.kind {
                ConditionKind::IsTruthy if !whether.contains(&column) => whether.push(column),
                ConditionKind::IsText(text) => comparisons.push(Comparison { column, name: question.name, text }),
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

    /// What is odd of a row that can be sent to; `shows_empty` is whether its message uses an empty cell.
    pub(super) fn find_anomalies(
        &self,
        fields: RecordFields<'_>,
        message: FilledMessage<'_>,
        shows_empty: bool,
    ) -> Vec<FoundAnomaly> {
        let (mut odd, mut empty) = (Vec::new(), false);
        for &column in &self.columns {
            let cell = fields.get(column).trim();
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
        // The use of an empty cell is a finding of its own.
        if empty && !shows_empty && message_texts(message).any(has_hole) {
            odd.push((0, RowAnomaly::EmptyGreeting, Box::default()));
        }
        odd
    }

    /// The comparisons that no row passed, with their index.
    pub(super) fn into_unmatched(self) -> Vec<(usize, Comparison)> {
        let Self { comparisons, matched: passed, .. } = self;
        let each = comparisons.into_iter().zip(passed).enumerate();
        each.filter(|(_, (_, passed))| !passed.load(Ordering::Relaxed))
            .map(|(index, (comparison, _))| (index, comparison))
            .collect()
    }
}

/// What is odd of a cell, and the word of it that is.
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
        return slipped_word(cell).map(|word| (RowAnomaly::MixedAlphabets, &cell[word]));
    }
    None
}

/// Whether a word of a cell stands in the message as a word of its own; a dash for nothing only before a sign.
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

/// The texts that people read.
fn message_texts(message: FilledMessage<'_>) -> impl Iterator<Item = &str> {
    message.texts().filter(|(field, _)| field.key == "message").map(|(_, text)| text)
}

/// Whether two texts differ by blanks around them and by capital letters alone.
fn is_near_match(cell: &str, text: &str) -> bool {
    let (cell, text) = (cell.trim(), text.trim());
    !cell.is_empty()
        && (cell.eq_ignore_ascii_case(text) || !cell.is_ascii() && cell.to_lowercase() == text.to_lowercase())
}

/// Takes the oddities of a row in.
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
