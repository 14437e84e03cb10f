//! The log of orders given through pages: a line before an order is carried out, and a line with its outcome.
//!
//! What the ledger keeps of a decision has its author already; a stop and a pause have none there. No whole phone number stands
//! in it.

use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::private::{self, ExistingFile};

/// The longest reason that is kept, in characters.
const MAX_REASON_LENGTH: usize = 500;

/// An order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OrderRecord {
    /// When it was given.
    pub(super) at: Timestamp,
    /// Who gave it.
    pub(super) by: String,
    /// What is to be done.
    pub(super) order: String,
    /// With what: a run, a schedule, a masked number.
    pub(super) of: String,
    /// What the lines of one order have in common; nothing in lines of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// What came of it; nothing in lines of earlier versions, which were written before that was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<OrderOutcome>,
    /// Why it was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

/// What came of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OrderOutcome {
    /// It is about to be carried out. If no other line follows, its outcome is unknown.
    Begun,
    /// It was done.
    Done,
    /// There was nothing to do.
    Unchanged,
    /// The rules of its command do not allow it. Nothing was done.
    Refused,
    /// The ledger or a file failed. It might be done.
    Failed,
}

impl OrderOutcome {
    /// Its word in the file and in the tables of words.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Done => "done",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

impl OrderRecord {
    /// An order that is about to be carried out.
    pub(super) fn new(at: Timestamp, by: String, order: &str, of: String) -> Self {
        let (id, outcome) = (Some(format!("{:016x}", rand::random::<u64>())), Some(OrderOutcome::Begun));
        Self { at, by, order: order.to_owned(), of, id, outcome, reason: None }
    }

    /// The same order with its outcome.
    pub(super) fn with_outcome(&self, outcome: OrderOutcome, reason: Option<&str>) -> Self {
        let reason = reason.map(|reason| reason.split_whitespace().collect::<Vec<_>>().join(" "));
        let reason = reason.map(|reason| reason.chars().take(MAX_REASON_LENGTH).collect());
        Self { outcome: Some(outcome), reason, ..self.clone() }
    }
}

/// The file of the orders.
#[derive(Clone, Debug)]
pub(super) struct OrderLog(PathBuf);

impl OrderLog {
    /// Those of a state folder.
    pub(super) fn in_state_folder(state: &Path) -> Self {
        Self(state.join("orders.jsonl"))
    }

    /// Keeps an order.
    ///
    /// # Errors
    /// When it cannot be written; then the order is not to be done.
    pub(super) fn append(&self, order: &OrderRecord) -> io::Result<()> {
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        let mut file = private::open_file(&self.0, ExistingFile::Append)?;
        file.write_all(&line)?;
        file.sync_all()
    }

    /// The latest orders, the last first, each with its outcome as far as that is known. Lines that cannot be read are skipped.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn read_latest(&self, most: usize) -> io::Result<Vec<OrderRecord>> {
        let bytes = match fs::read(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            read => read?,
        };
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().rev().filter_map(|line| serde_json::from_str::<OrderRecord>(line).ok());
        let mut ended = HashSet::new();
        // The line with the outcome stands behind the first one.
        let orders = lines.filter(|order| order.id.as_ref().is_none_or(|id| ended.insert(id.clone())));
        Ok(orders.take(most).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_order(of: &str) -> OrderRecord {
        OrderRecord::new(Timestamp::UNIX_EPOCH, "Olha".to_owned(), "stop", of.to_owned())
    }

    #[test]
    fn latest_orders_are_listed_first_with_their_outcomes() {
        let folder = tempfile::tempdir().unwrap();
        let orders = OrderLog::in_state_folder(folder.path());
        assert_eq!(orders.read_latest(2).unwrap(), []);
        let [first, second, third] = ["a@1", "b@1", "c@1"].map(test_order);
        let refused = first.with_outcome(OrderOutcome::Refused, Some("another process\n  sends it"));
        let done = second.with_outcome(OrderOutcome::Done, None);
        for line in [&first, &refused, &second, &done, &third] {
            orders.append(line).unwrap();
        }
        assert_eq!(orders.read_latest(2).unwrap(), [third.clone(), done.clone()]);
        assert_eq!(orders.read_latest(9).unwrap(), [third, done.clone(), refused.clone()]);
        assert_eq!(refused.reason.as_deref(), Some("another process sends it"));
        let mut damaged = fs::read(&orders.0).unwrap();
        let last = damaged.iter().rposition(|byte| *byte == b'{').unwrap();
        damaged[last] = 0xff;
        fs::write(&orders.0, damaged).unwrap();
        assert_eq!(orders.read_latest(9).unwrap(), [done, refused], "the other lines are read");
    }

    #[test]
    fn orders_of_earlier_versions_have_no_outcome() {
        let folder = tempfile::tempdir().unwrap();
        let orders = OrderLog::in_state_folder(folder.path());
        let line = r#"{"at":"1970-01-01T00:00:00Z","by":"Olha","order":"stop","of":"a@1"}"#;
        fs::write(&orders.0, format!("{line}\n{line}\n")).unwrap();
        let latest = orders.read_latest(9).unwrap();
        assert_eq!(latest.len(), 2);
        assert!(latest.iter().all(|order| order.outcome.is_none()));
    }
}
