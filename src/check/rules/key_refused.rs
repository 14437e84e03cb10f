//! A key that the gateway does not take.

use crate::finding::{Finding, Rule};

/// The gateway does not take the key.
pub static RULE: Rule = Rule::error(
    "key-refused",
    "The gateway executes nothing for a key that it does not know.",
    "Check what the profile says of its `api_key`.",
);

/// The key was refused, for that reason.
pub(in crate::check) fn judge(reason: String, key: &str) -> Finding {
    Finding::new(&RULE, reason).help(format!("the key comes from {key}, as its profile says"))
}
