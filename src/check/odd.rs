//! What a person would wonder at in single messages: cells that say nothing, slips in them, and conditions that mean something else.
//!
//! Each row is looked at once, and what is the same for all rows is known before, so it costs little where nothing is odd.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use roaring::RoaringBitmap;

use super::broken_text::{Damage, damage};
use super::recipe::Recipe;
use super::rules::{
    DatabaseValue, breaks_link, database_value, has_hole, is_code_behind_apostrophe, is_insecure_link, may_break_link,
    slipped_word,
};
use crate::audience::Fields;
use crate::domain::{Row, Text};
use crate::message::{Asked, FilledMessage, looped_names, questions};

/// What programs write where they have nothing, as it stands in cells.
const NOTHING: [&str; 39] = [
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
const NO: [&str; 10] = ["false", "no", "0", "n", "off", "ні", "нет", "nein", "non", "хибність"];
/// The longest of both.
const LONGEST: usize = 24;

/// What is odd of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Oddity {
    /// A program's word for nothing stands in its message, this one of all.
    Nothing(&'static str),
    /// A word of its cell slipped into another alphabet.
    Slip,
    /// A program has damaged its cell.
    Damaged(Damage),
    /// Its message shows a date or an amount in database format.
    OfDatabase(DatabaseValue),
    /// Its cell breaks a link in its message.
    BreaksLink,
    /// Its cell is a link without `https://`.
    InsecureLink,
    /// Its cell is a code after an apostrophe.
    Apostrophe,
    /// Its message shows that a value is missing.
    Hole,
    /// Its cell means no, and a condition takes it for true.
    TakenForTrue,
    /// Its cell holds a list, and a loop goes over its letters.
    LoopedList,
    /// Its cell is nearly what a condition compares it with; the comparison's index.
    Nearly(usize),
}

/// Rows with the same oddity in a column.
#[derive(Clone, Debug, Default)]
pub struct OddRows {
    /// The cell, or the word of it, of the first row that was seen.
    pub example: String,
    /// The rows.
    pub rows: RoaringBitmap,
}

/// The odd rows by column and oddity.
pub type OddRowsByColumn = BTreeMap<(usize, Oddity), OddRows>;

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
pub(super) struct Watch {
    /// The columns that texts use, but for that of the numbers.
    columns: Vec<usize>,
    /// Columns that a condition takes for true or false.
    whether: Vec<usize>,
    /// Columns that a loop goes over as they are.
    looped: Vec<usize>,
    /// Whether a text has a link.
    has_link: bool,
    comparisons: Vec<Comparison>,
    /// Which comparisons some row passed.
    passed: Vec<AtomicBool>,
}

/// One oddity of one row.
pub(super) type Odd = (usize, Oddity, Box<str>);

impl Watch {
    /// What to look at in the rows of a campaign with these texts.
    pub(super) fn of<'t>(recipe: &Recipe, texts: impl Iterator<Item = &'t Text>) -> Self {
        let (mut whether, mut comparisons) = (Vec::new(), Vec::new());
        let texts: Vec<&Text> = texts.collect();
        let has_link = texts.iter().any(|text| text.source.contains("://"));
        let looped = texts.iter().flat_map(|text| looped_names(text));
        let looped: BTreeSet<usize> = looped.filter_map(|(name, _)| recipe.column(&name)).collect();
        for question in texts.into_iter().flat_map(questions) {
            let Some(column) = recipe.column(&question.name) else { continue };
            match question.asked {
                Asked::Whether if !whether.contains(&column) => whether.push(column),
                Asked::IsText(text) => comparisons.push(Comparison { column, name: question.name, text }),
                Asked::Whether | Asked::IsBool(_) | Asked::IsNumber(_) => {}
            }
        }
        let columns = recipe.columns_of_texts().into_iter().filter(|column| !recipe.phones.contains(*column)).collect();
        let passed = comparisons.iter().map(|_| AtomicBool::new(false)).collect();
        Self { columns, whether, looped: looped.into_iter().collect(), has_link, comparisons, passed }
    }

    /// What is odd of a row that can be sent to; `shows_empty` is whether its message uses an empty cell.
    pub(super) fn look(&self, fields: Fields<'_>, message: FilledMessage<'_>, shows_empty: bool) -> Vec<Odd> {
        let (mut odd, mut empty) = (Vec::new(), false);
        for &column in &self.columns {
            let cell = fields.get(column).trim();
            empty |= cell.is_empty();
            let found = of_cell(cell).filter(|(oddity, word)| match oddity {
                Oddity::Damaged(_) => message.texts().any(|(_, text)| text.contains(word)),
                _ => is_said(message, word),
            });
            odd.extend(found.map(|(oddity, word)| (column, oddity, word.into())));
            if let Some(value) = database_value(cell).filter(|_| is_said(message, cell)) {
                odd.push((column, Oddity::OfDatabase(value), cell.into()));
            }
            if self.has_link && may_break_link(cell) && message.texts().any(|(_, text)| breaks_link(text, cell)) {
                odd.push((column, Oddity::BreaksLink, cell.into()));
            }
        }
        for &column in &self.whether {
            let cell = fields.get(column).trim();
            if cell.len() <= LONGEST && NO.contains(&cell.to_lowercase().as_str()) {
                odd.push((column, Oddity::TakenForTrue, cell.into()));
            }
        }
        for &column in &self.looped {
            let cell = fields.get(column);
            if let Some(at) = cell.find([',', ';', '|']) {
                odd.push((column, Oddity::LoopedList, cell[at..=at].into()));
            }
        }
        for (index, comparison) in self.comparisons.iter().enumerate() {
            let cell = fields.get(comparison.column).trim();
            if cell == comparison.text {
                if !self.passed[index].load(Ordering::Relaxed) {
                    self.passed[index].store(true, Ordering::Relaxed);
                }
            } else if cell.len() <= comparison.text.len() * 2 + LONGEST && alike(cell, &comparison.text) {
                odd.push((comparison.column, Oddity::Nearly(index), cell.into()));
            }
        }
        // The use of an empty cell is a finding of its own.
        if empty && !shows_empty && messages(message).any(has_hole) {
            odd.push((0, Oddity::Hole, Box::default()));
        }
        odd
    }

    /// The comparisons that no row passed, with their index.
    pub(super) fn unpassed(self) -> Vec<(usize, Comparison)> {
        let Self { comparisons, passed, .. } = self;
        let each = comparisons.into_iter().zip(passed).enumerate();
        each.filter(|(_, (_, passed))| !passed.load(Ordering::Relaxed))
            .map(|(index, (comparison, _))| (index, comparison))
            .collect()
    }
}

/// What is odd of a cell, and the word of it that is.
fn of_cell(cell: &str) -> Option<(Oddity, &str)> {
    let (mut foreign, mut brace) = (0, false);
    for &byte in cell.as_bytes() {
        foreign |= byte & 0x80;
        brace |= byte == b'{';
    }
    if matches!(
        cell.as_bytes().first(),
        Some(b'N' | b'n' | b'u' | b'U' | b'#' | b'(' | b'<' | b'[' | b'\\' | b'-' | b'?' | 0xe2)
    ) && let Some(nothing) = NOTHING.into_iter().find(|nothing| *nothing == cell)
    {
        return Some((Oddity::Nothing(nothing), cell));
    }
    if brace && (cell.contains("{{") || cell.contains("{%")) {
        return Some((Oddity::Nothing("{{"), cell));
    }
    if matches!(cell.as_bytes().first(), Some(b'h' | b'H' | b'w' | b'W')) && is_insecure_link(cell) {
        return Some((Oddity::InsecureLink, cell));
    }
    if is_code_behind_apostrophe(cell) {
        return Some((Oddity::Apostrophe, cell));
    }
    if let Some((damage, word)) = damage(cell) {
        return Some((Oddity::Damaged(damage), &cell[word]));
    }
    if foreign != 0 {
        return slipped_word(cell).map(|word| (Oddity::Slip, &cell[word]));
    }
    None
}

/// Whether a word of a cell stands in the message as a word of its own; a dash for nothing only before a sign.
fn is_said(message: FilledMessage<'_>, word: &str) -> bool {
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
fn messages(message: FilledMessage<'_>) -> impl Iterator<Item = &str> {
    message.texts().filter(|(field, _)| field.key == "message").map(|(_, text)| text)
}

/// Whether two texts differ by blanks around them and by capital letters alone.
fn alike(cell: &str, text: &str) -> bool {
    let (cell, text) = (cell.trim(), text.trim());
    !cell.is_empty()
        && (cell.eq_ignore_ascii_case(text) || !cell.is_ascii() && cell.to_lowercase() == text.to_lowercase())
}

/// Takes the oddities of a row in.
pub(super) fn take_in(rows: &mut OddRowsByColumn, row: Row, odd: Vec<Odd>) {
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
    fn a_cell_that_says_nothing_is_told_from_a_value() {
        let found = |cell: &'static str| of_cell(cell);
        for nothing in NOTHING {
            assert_eq!(found(nothing), Some((Oddity::Nothing(nothing), nothing)));
        }
        assert_eq!(found("{{ first_name }}"), Some((Oddity::Nothing("{{"), "{{ first_name }}")));
        assert_eq!(found("http://a.example"), Some((Oddity::InsecureLink, "http://a.example")));
        assert_eq!(found("Олeна"), Some((Oddity::Slip, "Олeна")));
        for value in ["Nan", "Noné", "Nullam", "0", "-5", "https://a.example", "Олена", "hello", "#1", "{x}", "What?"]
        {
            assert_eq!(found(value), None, "{value}");
        }
    }

    #[test]
    fn what_is_nearly_the_same_is_known_by_its_letters() {
        assert!(alike("TRUE", "true") && alike(" gold", "gold") && alike("КИЇВ", "Київ"));
        assert!(!alike("", "") && !alike("golden", "gold"));
    }
}
