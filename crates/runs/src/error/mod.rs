//! Errors of runs, with their messages in plain English.
//!
//! A message says what happened and where. Messages name no options or commands: the command line adds exit codes and
//! remedies, which name options and commands. Refusals with longer messages are in `refusals`.

mod refusals;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use super::{BackupRefusal, ConsentRefusal, PolicyRefusal, ProposalKind, WeakerRule};
use campaign_core::domain::{LOOPBACK, Row, choose_plural, format_count};
use campaign_core::finding::{Finding, join_names};
use campaign_engine::delivery::{CHANGED_TEXTS, SingleKind};
use campaign_engine::report::{LossSign, ResultsError, format_local_minute, format_local_second};
use campaign_gateway::{FailureCause, InquiryFailure, JsonApiError, TemplateChannel};
use campaign_ledger::{DrawRefusal, LedgerError};

pub use refusals::{
    ChangedInputs, DecisionRefusal, EarlierEdition, InputChanges, PlanRefusal, RetryRefusal, ScheduleRefusal,
};

/// An error of a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The inputs are wrong.
    #[error("{}", describe_problem_count(.0))]
    Findings(Vec<Finding>),
    /// A campaign names a gateway that has no profile.
    #[error("{}", describe_problem_count(.findings))]
    UnknownGateway {
        /// The name of the gateway.
        name: String,
        /// The campaign's file.
        file: PathBuf,
        /// The problems.
        findings: Vec<Finding>,
    },
    /// The gateway rejected the key. One of the findings says so.
    #[error("{}", describe_problem_count(.0))]
    KeyRefused(Vec<Finding>),
    /// An input cannot be read or used.
    #[error("{0}")]
    Input(String),
    /// The client of the gateway cannot be created.
    #[error(transparent)]
    Client(JsonApiError),
    /// The account gave no usable answer.
    #[error("{}", describe_unanswered(.gateway, .key, .failure))]
    Unanswered {
        /// The name of the gateway profile.
        gateway: String,
        /// The source of its key.
        key: String,
        /// The failure, and whether it is proven that nothing was done.
        failure: InquiryFailure,
    },
    /// A requested change to a template was not made, or its outcome is unknown.
    #[error(transparent)]
    Template(#[from] TemplateRefusal),
    /// Another message already has the identifier of the caller.
    #[error("another message already has this identifier; omit the identifier to get a new one")]
    IdTaken,
    /// The limit of messages per hour is reached.
    #[error("the hourly message limit has been reached; the next message can be sent at {}", format_local_second(*.next))]
    TooManyThisHour {
        /// The time at which the next message can be sent.
        next: Timestamp,
    },
    /// An inquiry would wait too long for the account's rate limit.
    #[error("too many requests to the gateway; try again in {} s", .wait.as_secs() + 1)]
    TooManyInquiries {
        /// The estimated wait for the rate limit.
        wait: Duration,
    },
    /// The built-in sandbox has no account to query.
    #[error("the built-in sandbox exists only during a run, so it has no account to query")]
    SandboxAccount,
    /// No profile exists.
    #[error("there is no gateway profile")]
    NoGateway,
    /// There are several profiles, and none was named.
    #[error("there are several gateway profiles ({}), and none was chosen", list_names(.0))]
    SeveralGateways(Vec<String>),
    /// No run has this name.
    #[error("there is no run `{name}`")]
    NoSuchRun {
        /// The name.
        name: String,
        /// A run with a similar name.
        near: Option<String>,
    },
    /// Another process is sending the campaign.
    #[error("{}", describe_busy(.campaign, .gateway, *.since))]
    Busy {
        /// The name of the campaign.
        campaign: String,
        /// The name of the gateway.
        gateway: String,
        /// The time at which that process locked the campaign, if known.
        since: Option<Timestamp>,
    },
    /// Another process is sending the campaign, so its run cannot be reconciled, decided, cancelled or erased.
    #[error("{}", describe_busy(.campaign, .gateway, *.since))]
    BusyRun {
        /// The name of the campaign.
        campaign: String,
        /// The name of the gateway.
        gateway: String,
        /// The time at which that process locked the campaign, if known.
        since: Option<Timestamp>,
    },
    /// Another process holds the lock of the campaign but does not send this run.
    #[error(
        "{run} is not being sent, but another process is using `{campaign}` and might be about to start a run; nothing \
         was \
         stopped"
    )]
    NothingToStopYet {
        /// The name of the run.
        run: String,
        /// The name of the campaign.
        campaign: String,
    },
    /// Another process took the run in the meantime.
    #[error("another process has taken over {run}")]
    Taken {
        /// The name of the run.
        run: String,
    },
    /// A run is unfinished, so a new round cannot begin.
    #[error("cannot send to all recipients again while {run} is unfinished; nothing was sent")]
    RoundUnfinished {
        /// The name of the run.
        run: String,
    },
    /// Rows are not sent again.
    #[error(transparent)]
    Retry(#[from] RetryRefusal),
    /// A run was cancelled.
    #[error("{run} was cancelled and can no longer send messages")]
    Cancelled {
        /// The name of the run.
        run: String,
        /// The campaign file, if the ledger has it.
        file: Option<PathBuf>,
        /// The name of the gateway.
        gateway: String,
    },
    /// The run contains single operations, which are never repeated.
    #[error("{}", explain_single_run(.run))]
    SingleRun {
        /// The name of the run.
        run: String,
    },
    /// Only the process that started single messages, lookups or verification calls can stop them.
    #[error(
        "{run} contains single messages, lookups or verification calls, which only the process that started them can \
         stop"
    )]
    SinglesOnTheirWay {
        /// The run that cannot be stopped.
        run: String,
    },
    /// The name of a lookup or a verification call was given for a campaign.
    #[error("a {} is not a campaign and is not repeated automatically", .0.name())]
    NoCampaign(SingleKind),
    /// A campaign of the same name was sent from another file.
    #[error(
        "`{campaign}` was already sent from `{there}` ({run}, {}), and this file has a different message, \
         which the recipients of that run would not get",
        format_local_minute(*.began_at)
    )]
    OtherFile {
        /// The name of the campaign.
        campaign: String,
        /// The last run that was started from the other file.
        run: String,
        /// The time at which that run began.
        began_at: Timestamp,
        /// The other file.
        there: PathBuf,
    },
    /// The runs of a campaign were started from a file other than the named one.
    #[error(
        "no run was started from this file; the runs of `{campaign}` were started from `{there}`, most recently {run}"
    )]
    RunsElsewhere {
        /// The name of the campaign.
        campaign: String,
        /// The campaign's last run.
        run: String,
        /// The other file.
        there: PathBuf,
    },
    /// The message, or a setting that affects it, changed within an edition.
    #[error("{}", describe_changed_text(.run, *.began_at, *.people, .changes))]
    TextChanged {
        /// The last run of the edition.
        run: String,
        /// The time at which the run began.
        began_at: Timestamp,
        /// The number of recipients who have a message.
        people: u64,
        /// The changes.
        changes: Vec<&'static str>,
    },
    /// Sending was confirmed in advance, but no gateway was named.
    #[error("the campaign does not specify a gateway, so it cannot be sent without a confirmation; nothing was sent")]
    NoGatewayNamed,
    /// A run cannot be resumed, because its inputs changed.
    #[error(transparent)]
    InputsChanged(Box<ChangedInputs>),
    /// The proposal was not confirmed.
    #[error("{}", super::ports::describe_refusal(.proposal, *.refusal))]
    NotConfirmed {
        /// The proposal.
        proposal: ProposalKind,
        /// The reason the proposal was not confirmed.
        refusal: ConsentRefusal,
    },
    /// A new round would not reach the expected number of recipients.
    #[error(
        "sending again to all recipients would reach {}, not {}; nothing was sent",
        format_count(*.number, "recipient"),
        campaign_core::domain::format_thousands(*.expected)
    )]
    OtherNumber {
        /// The expected number.
        expected: u64,
        /// The number of recipients.
        number: u64,
    },
    /// The run has more recipients than the profile allows.
    #[error(
        "the campaign has {}, but the gateway's limit is {}; nothing was sent",
        format_count(*.number, "recipient"),
        campaign_core::domain::format_thousands(*.limit)
    )]
    TooManyRecipients {
        /// The number of recipients.
        number: u64,
        /// The maximum number allowed.
        limit: u64,
    },
    /// The edition has more recipients outside the home countries than the profile allows.
    #[error(
        "the edition would have {} outside {home}, but the gateway's limit is {}; nothing was sent",
        format_count(*.number, "recipient"),
        campaign_core::domain::format_thousands(*.limit)
    )]
    TooManyAbroad {
        /// The number of recipients abroad in the edition.
        number: u64,
        /// The maximum number allowed.
        limit: u64,
        /// The home countries.
        home: String,
    },
    /// The list does not have this row.
    #[error("there is no row {row}; the last recipient is in row {last}")]
    NoSuchRow {
        /// The row.
        row: Row,
        /// The row of the last recipient.
        last: Row,
    },
    /// A decision about rows in doubt was not recorded.
    #[error(transparent)]
    Decision(#[from] DecisionRefusal),
    /// The run was a rehearsal, and its sandbox no longer exists.
    #[error("{run} was a rehearsal; its built-in sandbox no longer exists, so its messages cannot be reconciled")]
    RehearsalForgotten {
        /// The name of the run.
        run: String,
    },
    /// The run has ended, so it cannot be cancelled.
    #[error("{run} has already ended; there is nothing to cancel")]
    NothingToCancel {
        /// The name of the run.
        run: String,
    },
    /// The host of a profile differs from the one at its first use.
    #[error(
        "the gateway `{gateway}` was {} and is now {}; its key and all messages would be sent there",
        describe_host(.known),
        describe_host(.now)
    )]
    HostChanged {
        /// The name of the gateway profile.
        gateway: String,
        /// The earlier host.
        known: String,
        /// The current host.
        now: String,
    },
    /// A profile's `approval` is weaker than the recorded rule of its account.
    #[error("{0}; nothing was sent")]
    WeakerApproval(Box<WeakerRule>),
    /// A run went through loopback and its profile is now at a live host, or the reverse.
    #[error(
        "{run} was sent through {}, but the profile `{gateway}` now points to {}",
        if *.loopback { "a gateway on this machine" } else { "a live gateway" },
        if *.loopback { "a live host" } else { "this machine" }
    )]
    OtherReach {
        /// The name of the run.
        run: String,
        /// The name of the gateway profile.
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
        format_signs(.signs)
    )]
    LedgerLost {
        /// The location of the ledger.
        ledger: String,
        /// The signs of the loss.
        signs: Vec<LossSign>,
    },
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The results cannot be written or read.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// Results cannot be written to this path.
    #[error("{0}; nothing was written")]
    ResultsPlace(String),
    /// A file in the state folder cannot be read or written.
    #[error("{0}")]
    Storage(String),
    /// The process received this signal.
    #[error("{phase}")]
    Interrupted {
        /// The number of the signal.
        signal: u8,
        /// The interrupted phase.
        phase: RunPhase,
    },
    /// A policy of the profile or campaign holds back a message.
    #[error(transparent)]
    Policy(#[from] PolicyRefusal),
    /// A plan prevents sending or approving.
    #[error(transparent)]
    Plan(PlanRefusal),
    /// A schedule was not changed.
    #[error(transparent)]
    Schedule(ScheduleRefusal),
    /// A bug.
    #[error("internal error: {0}")]
    Internal(String),
}

/// The phase of a run that was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPhase {
    /// The command has not sent any messages yet.
    Preparing,
    /// This many messages were in flight and are now in doubt.
    Sending(u64),
    /// All messages of this invocation were sent.
    Ending,
}

impl Error {
    /// The findings that give the details of the error; empty for most errors.
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

/// The reason a template was not changed, or might not have been changed.
#[derive(Debug, thiserror::Error)]
pub enum TemplateRefusal {
    /// It is unknown whether the change was made.
    #[error("`{gateway}` returned no usable response: {}; the change might have been made", .failure.reason)]
    Unclear {
        /// The name of the gateway profile.
        gateway: String,
        /// The reason the outcome is unknown.
        failure: InquiryFailure,
        /// The channel of the template.
        channel: TemplateChannel,
    },
    /// The gateway deleted nothing.
    #[error("the gateway deleted nothing; template {id} might not exist")]
    NothingDeleted {
        /// The gateway's identifier for the template.
        id: u64,
    },
    /// The account has no such template.
    #[error("the `{gateway}` account has no {channel} template {id}")]
    NoSuchTemplate {
        /// The name of the gateway profile.
        gateway: String,
        /// The channel of the template.
        channel: TemplateChannel,
        /// The gateway's identifier for the template.
        id: u64,
    },
    /// The gateway does not return the text of a template, which its deletion requires.
    #[error("cannot delete {channel} template {id}: the gateway did not return its text, which is required")]
    TextUnknown {
        /// The channel of the template.
        channel: TemplateChannel,
        /// The gateway's identifier for the template.
        id: u64,
    },
}

/// Describes the number of errors, or says that the check is incomplete if there are none.
fn describe_problem_count(findings: &[Finding]) -> String {
    let errors = findings.iter().filter(|finding| finding.is_error()).count() as u64;
    let count =
        if errors > 0 { format_count(errors, "problem") + " found" } else { "the check is incomplete".to_owned() };
    format!("{count}; nothing was sent")
}

/// Describes an inquiry without a usable answer.
fn describe_unanswered(gateway: &str, key: &str, failure: &InquiryFailure) -> String {
    let reason = &failure.reason;
    match failure.cause {
        FailureCause::KeyRefused => format!("{reason}; the profile `{gateway}` reads the key from {key}"),
        FailureCause::Refused => reason.clone(),
        FailureCause::NotConnected => format!("{reason}; no request was sent"),
        FailureCause::SlowDown(Some(wait)) => format!("{reason} for {} s", wait.as_secs()),
        FailureCause::SlowDown(None) => reason.clone(),
        FailureCause::TimedOut | FailureCause::Unclear => {
            format!("`{gateway}` returned no usable response: {reason}")
        }
    }
}

/// Describes a change of the message, or of settings that affect it, within an edition.
fn describe_changed_text(run: &str, began_at: Timestamp, people: u64, changes: &[&str]) -> String {
    let run = format!("{run} ({})", format_local_minute(began_at));
    let have = format!("{} already {}", format_count(people, "recipient"), choose_plural(people, "has", "have"));
    match changes.contains(&CHANGED_TEXTS) {
        true => format!("the message has changed since {run}, but {have} the old one and would not get the new one"),
        false => format!(
            "the campaign has changed since {run}: {}; {have} a message and would not get another one",
            changes.join(", ")
        ),
    }
}

/// Joins names in a sentence.
fn list_names(names: &[String]) -> String {
    join_names(names.iter().map(String::as_str))
}

/// Describes a campaign that another process holds. For lookups and verification calls, the wording is different,
/// because they are not campaigns.
fn describe_busy(campaign: &str, gateway: &str, since: Option<Timestamp>) -> String {
    let since = since.map(|since| format!(" (started {})", format_local_minute(since))).unwrap_or_default();
    match SingleKind::from_name(campaign) {
        Some(_) => format!("another process is working on `{campaign}`{since}"),
        None => format!("another process is sending `{campaign}` through `{gateway}`{since}"),
    }
}

/// Explains why a run of single operations is not repeated.
fn explain_single_run(run: &str) -> String {
    match SingleKind::from_name(run) {
        Some(SingleKind::Message) => {
            format!(
                "{run} contains messages from AI assistants; their contents are not stored, so they cannot be sent \
                 again"
            )
        }
        Some(SingleKind::Test) => format!("{run} contains test messages, which are not sent again"),
        _ => format!("{run} contains lookups or verification calls, which are not repeated"),
    }
}

/// Describes where a host is, for a sentence such as "the gateway was …".
pub fn describe_host(host: &str) -> String {
    match host {
        LOOPBACK => "on this machine (loopback)".to_owned(),
        host => format!("at {host}"),
    }
}

/// Formats the signs of a lost ledger.
fn format_signs(signs: &[LossSign]) -> String {
    signs.iter().map(LossSign::to_string).collect::<Vec<_>>().join("; ")
}

impl fmt::Display for RunPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Preparing => f.write_str("interrupted; nothing was sent"),
            Self::Sending(messages) => write!(
                f,
                "interrupted twice while {} {} being sent; messages in flight are now in doubt and will not be sent \
                 again automatically; the results were not written",
                format_count(*messages, "message"),
                choose_plural(*messages, "was", "were")
            ),
            Self::Ending => f.write_str("interrupted twice after sending ended; the results might be incomplete"),
        }
    }
}
