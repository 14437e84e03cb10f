//! The `approval` rule that the ledger keeps for an account: only a person at a terminal can weaken it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::ApproverKey;
use crate::ledger::{KeptApprovalRule, LedgerError};
use crate::manifest::{ApprovalRule, Profile};
use crate::runs::{Adapters, Error, check_host, person};

/// A change of an account's `approval` that approves less strictly than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeakerRule {
    /// The profile.
    pub gateway: String,
    /// The account.
    pub account: String,
    /// The rule that the ledger keeps, in words.
    pub known: String,
    /// The rule that the profile has now, in words.
    pub now: String,
    /// Who recorded the kept rule.
    pub by: String,
    /// When it was recorded.
    pub at: Timestamp,
}

/// Requires that the ledger knows the host of a profile, and that its `approval` is as strict as the account's last one.
///
/// A new or stricter rule is recorded. Gateways on loopback need no approval, so their rules are not compared.
///
/// # Errors
/// When the host changed, the rule became weaker, or the ledger fails.
pub(in crate::runs) async fn check_profile(adapters: &Adapters, profile: &Profile) -> Result<(), Error> {
    check_host(adapters.ledger.as_ref(), profile).await?;
    keep_rule(adapters, profile).await
}

/// Records a new or stricter rule of a profile, and refuses a weaker one.
///
/// # Errors
/// When the rule is weaker than the kept one, or the ledger fails.
pub(super) async fn keep_rule(adapters: &Adapters, profile: &Profile) -> Result<(), Error> {
    if profile.is_loopback() {
        return Ok(());
    }
    let now = Written::of(profile.approval.as_ref());
    match kept(adapters, profile).await? {
        Some((_, known)) if known == now => Ok(()),
        None if profile.approval.is_none() => Ok(()),
        Some((record, known)) if known.is_weakened_by(&now) => {
            Err(Error::WeakerApproval(Box::new(weaker(profile, &record, &known))))
        }
        Some(_) | None => record(adapters, profile).await,
    }
}

/// The change that a person has to accept before anything is sent through a profile; nothing if its rule is strict enough.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn weaker_rule(adapters: &Adapters, profile: &Profile) -> Result<Option<WeakerRule>, Error> {
    if profile.is_loopback() {
        return Ok(None);
    }
    let now = Written::of(profile.approval.as_ref());
    let kept = kept(adapters, profile).await?;
    Ok(kept.filter(|(_, known)| known.is_weakened_by(&now)).map(|(record, known)| weaker(profile, &record, &known)))
}

/// Records the rule that a profile has now, with the person and the time.
///
/// # Errors
/// When the ledger cannot be written.
pub async fn trust_rule(adapters: &Adapters, profile: &Profile) -> Result<(), Error> {
    let now = Written::of(profile.approval.as_ref());
    let known = kept(adapters, profile).await?.map_or(Written(None), |(_, known)| known);
    match profile.is_loopback() || known == now {
        true => Ok(()),
        false => record(adapters, profile).await,
    }
}

async fn record(adapters: &Adapters, profile: &Profile) -> Result<(), Error> {
    let rule = serde_json::to_string(&Written::of(profile.approval.as_ref()));
    let rule = KeptApprovalRule {
        account: profile.account.clone(),
        gateway: profile.name.clone(),
        rule: rule.map_err(|error| Error::Internal(error.to_string()))?,
        by: person(),
        at: (adapters.clock)(),
    };
    Ok(adapters.ledger.keep_approval_rule(rule).await?)
}

async fn kept(adapters: &Adapters, profile: &Profile) -> Result<Option<(KeptApprovalRule, Written)>, Error> {
    let Some(record) = adapters.ledger.approval_rule(&profile.account, &profile.name).await? else { return Ok(None) };
    let damaged = |_| LedgerError::Damaged { what: format!("the approval rule of the account {}", record.account) };
    let known = serde_json::from_str(&record.rule).map_err(damaged)?;
    Ok(Some((record, known)))
}

fn weaker(profile: &Profile, record: &KeptApprovalRule, known: &Written) -> WeakerRule {
    WeakerRule {
        gateway: profile.name.clone(),
        account: record.account.clone(),
        known: known.to_string(),
        now: Written::of(profile.approval.as_ref()).to_string(),
        by: record.by.clone(),
        at: record.at,
    }
}

/// A rule as the ledger keeps it: public halves of keys by the names of their owners; nothing if no approval is needed.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Written(Option<Limits>);

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Limits {
    above: u32,
    by: BTreeMap<String, String>,
}

impl Written {
    fn of(rule: Option<&ApprovalRule>) -> Self {
        let written = |(name, key): &(String, ApproverKey)| (name.clone(), key.to_string());
        Self(rule.map(|ApprovalRule { above, by }| Limits { above: *above, by: by.iter().map(written).collect() }))
    }

    /// Whether another rule lets through what this one does not: a higher limit, or a person or key that this one lacks.
    fn is_weakened_by(&self, now: &Self) -> bool {
        match (&self.0, &now.0) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(known), Some(now)) => {
                let is_new = |(name, key): (&String, &String)| known.by.get(name) != Some(key);
                now.above > known.above || now.by.iter().any(is_new)
            }
        }
    }
}

impl std::fmt::Display for Written {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            None => f.write_str("no approval"),
            Some(Limits { above, by }) => {
                let names = |(name, key): (&String, &String)| format!("{name} ({key})");
                let by: Vec<String> = by.iter().map(names).collect();
                write!(f, "an approval above {above} by {}", by.join(" or "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(above: u32, by: &[(&str, &str)]) -> Written {
        let by = by.iter().map(|(name, key)| ((*name).to_owned(), (*key).to_owned())).collect();
        Written(Some(Limits { above, by }))
    }

    #[test]
    fn rule_is_weakened_by_removal_higher_limit_or_new_key() {
        let known = rule(10, &[("Olha", "a"), ("Petro", "b")]);
        for (now, expected) in [
            (Written(None), true),
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
        assert!(!Written(None).is_weakened_by(&rule(10, &[])));
    }
}
