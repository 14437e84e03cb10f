//! `campaign serve` with what is armed. What takes a minute to be due is asked for by name: `-- --ignored serving`.

use crate::support::{Gateway, Process, campaign, until};

#[test]
#[ignore = "waits for the next full minutes"]
fn occurrence_is_sent_once_despite_a_crash_after_its_record() {
    let gateway = Gateway::accepting();
    let sale = campaign().top("timezone: UTC").top("schedule: { cron: \"* * * * *\" }").through(&gateway).write();
    sale.replace("sale.yaml", "Hello, ", "It is {{ today }}, ");
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let mut dying = sale.command(&serve);
    dying.env("CAMPAIGN_FAILPOINT", "run.created:1");
    Process::start(dying).finish_within(std::time::Duration::from_secs(90));
    assert!(gateway.requests().is_empty(), "it died before anything was sent");
    // What died begins anew, since nothing of it was sent; the server ends before the next is due.
    let mut server = Process::start(sale.command(&serve));
    until("it is sent", || server.stderr().contains("finished"));
    server.signal("TERM");
    let told = server.finish().exits(0);
    assert_eq!(gateway.requests().len(), 2, "three people, after the first alone: {}", told.told());
    let results = std::fs::read_dir(sale.path("results")).unwrap().flatten();
    let names: Vec<String> = results.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(names.iter().any(|name| name.starts_with("sale-20")), "{names:?}");
    let status = sale.campaign(&["status", "--json"]).exits(0).json();
    assert_eq!(status["runs"].as_array().unwrap().len(), 1, "{status}");
}
