//! Outcomes of single paid operations: output, exit code and ledger after each answer.

use std::net::TcpListener;

use serde_json::json;

use crate::support::{
    Answer, Gateway, KEY, Process, Results, SandboxProcess, in_files, note_on_failure, rejected, until,
};

use super::{COMMANDS, NUMBER, profile_folder, run_command, runs, set_rate};

#[test]
fn built_in_sandbox_answers_lookups_and_verification_calls() {
    let folder = crate::support::Folder::new(false);
    let lookup = run_command(&folder, "lookup", &["--gateway", "sandbox"]).exits(0).says("rehearsal");
    lookup.says("operator").says("Sandbox Mobile").says("25501");
    let call = run_command(&folder, "otp", &["--gateway", "sandbox", "--json"]).exits(0).json();
    let code = call["answer"]["code"].as_str().expect("a code");
    assert!(code.len() == 4 && code.bytes().all(|byte| byte.is_ascii_digit()), "{call}");
    assert_eq!((&call["gateway"], &call["state"]), (&json!("sandbox"), &json!("accepted")));
}

#[test]
fn number_is_accepted_in_every_format() {
    let gateway = Gateway::accepting();
    let folder = profile_folder(&gateway);
    let formats: [&[&str]; 5] = [
        &["+380501234567"],
        &["380 50 123-45-67"],
        &["+380 (50) 123 45 67"],
        &["050 123 45 67", "--region", "UA"],
        &["80501234567", "--region", "UA"],
    ];
    for number in formats {
        folder.campaign(&[&["gateway", "lookup"], number].concat()).exits(0);
    }
    assert_eq!(gateway.phones(), [380_501_234_567; 5]);
}

#[test]
fn lookup_and_otp_requests_match_the_contract() {
    let gateway = Gateway::accepting();
    let folder = profile_folder(&gateway);
    let ids = COMMANDS.map(|(command, _)| run_command(&folder, command, &["--json"]).exits(0).json()["id"].clone());
    let sent: Vec<_> = gateway.requests().iter().map(|request| (request.path().to_owned(), request.json())).collect();
    for ((path, envelope), (kind, id)) in sent.iter().zip([("hlr", &ids[0]), ("call/otp", &ids[1])]) {
        assert_eq!(path, "/api/json.php");
        assert_eq!(envelope["auth"], KEY);
        assert_eq!(envelope["data"], json!([{ "type": kind, "id": id, "phone": 380_501_234_567_u64 }]));
    }
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn gateway_answer_is_shown_and_stored_in_the_results() {
    let gateway = Gateway::accepting();
    let folder = profile_folder(&gateway);
    run_command(&folder, "otp", &[])
        .exits(0)
        .says("0042")
        .says("0.5")
        .says("next: campaign show gateway.otp@1 --row 2");
    folder.campaign(&["show", "gateway.otp@1", "--row", "2"]).exits(0).says("accepted by the gateway").says("0042");
    let row = Results::parse(&folder.campaign(&["results", "gateway.otp@1"]).exits(0).stdout);
    let answer: serde_json::Value = serde_json::from_str(row.column("answer")[0]).expect("JSON");
    assert_eq!(answer, json!({ "code": "0042", "price": 0.5 }));
    assert_eq!((row.states(), row.column("to"), row.column("row")), (vec!["accepted"], vec![NUMBER], vec!["2"]));
    folder.campaign(&["status"]).exits(0).says("gateway.otp@1").says("finished");
    folder.campaign(&["status", "gateway.otp"]).exits(0).says("1 accepted");
}

/// A case: its name, the answer, the exit code and the state.
type Case = (&'static str, Answer, i32, &'static str);

fn cases() -> [Case; 9] {
    [
        ("rejected", Answer::items(|operation| rejected(operation, "No route")), 3, "rejected"),
        ("no money", Answer::items(|operation| rejected(operation, "Not enough money")), 3, "rejected"),
        ("read, then closed", Answer::CloseRead, 4, "in_doubt"),
        ("cut within the body", Answer::CutBody, 4, "in_doubt"),
        ("a page", Answer::status(500), 4, "in_doubt"),
        ("slow down", Answer::status(429), 4, "in_doubt"),
        ("no list", Answer::json(json!({ "success": true })), 4, "in_doubt"),
        ("the key is refused", Answer::rejection("Access denied"), 7, "not_sent"),
        ("the envelope is refused", Answer::rejection("Invalid message type"), 5, "not_sent"),
    ]
}

#[test]
fn answer_determines_state_and_exit_code() {
    for (command, run) in COMMANDS {
        for (name, answer, code, state) in cases() {
            let _case = note_on_failure(format!("case: {command}, {name}"));
            let gateway = Gateway::answering([answer]);
            let folder = profile_folder(&gateway);
            let object = run_command(&folder, command, &["--json"]).exits(code).json();
            assert_eq!((&object["run"], &object["state"]), (&json!(run), &json!(state)), "{object}");
            assert_eq!((&object["exit"], &object["answer"]), (&json!(code), &json!(null)));
            assert!(object["error"].is_string(), "{object}");
            assert_eq!(gateway.requests().len(), 1);
            let listed = &runs(&folder)[0];
            assert_eq!(listed["counts"], json!({ state: 1 }), "{listed}");
            // The output and `show` explain why a single lookup was not sent; `status` counts it like a row of any run.
            folder.campaign(&["status", run]).exits(if state == "not_sent" { 3 } else { code });
            let results = Results::parse(&folder.campaign(&["results", run]).exits(0).stdout);
            assert_eq!(results.states(), [state]);
            folder.campaign(&["run", run]).exits(2).says("is not repeated automatically");
            folder.campaign(&["stop", run]).exits(0).says("not being sent");
            assert_eq!(gateway.requests().len(), 1);
        }
    }
}

#[test]
fn lookup_in_doubt_can_be_neither_resent_nor_retried() {
    for (command, run) in COMMANDS {
        let gateway = Gateway::answering([Answer::CloseRead]);
        let folder = profile_folder(&gateway);
        run_command(&folder, command, &[]).exits(4);
        let again = ["resolve", run, "--all", "--as", "send-again", "--i-accept-duplicates", "1"];
        folder
            .campaign(&again)
            .exits(2)
            .says("contains lookups or verification calls")
            .says("help: repeat it with `campaign gateway`");
        run_command(&folder, command, &[]).exits(0);
        let results = Results::parse(&folder.campaign(&["results", run]).exits(0).stdout);
        assert_eq!(results.states(), ["in_doubt", "accepted"]);
        folder.campaign(&["retry", run]).exits(2).says("contains lookups or verification calls");
    }
}

#[test]
fn unsupported_operator_is_reported_as_a_rejection() {
    let gateway = Gateway::answering([Answer::rejection("Operator not supported")]);
    let folder = profile_folder(&gateway);
    run_command(&folder, "otp", &[]).exits(3).says("Operator not supported");
}

#[test]
fn lookup_in_doubt_is_explained_and_a_repeat_is_a_new_row() {
    let gateway = Gateway::answering([Answer::CloseRead]);
    let folder = profile_folder(&gateway);
    let doubt = run_command(&folder, "otp", &[]).exits(4).says("might have been processed and charged");
    doubt.says("not be repeated automatically").says("next: campaign show gateway.otp@1 --row 2");
    run_command(&folder, "otp", &[]).exits(0).says("gateway.otp@1 row 3");
    let ids: Vec<_> = gateway.requests().iter().map(|request| request.operations()[0]["id"].clone()).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
    folder.campaign(&["status", "gateway.otp@1"]).exits(4).says("1 in doubt");
}

#[test]
fn unreachable_gateway_is_retried_briefly_and_the_run_finishes() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("an address");
    let gateway = Gateway::accepting();
    let folder = profile_folder(&gateway);
    folder.replace("gateways.yaml", crate::support::Reachable::base_url(&gateway).as_str(), &format!("http://{free}"));
    run_command(&folder, "lookup", &[]).exits(5).says("nothing was sent").says("connection refused by 127.0.0.1:");
    let run = &runs(&folder)[0];
    assert_eq!((&run["counts"], &run["exit"]), (&json!({ "not_sent": 1 }), &json!(3)));
    assert_eq!((&run["state"], &run["stopped"]), (&json!("finished"), &json!(null)), "{run}");
    folder.campaign(&["status", "gateway.lookup"]).exits(3);
}

#[test]
fn ctrl_c_waits_for_a_response_in_flight() {
    let gateway = Gateway::answering([Answer::Held]);
    let folder = profile_folder(&gateway);
    let mut call = Process::start(folder.command(&["gateway", "otp", NUMBER]));
    until("the gateway has the request", || !gateway.requests().is_empty());
    call.signal("INT");
    until("the signal is handled", || call.stderr().contains("for the response to the request"));
    gateway.release();
    call.finish().exits(130).says("0042");
    assert_eq!(runs(&folder)[0]["counts"], json!({ "accepted": 1 }));
}

#[test]
fn ctrl_c_while_waiting_for_the_rate_limit_sends_nothing() {
    let gateway = Gateway::accepting();
    let folder = profile_folder(&gateway);
    set_rate(&folder, "1/min");
    run_command(&folder, "lookup", &[]).exits(0);
    let mut waiting = Process::start(folder.command(&["gateway", "lookup", NUMBER]));
    until("its intent is recorded", || runs(&folder)[0]["counts"] == json!({ "accepted": 1, "sending": 1 }));
    waiting.signal("INT");
    waiting.finish().exits(130).says("nothing was sent");
    assert_eq!((&runs(&folder)[0]["counts"], gateway.requests().len()), (&json!({ "accepted": 1, "not_sent": 1 }), 1));
}

#[test]
fn rows_stay_in_doubt_after_a_second_ctrl_c_or_a_kill() {
    let gateway = Gateway::answering([Answer::Held, Answer::Held]);
    let folder = profile_folder(&gateway);
    let wait_for_requests = |count: usize| until("the gateway has the requests", || gateway.requests().len() == count);
    let mut interrupted = Process::start(folder.command(&["gateway", "lookup", NUMBER]));
    wait_for_requests(1);
    interrupted.signal("INT");
    until("the signal is handled", || interrupted.stderr().contains("for the response to the request"));
    interrupted.signal("INT");
    interrupted.finish().exits(130).says("might have been processed");
    folder.campaign(&["status", "gateway.lookup@1"]).exits(4).says("1 in doubt");
    let killed = Process::start(folder.command(&["gateway", "lookup", NUMBER]));
    wait_for_requests(2);
    killed.kill();
    run_command(&folder, "lookup", &[]).exits(0).says("gateway.lookup@1 row 4");
    assert_eq!(gateway.requests().len(), 3);
    let states: Vec<_> = runs(&folder).into_iter().map(|run| (run["state"].clone(), run["counts"].clone())).collect();
    assert_eq!(states, [(json!("finished"), json!({ "accepted": 1, "in_doubt": 2 }))]);
    let results = Results::parse(&folder.campaign(&["results", "gateway.lookup"]).exits(0).stdout);
    assert_eq!(
        (results.states(), results.column("row")),
        (vec!["in_doubt", "in_doubt", "accepted"], vec!["2", "3", "4"])
    );
}

#[test]
fn lookups_and_verification_calls_share_the_rate_limit() {
    let sandbox = SandboxProcess::start();
    let folder = profile_folder(&sandbox);
    set_rate(&folder, "1/s");
    let started_at = std::time::Instant::now();
    for (command, _) in [COMMANDS[0], COMMANDS[1], COMMANDS[0]] {
        run_command(&folder, command, &[]).exits(0);
    }
    assert!(
        started_at.elapsed() >= std::time::Duration::from_secs(2),
        "three lookups at one a second took only {:?}",
        started_at.elapsed()
    );
}

#[test]
fn lookups_are_rows_of_one_run_that_is_listed_once() {
    let gateway = Gateway::answering([Answer::CloseRead]);
    let folder = profile_folder(&gateway);
    run_command(&folder, "lookup", &[]).exits(4);
    for row in 3..=10 {
        let report = run_command(&folder, "lookup", &["--json"]).exits(0).json();
        assert_eq!((&report["run"], &report["row"]), (&json!("gateway.lookup@1"), &json!(row)));
    }
    let listed = runs(&folder);
    let [run] = listed.as_slice() else { panic!("{listed:?}") };
    assert_eq!((&run["rows"], &run["counts"]), (&json!(9), &json!({ "accepted": 8, "in_doubt": 1 })));
    let ids: std::collections::HashSet<String> =
        gateway.requests().iter().map(|request| request.operations()[0]["id"].to_string()).collect();
    assert_eq!(ids.len(), 9, "identifiers are unique");
    folder.campaign(&["show", "gateway.lookup", "--to", NUMBER]).exits(0).says("in doubt");
    folder.campaign(&["show", "gateway.lookup", "--row", "5"]).exits(0).says("accepted by the gateway");
    folder.campaign(&["show", "gateway.lookup", "--row", "11"]).exits(2).says("its rows are 2 to 10");
}

#[test]
fn rejected_lookup_suggests_repeating_the_gateway_command() {
    let gateway = Gateway::always(Answer::items(|operation| crate::support::rejected(operation, "No route")));
    let folder = profile_folder(&gateway);
    for (command, run) in COMMANDS {
        run_command(&folder, command, &[]).exits(3);
        let next = format!("next: campaign gateway {command} PHONE --gateway local");
        folder.campaign(&["show", run, "--row", "2"]).exits(0).says(&next);
        let status = folder.campaign(&["status", run]).exits(3);
        assert!(!status.stdout.contains("campaign retry"), "{}", status.details());
    }
    let gateway = Gateway::answering([Answer::CloseRead]);
    let folder = profile_folder(&gateway);
    run_command(&folder, "lookup", &[]).exits(4);
    let decided =
        folder.campaign(&["resolve", "gateway.lookup", "--all", "--as", "not-sent", "--i-accept-duplicates", "1"]);
    decided.says("next: campaign gateway lookup PHONE --gateway local");
}

#[test]
fn row_can_be_resolved_while_another_is_being_sent() {
    let gateway = Gateway::answering([Answer::CloseRead, Answer::Held]);
    let folder = profile_folder(&gateway);
    run_command(&folder, "otp", &[]).exits(4);
    let waiting = Process::start(folder.command(&["gateway", "otp", NUMBER]));
    until("the gateway has the second request", || gateway.requests().len() == 2);
    folder.campaign(&["stop", "gateway.otp"]).exits(6).says("Ctrl-C");
    folder.campaign(&["resolve", "gateway.otp@1", "--rows", "2", "--as", "sent"]).exits(0).says("1 sending");
    assert_eq!(runs(&folder)[0]["counts"], json!({ "assumed_sent": 1, "sending": 1 }));
    gateway.release();
    waiting.finish().exits(0).says("0042");
    assert_eq!(runs(&folder)[0]["counts"], json!({ "accepted": 1, "assumed_sent": 1 }));
}

#[test]
fn run_killed_before_its_first_row_can_be_shown() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let folder = profile_folder(&gateway);
    let mut command = folder.command(&["gateway", "lookup", NUMBER]);
    command.env("CAMPAIGN_FAILPOINT", "commit.after:1");
    Process::start(command).finish();
    assert!(gateway.requests().is_empty());
    let results = folder.campaign(&["results", "gateway.lookup"]).exits(0);
    assert_eq!(results.stdout.lines().count(), 1, "a header: {}", results.stdout);
    folder.campaign(&["show", "gateway.lookup", "--row", "2"]).exits(2).says("has no row 2");
    run_command(&folder, "lookup", &[]).exits(0).says("gateway.lookup@1 row 3");
}
