//! The columns of the results: of each its name, what it tells, and the value that stands in it. Pure.
//!
//! Programs read them by their names: a column keeps its name, and a new one comes behind the others.

use std::borrow::Cow;

use crate::domain::{MsgId, OperationKind, Phone, Row};
use crate::ledger::State;

/// A column of ours; they stand before the recipient's own.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) value: for<'c> fn(&'c Cells<'_>) -> Value<'c>,
}

/// What stands in a cell.
pub(super) enum Value<'c> {
    /// A number, or nothing.
    Number(Option<u64>),
    /// A text of digits only, or nothing.
    Digits(Option<u64>),
    Text(&'c str),
}

/// All that the cells of a row tell; a text that is empty has nothing to tell.
pub(super) struct Cells<'k> {
    pub(super) row: Row,
    pub(super) id: Option<u64>,
    pub(super) phone: Option<Phone>,
    pub(super) state: State,
    pub(super) kind: OperationKind,
    pub(super) msg_id: Option<&'k MsgId>,
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
pub(super) const TABLE: [Column; 21] = [
    // The row of the list; its header is row 1.
    Column { name: "row", value: |cells| Value::Number(Some(cells.row.get().into())) },
    // Our identifier of the last message; none where there was none.
    Column { name: "id", value: |cells| Value::Number(cells.id) },
    // The number, digits only.
    Column { name: "to", value: |cells| Value::Digits(cells.phone.map(Phone::get)) },
    Column { name: "state", value: |cells| Value::Text(cells.state.name()) },
    // The type that it is sent as, unless it is never sent.
    Column {
        name: "operation",
        value: |cells| match cells.state {
            State::Skipped | State::Invalid => Value::Text(""),
            _ => Value::Text(cells.kind.name()),
        },
    },
    // The gateway's identifier of the message.
    Column {
        name: "msg_id",
        value: |cells| match cells.msg_id {
            Some(MsgId::Number(number)) => Value::Digits(Some(*number)),
            Some(MsgId::Text(text)) => Value::Text(text),
            None => Value::Text(""),
        },
    },
    // The gateway's identifier of an envelope that it queued.
    Column { name: "request_id", value: |cells| Value::Text(cells.request_id) },
    // Billed parts, as the gateway says.
    Column { name: "parts", value: |cells| Value::Number(cells.parts.map(u64::from)) },
    // The gateway's own word, where it told one.
    Column { name: "gateway_status", value: |cells| Value::Text(cells.gateway_status) },
    // Why it is in its state, in our words.
    Column { name: "reason", value: |cells| Value::Text(&cells.reason) },
    // The gateway's words when it refused it.
    Column { name: "error", value: |cells| Value::Text(cells.error) },
    // When its last attempt was recorded, and when the last was learnt of it; UTC.
    Column { name: "submitted_at", value: |cells| Value::Text(cells.submitted_at) },
    Column { name: "updated_at", value: |cells| Value::Text(&cells.updated_at) },
    // The channel that delivered it, and when, by the gateway's clock.
    Column { name: "delivered_by", value: |cells| Value::Text(cells.delivered_by) },
    Column { name: "delivered_at", value: |cells| Value::Text(&cells.delivered_at) },
    // The answer of a lookup or a code call, as JSON.
    Column { name: "answer", value: |cells| Value::Text(cells.answer) },
    // The run, such as `welcome@3`.
    Column { name: "run", value: |cells| Value::Text(cells.run) },
    // How certain `delivered_at` is: exact, at_latest or uncertain.
    Column { name: "delivered_at_is", value: |cells| Value::Text(cells.delivered_at_is) },
    // The channel that reported the reading.
    Column { name: "read_by", value: |cells| Value::Text(cells.read_by) },
    // The run whose message has these identifiers, and the state of that message: those of an earlier run if the row was
    // skipped because its recipient has that message.
    Column { name: "message_run", value: |cells| Value::Text(cells.message_run) },
    Column { name: "message_state", value: |cells| Value::Text(cells.message_state) },
];

/// The names of the columns.
pub(super) const NAMES: [&str; TABLE.len()] = {
    let mut names = [""; TABLE.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = TABLE[at].name;
        at += 1;
    }
    names
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_tell_of_each_column_in_the_order_of_the_results() {
        let document = include_str!("../../docs/results.md");
        let (_, table) = document.split_once("| column | |\n|---|---|\n").unwrap();
        let rows = table.lines().take_while(|line| line.starts_with('|'));
        let cells = rows.filter_map(|line| line.split('|').nth(1));
        // Several columns may share a row: `delivered_by`, `delivered_at`.
        let told: Vec<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        assert_eq!(told, NAMES);
    }
}
