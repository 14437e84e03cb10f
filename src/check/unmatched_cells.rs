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
        let of_else = "add `else` with a message for all other rows";
        match (cells.is_empty(), self.cells.contains("")) {
            (true, _) => format!("fill in the empty cells of `{name}`, or {of_else}"),
            (false, true) => format!(
                "add {cells}{more} under `texts`, spelled as in the column `{name}`; some cells are empty, so also \
                 {of_else}"
            ),
            (false, false) => {
                format!("add {cells}{more} under `texts`, spelled as in the column `{name}`, or {of_else}")
            }
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
        assert!(column(&["uk-UA", "en-GB"]).help().starts_with("add `en-GB` and `uk-UA` under `texts`"));
        assert!(column(&[""]).help().starts_with("fill in the empty cells of `language`"));
        assert!(column(&["", "pl"]).help().contains("some cells are empty"));
        assert!(column(&["a", "b", "c", "d", "e", "f"]).help().contains("`e` and others under"));
    }

    #[test]
    fn reason_of_another_column_is_told_apart() {
        let column = column(&[]);
        let reason_for = |name: &str| format!("{}, only for ua (sale.yaml:3:5)", no_text_for(name));
        assert!(column.is_reason(&reason_for("language")));
        assert!(!column.is_reason(&reason_for("language_of_parents")));
        assert!(!column.is_reason("no phone number"));
    }
}
