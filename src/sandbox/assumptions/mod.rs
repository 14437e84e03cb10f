//! What the sandbox decides where the contract shows nothing.

mod answers;
mod outcomes;
mod requests;

/// A decision of the sandbox where the contract leaves something open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub change: &'static str,
}

/// Every decision of the sandbox where the contract shows nothing.
pub const ASSUMPTIONS: &[Assumption] = &joined::<{ count() }>();

const TABLES: [&[Assumption]; 3] = [requests::ROWS, answers::ROWS, outcomes::ROWS];

const fn row(id: &'static str, what: &'static str, choice: &'static str, reason: &'static str) -> Assumption {
    Assumption { id, what, choice, reason, change: "" }
}

impl Assumption {
    const fn changed_by(self, change: &'static str) -> Self {
        Self { change, ..self }
    }
}

const fn count() -> usize {
    TABLES[0].len() + TABLES[1].len() + TABLES[2].len()
}

const fn joined<const COUNT: usize>() -> [Assumption; COUNT] {
    let mut all = [TABLES[0][0]; COUNT];
    let (mut place, mut table, mut row) = (0, 0, 0);
    while place < COUNT {
        if row == TABLES[table].len() {
            (table, row) = (table + 1, 0);
        } else {
            all[place] = TABLES[table][row];
            (place, row) = (place + 1, row + 1);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The keys at the top of a scenario file.
    const KEYS: [&str; 11] = [
        "accounts",
        "channels",
        "charge_undelivered",
        "exceptions",
        "faults",
        "prices",
        "seed",
        "speed",
        "status",
        "templates",
        "webhooks",
    ];

    #[test]
    fn every_assumption_has_a_name_of_its_own_and_says_something() {
        let ids: BTreeSet<_> = ASSUMPTIONS.iter().map(|assumption| assumption.id).collect();
        assert_eq!(ids.len(), ASSUMPTIONS.len());
        assert_eq!(ASSUMPTIONS.len(), TABLES.iter().map(|table| table.len()).sum::<usize>());
        for Assumption { id, what, choice, reason, .. } in ASSUMPTIONS {
            assert!([id, what, choice, reason].iter().all(|text| !text.trim().is_empty()), "{id}");
            assert!(id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{id}");
        }
    }

    #[test]
    fn every_key_of_a_scenario_changes_an_assumption_and_no_other_does() {
        let changes = ASSUMPTIONS.iter().filter(|assumption| !assumption.change.is_empty());
        let keys: BTreeSet<_> = changes
            .flat_map(|assumption| assumption.change.split(", "))
            .map(|key| key.split(['.', '[']).next().unwrap_or_default())
            .collect();
        assert_eq!(keys, KEYS.into());
    }
}
