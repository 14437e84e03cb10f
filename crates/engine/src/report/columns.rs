//! Columns of the results: name and value of each. Pure.
//!
//! Programs read columns by name, so a column never changes its name, and new columns are appended.

use std::borrow::Cow;

use campaign_content::audience::ListHeader;
use campaign_core::domain::{GatewayMessageId, OperationKind, Phone, Row};
use campaign_ledger::RowState;

/// A column of the results. These come before the columns of the recipient list.
pub(super) struct ResultColumn {
    pub(super) name: &'static str,
    pub(super) value: for<'c> fn(&'c ResultCells<'_>) -> ColumnValue<'c>,
}

/// The value of a cell.
pub(super) enum ColumnValue<'c> {
    /// A number, or empty.
    Number(Option<u64>),
    /// A text of digits only, or empty.
    Digits(Option<u64>),
    Text(&'c str),
}

/// The values of a row's cells. Empty texts have no value.
pub(super) struct ResultCells<'k> {
    pub(super) row: Row,
    pub(super) id: Option<u64>,
    pub(super) phone: Option<Phone>,
    pub(super) state: RowState,
    pub(super) kind: OperationKind,
    pub(super) msg_id: Option<&'k GatewayMessageId>,
    pub(super) request_id: &'k str,
    pub(super) parts: Option<u32>,
    pub(super) gateway_status: &'k str,
    pub(super) reason: Cow<'k, str>,
    pub(super) error: &'k str,
    pub(super) submitted_at: &'k str,
    pub(super) updated_at: Cow<'k, str>,
    pub(super) delivered_by: &'k str,
    pub(super) delivered_at: Cow<'k, str>,
    pub(super) answer: &'k str,
    pub(super) run: &'k str,
    pub(super) delivered_at_is: &'k str,
    pub(super) read_by: &'k str,
    pub(super) message_run: &'k str,
    pub(super) message_state: &'k str,
}

/// The columns, in order.
pub(super) const RESULT_COLUMNS: [ResultColumn; 21] = [
    // The row of the list; its header is row 1.
    ResultColumn { name: "row", value: |cells| ColumnValue::Number(Some(cells.row.get().into())) },
    // Our identifier of the last message; empty without a message.
    ResultColumn { name: "id", value: |cells| ColumnValue::Number(cells.id) },
    // The phone number, digits only.
    ResultColumn { name: "to", value: |cells| ColumnValue::Digits(cells.phone.map(Phone::to_u64)) },
    ResultColumn { name: "state", value: |cells| ColumnValue::Text(cells.state.name()) },
    // The operation type; empty if the row is never sent.
    ResultColumn {
        name: "operation",
        value: |cells| match cells.state {
            RowState::Skipped | RowState::Invalid => ColumnValue::Text(""),
            _ => ColumnValue::Text(cells.kind.name()),
        },
    },
    // The gateway's identifier for the message.
    ResultColumn {
        name: "msg_id",
        value: |cells| match cells.msg_id {
            Some(GatewayMessageId::Number(number)) => ColumnValue::Digits(Some(*number)),
            Some(GatewayMessageId::Text(text)) => ColumnValue::Text(text),
            None => ColumnValue::Text(""),
        },
    },
    // The gateway's identifier of a queued request.
    ResultColumn { name: "request_id", value: |cells| ColumnValue::Text(cells.request_id) },
    // Billed parts, as the gateway reported them.
    ResultColumn { name: "parts", value: |cells| ColumnValue::Number(cells.parts.map(u64::from)) },
    // The status in the gateway's words, if it reported one.
    ResultColumn { name: "gateway_status", value: |cells| ColumnValue::Text(cells.gateway_status) },
    // The reason for the state, in our words.
    ResultColumn { name: "reason", value: |cells| ColumnValue::Text(&cells.reason) },
    // The gateway's error text for a rejected message.
    ResultColumn { name: "error", value: |cells| ColumnValue::Text(cells.error) },
    // The times of the last attempt and of the last update, in UTC.
    ResultColumn { name: "submitted_at", value: |cells| ColumnValue::Text(cells.submitted_at) },
    ResultColumn { name: "updated_at", value: |cells| ColumnValue::Text(&cells.updated_at) },
    // The channel that delivered the message, and the time by the gateway's clock.
    ResultColumn { name: "delivered_by", value: |cells| ColumnValue::Text(cells.delivered_by) },
    ResultColumn { name: "delivered_at", value: |cells| ColumnValue::Text(&cells.delivered_at) },
    // The answer of a lookup or a code call, as JSON.
    ResultColumn { name: "answer", value: |cells| ColumnValue::Text(cells.answer) },
    // The run, such as `welcome@3`.
    ResultColumn { name: "run", value: |cells| ColumnValue::Text(cells.run) },
    // How certain `delivered_at` is: exact, at_latest or uncertain.
    ResultColumn { name: "delivered_at_is", value: |cells| ColumnValue::Text(cells.delivered_at_is) },
    // The channel that reported the reading.
    ResultColumn { name: "read_by", value: |cells| ColumnValue::Text(cells.read_by) },
    // The run whose message has these identifiers, and the state of that message: those of an earlier run if the row was
    // skipped because its recipient has that message.
    ResultColumn { name: "message_run", value: |cells| ColumnValue::Text(cells.message_run) },
    ResultColumn { name: "message_state", value: |cells| ColumnValue::Text(cells.message_state) },
];

/// The names of the columns.
pub(super) const COLUMN_NAMES: [&str; RESULT_COLUMNS.len()] = {
    let mut names = [""; RESULT_COLUMNS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = RESULT_COLUMNS[at].name;
        at += 1;
    }
    names
};

/// The columns of the listed runs' recipient lists, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct RecipientColumns {
    columns: Vec<RecipientColumn>,
    /// Whether a run has variants, which have a column before these.
    pub(super) has_variants: bool,
}

/// A column of a recipient list.
#[derive(Clone, Debug)]
struct RecipientColumn {
    /// Its header, which may be empty.
    header: String,
    /// The key that distinguishes it: its header, or its name if the header is empty.
    key: String,
}

impl RecipientColumns {
    /// Adds the columns of a list that are missing.
    pub(super) fn add_header(&mut self, header: &ListHeader) {
        let keys: Vec<String> = self.columns.iter().map(|own| own.key.clone()).collect();
        let new = header_columns(header).filter(|own| !keys.contains(&own.key));
        self.columns.extend(new);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The headers as the lists have them; several can be empty.
    pub(super) fn headers(&self) -> impl Iterator<Item = &String> {
        self.columns.iter().map(|own| &own.header)
    }

    /// The keys of the columns, which are unique.
    pub(super) fn keys(&self) -> impl Iterator<Item = &String> {
        self.columns.iter().map(|own| &own.key)
    }

    /// The position of each of these columns in a list, if it has them.
    pub(super) fn find_positions(&self, header: &ListHeader) -> Vec<Option<usize>> {
        let theirs: Vec<RecipientColumn> = header_columns(header).collect();
        self.columns.iter().map(|own| theirs.iter().position(|other| other.key == own.key)).collect()
    }
}

fn header_columns(header: &ListHeader) -> impl Iterator<Item = RecipientColumn> {
    header.headers().iter().zip(header.names()).map(|(header, name)| RecipientColumn {
        header: header.clone(),
        key: if header.is_empty() { name } else { header }.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_lists_every_column_in_order() {
        let document = include_str!("../../../../docs/results.md");
        let (_, table) = document.split_once("| column | |\n|---|---|\n").unwrap();
        let rows = table.lines().take_while(|line| line.starts_with('|'));
        let cells = rows.filter_map(|line| line.split('|').nth(1));
        // Several columns can share a row: `delivered_by`, `delivered_at`.
        let columns: Vec<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        assert_eq!(columns, COLUMN_NAMES);
    }
}
