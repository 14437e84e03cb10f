//! What a plan is of, its digest, and what differs from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{PlanRefusal, TestRecipients};
use crate::delivery::FrozenInputs;
use crate::domain::{Amount, MessageContent, NamedTemplate};
use crate::ledger::{Plan, StateCounts};
use crate::manifest::{Destination, InDoubtPolicy};
use crate::runs::armed::format_addresses;
use crate::runs::digest::Digest;
use crate::runs::{Adapters, Error, Inputs, Round, RunRequest};

/// What the digests of campaigns are of, so that no digest of something else is one of them.
const DIGEST_DOMAIN: &str = "campaign plan 1";

/// How many digits of a digest are shown; any beginning of it is understood that no other plan has.
const SHORT_LENGTH: usize = 16;

/// A digest as people see it and give it.
#[must_use]
pub fn short_digest(digest: &str) -> &str {
    digest.get(..SHORT_LENGTH).unwrap_or(digest)
}

/// What a plan is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanContent {
    /// A run of a campaign.
    Campaign(Box<PlannedCampaign>),
    /// What an assistant wants to have done, and waits for in another process.
    Pending(PendingRequest),
}

/// Where something that waits for a yes can be looked at: in the memory of the process that will do it, and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRequest {
    /// The gateway's profile.
    pub gateway: String,
    /// The address of the process's door on loopback.
    pub address: String,
    /// What opens the door.
    pub token: String,
}

/// A run of a campaign as it was planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedCampaign {
    /// What the campaign says, its texts, and the hash of its list.
    pub inputs: FrozenInputs,
    /// The addresses of the gateway.
    pub addresses: String,
    /// The account behind it.
    pub account: String,
    /// What was wanted of it.
    pub options: PlanOptions,
    /// How many rows the list has.
    pub rows: u64,
    /// How many people get a message, at most.
    pub messages: u64,
    /// The rows of the list by what becomes of them.
    pub counts: StateCounts,
    /// How many parts the messages have.
    pub parts: u64,
    /// What they cost at most, where the profile has prices for all of them.
    pub cost: Option<Amount>,
    /// The currency of that.
    pub currency: Option<String>,
}

/// What is wanted of a campaign, as far as it says who gets a message and at what hours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanOptions {
    /// Only these rows, such as `2-51,60`.
    pub rows: Option<String>,
    /// Only so many of them.
    pub limit: Option<u64>,
    /// Everybody once more.
    pub again: bool,
    /// The occurrence of the campaign's schedule that it is: its local time and the zone of that.
    pub occurrence: Option<(String, String)>,
    /// When messages may leave, in words; nothing where they always may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<String>,
    /// The recipients of test messages; nothing for a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_to: Option<TestRecipients>,
    /// SHA-256 of each program, address and source that the campaign uses, by its key. Plans of earlier versions have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, String>,
    /// The policy for rows in doubt, unless they stay in doubt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_in_doubt: Option<InDoubtPolicy>,
}

impl PlanOptions {
    /// The options of a request for a campaign.
    pub(in crate::runs) fn from_request(request: &RunRequest, inputs: &Inputs) -> Self {
        let occurrence = request.occurrence.as_ref();
        Self {
            rows: request.rows.as_ref().map(ToString::to_string),
            limit: request.limit,
            again: request.round != Round::Same,
            occurrence: occurrence.map(|occurrence| (occurrence.format_nominal(), occurrence.zone_name().to_owned())),
            ..Self::default().with_resources_of(inputs)
        }
    }
}

impl PlanContent {
    /// It as the ledger keeps it.
    pub(super) fn to_record(&self) -> Result<String, Error> {
        serde_json::to_string(self).map_err(|error| Error::Storage(format!("cannot store the plan: {error}")))
    }

    /// What a plan is of.
    pub(super) fn from_plan(plan: &Plan) -> Result<Self, Error> {
        let unknown = |_| Error::Plan(PlanRefusal::OtherVersion { digest: plan.digest.clone() });
        serde_json::from_str(&plan.record).map_err(unknown)
    }

    /// The campaign that was planned.
    pub(super) fn parse_campaign(plan: &Plan) -> Result<Box<PlannedCampaign>, Error> {
        match Self::from_plan(plan)? {
            PlanContent::Campaign(planned) => Ok(planned),
            PlanContent::Pending(_) => Err(Error::Plan(PlanRefusal::NoCampaign { digest: plan.digest.clone() })),
        }
    }
}

/// The digest of a campaign with its texts and its list, where it goes, and what is wanted of it.
///
/// The date is not in it, nor who opted out or has a message already: they make fewer messages or other words of the same
/// texts.
pub(super) fn compute_digest(
    inputs: &FrozenInputs,
    destination: &Destination,
    options: &PlanOptions,
) -> Result<String, Error> {
    let json = |what: serde_json::Result<Vec<u8>>| {
        what.map_err(|error| Error::Storage(format!("cannot encode the plan: {error}")))
    };
    let said = Digest::new().with(DIGEST_DOMAIN).with(json(serde_json::to_vec(&inputs.brief))?);
    // Plans of earlier versions kept the blanks around cells.
    let said = if inputs.trims_cells { said.with("trims_cells") } else { said };
    let texts = json(serde_json::to_vec(&inputs.includes))?;
    let there = said.with(texts).with(&inputs.recipients_sha256).with(format_addresses(destination));
    Ok(there.with(destination.account_name()).with(json(serde_json::to_vec(options))?).finish())
}

/// Keeps a plan, and gives its digest.
pub(super) async fn store_plan(
    adapters: &Adapters,
    planned: PlannedCampaign,
    destination: &Destination,
) -> Result<String, Error> {
    let digest = compute_digest(&planned.inputs, destination, &planned.options)?;
    let record = PlanContent::Campaign(Box::new(planned)).to_record()?;
    adapters.ledger.keep_plan(Plan { digest: digest.clone(), record, at: (adapters.clock)() }).await?;
    Ok(digest)
}

impl PlannedCampaign {
    /// What differs from the plan, in words.
    pub(in crate::runs) fn describe_differences(
        &self,
        now: &FrozenInputs,
        destination: &Destination,
        options: &PlanOptions,
    ) -> Vec<String> {
        let (then, brief) = (&self.inputs.brief, &now.brief);
        let mut what = Vec::new();
        let mut note = |differs: bool, words: &str| what.extend(differs.then(|| words.to_owned()));
        note(then.name != brief.name, "`name`");
        note(then.gateway != brief.gateway, "the gateway");
        let same_gateway = then.gateway == brief.gateway;
        note(same_gateway && self.addresses != format_addresses(destination), "the gateway's addresses");
        note(same_gateway && self.account != destination.account_name(), "the gateway's account");
        note(self.options.rows != options.rows, "the option `--rows`");
        note(self.options.limit != options.limit, "the option `--limit`");
        note(self.options.again != options.again, "the option `--again`");
        note(self.options.occurrence != options.occurrence, "the scheduled time");
        note(self.options.tests_to != options.tests_to, "the recipients of test messages");
        note(self.options.hours != options.hours, "the sending hours");
        note(self.options.on_in_doubt != options.on_in_doubt, "`delivery.on_in_doubt`");
        note(self.inputs.trims_cells != now.trims_cells, "the handling of spaces around cells");
        what.extend(self.resource_differences(options, same_gateway));
        let list = (self.inputs.recipients_sha256 != now.recipients_sha256).then(|| "the list".to_owned());
        let texts = list_differing_texts(&self.inputs, now);
        // Which text it is says more than that it is one.
        let named = |words: String| match words.as_str() {
            TEXTS_DIFFER if !texts.is_empty() => texts.clone(),
            _ => vec![words],
        };
        what.extend(self.inputs.describe_differences(brief, &now.includes, list).into_iter().flat_map(named));
        if what.is_empty() {
            what.push("the campaign file".to_owned());
        }
        what
    }
}

/// The words for a difference that may be of texts.
const TEXTS_DIFFER: &str = "the channels or their messages";

/// The texts that say something else; none where more than texts differs.
fn list_differing_texts(then: &FrozenInputs, now: &FrozenInputs) -> Vec<String> {
    let texts = |inputs: &FrozenInputs| {
        let mut texts = Vec::new();
        let kept = inputs.brief.content.try_map_texts(|text: &NamedTemplate| {
            texts.push((text.name.clone(), text.source.clone()));
            Ok::<_, ()>(())
        });
        texts.extend(inputs.includes.iter().cloned());
        (kept, texts)
    };
    let ((form, before), (other_form, after)): ((Result<MessageContent<()>, ()>, _), _) = (texts(then), texts(now));
    let names = |texts: &[(String, String)]| texts.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    if form != other_form || names(&before) != names(&after) {
        return Vec::new();
    }
    let differ = before.iter().zip(&after).filter(|(then, now)| then.1 != now.1);
    let mut found: Vec<String> = differ.map(|((name, _), _)| format!("the text `{name}`")).collect();
    found.dedup();
    found
}
