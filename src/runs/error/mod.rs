//! Errors of runs, with their messages in plain English.
//!
//! A message says what happened and where. It names no option and no command: the command line adds what to type, and
//! the exit code. Long messages are beside this file, by topic:
//!
//! - `changes`: inputs that changed since a run began;
//! - `decision`: decisions about rows in doubt;
//! - `retry`: rows that are not sent again;
//! - `template`: templates of the account;
//! - `words`: messages that are made of several parts.

mod changes;
mod decision;
mod retry;
mod template;
#[cfg(test)]
mod tests;
mod words;

pub use changes::{ChangedInputs, EarlierEdition, InputChanges};
pub use decision::DecisionRefusal;
pub use retry::RetryRefusal;
pub use template::TemplateRefusal;
pub use words::describe_host;

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use super::{BackupRefusal, ConsentRefusal, PlanRefusal, PolicyRefusal, ProposalKind, ScheduleRefusal, WeakerRule};
use crate::delivery::SingleKind;
use crate::domain::{Row, format_count};
use crate::finding::Finding;
use crate::gateway::{InquiryFailure, JsonApiError};
use crate::ledger::{DrawRefusal, LedgerError};
use crate::report::{LossSign, ResultsError, format_local_minute, format_local_second};

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The inputs are wrong.
    #[error("{}", words::count_problems(.0))]
    Findings(Vec<Finding>),
    /// A campaign names a gateway that has no profile.
    #[error("{}", words::count_problems(.findings))]
    UnknownGateway {
        /// The gateway.
        name: String,
        /// The campaign's file.
        file: PathBuf,
        /// What is wrong.
        findings: Vec<Finding>,
    },
    /// The gateway refused the key; one of the findings says so.
    #[error("{}", words::count_problems(.0))]
    KeyRefused(Vec<Finding>),
    /// An input cannot be read or used.
    #[error("{0}")]
    Input(String),
    /// No client of the gateway can be made.
    #[error(transparent)]
    Client(JsonApiError),
    /// The account gave no good answer.
    #[error("{}", words::describe_unanswered(.gateway, .key, .failure))]
    Unanswered {
        /// The profile.
        gateway: String,
        /// Where it has its key from.
        key: String,
        /// Why, and whether it is proven that nothing was done.
        failure: InquiryFailure,
    },
    /// Templates of the account were not changed as ordered.
    #[error(transparent)]
    Template(#[from] TemplateRefusal),
    /// Another message has the identifier that the caller chose.
    #[error("another message already has this identifier; omit the identifier to get a new one")]
    IdTaken,
    /// The limit of messages per hour is reached.
    #[error("the hourly message limit is reached; the next message can be sent at {}", format_local_second(*.next))]
    TooManyThisHour {
        /// When the next may be sent.
        next: Timestamp,
    },
    /// The questions that may be asked beside messages are used up.
    #[error("too many requests to the gateway; try again in {} s", .wait.as_secs() + 1)]
    TooManyQuestions {
        /// How long another one would wait.
        wait: Duration,
    },
    /// The built-in sandbox has no account that could be asked.
    #[error("the built-in sandbox exists only during a run, so it has no account to query")]
    SandboxAccount,
    /// There is no profile.
    #[error("there is no gateway profile")]
    NoGateway,
    /// There are several profiles, and none was named.
    #[error("there are several gateway profiles ({}), and none was chosen", words::list_names(.0))]
    SeveralGateways(Vec<String>),
    /// There is no run of that name.
    #[error("there is no run `{name}`")]
    NoSuchRun {
        /// The name.
        name: String,
        /// A run with nearly that name.
        near: Option<String>,
    },
    /// Another process sends the campaign.
    #[error("{}", words::describe_busy(.campaign, .gateway, *.since))]
    Busy {
        /// The campaign.
        campaign: String,
        /// The gateway.
        gateway: String,
        /// Since when, as far as that is known.
        since: Option<Timestamp>,
    },
    /// Another process sends the campaign, so nothing of its run can be asked or decided about.
    #[error("{}", words::describe_busy(.campaign, .gateway, *.since))]
    BusyRun {
        /// The campaign.
        campaign: String,
        /// The gateway.
        gateway: String,
        /// Since when, as far as that is known.
        since: Option<Timestamp>,
    },
    /// Another process has the campaign and does not send this run.
    #[error(
        "{run} is not being sent, but another process is using `{campaign}` and might be about to start a run; nothing \
         was \
         stopped"
    )]
    NothingToStopYet {
        /// The run.
        run: String,
        /// The campaign.
        campaign: String,
    },
    /// Another process took the run meanwhile.
    #[error("another process has taken over {run}")]
    Taken {
        /// The run.
        run: String,
    },
    /// A run is unfinished, so no new round can begin.
    #[error("cannot send to all recipients again while {run} is unfinished; nothing was sent")]
    RoundUnfinished {
        /// The run.
        run: String,
    },
    /// Rows are not sent again.
    #[error(transparent)]
    Retry(#[from] RetryRefusal),
    /// A run was cancelled.
    #[error("{run} was cancelled and cannot send again")]
    Cancelled {
        /// The run.
        run: String,
        /// The campaign file, if the ledger has it.
        file: Option<PathBuf>,
        /// The gateway.
        gateway: String,
    },
    /// A lookup or a code call is never repeated.
    #[error("{}", words::describe_single_run(.run))]
    SingleRun {
        /// The run.
        run: String,
    },
    /// Lookups and code calls are stopped by the process that waits for them.
    #[error(
        "{run} contains single messages, lookups or verification calls, which only the process that started them can \
         stop"
    )]
    SinglesOnTheirWay {
        /// The run that they are in.
        run: String,
    },
    /// The name of a lookup or a code call was given for a campaign.
    #[error("a {} is not a campaign and is not repeated automatically", .0.name())]
    NoCampaign(SingleKind),
    /// A campaign of the same name was sent from another file.
    #[error(
        "`{campaign}` was already sent from `{there}` ({run}, {}), and this file has a different message, \
         which the recipients of that run would not get",
        format_local_minute(*.began_at)
    )]
    OtherFile {
        /// The campaign.
        campaign: String,
        /// Its last run from there.
        run: String,
        /// When that began.
        began_at: Timestamp,
        /// The other file.
        there: PathBuf,
    },
    /// The runs of a campaign began from another file than the one that was named.
    #[error(
        "no run was started from this file; the runs of `{campaign}` were started from `{there}`, most recently {run}"
    )]
    RunsElsewhere {
        /// The campaign.
        campaign: String,
        /// Its last run.
        run: String,
        /// The other file.
        there: PathBuf,
    },
    /// The message changed within an edition.
    #[error(
        "the message has changed since {run} ({}), but {} already {} the old one and would not get the new one",
        format_local_minute(*.began_at),
        format_count(*.people, "recipient"),
        crate::domain::choose_plural(*.people, "has", "have")
    )]
    TextChanged {
        /// The last run of the edition.
        run: String,
        /// When it began.
        began_at: Timestamp,
        /// How many recipients have a message.
        people: u64,
    },
    /// Sending was confirmed in advance, and no gateway was named.
    #[error("sending was confirmed in advance, but the campaign names no gateway; nothing was sent")]
    NoGatewayNamed,
    /// A run cannot be resumed, because its inputs changed.
    #[error(transparent)]
    InputsChanged(Box<ChangedInputs>),
    /// Nobody confirmed what was proposed.
    #[error("{}", super::consent::describe_refusal(.what, *.refusal))]
    NotConfirmed {
        /// What was proposed.
        what: ProposalKind,
        /// Why it was not confirmed.
        refusal: ConsentRefusal,
    },
    /// A new round would have another number of recipients than the expected one.
    #[error(
        "sending again to all recipients would reach {}, not {}; nothing was sent",
        format_count(*.number, "recipient"),
        crate::domain::format_thousands(*.said)
    )]
    OtherNumber {
        /// The expected number.
        said: u64,
        /// The number of recipients.
        number: u64,
    },
    /// More recipients than the profile allows.
    #[error(
        "the campaign has {}, but the gateway's limit is {}; nothing was sent",
        format_count(*.number, "recipient"),
        crate::domain::format_thousands(*.limit)
    )]
    TooManyRecipients {
        /// The number of recipients.
        number: u64,
        /// How many are allowed.
        limit: u64,
    },
    /// There is no such row.
    #[error("there is no row {row}; the last recipient is in row {last}")]
    NoSuchRow {
        /// The row.
        row: Row,
        /// The row of the last recipient.
        last: Row,
    },
    /// Nothing was decided about rows in doubt.
    #[error(transparent)]
    Decision(#[from] DecisionRefusal),
    /// A run was a rehearsal, whose sandbox is gone.
    #[error("{run} was a rehearsal; its built-in sandbox no longer exists, so its messages cannot be reconciled")]
    RehearsalForgotten {
        /// The run.
        run: String,
    },
    /// A run has ended, so that nothing of it can be cancelled.
    #[error("{run} has already ended; there is nothing to cancel")]
    NothingToCancel {
        /// The run.
        run: String,
    },
    /// A profile's host is not the one that it had at its first use.
    #[error(
        "the gateway `{gateway}` was {} and is now {}; its key and all messages would be sent there",
        describe_host(.known),
        describe_host(.now)
    )]
    HostChanged {
        /// The profile.
        gateway: String,
        /// The host that it had.
        known: String,
        /// The host that it has now.
        now: String,
    },
    /// A profile's `approval` became weaker than the ledger keeps of its account.
    #[error("{0}; nothing was sent")]
    WeakerApproval(Box<WeakerRule>),
    /// A run went through loopback and its profile is now at a live host, or the other way round.
    #[error(
        "{run} was sent through {}, but the profile `{gateway}` is now {}",
        if *.loopback { "a gateway on this machine" } else { "a live gateway" },
        if *.loopback { "at a live host" } else { "on this machine" }
    )]
    OtherReach {
        /// The run.
        run: String,
        /// The profile.
        gateway: String,
        /// Whether the run went through loopback.
        loopback: bool,
    },
    /// The ledger is a backup, or was restored from one.
    #[error(transparent)]
    Backup(BackupRefusal),
    /// Messages were sent that the ledger does not contain.
    #[error(
        "the ledger `{ledger}` does not contain all messages that were sent: {}; nothing was sent",
        words::list_signs(.signs)
    )]
    LedgerLost {
        /// Where the ledger is, or would be.
        ledger: String,
        /// How that is known.
        signs: Vec<LossSign>,
    },
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The results cannot be written or read.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// Results cannot take this place.
    #[error("{0}; nothing was written")]
    ResultsPlace(String),
    /// Something in the state folder cannot be read or written.
    #[error("{0}")]
    Storage(String),
    /// A signal of this number came.
    #[error("{phase}")]
    Interrupted {
        /// Its number.
        signal: u8,
        /// What it interrupted.
        phase: RunPhase,
    },
    /// A policy of the profile or of the campaign holds a message back.
    #[error(transparent)]
    Policy(#[from] PolicyRefusal),
    /// It is not sent, or not approved, because of a plan.
    #[error(transparent)]
    Plan(PlanRefusal),
    /// Nothing was done about a schedule.
    #[error(transparent)]
    Schedule(ScheduleRefusal),
    /// A bug.
    #[error("internal error: {0}")]
    Internal(String),
}

/// What an interrupt came into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPhase {
    /// Nothing was sent yet.
    Preparing,
    /// So many messages were on their way, and are in doubt from now on.
    Sending(u64),
    /// Everything was sent that was going to be.
    Ending,
}

impl Error {
    /// The findings that say in detail what is wrong.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        match self {
            Error::Findings(findings) | Error::UnknownGateway { findings, .. } | Error::KeyRefused(findings) => {
                findings
            }
            Error::Decision(DecisionRefusal::Unreadable { finding, .. }) => std::slice::from_ref(finding),
            _ => &[],
        }
    }
}

impl From<DrawRefusal> for Error {
    fn from(refusal: DrawRefusal) -> Self {
        match refusal {
            DrawRefusal::IdTaken => Error::IdTaken,
            DrawRefusal::TooMany(next) => Error::TooManyThisHour { next },
        }
    }
}
