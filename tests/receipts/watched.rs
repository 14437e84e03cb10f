//! A run that is followed: it is told as it goes on, and the following ends when nothing more can come.

use serde_json::{Value, json};

use super::{Hooked, operations};
use crate::support::{Answer, Folder, Gateway, Process, Terminal, campaign, until};

/// Starts to follow the campaign's run.
fn watch(sale: &Folder, more: &[&str]) -> Process {
    Process::start(sale.command(&[&["status", "--watch"], more].concat()))
}

/// The objects that were printed so far, each on a line.
fn objects(printed: &str) -> Vec<Value> {
    let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

#[test]
fn run_is_followed_to_the_end_of_its_last_message() {
    let gateway = Gateway::answering([Answer::Held]);
    let hooked = Hooked::write(campaign().to(30).through(&gateway).one_at_a_time());
    let server = hooked.serve();
    let run = hooked.sale.start(&[]);
    until("the first message is on its way", || gateway.sends().len() == 1);
    // Without a name it is the one that is being sent.
    let watched = watch(&hooked.sale, &["--json"]);
    until("the sending is told", || objects(&watched.stdout()).iter().any(|told| told["state"] == "sending"));
    let drawn = Terminal::start(hooked.sale.command(&["status", "--watch"]));
    drawn.shows("1 sending").shows("sent per 1 s: █");
    gateway.release();
    run.finish().exits(0);
    drawn.shows("30 accepted by the gateway");
    let shown = drawn.shown();
    let last = &shown[shown.rfind("30 accepted").expect("its end")..];
    assert!(!last.contains("sent per"), "nothing is sent any more: {last}");
    until("the end of the sending is told", || {
        objects(&watched.stdout()).last().is_some_and(|told| told["counts"] == json!({ "accepted": 30 }))
    });
    let operations = operations(&gateway);
    for (index, operation) in operations.iter().enumerate() {
        let status = if index == 0 { "EXPIRED" } else { "DELIVERED" };
        assert_eq!(hooked.tell(operation, &json!({ "status": status, "type": "sms" }).to_string()), 200);
    }
    let told = objects(&watched.finish().exits(3).stdout);
    let (last, before) = told.split_last().expect("objects");
    assert_eq!((&last["counts"], &last["exit"]), (&json!({ "delivered": 29, "failed": 1 }), &json!(3)));
    assert_eq!(last["channels"]["sms"]["counts"], last["counts"]);
    assert!(before.iter().all(|object| object["exit"].is_null() && object["at"].is_string()), "{before:?}");
    let without_time = |object: &Value| {
        let mut object = object.clone();
        object.as_object_mut().expect("an object").remove("at");
        object
    };
    assert!(
        before.windows(2).all(|pair| without_time(&pair[0]) != without_time(&pair[1])),
        "only what changed is told"
    );
    server.end("TERM").exits(0);
}

#[test]
fn ended_run_is_reported_once_with_the_exit_code_of_status() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(6).through(&gateway).write();
    watch(&sale, &[]).finish().exits(0).says("no runs yet");
    let rehearsed = campaign().to(2).write();
    rehearsed.run(&[]).exits(0);
    watch(&rehearsed, &["sale"]).finish().exits(0).says("2 accepted by the gateway").says("next: ");
    let gateway = Gateway::always(Answer::items(|operation| crate::support::rejected(operation, "No route")));
    let refused = campaign().to(4).through(&gateway).write();
    refused.run(&["--keep-going"]).exits(3);
    watch(&refused, &["sale"]).finish().exits(3).says("4 rejected");
    let told = watch(&refused, &["sale", "--json"]).finish().exits(3).json();
    assert_eq!(told["exit"], 3);
    // Nobody wants to know more of these.
    let gateway = Gateway::accepting();
    let silent = campaign().to(2).top("receipts: off").through(&gateway).write();
    silent.run(&[]).exits(0);
    watch(&silent, &["sale"]).finish().exits(0);
}

#[test]
fn signal_ends_watching_only() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).through(&gateway).write();
    sale.run(&[]).exits(0);
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut watched = watch(&sale, &["sale", "--json"]);
        until("it is told", || !objects(&watched.stdout()).is_empty());
        watched.signal(signal);
        let told = objects(&watched.finish().exits(code).stdout);
        assert_eq!(told.last().expect("an object")["exit"], code);
    }
    let mut watched = watch(&sale, &["sale"]);
    until("a line is told", || watched.stdout().contains("finished: 3 accepted by the gateway\n"));
    watched.signal("INT");
    let told = watched.finish().exits(130);
    assert!(!told.stdout.contains('\u{1b}') && told.stdout.lines().count() == 1, "plain lines: {}", told.stdout);
}

#[test]
fn on_a_terminal_it_is_drawn_in_one_place() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let watched = Terminal::start(hooked.sale.command(&["status", "sale", "--watch"]));
    watched.shows("1 row: 1 accepted by the gateway").shows("press Ctrl-C to stop watching");
    assert_eq!(hooked.tell(&operations(&gateway)[0], r#"{"status":"DELIVERED","type":"sms"}"#), 200);
    watched.shows("1 row: 1 delivered").shows("next: ");
    let shown = watched.shown();
    let last = &shown[shown.rfind("1 row: 1 delivered").expect("the end")..];
    assert!(!last.contains("Ctrl-C"), "{last}");
    assert!(shown.contains("\u{1b}["), "what stood there was taken away: {shown:?}");
    watched.finish().exits(0);
    let mut left = Terminal::start(hooked.sale.command(&["run", "sale.yaml", "--again", "1", "--no-wait"]));
    left.signal("CONT");
    left.finish().exits(0);
    let mut watched = Terminal::start(hooked.sale.command(&["status", "--watch"]));
    watched.shows("1 row: 1 accepted by the gateway").shows("press Ctrl-C to stop watching");
    watched.signal("INT");
    watched.finish().exits(130);
    drop(server);
}
