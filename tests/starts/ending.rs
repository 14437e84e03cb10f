//! Cancelling a run for good (`stop --for-good`).

use serde_json::json;

use super::write_campaign_in;
use crate::support::{Answer, Folder, Gateway, Process, Results, SandboxProcess, campaign, phone, rejected, until};

#[test]
fn cancelled_run_ends_and_its_planned_rows_are_skipped() {
    let gateway = Gateway::answering([Answer::Accept, Answer::items(|operation| rejected(operation, "No route"))]);
    let sale = campaign().to(10).batches_of(2).one_at_a_time().through(&gateway).write();
    sale.run(&["--limit", "3"]).exits(3);
    let output = sale.campaign(&["stop", "sale", "--for-good", "--yes", "--json"]).exits(3).json();
    assert_eq!(
        (&output["rows"], &output["counts"]),
        (&json!(7), &json!({ "accepted": 1, "rejected": 2, "skipped": 7 }))
    );
    let results = sale.results();
    assert_eq!(results.rows.iter().filter(|row| row["reason"] == "cancelled" && row["state"] == "skipped").count(), 7);
    sale.campaign(&["status", "sale"]).exits(3).says("cancelled").says("7 skipped");
    sale.campaign(&["show", "sale", "--row", "9"]).exits(0).says("skipped");
    sale.campaign(&["retry", "sale@1"]).exits(2).says("was cancelled");
    sale.campaign(&["stop", "sale@1", "--for-good", "--yes"]).exits(2).says("has already ended");
    let shown = Results::parse(&sale.campaign(&["results", "sale", "--out", "-"]).exits(0).stdout);
    assert_eq!(shown.counts()["skipped"], 7);
    // The next run sends only to the two rejected recipients. The others have a message or were cancelled.
    sale.run(&[]).exits(0).says("sale@2").says("8 skipped");
    assert_eq!(gateway.phones()[3..], [3, 4].map(phone));
}

/// A sale of three messages, all of them rejected, whose retry was interrupted after the first message.
fn sale_with_interrupted_retry(gateway: &Gateway) -> Folder {
    let sale = campaign().to(3).batches_of(1).one_at_a_time().delivery("rate: 2/s").through(gateway).write();
    sale.run(&[]).exits(3);
    let mut retry = Process::start(sale.command(&["retry", "sale", "--yes"]));
    until("a message is sent again", || gateway.phones().len() == 4);
    retry.signal("INT");
    retry.finish().exits(130);
    sale
}

/// A gateway that rejects three messages and accepts the next ones.
fn gateway_that_rejects_three() -> Gateway {
    let reject = || Answer::items(|operation| rejected(operation, "No route"));
    Gateway::answering([reject(), reject(), reject(), Answer::Accept])
}

#[test]
fn cancelled_retry_leaves_the_other_messages_rejected() {
    let gateway = gateway_that_rejects_three();
    let sale = sale_with_interrupted_retry(&gateway);
    let counts = json!({ "accepted": 1, "rejected": 2 });
    let stop = sale.campaign(&["stop", "sale", "--for-good", "--yes"]).exits(3).says("2 rows cancelled");
    assert!(
        stop.stdout.contains("2 of these messages are not sent again in this run and keep their earlier state"),
        "{}",
        stop.stdout
    );
    assert_eq!(sale.campaign(&["status", "sale", "--json"]).exits(3).json()["counts"], counts);
    assert_eq!(sale.results().states(), ["accepted", "rejected", "rejected"]);
    sale.campaign(&["show", "sale", "--row", "3"]).exits(0).says("rejected");
    // The next run tries rejected messages again.
    sale.run(&[]).exits(0).says("sale@2");
    assert_eq!(gateway.phones()[4..], [3, 4].map(phone));
}

#[test]
fn replaced_retry_leaves_the_other_messages_rejected() {
    let gateway = gateway_that_rejects_three();
    let sale = sale_with_interrupted_retry(&gateway);
    sale.replace("sale.yaml", "Hello", "Good morning");
    sale.run(&["--accept-changes"]).exits(0).says("sale@2");
    let status = sale.campaign(&["status", "sale@1", "--json"]).exits(3).json();
    assert_eq!(status["counts"], json!({ "accepted": 1, "rejected": 2 }));
    assert_eq!(gateway.phones()[4..], [3, 4].map(phone));
}

#[test]
fn cancelled_resend_leaves_the_message_in_doubt() {
    let gateway = Gateway::answering([Answer::CloseRead, Answer::Accept]);
    let sale = campaign().to(2).batches_of(1).one_at_a_time().through(&gateway).write();
    sale.run(&[]).exits(4);
    sale.campaign(&["resolve", "sale", "--all", "--as", "send-again", "--i-accept-duplicates", "1"]).exits(5);
    let output = sale.campaign(&["stop", "sale", "--for-good", "--yes", "--json"]).exits(4).json();
    assert_eq!(output["counts"], json!({ "accepted": 1, "in_doubt": 1 }));
    assert_eq!(output["next"], "campaign reconcile sale@1");
    let text = std::fs::read_to_string(sale.path("sale.yaml")).expect("a campaign");
    sale.write("news.yaml", &text.replace("name: sale", "name: news"));
    sale.replace("news.yaml", "file: sale.csv", "file: sale.csv\n  exclude: { run: sale }");
    let news = sale.campaign(&["check", "news.yaml", "--json"]).exits(0).json();
    assert_eq!(news["counts"], json!({ "skipped": 2 }));
    sale.run(&[]).says("no recipients are left to send to");
    assert_eq!(gateway.phones(), [2, 3].map(phone));
}

#[test]
fn exactly_one_of_several_simultaneous_stops_ends_a_run() {
    let gateway = Gateway::accepting();
    for _ in 0..4 {
        let sale = campaign().to(9).through(&gateway).write();
        sale.run(&["--limit", "3"]).exits(0);
        let stops = [(); 3].map(|()| Process::start(sale.command(&["stop", "sale", "--for-good", "--yes", "--json"])));
        let outputs = stops.map(|stop| stop.finish().json());
        assert_eq!(outputs.iter().filter(|output| output["rows"] == 6).count(), 1, "{outputs:?}");
        assert!(outputs.iter().all(|output| output["rows"] == 6 || !output["error"].is_null()), "{outputs:?}");
    }
}

#[test]
fn moved_run_can_be_cancelled_without_its_old_folder() {
    let (gateway, home) = (Gateway::accepting(), Folder::new(true));
    write_campaign_in(&home, &gateway, "old", "Autumn", 4);
    home.campaign(&["run", "old/sale.yaml", "--limit", "1", "--no-wait"]).exits(0);
    std::fs::rename(home.path("old"), home.path("new")).expect("another name");
    home.campaign(&["retry", "sale"]).exits(2).says("is no longer at `").says("campaign run FILE --moved");
    home.campaign(&["stop", "new/sale.yaml"]).exits(2).says("sale@1").says("`--moved`");
    home.campaign(&["stop", "sale", "--for-good", "--yes"])
        .exits(0)
        .says("3 rows cancelled")
        .says("next: campaign results sale@1 --out FILE");
    home.campaign(&["results", "sale"]).exits(2).says("no longer exists").says("`--out FILE`");
    home.campaign(&["run", "new/sale.yaml", "--moved", "--again", "4", "--no-wait"]).exits(0).says("sale@2");
    home.campaign(&["results", "sale@1"]).exits(2).says("no longer exists");
    assert!(!home.path("old").exists(), "a moved folder is not created again");
    std::fs::remove_dir_all(home.path("new/results")).expect("no results");
    home.campaign(&["results", "sale@2"]).exits(0).says("new/results/sale.csv");
}

#[test]
fn emptied_list_ends_an_unfinished_run_without_a_replacement() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(4).recipients("empty: ok").through(&gateway).write();
    sale.run(&["--limit", "1"]).exits(0);
    sale.write("sale.csv", "phone,name\n");
    sale.run(&["--accept-changes"]).exits(0).says("the list has no recipients");
    sale.campaign(&["status", "sale"]).says("sale@1").says("replaced by a later run");
}

#[test]
fn run_whose_last_rows_are_rejected_finishes_without_a_stop() {
    let refuse = || Answer::items(|operation| rejected(operation, "Error in Alpha-name"));
    let gateway = Gateway::answering([refuse(), refuse(), refuse(), refuse(), Answer::Accept]);
    let sale = campaign().to(4).through(&gateway).write();
    let output = sale.run(&["--json"]).exits(3).json();
    assert_eq!((&output["stopped"], &output["counts"]), (&json!(null), &json!({ "rejected": 4 })));
    sale.campaign(&["status", "sale", "--json"]).exits(3).says("finished");
    sale.campaign(&["retry", "sale", "--no-wait"]).exits(0).says("4 accepted");
}

#[test]
fn run_in_progress_is_cancelled_once_its_requests_complete() {
    let sandbox = SandboxProcess::start();
    let sale = campaign().to(2_000).through(&sandbox).delivery("rate: 50/s").batches_of(10).write();
    let run = sale.start(&[]);
    until("some messages were sent", || sandbox.messages().len() > 10);
    sale.campaign(&["run", "sale.yaml"])
        .exits(6)
        .says("started 20")
        .says("campaign status sale")
        .says("campaign stop sale");
    sale.campaign(&["stop", "sale@1", "--for-good", "--yes"])
        .exits(0)
        .says("stopped for good")
        .says("is being sent: waiting");
    run.finish().exits(5);
    assert_eq!(sale.results().counts()["accepted"], sandbox.messages().len() as u64);
    assert_eq!(sale.results().counts().get("planned"), None);
}
