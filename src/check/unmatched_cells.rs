//! Cells that match none of a campaign's texts (`message: { by: … }`).

use std::collections::BTreeSet;

use crate::audience::{Fields, Header};
use crate::domain::Stage;
use crate::finding::{Finding, list_all};
use crate::manifest::{Brief, no_text_for};

/// How many different cells of a column a finding names.
const NAMED: usize = 5;

/// The cells that match no text, by the column that chooses the text.
#[derive(Clone, Debug, Default)]
pub(super) struct UnmatchedCells {
    columns: Vec<Column>,
}

#[derive(Clone, Debug)]
struct Column {
    index: usize,
    /// Its name in the campaign file.
    name: String,
    /// The beginning of its rows' reason.
    reason: String,
    /// Its cells, each once, up to one more than a finding names.
    cells: BTreeSet<String>,
}

impl UnmatchedCells {
    /// Those of a campaign: no cells yet.
    pub(super) fn of(brief: &Brief, header: &Header) -> Self {
        let texts = || brief.contents().flat_map(|content| &content.stages).flat_map(Stage::texts);
        let names = header.names().iter().chain(header.headers());
        let column = |name: &String| {
            let reason = no_text_for(name);
            let is_chosen_by = texts().any(|(_, text)| text.source.contains(&reason));
            let index = header.column(name).filter(|_| is_chosen_by)?;
            Some(Column { index, name: name.clone(), reason, cells: BTreeSet::new() })
        };
        let mut columns: Vec<Column> = Vec::new();
        for column in names.filter_map(column) {
            if columns.iter().all(|other| other.index != column.index) {
                columns.push(column);
            }
        }
        Self { columns }
    }

    /// Adds the cell of an invalid row, if the reason is that no text matches.
    pub(super) fn add(&mut self, fields: Fields<'_>, reason: &str) {
        let Some(column) = self.columns.iter_mut().find(|column| column.is_reason(reason)) else { return };
        let cell = fields.get(column.index).trim();
        if column.cells.len() <= NAMED && !column.cells.contains(cell) {
            column.cells.insert(cell.to_owned());
        }
    }

    /// Whether this reason is that no text matches.
    pub(super) fn is_reason(&self, reason: &str) -> bool {
        self.columns.iter().any(|column| column.is_reason(reason))
    }

    /// The finding about rows with this reason, with the unmatched cells and the remedy.
    pub(super) fn with_cells(&self, finding: Finding, reason: &str) -> Finding {
        match self.columns.iter().find(|column| column.is_reason(reason)) {
            Some(column) => finding.help(column.help()),
            None => finding,
        }
    }
}

impl Column {
    fn is_reason(&self, reason: &str) -> bool {
        // The name of another column can begin with this one.
        reason.strip_prefix(&self.reason).is_some_and(|rest| rest.starts_with(", only for "))
    }

    fn help(&self) -> String {
        let words = self.cells.iter().filter(|cell| !cell.is_empty()).take(NAMED);
        let cells = list_all(words.map(String::as_str));
        let more = if self.cells.len() > NAMED { " and others" } else { "" };
        let name = &self.name;
        let of_else = "set a text for all other rows under `else`";
        match (cells.is_empty(), self.cells.contains("")) {
            (true, _) => format!("the cells of `{name}` are empty: fill them in, or {of_else}"),
            (false, true) => format!(
                "`{name}` is empty or has {cells}{more} there: write these words under `texts` as the list has them, and {of_else}"
            ),
            (false, false) => format!(
                "`{name}` has {cells}{more} there: write these words under `texts` as the list has them, or {of_else}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(cells: &[&str]) -> Column {
        let cells = cells.iter().map(|cell| (*cell).to_owned()).collect();
        Column { index: 1, name: "language".into(), reason: no_text_for("language"), cells }
    }

    #[test]
    fn help_shows_the_cells_as_the_list_has_them() {
        assert!(column(&["uk-UA", "en-GB"]).help().starts_with("`language` has `en-GB` and `uk-UA` there"));
        assert!(column(&[""]).help().starts_with("the cells of `language` are empty"));
        assert!(column(&["", "pl"]).help().starts_with("`language` is empty or has `pl` there"));
        assert!(column(&["a", "b", "c", "d", "e", "f"]).help().contains("`e` and others there"));
    }

    #[test]
    fn reason_of_another_column_is_told_apart() {
        let column = column(&[]);
        assert!(column.is_reason("there is no text for what stands in language, only for ua (sale.yaml:3:5)"));
        assert!(!column.is_reason("there is no text for what stands in language_of_parents, only for ua"));
        assert!(!column.is_reason("no phone number"));
    }
}
