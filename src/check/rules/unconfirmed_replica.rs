//! A ledger in a database with replicas that may take over without its last commits.

use crate::finding::{Finding, Rule};

pub(super) static RULE: Rule = Rule::warning(
    "unconfirmed-replica",
    "A replica that takes the place of the ledger's database without its last commits does not know who has a message by now; a \
     machine that did not see those commits itself would send again.",
    "Name the replicas in the database's `synchronous_standby_names`, so that one of them has each commit before it counts.",
);

/// What is said where so many replicas need not have what was committed.
#[must_use]
pub fn unconfirmed_replica(replicas: u64) -> Option<Finding> {
    let replicas = match replicas {
        0 => return None,
        1 => "a replica that does not".to_owned(),
        more => format!("{more} replicas, none of which has to"),
    };
    let finding = Finding::new(&RULE, format!("the ledger's database has {replicas} confirm its commits"));
    Some(finding.help("have them named in its `synchronous_standby_names`"))
}
