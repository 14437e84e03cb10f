//! Why something was not done. Surfaces find the words.

use std::path::PathBuf;

use super::Refusal;
use crate::delivery::OneOff;
use crate::domain::Row;
use crate::finding::Finding;
use crate::gateway::{JsonApiError, Unanswered};
use crate::ledger::LedgerError;
use crate::report::{ResultsError, Sign};

/// Why something was not done. A text is what a layer below said.
#[derive(Debug)]
pub enum Error {
    /// The inputs are wrong.
    Findings(Vec<Finding>),
    /// The gateway refused the key; the findings tell it, with what else is wrong.
    KeyRefused(Vec<Finding>),
    /// An input cannot be read or used.
    Input(String),
    /// No client of the gateway can be made.
    Client(JsonApiError),
    /// The account gave no good answer.
    Unanswered {
        /// The profile.
        gateway: String,
        /// Why, and whether it is proven that nothing was done.
        answer: Unanswered,
    },
    /// There is no run of that name.
    NoSuchRun {
        /// The name.
        name: String,
        /// A run with nearly that name.
        near: Option<String>,
    },
    /// Another process sends the campaign.
    Busy {
        /// The campaign.
        campaign: String,
        /// The gateway.
        gateway: String,
    },
    /// Another process sends the campaign, so nothing of its run can be asked or decided about.
    BusyRun {
        /// The campaign.
        campaign: String,
        /// The gateway.
        gateway: String,
    },
    /// Another process took the run meanwhile.
    Taken {
        /// The run.
        run: String,
    },
    /// A run is unfinished, so everybody cannot be sent to once more.
    RoundUnfinished {
        /// The run.
        run: String,
    },
    /// A run is unfinished, so rejected rows of another cannot be sent again.
    RetryUnfinished {
        /// The run that is unfinished.
        run: String,
        /// The campaign file.
        file: PathBuf,
        /// The gateway.
        gateway: String,
    },
    /// Nothing of this run goes on, because a newer one took its place.
    Replaced {
        /// The run.
        run: String,
    },
    /// A lookup or a code call is never repeated.
    SingleQuestion {
        /// The run.
        run: String,
    },
    /// The name of a lookup or a code call was given for a campaign.
    NoCampaign(OneOff),
    /// A run cannot go on, because what it was begun with changed.
    InputsChanged {
        /// The run.
        run: String,
        /// What changed, in words.
        changes: Vec<String>,
        /// Whether the run's own copies are damaged.
        damaged: bool,
    },
    /// Rejected rows cannot be sent again, because what their run was begun with changed.
    RetryChanged {
        /// The run.
        run: String,
        /// What changed, in words.
        changes: Vec<String>,
    },
    /// There is no yes.
    NotConfirmed(Refusal),
    /// Everybody would be another number than was said.
    OtherNumber {
        /// The number that was said.
        said: u64,
        /// The number of recipients.
        number: u64,
    },
    /// More recipients than the profile allows.
    TooManyRecipients {
        /// The number of recipients.
        number: u64,
        /// How many are allowed.
        limit: u64,
    },
    /// There is no such row.
    NoSuchRow {
        /// The row.
        row: Row,
        /// The row of the last recipient.
        last: Row,
    },
    /// None of the rows that were asked for is left to send.
    NoRowsLeft,
    /// No rejected row can be sent again.
    NothingToRetry {
        /// The run.
        run: String,
        /// The words that the errors were to have.
        error: Option<String>,
        /// Rows that got a message by another run meanwhile.
        guarded: u64,
    },
    /// A profile's host is not the one that it had at its first use.
    HostChanged {
        /// The profile.
        gateway: String,
        /// The host that it had.
        known: String,
        /// The host that it has now.
        now: String,
    },
    /// Messages went out that the ledger does not know of.
    LedgerLost {
        /// The state folder.
        state: PathBuf,
        /// How that is known.
        signs: Vec<Sign>,
    },
    /// The ledger failed.
    Ledger(LedgerError),
    /// The results cannot be written or read.
    Results(ResultsError),
    /// Results cannot take this place.
    ResultsPlace(String),
    /// Something in the state folder cannot be read or written.
    Storage(String),
    /// A signal of this number came.
    Interrupted {
        /// Its number.
        signal: u8,
        /// What it interrupted.
        stage: Stage,
    },
    /// A bug.
    Internal(String),
}

/// What an interrupt came into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing was sent yet.
    Preparing,
    /// So many messages were on their way, and are in doubt from now on.
    Sending(u64),
    /// Everything was sent that was going to be.
    Ending,
}

impl From<LedgerError> for Error {
    fn from(error: LedgerError) -> Self {
        Error::Ledger(error)
    }
}

impl From<ResultsError> for Error {
    fn from(error: ResultsError) -> Self {
        Error::Results(error)
    }
}
