//! `campaign gateway add`: tests the account, appends the profile, and stores the key safely.

use std::fs::{self, File};
use std::process::Command;

use serde_json::{Value, json};

use super::{account_gateway, folder};
use crate::support::{
    Answer, Finished, Folder, Gateway, KEY, KEY_VARIABLE, Process, Reachable as _, SandboxProcess, Terminal,
    note_on_failure, until,
};

/// The payloads of an account with 2.00 UAH and one sender name.
fn account_payload(operation: &Value) -> Value {
    match operation["type"].as_str() {
        Some("balance") => json!({ "amount": 2, "currency": "UAH" }),
        _ => json!([{ "name": "OlenaCo", "status": "Checked" }]),
    }
}

/// Runs the binary with this standard input.
fn run_with_input(folder: &Folder, arguments: &[&str], input: &str) -> Finished {
    folder.write("input", input);
    let create = |name: &str| File::create(folder.path(name)).expect("a file");
    let input = File::open(folder.path("input")).expect("a file");
    let process = Process::start_on(folder.command(arguments), [input, create("stdout"), create("stderr")]);
    let mut finished = process.finish();
    let read = |name: &str| fs::read_to_string(folder.path(name)).expect("a file");
    (finished.stdout, finished.stderr) = (read("stdout"), read("stderr"));
    finished
}

fn read_text(folder: &Folder, name: &str) -> String {
    fs::read_to_string(folder.path(name)).unwrap_or_default()
}

#[test]
fn gateway_is_tested_and_appended_to_the_profiles() {
    let gateway = account_gateway(account_payload);
    let folder = folder(&gateway);
    let before = read_text(&folder, "gateways.yaml") + "# the test account; ask Ihor\n";
    folder.write("gateways.yaml", &before);
    let base_url = gateway.base_url();
    let add = ["gateway", "add", "second", "--base-url", &base_url, "--key-env", KEY_VARIABLE, "--rate", "7/min"];
    let added = folder.campaign(&add).exits(0);
    added.says("accepts the key").says("2.00 UAH").says("OlenaCo (Checked)").says("profile: gateways.yaml");
    assert_eq!(gateway.requests()[0].operations(), [json!({ "type": "balance" }), json!({ "type": "sender" })]);
    let written = format!("\nsecond:\n  base_url: {base_url}\n  api_key:\n    env: {KEY_VARIABLE}\n  rate: 7/min\n");
    assert_eq!(read_text(&folder, "gateways.yaml"), before + &written);
    folder.campaign(&["gateway", "balance", "--gateway", "second"]).exits(0).says("second: 2.00 UAH");
    let again = folder.campaign(&add).exits(2);
    again.says("`gateways.yaml` already has a profile named `second`");
}

#[cfg(unix)]
#[test]
fn key_from_standard_input_is_readable_only_by_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;

    let gateway = account_gateway(account_payload);
    let folder = Folder::new(true);
    let base_url = gateway.base_url();
    let added = run_with_input(&folder, &["gateway", "add", "main", "--base-url", &base_url], &format!("{KEY}\n"));
    let added = added.exits(0).says("secrets/main.key");
    assert!(added.stdout.ends_with("next: campaign gateway senders --gateway main\n"));
    assert!(
        !format!("{}{}", added.stdout, added.stderr).contains(KEY)
            && !read_text(&folder, "gateways.yaml").contains(KEY)
    );
    let mode = fs::metadata(folder.path("secrets/main.key")).expect("the key").permissions().mode();
    assert_eq!((mode & 0o777, read_text(&folder, "secrets/main.key")), (0o600, format!("{KEY}\n")));
    assert_eq!(gateway.requests()[0].json()["auth"], KEY);
    folder.campaign(&["gateway", "senders", "--gateway", "main"]).exits(0).says("OlenaCo");
    let other = ["gateway", "add", "other", "--base-url", &base_url, "--key-file", "secrets/main.key"];
    folder.campaign(&other).exits(0).says("key: secrets/main.key (unchanged)");
    assert!(read_text(&folder, "gateways.yaml").contains("other:\n"));
}

#[test]
fn untested_profile_is_written_only_on_request() {
    let refusing = || Gateway::always(Answer::json(json!({ "success": false, "error": "Access denied" })));
    for (gateway, code, words) in [(refusing(), 7, "Access denied"), (Gateway::always(Answer::CloseRead), 5, "")] {
        let _case = note_on_failure(format!("case: {code}"));
        let folder = Folder::new(true);
        let base_url = gateway.base_url();
        let add = ["gateway", "add", "main", "--base-url", &base_url];
        let refused = run_with_input(&folder, &add, KEY).exits(code);
        refused.says(words).says("nothing was written").says("`--offline`");
        assert!(!folder.path("gateways.yaml").exists() && !folder.path("secrets").exists());
        let requests = gateway.requests().len();
        run_with_input(&folder, &[&add[..], &["--offline"]].concat(), KEY).exits(0).says("without testing the key");
        assert_eq!((gateway.requests().len(), read_text(&folder, "secrets/main.key")), (requests, format!("{KEY}\n")));
    }
}

#[test]
fn invalid_input_is_reported_before_any_request_or_write() {
    let https = "https://gateway.invalid";
    for (arguments, words) in [
        (&["Main", "--base-url", https][..], "`Main` is not a valid profile name"),
        (&["main"], "add `--base-url URL`"),
        (&["main", "--base-url", "http://gateway.invalid"], "use `https://`"),
        (&["main", "--base-url", "gateway.invalid"], "`--base-url URL`"),
        (&["main", "--base-url", https], "add `--rate 10/s`"),
        (&["main", "--base-url", https, "--rate", "fast"], "`fast` is not a valid rate"),
        (&["main", "--base-url", https, "--rate", "unlimited"], "only for a gateway on this machine"),
        (&["main", "--base-url", https, "--rate", "1/s"], "the key is missing"),
        (&["main", "--base-url", https, "--rate", "1/s", "--key-env", "NOT_SET"], "`NOT_SET` is not set"),
        (&["sandbox", "--base-url", https, "--rate", "1/s", "--key-env", "X"], "built-in gateway"),
    ] {
        let _case = note_on_failure(format!("case: {arguments:?}"));
        let folder = Folder::new(true);
        folder.campaign(&[&["gateway", "add"], arguments].concat()).exits(2).says(words);
        assert!(!folder.path("gateways.yaml").exists() && !folder.path("secrets/main.key").exists());
    }
}

#[test]
fn key_prompt_does_not_echo_the_key() {
    let sandbox = SandboxProcess::start();
    let folder = Folder::new(true);
    let terminal = Terminal::start(folder.command(&["gateway", "add", "main"]));
    terminal.shows("URL of the gateway, such as ").types("http://gateway.example");
    terminal.shows("use `https://`").types(&sandbox.base_url());
    terminal.shows("or press Enter for sync mode: ").types("");
    terminal.shows("API key (hidden while you type)").types("wrong");
    terminal.shows("the gateway refused the API key");
    until("it asks again", || terminal.shown().matches("press Enter to cancel: ").count() == 2);
    terminal.types(KEY);
    terminal.shows("accepts the key").shows("next: campaign gateway senders --gateway main");
    assert!(!terminal.shown().contains(KEY), "{}", terminal.shown());
    terminal.finish().exits(0);
    assert_eq!(read_text(&folder, "secrets/main.key"), format!("{KEY}\n"));
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_the_key_prompt_and_restores_the_echo() {
    let folder = Folder::new(true);
    let add =
        "trap : INT; \"$0\" gateway add main --base-url http://127.0.0.1:9; echo \"code $?\" >after; stty -a >>after";
    let terminal = Terminal::start(folder.command_after(add, &["--version"]));
    terminal.shows("or press Enter for sync mode: ").types("");
    terminal.shows("API key (hidden while you type)").types("half a key\u{3}");
    terminal.finish().exits(0);
    let after = read_text(&folder, "after");
    assert!(after.starts_with("code 130\n"), "{after}");
    let settings: Vec<&str> = after.split_whitespace().collect();
    assert!(settings.contains(&"echo") && settings.contains(&"isig"), "{after}");
    assert!(!folder.path("gateways.yaml").exists(), "nothing is written");
}

#[test]
fn new_gateway_is_added_to_the_only_campaign_if_confirmed() {
    let sandbox = SandboxProcess::start();
    for (answer, names_gateway) in [("yes", true), ("", false)] {
        let _case = note_on_failure(format!("case: {answer:?}"));
        let folder = Folder::new(true);
        folder.campaign(&["init", "spring"]).exits(0);
        let before = read_text(&folder, "spring.yaml");
        let base_url = sandbox.base_url();
        let add = ["gateway", "add", "main", "--base-url", &base_url, "--key-env", KEY_VARIABLE];
        let terminal = Terminal::start(folder.command(&add));
        terminal.shows("or press Enter for sync mode: ").types("");
        terminal.shows("Use main for spring.yaml?").shows("press Enter to leave the file as it is: ").types(answer);
        terminal.shows("accepts the key").shows("next: campaign run spring.yaml");
        let gateway_option = if names_gateway { "" } else { " --gateway main" };
        terminal.shows(&format!("campaign test spring.yaml --to NUMBER{gateway_option}\r\n"));
        terminal.shows(&format!("next: campaign run spring.yaml{gateway_option}\r\n"));
        terminal.finish().exits(0);
        let after = read_text(&folder, "spring.yaml");
        assert_eq!(after != before, names_gateway);
        assert_eq!(after.replace("\ngateway: main\n", "\n"), before, "one line is inserted, and the rest stays");
        folder.campaign(&["check", "spring.yaml"]).exits(0);
    }
}

/// Runs only the suggested commands, with the gateway's URL and key, from a spreadsheet export to a live message.
#[test]
fn suggested_commands_lead_from_a_list_to_a_live_message() {
    let (sandbox, folder) = (SandboxProcess::start(), Folder::new(true));
    let list = "\u{feff}sep=;\r\nТелефон;Ім'я\r\n+380501000002;Олена\r\n0501000003;Іван\r\n";
    folder.write("Клієнти.csv", list);
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_campaign"));
    let run_line = |line: &str| {
        let mut command = Command::new("/bin/sh");
        command.current_dir(folder.path(".")).env_clear().env("HOME", folder.path("home")).env(KEY_VARIABLE, KEY);
        command.env("PATH", binary.parent().expect("a folder")).args(["-c", line]);
        let finished = Process::start(command).finish();
        let last = finished.stdout.lines().last().filter(|line| line.starts_with("next"));
        let next = last.and_then(|line| line.find("campaign ").map(|start| &line[start..]));
        (next.unwrap_or_else(|| panic!("{}", finished.details())).to_owned(), finished)
    };
    let (mut line, mut commands) = ("campaign init spring --from Клієнти.csv".to_owned(), Vec::new());
    for _ in 0..6 {
        // Add the values that only the user knows.
        if line.contains("gateway add") {
            line += &format!(" --base-url {} --key-env {KEY_VARIABLE}", sandbox.base_url());
        }
        let (next, finished) = run_line(&line);
        commands.push(line.split(' ').nth(1).expect("a command").to_owned());
        finished.exits(0);
        line = next;
    }
    assert_eq!(commands, ["init", "check", "preview", "run", "gateway", "run"]);
    assert_eq!(sandbox.messages().into_keys().collect::<Vec<_>>(), [380_501_000_002, 380_501_000_003]);
    assert_eq!(line, "campaign status spring@2");
}

#[test]
fn rehearsal_names_invalid_rows_before_the_next_step() {
    let folder = Folder::new(true);
    folder.write("clients.csv", "phone;name\n+380501000002;Olena\n+3805010;Ivan\n");
    folder.campaign(&["init", "spring", "--from", "clients.csv"]).exits(0);
    let run = folder.campaign(&["run", "spring.yaml"]).exits(3).says("results spring@1 --state invalid --out -");
    run.says("to send it live: campaign gateway add production --for spring.yaml");
}

#[test]
fn host_of_an_added_gateway_is_trusted() {
    let folder = Folder::new(true);
    for host in ["https://first.invalid", "https://second.invalid"] {
        // In the first case, the file does not exist yet.
        let _ = fs::remove_file(folder.path("gateways.yaml"));
        let add =
            ["gateway", "add", "main", "--base-url", host, "--rate", "1/s", "--key-env", KEY_VARIABLE, "--offline"];
        folder.campaign(&add).exits(0);
        // The host is unreachable, but `campaign` must trust it before it tries to connect.
        folder.campaign(&["gateway", "balance"]).exits(5);
    }
    folder.replace("gateways.yaml", "second.invalid", "third.invalid");
    folder.campaign(&["gateway", "balance"]).exits(2).says("campaign gateway trust main");
}
