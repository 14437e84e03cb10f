//! More would be sent to the list than the campaign's limits allow.

use roaring::RoaringBitmap;

use crate::check::Survey;
use crate::check::online::Cost;
use crate::finding::{Finding, Rule, RuleText};
use crate::manifest::{Campaign, Profile};

pub(super) static RULE: Rule = Rule::warning(
    "over-limits",
    RuleText {
        cause: "The campaign exceeds its `limits`. The run stops at the limit, and the remaining recipients get no \
            message.",
        example: &["limits: { recipients: 1 }                   # the list has more"],
        fix: "shorten the list; raise the limit only if all of these recipients should get a message",
    },
);

/// What is said where messages to these rows go over a limit by themselves, whatever its edition has used before.
#[must_use]
pub fn check_limits(
    campaign: &Campaign,
    profile: Option<&Profile>,
    survey: &Survey,
    rows: &RoaringBitmap,
) -> Vec<Finding> {
    let limits = &campaign.limits;
    let at = |finding: Finding, key| finding.at(campaign.places.locate_key(key));
    let recipients = limits.recipients.filter(|limit| rows.len() > *limit).map(|limit| {
        let people = rows.len();
        let message = format!(
            "{people} recipients would get a message, but `limits.recipients` is {limit}: the run stops at the limit"
        );
        at(Finding::new(&RULE, message), "limits.recipients")
    });
    let cost = profile.and_then(|profile| {
        let Cost::AtMost(most) = Cost::estimate(profile, &campaign.brief, &survey.by_size, rows) else { return None };
        let limit = limits.cost.filter(|limit| most > *limit)?;
        let currency = profile.currency.as_deref().map(|currency| format!(" {currency}")).unwrap_or_default();
        let message = format!(
            "the messages can cost up to {}{currency}, but `limits.cost` is {limit}: the run stops at the limit",
            most.trim_decimals()
        );
        Some(at(Finding::new(&RULE, message), "limits.cost"))
    });
    recipients.into_iter().chain(cost).collect()
}

/// A warning that the list has more recipients than the limit, for lists whose messages are unknown.
#[must_use]
pub fn check_list_limit(campaign: &Campaign, survey: &Survey) -> Option<Finding> {
    let people = survey.count_planned();
    let limit = campaign.limits.recipients.filter(|limit| people > *limit)?;
    let message = format!(
        "{people} recipients in the list can get a message, but `limits.recipients` is {limit}: the run stops at the \
            limit, and the remaining recipients get no message"
    );
    Some(Finding::new(&RULE, message).at(campaign.places.locate_key("limits.recipients")))
}
