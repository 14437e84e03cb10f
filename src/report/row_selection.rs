//! The rows of a run that a person selects. Pure.

use super::row_records::RowRecord;
use crate::domain::{Channel, Phone, Row, RowSet};
use crate::ledger::RowState;

/// The conditions for a row to be listed. All must match; the default lists every row.
#[derive(Clone, Debug, Default)]
pub struct RowSelection {
    /// Only these rows.
    pub rows: Option<RowSet>,
    /// Only the rows of this number.
    pub phone: Option<Phone>,
    /// Only rows in one of these states; all if there are none.
    pub states: Vec<RowState>,
    /// Only rows whose error contains one of these texts, in any case; all if there are none.
    pub errors: Vec<String>,
    /// Only rows whose message counts for one of these channels; all if there are none.
    pub channels: Vec<Channel>,
}

impl RowSelection {
    /// Only rows in one of these states; all if there are none.
    #[must_use]
    pub fn for_states(states: Vec<RowState>) -> Self {
        Self { states, ..Self::default() }
    }

    /// Whether every row is listed.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        let Self { rows, phone, states, errors, channels } = self;
        rows.is_none() && phone.is_none() && states.is_empty() && errors.is_empty() && channels.is_empty()
    }

    /// Whether the conditions that need no cells match.
    pub(super) fn matches(&self, row: Row, state: RowState, record: Option<&RowRecord>) -> bool {
        let channel = || record.and_then(RowRecord::channel);
        self.rows.as_ref().is_none_or(|rows| rows.contains(row))
            && (self.states.is_empty() || self.states.contains(&state))
            && (self.channels.is_empty() || channel().is_some_and(|channel| self.channels.contains(&channel)))
    }

    /// Whether the conditions about number and error match; without an error, the status of the gateway counts.
    pub(super) fn matches_cells(&self, phone: Option<Phone>, error: &str, status: &str) -> bool {
        let error = if error.is_empty() { status } else { error }.to_lowercase();
        (self.phone.is_none() || self.phone == phone)
            && (self.errors.is_empty() || self.errors.iter().any(|text| error.contains(&text.to_lowercase())))
    }

    /// Whether a row's cells decide about it.
    pub(super) fn needs_cells(&self) -> bool {
        self.phone.is_some() || !self.errors.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_selection_combines_all_conditions() {
        let selection = RowSelection {
            rows: Some("2-4".parse().unwrap()),
            states: vec![RowState::Rejected],
            errors: vec!["no ROUTE".to_owned(), "money".to_owned()],
            ..RowSelection::default()
        };
        assert!(selection.matches(Row::new(3), RowState::Rejected, None));
        assert!(!selection.matches(Row::new(5), RowState::Rejected, None));
        assert!(!selection.matches(Row::new(3), RowState::Accepted, None));
        assert!(selection.matches_cells(None, "No route", ""));
        assert!(selection.matches_cells(None, "", "NO ROUTE"), "the status counts without an error");
        assert!(!selection.matches_cells(None, "Timeout", "NO ROUTE"));
        let by_channel = RowSelection { channels: vec![Channel::Sms], ..RowSelection::default() };
        assert!(!by_channel.matches(Row::new(2), RowState::Planned, None), "nothing was sent by any channel");
        assert!(RowSelection::default().is_everything() && !by_channel.is_everything());
    }
}
