//! Plans and approvals: a digest identifies what is reviewed, and only that is sent.

mod account_rule;
mod approval;
mod enforcement;
mod planned;
#[cfg(test)]
mod tests;

use super::PlanRefusal;

pub(super) use account_rule::check_profile;
pub use account_rule::{WeakerRule, find_weaker_rules, record_rule};
pub(super) use approval::find_test_approval;
pub use approval::{
    PendingRequest, PlanReview, PrivateKey, StandingApproval, TestRecipients, approve_pending, approve_plan,
    count_approvals, find_occurrence_plan, find_pending, return_approval, review_plan, store_pending, use_approval,
};
pub(super) use enforcement::RequiredPlan;
pub(super) use planned::Digest;
pub use planned::{CreatedPlan, PlanContent, PlanFigures, PlanOptions, PlannedCampaign, create_plan, short_digest};
