//! Retries from a run's page: it shows what will be sent, and every rule of `campaign retry` applies.

use std::collections::HashSet;
use std::sync::Mutex;

use serde_json::json;

use crate::support::{
    Answer, Browser, Draft, Folder, Gateway, Reachable as _, Server, accepted, campaign, phone, rejected, until,
};

/// The public key of an approver.
const KEY: &str = "ed25519:0Bf5_XnXXq1LKMJA56s9XZd-zbfwNas7cF46TaVjxn0";
const RETRY: &str = "/runs/sale@1/retry";

/// A gateway that rejects the first message to each of these rows.
fn gateway_rejecting_once(rows: &'static [usize]) -> Gateway {
    let rejected_before = Mutex::new(HashSet::new());
    Gateway::always(Answer::items(move |operation| {
        let row = rows.iter().find(|row| operation["phone"] == json!(phone(**row)));
        match row.filter(|row| rejected_before.lock().expect("no panic").insert(**row)) {
            Some(_) => rejected(operation, "No route"),
            None => accepted(operation),
        }
    }))
}

/// Sends a campaign in which some messages are rejected.
fn send_campaign(draft: Draft) -> Folder {
    let sale = draft.write();
    sale.run(&[]).exits(3);
    sale
}

fn sign_in(sale: &Folder, server: &Server, options: &[&str]) -> Browser {
    let link = sale.campaign(&[&["serve", "link", "--json", "--for"], options].concat()).exits(0).json();
    Browser::with_link(server, link["url"].as_str().expect("an address"))
}

#[test]
fn retry_from_a_page_matches_its_preview_and_logs_the_user() {
    let gateway = gateway_rejecting_once(&[3, 4]);
    let draft = campaign().to(4).through(&gateway).profile("prices: { sms: 0.80 }").profile("currency: UAH");
    let sale = send_campaign(draft);
    let server = Server::start(&sale, &[]);
    let olha = sign_in(&sale, &server, &["Olha", "--decide"]);
    let has_retry_link = |page: &str| olha.page(page).all("a").iter().any(|link| link.attribute("href") == RETRY);
    assert!(has_retry_link("/runs/sale@1"));
    let preview = olha.page(RETRY).one("main").words();
    for shown in ["2 messages will be sent again through local", "Rejected No route 2", "Channels SMS", "1.60 UAH"] {
        assert!(preview.contains(shown), "{shown}: {preview}");
    }
    assert!(preview.contains("Hello, Person 3") && preview.contains("…03"), "{preview}");
    assert!(!preview.contains(&phone(3).to_string()), "{preview}");
    for (count, status) in [("", 422), ("two", 422), ("-2", 422), ("1", 409), ("3", 409)] {
        let refused = olha.send(RETRY, &[("count", count)]);
        assert_eq!(refused.status, status, "{count}");
        assert!(refused.page().one("main").words().contains("Nothing was sent."), "{count}");
    }
    assert_eq!(gateway.phones().len(), 4, "previews and refusals send nothing");
    let response = olha.send(RETRY, &[("count", "2")]);
    assert_eq!((response.status, response.header("location")), (303, "/runs/sale@1?done=retry"));
    until("the messages are sent again", || gateway.phones().len() == 6);
    assert_eq!(gateway.phones()[4..], [3, 4].map(phone));
    until("the run has ended", || !has_retry_link("/runs/sale@1"));
    assert_eq!(sale.campaign(&["status", "sale@1", "--json"]).json()["counts"], json!({ "accepted": 4 }));
    let shown = sale.campaign(&["show", "sale@1", "--row", "3", "--json"]).json();
    assert!(shown["history"].to_string().contains("\"by\":\"Olha\""), "{shown}");
    until("the outcome is recorded", || {
        std::fs::read_to_string(sale.path("state/orders.jsonl")).is_ok_and(|orders| orders.contains("\"done\""))
    });
    assert!(olha.page("/").one("main").words().contains("Olha retry sale@1"));
    assert_eq!(olha.send(RETRY, &[("count", "2")]).status, 409, "nothing is left to retry");
    assert_eq!(gateway.phones().len(), 6);
    server.end("TERM").exits(0);
}

#[test]
fn retry_from_a_page_respects_opt_outs_and_frozen_inputs() {
    let gateway = gateway_rejecting_once(&[3, 4]);
    let sale = send_campaign(campaign().to(4).through(&gateway));
    let server = Server::start(&sale, &[]);
    let olha = sign_in(&sale, &server, &["Olha", "--decide"]);
    sale.campaign(&["suppress", "add", &format!("+{}", phone(3))]).exits(0);
    let preview = olha.page(RETRY).one("main").words();
    assert!(
        preview.contains("1 message will be sent again") && preview.contains("1 other message is not"),
        "{preview}"
    );
    assert_eq!(olha.send(RETRY, &[("count", "2")]).status, 409);
    let text = "Hello, {{ name }}";
    sale.replace("sale.yaml", text, "Goodbye, {{ name }}");
    for refused in [olha.get(RETRY), olha.send(RETRY, &[("count", "1")])] {
        assert_eq!(refused.status, 409);
        assert!(refused.page().one("main").words().contains("sale@1 began"), "{}", refused.body);
    }
    assert_eq!(gateway.phones().len(), 4);
    sale.replace("sale.yaml", "Goodbye, {{ name }}", text);
    assert_eq!(olha.send(RETRY, &[("count", "1")]).status, 303);
    until("the message is sent again", || gateway.phones().len() == 5);
    assert_eq!(gateway.phones()[4], phone(4));
    server.end("TERM").exits(0);
}

#[test]
fn retry_from_a_page_waits_for_the_sending_window() {
    let gateway = gateway_rejecting_once(&[3]);
    let sale = send_campaign(campaign().to(2).top("timezone: UTC").through(&gateway));
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let hour = |hours: i64| now.checked_add(jiff::ToSpan::hours(hours)).expect("a time").strftime("%H:00").to_string();
    let window = format!("  policy: {{ window: \"{}-{}\" }}", hour(4), hour(6));
    let profiles = std::fs::read_to_string(sale.path("gateways.yaml")).expect("profiles");
    sale.write("gateways.yaml", &format!("{profiles}{window}\n"));
    let server = Server::start(&sale, &[]);
    let olha = sign_in(&sale, &server, &["Olha", "--decide"]);
    assert_eq!(olha.send(RETRY, &[("count", "1")]).status, 303);
    until("the run is being sent", || olha.get("/runs/sale@1").body.contains("/runs/sale@1/stop"));
    assert_eq!(gateway.phones().len(), 2);
    assert_eq!(olha.send("/runs/sale@1/stop", &[]).status, 303);
    until("the run has stopped", || !olha.get("/runs/sale@1").body.contains("/runs/sale@1/stop"));
    assert_eq!(gateway.phones().len(), 2, "nothing is sent outside the window");
    server.end("TERM").exits(0);
}

#[test]
fn profile_with_an_approval_rule_forbids_retry_from_a_page() {
    let gateway = gateway_rejecting_once(&[3]);
    let sale = send_campaign(campaign().to(2).through(&gateway));
    sale.replace("gateways.yaml", &gateway.base_url(), "https://gateway.invalid");
    let profiles = std::fs::read_to_string(sale.path("gateways.yaml")).expect("profiles");
    sale.write(
        "gateways.yaml",
        &format!("{profiles}  rate: 100000/s\n  approval: {{ above: 100, by: {{ petro: \"{KEY}\" }} }}\n"),
    );
    let server = Server::start(&sale, &[]);
    let olha = sign_in(&sale, &server, &["Olha", "--decide"]);
    for refused in [olha.get(RETRY), olha.send(RETRY, &[("count", "1")])] {
        assert_eq!(refused.status, 409);
        assert!(refused.page().one("main").words().contains("has an approval rule"), "{}", refused.body);
    }
    server.end("TERM").exits(0);
}

#[test]
fn retry_interrupted_by_a_shutdown_is_resumed_once() {
    let gateway = gateway_rejecting_once(&[4, 5, 6, 7, 8, 9, 10, 11]);
    let sale = send_campaign(campaign().to(10).batches_of(1).delivery("rate: 5/s").through(&gateway));
    let server = Server::start(&sale, &[]);
    let olha = sign_in(&sale, &server, &["Olha", "--decide"]);
    assert_eq!(olha.send(RETRY, &[("count", "8")]).status, 303);
    assert_eq!(olha.get("/runs").status, 200, "other pages do not wait for the retry");
    server.end("TERM").exits(0);
    assert!(gateway.phones().len() < 18, "the shutdown stops the retry");
    sale.run(&[]).exits(0);
    let mut phones = gateway.phones();
    phones.sort_unstable();
    let expected: Vec<u64> = [2, 3].into_iter().chain((4..12).flat_map(|row| [row; 2])).map(phone).collect();
    assert_eq!(phones, expected, "each rejected message was sent again once");
}
