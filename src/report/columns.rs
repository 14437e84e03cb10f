//! The columns of the results: of each its name, what it tells, and the value that stands in it. Pure.
//!
//! Programs read them by their names: a column keeps its name, and a new one comes behind the others.

use std::borrow::Cow;

use crate::domain::{GatewayMessageId, OperationKind, Phone, Row};
use crate::ledger::RowState;

/// A column of ours; they stand before the recipient's own.
pub(super) struct ResultColumn {
    pub(super) name: &'static str,
    pub(super) value: for<'c> fn(&'c ResultCells<'_>) -> ColumnValue<'c>,
}

/// What stands in a cell.
pub(super) enum ColumnValue<'c> {
    /// A number, or nothing.
    Number(Option<u64>),
    /// A text of digits only, or nothing.
    Digits(Option<u64>),
    Text(&'c str),
}

/// All that the cells of a row tell; a text that is empty has nothing to tell.
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

/// The columns in their order.
pub(super) const RESULT_COLUMNS: [ResultColumn; 21] = [
    // The row of the list; its header is row 1.
    ResultColumn { name: "row", value: |cells| ColumnValue::Number(Some(cells.row.get().into())) },
    // Our identifier of the last message; none where there was none.
    ResultColumn { name: "id", value: |cells| ColumnValue::Number(cells.id) },
    // The number, digits only.
    ResultColumn { name: "to", value: |cells| ColumnValue::Digits(cells.phone.map(Phone::to_u64)) },
    ResultColumn { name: "state", value: |cells| ColumnValue::Text(cells.state.name()) },
    // The type that it is sent as, unless it is never sent.
    ResultColumn {
        name: "operation",
        value: |cells| match cells.state {
            RowState::Skipped | RowState::Invalid => ColumnValue::Text(""),
            _ => ColumnValue::Text(cells.kind.name()),
        },
    },
    // The gateway's identifier of the message.
    ResultColumn {
        name: "msg_id",
        value: |cells| match cells.msg_id {
            Some(GatewayMessageId::Number(number)) => ColumnValue::Digits(Some(*number)),
            Some(GatewayMessageId::Text(text)) => ColumnValue::Text(text),
            None => ColumnValue::Text(""),
        },
    },
    // The gateway's identifier of an envelope that it queued.
    ResultColumn { name: "request_id", value: |cells| ColumnValue::Text(cells.request_id) },
    // Billed parts, as the gateway says.
    ResultColumn { name: "parts", value: |cells| ColumnValue::Number(cells.parts.map(u64::from)) },
    // The gateway's own word, where it told one.
    ResultColumn { name: "gateway_status", value: |cells| ColumnValue::Text(cells.gateway_status) },
    // Why it is in its state, in our words.
    ResultColumn { name: "reason", value: |cells| ColumnValue::Text(&cells.reason) },
    // The gateway's words when it refused it.
    ResultColumn { name: "error", value: |cells| ColumnValue::Text(cells.error) },
    // When its last attempt was recorded, and when the last was learnt of it; UTC.
    ResultColumn { name: "submitted_at", value: |cells| ColumnValue::Text(cells.submitted_at) },
    ResultColumn { name: "updated_at", value: |cells| ColumnValue::Text(&cells.updated_at) },
    // The channel that delivered it, and when, by the gateway's clock.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_lists_every_column_in_order() {
        let document = include_str!("../../docs/results.md");
        let (_, table) = document.split_once("| column | |\n|---|---|\n").unwrap();
        let rows = table.lines().take_while(|line| line.starts_with('|'));
        let cells = rows.filter_map(|line| line.split('|').nth(1));
        // Several columns may share a row: `delivered_by`, `delivered_at`.
        let told: Vec<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        assert_eq!(told, COLUMN_NAMES);
    }
}
