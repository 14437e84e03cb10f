//! The `approval` rule that the ledger keeps for an account: only a person at a terminal can weaken it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Adapters, Error, check_host, current_person};
use campaign_core::domain::format_count;
use campaign_engine::report::format_local_minute;
use campaign_ledger::{LedgerError, PlanRecord, StoredApprovalRule};
use campaign_manifest::{ApprovalRule, ApproverKey, EndpointUrl, Profile};

/// A weaker `approval` rule of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeakerRule {
    /// The profile.
    pub gateway: String,
    /// The account of the recorded rule, which can differ from the profile's account.
    pub account: String,
    /// The recorded rule, in words.
    pub known: String,
    /// The current rule of the profile, in words.
    pub now: String,
    /// The person who recorded the rule.
    pub by: String,
    /// The time at which the rule was recorded.
    pub at: Timestamp,
}

impl std::fmt::Display for WeakerRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { gateway, account, known, now, by, at } = self;
        write!(
            f,
            "the account `{account}` needs {known} (recorded by {by} at {}), but the gateway `{gateway}` now requires {now}",
            format_local_minute(*at)
        )
    }
}

/// Requires that a profile has its trusted host, and an `approval` rule at least as strict as the account's last rule.
///
/// A new or stricter rule is recorded. Gateways on loopback need no approval, so their rules are not compared.
///
/// # Errors
/// If the host changed, the rule became weaker, or the ledger fails.
pub(crate) async fn check_profile(adapters: &Adapters, profile: &Profile) -> Result<(), Error> {
    check_host(adapters.ledger.as_ref(), profile).await?;
    match find_weaker_rules(adapters, profile).await?.into_iter().next() {
        Some(change) => Err(Error::WeakerApproval(Box::new(change))),
        None => record_rule(adapters, profile).await,
    }
}

/// Finds the changes that a person must accept before sending through a profile. The list is empty if the profile's
/// rule is strict enough.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn find_weaker_rules(adapters: &Adapters, profile: &Profile) -> Result<Vec<WeakerRule>, Error> {
    if profile.is_loopback() {
        return Ok(Vec::new());
    }
    let current = RecordedRule::from_rule(profile.approval.as_ref());
    let governing = load_governing_rules(adapters, profile).await?.into_iter();
    let mut changes: Vec<WeakerRule> = Vec::new();
    for (record, known) in governing.filter(|(_, known)| known.is_weakened_by(&current)) {
        let change = weaker_rule(profile, &record, &known);
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    Ok(changes)
}

/// Records the current approval rule of a profile, with the person and the time, if the rule is new or has changed.
///
/// # Errors
/// If the ledger fails.
pub async fn record_rule(adapters: &Adapters, profile: &Profile) -> Result<(), Error> {
    if profile.is_loopback() {
        return Ok(());
    }
    let current = RecordedRule::from_rule(profile.approval.as_ref());
    let governing = load_governing_rules(adapters, profile).await?;
    let is_new = governing.is_empty() && profile.approval.is_some();
    let has_account_rule = governing.iter().any(|(record, _)| record.account == profile.account);
    let lacks_account_rule = !governing.is_empty() && !has_account_rule;
    let differs = governing.iter().any(|(_, known)| *known != current);
    match is_new || differs || lacks_account_rule {
        true => store_rule(adapters, profile, &current).await,
        false => Ok(()),
    }
}

async fn store_rule(adapters: &Adapters, profile: &Profile, current: &RecordedRule) -> Result<(), Error> {
    let rule = StoredApprovalRule {
        account: profile.account.clone(),
        gateway: profile.name.clone(),
        hosts: list_hosts(profile),
        rule: serde_json::to_string(current).map_err(|error| Error::Internal(error.to_string()))?,
        by: current_person(),
        at: (adapters.clock)(),
    };
    adapters.ledger.store_record(PlanRecord::Rule(rule)).await?;
    Ok(())
}

/// Loads the recorded rules that a profile must not weaken: the latest rule of its account and the latest rule of its
/// name. If the account has no rule, the latest rule of each account on the profile's hosts counts too.
async fn load_governing_rules(
    adapters: &Adapters,
    profile: &Profile,
) -> Result<Vec<(StoredApprovalRule, RecordedRule)>, Error> {
    let records = adapters.ledger.list_approval_rules().await?;
    let governing = select_governing_rules(&records, profile).into_iter().map(|record| {
        let damage_error =
            |_| LedgerError::Damaged { what: format!("the approval rule for account {}", record.account) };
        Ok((record.clone(), serde_json::from_str(&record.rule).map_err(damage_error)?))
    });
    governing.collect()
}

fn select_governing_rules<'r>(records: &'r [StoredApprovalRule], profile: &Profile) -> Vec<&'r StoredApprovalRule> {
    let account_rule = records.iter().rfind(|record| record.account == profile.account);
    let profile_rule = records.iter().rfind(|record| record.gateway == profile.name);
    let rules = account_rule.into_iter().chain(profile_rule);
    if account_rule.is_some() {
        return rules.collect();
    }
    let hosts = list_hosts(profile);
    let mut rules_by_account = BTreeMap::new();
    for record in records.iter().filter(|record| record.hosts.iter().any(|host| hosts.contains(host))) {
        rules_by_account.insert(&record.account, record);
    }
    rules.chain(rules_by_account.into_values()).collect()
}

fn list_hosts(profile: &Profile) -> Vec<String> {
    [Some(&profile.base_url), profile.async_url.as_ref()]
        .into_iter()
        .flatten()
        .map(EndpointUrl::host_and_port)
        .collect()
}

fn weaker_rule(profile: &Profile, record: &StoredApprovalRule, known: &RecordedRule) -> WeakerRule {
    WeakerRule {
        gateway: profile.name.clone(),
        account: record.account.clone(),
        known: known.to_string(),
        now: RecordedRule::from_rule(profile.approval.as_ref()).to_string(),
        by: record.by.clone(),
        at: record.at,
    }
}

/// A rule in the ledger: public keys by the names of their owners. `None` if no approval is necessary.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RecordedRule(Option<RuleLimits>);

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RuleLimits {
    above: u32,
    by: BTreeMap<String, String>,
}

impl RecordedRule {
    fn from_rule(rule: Option<&ApprovalRule>) -> Self {
        let to_strings = |(name, key): &(String, ApproverKey)| (name.clone(), key.to_string());
        Self(
            rule.map(|ApprovalRule { above, by }| RuleLimits {
                above: *above,
                by: by.iter().map(to_strings).collect(),
            }),
        )
    }

    /// Whether the `current` rule allows more than this rule: a higher limit, or a person or key that this rule lacks.
    fn is_weakened_by(&self, current: &Self) -> bool {
        match (&self.0, &current.0) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(known), Some(current)) => {
                let is_new = |(name, key): (&String, &String)| known.by.get(name) != Some(key);
                current.above > known.above || current.by.iter().any(is_new)
            }
        }
    }
}

impl std::fmt::Display for RecordedRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            None => f.write_str("no approval"),
            Some(RuleLimits { above, by }) => {
                let describe_approver = |(name, key): (&String, &String)| format!("{name} ({key})");
                let by: Vec<String> = by.iter().map(describe_approver).collect();
                let recipients = format_count((*above).into(), "recipient");
                write!(f, "approval by {} for more than {recipients}", by.join(" or "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(above: u32, by: &[(&str, &str)]) -> RecordedRule {
        let by = by.iter().map(|(name, key)| ((*name).to_owned(), (*key).to_owned())).collect();
        RecordedRule(Some(RuleLimits { above, by }))
    }

    #[test]
    fn rule_is_weakened_if_it_is_removed_or_allows_more() {
        let known = rule(10, &[("Olha", "a"), ("Petro", "b")]);
        for (now, expected) in [
            (RecordedRule(None), true),
            (rule(11, &[("Olha", "a")]), true),
            (rule(10, &[("Olha", "c")]), true),
            (rule(10, &[("Olha", "a"), ("Taras", "d")]), true),
            (rule(10, &[("Taras", "a")]), true),
            (rule(10, &[("Olha", "a"), ("Petro", "b")]), false),
            (rule(9, &[("Olha", "a")]), false),
            (rule(0, &[]), false),
        ] {
            assert_eq!(known.is_weakened_by(&now), expected, "{now}");
        }
        assert!(!RecordedRule(None).is_weakened_by(&rule(10, &[])));
    }
}
