//! Plans and approvals: what is looked at before it is sent, said by a digest, and sent only as long as it is that.

mod approve;
mod hold;
mod made;
mod pin;
mod planned;
mod refusal;

pub use approve::{Approving, approve, look_at_plan};
pub use made::{MadePlan, PlanFigures, plan};
pub(super) use pin::{ApprovedYes, Pin};
pub use planned::{PlanOf, PlanOptions, PlannedCampaign, short};
pub use refusal::PlanRefusal;
