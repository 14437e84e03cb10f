//! Consent for the rows of a list: finds the cells that record a row's consent, in the list or in a file, and judges
//! them.
//!
//! Surveys, plans, retries, tests and the recorded evidence use the same cells. Nothing here opens a file.

use std::sync::Arc;

use jiff::civil::Date;
use rustc_hash::FxHashMap;

use super::rules;
use campaign_content::audience::{ListHeader, RecordFields};
use campaign_core::domain::{ConsentCells, ConsentRules, ConsentVerdict, Phone, Row};
use campaign_core::finding::Finding;
use campaign_manifest::ConsentSource;

/// The recorded consents of a campaign's recipients.
#[derive(Clone, Debug)]
pub struct Consents {
    source: ConsentSource,
    rules: ConsentRules,
    /// The consents in a file. `None` if they are in columns of the list.
    register: Option<Arc<ConsentRegister>>,
    is_required: bool,
}

impl Consents {
    /// Creates consents from `source`, evaluated by `rules`. `register` holds the entries of the consent file, if the
    /// consents are in a file. `is_required` says whether a recipient needs consent.
    pub fn new(
        source: ConsentSource,
        rules: ConsentRules,
        register: Option<ConsentRegister>,
        is_required: bool,
    ) -> Self {
        Self { source, rules, register: register.map(Arc::new), is_required }
    }

    /// Whether recipients without consent are skipped.
    pub fn is_required(&self) -> bool {
        self.is_required
    }

    /// The row of the consent file that counts for a number. `None` if the consents are in the list.
    pub(super) fn find_file_row(&self, phone: Phone) -> Option<Row> {
        self.register.as_ref()?.consents.get(&phone).map(|consent| consent.row)
    }

    /// Finds the consent columns of a list.
    ///
    /// # Errors
    /// If the list lacks a column that the campaign names.
    pub fn find_columns(&self, header: &ListHeader) -> Result<ConsentFinder, Finding> {
        let mut columns = [None; 4];
        if self.register.is_none() {
            for (column, (key, name)) in columns.iter_mut().zip(self.source.headers()) {
                let Some(name) = name else { continue };
                *column = header.find_column(name);
                if column.is_none() {
                    return Err(rules::missing_consent_column_finding(key, name, header));
                }
            }
        }
        Ok(ConsentFinder { consents: self.clone(), columns })
    }
}

/// The consents of a list with a known header.
#[derive(Clone, Debug)]
pub struct ConsentFinder {
    consents: Consents,
    /// The columns of answer, time, source and wording, if they are in the list.
    columns: [Option<usize>; 4],
}

impl ConsentFinder {
    /// The columns of the list that contain information about consent.
    pub fn used_columns(&self) -> impl Iterator<Item = usize> {
        self.columns.into_iter().flatten()
    }

    /// The consent cells for a row. `None` if the consents are in a file that does not contain the row's number.
    pub fn find_cells<'f>(&'f self, fields: RecordFields<'f>, phone: Phone) -> Option<ConsentCells<'f>> {
        match &self.consents.register {
            Some(register) => register.find_cells(phone),
            None => {
                let [value, at, source, wording] =
                    self.columns.map(|column| column.map_or("", |column| fields.get(column).trim()));
                Some(ConsentCells { value, at, source, wording })
            }
        }
    }

    /// Judges the consent of a number by the consent file. `None` if the consents are in the list.
    pub fn judge_number(&self, phone: Phone) -> Option<ConsentVerdict> {
        let register = self.consents.register.as_ref()?;
        Some(register.judge(phone, &self.consents.rules))
    }

    /// Judges the consent of a row.
    pub fn judge(&self, fields: RecordFields<'_>, phone: Phone) -> ConsentVerdict {
        let judge_list_cells = || {
            let [value, at, ..] = self.columns;
            let cell = |column: Option<usize>| column.map_or("", |column| fields.get(column));
            self.consents.rules.judge(ConsentCells { value: cell(value), at: cell(at), ..ConsentCells::default() })
        };
        self.judge_number(phone).unwrap_or_else(judge_list_cells)
    }
}

/// The consents in a file, by number. Equal texts are stored once.
#[derive(Debug, Default)]
pub struct ConsentRegister {
    consents: FxHashMap<Phone, RegisteredConsent>,
    texts: Vec<Arc<str>>,
    indexes: FxHashMap<Arc<str>, u32>,
}

/// A consent in a file.
#[derive(Clone, Copy, Debug)]
struct RegisteredConsent {
    is_yes: bool,
    /// The day that orders the entries of a number: the latest entry counts.
    day: Date,
    /// The indexes of answer, time, source and wording among the texts.
    cells: [u32; 4],
    /// The row in the file.
    row: Row,
}

impl ConsentRegister {
    /// Adds a row of the consent file. `is_without_answers` means that the file has no answer column, so each row is a
    /// consent.
    ///
    /// The latest entry for a number counts; of two entries on the same day, a refusal takes precedence over a consent.
    /// A refusal without a readable date always counts. A consent without a readable date counts only if the number has
    /// neither a refusal nor a dated consent.
    pub fn add_row(
        &mut self,
        row: Row,
        phone: Phone,
        cells: ConsentCells<'_>,
        is_without_answers: bool,
        rules: &ConsentRules,
    ) {
        let is_yes = is_without_answers || rules.is_yes(cells.value);
        let day = rules.parse_day(cells.at).unwrap_or(if is_yes { Date::MIN } else { Date::MAX });
        if let Some(known) = self.consents.get(&phone) {
            let is_later = day > known.day || day == known.day && known.is_yes;
            if !is_later {
                return;
            }
        }
        let ConsentCells { value, at, source, wording } = cells;
        let cells = [value, at, source, wording].map(|text| self.intern_text(text));
        self.consents.insert(phone, RegisteredConsent { is_yes, day, cells, row });
    }

    fn intern_text(&mut self, text: &str) -> u32 {
        if let Some(index) = self.indexes.get(text) {
            return *index;
        }
        let (index, text): (u32, Arc<str>) = (u32::try_from(self.texts.len()).unwrap_or(u32::MAX), text.into());
        self.texts.push(Arc::clone(&text));
        self.indexes.insert(text, index);
        index
    }

    fn text(&self, index: u32) -> &str {
        self.texts.get(index as usize).map_or("", |text| text)
    }

    fn find_cells(&self, phone: Phone) -> Option<ConsentCells<'_>> {
        let [value, at, source, wording] = self.consents.get(&phone)?.cells.map(|index| self.text(index));
        Some(ConsentCells { value, at, source, wording })
    }

    fn judge(&self, phone: Phone, rules: &ConsentRules) -> ConsentVerdict {
        match self.consents.get(&phone) {
            Some(consent) if consent.is_yes => {
                let [_, at, ..] = consent.cells;
                rules.judge_date(self.text(at))
            }
            Some(_) | None => ConsentVerdict::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// The verdict on a number with the given entries, each written as `ANSWER DATE`.
    fn verdict(entries: &[&str], is_dated: bool) -> ConsentVerdict {
        let rules = ConsentRules::new(&[], is_dated, "24 months".parse().ok(), date(2026, 11, 27));
        let (phone, mut register) = (Phone::new(380_501_234_567).unwrap(), ConsentRegister::default());
        for entry in entries {
            let (value, at) = entry.split_once(' ').unwrap_or((entry, ""));
            register.add_row(Row::FIRST, phone, ConsentCells { value, at, ..ConsentCells::default() }, false, &rules);
        }
        register.judge(phone, &rules)
    }

    #[test]
    fn latest_consent_entry_for_a_number_wins() {
        use ConsentVerdict::{Expired, Given, Missing, Undated};
        for (entries, expected) in [
            (&[][..], Missing),
            (&["yes 2026-01-01"], Given),
            (&["yes 2026-01-01", "no 2026-02-01"], Missing),
            (&["no 2026-02-01", "yes 2026-01-01"], Missing),
            (&["no 2026-01-01", "yes 2026-02-01"], Given),
            (&["yes 2026-01-01", "no 2026-01-01"], Missing),
            (&["no 2026-01-01", "yes 2026-01-01"], Missing),
            (&["yes 2020-01-01"], Expired),
            (&["yes soon"], Undated),
            (&["yes soon", "yes 2026-01-01"], Given),
            (&["no soon", "yes 2026-01-01"], Missing),
            (&["yes 2026-01-01", "no 2027-01-01"], Missing),
        ] {
            assert_eq!(verdict(entries, true), expected, "{entries:?}");
        }
        assert_eq!(verdict(&["yes"], false), Given);
        assert_eq!(verdict(&["yes", "no", "yes"], false), Missing);
    }
}
