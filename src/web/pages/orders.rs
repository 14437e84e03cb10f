//! Who ordered what through pages: a line for each order, written before it is done.
//!
//! What the ledger keeps of a decision has its author already; a stop and a pause have none there. No whole number of anybody
//! is in it.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::private::{self, Existing};

/// An order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    /// When it was given.
    pub(super) at: Timestamp,
    /// Who gave it.
    pub(super) by: String,
    /// What is to be done.
    pub(super) order: String,
    /// With what: a run, a schedule, a masked number.
    pub(super) of: String,
}

/// The file of the orders.
#[derive(Clone, Debug)]
pub(super) struct Orders(PathBuf);

impl Orders {
    /// Those of a state folder.
    pub(super) fn of(state: &Path) -> Self {
        Self(state.join("orders.jsonl"))
    }

    /// Keeps an order.
    ///
    /// # Errors
    /// When it cannot be written; then the order is not to be done.
    pub(super) fn keep(&self, order: &Order) -> io::Result<()> {
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        let mut file = private::file(&self.0, Existing::Continued)?;
        file.write_all(&line)?;
        file.sync_all()
    }

    /// The latest orders, the last first; of what cannot be read nothing.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn latest(&self, most: usize) -> io::Result<Vec<Order>> {
        let bytes = match fs::read(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            read => read?,
        };
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.lines().rev().filter_map(|line| serde_json::from_str(line).ok()).take(most).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_kept_and_the_latest_told_first() {
        let folder = tempfile::tempdir().unwrap();
        let orders = Orders::of(folder.path());
        assert_eq!(orders.latest(2).unwrap(), []);
        let order = |of: &str| Order {
            at: Timestamp::UNIX_EPOCH,
            by: "Olha".to_owned(),
            order: "stop".to_owned(),
            of: of.to_owned(),
        };
        for of in ["a@1", "b@1", "c@1"] {
            orders.keep(&order(of)).unwrap();
        }
        assert_eq!(orders.latest(2).unwrap(), [order("c@1"), order("b@1")]);
        let mut damaged = fs::read(&orders.0).unwrap();
        damaged.splice(0..1, [0xff]);
        fs::write(&orders.0, damaged).unwrap();
        assert_eq!(orders.latest(9).unwrap(), [order("c@1"), order("b@1")], "the others are told");
    }
}
