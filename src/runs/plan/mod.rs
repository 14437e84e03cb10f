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
pub use account_rule::{WeakerRule, record_rule, weaker_rules};
pub use approve::{Approving, Standing, approve, look_at_plan};
pub use made::{MadePlan, PlanFigures, plan};
pub use occurrence::{approvals_given, planned_occurrence};
pub use pending::{approve_pending, find_pending, give_approval_back, keep_pending, use_approval};
pub(super) use pin::{ApprovedYes, Pin};
pub use planned::{Pending, PlanOf, PlanOptions, PlannedCampaign, short};
pub use refusal::PlanRefusal;
pub use signature::PrivateKey;
pub use test_plan::TestRecipients;
pub(super) use test_plan::approval_of_tests;
