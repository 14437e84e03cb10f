//! Commands other than `run`: help, status, results, completions and the rest.

use serde_json::{Value, json};

use crate::support::{Answer, Folder, Gateway, Process, Results, accepted, campaign, in_files, phone, rejected};

const COMMANDS: [&str; 11] =
    ["init", "check", "preview", "run", "stop", "status", "results", "gateway", "sandbox", "schema", "completions"];

/// Creates a finished run with two rejected rows out of ten.
fn campaign_with_rejections() -> Folder {
    let gateway = Gateway::always(Answer::items(|operation| match operation["phone"].as_u64() {
        Some(phone) if phone % 5 == 0 => rejected(operation, "No route"),
        _ => accepted(operation),
    }));
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&[]).exits(3);
    sale
}

#[test]
fn help_lists_commands_and_each_command_has_its_own_help() {
    let folder = Folder::new(false);
    let help = folder.campaign(&["--help"]).exits(0);
    for command in COMMANDS {
        assert!(help.stdout.contains(&format!("\n  {command} ")), "{command} is not listed:\n{}", help.stdout);
        let command_help = folder.campaign(&[command, "--help"]).exits(0);
        assert!(command_help.stdout.contains("Usage: campaign"), "{}", command_help.details());
    }
    folder.campaign(&["--version"]).exits(0).says(env!("CARGO_PKG_VERSION"));
    assert!(!folder.path("state").exists(), "help creates no files");
}

#[test]
fn status_lists_runs_with_the_next_step() {
    let sale = campaign_with_rejections();
    let all = sale.campaign(&["status"]).exits(0).says("sale@1").says("8 accepted");
    assert!(all.stdout.contains("2 rejected"));
    let run = sale.campaign(&["status", "sale"]).exits(3);
    let next = run.stdout.lines().last().expect("lines").strip_prefix("next: campaign ").expect("a command").to_owned();
    let rows = sale.campaign(&next.split(' ').collect::<Vec<_>>()).exits(0);
    assert_eq!(Results::parse(&rows.stdout).states(), ["rejected"; 2]);
}

#[test]
fn suggested_next_command_works_from_any_folder() {
    let refused = Answer::items(|operation| rejected(operation, "No route"));
    let gateway = Gateway::answering([Answer::Accept, Answer::Accept, refused]);
    let sale = campaign().through(&gateway).write();
    sale.run(&["--limit", "1"]).exits(0);
    let run_elsewhere = |arguments: &[&str]| {
        let mut command = sale.command(arguments);
        command.current_dir(sale.path("results"));
        Process::start(command).finish()
    };
    sale.campaign(&["status", "sale"]).exits(5).says("next: campaign run sale.yaml --gateway local\n");
    let path = sale.path("sale.yaml").canonicalize().expect("a path");
    let next = format!("next: campaign run {} --gateway local\n", path.display());
    run_elsewhere(&["status", "sale"]).exits(5).says(&next);
    run_elsewhere(&["run", path.to_str().expect("a path"), "--gateway", "local", "--keep-going"]).exits(3);
    run_elsewhere(&["retry", "sale"]).exits(0).says("next: campaign status sale@1");
}

#[test]
fn results_can_be_printed_filtered_and_written_again() {
    let sale = campaign_with_rejections();
    let print_results = |arguments: &[&str]| {
        let output = sale.campaign(&[&["results", "sale", "--out", "-"], arguments].concat()).exits(0);
        Results::parse(&output.stdout)
    };
    assert_eq!(print_results(&[]).rows, sale.results().rows);
    assert_eq!(
        print_results(&["--state", "rejected"]).column("to"),
        [phone(5), phone(10)].map(|phone| phone.to_string())
    );
    assert_eq!(print_results(&["--state", "rejected,accepted"]).rows.len(), 10);
    assert_eq!(print_results(&["--state", "in_doubt"]).rows.len(), 0);
    std::fs::remove_file(sale.results_file()).expect("removed");
    sale.campaign(&["results", "sale@1"]).exits(0);
    assert_eq!(sale.results().rows.len(), 10);
}

#[test]
fn results_for_spreadsheets_keep_digits_and_separator() {
    let list = "phone;name;code\n380501000002;Оля;0042\n380501000003;Bo;+7\n";
    let gateway = Gateway::accepting();
    let sale = campaign().with_list(list).through(&gateway).write();
    sale.run(&[]).exits(0);
    let output = sale.campaign(&["results", "sale", "--excel", "--out", "results/sale.excel.csv"]).exits(0);
    output.says("sale.excel.csv");
    let text = std::fs::read_to_string(sale.path("results/sale.excel.csv")).expect("a file");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("\u{feff}row;id;to;state;") && lines[0].ends_with(";phone;name;code"), "{}", lines[0]);
    assert!(lines[1].contains(";\"=\"\"380501000002\"\"\";accepted;"), "{}", lines[1]);
    assert!(lines[1].ends_with(";Оля;\"=\"\"0042\"\"\"") && lines[2].ends_with(";Bo;\"=\"\"+7\"\"\""), "{text}");
    assert!(lines[1].starts_with("2;\"=\"\""), "the identifier too: {}", lines[1]);
    // The export can be used as a list again, with the same numbers.
    sale.replace("sale.yaml", "file: sale.csv", "file: results/sale.excel.csv");
    sale.run(&["--dry-run", "--json"]).exits(0).says("\"skipped\":2");
    assert!(sale.results().column("to").contains(&"380501000002"), "the results for programs stay as they are");
    let printed = sale.campaign(&["results", "sale", "--excel", "--state", "accepted"]).exits(0);
    assert_eq!(printed.stdout, text);
}

#[test]
fn recipients_of_an_edition_are_listed_once_across_runs() {
    let gateway = Gateway::answering([Answer::Accept, Answer::items(|operation| rejected(operation, "No route"))]);
    let list = "phone,name\n380501000002,Olena\n380501000003,Petro\n12,Nobody\n";
    let draft = campaign().with_list(list).recipients("max_invalid: 100%").batches_of(1).one_at_a_time();
    let sale = draft.through(&gateway).write();
    sale.run(&["--keep-going"]).exits(3);
    let new_list =
        "phone,name,city\n380501000009,Ivan,Lviv\n380501000002,Olena,Kyiv\n12,Nobody,\n380501000003,Petro,Odesa\n";
    sale.write("sale.csv", new_list);
    sale.run(&["--keep-going", "--accept-changes"]).exits(3);
    let output = sale.campaign(&["results", "sale", "--people"]).exits(0).says("results of sale: ");
    output.says("sale.people.csv");
    let people = Results::read(&sale.path("results/sale.people.csv"));
    let cells = |columns: [&str; 5]| -> Vec<[String; 5]> {
        people.rows.iter().map(|row| columns.map(|column| row[column].clone())).collect()
    };
    let expected = [
        ["380501000002", "accepted", "sale@1", "Olena", ""],
        ["380501000009", "accepted", "sale@2", "Ivan", "Lviv"],
        ["", "invalid", "sale@2", "Nobody", ""],
        ["380501000003", "accepted", "sale@2", "Petro", "Odesa"],
    ];
    assert_eq!(cells(["to", "state", "run", "name", "city"]), expected);
    let json = sale.campaign(&["results", "sale@1", "--people", "--state", "accepted", "--json"]).exits(0).json();
    assert_eq!(json["rows"].as_array().expect("rows").len(), 3);
}

#[test]
fn results_of_an_unfinished_run_show_open_requests() {
    let gateway = Gateway::answering([Answer::Held]);
    let sale = campaign().through(&gateway).write();
    let run = sale.start(&[]);
    crate::support::until("the first request arrives", || !gateway.requests().is_empty());
    let output = sale.campaign(&["results", "sale", "--out", "-"]).exits(0);
    assert_eq!(Results::parse(&output.stdout).states(), ["sending", "planned", "planned"]);
    gateway.release();
    run.finish().exits(0);
}

#[test]
fn read_only_commands_create_no_files() {
    let sale = campaign().write();
    sale.campaign(&["status"]).exits(0).says("no runs yet");
    sale.campaign(&["check", "sale.yaml"]).exits(0);
    sale.campaign(&["preview", "sale.yaml"]).exits(0).says("Hello, Person 2");
    assert!(!sale.path("state").exists() && !sale.path("results").exists());
}

#[test]
fn schema_has_the_main_keys_of_a_campaign() {
    let schema = Folder::new(false).campaign(&["schema"]).exits(0).json();
    for key in ["name", "gateway", "endpoint", "recipients", "vars", "channels", "delivery", "results"] {
        assert!(schema["properties"][key].is_object(), "{key}: {schema}");
    }
    assert!(schema["$schema"].is_string());
    let required: Vec<&str> = schema["required"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(required, ["recipients", "channels"]);
}

#[test]
fn completions_exist_for_every_shell() {
    let folder = Folder::new(false);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.campaign(&["completions", shell]).exits(0);
        for command in COMMANDS {
            assert!(script.stdout.contains(command), "{command} in {shell}");
        }
    }
}

/// Returns the completions that bash offers for the last word.
fn completions(folder: &Folder, words: &[&str]) -> Vec<String> {
    let (binary, count) = (std::path::Path::new(env!("CARGO_BIN_EXE_campaign")), words.len());
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let line = format!(
        "source ./script; COMP_WORDS=({}); COMP_CWORD={}; _campaign_named campaign {} {}; printf '%s\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        count - 1,
        quoted[count - 1],
        quoted[count - 2],
    );
    let mut command = std::process::Command::new("bash");
    command.current_dir(folder.path(".")).env_clear().env("HOME", folder.path("home"));
    command.env("CAMPAIGN_STATE_DIR", folder.path("state"));
    command.env("PATH", format!("{}:/usr/bin:/bin", binary.parent().expect("a folder").display())).args(["-c", &line]);
    Process::start(command).finish().exits(0).stdout.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_names_and_files() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.write("notes.yaml", "a: b\n");
    sale.write("spring sale.yaml", "recipients: {}\nchannels: []\n");
    sale.run(&[]).exits(0);
    sale.write("script", &sale.campaign(&["completions", "bash"]).exits(0).stdout);
    for (words, expected) in [
        (&["campaign", "sto"][..], &["stop"][..]),
        (&["campaign", "status", "s"], &["sale", "sale@1"]),
        (&["campaign", "run", ""], &["sale.yaml", "spring sale.yaml"]),
        (&["campaign", "check", "sale.yaml", "sp"], &["spring sale.yaml"]),
        (&["campaign", "run", "sale.yaml", "--gateway", "l"], &["local"]),
        (&["campaign", "gateway", "trust", ""], &["local"]),
        (&["campaign", "gateway", "add", "main", "--for", "sa"], &["sale.yaml"]),
        (&["campaign", "results", "sale", "--state", "in"], &["invalid", "in_doubt"]),
    ] {
        assert_eq!(completions(&sale, words), expected, "{words:?}");
    }
}

#[test]
fn quiet_hides_success_but_shows_data_and_problems() {
    let sale = campaign().write();
    let quiet = sale.run(&["-q"]).exits(0);
    assert!(quiet.stderr.is_empty() && quiet.stdout.is_empty(), "{}", quiet.details());
    for done in [&["check", "sale.yaml", "-q"][..], &["results", "sale", "-q"]] {
        let quiet = sale.campaign(done).exits(0);
        assert!(quiet.stderr.is_empty() && quiet.stdout.is_empty(), "{}", quiet.details());
    }
    let folder = Folder::new(true);
    folder.write(
        "sale.yaml",
        "schedule: { every: day 10:00 }\ntimezone: Europe/Kyiv\nrecipients: { file: sale.csv }\nchannels: [hlr]\n",
    );
    let profile = "local: { base_url: \"http://127.0.0.1:9\", api_key: { env: STORY_KEY }, rate: 1/s }\n";
    folder.write("gateways.yaml", profile);
    folder.replace("sale.yaml", "timezone", "gateway: local\ntimezone");
    folder.write("sale.csv", "phone\n+380501234567\n");
    for done in [&["init", "spring"][..], &["schedule", "add", "sale.yaml", "--yes"], &["gateway", "trust", "local"]] {
        let quiet = folder.campaign(&[done, &["-q"]].concat()).exits(0);
        assert!(quiet.stderr.is_empty() && quiet.stdout.is_empty(), "{}", quiet.details());
    }
    assert!(
        !sale.campaign(&["results", "sale", "-q", "--out", "-"]).exits(0).stdout.is_empty(),
        "data contains no prose"
    );
    assert!(!sale.campaign(&["status", "sale", "-q"]).exits(0).stdout.is_empty());
    let rejected = Gateway::always(Answer::items(|operation| rejected(operation, "No route")));
    let sale = campaign().through(&rejected).write();
    sale.run(&["-q", "--keep-going"]).exits(3).says("3 rejected").says("next: ");
    sale.replace("sale.yaml", "{{ name }}", "{{ nme }}");
    sale.campaign(&["check", "sale.yaml", "-q"]).exits(2).says("unknown variable `nme`");
}

#[test]
fn verbose_logs_do_not_go_to_standard_output() {
    let (plain, verbose) = (campaign().write().run(&[]).exits(0), campaign().write().run(&["-vv"]).exits(0));
    assert_eq!(verbose.stdout.lines().count(), plain.stdout.lines().count());
}

#[test]
fn progress_is_shown_in_the_requested_format() {
    let gateway = Gateway::answering([Answer::Accept, Answer::status(503)]);
    let draft = || campaign().to(3).batches_of(1).one_at_a_time();
    let sale = draft().through(&gateway).profile("trust_status: [503]").write();
    let shown = sale.run(&["--progress", "json", "--json"]).exits(0).stderr;
    let objects: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let last = objects.last().expect("the counts at the end");
    assert_eq!(
        (&last["event"], &last["rows"], &last["counts"]["accepted"]),
        (&json!("progress"), &json!(3), &json!(3))
    );
    assert!(objects.iter().any(|object| object["event"] == "waiting" && object["at"].is_string()), "{shown}");

    let gateway = Gateway::answering([Answer::Accept, Answer::status(503)]);
    let sale = draft().through(&gateway).profile("trust_status: [503]").write();
    let shown = sale.run(&["--progress", "lines"]).exits(0).stderr;
    let waiting = shown.lines().find(|line| line.contains("waiting ")).expect("the wait is shown");
    let (date, time) = (&waiting[..10], &waiting[11..19]);
    assert!(date.matches('-').count() == 2 && time.matches(':').count() == 2, "a line starts with its time: {waiting}");

    let gateway = Gateway::answering([Answer::Accept, Answer::status(503)]);
    let sale = draft().through(&gateway).profile("trust_status: [503]").write();
    let shown = sale.run(&["--progress", "none"]).exits(0).stderr;
    assert!(!shown.contains("waiting "), "{shown}");
}

#[test]
fn json_progress_counts_only_messages_of_its_command() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(6).through(&gateway).write();
    for (options, messages) in [(&["--limit", "4"][..], 4), (&["--limit", "1"], 1), (&[], 1)] {
        let shown = sale.run(&[&["--progress", "json", "--json"], options].concat()).exits(0).stderr;
        let last = shown.lines().rfind(|line| line.contains("\"progress\"")).expect("the counts at the end");
        let last: Value = serde_json::from_str(last).expect("an object");
        assert_eq!((&last["messages"], &last["through"]), (&json!(messages), &json!(messages)), "{shown}");
    }
}

#[test]
fn live_runs_are_listed_first_and_times_are_local() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.run(&["--gateway", "sandbox"]).exits(0);
    sale.run(&[]).exits(0);
    sale.run(&["--again", "3"]).exits(0);
    let list_runs = |arguments: &[&str]| {
        let output = sale.campaign(&[&["status"], arguments].concat()).exits(0).stdout;
        let runs = output.lines().filter_map(|line| line.split_whitespace().next().filter(|run| run.contains('@')));
        (runs.map(str::to_owned).collect::<Vec<_>>(), output)
    };
    let (runs, output) = list_runs(&[]);
    assert_eq!(runs, ["sale@2", "sale@3", "sale@1"], "{output}");
    assert!(!output.contains('Z'), "times are in this computer's time zone: {output}");
    assert_eq!(list_runs(&["--all"]).0, ["sale@2", "sale@3", "sale@1"]);
}

#[test]
fn log_levels_add_detail_but_no_keys_or_recipient_data() {
    let logged = |arguments: &[&str], variable: Option<&str>| {
        let gateway = Gateway::accepting();
        let sale = campaign().through(&gateway).write();
        let mut command = sale.command(&[&["run", "sale.yaml"], arguments].concat());
        command.envs(variable.map(|filter| ("RUST_LOG", filter)));
        let log = Process::start(command).finish().exits(0).stderr;
        let number = phone(2).to_string();
        assert!(![crate::support::KEY, "Hello", &number].iter().any(|secret| log.contains(secret)), "{log}");
        log
    };
    let words = ["http=200", "taken=", "intent recorded", "outcome recorded", "bytes"];
    let count_known = |log: &str| words.iter().filter(|word| log.contains(*word)).count();
    let levels: [&[&str]; 4] = [&[], &["-v"], &["-vv"], &["-vvv"]];
    assert_eq!(levels.map(|level| count_known(&logged(level, None))), [0, 2, 4, 5]);
    assert_eq!(levels.map(|level| count_known(&logged(level, Some("")))), [0, 2, 4, 5], "an empty variable is ignored");
    assert!(logged(&["-v"], None).contains("number=1"), "the request is named");
    for (filter, expected) in [
        ("campaign=info", 2),
        ("debug", 4),
        ("trace,hyper=off", 5),
        ("hyper=trace", 0),
        ("campaign_gateway=info", 1),
        ("no such level=", 0),
    ] {
        assert_eq!(count_known(&logged(&[], Some(filter))), expected, "{filter}");
    }
    assert!(!logged(&["-vvv"], Some("trace")).contains("hyper"), "only this program");
}

#[test]
fn colours_are_shown_only_if_requested() {
    let sale = campaign().write();
    sale.replace("sale.yaml", "name: sale", "nmae: sale");
    let coloured = |arguments: &[&str]| sale.run(arguments).exits(2).stderr.contains('\u{1b}');
    assert!(coloured(&["--color", "always"]));
    assert!(!coloured(&["--color", "never"]) && !coloured(&[]), "no stream is a terminal");
}

#[test]
fn state_folder_can_come_from_the_environment() {
    let sale = campaign().write();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_campaign"));
    command.current_dir(sale.path(".")).env_clear().env("CAMPAIGN_STATE_DIR", sale.path("elsewhere"));
    command.args(["run", "sale.yaml"]);
    Process::start(command).finish().exits(0);
    assert!(sale.path("elsewhere/ledger.sqlite").exists());
}

#[test]
fn sandbox_reachable_from_other_hosts_requires_a_key() {
    let folder = Folder::new(false);
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8025"] {
        let refused = folder.campaign(&["sandbox", "--listen", address]).exits(2).says("--key KEY");
        assert!(refused.stdout.is_empty(), "{}", refused.details());
    }
    let mut sandbox = Process::start(folder.command(&["sandbox", "--listen", "127.0.0.1:0", "--json"]));
    crate::support::until("the server listens", || sandbox.stdout().ends_with('\n'));
    sandbox.signal("TERM");
    let listening = sandbox.finish().exits(143).json();
    assert_eq!(listening["base_url"], format!("http://{}", listening["listen"].as_str().expect("an address")));
    assert_eq!(listening["key"], "sandbox");
}

#[test]
fn usage_omits_options_that_the_environment_sets() {
    let sale = campaign().write();
    let mut command = sale.command(&["run"]);
    command.env("CAMPAIGN_GATEWAYS", sale.path("gateways.yaml"));
    let refused = Process::start(command).finish().exits(2).says("Usage: campaign run <FILE>");
    assert!(!refused.stderr.contains("--state-dir"), "{}", refused.details());
    let typed = sale.campaign(&["run", "--now", "--when-due", "--state-dir", "x", "sale.yaml"]).exits(2);
    assert!(typed.stderr.contains("--state-dir <DIR>"), "the error shows what was typed: {}", typed.details());
    // The help names the environment variable.
    assert!(sale.campaign(&["run", "--help"]).exits(0).stdout.contains("CAMPAIGN_STATE_DIR"));
}
