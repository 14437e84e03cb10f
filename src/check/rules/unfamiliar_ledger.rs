//! A shared ledger that this machine has never written to, in which other machines have sent.

use crate::finding::{Finding, Rule, RuleText, quote_for_shell};

pub(super) static RULE: Rule = Rule::warning(
    "unfamiliar-ledger",
    RuleText {
        cause: "This machine has never used this ledger. If the database was restored from an old copy, recipients \
            would get messages again.",
        example: &["`campaign run` on a new computer, with a shared ledger that other computers have used"],
        fix: "compare the latest run in `campaign status` with the last one you know of; if runs are missing, see \"A \
              snapshot of the database\" in docs/shared-ledger.md",
    },
);

/// What is said of a ledger with so many live runs, of which this is the latest.
#[must_use]
pub fn unfamiliar_ledger_finding(place: &str, (runs, latest): (u64, &str)) -> Finding {
    let runs = if runs == 1 {
        "a live run from another machine".to_owned()
    } else {
        format!("{runs} live runs from other machines")
    };
    let message = format!(
        "this machine has never used the ledger {}, which contains {runs}, most recently {latest}",
        quote_for_shell(place)
    );
    Finding::new(&RULE, message).help(
        "check in `campaign status` that no later run is missing: if the database was restored from a snapshot, \
         recipients would get messages again",
    )
}
