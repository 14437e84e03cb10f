//! Approvals of plans: review, confirmation, standing approvals, and plans of test messages.
//!
//! Test messages are approved like a run, for exactly their recipients.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::enforcement::{find_plan, find_usable_approval, load_approvals};
use super::planned::{Digest, list_valid_digests, plan_campaign, store_plan, survey_for_plan};
use super::signature::PrivateKey;
use super::{PlanContent, PlanOptions, PlanRefusal, PlannedCampaign};
use crate::begin::freeze_inputs;
use crate::ports::confirm;
use crate::schedule::{find_active_schedule, standing_digest};
use crate::{Adapters, Consent, Error, Inputs, ListSurvey, Proposal, Round, RunRequest, current_person, fetch_list};
use campaign_core::domain::{Phone, Row, RowSet};
use campaign_engine::delivery::FrozenInputs;
use campaign_ledger::{ActiveSchedule, Approval, ApprovalFilter, Ledger, LedgerError, OccurrenceKey, Plan};
use campaign_manifest::{CampaignDay, Profile};

/// A plan that is under review for its approval.
#[derive(Debug)]
pub struct PlanReview {
    /// Its digest.
    pub digest: String,
    /// The planned campaign.
    pub planned: PlannedCampaign,
    /// The campaign as its files are now, which equals the plan.
    pub inputs: Arc<Inputs>,
    /// The current survey of the list.
    pub survey: ListSurvey,
    /// The rows that get a message.
    pub rows: RoaringBitmap,
}

/// Reviews the plan whose digest begins like this.
///
/// # Errors
/// If there is no such plan, it needs no approval or has one, or the campaign has changed.
pub async fn review_plan(adapters: &Adapters, prefix: &str) -> Result<PlanReview, Error> {
    let plan = find_plan(adapters.ledger.as_ref(), prefix).await?;
    let planned = PlanContent::parse_campaign(&plan)?;
    PlanReview::load(adapters, plan.digest, *planned).await
}

/// An approval in advance for the occurrences of a schedule.
#[derive(Clone, Copy, Debug)]
pub struct StandingApproval {
    /// Until when.
    pub until: Timestamp,
    /// The most recipients of each occurrence.
    pub up_to: u64,
}

/// Asks for confirmation and stores the approval. One run can use it while the plan is kept, or each occurrence if
/// `standing` is given.
///
/// If the profile names approvers, one of them signs the approval.
///
/// # Errors
/// If it was not approved.
pub async fn approve_plan(
    adapters: &Adapters,
    approving: &PlanReview,
    key: Option<&PrivateKey>,
    standing: Option<StandingApproval>,
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
    // Rounded as in the ledger, so that the signed time equals the stored one.
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

/// Finds the approver: the owner of the key if the profile names approvers, else the person at the terminal.
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

/// The token of a typed approval, which only the ledger proves.
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

    /// The profile.
    fn profile(&self) -> Result<&Profile, Error> {
        self.inputs.destination.profile().ok_or(Error::Plan(PlanRefusal::Rehearsal))
    }

    /// The digest that approves all occurrences of its schedule.
    async fn find_standing_digest(&self, adapters: &Adapters) -> Result<String, Error> {
        let Some(schedule) = find_active_schedule(adapters, &self.inputs).await? else {
            return Err(Error::Plan(PlanRefusal::NoSchedule { file: self.inputs.campaign.file.clone() }));
        };
        Ok(standing_digest(&schedule))
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

/// Loads the planned campaign from its current files.
fn load_planned_inputs(adapters: &Adapters, planned: &PlannedCampaign) -> Result<Inputs, Error> {
    let (file, gateway) = (&planned.inputs.campaign_file, Some(planned.inputs.brief.gateway.as_str()));
    let Some((nominal, zone)) = planned.options.occurrence.clone() else {
        return Inputs::load(file, gateway, &adapters.profiles, CampaignDay::Of((adapters.clock)()));
    };
    let schedule = planned.inputs.brief.name.clone();
    let key = OccurrenceKey { schedule, nominal, zone };
    let unreadable = || Error::Input(format!("the date of the plan cannot be read: {}", key.nominal));
    let occurrence = crate::occurrence::parse_occurrence(&key).ok_or_else(unreadable)?;
    crate::load_occurrence(&adapters.profiles, file, gateway, &occurrence)
}

/// The planned request, as far as it selects rows.
fn planned_request(planned: &PlannedCampaign) -> RunRequest {
    let rows = planned.options.rows.as_ref().and_then(|rows| rows.parse::<RowSet>().ok());
    RunRequest { rows, limit: planned.options.limit, round: Round::Same, ..RunRequest::default() }
}

/// Counts the approvals of an occurrence's plan and of its schedule, valid or not.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn count_approvals(
    ledger: &dyn Ledger,
    schedule: &ActiveSchedule,
    digest: &str,
) -> Result<usize, LedgerError> {
    let (own, all) = (
        ledger.list_approvals(ApprovalFilter::Digest(digest)).await?,
        ledger.list_approvals(ApprovalFilter::Digest(&standing_digest(schedule))).await?,
    );
    Ok(own.len() + all.len())
}

/// The digest of an occurrence's plan. `None` if there is none.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn find_occurrence_plan(ledger: &dyn Ledger, key: &OccurrenceKey) -> Result<Option<String>, LedgerError> {
    let wanted = Some((key.nominal.clone(), key.zone.clone()));
    let is_of = |of: &PlanContent| match of {
        PlanContent::Campaign(planned) => {
            planned.inputs.brief.name == key.schedule && planned.options.occurrence == wanted
        }
        PlanContent::Pending(_) => false,
    };
    // A damaged plan counts as missing: its occurrence is not sent.
    let plans = ledger.list_plans("").await?;
    Ok(plans
        .into_iter()
        .flatten()
        .find(|plan| PlanContent::from_plan(plan).is_ok_and(|of| is_of(&of)))
        .map(|plan| plan.digest))
}

/// The recipients of test messages. The ledger contains no record of their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRecipients {
    /// The numbers, masked.
    pub masked: Vec<String>,
    /// SHA-256 of all numbers.
    pub sha256: String,
}

impl TestRecipients {
    fn from_phones(phones: &[Phone]) -> Self {
        let mut phones = phones.to_vec();
        phones.sort_unstable();
        let all = phones.iter().fold(Digest::new(), |digest, phone| digest.with(phone.to_string()));
        Self { masked: phones.iter().map(|phone| phone.format_masked()).collect(), sha256: all.finish() }
    }
}

/// The approval of test messages of a row to these numbers. Otherwise the digest of the plan, which is stored for an
/// approval.
pub(crate) async fn find_test_approval(
    adapters: &Adapters,
    inputs: &Inputs,
    (list, (row, phones)): (&ListSurvey, (Row, &[Phone])),
) -> Result<Result<Approval, String>, Error> {
    let (mut planned, _) = plan_campaign(inputs, list, &RoaringBitmap::from([row.get()]), &RunRequest::default());
    let recipients = TestRecipients::from_phones(phones);
    planned.options = PlanOptions { rows: Some(row.to_string()), tests_to: Some(recipients), ..planned.options };
    planned.messages = phones.len() as u64;
    // The plan of a test has no price.
    planned.cost = None;
    let messages = planned.messages;
    let digest = store_plan(adapters, planned, &inputs.destination).await?;
    let rule = inputs.destination.profile().and_then(|profile| profile.approval.as_ref());
    let given = load_approvals(adapters.ledger.as_ref(), &digest, rule).await?;
    Ok(find_usable_approval(&given, (adapters.clock)(), messages).cloned().ok_or(digest))
}
