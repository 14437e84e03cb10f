//! What a campaign asks for and its profile does not allow.

use super::Profile;
use crate::domain::Endpoint;
use crate::finding::Finding;
use crate::manifest::{Campaign, Rate};

/// Where a campaign's file asks for more than its gateway's profile allows.
///
/// Only what the file says is a finding; a default gives way to the profile
/// ([`Delivery::within`](crate::manifest::Delivery::within)).
#[must_use]
pub fn check_against_profile(campaign: &Campaign, profile: &Profile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut told = |key: &str, finding: Finding| {
        if let Some(place) = campaign.places.of_key(key) {
            findings.push(finding.at(place));
        }
    };
    let (delivery, name) = (&campaign.delivery, &profile.name);
    if delivery.batch > profile.batch_limit {
        let message = format!("`batch` is {}, but `{name}` takes at most {}", delivery.batch, profile.batch_limit);
        let help = format!("write `batch: {}` or less", profile.batch_limit);
        told("delivery.batch", Finding::error("batch-limit", message).help(help));
    }
    if delivery.rate == Rate::Unlimited && !profile.is_loopback() {
        let finding = Finding::error("unlimited-rate", "`unlimited` is only for a gateway on this machine");
        told("delivery.rate", finding.help(format!("write at most `rate: {}`", profile.rate)));
    } else if delivery.rate > profile.rate {
        let message = format!("`rate` is {}, but `{name}` allows {}", delivery.rate, profile.rate);
        told(
            "delivery.rate",
            Finding::error("rate-limit", message).help(format!("write at most `rate: {}`", profile.rate)),
        );
    }
    if campaign.brief.endpoint == Endpoint::Async && profile.async_url.is_none() {
        let finding = Finding::error("missing-endpoint", format!("`{name}` has no `async_url`"));
        told("endpoint", finding.help("add `async_url` to the profile, or write `endpoint: sync`"));
    }
    findings
}
