//! The summary sheet of a workbook of results: recipients by state and by reason, counted over the rows that it holds.

use std::collections::BTreeMap;

use rust_xlsxwriter::{Format, Worksheet, XlsxError};

use super::columns::COLUMN_NAMES;
use super::workbook::DELIVERED_FIGURE;
use crate::ledger::RowState;

/// The most reasons and runs that are counted separately: a reason can quote a row.
const MAX_REASONS: usize = 100;

/// The rows of results by state, reason and run.
#[derive(Debug, Default)]
pub(super) struct ResultsSummary {
    rows: u64,
    parts: u64,
    states: BTreeMap<String, u64>,
    /// Rows by state and reason, or by the gateway's error if there is no reason.
    reasons: BTreeMap<(String, String), u64>,
    /// Rows with further reasons, by state.
    other_reasons: BTreeMap<String, u64>,
    runs: BTreeMap<String, u64>,
    has_more_runs: bool,
}

impl ResultsSummary {
    /// Counts a row of results.
    pub(super) fn count_row(&mut self, record: &csv::StringRecord) {
        let cell = |name: &str| {
            let column = COLUMN_NAMES.iter().position(|known| *known == name);
            column.and_then(|column| record.get(column)).unwrap_or_default()
        };
        let state = cell("state");
        self.rows += 1;
        self.parts += cell("parts").parse().unwrap_or(0);
        count_key(&mut self.states, state);
        let why = if cell("reason").is_empty() { cell("error") } else { cell("reason") };
        if !why.is_empty() {
            let key = (state.to_owned(), why.to_owned());
            match self.reasons.len() < MAX_REASONS || self.reasons.contains_key(&key) {
                true => *self.reasons.entry(key).or_default() += 1,
                false => count_key(&mut self.other_reasons, state),
            }
        }
        let run = cell("run");
        match self.runs.len() < MAX_REASONS || self.runs.contains_key(run) {
            _ if run.is_empty() => {}
            true => count_key(&mut self.runs, run),
            false => self.has_more_runs = true,
        }
    }

    /// Writes the sheet. All texts are written as text, even if they begin like a formula.
    pub(super) fn write_sheet(&self, sheet: &mut Worksheet, bold: &Format) -> Result<(), XlsxError> {
        sheet.set_name("Summary")?.set_column_width(0, 24.0)?.set_column_width(1, 12.0)?.set_column_width(2, 60.0)?;
        let mut lines = SummaryLines { sheet, bold, row: 0 };
        let mut runs: Vec<&str> = self.runs.keys().map(String::as_str).collect();
        runs.extend(self.has_more_runs.then_some("others"));
        lines.write_text(if runs.len() == 1 { "Run" } else { "Runs" }, &runs.join(", "))?;
        let of = |state: RowState| self.states.get(state.name()).copied().unwrap_or(0);
        lines.write_header(["", "Rows", ""])?;
        lines.write_count("Recipients", self.rows, "")?;
        lines.write_count("Delivered", of(RowState::Delivered) + of(RowState::Read), "includes read messages")?;
        lines.write_count("Read", of(RowState::Read), "")?;
        lines.write_count("Billed parts", self.parts, "")?;
        lines.write_header(["State", "Rows", ""])?;
        let known = RowState::ALL.map(RowState::name);
        for state in RowState::ALL {
            // Delivered messages include those that were read, as everywhere.
            let (name, rows) = match state {
                RowState::Delivered => (DELIVERED_FIGURE, of(RowState::Delivered) + of(RowState::Read)),
                _ => (state.name(), of(state)),
            };
            if rows > 0 {
                lines.write_count(name, rows, "")?;
            }
        }
        if !self.reasons.is_empty() {
            lines.write_header(["State", "Rows", "Reason or error"])?;
        }
        for state in known {
            let mut reasons: Vec<_> = self.reasons.iter().filter(|((of, _), _)| of == state).collect();
            reasons.sort_by_key(|((_, why), rows)| (std::cmp::Reverse(**rows), why));
            for ((_, why), rows) in reasons {
                lines.write_count(state, *rows, why)?;
            }
            if let Some(rows) = self.other_reasons.get(state) {
                lines.write_count(state, *rows, "other reasons")?;
            }
        }
        Ok(())
    }
}

fn count_key(counts: &mut BTreeMap<String, u64>, key: &str) {
    match counts.get_mut(key) {
        Some(rows) => *rows += 1,
        None => drop(counts.insert(key.to_owned(), 1)),
    }
}

/// The lines of the sheet from the first to the last.
struct SummaryLines<'s> {
    sheet: &'s mut Worksheet,
    bold: &'s Format,
    row: u32,
}

impl SummaryLines<'_> {
    fn write_text(&mut self, name: &str, text: &str) -> Result<(), XlsxError> {
        self.sheet.write_string_with_format(self.row, 0, name, self.bold)?.write_string(self.row, 1, text)?;
        self.row += 1;
        Ok(())
    }

    /// The header of the lines below, after an empty line.
    fn write_header(&mut self, names: [&str; 3]) -> Result<(), XlsxError> {
        self.row += 1;
        for (column, name) in (0..).zip(names) {
            self.sheet.write_string_with_format(self.row, column, name, self.bold)?;
        }
        self.row += 1;
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "a sheet has no other numbers")]
    fn write_count(&mut self, name: &str, rows: u64, note: &str) -> Result<(), XlsxError> {
        let text = super::workbook::truncate_text(note);
        self.sheet.write_string(self.row, 0, name)?.write_number(self.row, 1, rows as f64)?;
        if !text.is_empty() {
            self.sheet.write_string(self.row, 2, text)?;
        }
        self.row += 1;
        Ok(())
    }
}
