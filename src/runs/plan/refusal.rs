//! Why something is not sent as it was planned, or not approved.

use std::path::PathBuf;

use super::planned::short_digest;
use crate::domain::{format_count, format_thousands};
use crate::ledger::Plan;

/// Why something is not sent as it was planned, or not approved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanRefusal {
    /// The ledger has no plan of that digest, or has it no longer.
    #[error("there is no plan `{digest}` in this ledger; plans are kept for {} days", Plan::KEPT_DAYS)]
    Unknown {
        /// What was given.
        digest: String,
    },
    /// Several plans have digests that begin like that.
    #[error("several plans begin with `{digest}`; give more characters of the digest")]
    Ambiguous {
        /// What was given.
        digest: String,
    },
    /// The plan was kept by another version of this program.
    #[error("the plan {} was made by a different version of the program", short_digest(.digest))]
    OtherVersion {
        /// Its digest.
        digest: String,
    },
    /// It is not what was planned any more.
    #[error("{}", describe_changes(.digest, .what))]
    Changed {
        /// The digest of the plan.
        digest: String,
        /// The campaign file.
        file: PathBuf,
        /// The gateway.
        gateway: String,
        /// What differs, in words.
        what: Vec<String>,
    },
    /// More people would get a message than were planned or approved.
    #[error(
        "the plan {} has {}, but this run would send to {}; nothing was sent",
        short_digest(.digest),
        format_count(*.planned, "recipient"),
        format_thousands(*.now)
    )]
    More {
        /// The digest of the plan.
        digest: String,
        /// The campaign file.
        file: PathBuf,
        /// The gateway.
        gateway: String,
        /// How many were planned.
        planned: u64,
        /// How many would get one.
        now: u64,
    },
    /// A run has no recipient left, and used no approval of the plan.
    #[error(
        "{run} has no recipients left and did not use an approval of the plan {}, so it cannot be resumed with \
         this plan",
        short_digest(.digest)
    )]
    NobodyLeft {
        /// The digest of the plan.
        digest: String,
        /// The campaign file.
        file: PathBuf,
        /// The gateway.
        gateway: String,
        /// The run.
        run: String,
    },
    /// The approval was used by somebody else meanwhile.
    #[error("another run has already used the approval of the plan {}; nothing was sent", short_digest(.digest))]
    Used {
        /// The digest of the plan.
        digest: String,
    },
    /// It is approved already.
    #[error("the plan {} is already approved by {by}, and no run has used the approval yet", short_digest(.digest))]
    Approved {
        /// The digest of the plan.
        digest: String,
        /// By whom.
        by: String,
    },
    /// It is of a single thing that an assistant wants, and of no run.
    #[error("{} identifies a single message from an AI assistant, not a run", short_digest(.digest))]
    NoCampaign {
        /// The digest.
        digest: String,
    },
    /// The process that would do it is gone, or waits for it no longer.
    #[error(
        "{} is no longer waiting for approval: its connector has stopped, or an hour has passed; ask the assistant to \
         try again",
        short_digest(.digest)
    )]
    Gone {
        /// The digest.
        digest: String,
    },
    /// More people than the profile allows would get a message without an approval.
    #[error("{}", describe_unapproved(.gateway, *.number, *.sent, *.above))]
    Unapproved {
        /// The digest of the plan that was kept for it; nothing where it has to be planned first.
        digest: Option<String>,
        /// The campaign file.
        file: PathBuf,
        /// The gateway.
        gateway: String,
        /// How many recipients would get a message.
        number: u64,
        /// How many recipients of the edition have one without an approval already.
        sent: u64,
        /// How many need none.
        above: u32,
    },
    /// The profile names who can approve, and no key was given.
    #[error("the gateway `{gateway}` names its approvers, so the approval must be signed; nothing was approved")]
    NeedsKey {
        /// The digest of the plan.
        digest: String,
        /// The gateway.
        gateway: String,
    },
    /// The key belongs to nobody whom the profile names.
    #[error("this key does not belong to any approver of the gateway `{gateway}`; nothing was approved")]
    UnknownKey {
        /// The gateway.
        gateway: String,
    },
    /// The profile names nobody whose signature could be looked at.
    #[error("the profile has no `approval`, so a signature cannot be verified; nothing was approved")]
    NobodyCanSign,
    /// No approver of the profile signed this token for a run.
    #[error("this token is not valid: no approver of the profile signed it for a run; nothing was sent")]
    NotProven,
    /// A token approves another plan than the one that was named.
    #[error("this token approves the plan {}, not {digest}; nothing was sent", short_digest(.approved))]
    OtherPlan {
        /// What was named.
        digest: String,
        /// What is approved.
        approved: String,
    },
    /// Only what is due by a schedule can be approved beforehand.
    #[error("`{file}` has no active schedule, so its runs cannot be approved in advance")]
    NoSchedule {
        /// The campaign file.
        file: PathBuf,
    },
    /// A rehearsal needs no approval.
    #[error("a rehearsal on the built-in sandbox reaches no recipients and needs no approval")]
    Rehearsal,
}

fn describe_changes(digest: &str, what: &[String]) -> String {
    let digest = short_digest(digest);
    match what {
        [] => format!(
            "this run differs from the plan {digest}; that plan is not in this ledger, so the differences are unknown; \
             nothing was sent"
        ),
        what => format!("this run differs from the plan {digest}: {} changed; nothing was sent", what.join(", ")),
    }
}

fn describe_unapproved(gateway: &str, number: u64, sent: u64, above: u32) -> String {
    let edition = match sent {
        0 => String::new(),
        sent => format!(
            ", in addition to {} who already got a message in this edition without an approval",
            format_thousands(sent)
        ),
    };
    format!(
        "this run would send to {}{edition}; the gateway `{gateway}` needs an approval for more than {}; nothing \
         was sent",
        format_count(number, "recipient"),
        format_thousands(above.into())
    )
}
