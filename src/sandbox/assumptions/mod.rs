//! What the sandbox decides where the contract shows nothing.

/// A table of assumptions, a row each: what is open, what the sandbox does, why, and what in a scenario changes it.
macro_rules! rows {
    ($($id:literal: $what:literal => $choice:literal because $reason:literal $(changed by $change:literal)?;)*) => {
        &[$(Assumption { id: $id, what: $what, choice: $choice, reason: $reason, change: concat!($($change)?) },)*]
    };
}

mod answers;
mod outcomes;
mod requests;

use serde::Serialize;

/// A decision of the sandbox where the contract leaves something open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Assumption {
    /// A short name, unique in the table.
    pub id: &'static str,
    /// What is left open.
    pub what: &'static str,
    /// What the sandbox does.
    pub choice: &'static str,
    /// Why it does that.
    pub reason: &'static str,
    /// The keys of a scenario file that change it, separated by commas; empty if nothing does.
    #[serde(rename = "scenario")]
    pub change: &'static str,
}

/// Every decision of the sandbox where the contract shows nothing.
pub fn assumptions() -> impl Iterator<Item = &'static Assumption> {
    [requests::ROWS, answers::ROWS, outcomes::ROWS].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The keys at the top of a scenario file.
    const KEYS: [&str; 12] = [
        "accounts",
        "channels",
        "charge_undelivered",
        "exceptions",
        "faults",
        "limits",
        "prices",
        "seed",
        "speed",
        "status",
        "templates",
        "webhooks",
    ];

    #[test]
    fn assumption_ids_are_unique_and_texts_not_empty() {
        let ids: BTreeSet<_> = assumptions().map(|assumption| assumption.id).collect();
        assert_eq!(ids.len(), assumptions().count());
        for Assumption { id, what, choice, reason, .. } in assumptions() {
            assert!([id, what, choice, reason].iter().all(|text| !text.trim().is_empty()), "{id}");
            assert!(id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{id}");
        }
    }

    #[test]
    fn every_scenario_key_changes_an_assumption() {
        let changes = assumptions().filter(|assumption| !assumption.change.is_empty());
        let keys: BTreeSet<_> = changes
            .flat_map(|assumption| assumption.change.split(", "))
            .map(|key| key.split(['.', '[']).next().unwrap_or_default())
            .collect();
        assert_eq!(keys, KEYS.into());
    }
}
