//! Requests refused before anything is sent, and secrets that are never shown.

use crate::support::{Answer, Gateway, KEY, Process, Reachable as _, until};

use super::{COMMANDS, NUMBER, profile_folder, run_command, runs, set_rate};

#[test]
fn invalid_number_is_reported_and_nothing_is_sent() {
    let gateway = Gateway::accepting();
    let folder = profile_folder(&gateway);
    let cases: [(&[&str], &str); 5] = [
        (&["0501234567"], "--region UA"),
        (&["12"], "too short"),
        (&["+380501234567, +380501234568"], "more than one number"),
        (&["nobody"], "letters"),
        (&["0501234567", "--region", "UKR"], "`UA`"),
    ];
    for (arguments, words) in cases {
        folder.campaign(&[&["gateway", "otp"], arguments].concat()).exits(2).says(words);
    }
    assert!(gateway.requests().is_empty() && runs(&folder).is_empty());
}

#[test]
fn live_gateway_needs_confirmation_before_anything_is_sent() {
    let gateway = Gateway::accepting();
    let folder = profile_folder(&gateway);
    folder.replace("gateways.yaml", &gateway.base_url(), "https://gateway.invalid");
    set_rate(&folder, "10/s");
    for (command, _) in COMMANDS {
        for arguments in [&[][..], &["--json"]] {
            run_command(&folder, command, arguments).exits(2).says("a paid request").says("--yes");
        }
    }
    assert!(runs(&folder).is_empty());
    // The first command recorded the host as trusted, although it was not confirmed.
    folder.replace("gateways.yaml", "gateway.invalid", "elsewhere.invalid");
    run_command(&folder, "lookup", &["--yes"]).exits(2).says("campaign gateway trust local");
}

#[test]
fn ambiguous_or_unknown_gateway_is_refused() {
    let gateway = Gateway::accepting();
    let folder = profile_folder(&gateway);
    let other = read_profiles(&folder).replace("local:", "other:");
    folder.write("gateways.yaml", &(read_profiles(&folder) + &other));
    run_command(&folder, "lookup", &[]).exits(2).says("`local` and `other`").says("--gateway NAME");
    run_command(&folder, "lookup", &["--gateway", "othre"]).exits(2).says("did you mean `other`?");
    run_command(&folder, "lookup", &["--gateway", "other"]).exits(0);
    std::fs::remove_file(folder.path("gateways.yaml")).expect("removed");
    run_command(&folder, "lookup", &[]).exits(2).says("--gateway sandbox");
}

#[test]
fn lookups_through_one_gateway_do_not_wait_for_each_other() {
    let gateway = Gateway::answering([Answer::Held]);
    let folder = profile_folder(&gateway);
    let first = Process::start(folder.command(&["gateway", "lookup", NUMBER]));
    until("the gateway has the first request", || !gateway.requests().is_empty());
    run_command(&folder, "lookup", &[]).exits(0).says("gateway.lookup@1 row 3");
    folder.campaign(&["status", "gateway.lookup"]).exits(6).says("1 sending").says("1 accepted");
    run_command(&folder, "otp", &[]).exits(0);
    gateway.release();
    first.finish().exits(0).says("gateway.lookup@1 row 2");
}

#[test]
fn no_gateway_answer_leaks_a_key_or_number_into_the_log() {
    let script = || {
        vec![
            Answer::CloseRead,
            Answer::rejection("Access denied"),
            Answer::from_request(|request| serde_json::json!({ "success": false, "error": request.json()["auth"] })),
            Answer::items(|operation| crate::support::rejected(operation, KEY)),
        ]
    };
    for (command, _) in COMMANDS {
        let gateway = Gateway::answering(script());
        let folder = profile_folder(&gateway);
        for _ in script() {
            let result = run_command(&folder, command, &["-v", "-v"]);
            let output = format!("{}{}", result.stdout, result.stderr);
            assert!(!output.contains(KEY) && !output.contains(NUMBER), "{output}");
        }
        let answered = run_command(&folder, command, &["-v", "-v"]).exits(0);
        assert!(!answered.stderr.contains(NUMBER), "{}", answered.stderr);
        assert!(!answered.stdout.contains(KEY) && !answered.stderr.contains(KEY));
    }
}

fn read_profiles(folder: &crate::support::Folder) -> String {
    std::fs::read_to_string(folder.path("gateways.yaml")).expect("the profiles")
}
