//! Why something is not sent as it was planned, or not approved.

use std::path::PathBuf;

/// Why something is not sent as it was planned, or not approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanRefusal {
    /// The ledger has no plan of that digest, or has it no longer.
    Unknown {
        /// What was given.
        digest: String,
    },
    /// Several plans have digests that begin like that.
    Ambiguous {
        /// What was given.
        digest: String,
    },
    /// The plan was kept by another version of this program.
    OtherVersion {
        /// Its digest.
        digest: String,
    },
    /// It is not what was planned any more.
    Changed {
        /// The digest of the plan.
        digest: String,
        /// The campaign file.
        file: PathBuf,
        /// What differs, in words.
        what: Vec<String>,
    },
    /// More people would get a message than were planned or approved.
    More {
        /// The digest of the plan.
        digest: String,
        /// The campaign file.
        file: PathBuf,
        /// How many were planned.
        planned: u64,
        /// How many would get one.
        now: u64,
    },
    /// A run has no recipient left, and used no approval of the plan.
    NobodyLeft {
        /// The digest of the plan.
        digest: String,
        /// The campaign file.
        file: PathBuf,
        /// The run.
        run: String,
    },
    /// The approval was used by somebody else meanwhile.
    Used {
        /// The digest of the plan.
        digest: String,
    },
    /// It is approved already.
    Approved {
        /// The digest of the plan.
        digest: String,
        /// By whom.
        by: String,
    },
    /// It is of a single thing that an assistant wants, and of no run.
    NoCampaign {
        /// The digest.
        digest: String,
    },
    /// The process that would do it is gone, or waits for it no longer.
    Gone {
        /// The digest.
        digest: String,
    },
    /// More people than the profile allows would get a message without an approval.
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
    NeedsKey {
        /// The digest of the plan.
        digest: String,
        /// The gateway.
        gateway: String,
    },
    /// The key belongs to nobody whom the profile names.
    UnknownKey {
        /// The gateway.
        gateway: String,
    },
    /// The profile names nobody whose signature could be looked at.
    NobodyCanSign,
    /// No approver of the profile signed this token for a run.
    NotProven,
    /// A token approves another plan than the one that was named.
    OtherPlan {
        /// What was named.
        digest: String,
        /// What is approved.
        approved: String,
    },
    /// Only what is due by a schedule can be approved beforehand.
    NoSchedule {
        /// The campaign file.
        file: PathBuf,
    },
    /// A rehearsal needs no approval.
    Rehearsal,
}
