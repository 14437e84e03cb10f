//! Editions that contain the date: unfinished runs from the day before, and rehearsals.

use serde_json::json;

use crate::support::{Answer, Finished, Folder, Gateway, Process, campaign, phone, rejected};

/// Runs the campaign on the date of a time zone. One of the two zones used is always a day ahead of the other.
fn run_in(sale: &Folder, zone: &str, arguments: &[&str]) -> Finished {
    let mut command = sale.command(&[&["run", "sale.yaml", "--no-wait"], arguments].concat());
    command.env("TZ", zone);
    Process::start(command).finish()
}

/// Runs the campaign on the following day.
fn run_today(sale: &Folder, arguments: &[&str]) -> Finished {
    run_in(sale, "Pacific/Kiritimati", arguments)
}

/// Creates a campaign to ten recipients whose first run, from the day before, is unfinished.
fn unfinished_campaign(gateway: &Gateway) -> Folder {
    let sale = campaign().to(10).top("edition: \"{{ today }}\"").through(gateway).write();
    run_in(&sale, "Pacific/Pago_Pago", &["--limit", "5"]).exits(0);
    sale
}

#[test]
fn yesterdays_unfinished_edition_ends_before_todays_begins() {
    let gateway = Gateway::accepting();
    let sale = unfinished_campaign(&gateway);
    let output = run_today(&sale, &["--json"]).exits(0).json();
    assert_eq!(
        (&output["run"], &output["counts"], &output["sent"]),
        (&json!("sale@2"), &json!({ "accepted": 10 }), &json!(10))
    );
    let earlier = &output["earlier"];
    assert_eq!((&earlier["run"], &earlier["sent"], &earlier["exit"]), (&json!("sale@1"), &json!(5), &json!(0)));
    assert!(earlier["results"].as_str().is_some_and(|path| path.ends_with("sale@1.csv")), "{earlier}");
    assert!(sale.results().column("run").iter().all(|run| *run == "sale@2"));
    assert!(output["results"].is_string());
    assert_eq!(gateway.phones(), (2..12).chain(2..12).map(phone).collect::<Vec<_>>());
    let second = unfinished_campaign(&gateway);
    let output = run_today(&second, &[]).exits(0).says("from the unfinished edition");
    assert!(output.stdout.contains("sale@1 ") && output.stdout.contains("sale@2 "), "{}", output.details());
}

#[test]
fn run_that_ends_yesterdays_edition_announces_todays_edition() {
    let gateway = Gateway::accepting();
    let sale = unfinished_campaign(&gateway);
    sale.replace("sale.yaml", "{{ name }}", "you");
    let output = run_today(&sale, &["--accept-changes"]).exits(0).says("5 skipped");
    output.says("the next run starts the current edition for the whole list");
    assert_eq!(gateway.phones().len(), 10);
    run_today(&sale, &["--accept-changes"]).exits(0).says("10 accepted");
}

#[test]
fn changed_daily_list_requires_ending_the_unfinished_run() {
    let gateway = Gateway::accepting();
    let sale = unfinished_campaign(&gateway);
    let lines: String = (12..22).map(|row| format!("{},Person {row}\n", phone(row))).collect();
    sale.write("sale.csv", &format!("phone,name\n{lines}"));
    let yesterday = sale.campaign(&["status", "sale@1", "--json"]).exits(5).json()["edition"].clone();
    let refused = run_today(&sale, &["--json"]).exits(2).json();
    let reason = format!("sale@1 is unfinished and belongs to the edition `{}`", yesterday.as_str().expect("a date"));
    assert!(refused["error"].as_str().is_some_and(|error| error.contains(&reason)), "{refused}");
    let refused = refused["help"].as_str().expect("help");
    let (stop, accept) = (refused.find("campaign stop sale@1 --for-good"), refused.find("--accept-changes"));
    assert!(stop.is_some() && stop < accept, "{refused}");
    sale.campaign(&["stop", "sale@1", "--for-good", "--yes"]).exits(0);
    run_today(&sale, &[]).exits(0).says("sale@2");
    run_today(&sale, &[]).exits(0).says("no recipients are left");
    assert_eq!(gateway.phones(), (2..7).chain(12..22).map(phone).collect::<Vec<_>>());
}

#[test]
fn changed_edition_is_refused_with_a_suggested_command() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(4).top("edition: first").through(&gateway).write();
    sale.run(&["--limit", "2"]).exits(0);
    sale.replace("sale.yaml", "edition: first", "edition: second");
    let refused = sale.run(&[]).exits(2).says("belongs to the edition `first`").says("now has the edition `second`");
    refused.says("to send the edition `second` to recipients who have not received a message from ");
    sale.run(&["--accept-changes"]).exits(0).says("2 skipped");
    assert_eq!(gateway.phones(), (2..6).map(phone).collect::<Vec<_>>());
    sale.run(&[]).exits(0).says("2 accepted");
}

#[test]
fn limit_option_resumes_only_the_unfinished_run() {
    let gateway = Gateway::accepting();
    let sale = unfinished_campaign(&gateway);
    run_today(&sale, &["--limit", "5"]).exits(0).says("sale@1");
    assert_eq!(gateway.phones().len(), 10);
    run_today(&sale, &[]).exits(0).says("sale@2");
}

#[test]
fn unfinished_run_that_stops_again_blocks_the_next_edition() {
    let refuse = || Answer::rejection("Invalid message type");
    let gateway = Gateway::answering([Answer::Accept, Answer::Accept, refuse()]);
    let sale = unfinished_campaign(&gateway);
    run_today(&sale, &[]).exits(5).says("sale@1");
    sale.campaign(&["status", "sale@2"]).exits(2);
}

#[test]
fn unfinished_run_ends_even_if_the_next_edition_cannot_begin() {
    let gateway = Gateway::accepting();
    let sale = unfinished_campaign(&gateway);
    sale.replace("gateways.yaml", "local:\n", "local:\n  limits: { recipients: 9 }\n");
    let output = run_today(&sale, &["--json"]).exits(5).json();
    assert_eq!((&output["run"], &output["sent"]), (&json!("sale@1"), &json!(5)));
    assert!(output["notes"].to_string().contains("the current edition did not start"), "{output}");
    assert_eq!(output["later"]["exit"], 2);
    assert!(output["later"]["error"].as_str().is_some_and(|why| why.contains("10")), "{output}");
}

#[test]
fn rehearsal_always_starts_over() {
    let sale = campaign().to(6).write();
    sale.run(&["--limit", "2"]).exits(0).says("sale@1");
    let output = sale.run(&["--json"]).exits(0).json();
    assert_eq!(
        (&output["run"], &output["counts"], &output["sent"]),
        (&json!("sale@2"), &json!({ "accepted": 6 }), &json!(6))
    );
    sale.campaign(&["status", "sale@1", "--json"]).says("replaced");
}

#[test]
fn retry_does_not_loop_if_every_row_is_rejected_again() {
    let refuse = || Answer::items(|operation| rejected(operation, "No route"));
    let gateway = Gateway::always(refuse());
    let sale = campaign().to(30).through(&gateway).write();
    sale.run(&["--keep-going"]).exits(3);
    sale.campaign(&["retry", "sale", "--no-wait"]).exits(3).says("30 rejected");
    assert_eq!(gateway.phones().len(), 60);
}

#[test]
fn resumed_run_gives_reasons_only_for_new_rejections() {
    let refuse = || Answer::items(|operation| rejected(operation, "No route"));
    let gateway = Gateway::always(refuse());
    let sale = campaign().to(4).through(&gateway).write();
    sale.run(&["--keep-going", "--limit", "3"]).exits(3).says("3 rejected").says("3 rejected: No route");
    sale.run(&["--keep-going"]).exits(3).says("4 rejected").says("1 rejected this time: No route");
}

#[test]
fn documented_cron_job_reaches_every_recipient_every_day() {
    let page = include_str!("../../docs/cron-and-systemd.md");
    let (before, job) = page.split_once("30 9 * * 1-5 ").expect("a job");
    let job = job.lines().next().expect("a command").trim();
    let (folder, command) = job.split_once(" && ").expect("a folder name");
    assert!(folder.starts_with("cd /"), "a job starts in the home folder: {job}");
    let (command, _) = command.split_once(" >>").expect("a log");
    let (program, arguments) = command.split_once(' ').expect("arguments");
    assert!(before.contains("PATH=/usr/local/bin"), "cron has a short `PATH`");
    assert_eq!(program, "campaign");
    let edition = "edition: \"{{ today }}\"";
    assert!(page.contains(&format!("`{edition}`")), "the page names no edition");
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).top(edition).through(&gateway).write();
    let arguments = arguments.replace("reminder.yaml", "sale.yaml").replace("production", "local");
    for zone in ["Pacific/Pago_Pago", "Pacific/Kiritimati"] {
        let mut command = sale.command(&arguments.split(' ').collect::<Vec<_>>());
        command.env("TZ", zone);
        let ended = Process::start(command).finish().exits(0);
        assert_eq!(ended.json()["sent"], 3, "{zone}");
    }
    assert_eq!(gateway.phones(), (2..5).chain(2..5).map(phone).collect::<Vec<_>>());
}
