//! Metrics endpoint of a worker: figures of the runs that it sends, but no phone numbers.

use serde_json::Value;

use super::{small_shard_campaign, start_worker_with};
use crate::support::{Gateway, Process, http_get, phone, until};

#[test]
fn worker_serves_its_metrics_until_it_ends() {
    let gateway = Gateway::accepting();
    let sale = small_shard_campaign(90).through(&gateway).write();
    let mut worker = Process::start(sale.command(&["worker", "--metrics", "127.0.0.1:0", "--json"]));
    until("the worker looks for runs", || worker.stdout().ends_with('\n'));
    let other = start_worker_with(&sale, &[]);
    let line: Value = serde_json::from_str(worker.stdout().lines().next().expect("a line")).expect("an object");
    let url = line["metrics"].as_str().expect("an address");
    let address = url.trim_start_matches("http://").trim_end_matches("/metrics");
    assert!(url.ends_with("/metrics") && !address.ends_with(":0"), "{line}");
    sale.run(&["--shared"]).exits(0);
    until("all messages are counted", || {
        let response = http_get(address, "/metrics", &[]);
        response.status == 200 && response.body.contains("campaign_messages{gateway=\"local\",state=\"accepted\"} 90")
    });
    let response = http_get(address, "/metrics", &[("Host", "prometheus.example")]);
    assert!(
        response.status == 200 && response.body.contains("campaign_ledger_commit_seconds_count"),
        "{}",
        response.body
    );
    assert!((2..92).all(|row| !response.body.contains(&phone(row).to_string())), "{}", response.body);
    assert_eq!(http_get(address, "/", &[]).status, 404);
    worker.signal("TERM");
    worker.finish().exits(0);
    assert!(std::net::TcpStream::connect(address).is_err(), "the endpoint is still open");
    drop(other);
}
