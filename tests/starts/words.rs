//! Wording of messages and state names: prose for people, stable words for programs.

use serde_json::json;

use crate::support::{Answer, Folder, Gateway, KEY_VARIABLE, campaign, change_ledger};

#[test]
fn yes_option_needs_a_named_gateway() {
    let sale = campaign().write();
    sale.run(&["--yes"]).exits(2).says("--gateway NAME");
    sale.run(&["--yes", "--gateway", "sandbox"]).exits(0);
    sale.replace("sale.yaml", "name: sale\n", "name: sale\ngateway: sandbox\n");
    sale.run(&["--yes"]).exits(0);
}

#[test]
fn rejected_key_is_reported_with_its_source() {
    let gateway = Gateway::answering([Answer::rejection("Access denied")]);
    let sale = campaign().through(&gateway).write();
    let output = sale.run(&[]).exits(7).says(&format!("the environment variable `{KEY_VARIABLE}`"));
    assert!(output.stdout.contains("next: correct the key in"), "{}", output.details());
}

#[test]
fn finished_run_with_rows_to_resend_can_resume() {
    let gateway = Gateway::answering([Answer::CloseRead]);
    let sale = campaign().to(1).through(&gateway).write();
    sale.run(&[]).exits(4);
    sale.campaign(&["resolve", "sale", "--all", "--as", "send-again", "--i-accept-duplicates", "1"]).exits(5);
    sale.campaign(&["status", "sale"]).exits(5).says("can be resumed");
    let output = sale.campaign(&["status", "sale", "--json"]).exits(5).json();
    assert_eq!((&output["state"], &output["stopped"], &output["exit"]), (&json!("open"), &json!(null), &json!(5)));
    let listed = sale.campaign(&["status", "--json"]).exits(0).json();
    assert_eq!((&listed["runs"][0]["state"], &listed["runs"][0]["exit"]), (&json!("open"), &json!(5)));
}

#[test]
fn open_run_with_rows_to_resend_exits_5() {
    // All rows are done, but the run is open, as if its results could not be written.
    let gateway = Gateway::answering([Answer::CloseRead]);
    let sale = campaign().to(1).through(&gateway).write();
    let run = sale.start(&[]);
    crate::support::until("the request arrives", || !gateway.requests().is_empty());
    run.finish().exits(4);
    change_ledger(&sale, "UPDATE runs SET progress = 'open'");
    sale.campaign(&["status", "sale"]).exits(4);
    sale.campaign(&["resolve", "sale", "--all", "--as", "send-again", "--i-accept-duplicates", "1"]).exits(5);
    sale.campaign(&["status", "sale", "--json"]).exits(5);
}

#[test]
fn json_message_history_has_machine_readable_states() {
    let gateway = Gateway::answering([Answer::CloseRead]);
    let sale = campaign().to(1).through(&gateway).write();
    sale.run(&[]).exits(4);
    let resolve = ["resolve", "sale", "--all", "--as", "not-sent", "--why", "no call", "--i-accept-duplicates", "1"];
    sale.campaign(&resolve).exits(3);
    let shown = sale.campaign(&["show", "sale", "--row", "2", "--json"]).exits(0).json();
    let history = shown["history"].as_array().expect("a history");
    let outcome = history.iter().find(|entry| entry["event"] == "outcome").expect("an outcome");
    assert_eq!(outcome["outcome"]["state"], "in_doubt");
    assert!(outcome["outcome"]["reason"].is_string(), "{outcome}");
    let change = &history.iter().find(|entry| entry["event"] == "change").expect("a change")["change"];
    assert_eq!(
        (&change["what"], &change["why"], &change["rule"]),
        (&json!("not_sent"), &json!("no call"), &json!(null))
    );
    assert!(change["by"].is_string(), "{change}");
}

#[test]
fn partly_known_parts_make_the_total_a_minimum() {
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
    let sale = campaign().to(6).batches_of(5).one_at_a_time().through(&gateway).write();
    let output = sale.run(&[]).exits(4).says("5 in doubt");
    assert!(output.stdout.contains("at least 1 part · "), "{}", output.details());
    let all = campaign().to(6).through(&Gateway::accepting()).write().run(&[]).exits(0);
    assert!(all.stdout.contains("  6 parts · "), "{}", all.details());
}

#[test]
fn file_name_beginning_with_a_dash_is_suggested_as_a_path() {
    let (gateway, folder) = (Gateway::accepting(), Folder::new(true));
    super::write_campaign_in(&folder, &gateway, ".", "Hello", 3);
    std::fs::rename(folder.path("sale.yaml"), folder.path("-weird.yaml")).expect("another name");
    let output = folder.campaign(&["run", "./-weird.yaml", "--limit", "1", "--no-wait"]).exits(0);
    assert!(output.stdout.contains("next: campaign run ./-weird.yaml"), "{}", output.details());
}

#[test]
fn results_file_with_an_ods_extension_is_refused() {
    let gateway = Gateway::accepting();
    let sale = campaign().top("results: r.ods").through(&gateway).write();
    sale.run(&[]).exits(2).says("use `.xlsx` or `.csv`");
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("use `.xlsx` or `.csv`");
    assert!(gateway.requests().is_empty() && !sale.path("r.ods").exists());
    sale.replace("sale.yaml", "results: r.ods\n", "");
    sale.run(&[]).exits(0);
    sale.campaign(&["results", "sale", "--out", "r.ods"]).exits(2).says("use `.xlsx` or `.csv`");
}

#[test]
fn campaign_without_a_rate_uses_the_rate_of_its_profile() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(25).through(&gateway).profile("rate: 10/s").write();
    sale.replace("sale.yaml", "  rate: 100000/s\n", "  batch: 50\n");
    let started_at = std::time::Instant::now();
    sale.run(&[]).exits(0);
    assert!(started_at.elapsed() >= std::time::Duration::from_secs_f64(1.5), "{:?}", started_at.elapsed());
    sale.run(&["--gateway", "sandbox", "--real-time"]).exits(2).says("`delivery: { rate: 10/s }`");
}
