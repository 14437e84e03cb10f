//! `status --watch`: progress of a run until its last delivery status.

use serde_json::{Value, json};

use super::{Hooked, operations};
use crate::support::{Answer, Folder, Gateway, Process, Terminal, campaign, until};

/// Starts `status --watch`.
fn watch(sale: &Folder, more: &[&str]) -> Process {
    Process::start(sale.command(&[&["status", "--watch"], more].concat()))
}

/// Parses the JSON objects printed so far, one per line.
fn parse_objects(printed: &str) -> Vec<Value> {
    let complete = printed.rfind('\n').map_or("", |end| &printed[..end]);
    complete.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

#[test]
fn watch_follows_a_run_until_its_last_message_is_final() {
    let gateway = Gateway::answering([Answer::Held]);
    let hooked = Hooked::write(campaign().to(30).through(&gateway).one_at_a_time());
    let server = hooked.serve();
    let run = hooked.sale.start(&[]);
    until("the first message is on its way", || gateway.sends().len() == 1);
    // Without a name, `status --watch` follows the run that is being sent.
    let watcher = watch(&hooked.sale, &["--json"]);
    until("the run is reported as sending", || {
        parse_objects(&watcher.stdout()).iter().any(|object| object["state"] == "sending")
    });
    let terminal = Terminal::start(hooked.sale.command(&["status", "--watch"]));
    terminal.shows("1 sending").shows("sent per 1 s: █");
    gateway.release();
    run.finish().exits(0);
    terminal.shows("30 accepted by the gateway");
    let screen = terminal.shown();
    let last = &screen[screen.rfind("30 accepted").expect("the last screen")..];
    assert!(!last.contains("sent per"), "no rate after the end: {last}");
    until("all messages are reported as accepted", || {
        parse_objects(&watcher.stdout()).last().is_some_and(|object| object["counts"] == json!({ "accepted": 30 }))
    });
    let operations = operations(&gateway);
    for (index, operation) in operations.iter().enumerate() {
        let status = if index == 0 { "EXPIRED" } else { "DELIVERED" };
        assert_eq!(hooked.post(operation, &json!({ "status": status, "type": "sms" }).to_string()), 200);
    }
    let reported = parse_objects(&watcher.finish().exits(3).stdout);
    let (last, before) = reported.split_last().expect("objects");
    assert_eq!((&last["counts"], &last["exit"]), (&json!({ "delivered": 29, "failed": 1 }), &json!(3)));
    assert_eq!(last["channels"]["sms"]["counts"], last["counts"]);
    assert!(before.iter().all(|object| object["exit"].is_null() && object["at"].is_string()), "{before:?}");
    let remove_time = |object: &Value| {
        let mut object = object.clone();
        object.as_object_mut().expect("an object").remove("at");
        object
    };
    assert!(
        before.windows(2).all(|pair| remove_time(&pair[0]) != remove_time(&pair[1])),
        "an object is printed only if something changed"
    );
    server.end("TERM").exits(0);
}

#[test]
fn ended_run_is_reported_once_with_the_exit_code_of_status() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(6).through(&gateway).write();
    watch(&sale, &[]).finish().exits(0).says("no runs yet");
    let rehearsal = campaign().to(2).write();
    rehearsal.run(&[]).exits(0);
    watch(&rehearsal, &["sale"]).finish().exits(0).says("2 accepted by the gateway").says("next: ");
    let gateway = Gateway::always(Answer::items(|operation| crate::support::rejected(operation, "No route")));
    let rejecting = campaign().to(4).through(&gateway).write();
    rejecting.run(&["--keep-going"]).exits(3);
    watch(&rejecting, &["sale"]).finish().exits(3).says("4 rejected");
    let reported = watch(&rejecting, &["sale", "--json"]).finish().exits(3).json();
    assert_eq!(reported["exit"], 3);
    // No receipts are expected for these messages.
    let gateway = Gateway::accepting();
    let without_receipts = campaign().to(2).top("receipts: off").through(&gateway).write();
    without_receipts.run(&[]).exits(0);
    watch(&without_receipts, &["sale"]).finish().exits(0);
}

#[test]
fn signalled_watcher_exits_with_the_code_of_the_signal() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).through(&gateway).write();
    sale.run(&[]).exits(0);
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut watcher = watch(&sale, &["sale", "--json"]);
        until("an object is printed", || !parse_objects(&watcher.stdout()).is_empty());
        watcher.signal(signal);
        let reported = parse_objects(&watcher.finish().exits(code).stdout);
        assert_eq!(reported.last().expect("an object")["exit"], code);
    }
    let mut watcher = watch(&sale, &["sale"]);
    until("a line is printed", || watcher.stdout().contains("finished: 3 accepted by the gateway\n"));
    watcher.signal("INT");
    let ended = watcher.finish().exits(130);
    assert!(!ended.stdout.contains('\u{1b}') && ended.stdout.lines().count() == 1, "plain lines: {}", ended.stdout);
}

#[test]
fn watch_output_is_redrawn_in_place_on_a_terminal() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let watcher = Terminal::start(hooked.sale.command(&["status", "sale", "--watch"]));
    watcher.shows("1 row: 1 accepted by the gateway").shows("press Ctrl-C to stop watching");
    assert_eq!(hooked.post(&operations(&gateway)[0], r#"{"status":"DELIVERED","type":"sms"}"#), 200);
    watcher.shows("1 row: 1 delivered").shows("next: ");
    let screen = watcher.shown();
    let last = &screen[screen.rfind("1 row: 1 delivered").expect("the end")..];
    assert!(!last.contains("Ctrl-C"), "{last}");
    assert!(screen.contains("\u{1b}["), "the old screen is erased: {screen:?}");
    watcher.finish().exits(0);
    let mut resumed = Terminal::start(hooked.sale.command(&["run", "sale.yaml", "--again", "1", "--no-wait"]));
    resumed.signal("CONT");
    resumed.finish().exits(0);
    let mut watcher = Terminal::start(hooked.sale.command(&["status", "--watch"]));
    watcher.shows("1 row: 1 accepted by the gateway").shows("press Ctrl-C to stop watching");
    watcher.signal("INT");
    watcher.finish().exits(130);
    drop(server);
}
