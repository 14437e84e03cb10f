//! Approving what was planned: it is looked at once more, and agreed to.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use roaring::RoaringBitmap;

use super::made::survey_for_plan;
use super::pin::{find_plan, find_usable_approval, load_approvals};
use super::resources::list_valid_digests;
use super::{PlanContent, PlanRefusal, PlannedCampaign, PrivateKey};
use crate::delivery::FrozenInputs;
use crate::domain::RowSet;
use crate::ledger::{Approval, OccurrenceKey, Plan};
use crate::manifest::{CampaignDay, Profile};
use crate::runs::armed::{find_active_schedule, standing_digest};
use crate::runs::consent::confirm;
use crate::runs::freeze::freeze_inputs;
use crate::runs::{
    Adapters, Consent, Error, Inputs, ListSurvey, Proposal, Round, RunRequest, current_person, fetch_list,
};

/// A plan as it stands before whoever approves it.
#[derive(Debug)]
pub struct PlanReview {
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
pub async fn review_plan(adapters: &Adapters, prefix: &str) -> Result<PlanReview, Error> {
    let plan = find_plan(adapters.ledger.as_ref(), prefix).await?;
    let planned = PlanContent::parse_campaign(&plan)?;
    PlanReview::load(adapters, plan.digest, *planned).await
}

/// For how long and for how many people each the occurrences of a schedule are approved.
#[derive(Clone, Copy, Debug)]
pub struct StandingApproval {
    /// Until when.
    pub until: Timestamp,
    /// To how many people each at most.
    pub up_to: u64,
}

/// Asks for a yes and keeps it: one run may use it within the days that a plan is kept, or with `standing` each occurrence.
///
/// Where the profile names who can approve, the yes is signed with the key of one of them.
///
/// # Errors
/// Why it was not approved.
pub async fn approve_plan(
    adapters: &Adapters,
    approving: &PlanReview,
    (key, standing): (Option<&PrivateKey>, Option<StandingApproval>),
    consent: &dyn Consent,
) -> Result<Approval, Error> {
    let profile = approving.profile()?;
    let by = find_signer(approving, profile, key)?;
    let digest = match standing {
        Some(_) => approving.find_standing_digest(adapters).await?,
        None => approving.digest.clone(),
    };
    let samples = match consent.shows_proposals() {
        true => approving.survey.pick_samples(&approving.inputs, &approving.rows)?,
        false => Vec::new(),
    };
    confirm(consent, Proposal::Approve { approving, profile, standing, samples: &samples }).await?;
    // As the ledger keeps it, so that what is signed is what is kept.
    let now = (adapters.clock)().as_microsecond();
    let at = Timestamp::from_microsecond(now).map_err(|error| Error::Internal(error.to_string()))?;
    let kept = SignedDuration::from_hours(24 * i64::from(Plan::KEPT_DAYS));
    let approval = Approval {
        token: new_token(),
        digest,
        by,
        up_to: standing.map_or(approving.planned.messages, |standing| standing.up_to),
        at,
        until: standing.map_or(at.checked_add(kept).unwrap_or(at), |standing| standing.until),
        standing: standing.is_some(),
    };
    let approval = match key {
        Some(key) => key.sign(approval),
        None => approval,
    };
    adapters.ledger.keep_approval(approval.clone()).await?;
    Ok(approval)
}

/// Who approves: whoever has the key where the profile names keys, else the person at the terminal.
fn find_signer(approving: &PlanReview, profile: &Profile, key: Option<&PrivateKey>) -> Result<String, Error> {
    let gateway = || profile.name.clone();
    match (&profile.approval, key) {
        (None, None) => Ok(current_person()),
        (None, Some(_)) => Err(Error::Plan(PlanRefusal::NobodyCanSign)),
        (Some(_), None) => {
            Err(Error::Plan(PlanRefusal::NeedsKey { digest: approving.digest.clone(), gateway: gateway() }))
        }
        (Some(rule), Some(key)) => {
            let own = key.public_key();
            let known = rule.by.iter().find(|(_, public)| Some(*public) == own);
            let unknown = || Error::Plan(PlanRefusal::UnknownKey { gateway: gateway() });
            known.map(|(name, _)| name.clone()).ok_or_else(unknown)
        }
    }
}

/// What a yes is known by that was typed, and is proven by nothing but the ledger.
pub(super) fn new_token() -> String {
    format!("typed-{:032x}", rand::random::<u128>())
}

impl PlanReview {
    async fn load(adapters: &Adapters, digest: String, planned: PlannedCampaign) -> Result<Self, Error> {
        let inputs = Arc::new(load_planned_inputs(adapters, &planned)?);
        let rule = inputs.destination.profile().and_then(|profile| profile.approval.as_ref());
        let given = load_approvals(adapters.ledger.as_ref(), &digest, rule).await?;
        if let Some(given) = find_usable_approval(&given, (adapters.clock)(), planned.messages) {
            return Err(Error::Plan(PlanRefusal::Approved { digest, by: given.by.clone() }));
        }
        // Before the list is fetched, which can start a program.
        planned.refuse_other_resources(&digest, &inputs)?;
        if inputs.list.is_unfetched()
            && planned.options.occurrence.is_some()
            && find_active_schedule(adapters, &inputs).await?.is_none()
        {
            return Err(Error::Plan(PlanRefusal::NoSchedule { file: inputs.campaign.file.clone() }));
        }
        let inputs = fetch_list(&inputs, adapters.fetch_context()).await?;
        let survey = survey_for_plan(adapters, &inputs, planned.options.again).await?;
        let rows = planned_request(&planned).choose_rows(&survey.survey.planned_rows(), survey.survey.last_row)?;
        let approving = Self { digest, planned, inputs, survey, rows };
        approving.refuse_changed()?;
        Ok(approving)
    }

    /// What it goes through.
    fn profile(&self) -> Result<&Profile, Error> {
        self.inputs.destination.profile().ok_or(Error::Plan(PlanRefusal::Rehearsal))
    }

    /// What all occurrences of its schedule are approved by.
    async fn find_standing_digest(&self, adapters: &Adapters) -> Result<String, Error> {
        let Some(armed) = find_active_schedule(adapters, &self.inputs).await? else {
            return Err(Error::Plan(PlanRefusal::NoSchedule { file: self.inputs.campaign.file.clone() }));
        };
        Ok(standing_digest(&armed))
    }

    fn refuse_changed(&self) -> Result<(), Error> {
        let now: FrozenInputs = freeze_inputs(&self.inputs, &self.survey);
        let destination = &self.inputs.destination;
        let options = self.planned.options.clone().with_resources_of(&self.inputs);
        if list_valid_digests(&now, destination, &options)?.contains(&self.digest) {
            return Ok(());
        }
        let what = self.planned.describe_differences(&now, destination, &options);
        let (file, gateway) = (self.inputs.campaign.file.clone(), self.inputs.campaign.brief.gateway.clone());
        Err(Error::Plan(PlanRefusal::Changed { digest: self.digest.clone(), file, gateway, what }))
    }
}

/// The campaign that was planned, as its files say it now.
fn load_planned_inputs(adapters: &Adapters, planned: &PlannedCampaign) -> Result<Inputs, Error> {
    let (file, gateway) = (&planned.inputs.campaign_file, Some(planned.inputs.brief.gateway.as_str()));
    let Some((nominal, zone)) = planned.options.occurrence.clone() else {
        return Inputs::load(file, gateway, &adapters.profiles, CampaignDay::Of((adapters.clock)()));
    };
    let schedule = planned.inputs.brief.name.clone();
    let key = OccurrenceKey { schedule, nominal, zone };
    let unreadable = || Error::Input(format!("the date of the plan cannot be read: {}", key.nominal));
    let occurrence = crate::runs::fire::parse_occurrence(&key).ok_or_else(unreadable)?;
    crate::runs::load_occurrence(&adapters.profiles, (file, gateway), &occurrence)
}

/// The request that was planned, as far as it chooses rows.
fn planned_request(planned: &PlannedCampaign) -> RunRequest {
    let rows = planned.options.rows.as_ref().and_then(|rows| rows.parse::<RowSet>().ok());
    RunRequest { rows, limit: planned.options.limit, round: Round::Same, ..RunRequest::default() }
}
