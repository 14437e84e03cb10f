//! The webhooks of the sandbox, taken by a server: what its journal says is what the results say.

use std::collections::BTreeMap;

use super::Hooked;
use crate::support::{SandboxProcess, campaign, until};

#[test]
fn the_results_come_to_what_the_journal_of_the_gateway_says() {
    let sandbox = SandboxProcess::start();
    let hooked = Hooked::write(campaign().to(300).through(&sandbox));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    until("every message has its end", || {
        let counts = hooked.results().counts();
        !counts.contains_key("accepted")
    });
    let journal = sandbox.journal();
    let told: BTreeMap<String, String> = journal
        .iter()
        .filter(|line| line["event"] == "webhook" && line["status"].is_string())
        .map(|line| {
            (
                line["msg_id"].to_string().trim_matches('"').to_owned(),
                line["status"].as_str().expect("a word").to_owned(),
            )
        })
        .collect();
    let results = hooked.results();
    for row in &results.rows {
        assert_eq!(told.get(&row["msg_id"]), Some(&row["gateway_status"]), "{row:?}");
    }
    assert_eq!(told.len(), 300);
    server.end("TERM").exits(0);
}
