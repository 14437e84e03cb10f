//! What was planned and what was approved, as the ledger keeps it.

use jiff::Timestamp;

use super::{DamagedPlan, LedgerFuture, RunId};

/// What somebody looked at before it is sent: a run of a campaign, or whatever else waits for an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What it is known by: SHA-256 of everything it is about, in hexadecimal.
    pub digest: String,
    /// What it is of, as whoever keeps it reads it; the ledger does not.
    pub record: String,
    /// When it was made. It is kept for [`Plan::KEPT_DAYS`] days from then.
    pub at: Timestamp,
}

impl Plan {
    /// How many days a plan is kept.
    pub const KEPT_DAYS: u32 = 30;
}

/// Somebody's yes to what has this digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// What it is known by, wherever it was given; a signed one is proven by it.
    pub token: String,
    /// The digest of what is approved.
    pub digest: String,
    /// Who gave it.
    pub by: String,
    /// The most messages that it is for.
    pub up_to: u64,
    /// When it was given.
    pub at: Timestamp,
    /// Until when it is good.
    pub until: Timestamp,
    /// Whether it is good for everything with that digest until then, and not for one use alone.
    pub standing: bool,
}

/// What an approval was used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovalUse {
    /// When.
    pub at: Timestamp,
    /// The run, where it was one.
    pub run: Option<RunId>,
}

/// An approval as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptApproval {
    /// The approval.
    pub approval: Approval,
    /// The last use of it.
    pub used: Option<ApprovalUse>,
}

impl KeptApproval {
    /// Whether it is good for something at this moment.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp) -> bool {
        now < self.approval.until && (self.approval.standing || self.used.is_none())
    }
}

/// The part of the ledger that is about what waits for a yes.
pub trait PlanStore: Send + Sync {
    /// Keeps a plan, in the place of one with the same digest.
    fn keep_plan(&self, plan: Plan) -> LedgerFuture<'_, ()>;

    /// The plans whose digests begin like this, the latest first; those that are kept no longer are none.
    fn find_plans<'a>(&'a self, digest: &'a str) -> LedgerFuture<'a, Vec<Plan>>;

    /// All plans that are kept, the latest first. A damaged record does not hide the others.
    fn list_plans(&self) -> LedgerFuture<'_, Vec<Result<Plan, DamagedPlan>>> {
        Box::pin(async move { Ok(self.find_plans("").await?.into_iter().map(Ok).collect()) })
    }

    /// Keeps an approval; whether its token was not known. One that is known stays as it was, used or not.
    fn keep_approval(&self, approval: Approval) -> LedgerFuture<'_, bool>;

    /// The approvals of what has exactly this digest, as they stand, the earliest first.
    fn list_approvals<'a>(&'a self, digest: &'a str) -> LedgerFuture<'a, Vec<KeptApproval>>;

    /// Uses an approval; whether it was good still. Of any number of callers one gets it, unless it is a standing one.
    fn use_approval<'a>(&'a self, token: &'a str, run: Option<RunId>) -> LedgerFuture<'a, bool>;

    /// Opens a created run as [`Ledger::open_run`] does and uses an approval for it, in one transaction; does neither
    /// where the approval is not good any more.
    ///
    /// [`Ledger::open_run`]: super::Ledger::open_run
    fn open_approved_run<'a>(&'a self, run: RunId, replaced: Option<RunId>, token: &'a str) -> LedgerFuture<'a, bool>;

    /// The approvals that were used for a run, the earliest first.
    fn list_run_approvals(&self, run: RunId) -> LedgerFuture<'_, Vec<KeptApproval>>;
}
