//! Secrets that must not be shown: the API key and the recipients' numbers.

use serde_json::json;

use crate::support::{
    Answer, Finished, Folder, Gateway, KEY, campaign, in_files, note_on_failure, phone, rejected, until,
};

/// Checks that the output contains neither the key nor a number on the list.
#[track_caller]
fn assert_no_secrets(run: &Finished) {
    let output = format!("{}{}", run.stdout, run.stderr);
    assert!(!output.contains(KEY), "the key is shown:\n{output}");
    for row in 2..40 {
        assert!(!output.contains(&phone(row).to_string()), "a number is shown:\n{output}");
    }
}

/// Whether a file may contain numbers: the list and the current results, which share a name, earlier results, the copy
/// of the list, and the ledger.
fn may_contain_numbers(name: &str) -> bool {
    let is_earlier_results = name.starts_with("sale@") && name.ends_with(".csv");
    matches!(name, "sale.csv" | "recipients.csv") || is_earlier_results || name.starts_with("ledger.sqlite")
}

/// Checks that no file contains the key, and that only files for personal data contain a number.
fn assert_no_secrets_in_files(sale: &Folder) {
    let mut folders = vec![sale.path("")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).expect("a file");
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(KEY), "the key is in {}", path.display());
            let name = path.file_name().expect("a name").to_string_lossy();
            let number = (2..40).find(|row| text.contains(&phone(*row).to_string()));
            assert!(number.is_none() || may_contain_numbers(&name), "a number is in {}", path.display());
        }
    }
}

/// Scripts of gateway answers. Some of the answers echo the request or the key.
const ANSWER_SCRIPTS: &[fn() -> Vec<Answer>] = &[
    Vec::new,
    || vec![Answer::Accept, Answer::items(|operation| rejected(operation, "No route"))],
    || vec![Answer::CloseRead, Answer::CutBody, Answer::CutHead],
    || vec![Answer::rejection("Access denied")],
    || {
        vec![
            Answer::Accept,
            Answer::from_request(|request| json!({ "success": true, "data": [], "echo": request.json() })),
        ]
    },
    || {
        vec![
            Answer::Accept,
            Answer::from_request(|request| json!({ "success": false, "error": request.json()["auth"] })),
        ]
    },
    || vec![Answer::Accept, Answer::items(|operation| rejected(operation, KEY))],
    || vec![Answer::Accept, Answer::from_request(|request| request.json()["auth"].clone())],
    || vec![Answer::status_with(307, &["Location: http://127.0.0.1:1/"])],
];

#[test]
fn no_gateway_response_makes_a_run_expose_a_key_or_number() {
    for script in ANSWER_SCRIPTS {
        for arguments in [&["-vv"][..], &["--json", "-vv"]] {
            let gateway = Gateway::answering(script());
            let sale = campaign().to(30).through(&gateway).write();
            assert_no_secrets(&sale.run(arguments));
            assert_no_secrets(&sale.run(arguments));
            assert_no_secrets(&sale.campaign(&["status", "sale", "-vv"]));
            assert_no_secrets_in_files(&sale);
        }
    }
}

#[test]
fn key_quoted_in_a_status_reply_is_neither_stored_nor_shown() {
    let answers: [fn(&serde_json::Value) -> serde_json::Value; 3] = [
        |_| json!({ "success": false, "error": format!("no such message for {KEY}") }),
        |question| json!({ "success": true, "data": { "id": question["id"], "msg_id": KEY, "status": KEY } }),
        |_| json!({ "success": false, "error": { "auth": KEY } }),
    ];
    for answer in answers {
        let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]).with_statuses(answer);
        let sale = campaign().to(10).through(&gateway).write();
        assert_no_secrets(&sale.run(&["-vv"]));
        assert_no_secrets(&sale.campaign(&["reconcile", "sale", "-vv"]));
        let shown = sale.campaign(&["show", "sale", "--row", "3"]).exits(0);
        assert!(shown.stdout.contains("asked ") && !shown.stdout.contains(KEY), "{}", shown.details());
        assert_no_secrets_in_files(&sale);
    }
}

#[test]
fn refused_list_is_reported_without_its_numbers() {
    let gateway = Gateway::accepting();
    for list in [
        format!("phone,name\n{},\"open\n{},b\n", phone(2), phone(3)),
        format!("phone,name\n{},a,b\n", phone(2)),
        format!("phone,name\n{}{},b\n", format!("{}77777,a\n", phone(2)).repeat(5), phone(3)),
        format!("phone,name\n{},a\n{},b\n", phone(2), phone(2)),
    ] {
        let sale = campaign().with_list(&list).recipients("duplicates: refuse").through(&gateway).write();
        let run = sale.run(&["-vv"]).exits(2);
        assert_no_secrets(&run);
    }
}

/// Error texts that quote a number.
const QUOTING_ERRORS: [fn(u64) -> String; 4] = [
    |phone| format!("Please enter valid receiver phone number {phone}"),
    |phone| format!("the number +{phone} is on no list"),
    |phone| format!("no such subscriber: 0{}", phone % 1_000_000_000),
    |phone| {
        let digits = phone.to_string();
        format!("wrong: +{} ({}) {}-{}", &digits[..2], &digits[2..5], &digits[5..8], &digits[8..])
    },
];

/// The number of an operation.
fn operation_phone(operation: &serde_json::Value) -> u64 {
    operation["phone"].as_u64().expect("a number")
}

#[test]
fn numbers_quoted_by_the_gateway_are_masked_except_in_results() {
    for (case, quote) in QUOTING_ERRORS.into_iter().enumerate() {
        let _case = note_on_failure(format!("case: {case}"));
        let quoting = move |operation: &serde_json::Value| rejected(operation, &quote(operation_phone(operation)));
        for arguments in [&["-vv", "--keep-going"][..], &["--json", "-vv", "--keep-going"]] {
            let gateway = Gateway::always(Answer::items(quoting));
            let sale = campaign().to(30).through(&gateway).write();
            let run = sale.run(arguments).exits(3).says("30 rejected: ").says("…02");
            assert_no_secrets(&run);
            assert!(!run.details().contains("501000002") && !run.details().contains("100-0002"), "{}", run.details());
            assert_eq!(sale.results().rows[0]["error"], quote(phone(2)));
        }
    }
}

#[test]
fn errors_differing_only_in_a_number_count_as_the_same_error() {
    let quoting = |operation: &serde_json::Value| rejected(operation, &QUOTING_ERRORS[0](operation_phone(operation)));
    let gateway = Gateway::always(Answer::items(quoting));
    let sale = campaign().to(30).batches_of(5).one_at_a_time().through(&gateway).write();
    let run = sale.run(&[]).exits(5).says("4 messages in a row were rejected with").says("4 rejected: ");
    assert_no_secrets(&run);
}

#[test]
fn rejection_of_a_whole_request_is_shown_with_masked_numbers() {
    let refuse = |request: &crate::support::Request| {
        let numbers: Vec<String> = request.phones().iter().map(u64::to_string).collect();
        json!({ "success": false, "error": format!("blocked: {}", numbers.join(", ")) })
    };
    let poor = |operation: &serde_json::Value| rejected(operation, "Not enough money");
    for (answer, words) in
        [(Answer::from_request(refuse), "3805…03, 3805…04"), (Answer::items(poor), "Not enough money")]
    {
        let gateway = Gateway::answering([Answer::Accept, answer]);
        let sale = campaign().to(10).one_at_a_time().through(&gateway).write();
        assert_no_secrets(&sale.run(&["-vv"]).exits(5).says(words));
        assert_no_secrets(&sale.campaign(&["status", "sale"]).says(words));
        assert_no_secrets(&sale.campaign(&["status", "sale", "--json"]).says(words));
    }
}

#[cfg(unix)]
#[test]
fn stored_files_are_readable_by_their_owner_only() {
    let _files = in_files();
    use std::os::unix::fs::PermissionsExt as _;
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&[]).exits(4);
    sale.campaign(&["results", "sale", "--out", "again.csv"]).exits(0);
    let mut names = Vec::new();
    let mut paths = vec![sale.path("state"), sale.path("results"), sale.path("again.csv")];
    while let Some(path) = paths.pop() {
        let mode = std::fs::metadata(&path).expect("an entry").permissions().mode() & 0o777;
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{} has the mode {mode:o}", path.display());
        if path.is_dir() {
            paths.extend(std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        }
        names.push(path.file_name().expect("a name").to_string_lossy().into_owned());
    }
    for name in ["ledger.sqlite", "frozen.json", "recipients.csv", "sale.csv", "again.csv", "locks"] {
        assert!(names.iter().any(|other| other == name), "no {name} among {names:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn process_list_shows_no_key_and_a_run_starts_no_process() {
    let gateway = Gateway::answering([Answer::Held]);
    let sale = campaign().through(&gateway).write();
    // A key from a file is not in the environment either.
    sale.replace("gateways.yaml", "{ env: STORY_KEY }", "{ file: gateway.key }");
    sale.write("gateway.key", KEY);
    std::fs::set_permissions(sale.path("gateway.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .expect("set");
    let mut command = sale.command(&["run", "sale.yaml"]);
    command.env_remove(crate::support::KEY_VARIABLE);
    let run = crate::support::Process::start(command);
    until("the key was used", || gateway.requests().iter().any(|request| request.json()["auth"] == KEY));
    for name in ["cmdline", "environ", "comm"] {
        let output = run.read_proc_file(name);
        assert!(!output.contains(KEY) && !output.contains(&phone(2).to_string()), "{name}: {output}");
    }
    assert_eq!(run.read_proc_file("task/ID/children"), "");
    gateway.release();
    run.finish().exits(0);
}

#[test]
fn gateway_text_and_lists_cannot_control_the_terminal() {
    const COMMAND: char = '\u{1b}';
    let gateway = Gateway::answering([
        Answer::Accept,
        Answer::items(|operation| rejected(operation, "No \u{1b}[2Jroute\u{9b}31m")),
        Answer::rejection("bad \u{1b}]0;title\u{7} day"),
    ]);
    let list = format!("phone,name\n{},A\n{},B\u{1b}[2J\n{},C\n", phone(2), phone(3), phone(4));
    let sale = campaign().with_list(&list).batches_of(1).one_at_a_time().through(&gateway).write();
    let assert_plain = |run: Finished| {
        let text = format!("{}{}", run.stdout, run.stderr);
        assert!(!text.contains([COMMAND, '\u{9b}', '\u{7}']), "{text:?}");
    };
    assert_plain(sale.run(&["--keep-going"]).exits(5).says("route"));
    assert_plain(sale.campaign(&["status", "sale"]).says("bad"));
    assert_plain(sale.campaign(&["show", "sale", "--row", "3"]).exits(0).says("route"));
    assert_plain(sale.campaign(&["preview", "sale.yaml"]).exits(0).says("Hello, B"));
}

#[test]
fn foreign_text_cannot_inject_lines_or_reorder_output() {
    const FAKE: &str = "x\nINFO fake\r\nnext: campaign run other.yaml\u{202e}\u{2028}y";
    const SHOWN: &str = "x⏎INFO fake⏎next: campaign run other.yaml\\u{202e}\\u{2028}y";
    let list = format!("phone,name\n{},\"A\nrow 9 · to 380\u{202e}\"\n{},B\n", phone(2), phone(3));
    let assert_harmless = |output: &str| {
        let is_injected = |line: &str| {
            line.starts_with("INFO") || line.starts_with("next: campaign run other") || line.starts_with("row 9")
        };
        assert!(!output.lines().any(is_injected) && !output.contains(['\u{202e}', '\u{2028}', '\r']), "{output}");
    };
    for answer in [Answer::items(|operation| rejected(operation, FAKE)), Answer::rejection(FAKE)] {
        let gateway = Gateway::always(answer);
        let sale = campaign().with_list(&list).through(&gateway).write();
        let run = sale.run(&[]);
        let shown = run.says(SHOWN);
        assert_harmless(&shown.stdout);
        assert_harmless(&shown.stderr);
        for arguments in
            [&["status"][..], &["status", "sale"], &["show", "sale", "--row", "2"], &["preview", "sale.yaml"]]
        {
            assert_harmless(&sale.campaign(arguments).stdout);
        }
        sale.campaign(&["preview", "sale.yaml"]).exits(0).says("    │ row 9 · to 380\\u{202e}\n");
        let json = sale.campaign(&["status", "--json"]);
        assert!(!json.stdout.contains('\u{202e}') && json.json()["runs"].is_array());
    }
}

#[test]
fn results_are_escaped_on_a_terminal_but_not_in_a_pipe() {
    let gateway = Gateway::always(Answer::items(|operation| rejected(operation, "x\nINFO fake \u{1b}[2J")));
    let sale = campaign().through(&gateway).write();
    sale.run(&["--keep-going"]).exits(3);
    let piped = sale.campaign(&["results", "sale", "--out", "-"]).exits(0);
    assert!(piped.stdout.contains("\"x\nINFO fake \u{1b}[2J\""), "{}", piped.details());
    let screen = crate::support::Terminal::start_on(400, sale.command(&["results", "sale", "--out", "-"]));
    screen.shows("x⏎INFO fake \\u{1b}[2J");
    let shown = screen.shown();
    screen.finish().exits(0);
    assert!(!shown.contains('\u{1b}') && !shown.contains("\nINFO"), "{shown}");
}

#[test]
fn notify_address_in_plain_text_is_refused_and_not_shown() {
    let secret = "https://hooks.example/T000/s3cr3t";
    for notify in [
        format!("notify: {{ url: {secret}, preset: slack }}"),
        format!("notify:\n  preset: slack\n  url:\n    \"{secret}\""),
        format!("notify: {secret}"),
        format!("notify: {{ ulr: {secret} }}"),
        format!("notify: {{ url: {{ env: {secret} }} }}"),
    ] {
        let sale = campaign().top(&notify).write();
        for arguments in [&["check", "sale.yaml"][..], &["check", "sale.yaml", "--json"], &["run", "sale.yaml", "-vvv"]]
        {
            let refused = sale.campaign(arguments).exits(2).says("sale.yaml");
            let shown = format!("{}{}", refused.stdout, refused.stderr);
            assert!(!shown.contains("s3cr3t") && !shown.contains("T000"), "{shown}");
        }
    }
}
