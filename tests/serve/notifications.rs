//! Notifications about the outcome of runs: delivered in spite of crashes and unavailable receivers.

use std::time::{Duration, Instant};

use crate::support::{
    Answer, Draft, Folder, Gateway, Process, Reachable, Server, campaign, in_files, phone, unreachable_url, until,
};

/// A secret part of the receiver's URL, which must not be printed or stored.
const SECRET: &str = "T000/B000/s3cr3t-of-the-receiver";

/// A live campaign that notifies a local receiver as JSON.
fn notifying_campaign(gateway: &Gateway) -> Draft {
    campaign().to(10).through(gateway).top("notify: { url: { file: hook.url }, local: true }")
}

/// Writes the URL of the receiver as a secret file.
fn write_receiver_url(sale: &Folder, base: &str) {
    sale.write_secret("hook.url", &format!("{base}/services/{SECRET}"));
}

/// The texts of all notifications that a receiver got.
fn notification_texts(receiver: &Gateway) -> Vec<String> {
    receiver.requests().iter().map(|request| request.json()["text"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn notification_has_the_outcome_without_numbers_or_addresses() {
    let _files = in_files();
    let (gateway, receiver) = (Gateway::accepting(), Gateway::accepting());
    let sale = notifying_campaign(&gateway).write();
    write_receiver_url(&sale, &receiver.base_url());
    let run = sale.run(&["-vvv"]).exits(0);
    let [request] = <[_; 1]>::try_from(receiver.requests()).expect("one post");
    assert_eq!(request.path(), format!("/services/{SECRET}"));
    let body = request.json();
    assert_eq!((&body["occasion"], &body["count"]), (&"finished".into(), &1.into()));
    let notice = &body["notices"][0];
    assert_eq!(
        (&notice["run"], &notice["counts"]["accepted"], &notice["rows"]),
        (&"sale@1".into(), &10.into(), &10.into())
    );
    let body = String::from_utf8_lossy(&request.body).into_owned();
    assert!((2..12).all(|row| !body.contains(&phone(row).to_string())), "{body}");
    let ledger = std::fs::read(sale.path("state/ledger.sqlite")).expect("the ledger");
    for shown in [run.stdout, run.stderr, String::from_utf8_lossy(&ledger).into_owned()] {
        assert!(!shown.contains("s3cr3t") && !shown.contains("T000/B000"), "{shown}");
    }
}

#[test]
fn notifications_cover_selected_events_but_not_rehearsals() {
    let (gateway, receiver) = (Gateway::answering([Answer::rejection("Invalid message type")]), Gateway::accepting());
    let sale = notifying_campaign(&gateway).write();
    sale.replace("sale.yaml", "local: true", "local: true, when: [stopped]");
    write_receiver_url(&sale, &receiver.base_url());
    sale.run(&["--gateway", "sandbox"]).exits(0);
    sale.run(&[]).exits(5);
    sale.run(&[]).exits(0);
    let texts = notification_texts(&receiver);
    assert!(texts.len() == 1 && texts[0].contains("sale@") && texts[0].contains("stopped"), "{texts:?}");
}

#[test]
fn unavailable_receiver_is_notified_later_by_the_server() {
    let gateway = Gateway::accepting();
    let sale = notifying_campaign(&gateway).write();
    write_receiver_url(&sale, &unreachable_url());
    sale.run(&[]).exits(0);
    let server = Server::start(&sale, &[]);
    let receiver = Gateway::accepting();
    write_receiver_url(&sale, &receiver.base_url());
    until("the receiver is notified", || !receiver.requests().is_empty());
    until("the notification is counted", || {
        server.get("/metrics").body.contains("campaign_notifications_total{result=\"taken\"} 1")
    });
    let ended = server.end("TERM").exits(0);
    assert!(!ended.stderr.contains("s3cr3t"), "{}", ended.details());
    assert_eq!(receiver.requests().len(), 1);
}

#[test]
fn hanging_receiver_delays_a_run_only_briefly() {
    let (gateway, receiver) = (Gateway::accepting(), Gateway::always(Answer::Silence));
    let sale = notifying_campaign(&gateway).write();
    write_receiver_url(&sale, &receiver.base_url());
    let started_at = Instant::now();
    sale.run(&[]).exits(0);
    assert!(started_at.elapsed() < Duration::from_secs(20), "{:?}", started_at.elapsed());
    assert_eq!(receiver.requests().len(), 1);
}

#[test]
fn similar_notifications_are_merged_and_none_is_dropped() {
    let gateway = Gateway::accepting();
    let sale = notifying_campaign(&gateway).write();
    write_receiver_url(&sale, &unreachable_url());
    for options in [&[][..], &["--again", "10"], &["--again", "10"], &["--again", "10"]] {
        sale.run(options).exits(0);
    }
    let receiver = Gateway::accepting();
    write_receiver_url(&sale, &receiver.base_url());
    // Two servers must not send the same notification twice.
    let servers = [Server::start(&sale, &[]), Server::start(&sale, &[])];
    until("the receiver is notified", || !receiver.requests().is_empty());
    for server in servers {
        server.end("TERM").exits(0);
    }
    let texts = notification_texts(&receiver);
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!((1..=4).all(|number| texts[0].contains(&format!("sale@{number} "))), "{texts:?}");
}

#[test]
fn server_sends_notifications_left_by_a_killed_process() {
    let (gateway, receiver) = (Gateway::accepting(), Gateway::accepting());
    let sale = notifying_campaign(&gateway).write();
    write_receiver_url(&sale, &receiver.base_url());
    let mut command = sale.command(&["run", "sale.yaml", "--no-wait"]);
    command.env("CAMPAIGN_FAILPOINT", "run.marked:1");
    let killed_run = Process::start(command).finish();
    assert!(killed_run.code() != Some(0) && receiver.requests().is_empty(), "{}", killed_run.details());
    let _server = Server::start(&sale, &[]);
    until("the receiver is notified", || !receiver.requests().is_empty());
    assert!(
        notification_texts(&receiver)[0].starts_with("sale@1 through local: finished"),
        "{:?}",
        notification_texts(&receiver)
    );
}

#[test]
fn local_address_is_refused_unless_the_campaign_allows_it() {
    let (gateway, receiver) = (Gateway::accepting(), Gateway::accepting());
    let sale = notifying_campaign(&gateway).write();
    sale.replace("sale.yaml", ", local: true", "");
    write_receiver_url(&sale, &receiver.base_url().replace("http://", "https://"));
    sale.run(&["-v"]).exits(0).says("local: true");
    assert!(receiver.requests().is_empty());
}

#[test]
fn invalid_notification_text_is_refused_before_sending() {
    let gateway = Gateway::accepting();
    let sale = notifying_campaign(&gateway).write();
    sale.replace("sale.yaml", "local: true", "body: \"{{ phone }}\"");
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("notify-text").says("phone");
    sale.run(&[]).exits(2);
    assert!(gateway.requests().is_empty());
}

#[test]
fn schedule_notifies_about_a_changed_campaign() {
    let (gateway, receiver) = (Gateway::accepting(), Gateway::accepting());
    let sale = notifying_campaign(&gateway).top("timezone: UTC").top("schedule: { every: 1st 10:00 }").write();
    write_receiver_url(&sale, &receiver.base_url());
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    sale.replace("sale.yaml", "Hello, ", "Good day, ");
    let server = Server::start(&sale, &[]);
    until("the receiver is notified", || !receiver.requests().is_empty());
    let body = receiver.requests()[0].json();
    assert_eq!((&body["occasion"], &body["notices"][0]["campaign"]), (&"changed".into(), &"sale".into()), "{body}");
    assert!(gateway.sends().is_empty());
    drop(server);
}

#[test]
fn profile_targets_and_campaign_targets_are_notified() {
    let (gateway, receiver, other) = (Gateway::accepting(), Gateway::accepting(), Gateway::accepting());
    let policy = "policy: { notify: { url: { file: all.url }, local: true, when: [finished] } }";
    let sale = notifying_campaign(&gateway).profile(policy).write();
    write_receiver_url(&sale, &receiver.base_url());
    sale.write_secret("all.url", &format!("{}/services/{SECRET}", other.base_url()));
    sale.run(&["-n", "1"]).exits(0);
    sale.run(&[]).exits(0);
    assert_eq!((receiver.requests().len(), other.requests().len()), (1, 1));
    sale.replace("sale.yaml", "notify: { url: { file: hook.url }, local: true }\n", "");
    sale.run(&["--again", "10"]).exits(0);
    sale.run(&["--gateway", "sandbox"]).exits(0);
    assert_eq!((receiver.requests().len(), other.requests().len()), (1, 2), "none for a rehearsal");
    sale.replace("gateways.yaml", "local: true", "local: true, body: \"{{ nobody }}\"");
    sale.campaign(&["check", "sale.yaml"])
        .exits(2)
        .says("the `policy.notify` template in the profile `local` cannot be rendered");
}
