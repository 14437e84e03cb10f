//! Prometheus metrics: message counts, rates and commit times, but no phone numbers.

use crate::support::{Answer, Gateway, Reachable as _, Server, campaign, http_get, phone, rejected};

/// The value of a metric.
fn metric_value(text: &str, metric: &str) -> f64 {
    let value =
        text.lines().find_map(|line| line.strip_prefix(metric)).unwrap_or_else(|| panic!("no {metric} in:\n{text}"));
    value.trim().parse().expect("a number")
}

#[test]
fn metrics_cover_messages_rates_and_commits_but_no_recipients() {
    let gateway = Gateway::answering([Answer::items(|operation| rejected(operation, "No route"))]);
    let sale =
        campaign().to(20).batches_of(5).delivery("rate: 2000/s").through(&gateway).profile("rate: 2000/s").write();
    let server = Server::start(&sale, &[]);
    sale.run(&["--yes", "--keep-going"]).exits(3);
    assert_eq!(server.get("/readyz").status, 200);
    let response = server.get("/metrics");
    let text = response.body;
    assert_eq!(response.status, 200);
    let account = gateway.base_url().replace("http://", "");
    assert_eq!(metric_value(&text, "campaign_messages{gateway=\"local\",state=\"accepted\"}"), 19.0);
    assert_eq!(metric_value(&text, "campaign_messages{gateway=\"local\",state=\"rejected\"}"), 1.0);
    assert_eq!(metric_value(&text, "campaign_runs{state=\"finished\"}"), 1.0);
    assert_eq!(metric_value(&text, &format!("campaign_account_operations_total{{account=\"{account}\"}}")), 20.0);
    assert_eq!(metric_value(&text, &format!("campaign_account_allowed_per_second{{account=\"{account}\"}}")), 2000.0);
    assert!(metric_value(&text, "campaign_ledger_commit_seconds_count") >= 1.0, "{text}");
    for row in 2..22 {
        let number = phone(row).to_string();
        assert!(!text.contains(&number) && !text.contains(&number[3..]) && !text.contains("Person"), "{text}");
    }
}

#[test]
fn metrics_option_moves_metrics_to_a_separate_address() {
    let sale = campaign().write();
    let metrics_address =
        std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").to_string();
    let server = Server::start(&sale, &["--metrics", &metrics_address]);
    assert_eq!(server.get("/metrics").status, 404);
    assert_eq!(http_get(&metrics_address, "/metrics", &[("Host", "prometheus.example")]).status, 200);
    assert_eq!(http_get(&metrics_address, "/healthz", &[]).status, 404);
}
