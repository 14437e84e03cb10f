//! Cells that match none of a campaign's texts (`message: { by: … }`).

use std::collections::BTreeSet;

use crate::audience::{ListHeader, RecordFields};
use crate::domain::Stage;
use crate::finding::{Finding, join_names};
use crate::manifest::{CampaignBrief, missing_text_reason};

/// How many different cells of a column a finding names.
const MAX_NAMED: usize = 5;

/// The cells that match no text, by the column that chooses the text.
#[derive(Clone, Debug, Default)]
pub(super) struct UnmatchedCells {
    columns: Vec<SelectorColumn>,
}

#[derive(Clone, Debug)]
struct SelectorColumn {
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
    pub(super) fn for_campaign(brief: &CampaignBrief, header: &ListHeader) -> Self {
        let texts = || brief.all_contents().flat_map(|content| &content.stages).flat_map(Stage::texts);
        let names = header.names().iter().chain(header.headers());
        let column = |name: &String| {
            let reason = missing_text_reason(name);
            let is_chosen_by = texts().any(|(_, text)| text.source.contains(&reason));
            let index = header.find_column(name).filter(|_| is_chosen_by)?;
            Some(SelectorColumn { index, name: name.clone(), reason, cells: BTreeSet::new() })
        };
        let mut columns: Vec<SelectorColumn> = Vec::new();
        for column in names.filter_map(column) {
            if columns.iter().all(|other| other.index != column.index) {
                columns.push(column);
            }
        }
        Self { columns }
    }

    /// Adds the cell of an invalid row, if the reason is that no text matches.
    pub(super) fn add_cell(&mut self, fields: RecordFields<'_>, reason: &str) {
        let Some(column) = self.columns.iter_mut().find(|column| column.is_unmatched_reason(reason)) else { return };
        let cell = fields.get(column.index).trim();
        if column.cells.len() <= MAX_NAMED && !column.cells.contains(cell) {
            column.cells.insert(cell.to_owned());
        }
    }

    /// Whether this reason is that no text matches.
    pub(super) fn is_unmatched_reason(&self, reason: &str) -> bool {
        self.columns.iter().any(|column| column.is_unmatched_reason(reason))
    }

    /// The finding about rows with this reason, with the unmatched cells and the remedy.
    pub(super) fn with_cells(&self, finding: Finding, reason: &str) -> Finding {
        match self.columns.iter().find(|column| column.is_unmatched_reason(reason)) {
            Some(column) => finding.help(column.format_help()),
            None => finding,
        }
    }
}

impl SelectorColumn {
    fn is_unmatched_reason(&self, reason: &str) -> bool {
        // The name of another column can begin with this one.
        reason.strip_prefix(&self.reason).is_some_and(|rest| rest.starts_with(", only for "))
    }

    fn format_help(&self) -> String {
        let words = self.cells.iter().filter(|cell| !cell.is_empty()).take(MAX_NAMED);
        let cells = join_names(words.map(String::as_str));
        let more = if self.cells.len() > MAX_NAMED { " and others" } else { "" };
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

    fn column(cells: &[&str]) -> SelectorColumn {
        let cells = cells.iter().map(|cell| (*cell).to_owned()).collect();
        SelectorColumn { index: 1, name: "language".into(), reason: missing_text_reason("language"), cells }
    }

    #[test]
    fn help_shows_the_cells_as_the_list_has_them() {
        assert!(column(&["uk-UA", "en-GB"]).format_help().starts_with("add `en-GB` and `uk-UA` under `texts`"));
        assert!(column(&[""]).format_help().starts_with("fill in the empty cells of `language`"));
        assert!(column(&["", "pl"]).format_help().contains("some cells are empty"));
        assert!(column(&["a", "b", "c", "d", "e", "f"]).format_help().contains("`e` and others under"));
    }

    #[test]
    fn reason_of_another_column_is_told_apart() {
        let column = column(&[]);
        let reason_for = |name: &str| format!("{}, only for ua (sale.yaml:3:5)", missing_text_reason(name));
        assert!(column.is_unmatched_reason(&reason_for("language")));
        assert!(!column.is_unmatched_reason(&reason_for("language_of_parents")));
        assert!(!column.is_unmatched_reason("no phone number"));
    }
}
