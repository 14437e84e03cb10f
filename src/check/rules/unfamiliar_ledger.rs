//! A shared ledger that this machine has never written to, in which other machines have sent.

use crate::finding::{Finding, Rule, quoted};

pub(super) static RULE: Rule = Rule::warning(
    "unfamiliar-ledger",
    "This machine has no high-water mark of the ledger, so it cannot tell an older copy from the newest one. A database that was \
     put back from a snapshot of a disk or a virtual machine, or a base backup that was started without recovery, does not know \
     who got a message since, and those recipients would get it again.",
    "Before you send, compare the latest run that `campaign status` shows with the last one that you know of. If the database was \
     put back, follow \"A snapshot of the database\" in docs/shared-ledger.md. The warning ends with the first command on this \
     machine that changes the ledger.",
);

/// What is said of a ledger with so many live runs, of which this is the latest.
#[must_use]
pub fn unfamiliar_ledger(place: &str, (runs, latest): (u64, &str)) -> Finding {
    let runs = if runs == 1 { "a live run".to_owned() } else { format!("{runs} live runs") };
    let message = format!(
        "this machine has never used the ledger {}, which has {runs} of other machines, the latest one {latest}",
        quoted(place)
    );
    Finding::new(&RULE, message).help(
        "make sure with `campaign status` that no later run is missing: a database that was put back from a snapshot sends \
         again what was sent since",
    )
}
