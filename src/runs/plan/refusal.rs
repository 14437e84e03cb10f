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
    /// A rehearsal needs no approval.
    Rehearsal,
}
