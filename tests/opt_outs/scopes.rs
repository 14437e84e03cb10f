//! Scopes of opt-outs: marketing, all messages, or one campaign; and mandatory messages, which ignore opt-outs.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::json;

use super::entries;
use crate::support::{
    Answer, Clock, Draft, Folder, Gateway, Process, Server, campaign, in_files, live, phone, rejected, until,
};
use crate::workers::{check_no_duplicates, start_worker, stop_worker};

/// Opts the number of a row out of all messages.
fn opt_out_of_all(sale: &Folder, row: usize) {
    let number = format!("+{}", phone(row));
    sale.campaign(&["suppress", "add", &number, "--scope", "all"])
        .exits(0)
        .says("no more messages from any campaign, except mandatory ones");
}

/// A campaign with service messages.
fn service_campaign(gateway: &Gateway, recipients: usize) -> Draft {
    campaign().to(recipients).top("purpose: service").through(gateway)
}

#[test]
fn opt_out_from_all_messages_blocks_service_messages() {
    let gateway = Gateway::accepting();
    let sale = service_campaign(&gateway, 5).write();
    opt_out_of_all(&sale, 3);
    super::opt_out(&sale, 4, &[]);
    let counts = json!({ "planned": 4, "skipped": 1 });
    assert_eq!(sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json()["counts"], counts);
    sale.campaign(&["preview", "sale.yaml", "--rows", "3"]).exits(0).says("opted out");
    let rehearsal = sale.run(&["--gateway", "sandbox", "--json"]).exits(0).json();
    assert_eq!(rehearsal["counts"], json!({ "accepted": 4, "skipped": 1 }));
    let number = format!("+{}", phone(3));
    let refused = sale.campaign(&["test", "sale.yaml", "--to", &number, "--yes"]).exits(2);
    refused.says("opted out of all messages, including service messages; nothing was sent");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 4, 5, 6].map(phone));
    assert_eq!(sale.results().rows[1]["reason"], "opted out");
}

#[test]
fn opt_out_from_all_messages_stops_a_service_run_and_its_retry() {
    let gateway = Gateway::answering([Answer::Held, Answer::items(|operation| rejected(operation, "No route"))]);
    let sale = service_campaign(&gateway, 8).batches_of(4).one_at_a_time().write();
    let run = sale.start(&["--json"]);
    until("the gateway has the first request", || gateway.sends().len() == 1);
    opt_out_of_all(&sale, 8);
    gateway.release();
    let summary = run.finish().json();
    assert_eq!(summary["counts"]["skipped"], 1, "{summary}");
    let before = gateway.phones();
    assert!(!before.contains(&phone(8)), "{before:?}");
    let results = sale.results();
    let failed: Vec<usize> = (2..10).filter(|row| results.rows[row - 2]["state"] == "rejected").collect();
    let (first, rest) = failed.split_first().expect("a rejected message");
    opt_out_of_all(&sale, *first);
    sale.campaign(&["retry", "sale"]).says("opted out");
    assert_eq!(gateway.phones()[before.len()..], rest.iter().map(|row| phone(*row)).collect::<Vec<_>>());
}

#[test]
fn workers_respect_opt_outs_from_all_messages() {
    let gateway = Gateway::accepting();
    let sale = service_campaign(&gateway, 200).batches_of(5).delivery("rate: 30/s").write();
    let worker = start_worker(&sale);
    let run = sale.start(&["--shared"]);
    until("both have shards", || {
        let status = sale.campaign(&["status", "sale", "--json"]).json();
        status["senders"].as_array().is_some_and(|senders| senders.len() == 2)
    });
    opt_out_of_all(&sale, 190);
    opt_out_of_all(&sale, 195);
    run.finish().exits(0);
    stop_worker(worker);
    let sent = check_no_duplicates(&gateway);
    assert!(!sent.contains(&phone(190)) && !sent.contains(&phone(195)));
    assert_eq!(sent.len(), 198);
}

#[cfg(target_os = "linux")]
#[test]
fn scheduled_service_run_respects_opt_outs_from_all_messages() {
    use jiff::{SignedDuration, Timestamp};

    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = service_campaign(&gateway, 4).top("timezone: UTC").top("schedule: { every: day 10:00 }").write();
    let added = sale.campaign(&["schedule", "add", "sale.yaml", "--json"]).exits(0).json();
    let due: Timestamp = added["next"][0].as_str().and_then(|at| at.parse().ok()).expect("a moment");
    opt_out_of_all(&sale, 3);
    super::opt_out(&sale, 4, &[]);
    let clock = Clock::new();
    let server = Server::start_after(&sale, &clock.set_to(due - SignedDuration::from_secs(1)), &[]);
    until("the messages are sent", || gateway.phones().len() == 3);
    server.end("TERM").exits(0);
    assert_eq!(gateway.phones(), [2, 4, 5].map(phone));
}

#[test]
fn mandatory_messages_ignore_opt_outs_from_all_messages() {
    let gateway = Gateway::accepting();
    let sale = service_campaign(&gateway, 3).top("mandatory: true").write();
    opt_out_of_all(&sale, 3);
    sale.campaign(&["test", "sale.yaml", "--to", &format!("+{}", phone(3)), "--yes"]).exits(0);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones()[1..], [2, 3, 4].map(phone));
}

#[test]
fn confirmation_shows_that_messages_are_mandatory() {
    let sale = live();
    sale.replace("sale.yaml", "name: sale\n", "name: sale\npurpose: service\nmandatory: true\n");
    let terminal = crate::support::Terminal::start(sale.command(&["run", "sale.yaml"]));
    terminal.shows("opt-outs").shows("ignored because of `mandatory: true`").shows("press Enter to cancel").types("");
    terminal.finish().exits(2);
}

#[test]
fn mandatory_requires_service_purpose_and_can_be_forbidden() {
    let gateway = Gateway::accepting();
    let sale = campaign().top("mandatory: true").through(&gateway).write();
    sale.run(&[]).exits(2).says("error[mandatory-marketing]").says("sale.yaml:2:12");
    let forbidden = service_campaign(&gateway, 3).top("mandatory: true").profile("policy: { mandatory: never }");
    forbidden.rewrite(&sale);
    sale.run(&[]).exits(2).says("error[mandatory-forbidden]").says("sale.yaml:4:12");
    assert!(gateway.sends().is_empty());
}

#[test]
fn worker_refuses_a_mandatory_run_if_its_profile_forbids_it() {
    let gateway = Gateway::accepting();
    let sale = service_campaign(&gateway, 200).top("mandatory: true").batches_of(5).delivery("rate: 30/s").write();
    let profiles = fs::read_to_string(sale.path("gateways.yaml")).expect("a profile");
    sale.write("strict/gateways.yaml", &format!("{profiles}  policy: {{ mandatory: never }}\n"));
    let mut worker = Process::start(sale.command(&["worker", "--gateways", "strict/gateways.yaml"]));
    until("the worker looks for runs", || worker.stdout().contains("ready to send shards of runs"));
    let run = sale.start(&["--shared"]);
    until("the worker refuses the run", || (worker.stdout() + &worker.stderr()).contains("forbids `mandatory: true`"));
    run.finish().exits(0);
    worker.signal("TERM");
    worker.finish();
    assert_eq!(check_no_duplicates(&gateway).len(), 200);
}

#[test]
fn each_scope_of_an_opt_out_is_handled_separately() {
    let (source, target) = (campaign().write(), campaign().write());
    opt_out_of_all(&source, 2);
    super::opt_out(&source, 2, &[]);
    super::opt_out(&source, 3, &["--scope", "marketing"]);
    let listed = source.campaign(&["suppress", "list"]).exits(0).says(" · all messages · ");
    listed.says(&format!("+{} · marketing · ", phone(3)));
    let scopes: Vec<_> = entries(&source).iter().map(|entry| entry["scope"].clone()).collect();
    assert_eq!(scopes, ["all", "marketing", "marketing"]);
    target.write("list.csv", &source.campaign(&["suppress", "export"]).exits(0).stdout);
    target.campaign(&["suppress", "import", "list.csv", "--yes"]).exits(0).says("3 new");
    assert_eq!(entries(&target), entries(&source));
    let number = format!("+{}", phone(2));
    let remove = ["suppress", "remove", &number, "--scope", "all", "--yes", "--json"];
    let removed = source.campaign(&remove).exits(0).json();
    let scope = |entry: &serde_json::Value| entry["scope"].clone();
    assert_eq!((scope(&removed["removed"][0]), scope(&removed["still"])), (json!("all"), json!("marketing")));
    source.campaign(&["suppress", "add", &number, "--scope", "all", "--campaign", "sale"]).exits(2);
    // A scope on the command line overrides the file.
    source.write("stop.csv", &format!("phone,scope\n+{},everything\n", phone(9)));
    source.campaign(&["suppress", "import", "stop.csv", "--scope", "all", "--yes"]).exits(0);
    assert_eq!(entries(&source).last().map(scope), Some(json!("all")));
}

/// The folder with a ledger and an export from before opt-outs had scopes.
fn earlier_version_folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ledgers/0.1-opt-outs")
}

/// Asserts that rows 2 and 4 opted out of marketing, row 3 of the campaign `sale`, and none of service messages.
fn check_earlier_opt_outs(sale: &Folder, gateway: &Gateway) {
    let listed: Vec<_> = entries(sale).iter().map(|entry| (entry["phone"].clone(), entry["scope"].clone())).collect();
    let expected = [(2, "marketing"), (3, "campaign:sale"), (4, "marketing")];
    assert_eq!(listed, expected.map(|(row, scope)| (json!(phone(row).to_string()), json!(scope))));
    let planned = |purpose: &str| {
        campaign().to(4).top(&format!("purpose: {purpose}")).through(gateway).rewrite(sale);
        sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json()["counts"].clone()
    };
    assert_eq!(planned("marketing"), json!({ "planned": 1, "skipped": 3 }));
    assert_eq!(planned("service"), json!({ "planned": 4 }));
}

#[test]
fn opt_outs_in_an_earlier_ledger_block_only_marketing() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    fs::create_dir_all(sale.path("state")).expect("a folder");
    for name in ["ledger.sqlite", "ledger.mark"] {
        let packed = fs::File::open(earlier_version_folder().join(format!("{name}.gz"))).expect("a stored file");
        let mut file = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut file).expect("a packed file");
        fs::write(sale.path("state").join(name), file).expect("a file");
    }
    check_earlier_opt_outs(&sale, &gateway);
    sale.campaign(&["ledger", "check"]).exits(0);
}

#[test]
fn opt_outs_in_an_earlier_export_block_only_marketing() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    fs::copy(earlier_version_folder().join("opt-outs.csv"), sale.path("opt-outs.csv")).expect("an export");
    sale.campaign(&["suppress", "import", "opt-outs.csv", "--yes"]).exits(0).says("3 new");
    check_earlier_opt_outs(&sale, &gateway);
}
