//! Cells of the list, collected by column during a survey: empty cells in messages, opt-outs, and cells that select
//! none of the texts.

use std::collections::{BTreeMap, BTreeSet};

use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use campaign_content::audience::{ListHeader, RecordFields};
use campaign_content::message::{EmptyCellFinder, EmptyCellPlace, EmptyCellUse};
use campaign_core::domain::{Channel, OptOutColumn, OptOutState, Row, Stage, is_date};
use campaign_core::finding::{Finding, join_names};
use campaign_manifest::{CampaignBrief, missing_text_reason};

/// A column of the list that is not a phone column.
#[derive(Clone, Debug)]
pub struct ListColumn {
    /// The position of the column in the list, from 0.
    pub index: usize,
    /// The header in the list.
    pub header: String,
    /// The name in templates.
    pub name: String,
    /// Whether the campaign uses the column.
    pub is_used: bool,
}

/// The columns of a list except the phone columns, each marked as used or unused.
pub(super) fn list_columns(header: &ListHeader, used: &BTreeSet<usize>) -> Vec<ListColumn> {
    let columns =
        header.headers().iter().zip(header.names()).enumerate().filter(|(index, _)| !header.phones().contains(*index));
    let describe_column = |(index, (header, name)): (usize, (&String, &String))| ListColumn {
        index,
        header: header.clone(),
        name: name.clone(),
        is_used: used.contains(&index),
    };
    columns.map(describe_column).collect()
}

/// Rows whose messages show an empty cell of one column in one text.
#[derive(Clone, Debug)]
pub struct EmptyCells {
    /// The first use of the column in the text.
    pub place: EmptyCellPlace,
    /// The channels and keys whose messages the text is part of.
    pub messages: Vec<(Channel, &'static str)>,
    /// The planned rows whose messages show the empty cell.
    pub rows: RoaringBitmap,
}

/// The rows of each use of an empty cell, by variant.
#[derive(Debug, Default)]
pub(super) struct EmptyUses(BTreeMap<(usize, EmptyCellUse), RoaringBitmap>);

impl EmptyUses {
    /// Adds the empty cells that the message for a row uses.
    pub(super) fn add_row(&mut self, row: Row, arm: usize, uses: Vec<EmptyCellUse>) {
        for cell_use in uses {
            self.0.entry((arm, cell_use)).or_default().insert(row.get());
        }
    }

    /// Groups the rows with empty cells by text and column. `finders` has one entry for each variant.
    pub(super) fn group_by_text(&self, finders: &[EmptyCellFinder<'_>]) -> Vec<EmptyCells> {
        let mut cells: Vec<EmptyCells> = Vec::new();
        for ((arm, cell_use), rows) in &self.0 {
            let Some(place) = finders.get(*arm).and_then(|finder| finder.find_place(*cell_use)) else { continue };
            let message = (place.channel, place.key);
            let is_same =
                |entry: &&mut EmptyCells| entry.place.name == place.name && entry.place.text.name == place.text.name;
            match cells.iter_mut().find(is_same) {
                Some(entry) => {
                    entry.rows |= rows;
                    if !entry.messages.contains(&message) {
                        entry.messages.push(message);
                    }
                    if place.span.start < entry.place.span.start {
                        entry.place = place;
                    }
                }
                None => cells.push(EmptyCells { place, messages: vec![message], rows: rows.clone() }),
            }
        }
        cells
    }
}

/// The maximum number of distinct values that are kept for rows without an opt-out.
const MAX_OTHER_VALUES: usize = 6;
/// The maximum number of distinct values that are kept for opted-out rows. More are not needed, because only a few
/// words mean an opt-out.
const MAX_OPT_OUT_VALUES: usize = 64;
/// The maximum number of distinct cells of a column whose opt-out states are cached.
const MAX_CACHED_STATES: usize = 1_024;

/// A column that records opt-outs, with the planned rows whose cells contain one.
#[derive(Clone, Debug)]
pub struct OptedOutCells {
    /// The header of the column.
    pub header: String,
    /// The name in templates.
    pub name: String,
    /// The planned rows whose cell means an opt-out.
    pub rows: RoaringBitmap,
    /// The opt-out values in these rows.
    pub values: DistinctValues,
    /// Whether one of these values is a date. Later lists contain other dates.
    pub has_dates: bool,
    /// The values of all other rows.
    pub others: DistinctValues,
    index: usize,
    kind: OptOutColumn,
    states: FxHashMap<Box<str>, Option<OptOutState>>,
}

/// The distinct values of a column.
#[derive(Clone, Debug, Default)]
pub struct DistinctValues {
    /// The first values.
    pub values: BTreeSet<String>,
    /// Whether the column has more values.
    pub has_more: bool,
}

impl DistinctValues {
    /// The only value, or `None` if there are none or several.
    pub fn single_value(&self) -> Option<&str> {
        self.values.first().filter(|_| self.values.len() == 1 && !self.has_more).map(String::as_str)
    }

    /// Adds a cell, trimmed as conditions see it.
    fn add_value(&mut self, cell: &str, max_values: usize) {
        let value = cell.trim();
        if self.values.contains(value) || self.has_more {
            return;
        }
        if self.values.len() == max_values {
            self.has_more = true;
        } else {
            self.values.insert(value.to_owned());
        }
    }
}

impl OptedOutCells {
    /// Creates an empty set of cells for each column that records opt-outs.
    pub(super) fn from_columns(columns: &[ListColumn]) -> Vec<Self> {
        let create_cells = |ListColumn { index, header, name, .. }: &ListColumn| {
            Some(Self {
                header: header.clone(),
                name: name.clone(),
                rows: RoaringBitmap::new(),
                values: DistinctValues::default(),
                has_dates: false,
                others: DistinctValues::default(),
                index: *index,
                kind: OptOutColumn::from_header(header)?,
                states: FxHashMap::default(),
            })
        };
        columns.iter().filter_map(create_cells).collect()
    }

    /// Records a planned row's cell, as an opt-out or as another value.
    pub(super) fn add_row(&mut self, row: Row, fields: RecordFields<'_>) {
        let value = fields.get(self.index);
        let state = self.states.get(value).copied().unwrap_or_else(|| {
            let state = self.kind.read_state(value);
            if self.states.len() < MAX_CACHED_STATES {
                self.states.insert(value.into(), state);
            }
            state
        });
        if state == Some(OptOutState::OptedOut) {
            self.rows.insert(row.get());
            self.values.add_value(value, MAX_OPT_OUT_VALUES);
            self.has_dates = self.has_dates || is_date(value);
        } else {
            self.others.add_value(value, MAX_OTHER_VALUES);
        }
    }
}

/// The maximum number of distinct cells of a column that a finding names.
const MAX_NAMED: usize = 5;

/// The cells that match no text, by the column that chooses the text.
#[derive(Clone, Debug, Default)]
pub(super) struct UnmatchedCells {
    columns: Vec<SelectorColumn>,
}

#[derive(Clone, Debug)]
struct SelectorColumn {
    index: usize,
    /// The name in the campaign file.
    name: String,
    /// The beginning of the reason for rows whose cells match no text.
    reason: String,
    /// The distinct cells, up to one more than a finding names.
    cells: BTreeSet<String>,
}

impl UnmatchedCells {
    /// The columns that select texts in a campaign, each with an empty set of unmatched cells.
    pub(super) fn for_campaign(brief: &CampaignBrief, header: &ListHeader) -> Self {
        let texts = || brief.all_contents().flat_map(|content| &content.stages).flat_map(Stage::texts);
        let names = header.names().iter().chain(header.headers());
        let find_selector_column = |name: &String| {
            let reason = missing_text_reason(name);
            let selects_text = texts().any(|(_, text)| text.source.contains(&reason));
            let index = header.find_column(name).filter(|_| selects_text)?;
            Some(SelectorColumn { index, name: name.clone(), reason, cells: BTreeSet::new() })
        };
        let mut columns: Vec<SelectorColumn> = Vec::new();
        for column in names.filter_map(find_selector_column) {
            if columns.iter().all(|other| other.index != column.index) {
                columns.push(column);
            }
        }
        Self { columns }
    }

    /// Records the cell of an invalid row, if `reason` says that no text matches the cell.
    pub(super) fn add_cell(&mut self, fields: RecordFields<'_>, reason: &str) {
        let Some(column) = self.columns.iter_mut().find(|column| column.is_unmatched_reason(reason)) else { return };
        let cell = fields.get(column.index).trim();
        if column.cells.len() <= MAX_NAMED && !column.cells.contains(cell) {
            column.cells.insert(cell.to_owned());
        }
    }

    /// Whether this reason says that no text matches a cell.
    pub(super) fn is_unmatched_reason(&self, reason: &str) -> bool {
        self.columns.iter().any(|column| column.is_unmatched_reason(reason))
    }

    /// Adds help about the unmatched cells to `finding`, if `reason` says that no text matches a cell.
    pub(super) fn add_cells_help(&self, finding: Finding, reason: &str) -> Finding {
        match self.columns.iter().find(|column| column.is_unmatched_reason(reason)) {
            Some(column) => finding.help(column.format_help()),
            None => finding,
        }
    }
}

impl SelectorColumn {
    fn is_unmatched_reason(&self, reason: &str) -> bool {
        // The name of another column can begin with the name of this one.
        reason.strip_prefix(&self.reason).is_some_and(|rest| rest.starts_with(", only for "))
    }

    fn format_help(&self) -> String {
        let words = self.cells.iter().filter(|cell| !cell.is_empty()).take(MAX_NAMED);
        let cells = join_names(words.map(String::as_str));
        let more = if self.cells.len() > MAX_NAMED { " and others" } else { "" };
        let name = &self.name;
        let else_help = "add `else` with a message for all other rows";
        match (cells.is_empty(), self.cells.contains("")) {
            (true, _) => format!("fill in the empty cells in `{name}`, or {else_help}"),
            (false, true) => format!(
                "add {cells}{more} under `texts`, spelled as in the column `{name}`; some cells are empty, so also \
                 {else_help}"
            ),
            (false, false) => {
                format!("add {cells}{more} under `texts`, spelled as in the column `{name}`, or {else_help}")
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
    fn help_names_missing_languages_and_empty_cells() {
        assert!(column(&["uk-UA", "en-GB"]).format_help().starts_with("add `en-GB` and `uk-UA` under `texts`"));
        assert!(column(&[""]).format_help().starts_with("fill in the empty cells in `language`"));
        assert!(column(&["", "pl"]).format_help().contains("some cells are empty"));
        assert!(column(&["a", "b", "c", "d", "e", "f"]).format_help().contains("`e` and others under"));
    }

    #[test]
    fn reason_for_another_column_does_not_match() {
        let column = column(&[]);
        let reason_for = |name: &str| format!("{}, only for ua (sale.yaml:3:5)", missing_text_reason(name));
        assert!(column.is_unmatched_reason(&reason_for("language")));
        assert!(!column.is_unmatched_reason(&reason_for("language_of_parents")));
        assert!(!column.is_unmatched_reason("no phone number"));
    }
}
