//! Plans of runs: content, digest, creation, and differences from the current campaign.
//!
//! A person reviews and approves the content that a digest identifies. A run that follows a plan sends only that
//! content.

mod account_rule;
mod approval;
mod enforcement;
#[cfg(test)]
mod tests;

pub(super) use account_rule::check_profile;
pub use account_rule::{WeakerRule, find_weaker_rules, record_rule};
pub(super) use approval::find_test_approval;
pub use approval::{
    MAX_APPROVAL_WAIT, PendingRequest, PlanReview, PrivateKey, StandingApproval, TestRecipients,
    approve_pending_request, approve_plan, count_approvals, find_occurrence_plan, find_pending_request,
    return_approval, review_plan, store_pending_request, use_approval,
};
pub(super) use enforcement::RequiredPlan;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::begin::{TodaysTexts, freeze_inputs};
use crate::check_campaign::check_inputs;
use crate::check_campaign::refuse_failed_tests;
use crate::ledger_health::refuse_lost_ledger;
use crate::list::survey_unsent;
use crate::schedule::format_addresses;
use crate::send::{refuse_expired_campaign, refuse_unsendable_run};
use crate::{
    Adapters, Error, Inputs, ListSurvey, PlanRefusal, ProtectedFiles, Round, RunRequest, find_sent_recipients,
    refuse_start,
};
use campaign_core::domain::{Amount, CountrySet, MessageContent, NamedTemplate};
use campaign_core::finding::Finding;
use campaign_engine::check::online::Cost;
use campaign_engine::check::{ABROAD_LIMIT, RECIPIENTS_LIMIT, RunStart};
use campaign_engine::delivery::{CHANGED_TEXTS, FrozenInputs};
use campaign_engine::report::Forecast;
use campaign_ledger::{Plan, PlanRecord, Run, StateCounts};
use campaign_manifest::{Destination, InDoubtPolicy, Resource, ResourceKind};

/// The domain of campaign digests, so that digests of other data never equal a campaign digest.
const DIGEST_DOMAIN: &str = "campaign plan 1";

/// The length of a short digest. Any unique beginning of a digest identifies its plan.
const SHORT_LENGTH: usize = 16;

/// The short form of a digest, for display.
pub fn short_digest(digest: &str) -> &str {
    digest.get(..SHORT_LENGTH).unwrap_or(digest)
}

/// The content of a plan, which the ledger stores as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanContent {
    /// A run of a campaign.
    Campaign(Box<PlannedCampaign>),
    /// An operation that an assistant requests and that waits in another process.
    Pending(PendingRequest),
}

/// A planned run of a campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedCampaign {
    /// The campaign, its texts, and the hash of its list.
    pub inputs: FrozenInputs,
    /// The addresses of the gateway.
    pub addresses: String,
    /// The account of the gateway.
    pub account: String,
    /// The options with which the plan was created.
    pub options: PlanOptions,
    /// The number of rows in the list.
    pub rows: u64,
    /// The maximum number of recipients who get a message.
    pub messages: u64,
    /// The rows of the list by their state.
    pub counts: StateCounts,
    /// The number of message parts.
    pub parts: u64,
    /// The highest cost, if the profile has all prices.
    pub cost: Option<Amount>,
    /// The currency of the cost.
    pub currency: Option<String>,
}

/// The options of a plan, all of which its digest covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanOptions {
    /// Only these rows, such as `2-51,60`.
    pub rows: Option<String>,
    /// The maximum number of rows.
    pub limit: Option<u64>,
    /// Whether all recipients get the message again.
    pub again: bool,
    /// The occurrence of the schedule: local time and time zone.
    pub occurrence: Option<(String, String)>,
    /// The sending hours, in words. `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<String>,
    /// The recipients of test messages. `None` for a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_to: Option<TestRecipients>,
    /// SHA-256 of each program, URL and source of the campaign, by its key. Plans of earlier versions have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, String>,
    /// The policy for rows in doubt. `None` if the rows stay in doubt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_in_doubt: Option<InDoubtPolicy>,
    /// The countries in the policy of the profile. `None` if all are allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub countries: Option<CountrySet>,
}

impl PlanOptions {
    /// The options of a request for a campaign.
    pub(crate) fn from_request(request: &RunRequest, inputs: &Inputs) -> Self {
        let occurrence = request.occurrence.as_ref();
        Self {
            rows: request.rows.as_ref().map(ToString::to_string),
            limit: request.limit,
            again: request.round != Round::Same,
            occurrence: occurrence
                .map(|occurrence| (occurrence.format_nominal_time(), occurrence.zone_name().to_owned())),
            ..Self::default().with_current_terms_of(inputs)
        }
    }
}

impl PlanContent {
    /// Serializes the content as the ledger stores it.
    fn to_record(&self) -> Result<String, Error> {
        serde_json::to_string(self).map_err(|error| Error::Storage(format!("cannot store the plan: {error}")))
    }

    /// Parses the content of a plan.
    fn from_plan(plan: &Plan) -> Result<Self, Error> {
        let unknown = |_| Error::Plan(PlanRefusal::OtherVersion { digest: plan.digest.clone() });
        serde_json::from_str(&plan.record).map_err(unknown)
    }

    /// Parses the campaign that was planned.
    fn parse_campaign(plan: &Plan) -> Result<Box<PlannedCampaign>, Error> {
        match Self::from_plan(plan)? {
            PlanContent::Campaign(planned) => Ok(planned),
            PlanContent::Pending(_) => Err(Error::Plan(PlanRefusal::NoCampaign { digest: plan.digest.clone() })),
        }
    }
}

/// Computes the digest of a campaign with its texts, list, destination and options.
///
/// The digest omits the date, opt-outs and earlier messages, which only reduce messages or change values in the same
/// texts.
fn compute_digest(inputs: &FrozenInputs, destination: &Destination, options: &PlanOptions) -> Result<String, Error> {
    let json = |result: serde_json::Result<Vec<u8>>| {
        result.map_err(|error| Error::Storage(format!("cannot encode the plan: {error}")))
    };
    let digest = Digest::new().with(DIGEST_DOMAIN).with(json(serde_json::to_vec(&inputs.brief))?);
    // Earlier versions did not trim cells. The digests of their plans must stay the same.
    let digest = if inputs.trims_cells { digest.with("trims_cells") } else { digest };
    let texts = json(serde_json::to_vec(&inputs.includes))?;
    let digest = digest.with(texts).with(&inputs.recipients_sha256).with(format_addresses(destination));
    Ok(digest.with(destination.account_name()).with(json(serde_json::to_vec(options))?).finish())
}

/// Stores a plan and returns its digest.
async fn store_plan(adapters: &Adapters, planned: PlannedCampaign, destination: &Destination) -> Result<String, Error> {
    let digest = compute_digest(&planned.inputs, destination, &planned.options)?;
    let record = PlanContent::Campaign(Box::new(planned)).to_record()?;
    adapters
        .ledger
        .store_record(PlanRecord::Plan(Plan { digest: digest.clone(), record, at: (adapters.clock)() }))
        .await?;
    Ok(digest)
}

impl PlannedCampaign {
    /// Describes the differences from the plan.
    pub(crate) fn describe_differences(
        &self,
        current: &FrozenInputs,
        destination: &Destination,
        options: &PlanOptions,
    ) -> Vec<String> {
        let (planned, brief) = (&self.inputs.brief, &current.brief);
        let mut differences = Vec::new();
        let mut note = |differs: bool, words: &str| differences.extend(differs.then(|| words.to_owned()));
        note(planned.name != brief.name, "`name`");
        note(planned.title != brief.title, "`title`");
        note(planned.gateway != brief.gateway, "the gateway");
        let is_same_gateway = planned.gateway == brief.gateway;
        note(is_same_gateway && self.addresses != format_addresses(destination), "the gateway's addresses");
        note(is_same_gateway && self.account != destination.account_name(), "the gateway's account");
        note(self.options.rows != options.rows, "the option `--rows`");
        note(self.options.limit != options.limit, "the option `--limit`");
        note(self.options.again != options.again, "the option `--again`");
        note(self.options.occurrence != options.occurrence, "the scheduled time");
        note(self.options.tests_to != options.tests_to, "the recipients of test messages");
        note(self.options.hours != options.hours, "the sending hours");
        note(is_same_gateway && self.options.countries != options.countries, "`policy.countries` in the profile");
        note(self.options.on_in_doubt != options.on_in_doubt, "`delivery.on_in_doubt`");
        note(self.inputs.trims_cells != current.trims_cells, "the handling of spaces around cell values");
        differences.extend(self.resource_differences(options, is_same_gateway));
        let list = (self.inputs.recipients_sha256 != current.recipients_sha256).then(|| "the list".to_owned());
        let texts = list_differing_texts(&self.inputs, current);
        // The names of the differing texts are more specific than `CHANGED_TEXTS`.
        let name_texts = |words: String| match words.as_str() {
            CHANGED_TEXTS if !texts.is_empty() => texts.clone(),
            _ => vec![words],
        };
        differences
            .extend(self.inputs.describe_differences(brief, &current.includes, list).into_iter().flat_map(name_texts));
        if differences.is_empty() {
            differences.push("the campaign file".to_owned());
        }
        differences
    }
}

/// Lists the texts that differ. The list is empty if the message form or the names of the texts differ too.
fn list_differing_texts(planned: &FrozenInputs, current: &FrozenInputs) -> Vec<String> {
    let collect_texts = |inputs: &FrozenInputs| {
        let mut texts = Vec::new();
        let form = inputs.brief.content.try_map_texts(|text: &NamedTemplate| {
            texts.push((text.name.clone(), text.source.clone()));
            Ok::<_, ()>(())
        });
        texts.extend(inputs.includes.iter().cloned());
        (form, texts)
    };
    let (planned_form, planned_texts): (Result<MessageContent<()>, ()>, _) = collect_texts(planned);
    let (current_form, current_texts) = collect_texts(current);
    let collect_names = |texts: &[(String, String)]| texts.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    if planned_form != current_form || collect_names(&planned_texts) != collect_names(&current_texts) {
        return Vec::new();
    }
    let pairs = planned_texts.iter().zip(&current_texts);
    let differing = pairs.filter(|((_, planned_source), (_, current_source))| planned_source != current_source);
    let mut descriptions: Vec<String> = differing.map(|((name, _), _)| format!("the text `{name}`")).collect();
    descriptions.dedup();
    descriptions
}

/// A digest under construction.
pub(crate) struct Digest(Sha256);

impl Digest {
    /// An empty digest.
    pub(crate) fn new() -> Self {
        Self(Sha256::new())
    }

    /// Adds bytes, preceded by their length, so that different sequences of inputs have different digests.
    pub(crate) fn with(mut self, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// The digest in hexadecimal.
    pub(crate) fn finish(self) -> String {
        self.0.finalize().iter().fold(String::new(), |mut text, byte| {
            // Writing into a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// The keys of sources whose content is in the digest of every version.
const CONTENT_IN_DIGEST: [&str; 2] = ["recipients.file", "recipients.run"];

/// Computes the SHA-256 of each current resource of a campaign, by resource key.
fn hash_resources(inputs: &Inputs) -> BTreeMap<String, String> {
    let resources = inputs.campaign.list_resources(inputs.destination.profile());
    let hash = |written: &str| Digest::new().with(written).finish();
    resources.into_iter().map(|resource| (resource.key, hash(&resource.written))).collect()
}

impl PlanOptions {
    /// The options with the campaign's current sending hours, resources, countries and policy for rows in doubt.
    fn with_current_terms_of(self, inputs: &Inputs) -> Self {
        let on_in_doubt = inputs.campaign.delivery.on_in_doubt;
        Self {
            hours: inputs.campaign.describe_hours(inputs.destination.profile()),
            resources: hash_resources(inputs),
            on_in_doubt: Some(on_in_doubt).filter(|policy| *policy != InDoubtPolicy::Hold),
            countries: inputs.destination.profile().and_then(|profile| profile.countries.clone()),
            ..self
        }
    }

    /// Whether an earlier version recorded these options. Newer plans always contain at least the source of their list.
    fn is_from_earlier_version(&self) -> bool {
        self.resources.is_empty()
    }

    /// Converts the options to the form that an earlier version recorded, if the digest of that version covers
    /// everything in the campaign.
    ///
    /// The earlier digest does not cover programs, URLs and suppression lists. An occurrence is an exception: the
    /// schedule compares the whole campaign file, and the occurrence could not be planned again.
    fn to_earlier_version(&self) -> Option<Self> {
        let is_all_covered = self.on_in_doubt.is_none() && self.resources.keys().all(|key| is_covered(key));
        let earlier = || Self { resources: BTreeMap::new(), on_in_doubt: None, countries: None, ..self.clone() };
        (is_all_covered || self.occurrence.is_some()).then(earlier)
    }
}

/// Whether the digest of an earlier version covers the resource, or the operator wrote the resource in the profile.
fn is_covered(key: &str) -> bool {
    CONTENT_IN_DIGEST.contains(&key) || key.starts_with("data.") || is_profile_key(key)
}

fn is_profile_key(key: &str) -> bool {
    key.starts_with("profile.")
}

/// Lists the valid digests of these inputs: the current digest, and the digest of an earlier version if that is still
/// valid.
///
/// A plan of this version never has a digest of an earlier version.
fn list_valid_digests(
    inputs: &FrozenInputs,
    destination: &Destination,
    options: &PlanOptions,
) -> Result<Vec<String>, Error> {
    let all = std::iter::once(options.clone()).chain(options.to_earlier_version());
    all.map(|options| compute_digest(inputs, destination, &options)).collect()
}

impl PlannedCampaign {
    /// Refuses programs, URLs and sources that differ from the plan, before any of them is started, contacted or read.
    pub(crate) fn refuse_changed_resources(&self, digest: &str, inputs: &Inputs) -> Result<(), Error> {
        let options = self.options.clone().with_current_terms_of(inputs);
        let is_same_gateway = self.inputs.brief.gateway == inputs.campaign.brief.gateway;
        let differences = self.resource_differences(&options, is_same_gateway);
        if differences.is_empty() {
            return Ok(());
        }
        let (file, gateway) = (inputs.campaign.file.clone(), inputs.campaign.brief.gateway.clone());
        Err(Error::Plan(PlanRefusal::Changed { digest: digest.to_owned(), file, gateway, differences }))
    }

    /// Describes the programs, URLs and sources that differ from the plan. If the plan is for another gateway, the
    /// resources of the profile are ignored.
    fn resource_differences(&self, options: &PlanOptions, is_same_gateway: bool) -> Vec<String> {
        let (planned, current) = (&self.options.resources, &options.resources);
        let describe = |key: &String| format!("the {} `{key}`", ResourceKind::for_key(key).kind_name());
        if self.options.is_from_earlier_version() {
            let is_unknown = |key: &&String| options.to_earlier_version().is_none() && !is_covered(key);
            let describe_unrecorded =
                |key| format!("{} (which an earlier version of campaign did not record in the plan)", describe(key));
            return current.keys().filter(is_unknown).map(describe_unrecorded).collect();
        }
        let mut keys: Vec<&String> = planned.keys().chain(current.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        let differs =
            |key: &&String| planned.get(*key) != current.get(*key) && (is_same_gateway || !is_profile_key(key));
        keys.into_iter().filter(differs).map(describe).collect()
    }
}

/// A new plan.
#[derive(Debug)]
pub struct CreatedPlan {
    /// The digest of the plan.
    pub digest: String,
    /// The planned campaign.
    pub planned: PlannedCampaign,
    /// The survey of the list.
    pub list: ListSurvey,
    /// The planned rows.
    pub rows: RoaringBitmap,
    /// The forecast of the messages, cost and duration for the planned rows.
    pub forecast: Forecast,
    /// The cost of the messages, if the profile has prices.
    pub cost: Option<Cost>,
    /// Warnings and notes.
    pub findings: Vec<Finding>,
    /// The programs, URLs and sources of the campaign.
    pub resources: Vec<Resource>,
}

/// The figures of a plan, as `plan --json` prints them.
#[derive(Debug, serde::Serialize)]
pub struct PlanFigures {
    /// The digest of the plan.
    pub digest: String,
    /// The rows of the list.
    pub rows: u64,
    /// The rows by state.
    pub counts: serde_json::Value,
    /// The number of messages.
    pub messages: u64,
    /// The number of message parts.
    pub parts: u64,
    /// The highest cost, if it is known.
    pub cost: Option<Amount>,
    /// The currency of the cost.
    pub currency: Option<String>,
    /// The policy for rows in doubt.
    pub on_in_doubt: &'static str,
    /// The programs, URLs and sources of the campaign.
    pub resources: Vec<serde_json::Value>,
}

impl CreatedPlan {
    /// The figures of the plan.
    pub fn figures(&self) -> PlanFigures {
        let PlannedCampaign { rows, messages, counts, parts, cost, currency, options, .. } = &self.planned;
        PlanFigures {
            digest: self.digest.clone(),
            rows: *rows,
            counts: campaign_engine::report::counts_json(counts),
            messages: *messages,
            parts: *parts,
            cost: *cost,
            currency: currency.clone(),
            on_in_doubt: options.on_in_doubt.unwrap_or_default().name(),
            resources: self.resources.iter().map(Resource::to_json).collect(),
        }
    }
}

/// Surveys the list of a campaign for recipients without a message, for the unfinished run `open`, or for all
/// recipients if `again` is set. A ledger that does not contain all sent messages is refused, because the figures would
/// be wrong.
async fn survey_for_plan(
    adapters: &Adapters,
    inputs: &Arc<Inputs>,
    open: Option<Run>,
    again: bool,
    is_scheduled: bool,
) -> Result<ListSurvey, Error> {
    // An occurrence begins its own run.
    let resumed = open.filter(|_| !is_scheduled);
    let ledger = adapters.ledger.as_ref();
    refuse_lost_ledger(ledger, inputs).await?;
    let edition = match &resumed {
        Some(run) => run.edition.clone(),
        None => TodaysTexts::compile(inputs).await?.edition,
    };
    let mut sent = find_sent_recipients(ledger, inputs, &edition).await?;
    if again {
        sent.begin_round();
    }
    survey_unsent(inputs, ledger, &sent, resumed.as_ref(), &adapters.observer).await
}

/// Plans a run as if to send it, and keeps the plan for thirty days.
///
/// # Errors
/// If the run could not be sent now.
pub async fn create_plan(
    adapters: &Adapters,
    inputs: &Arc<Inputs>,
    request: &RunRequest,
) -> Result<CreatedPlan, Error> {
    let ledger = adapters.ledger.as_ref();
    let files = ProtectedFiles { state: &adapters.state, profiles: &adapters.profiles };
    if let Some(finding) = files.check_results_target(inputs) {
        return Err(Error::Findings(vec![finding]));
    }
    let now = (adapters.clock)();
    // An occurrence is planned when it is due. Any other plan is for a later run, on the scheduled dates if there are
    // any.
    let start = match (&request.occurrence, inputs.campaign.next_due_after(now)) {
        (None, Some(_)) => RunStart::Scheduled(now),
        (Some(_), _) | (None, None) => RunStart::At(now),
    };
    refuse_expired_campaign(inputs, now)?;
    let open = refuse_start(ledger, inputs).await?;
    if let Some(profile) = inputs.destination.profile() {
        check_profile(adapters, profile).await?;
    }
    let again = request.round != Round::Same;
    if let Some(open) = open.as_ref().filter(|_| again) {
        return Err(Error::RoundUnfinished { run: open.name() });
    }
    let list = survey_for_plan(adapters, inputs, open, again, request.occurrence.is_some()).await?;
    let survey = &list.survey;
    refuse_unsendable_run(inputs, &list, start)?;
    if request.occurrence.is_none() {
        refuse_failed_tests(inputs, &adapters.observer).await?;
    }
    let chosen = request.choose_rows(&survey.planned_rows(), survey.last_row)?;
    request.check_recipient_count(inputs.destination.profile(), survey.count_planned())?;
    request.check_abroad_count(inputs.destination.profile(), &list)?;
    let (planned, cost) = plan_campaign(inputs, &list, &chosen, request);
    let digest = store_plan(adapters, planned.clone(), &inputs.destination).await?;
    let mut findings = check_inputs(inputs, Some(&list), start);
    // These limits have already been checked, with the numbers that the request allows.
    findings.retain(|finding| ![&ABROAD_LIMIT, &RECIPIENTS_LIMIT].contains(&finding.rule));
    let due = inputs.campaign.next_due_after(now);
    let forecast = Forecast::for_rows(&inputs.campaign, inputs.destination.profile(), &list.survey, &chosen, due);
    let resources = inputs.campaign.list_resources(inputs.destination.profile());
    Ok(CreatedPlan { digest, planned, list, rows: chosen, forecast, cost, findings, resources })
}

/// Plans a run to these rows, and estimates the cost if the profile has prices.
fn plan_campaign(
    inputs: &Inputs,
    list: &ListSurvey,
    chosen: &RoaringBitmap,
    request: &RunRequest,
) -> (PlannedCampaign, Option<Cost>) {
    let (survey, cost) = (&list.survey, list.compute_cost(inputs, chosen));
    let parts = survey.by_size.iter().map(|(size, rows)| size.billed_parts() * rows.intersection_len(chosen)).sum();
    let currency = inputs.destination.profile().and_then(|profile| profile.currency.clone());
    let planned = PlannedCampaign {
        inputs: freeze_inputs(inputs, list),
        addresses: crate::schedule::format_addresses(&inputs.destination),
        account: inputs.destination.account_name().to_owned(),
        options: PlanOptions::from_request(request, inputs),
        rows: survey.recipients,
        messages: chosen.len(),
        counts: survey.count_by_state(),
        parts,
        cost: match &cost {
            Some(Cost::AtMost(cost)) => Some(*cost),
            _ => None,
        },
        currency,
    };
    (planned, cost)
}
