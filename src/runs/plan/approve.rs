//! Approving what was planned: it is looked at once more, and agreed to.

use std::sync::Arc;

use jiff::SignedDuration;
use roaring::RoaringBitmap;

use super::made::surveyed;
use super::pin::find;
use super::planned::digest;
use super::{PlanOf, PlanRefusal, PlannedCampaign};
use crate::delivery::FrozenInputs;
use crate::domain::RowSet;
use crate::ledger::{Approval, OccurrenceKey, Plan};
use crate::manifest::{Day, Profile};
use crate::runs::consent::confirm;
use crate::runs::freeze::frozen;
use crate::runs::{Adapters, Consent, Error, Inputs, ListSurvey, Proposal, Request, Round, person};

/// A plan as it stands before whoever approves it.
#[derive(Debug)]
pub struct Approving {
    /// Its digest.
    pub digest: String,
    /// What was planned.
    pub planned: PlannedCampaign,
    /// The campaign as its files say it now, which is what was planned.
    pub inputs: Arc<Inputs>,
    /// What is found in the list now.
    pub survey: ListSurvey,
    /// Whom messages go to.
    pub rows: RoaringBitmap,
}

/// Looks at what was planned, whose digest begins like this.
///
/// # Errors
/// When nothing was, when it needs no approval or has one, or when it is not what was planned any more.
pub async fn look_at_plan(adapters: &Adapters, prefix: &str) -> Result<Approving, Error> {
    let plan = find(adapters.ledger.as_ref(), prefix).await?;
    let planned = PlanOf::campaign(&plan)?;
    Approving::of(adapters, plan.digest, *planned).await
}

/// Asks for a yes and keeps it: one run may use it within the days that a plan is kept.
///
/// # Errors
/// Why it was not approved.
pub async fn approve(adapters: &Adapters, approving: &Approving, consent: &dyn Consent) -> Result<Approval, Error> {
    let profile = approving.profile()?;
    let question = Proposal::Approve { approving, profile, state: &adapters.state };
    confirm(consent, question).await?;
    let at = (adapters.clock)();
    let kept = SignedDuration::from_hours(24 * i64::from(Plan::KEPT_DAYS));
    let approval = Approval {
        token: format!("typed-{:032x}", rand::random::<u128>()),
        digest: approving.digest.clone(),
        by: person(),
        up_to: approving.planned.messages,
        at,
        until: at.checked_add(kept).unwrap_or(at),
        standing: false,
    };
    adapters.ledger.approve(approval.clone()).await?;
    Ok(approval)
}

impl Approving {
    async fn of(adapters: &Adapters, digest: String, planned: PlannedCampaign) -> Result<Self, Error> {
        let now = (adapters.clock)();
        let approvals = adapters.ledger.approvals(&digest).await?;
        if let Some(given) = approvals.into_iter().find(|kept| kept.is_good(now)) {
            return Err(Error::Plan(PlanRefusal::Approved { digest, by: given.approval.by }));
        }
        let inputs = Arc::new(load(adapters, &planned)?);
        let survey = surveyed(adapters.ledger.as_ref(), &inputs, planned.options.again).await?;
        let rows = request(&planned).chosen(&survey.survey.planned_rows(), survey.survey.last_row)?;
        let approving = Self { digest, planned, inputs, survey, rows };
        approving.refuse_changed()?;
        Ok(approving)
    }

    /// What it goes through.
    fn profile(&self) -> Result<&Profile, Error> {
        self.inputs.destination.profile().ok_or(Error::Plan(PlanRefusal::Rehearsal))
    }

    fn refuse_changed(&self) -> Result<(), Error> {
        let now: FrozenInputs = frozen(&self.inputs, &self.survey);
        let (destination, options) = (&self.inputs.destination, &self.planned.options);
        if digest(&now, destination, options)? == self.digest {
            return Ok(());
        }
        let what = self.planned.differences(&now, destination, options);
        let (digest, file) = (self.digest.clone(), self.inputs.campaign.file.clone());
        Err(Error::Plan(PlanRefusal::Changed { digest, file, what }))
    }
}

/// The campaign that was planned, as its files say it now.
fn load(adapters: &Adapters, planned: &PlannedCampaign) -> Result<Inputs, Error> {
    let (file, gateway) = (&planned.inputs.campaign_file, Some(planned.inputs.brief.gateway.as_str()));
    let Some((nominal, zone)) = planned.options.occurrence.clone() else {
        return Inputs::load(file, gateway, &adapters.profiles, Day::Of((adapters.clock)()));
    };
    let schedule = planned.inputs.brief.name.clone();
    let key = OccurrenceKey { schedule, nominal, zone };
    let unreadable = || Error::Input(format!("the plan is of a date that cannot be read: {}", key.nominal));
    let occurrence = crate::runs::fire::occurrence(&key).ok_or_else(unreadable)?;
    crate::runs::load_occurrence(&adapters.profiles, (file, gateway), &occurrence)
}

/// The request that was planned, as far as it chooses rows.
fn request(planned: &PlannedCampaign) -> Request {
    let rows = planned.options.rows.as_ref().and_then(|rows| rows.parse::<RowSet>().ok());
    Request { rows, limit: planned.options.limit, round: Round::Same, ..Request::default() }
}
