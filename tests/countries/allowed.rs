//! `countries` of a campaign and of a profile's `policy`: every kind of run skips numbers of other countries.

use std::fmt::Write as _;

use serde_json::json;

use super::{EWA, LIST, OLENA, TARAS, international_campaign};
#[cfg(target_os = "linux")]
use crate::support::{Clock, Server};
use crate::support::{Gateway, Process, campaign, until};

#[test]
fn numbers_of_other_countries_are_skipped_and_reported() {
    let gateway = Gateway::accepting();
    let sale = international_campaign(&gateway).top("countries: [UA, PL]").write();
    let counts = json!({ "planned": 3, "skipped": 1 });
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("−1  skipped: country");
    assert_eq!(sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json()["counts"], counts);
    assert_eq!(sale.campaign(&["run", "sale.yaml", "--dry-run", "--json"]).exits(0).json()["counts"], counts);
    assert_eq!(sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json()["counts"], counts);
    sale.campaign(&["preview", "sale.yaml", "--rows", "5"]).exits(0).says("country");
    sale.run(&["--gateway", "sandbox"]).exits(0);
    let report = sale.run(&["--json"]).exits(0).json();
    assert_eq!(report["counts"], json!({ "accepted": 3, "skipped": 1 }));
    assert_eq!(gateway.phones(), [OLENA, EWA, TARAS]);
    assert_eq!(sale.results().counts()["skipped"], 1);
    let results = std::fs::read_to_string(sale.results_file()).expect("results");
    assert_eq!(results.matches(",country,").count(), 1, "{results}");
}

#[test]
fn unknown_country_is_an_error_and_empty_audience_is_explained() {
    let sale = international_campaign(&Gateway::accepting()).top("countries: [UA, UK]").write();
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("unknown country `UK`").says("did you mean `GB`?");
    sale.replace("sale.yaml", "[UA, UK]", "[FR]");
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("4 country").says("`countries`");
}

#[test]
fn campaign_cannot_allow_a_country_that_its_profile_forbids() {
    let gateway = Gateway::accepting();
    let draft = international_campaign(&gateway).profile("policy: { countries: [UA] }");
    let sale = draft.top("purpose: service").top("countries: [UA, PL]").write();
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [OLENA, TARAS]);
    sale.campaign(&["check", "sale.yaml", "--show-settings"]).exits(0).says("profile.policy.countries");
}

#[test]
fn stricter_policy_applies_to_an_unfinished_run() {
    let gateway = Gateway::accepting();
    let sale = international_campaign(&gateway).write();
    sale.run(&["--limit", "1"]).exits(0);
    let profiles = std::fs::read_to_string(sale.path("gateways.yaml")).expect("profiles");
    sale.write("gateways.yaml", &format!("{profiles}  policy: {{ countries: [UA] }}\n"));
    let report = sale.run(&["--json"]).exits(0).json();
    assert_eq!(report["counts"], json!({ "accepted": 2, "skipped": 2 }), "{report}");
    assert_eq!(gateway.phones(), [OLENA, TARAS]);
    let results = std::fs::read_to_string(sale.results_file()).expect("results");
    assert_eq!(results.matches(",country,").count(), 2, "{results}");
}

#[test]
fn run_and_plan_are_refused_after_the_countries_change() {
    let gateway = Gateway::accepting();
    let sale = international_campaign(&gateway).top("countries: [UA]").write();
    let plan = sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json();
    let digest = plan["digest"].as_str().expect("a digest");
    sale.run(&["--limit", "1"]).exits(0);
    sale.replace("sale.yaml", "[UA]", "[UA, PL]");
    sale.run(&[]).exits(2).says("`countries`");
    sale.run(&["--plan", digest]).exits(2).says("`countries`");
    assert_eq!(gateway.phones(), [OLENA]);
}

#[test]
fn operation_for_one_number_in_another_country_is_refused() {
    let gateway = Gateway::accepting();
    let sale = international_campaign(&gateway).profile("policy: { countries: [UA] }").write();
    let ewa = format!("+{EWA}");
    for arguments in [
        &["test", "sale.yaml", "--to", &ewa, "--row", "2"][..],
        &["gateway", "lookup", &ewa, "--gateway", "local"],
        &["gateway", "otp", &ewa, "--gateway", "local", "--yes"],
    ] {
        sale.campaign(arguments).exits(2).says("not in the allowed countries (UA): ");
    }
    assert!(gateway.requests().is_empty());
    sale.campaign(&["test", "sale.yaml", "--to", &format!("+{OLENA}"), "--row", "2"]).exits(0);
    assert_eq!(gateway.phones(), [OLENA]);
}

#[test]
fn worker_keeps_the_policy_of_the_profile_that_started_the_run() {
    let gateway = Gateway::accepting();
    let mut list = "phone\n".to_owned();
    for row in 0..200 {
        let number = if row % 2 == 0 { OLENA } else { EWA } + row;
        writeln!(list, "+{number}").expect("a string");
    }
    let sms = "  - sms: { signature: OlenaCo, message: Hello }";
    let draft = campaign().with_list(&list).channels(sms).batches_of(5).delivery("rate: 30/s").through(&gateway);
    let sale = draft.write();
    sale.run(&["--limit", "1"]).exits(0);
    // The worker's own profile has no policy.
    let profiles = std::fs::read_to_string(sale.path("gateways.yaml")).expect("profiles");
    sale.write("worker.yaml", &profiles);
    sale.write("gateways.yaml", &format!("{profiles}  policy: {{ countries: [UA] }}\n"));
    let worker = Process::start(sale.command(&["worker", "--gateways", "worker.yaml"]));
    until("the worker looks for runs", || worker.stdout().contains("ready to send shards of runs"));
    let run = sale.start(&["--shared", "--json"]);
    let report = run.finish().exits(0).json();
    assert_eq!(report["counts"], json!({ "accepted": 100, "skipped": 100 }), "{report}");
    assert!(gateway.phones().iter().all(|phone| phone / 1_000_000_000 == 380), "{:?}", gateway.phones());
    until("the worker finds no more shards", || worker.stdout().contains("no shards are left"));
    worker.kill();
}

#[cfg(target_os = "linux")]
#[test]
fn scheduled_run_skips_numbers_from_other_countries() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let draft = international_campaign(&gateway).top("timezone: UTC").top("schedule: { every: day 12:00 }");
    let sale = draft.profile("policy: { countries: [UA] }").write();
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    let due = sale.campaign(&["schedule", "next", "sale.yaml", "--json"]).exits(0).json_list()[0]["at"].clone();
    let due: jiff::Timestamp = due.as_str().expect("a time").parse().expect("a time");
    let server = Server::start_after(&sale, &clock.set_to(due - jiff::SignedDuration::from_secs(1)), &[]);
    until("the scheduled run is over", || gateway.phones().len() == 2);
    server.end("TERM").exits(0);
    assert_eq!(gateway.phones(), [OLENA, TARAS]);
}

#[test]
fn all_recipients_in_allowed_countries_get_messages() {
    let gateway = Gateway::accepting();
    let sale = international_campaign(&gateway).top("countries: [DE, PL, UA]").write();
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), LIST.lines().count() - 1);
}
