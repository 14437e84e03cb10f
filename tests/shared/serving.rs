//! `campaign serve` on several machines: one occurrence fires once, and any server accepts receipts.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::receipts::{Hooked, operations, post, webhook_path};
use crate::support::{Clock, Cluster, Gateway, Server, campaign, phone, unreachable_url, until};

#[test]
fn only_one_of_three_servers_fires_and_any_accepts_receipts() {
    let Some(cluster) = Cluster::shared() else { return };
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let draft = campaign().to(6).top("timezone: UTC").top("schedule: { cron: \"0 9 * * *\" }").through(&gateway);
    let hooked = Hooked::write(draft);
    let hooked = Hooked { sale: hooked.sale.with_database(&cluster.create_database()), ..hooked };
    let sale = &hooked.sale;
    let schedule = sale.campaign(&["schedule", "add", "sale.yaml", "--json"]).exits(0).json();
    let due: Timestamp = schedule["next"][0].as_str().expect("a date").parse().expect("a moment");
    let before = clock.set_to(due - SignedDuration::from_secs(2));
    let endpoints: Vec<String> = (0..3).map(|_| unreachable_url().trim_start_matches("http://").to_owned()).collect();
    let servers: Vec<Server> = endpoints
        .iter()
        .enumerate()
        .map(|(machine, endpoint)| {
            let state = format!("machine-{machine}");
            Server::start_after(sale, &before, &["--hooks", endpoint, "--state-dir", &state])
        })
        .collect();
    until("the occurrence is sent", || gateway.phones().len() == 6);
    let since = std::time::Instant::now();
    until("the run is finished", || {
        let summary = sale.campaign(&["status", "sale", "--json"]).json();
        if since.elapsed().as_secs() > 10 {
            panic!("{summary} {}", sale.campaign(&["status", "--all"]).details());
        }
        summary["state"] == "finished"
    });
    for (index, operation) in operations(&gateway).iter().enumerate() {
        let receipt = json!({"success": true, "id": operation["id"].to_string(), "msg_id": "71", "type": "sms",
            "status": "DELIVERED", "updated": "2026-11-22T12:00:01+02:00"});
        // Two servers get each receipt: the gateway can repeat a webhook, and a load balancer can choose any server.
        for endpoint in [&endpoints[index % 3], &endpoints[(index + 1) % 3]] {
            assert_eq!(post(endpoint, webhook_path(operation), &receipt.to_string()), 200);
        }
    }
    let summary = sale.campaign(&["status", "sale", "--json"]).json();
    assert_eq!(summary["counts"], json!({ "delivered": 6 }));
    for server in servers {
        server.end("TERM").exits(0);
    }
    let message_counts = gateway.phones().into_iter().fold(BTreeMap::new(), |mut counts, phone| {
        *counts.entry(phone).or_insert(0) += 1;
        counts
    });
    assert_eq!(message_counts, (2..8).map(|row| (phone(row), 1)).collect());
    let runs = sale.campaign(&["status", "--all", "--json"]).json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(1), "{runs}");
}
