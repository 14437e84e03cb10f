//! Why a decision about rows in doubt was not recorded.

use std::path::PathBuf;

use crate::domain::{Row, format_count, format_thousands};
use crate::finding::Finding;
use crate::ledger::RowState;

/// Why a decision about rows in doubt was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum DecisionRefusal {
    /// A row cannot become what was decided.
    #[error("row {row} is {}, so this decision does not apply; no decision was recorded", .state.format_words())]
    NotApplicable {
        /// The row.
        row: Row,
        /// Its state.
        state: RowState,
    },
    /// A row that was named needs no decision.
    #[error("row {row} is {}, not in doubt; no decision was recorded", .state.format_words())]
    NotInDoubt {
        /// The row.
        row: Row,
        /// Its state.
        state: RowState,
    },
    /// No row of a run needs a decision.
    #[error("{run} has no messages in doubt")]
    Nothing {
        /// The run.
        run: String,
    },
    /// The decision can lead to duplicates, and their number was not accepted.
    #[error("{}", describe_duplicates(*.rows, *.said))]
    DuplicatesNotAccepted {
        /// How many rows it is about.
        rows: u64,
        /// How many were accepted.
        said: Option<u64>,
    },
    /// A newer run replaced the run.
    #[error("this run was replaced by a newer one and cannot send again; no decision was recorded")]
    Replaced,
    /// A file with identifiers cannot be read.
    #[error("cannot read `{path}`; no decision was recorded")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        finding: Box<Finding>,
    },
    /// A file has no columns that name messages.
    #[error("`{path}` has neither a column `id` nor the columns `row` and `to`; no decision was recorded")]
    NoIds {
        /// The file.
        path: PathBuf,
        /// The run whose identifiers are expected.
        run: String,
    },
    /// A spreadsheet shortened the numbers in a file.
    #[error(
        "`{path}`, row {row}: a spreadsheet shortened the number `{cell}`, so it no longer identifies a message; no \
         decision was recorded"
    )]
    Shortened {
        /// The file.
        path: PathBuf,
        /// The row in the file.
        row: Row,
        /// The shortened number.
        cell: String,
        /// The run.
        run: String,
    },
    /// A line of a file names no message of the run.
    #[error("`{path}`, row {row}: {named} in {run}; no decision was recorded")]
    ForeignId {
        /// The file.
        path: PathBuf,
        /// The row in the file.
        row: Row,
        /// What stands there, as it reads before "of" and the run.
        named: String,
        /// The run.
        run: String,
    },
}

fn describe_duplicates(rows: u64, said: Option<u64>) -> String {
    let told = format_count(rows, "row");
    match said {
        None => format!("{} might get the message twice; no decision was recorded", format_count(rows, "recipient")),
        Some(other) => {
            format!(
                "the decision affects {told}, but you accepted duplicates for {}; no decision was recorded",
                format_thousands(other)
            )
        }
    }
}
