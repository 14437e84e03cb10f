//! `campaign serve` with an active schedule. The test waits for an occurrence, so it is ignored by default. Run it with
//! `-- --ignored serving`.

use crate::support::{Gateway, Process, campaign, until};

#[test]
#[ignore = "waits for the next full minutes"]
fn occurrence_is_sent_once_despite_a_crash_after_recording_it() {
    let gateway = Gateway::accepting();
    let sale = campaign().top("timezone: UTC").top("schedule: { cron: \"* * * * *\" }").through(&gateway).write();
    sale.replace("sale.yaml", "Hello, ", "It is {{ today }}, ");
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let mut failing = sale.command(&serve);
    failing.env("CAMPAIGN_FAILPOINT", "run.created:1");
    Process::start(failing).finish_within(std::time::Duration::from_secs(90));
    assert!(gateway.requests().is_empty(), "the process died before sending");
    // The killed run sent no messages, so it starts again. The server ends before the next occurrence.
    let mut server = Process::start(sale.command(&serve));
    until("the occurrence is sent", || server.stderr().contains("finished"));
    server.signal("TERM");
    let output = server.finish().exits(0);
    assert_eq!(gateway.requests().len(), 2, "three recipients, the first one alone: {}", output.details());
    let results = std::fs::read_dir(sale.path("results")).unwrap().flatten();
    let names: Vec<String> = results.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(names.iter().any(|name| name.starts_with("sale-20")), "{names:?}");
    let status = sale.campaign(&["status", "--json"]).exits(0).json();
    assert_eq!(status["runs"].as_array().unwrap().len(), 1, "{status}");
}
