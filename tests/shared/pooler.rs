//! PgBouncer between the machines and their database.

use super::run_elsewhere;
use crate::recovery::{Tally, Witness};
use crate::support::{Cluster, Pooler, campaign, phone, until};

#[test]
fn run_works_through_a_pooler_in_transaction_mode() {
    let Some(cluster) = Cluster::shared() else { return };
    let Some(mut pooler) = Pooler::start(cluster) else { return };
    let witness = Witness::start();
    let sale = campaign().to(300).batches_of(5).delivery("rate: 200/s").through(&witness).profile("rate: 200/s");
    let sale = sale.write().with_database(&pooler.address(&cluster.create_database()));
    sale.run(&["--limit", "100"]).exits(0);
    run_elsewhere(&sale, &["status", "sale"]).exits(5);
    run_elsewhere(&sale, &["suppress", "add", &format!("+{}", phone(301))]).exits(0);
    let run = sale.start(&[]);
    until("some messages are sent", || witness.arrivals() >= 150);
    pooler.restart();
    run.finish().exits(0);
    assert_eq!(witness.tally(&sale, (2..302).map(phone)), Tally::default());
    assert_eq!(witness.messages().get(&phone(301)), None);
    sale.campaign(&["ledger", "check"]).exits(0);
}
