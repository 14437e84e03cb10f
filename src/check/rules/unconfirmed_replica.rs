//! A ledger in a database with replicas that may take over without its last commits.

use crate::finding::{Finding, Rule, RuleText};

pub(super) static RULE: Rule = Rule::warning(
    "unconfirmed-replica",
    RuleText {
        cause: "A replica does not confirm the ledger's commits. After a failover, it might not know which recipients \
                already got a message.",
        example: &["the ledger is in PostgreSQL with one asynchronous replica"],
        fix: "list the replicas in `synchronous_standby_names`, so that one of them confirms each commit",
    },
);

/// What is said where so many replicas need not have what was committed.
#[must_use]
pub fn check_replicas(replicas: u64) -> Option<Finding> {
    let replicas = match replicas {
        0 => return None,
        1 => "a replica that does not".to_owned(),
        more => format!("{more} replicas that do not"),
    };
    let finding = Finding::new(&RULE, format!("the ledger's database has {replicas} confirm its commits"));
    Some(finding.help("list the replicas in the database setting `synchronous_standby_names`"))
}
