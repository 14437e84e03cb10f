//! Refusals with their messages: changed inputs, decisions, retries, schedules and plans.

use std::fmt;
use std::path::PathBuf;

use crate::{ScheduleChange, SkippedRetries, short_digest};
use campaign_core::domain::{Row, format_count, format_thousands};
use campaign_core::finding::Finding;
use campaign_ledger::{Plan, RowState};
use campaign_manifest::RecipientSource;

/// The differences between the inputs that a run began with and the current ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputChanges {
    /// Only the list changed.
    List {
        /// The list.
        list: String,
        /// A description of the change.
        how: String,
    },
    /// Settings or texts of the campaign changed, and maybe its list.
    Campaign(Vec<String>),
    /// The copies of the run are lost or damaged.
    Copies {
        /// The path of the copies.
        place: String,
        /// Whether the copies exist but are damaged.
        damaged: bool,
    },
}

/// An unfinished run that cannot be resumed, because its inputs changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ChangedInputs {
    /// The name of the run.
    pub run: String,
    /// The campaign file.
    pub file: PathBuf,
    /// The gateway, if the command names a different one.
    pub gateway: Option<String>,
    /// The changes.
    pub changes: InputChanges,
    /// The edition of the run, if the campaign now has a different one.
    pub earlier_edition: Option<EarlierEdition>,
}

/// The edition of an unfinished run, and the different edition that its campaign has now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierEdition {
    /// The edition of the run; empty if it has none.
    pub unfinished: String,
    /// The current edition; empty if there is none.
    pub current: String,
    /// Whether a run that replaces the unfinished run after accepted changes keeps the earlier edition.
    pub is_kept: bool,
}

impl InputChanges {
    /// The changes to settings and to the list; `None` if nothing has changed.
    pub(crate) fn from_parts(settings: Vec<String>, list: Option<String>, source: &RecipientSource) -> Option<Self> {
        match (settings, list) {
            (settings, None) if settings.is_empty() => None,
            (settings, Some(change)) if settings.is_empty() => {
                Some(Self::List { list: source.to_string(), how: change })
            }
            (mut settings, list) => {
                settings.extend(list.map(|change| format!("the list `{source}` ({change})")));
                Some(Self::Campaign(settings))
            }
        }
    }

    /// A sentence about the changes since a run began.
    pub fn describe_since(&self, run: &str) -> String {
        match self {
            Self::List { list, how } => format!("the list `{list}` has changed since {run} began: {how}"),
            Self::Campaign(what) => format!("the campaign has changed since {run} began: {}", what.join(", ")),
            Self::Copies { place, .. } => {
                format!("the stored inputs of {run} in `{place}` are missing or damaged, so the run cannot be resumed")
            }
        }
    }
}

impl EarlierEdition {
    /// The edition of the unfinished run, worded for use in a sentence.
    pub fn describe_unfinished(&self) -> String {
        describe_edition(&self.unfinished)
    }

    /// The current edition, worded for use in a sentence.
    pub fn describe_current(&self) -> String {
        describe_edition(&self.current)
    }
}

fn describe_edition(edition: &str) -> String {
    match edition {
        "" => "no edition".to_owned(),
        edition => format!("the edition `{edition}`"),
    }
}

impl fmt::Display for ChangedInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.changes.describe_since(&self.run))?;
        match &self.earlier_edition {
            Some(edition) => write!(
                f,
                "; {} is unfinished and belongs to {}, but the campaign now has {}",
                self.run,
                edition.describe_unfinished(),
                edition.describe_current()
            ),
            None => Ok(()),
        }
    }
}

/// The reason a decision about rows in doubt was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum DecisionRefusal {
    /// The decision does not apply to the state of a row.
    #[error("row {row} is {}, so this decision does not apply; no decision was recorded", .state.format_words())]
    NotApplicable {
        /// The row.
        row: Row,
        /// The state of the row.
        state: RowState,
    },
    /// A named row needs no decision.
    #[error("row {row} is {}, not in doubt; no decision was recorded", .state.format_words())]
    NotInDoubt {
        /// The row.
        row: Row,
        /// The state of the row.
        state: RowState,
    },
    /// No row of a run needs a decision.
    #[error("{run} has no messages in doubt")]
    Nothing {
        /// The name of the run.
        run: String,
    },
    /// The decision can lead to duplicates, and their number was not accepted.
    #[error("{}", describe_duplicates(*.rows, *.accepted))]
    DuplicatesNotAccepted {
        /// The number of rows.
        rows: u64,
        /// The number of duplicates that were accepted.
        accepted: Option<u64>,
    },
    /// A newer run replaced the run.
    #[error("this run was replaced by a newer one and can no longer send messages; no decision was recorded")]
    Replaced,
    /// A file with identifiers cannot be read.
    #[error("cannot read `{path}`; no decision was recorded")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The problem.
        finding: Box<Finding>,
    },
    /// A file has no columns that identify messages.
    #[error("`{path}` has neither an `id` column nor `row` and `to` columns; no decision was recorded")]
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
        /// The name of the run.
        run: String,
    },
    /// A line of a file identifies no message of the run.
    #[error("`{path}`, row {row}: {named} in {run}; no decision was recorded")]
    ForeignId {
        /// The file.
        path: PathBuf,
        /// The row in the file.
        row: Row,
        /// The part of the message that names the identifier, or the row and number, and says that nothing matches.
        named: String,
        /// The name of the run.
        run: String,
    },
}

fn describe_duplicates(rows: u64, accepted_count: Option<u64>) -> String {
    let affected = format_count(rows, "row");
    match accepted_count {
        None => format!("{} might get the message twice; no decision was recorded", format_count(rows, "recipient")),
        Some(accepted) => {
            format!(
                "the decision affects {affected}, but you accepted duplicates for {}; no decision was recorded",
                format_thousands(accepted)
            )
        }
    }
}

/// The reason rows of a run cannot be retried.
#[derive(Debug, thiserror::Error)]
pub enum RetryRefusal {
    /// Another run is unfinished.
    #[error("cannot retry rows while {run} is unfinished; nothing was sent")]
    Unfinished {
        /// The run that is unfinished.
        run: String,
        /// The campaign file.
        file: PathBuf,
        /// The name of the gateway.
        gateway: String,
    },
    /// A new run with changed inputs replaced the run.
    #[error("{run} was ended because its inputs changed, so its rows cannot be retried")]
    Replaced {
        /// The name of the run.
        run: String,
    },
    /// The inputs of the run changed.
    #[error("{}; nothing was sent", .changes.describe_since(.run))]
    Changed {
        /// The name of the run.
        run: String,
        /// The campaign file.
        file: PathBuf,
        /// The name of the gateway.
        gateway: String,
        /// The changes.
        changes: InputChanges,
    },
    /// No row can be sent again.
    #[error("{}", describe_nothing_to_retry(.run, *.failed, .error.as_deref(), .skipped))]
    Nothing {
        /// The name of the run.
        run: String,
        /// The number of messages that failed and were not included.
        failed: u64,
        /// The text that errors had to contain.
        error: Option<String>,
        /// Rows that are not retried, by reason.
        skipped: SkippedRetries,
    },
    /// The gateway did not confirm that messages failed.
    #[error("{}", describe_unconfirmed(.run, *.rows, *.accepted))]
    Unconfirmed {
        /// The name of the run.
        run: String,
        /// The number of these messages.
        rows: u64,
        /// The number of duplicates that were accepted.
        accepted: Option<u64>,
    },
    /// The number of messages changed since a person confirmed it.
    #[error(
        "{run}: {} would be sent again, not {}; nothing was sent",
        format_count(*.number, "message"),
        format_thousands(*.confirmed)
    )]
    OtherNumber {
        /// The name of the run.
        run: String,
        /// The confirmed number.
        confirmed: u64,
        /// The number now.
        number: u64,
    },
    /// The profile has an approval rule, which a single person on the dashboard cannot fulfil.
    #[error("the gateway profile `{gateway}` has an approval rule, so {run} cannot be retried on the dashboard")]
    NeedsApproval {
        /// The name of the run.
        run: String,
        /// The name of the gateway profile.
        gateway: String,
    },
}

fn describe_nothing_to_retry(run: &str, failed: u64, error: Option<&str>, skipped: &SkippedRetries) -> String {
    let which = error.map(|error| format!(" whose error contains `{error}`")).unwrap_or_default();
    let SkippedRetries { delivered, under_way, unconfirmed: _, excluded: _ } = *skipped;
    let mut message = format!("{run} has no rows to retry{which}");
    let excluded: Vec<String> = skipped.describe_excluded().collect();
    if !excluded.is_empty() {
        message += &format!("; skipped: {}", excluded.join(" · "));
    }
    for (rows, status) in [(delivered, "delivered"), (under_way, "still being delivered")] {
        if rows > 0 {
            message += &format!("; the gateway reports {} as {status}", format_count(rows, "message"));
        }
    }
    if failed > 0 {
        message += &format!("; {} could not be delivered", format_count(failed, "message"));
    }
    message
}

fn describe_unconfirmed(run: &str, rows: u64, accepted_count: Option<u64>) -> String {
    let messages = format_count(rows, "message");
    let accepted = accepted_count.map(|count| format!(", but you accepted duplicates for {}", format_thousands(count)));
    let accepted = accepted.unwrap_or_default();
    format!("the gateway did not confirm that {messages} in {run} failed on every channel{accepted}; nothing was sent")
}

/// The reason a schedule was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleRefusal {
    /// The campaign has no schedule.
    #[error("`{file}` has no `schedule`")]
    None {
        /// The campaign file.
        file: PathBuf,
    },
    /// A campaign has no further occurrences.
    #[error("the `schedule` of `{file}` has no further times: they have passed, or are after `ends`")]
    Over {
        /// The campaign file.
        file: PathBuf,
    },
    /// A campaign with the same name has an active schedule from another file.
    #[error("the active schedule `{name}` belongs to another file, `{there}`")]
    OtherFile {
        /// The name.
        name: String,
        /// The other file.
        there: PathBuf,
    },
    /// No active schedule has this name.
    #[error("there is no active schedule `{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// An active schedule with a similar name.
        near: Option<String>,
        /// Whether there is any active schedule.
        any: bool,
    },
    /// The schedule differs from the activated one.
    #[error("the active schedule is outdated: {0}")]
    Changed(ScheduleChange),
    /// The occurrence has fired or was skipped already.
    #[error("the run scheduled for {nominal} has already started or was skipped")]
    Recorded {
        /// The nominal local time.
        nominal: String,
    },
}

/// The reason a plan was not followed or not approved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanRefusal {
    /// The ledger no longer has a plan with this digest.
    #[error("there is no plan `{digest}` in this ledger; plans are kept for {} days", Plan::KEPT_DAYS)]
    Unknown {
        /// The digest as given.
        digest: String,
    },
    /// The digests of several plans begin with these characters.
    #[error("several plans begin with `{digest}`; enter more characters of the digest")]
    Ambiguous {
        /// The digest as given.
        digest: String,
    },
    /// The plan was stored by another version of this program.
    #[error("plan {} was created by a different version of campaign", short_digest(.digest))]
    OtherVersion {
        /// The digest of the plan.
        digest: String,
    },
    /// The campaign differs from the plan.
    #[error("{}", describe_changes(.digest, .differences))]
    Changed {
        /// The digest of the plan.
        digest: String,
        /// The campaign file.
        file: PathBuf,
        /// The name of the gateway.
        gateway: String,
        /// The differences, in words. Empty if they are unknown.
        differences: Vec<String>,
    },
    /// More recipients than were planned or approved would get a message.
    #[error(
        "plan {} has {}, but this run would send to {}; nothing was sent",
        short_digest(.digest),
        format_count(*.planned, "recipient"),
        format_thousands(*.now)
    )]
    More {
        /// The digest of the plan.
        digest: String,
        /// The campaign file.
        file: PathBuf,
        /// The name of the gateway.
        gateway: String,
        /// The number of planned recipients.
        planned: u64,
        /// The number of recipients who would get a message now.
        now: u64,
    },
    /// The run has no recipients left and used no approval of the plan.
    #[error(
        "{run} has no recipients left and did not use an approval of plan {}, so it cannot be resumed with that plan",
        short_digest(.digest)
    )]
    NoRecipientsLeft {
        /// The digest of the plan.
        digest: String,
        /// The campaign file.
        file: PathBuf,
        /// The name of the gateway.
        gateway: String,
        /// The name of the run.
        run: String,
    },
    /// Another run has used the approval in the meantime.
    #[error("another run has already used the approval of plan {}; nothing was sent", short_digest(.digest))]
    Used {
        /// The digest of the plan.
        digest: String,
    },
    /// The plan is approved already.
    #[error("plan {} has already been approved by {by}, and no run has used the approval yet", short_digest(.digest))]
    Approved {
        /// The digest of the plan.
        digest: String,
        /// The approver.
        by: String,
    },
    /// The plan is for a single operation of an assistant, not for a run.
    #[error("{} identifies a single message from an AI assistant, not a run", short_digest(.digest))]
    NoCampaign {
        /// The digest of the operation.
        digest: String,
    },
    /// The connector that would send the message has stopped or no longer waits.
    #[error(
        "{} is no longer waiting for approval: its connector has stopped, or an hour has passed; ask the assistant to \
         try again",
        short_digest(.digest)
    )]
    Gone {
        /// The digest of the operation.
        digest: String,
    },
    /// More recipients than the profile allows would get a message without an approval.
    #[error("{}", describe_unapproved(.gateway, *.number, *.sent, *.above))]
    Unapproved {
        /// The digest of the stored plan. `None` if a plan must be made first.
        digest: Option<String>,
        /// The campaign file.
        file: PathBuf,
        /// The name of the gateway.
        gateway: String,
        /// The number of recipients.
        number: u64,
        /// The number of recipients of the edition with an unapproved message.
        sent: u64,
        /// The maximum number of recipients that needs no approval.
        above: u32,
    },
    /// The profile names approvers, and no key was given.
    #[error(
        "the profile for the gateway `{gateway}` lists approvers, so the approval must be signed; nothing was approved"
    )]
    NeedsKey {
        /// The digest of the plan.
        digest: String,
        /// The name of the gateway.
        gateway: String,
    },
    /// The key does not belong to a named approver.
    #[error("this key does not belong to any approver for the gateway `{gateway}`; nothing was approved")]
    UnknownKey {
        /// The name of the gateway.
        gateway: String,
    },
    /// The profile names no approvers, so signatures cannot be verified.
    #[error("the profile has no `approval`, so a signature cannot be verified; nothing was approved")]
    NoApprovers,
    /// No approver of the profile signed this token for a run.
    #[error("this token is not valid: no approver in the profile signed it for a run; nothing was sent")]
    NotProven,
    /// A token approves a plan other than the named one.
    #[error("this token approves plan {}, not {digest}; nothing was sent", short_digest(.approved))]
    OtherPlan {
        /// The named plan.
        digest: String,
        /// The approved plan.
        approved: String,
    },
    /// Only occurrences of a schedule can be approved in advance.
    #[error("`{file}` has no active schedule, so its runs cannot be approved in advance")]
    NoSchedule {
        /// The campaign file.
        file: PathBuf,
    },
    /// A rehearsal needs no approval.
    #[error("a rehearsal in the built-in sandbox reaches no recipients and needs no approval")]
    Rehearsal,
}

fn describe_changes(digest: &str, differences: &[String]) -> String {
    let digest = short_digest(digest);
    match differences {
        [] => format!(
            "this run differs from plan {digest}; that plan is not in this ledger, so the differences are unknown; \
             nothing was sent"
        ),
        _ => format!("this run differs from plan {digest}: {} changed; nothing was sent", differences.join(", ")),
    }
}

fn describe_unapproved(gateway: &str, number: u64, sent: u64, above: u32) -> String {
    let edition = match sent {
        0 => String::new(),
        sent => format!(
            ", in addition to {} who already got a message in this edition without approval",
            format_thousands(sent)
        ),
    };
    format!(
        "this run would send to {}{edition}; the gateway `{gateway}` needs approval for more than {}; nothing was sent",
        format_count(number, "recipient"),
        format_thousands(above.into())
    )
}
