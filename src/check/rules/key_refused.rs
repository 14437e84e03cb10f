//! A key that the gateway does not take.

use crate::finding::{Finding, Rule, RuleText};

/// The gateway does not take the key.
pub static RULE: Rule = Rule::error(
    "key-refused",
    RuleText {
        cause: "The gateway rejects the API key. No messages can be sent.",
        example: &["gateways.yaml: production: { api_key: { env: CAMPAIGN_API_KEY } }     # the key is out of date"],
        fix: "check the key that the profile names under `api_key`",
    },
);

/// The key was refused, for that reason.
pub(in crate::check) fn key_rejected_finding(reason: String, key: &str) -> Finding {
    Finding::new(&RULE, reason).help(format!("check {key}; the profile reads the API key from there"))
}
