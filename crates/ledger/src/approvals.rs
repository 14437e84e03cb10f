//! Plans, their approvals, and the approval rules of accounts.

use jiff::{SignedDuration, Timestamp};

use super::{DamagedPlan, LedgerFuture, RunId};

/// A plan: something to be reviewed before it is sent, such as a run of a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The identity of the plan: the SHA-256 of everything it contains, in hexadecimal.
    pub digest: String,
    /// The description of the plan. Only the caller interprets it.
    pub record: String,
    /// The time at which the plan was made. The plan is kept for [`Plan::KEPT_DAYS`] days.
    pub at: Timestamp,
}

impl Plan {
    /// The number of days for which a plan is kept.
    pub const KEPT_DAYS: u32 = 30;
}

/// An approval of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The identity of the approval. The token of a signed approval is its proof.
    pub token: String,
    /// The digest of the approved plan.
    pub digest: String,
    /// The author.
    pub by: String,
    /// The maximum number of messages.
    pub up_to: u64,
    /// The time at which the approval was given.
    pub at: Timestamp,
    /// The time at which the approval expires.
    pub until: Timestamp,
    /// Whether the approval is valid for any number of uses until it expires, instead of a single use.
    pub standing: bool,
}

/// A use of an approval. Only a standing approval can be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovalUse {
    /// The time of the use.
    pub at: Timestamp,
    /// The run for which the approval was used. `None` if it was used for something else.
    pub run: Option<RunId>,
}

/// An approval in the ledger, with its last use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredApproval {
    /// The approval.
    pub approval: Approval,
    /// The last use of the approval.
    pub used: Option<ApprovalUse>,
}

impl StoredApproval {
    /// Whether the approval can be used now.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        now < self.approval.until && (self.approval.standing || self.used.is_none())
    }
}

/// Selects approvals.
#[derive(Clone, Copy, Debug)]
pub enum ApprovalFilter<'a> {
    /// The approvals of exactly this digest.
    Digest(&'a str),
    /// The approvals that were used for this run.
    Run(RunId),
}

/// Selects records about plans.
#[derive(Clone, Copy, Debug)]
pub enum PlanFilter<'a> {
    /// The plans whose digests begin with this prefix, newest first. Expired plans are omitted.
    Plans(&'a str),
    /// The approvals that match this filter, oldest first.
    Approvals(ApprovalFilter<'a>),
    /// All approval rules of accounts, oldest first.
    Rules,
}

/// A stored record about plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredPlanRecord {
    /// A plan.
    Plan(Plan),
    /// An approval with its last use.
    Approval(StoredApproval),
    /// The approval rule of an account.
    Rule(StoredApprovalRule),
}

impl StoredPlanRecord {
    /// The plan, if the record is one.
    pub(super) fn into_plan(self) -> Option<Plan> {
        if let Self::Plan(plan) = self { Some(plan) } else { None }
    }

    /// The approval, if the record is one.
    pub(super) fn into_approval(self) -> Option<StoredApproval> {
        if let Self::Approval(approval) = self { Some(approval) } else { None }
    }

    /// The approval rule, if the record is one.
    pub(super) fn into_rule(self) -> Option<StoredApprovalRule> {
        if let Self::Rule(rule) = self { Some(rule) } else { None }
    }
}

/// A record about plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanRecord {
    /// A plan. It replaces a plan with the same digest.
    Plan(Plan),
    /// An approval. It is not stored if its token is already stored.
    Approval(Approval),
    /// A use of the approval with this token, for a run if there is one.
    Use {
        /// The token of the approval.
        token: String,
        /// The run that uses the approval. `None` if something else uses it.
        run: Option<RunId>,
    },
    /// The approval rule of an account. Earlier rules remain as history.
    Rule(StoredApprovalRule),
}

/// Plans, approvals and the approval rules of accounts in a ledger.
pub trait PlanStore: Send + Sync {
    /// Stores a record. Returns `false` and changes nothing for an approval whose token is already stored, and for the
    /// use of an approval that is not valid. Of several concurrent uses of an approval, only one succeeds, unless it is
    /// a standing approval.
    fn store_record(&self, record: PlanRecord) -> LedgerFuture<'_, bool>;

    /// The records that match. Among plans, a damaged record does not hide the others.
    fn list_records<'a>(
        &'a self,
        filter: PlanFilter<'a>,
    ) -> LedgerFuture<'a, Vec<Result<StoredPlanRecord, DamagedPlan>>>;
}

/// The creation time of the oldest plans that have not expired by `now`.
pub(crate) fn oldest_kept_plan_time(now: Timestamp) -> Timestamp {
    let retention = SignedDuration::from_hours(24 * i64::from(Plan::KEPT_DAYS));
    now.checked_sub(retention).unwrap_or(Timestamp::MIN)
}

/// The approval rule of an account, from a profile or accepted by a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredApprovalRule {
    /// The account to which the rule applies, as in the profile.
    pub account: String,
    /// The profile with the rule.
    pub gateway: String,
    /// The hosts of the profile.
    pub hosts: Vec<String>,
    /// The rule. Only the caller interprets it.
    pub rule: String,
    /// The author.
    pub by: String,
    /// The time at which the rule was recorded.
    pub at: Timestamp,
}
