//! Concurrent processes, copied folders and symbolic links for one campaign: one process sends, without duplicates.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use super::states;
use crate::support::{
    Answer, Folder, Gateway, KEY, KEY_VARIABLE, Process, Request, Results, accepted, campaign, change_ledger, in_files,
    phone, until,
};

/// The number of messages to each phone.
fn message_counts(gateway: &Gateway) -> BTreeMap<u64, usize> {
    gateway.phones().into_iter().fold(BTreeMap::new(), |mut times, phone| {
        *times.entry(phone).or_default() += 1;
        times
    })
}

/// Checks that the recipients in these rows got one message each, and no one else got any.
#[track_caller]
fn assert_once_each(gateway: &Gateway, rows: std::ops::Range<usize>) {
    assert_eq!(message_counts(gateway), rows.map(|row| (phone(row), 1)).collect());
}

/// Copies the campaign and its profiles to a sibling folder.
fn copy_campaign(sale: &Folder, to: &str) {
    for name in ["sale.yaml", "sale.csv", "gateways.yaml"] {
        let text = std::fs::read_to_string(sale.path(name)).expect("a file");
        sale.write(&format!("{to}/{name}"), &text);
    }
}

#[test]
fn only_one_of_eight_simultaneous_runs_sends() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(200).through(&gateway).write();
    let processes: Vec<Process> = (0..8).map(|_| sale.start(&["--yes"])).collect();
    let mut codes: Vec<_> = processes.into_iter().map(|process| process.finish().code()).collect();
    codes.sort_unstable();
    // A process that starts during the run is refused; a later one finds no unsent rows.
    assert!(codes[0] == Some(0) && codes.iter().all(|code| matches!(code, Some(0 | 6))), "{codes:?}");
    assert_once_each(&gateway, 2..202);
}

#[test]
fn copied_folder_counts_as_the_same_campaign() {
    let gateway = Gateway::answering([Answer::Accept, Answer::Held]);
    let sale = campaign().to(10).through(&gateway).write();
    copy_campaign(&sale, "copy");
    let first = sale.start(&[]);
    until("the gateway has the second envelope", || gateway.requests().len() == 2);
    sale.campaign(&["run", "copy/sale.yaml"]).exits(6).says("another process");
    gateway.release();
    first.finish().exits(0);
    sale.campaign(&["run", "copy/sale.yaml"]).exits(0);
    let rows: String = (7..17).map(|row| format!("{},Person {row}\n", phone(row))).collect();
    sale.write("copy/sale.csv", &format!("phone,name\n{rows}"));
    let summary = sale.campaign(&["run", "copy/sale.yaml", "--json"]).exits(0).json();
    assert_eq!(summary["counts"], json!({ "accepted": 5, "skipped": 5 }));
    assert_once_each(&gateway, 2..17);
}

#[test]
fn unfinished_run_resumes_from_an_identical_copy() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&["--limit", "4"]).exits(0);
    copy_campaign(&sale, "copy");
    sale.campaign(&["run", "copy/sale.yaml"]).exits(0).says("resuming sale@1");
    sale.run(&[]).exits(0);
    assert_once_each(&gateway, 2..12);
}

#[cfg(unix)]
#[test]
fn symlinked_campaign_counts_as_the_same_campaign() {
    use std::os::unix::fs::symlink;
    let gateway = Gateway::answering([Answer::Accept, Answer::Held]);
    let sale = campaign().to(10).through(&gateway).write();
    symlink(sale.path("sale.yaml"), sale.path("link.yaml")).expect("a link");
    symlink(sale.path(""), sale.path("folder")).expect("a link");
    let first = sale.start(&[]);
    until("the gateway has the second envelope", || gateway.requests().len() == 2);
    for name in ["link.yaml", "folder/sale.yaml", "folder/link.yaml"] {
        sale.campaign(&["run", name]).exits(6).says("another process");
    }
    gateway.release();
    first.finish().exits(0);
    for name in ["link.yaml", "folder/sale.yaml", "folder/link.yaml"] {
        sale.campaign(&["run", name]).exits(0).says("no recipients are left to send to");
    }
    assert_once_each(&gateway, 2..12);
}

#[cfg(unix)]
#[test]
fn symlinked_state_folder_uses_the_same_ledger() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&["--limit", "4"]).exits(0);
    std::os::unix::fs::symlink(sale.path("state"), sale.path("elsewhere")).expect("a link");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_campaign-with-failpoints"));
    command.current_dir(sale.path("")).env_clear().env(KEY_VARIABLE, KEY).arg("--state-dir").arg("elsewhere");
    command.args(["run", "sale.yaml"]);
    Process::start(command).finish().exits(0);
    sale.run(&[]).exits(0);
    assert_once_each(&gateway, 2..12);
}

/// Removes the lock that another process holds on a campaign: deletes its file, or expires it in a database.
fn remove_lock(sale: &Folder) {
    if sale.ledger().is_some() {
        return change_ledger(sale, "UPDATE locks SET until = 0");
    }
    for lock in std::fs::read_dir(sale.path("state/locks")).expect("the locks") {
        std::fs::remove_file(lock.expect("an entry").path()).expect("the lock");
    }
}

#[cfg(unix)]
#[test]
fn owner_suspended_during_a_takeover_sends_nothing_more() {
    let gateway = Gateway::answering([Answer::Accept, Answer::Held]);
    let sale = campaign().to(30).batches_of(5).one_at_a_time().through(&gateway).write();
    let mut owner = sale.start(&[]);
    until("the gateway has the second envelope", || gateway.requests().len() == 2);
    owner.signal("STOP");
    remove_lock(&sale);
    sale.run(&[]).exits(4).says("1 request");
    assert_eq!(states(&sale), format!("addddd{}", "a".repeat(24)));
    let sent = gateway.requests().len();
    gateway.release();
    assert!(owner.is_running());
    owner.signal("CONT");
    owner.finish().exits(6).says("another process has taken over the run");
    assert_eq!(gateway.requests().len(), sent, "the next envelope is not sent");
    let results = Results::parse(&sale.campaign(&["results", "sale", "--out", "-"]).exits(0).stdout);
    assert_eq!(results.states(), ["accepted"; 30], "the delayed answer counts as proof");
    assert_eq!(sale.campaign(&["status", "sale@1"]).code(), Some(0));
    assert_once_each(&gateway, 2..32);
}

#[cfg(unix)]
#[test]
fn answer_after_a_resend_is_reported_as_a_suspected_duplicate() {
    let gateway = Gateway::answering([Answer::Accept, Answer::Held]);
    let sale = campaign().to(10).batches_of(5).one_at_a_time().through(&gateway).write();
    let mut owner = sale.start(&[]);
    until("the gateway has the second envelope", || gateway.requests().len() == 2);
    owner.signal("STOP");
    remove_lock(&sale);
    let again = ["resolve", "sale", "--rows", "4", "--as", "send-again", "--i-accept-duplicates", "1"];
    sale.campaign(&again).exits(5);
    sale.run(&[]).exits(4);
    gateway.release();
    owner.signal("CONT");
    owner.finish().exits(6);
    let results = Results::parse(&sale.campaign(&["results", "sale", "--out", "-"]).exits(0).stdout);
    assert_eq!(results.states(), ["accepted"; 10]);
    let suspected = results.rows.iter().filter(|result| result["reason"].starts_with("duplicate suspected"));
    assert_eq!(suspected.map(|result| result["row"].as_str()).collect::<Vec<_>>(), ["4"]);
}

/// The arrival time and size of each envelope.
type Arrivals = Arc<Mutex<Vec<(Instant, usize)>>>;

#[test]
fn campaigns_on_one_account_share_its_rate_limit() {
    const RATE: usize = 20;
    const BATCH: usize = 5;
    let arrivals = Arrivals::default();
    let recorder = Arc::clone(&arrivals);
    let gateway = Gateway::always(Answer::from_request(move |request: &Request| {
        let operations = request.operations();
        recorder.lock().expect("the arrivals").push((Instant::now(), operations.len()));
        json!({ "success": true, "data": operations.iter().map(accepted).collect::<Vec<_>>() })
    }));
    let sale = campaign().to(30).batches_of(BATCH).delivery(&format!("rate: {RATE}/s"));
    let sale = sale.through(&gateway).profile(&format!("rate: {RATE}/s")).write();
    let text = std::fs::read_to_string(sale.path("sale.yaml")).expect("the campaign");
    sale.write("other.yaml", &text.replace("name: sale", "name: other"));
    let other = Process::start(sale.command(&["run", "other.yaml"]));
    sale.run(&[]).exits(0);
    other.finish().exits(0);
    let arrivals = arrivals.lock().expect("the arrivals");
    let count = |from: Instant, to: Instant| -> usize {
        arrivals.iter().filter(|(at, _)| (from..=to).contains(at)).map(|(_, operations)| operations).sum()
    };
    let (first, last) = (arrivals[0].0, arrivals[arrivals.len() - 1].0);
    assert_eq!(count(first, last), 60);
    for (from, _) in arrivals.iter() {
        for seconds in [1, 2] {
            let arrived = count(*from, *from + Duration::from_secs(seconds));
            // The margin is one envelope per process, and one more that was delayed on a busy machine. Without sharing,
            // there would be 50 operations in a second.
            let maximum = RATE * seconds as usize + 3 * BATCH;
            assert!(arrived <= maximum, "{arrived} operations in {seconds} s, but at most {maximum} are allowed");
        }
    }
    assert!(last - first >= Duration::from_secs(2), "60 messages at 20 a second took only {:?}", last - first);
}
