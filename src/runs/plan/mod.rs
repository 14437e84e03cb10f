//! Plans and approvals: what is looked at before it is sent, said by a digest, and sent only as long as it is that.

mod account_rule;
mod approve;
mod edition;
mod hold;
mod made;
mod occurrence;
mod pending;
mod pin;
mod planned;
mod refusal;
mod resources;
mod signature;
mod test_plan;
#[cfg(test)]
mod tests;

pub(super) use account_rule::check_profile;
pub use account_rule::{WeakerRule, find_weaker_rules, record_rule};
pub use approve::{PlanReview, StandingApproval, approve_plan, review_plan};
pub use made::{CreatedPlan, PlanFigures, create_plan};
pub use occurrence::{count_approvals, find_occurrence_plan};
pub use pending::{approve_pending, find_pending, return_approval, store_pending, use_approval};
pub(super) use pin::{PlanConsent, RequiredPlan};
pub use planned::{PendingRequest, PlanContent, PlanOptions, PlannedCampaign, short_digest};
pub use refusal::PlanRefusal;
pub use signature::PrivateKey;
pub use test_plan::TestRecipients;
pub(super) use test_plan::find_test_approval;
