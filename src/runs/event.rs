//! What is told while a run is prepared, sent and ended. It knows nothing of who listens.

use std::sync::Arc;

use jiff::Timestamp;

use super::{RetriedError, RetryLeftOut, RetryScope, StaleResults};
use crate::check::online::Cost;
use crate::delivery::{self, Reconciliation};
use crate::finding::Finding;
use crate::gateway::Balance;
use crate::ledger::SlotWait;
use crate::report::{LossSign, ResultsBackup};

/// Something that happened.
#[derive(Debug)]
pub enum RunEvent {
    /// Something is wrong that refuses nothing.
    Warnings(Vec<Finding>),
    /// Profiles that stand beside the one that is used cannot be used themselves.
    OtherProfiles(Vec<Finding>),
    /// Webhooks to the address of a profile cannot be taken.
    HookUnusable {
        /// The profile.
        profile: String,
        /// Why not.
        reason: String,
    },
    /// Messages went out that the ledger does not know of: what it says may be wrong.
    Contradicted(LossSign),
    /// A list is fetched from where the campaign says.
    Fetching {
        /// From where, in words.
        what: String,
    },
    /// People of an earlier run are meant, and of some of its messages more may be learnt.
    NotFinal {
        /// The run.
        run: String,
        /// How many, in words.
        messages: String,
    },
    /// What contradicted the ledger has this name from now on.
    PutAside {
        /// What contradicted it.
        sign: LossSign,
        /// Its new place.
        aside: String,
    },
    /// The results of another run were moved, because this run writes to their place.
    ResultsKept(ResultsBackup),
    /// A question about the account waits for the account's pace.
    WaitingToAsk(SlotWait),
    /// What the account has, and what the messages cost.
    Money {
        /// What it has.
        balance: Balance,
        /// What they cost.
        cost: Cost,
    },
    /// Somebody approved what is sent, so nobody is asked.
    Approved {
        /// Who.
        by: String,
        /// When.
        at: Timestamp,
    },
    /// A run that began before goes on.
    GoingOn {
        /// Its name.
        run: String,
        /// Its edition, if the campaign has another one by now.
        other_edition: Option<String>,
    },
    /// A run takes the place of another one and keeps its edition, though the campaign has another one by now.
    EditionKept {
        /// The name of the other one.
        replaced: String,
        /// The edition.
        edition: String,
    },
    /// The gateway is asked about messages of chains before they are sent again.
    AskingBeforeRetry {
        /// How many.
        rows: u64,
    },
    /// What a retry is going to send, and what it leaves out.
    RetryPlanned {
        /// The run's name.
        run: String,
        /// Rows that are sent again.
        rows: u64,
        /// The others.
        left_out: RetryLeftOut,
        /// How many of the rows that are sent again have which error.
        errors: Vec<RetriedError>,
        /// What was asked for.
        scope: RetryScope,
    },
    /// Rows of a run go out as new messages.
    Retrying {
        /// The run's name.
        run: String,
        /// How many.
        rows: u64,
    },
    /// A start that was interrupted left requests whose outcome nothing proves.
    DoubtFromBefore {
        /// How many.
        requests: usize,
    },
    /// The gateway is asked about rows in doubt.
    AskingAboutDoubt {
        /// How many.
        rows: u64,
    },
    /// What came of asking about rows in doubt.
    Reconciliation(Reconciliation),
    /// The results of a run that was only asked or decided about were not written anew.
    ResultsUnwritten(StaleResults),
    /// Sending begins, of a run with so many recipients.
    SendingBegins {
        /// The run's name.
        run: String,
        /// How many.
        recipients: u64,
        /// Planned rows that this call does not send to.
        later: u64,
    },
    /// Something happened while sending.
    Sending(delivery::DeliveryEvent),
    /// Nothing more is sent by this start.
    SendingEnded,
}

/// Somebody who is told of events.
pub type RunObserver = Arc<dyn Fn(RunEvent) + Send + Sync>;
