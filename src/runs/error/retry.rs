//! Why rows of a run are not sent again.

use std::path::PathBuf;

use super::InputChanges;
use crate::domain::{format_count, format_thousands};
use crate::runs::RetryLeftOut;

/// Why rows of a run are not sent again.
#[derive(Debug, thiserror::Error)]
pub enum RetryRefusal {
    /// Another run is unfinished.
    #[error("cannot retry rows while {run} is unfinished; nothing was sent")]
    Unfinished {
        /// The run that is unfinished.
        run: String,
        /// The campaign file.
        file: PathBuf,
        /// The gateway.
        gateway: String,
    },
    /// A run with changed inputs replaced the run.
    #[error("{run} was ended because its inputs changed, so its rows cannot be retried")]
    Replaced {
        /// The run.
        run: String,
    },
    /// The inputs of the run changed.
    #[error("{}; nothing was sent", .changes.describe_since(.run))]
    Changed {
        /// The run.
        run: String,
        /// The campaign file.
        file: PathBuf,
        /// The gateway.
        gateway: String,
        /// What changed.
        changes: InputChanges,
    },
    /// No row can be sent again.
    #[error("{}", describe_nothing(.run, *.failed, .error.as_deref(), *.left_out))]
    Nothing {
        /// The run.
        run: String,
        /// How many messages failed and were not included.
        failed: u64,
        /// Words that the errors had to contain.
        error: Option<String>,
        /// Rows that are not sent again, by their reason.
        left_out: RetryLeftOut,
    },
    /// The gateway did not confirm that messages failed.
    #[error("{}", describe_unconfirmed(.run, *.rows, *.said))]
    Unconfirmed {
        /// The run.
        run: String,
        /// Their number.
        rows: u64,
        /// The number of duplicates that were accepted.
        said: Option<u64>,
    },
}

fn describe_nothing(run: &str, failed: u64, error: Option<&str>, left_out: RetryLeftOut) -> String {
    let which = error.map(|error| format!(" whose error contains `{error}`")).unwrap_or_default();
    let RetryLeftOut { delivered, under_way, unconfirmed: _, guarded } = left_out;
    let mut message = format!("{run} has no rows to retry{which}");
    if guarded > 0 {
        message += &format!(
            "; {} opted out, already got the message in another run, or {} skipped earlier",
            format_count(guarded, "recipient"),
            crate::domain::choose_plural(guarded, "was", "were")
        );
    }
    for (rows, what) in [(delivered, "delivered"), (under_way, "still being delivered")] {
        if rows > 0 {
            message += &format!("; the gateway reports {} as {what}", format_count(rows, "message"));
        }
    }
    if failed > 0 {
        message += &format!("; {} could not be delivered", format_count(failed, "message"));
    }
    message
}

fn describe_unconfirmed(run: &str, rows: u64, said: Option<u64>) -> String {
    let messages = format_count(rows, "message");
    let accepted = said.map(|said| format!(", and you accepted duplicates for {}", format_thousands(said)));
    let accepted = accepted.unwrap_or_default();
    format!("the gateway did not confirm that {messages} in {run} failed on every channel{accepted}; nothing was sent")
}
