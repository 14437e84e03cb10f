//! A key that the gateway does not take.

use crate::finding::{Finding, Rule};

/// The gateway does not take the key.
pub static RULE: Rule = Rule::error(
    "key-refused",
    "The gateway executes nothing for a key that it does not know.",
    "Check where the profile has its `api_key` in gateways.yaml.",
);

/// The key was refused, for that reason.
pub(in crate::check) fn judge(reason: String) -> Finding {
    Finding::new(&RULE, reason).help("check where the profile has its `api_key` in gateways.yaml")
}
