//! Messages that a survey finds unusual, alone or compared with other messages of the list.
//!
//! - Anomalies in single messages: placeholder cells, mistyped words, and cells that a condition or loop does not
//!   treat as its author probably expected.
//! - The shapes of messages, for choosing samples, and duplicates whose messages differ.
//!
//! Each row is examined once. Everything that all rows have in common is prepared beforehand, so ordinary rows cost
//! little. This module does no I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};

use campaign_content::audience::{RecordFields, trim_cell};
use campaign_content::message::{
    ConditionKind, FilledMessage, enclose_condition, find_condition_checks, find_looped_names, to_iso_date,
};
use campaign_core::domain::{NamedTemplate, Phone, Row};
use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHasher};

use super::compiled_campaign::Recipe;
use super::rules::{
    ByteKinds, DatabaseValue, TextDamage, breaks_link, can_break_link, find_damage_in, find_database_value,
    find_mixed_word, has_empty_greeting, is_code_after_apostrophe, is_insecure_link,
};

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
/// Lower-case words that mean no, but count as true in a condition, each with its counterpart for yes.
pub(super) const NEGATIVE_WORDS: [(&str, &str); 10] = [
    ("false", "true"),
    ("no", "yes"),
    ("0", "1"),
    ("n", "y"),
    ("off", "on"),
    ("ні", "так"),
    ("нет", "да"),
    ("nein", "ja"),
    ("non", "oui"),
    ("хибність", "істина"),
];
/// The maximum length of a cell that is compared with these words, in bytes. A cell that is this much longer than twice
/// the text of a comparison is not checked for a near match.
const MAX_WORD_BYTES: usize = 24;

/// Something in a row that is probably a mistake: a suspicious cell, or a visible flaw in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowAnomaly {
    /// The message contains this placeholder for a missing value.
    EmptyMarker(&'static str),
    /// A word of the cell mixes alphabets.
    MixedAlphabets,
    /// A program damaged the cell.
    Damaged(TextDamage),
    /// The message shows a date or an amount in database format.
    DatabaseFormat(DatabaseValue),
    /// The cell breaks a link in the message.
    BreaksLink,
    /// The cell is a link without `https://`.
    InsecureLink,
    /// The cell is a code after an apostrophe.
    Apostrophe,
    /// The greeting has a gap, because a value is missing.
    EmptyGreeting,
    /// The cell means no, but a condition treats it as true.
    TakenForTrue,
    /// The cell contains a list, but a loop iterates over its characters.
    LoopedList,
    /// The cell nearly equals the text of the comparison with this index.
    NearMatch(usize),
    /// The cell is a date, but in another form than the date of the comparison with this index.
    UnlikeDate(usize),
}

/// Rows with the same anomaly in a column.
#[derive(Clone, Debug, Default)]
pub struct AnomalyRows {
    /// The cell of the first row, or the affected word.
    pub example: String,
    /// The planned rows with the anomaly.
    pub rows: RoaringBitmap,
}

/// The anomalous rows by column and anomaly.
pub type AnomalyRowsByColumn = BTreeMap<(usize, RowAnomaly), AnomalyRows>;

/// A condition that compares a column with a text.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The index of the column in the list, from 0.
    pub column: usize,
    /// The name in templates.
    pub name: String,
    /// The text with which trimmed cells are compared.
    pub text: String,
}

/// A condition that compares a column with a date as text.
#[derive(Clone, Debug)]
pub struct DateComparison {
    /// The index of the column in the list, from 0.
    pub column: usize,
    /// The name in templates.
    pub name: String,
    /// The comparison in which the cell is converted.
    pub corrected: String,
}

/// The comparisons that findings name.
pub(super) struct ReportedComparisons {
    /// The comparisons that matched no row, each with its index.
    pub(super) unmatched: Vec<(usize, Comparison)>,
    /// The comparisons with dates.
    pub(super) dates: Vec<DateComparison>,
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
    /// The comparisons with dates, first those of the campaign's condition.
    date_comparisons: Vec<DateComparison>,
    /// The number of comparisons with dates in the campaign's condition.
    condition_dates: usize,
}

/// An anomaly in a row: column, kind and example.
pub(super) type FoundAnomaly = (usize, RowAnomaly, Box<str>);

impl AnomalyDetector {
    /// Creates a detector for the texts of a campaign, and for its condition if it has one.
    pub(super) fn for_texts<'t>(
        recipe: &Recipe,
        texts: impl Iterator<Item = &'t NamedTemplate>,
        condition: Option<&NamedTemplate>,
    ) -> Self {
        let (mut truth_tested, mut comparisons, mut date_comparisons) = (Vec::new(), Vec::new(), Vec::new());
        let texts: Vec<&NamedTemplate> = texts.collect();
        let has_link = texts.iter().any(|text| text.source.contains("://"));
        let looped = texts.iter().flat_map(|text| find_looped_names(text));
        let looped: BTreeSet<usize> = looped.filter_map(|(name, _)| recipe.find_column(&name)).collect();
        let condition = condition.map(enclose_condition);
        for check in condition.iter().flat_map(find_condition_checks) {
            let column = recipe.find_named_column(&check.column);
            if let (ConditionKind::IsDate { corrected }, Some(column)) = (check.kind, column) {
                date_comparisons.push(DateComparison { column, name: check.name, corrected });
            }
        }
        let condition_dates = date_comparisons.len();
        for check in texts.into_iter().flat_map(find_condition_checks) {
            if let ConditionKind::IsDate { corrected } = check.kind {
                let column = recipe.find_named_column(&check.column);
                date_comparisons.extend(column.map(|column| DateComparison { column, name: check.name, corrected }));
                continue;
            }
            let Some(column) = recipe.find_column(&check.name) else { continue };
            match check.kind {
                ConditionKind::IsTruthy if !truth_tested.contains(&column) => truth_tested.push(column),
                ConditionKind::IsText(text) => comparisons.push(Comparison { column, name: check.name, text }),
                ConditionKind::IsTruthy
                | ConditionKind::IsBool { .. }
                | ConditionKind::IsNumber { .. }
                | ConditionKind::IsOrderedText { .. }
                | ConditionKind::IsDate { .. } => {}
            }
        }
        let columns = recipe.text_columns().into_iter().filter(|column| !recipe.phones.contains(*column)).collect();
        let matched = comparisons.iter().map(|_| AtomicBool::new(false)).collect();
        Self {
            columns,
            truth_tested,
            looped: looped.into_iter().collect(),
            has_link,
            comparisons,
            matched,
            date_comparisons,
            condition_dates,
        }
    }

    /// Finds the cells of a row that the campaign's condition compares with a date of another form. Such a row can be
    /// filtered by mistake.
    pub(super) fn find_unlike_dates(&self, fields: RecordFields<'_>) -> Vec<FoundAnomaly> {
        self.date_anomalies(fields, self.condition_dates).collect()
    }

    /// The anomalies of the first `count` comparisons with dates.
    fn date_anomalies<'a>(
        &'a self,
        fields: RecordFields<'a>,
        count: usize,
    ) -> impl Iterator<Item = FoundAnomaly> + use<'a> {
        let compared = self.date_comparisons[..count].iter().enumerate();
        compared.filter_map(move |(index, comparison)| {
            let cell = fields.get(comparison.column).trim();
            let day = cell.split([' ', 'T']).next().unwrap_or_default();
            let is_unlike = to_iso_date(day).is_some_and(|date| date != cell);
            is_unlike.then(|| (comparison.column, RowAnomaly::UnlikeDate(index), cell.into()))
        })
    }

    /// Finds the anomalies of a row that has a message; `shows_empty` says whether the message uses an empty cell.
    pub(super) fn find_anomalies(
        &self,
        fields: RecordFields<'_>,
        message: FilledMessage<'_>,
        shows_empty: bool,
    ) -> Vec<FoundAnomaly> {
        let (mut anomalies, mut has_empty_cell) = (Vec::new(), false);
        for &column in &self.columns {
            let cell = trim_cell(fields.get(column));
            has_empty_cell |= cell.is_empty();
            let kinds = ByteKinds::from_text(cell);
            let found = find_anomaly_in(cell, kinds).filter(|(anomaly, word)| match anomaly {
                RowAnomaly::Damaged(_) => message.texts().any(|(_, text)| text.contains(word)),
                _ => is_in_message(message, word),
            });
            anomalies.extend(found.map(|(anomaly, word)| (column, anomaly, word.into())));
            if let Some(value) = find_database_value(cell).filter(|_| is_in_message(message, cell)) {
                anomalies.push((column, RowAnomaly::DatabaseFormat(value), cell.into()));
            }
            if self.has_link
                && kinds.contain(ByteKinds::NON_ASCII | ByteKinds::LINK_END)
                && can_break_link(cell)
                && message.texts().any(|(_, text)| breaks_link(text, cell))
            {
                anomalies.push((column, RowAnomaly::BreaksLink, cell.into()));
            }
        }
        for &column in &self.truth_tested {
            let cell = fields.get(column).trim();
            let is_negative = || NEGATIVE_WORDS.iter().any(|(no, _)| *no == cell.to_lowercase());
            if cell.len() <= MAX_WORD_BYTES && is_negative() {
                anomalies.push((column, RowAnomaly::TakenForTrue, cell.into()));
            }
        }
        for &column in &self.looped {
            let cell = fields.get(column);
            if let Some(at) = cell.find([',', ';', '|']) {
                anomalies.push((column, RowAnomaly::LoopedList, cell[at..=at].into()));
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
                anomalies.push((comparison.column, RowAnomaly::NearMatch(index), cell.into()));
            }
        }
        anomalies.extend(self.date_anomalies(fields, self.date_comparisons.len()));
        // The use of an empty cell is reported as a separate finding.
        if has_empty_cell && !shows_empty && message_texts(message).any(has_empty_greeting) {
            anomalies.push((0, RowAnomaly::EmptyGreeting, Box::default()));
        }
        anomalies
    }

    /// The comparisons that findings name.
    pub(super) fn into_comparisons(self) -> ReportedComparisons {
        let Self { comparisons, matched, date_comparisons: dates, .. } = self;
        let indexed = comparisons.into_iter().zip(matched).enumerate();
        let unmatched = indexed
            .filter(|(_, (_, matched))| !matched.load(Ordering::Relaxed))
            .map(|(index, (comparison, _))| (index, comparison))
            .collect();
        ReportedComparisons { unmatched, dates }
    }
}

/// The anomaly in a cell, if there is one, and the affected word.
pub(super) fn find_cell_anomaly(cell: &str) -> Option<(RowAnomaly, &str)> {
    find_anomaly_in(cell, ByteKinds::from_text(cell))
}

/// The anomaly in a cell with these kinds of bytes, if there is one, and the affected word.
fn find_anomaly_in(cell: &str, kinds: ByteKinds) -> Option<(RowAnomaly, &str)> {
    // The markers begin with these bytes. 0xe2 is the first byte of a dash.
    if matches!(
        cell.as_bytes().first(),
        Some(b'N' | b'n' | b'u' | b'U' | b'#' | b'(' | b'<' | b'[' | b'\\' | b'-' | b'?' | 0xe2)
    ) && let Some(marker) = EMPTY_MARKERS.into_iter().find(|marker| *marker == cell)
    {
        return Some((RowAnomaly::EmptyMarker(marker), cell));
    }
    if kinds.contain(ByteKinds::BRACE) && (cell.contains("{{") || cell.contains("{%")) {
        return Some((RowAnomaly::EmptyMarker("{{"), cell));
    }
    if matches!(cell.as_bytes().first(), Some(b'h' | b'H' | b'w' | b'W')) && is_insecure_link(cell) {
        return Some((RowAnomaly::InsecureLink, cell));
    }
    if is_code_after_apostrophe(cell) {
        return Some((RowAnomaly::Apostrophe, cell));
    }
    if let Some((damage, word)) = find_damage_in(cell, kinds) {
        return Some((RowAnomaly::Damaged(damage), &cell[word]));
    }
    if kinds.contain(ByteKinds::NON_ASCII) {
        return find_mixed_word(cell).map(|word| (RowAnomaly::MixedAlphabets, &cell[word]));
    }
    None
}

/// Whether the message contains a word of a cell as a separate word. A word without letters or digits, such as a dash,
/// counts only before punctuation or at the end.
fn is_in_message(message: FilledMessage<'_>, word: &str) -> bool {
    let is_sign = !word.contains(char::is_alphanumeric);
    let ends = |rest: &str| match rest.chars().next() {
        Some(next) if is_sign => matches!(next, ',' | '!' | '.' | ';'),
        Some(next) => !next.is_alphanumeric(),
        None => true,
    };
    let begins = |before: &str| !before.ends_with(char::is_alphanumeric);
    let has_word =
        |text: &str| text.match_indices(word).any(|(at, _)| begins(&text[..at]) && ends(&text[at + word.len()..]));
    message.texts().any(|(_, text)| has_word(text))
}

/// The message texts of the channels.
fn message_texts(message: FilledMessage<'_>) -> impl Iterator<Item = &str> {
    message.texts().filter(|(field, _)| field.key == "message").map(|(_, text)| text)
}

/// Whether a cell that is not empty equals a text, ignoring case and surrounding spaces.
fn is_near_match(cell: &str, text: &str) -> bool {
    let (cell, text) = (cell.trim(), text.trim());
    !cell.is_empty()
        && (cell.eq_ignore_ascii_case(text) || !cell.is_ascii() && cell.to_lowercase() == text.to_lowercase())
}

/// Adds the anomalies of a row to `anomaly_rows`, and keeps the first example of each.
pub(super) fn add_anomalies(anomaly_rows: &mut AnomalyRowsByColumn, row: Row, anomalies: Vec<FoundAnomaly>) {
    for (column, anomaly, example) in anomalies {
        let entry = anomaly_rows.entry((column, anomaly)).or_default();
        if entry.rows.is_empty() {
            entry.example = example.into();
        }
        entry.rows.insert(row.get());
    }
}

/// The maximum number of shapes.
const MAX_SHAPES: usize = 256;

/// The structure of a message, apart from its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MessageShape {
    /// The variant, counted from 0; 0 without variants.
    arm: usize,
    /// The branches that are taken, one bit each.
    branches: u64,
}

/// The planned rows by the shape of their messages.
#[derive(Clone, Debug, Default)]
pub struct MessageShapes(BTreeMap<MessageShape, RoaringBitmap>);

impl MessageShapes {
    /// Adds a row with its variant and the branches that its message takes.
    pub(super) fn add_row(&mut self, row: Row, arm: usize, branches: u64) {
        let shape = MessageShape { arm, branches };
        if self.0.len() < MAX_SHAPES || self.0.contains_key(&shape) {
            self.0.entry(shape).or_default().insert(row.get());
        }
    }

    /// The index of a row's variant. `None` if the shape of the row's message was not recorded.
    pub fn find_arm(&self, row: Row) -> Option<usize> {
        self.0.iter().find(|(_, rows)| rows.contains(row.get())).map(|(shape, _)| shape.arm)
    }

    /// Picks a few of `rows`, in the order of the list, whose messages show every variant and both outcomes of every
    /// condition.
    ///
    /// If `limit` rows cannot show all of these, the picked rows show as many as possible.
    pub fn pick_samples(&self, rows: &RoaringBitmap, limit: usize) -> Vec<Row> {
        let first_rows = self.0.iter().filter_map(|(shape, shape_rows)| Some((*shape, (shape_rows & rows).min()?)));
        let mut remaining: Vec<(MessageShape, u32)> = first_rows.collect();
        let mut all_branches: BTreeMap<usize, u64> = BTreeMap::new();
        for (MessageShape { arm, branches }, _) in &remaining {
            *all_branches.entry(*arm).or_default() |= branches;
        }
        // For each variant, the branches that the samples show as taken and as not taken.
        let mut shown_branches: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        let mut samples = Vec::new();
        while samples.len() < limit {
            let gain = |MessageShape { arm, branches }: &MessageShape| {
                let all = all_branches.get(arm).copied().unwrap_or_default();
                match shown_branches.get(arm) {
                    None => 1 + all.count_ones(),
                    Some((taken_branches, passed_branches)) => {
                        (branches & !taken_branches).count_ones() + (all & !branches & !passed_branches).count_ones()
                    }
                }
            };
            let best =
                remaining.iter().enumerate().max_by_key(|(_, (shape, row))| (gain(shape), std::cmp::Reverse(*row)));
            let Some((index, (shape, row))) = best.filter(|(_, (shape, _))| gain(shape) > 0) else { break };
            let MessageShape { arm, branches } = *shape;
            let all = all_branches.get(&arm).copied().unwrap_or_default();
            let (taken_branches, passed_branches) = shown_branches.entry(arm).or_default();
            (*taken_branches, *passed_branches) = (*taken_branches | branches, *passed_branches | all & !branches);
            samples.push(Row::new(*row));
            remaining.remove(index);
        }
        samples.sort_unstable();
        samples
    }
}

/// The maximum number of remembered messages, so that memory use does not grow with the list.
const MAX_REMEMBERED: usize = 200_000;

/// The hash of a message's text.
pub(super) fn hash_message(message: FilledMessage<'_>) -> u64 {
    let mut hasher = FxHasher::default();
    message.texts().for_each(|(_, text)| text.hash(&mut hasher));
    hasher.finish()
}

/// The hash of the message in the first row of each number, and the later rows whose messages differ.
#[derive(Default)]
pub(super) struct RepeatedNumbers {
    hashes: FxHashMap<u64, u64>,
    /// The rows whose message differs from that of their number's first row.
    pub(super) differing: RoaringBitmap,
}

impl RepeatedNumbers {
    /// Records the hash of the message to a number.
    pub(super) fn add_sent_message(&mut self, phone: Phone, hash: u64) {
        if self.hashes.len() < MAX_REMEMBERED {
            self.hashes.insert(phone.to_u64(), hash);
        }
    }

    /// Records a later, skipped row of a number, if its message differs from the first row's message.
    pub(super) fn add_skipped_row(&mut self, row: Row, phone: Phone, hash: u64) {
        if self.hashes.get(&phone.to_u64()).is_some_and(|earlier| *earlier != hash) {
            self.differing.insert(row.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_anomalies_are_distinguished_from_usual_values() {
        let found = |cell: &'static str| find_cell_anomaly(cell);
        for marker in EMPTY_MARKERS {
            assert_eq!(found(marker), Some((RowAnomaly::EmptyMarker(marker), marker)));
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
    fn byte_kinds_cover_every_character_that_breaks_a_link() {
        for character in '\0'..='\u{3000}' {
            let cell = format!("a{character}b");
            let kinds = ByteKinds::from_text(&cell);
            assert!(!can_break_link(&cell) || kinds.contain(ByteKinds::NON_ASCII | ByteKinds::LINK_END), "{cell:?}");
        }
    }

    #[test]
    fn near_matches_differ_in_case_and_spaces_only() {
        assert!(is_near_match("TRUE", "true") && is_near_match(" gold", "gold") && is_near_match("КИЇВ", "Київ"));
        assert!(!is_near_match("", "") && !is_near_match("golden", "gold"));
    }
}

#[cfg(test)]
mod message_comparison_tests {
    use super::*;
    use campaign_content::audience::parse_phone_number;

    fn shapes(rows: &[(u32, usize, u64)]) -> MessageShapes {
        let mut shapes = MessageShapes::default();
        rows.iter().for_each(|(row, arm, branches)| shapes.add_row(Row::new(*row), *arm, *branches));
        shapes
    }

    fn samples(shapes: &MessageShapes, rows: &[u32], max: usize) -> Vec<u32> {
        shapes.pick_samples(&rows.iter().copied().collect(), max).into_iter().map(Row::get).collect()
    }

    #[test]
    fn samples_show_each_variant_and_each_outcome_of_a_condition() {
        let plain = shapes(&[(2, 0, 0), (3, 0, 0), (4, 0, 0)]);
        assert_eq!(samples(&plain, &[2, 3, 4], 5), [2]);
        assert_eq!(samples(&plain, &[4], 5), [4], "only rows that are sent to");
        let variants = shapes(&[(2, 1, 0), (3, 0, 0), (4, 1, 0)]);
        assert_eq!(samples(&variants, &[2, 3, 4], 5), [2, 3]);
        let branches = shapes(&[(2, 0, 0b00), (3, 0, 0b00), (4, 0, 0b01), (5, 0, 0b10), (6, 0, 0b11)]);
        assert_eq!(samples(&branches, &[2, 3, 4, 5, 6], 5), [2, 6], "two rows show both outcomes of both conditions");
        assert_eq!(samples(&branches, &[2, 3, 4, 5], 5), [2, 4, 5]);
        assert_eq!(samples(&branches, &[2, 3, 4, 5], 2), [2, 4]);
        assert_eq!(samples(&branches, &[], 5), [0; 0]);
    }

    #[test]
    fn number_of_message_shapes_is_bounded() {
        let many: Vec<(u32, usize, u64)> = (2..1_000).map(|row| (row, 0, row.into())).collect();
        let shapes = shapes(&many);
        assert_eq!(shapes.0.len(), MAX_SHAPES);
        assert_eq!((shapes.find_arm(Row::new(2)), shapes.find_arm(Row::new(999))), (Some(0), None));
    }

    #[test]
    fn duplicate_differs_if_its_number_gets_another_message() {
        let [first, second] =
            ["+380501234567", "+380501234568"].map(|number| parse_phone_number(number, None).unwrap());
        let mut repeated = RepeatedNumbers::default();
        repeated.add_sent_message(first, 7);
        repeated.add_skipped_row(Row::new(3), first, 7);
        repeated.add_skipped_row(Row::new(4), first, 8);
        repeated.add_skipped_row(Row::new(5), second, 8);
        assert_eq!(repeated.differing.iter().collect::<Vec<_>>(), [4]);
    }
}
