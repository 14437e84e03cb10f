//! `--json` output: one object, however the command ends.

use serde_json::{Value, json};

use crate::support::{Answer, Gateway, SandboxProcess, campaign, note_on_failure};

/// Fails unless the command prints one object that contains its own exit code. Returns the object.
#[track_caller]
fn expect_one_object(sale: &crate::support::Folder, arguments: &[&str]) -> Value {
    let finished = sale.campaign(arguments);
    let object = finished.json();
    assert_eq!(object["exit"].as_i64(), finished.code().map(i64::from), "{}", finished.details());
    assert_eq!(object["version"], 1, "{}", finished.details());
    assert_eq!(finished.stdout.matches('\n').count(), 1, "one line: {}", finished.details());
    let failed = !matches!(finished.code(), Some(0 | 3 | 4 | 5 | 7));
    let is_run = object["counts"].is_object();
    assert!(is_run || object["error"].is_string() == failed, "{}", finished.details());
    object
}

#[test]
fn every_command_prints_one_object_however_it_ends() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.write("bad.yaml", "nmae: sale\n");
    for arguments in [
        &["status"][..],
        &["check", "sale.yaml"],
        &["check", "bad.yaml"],
        &["check", "nobody.yaml"],
        &["run", "sale.yaml", "--dry-run"],
        &["run", "sale.yaml", "--limit", "1"],
        &["run", "sale.yaml"],
        &["run", "sale.yaml"],
        &["run", "sale.yaml", "--again", "7"],
        &["run", "bad.yaml"],
        &["run", "nobody.yaml"],
        &["run", "sale.yaml", "--rows", "x"],
        &["run"],
        &["no-such-command"],
        &["status"],
        &["status", "sale"],
        &["status", "nobody"],
        &["results", "sale"],
        &["results", "sale", "--out", "-"],
        &["results", "sale", "--state", "accepted,planned"],
        &["results", "sale", "--state", "rejected"],
        &["results", "nobody"],
        &["results", "nobody", "--out", "-"],
        &["stop", "sale"],
        &["stop", "nobody"],
        &["gateway", "trust", "local"],
        &["gateway", "trust", "nobody"],
        &["sandbox", "--assumptions"],
        &["sandbox", "--listen", "nowhere"],
        &["preview", "nobody.yaml"],
        &["preview", "sale.yaml", "--rows", "99"],
    ] {
        let arguments = [arguments, &["--json"]].concat();
        let _case = note_on_failure(format!("case: {arguments:?}"));
        expect_one_object(&sale, &arguments);
    }
    expect_one_object(&sale, &["--json"]);
}

#[test]
fn run_summary_has_the_expected_members() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    let summary = expect_one_object(&sale, &["run", "sale.yaml", "--json"]);
    assert_eq!(
        (&summary["run"], &summary["campaign"], &summary["gateway"], &summary["endpoint"], &summary["stopped"]),
        (&json!("sale@1"), &json!("sale"), &json!("local"), &json!("sync"), &Value::Null)
    );
    assert_eq!((&summary["rows"], &summary["parts"]), (&json!(3), &json!(3)));
    assert!(summary["seconds"].is_number());
    let results = summary["results"].as_str().expect("a path");
    assert!(sale.path(results).exists(), "{results}");
}

#[test]
fn stopped_run_gives_its_reason_in_json() {
    for answer in [Answer::rejection("Access denied"), Answer::rejection("Invalid message type"), Answer::status(500)] {
        let gateway = Gateway::answering([answer]);
        let sale = campaign().through(&gateway).write();
        let summary = expect_one_object(&sale, &["run", "sale.yaml", "--json"]);
        assert!(summary["stopped"].is_string(), "{summary}");
    }
}

#[test]
fn preview_prints_the_operation_of_each_row_as_it_would_be_sent() {
    let gateway = Gateway::accepting();
    let list = "phone,name\n380501000002,Ann\n12,Short\n380501000002,Ann\n380501000003,Bo\n";
    let sale = campaign().with_list(list).recipients("max_invalid: 50%").through(&gateway).write();
    let preview = sale.campaign(&["preview", "sale.yaml", "--json"]).exits(0);
    let lines: Vec<Value> = preview.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let states: Vec<&str> = lines.iter().map(|line| line["state"].as_str().unwrap_or("planned")).collect();
    assert_eq!(states, ["planned", "invalid", "skipped", "planned"]);
    assert!(lines[1]["reason"].is_string() && lines[2]["reason"].is_string());
    sale.run(&[]).exits(3);
    let sent = gateway.sends().into_iter().flat_map(|request| request.operations());
    let planned = lines.iter().filter(|line| line["operation"].is_object()).map(|line| line["operation"].clone());
    for (mut operation, shown) in sent.zip(planned) {
        assert_eq!(shown["id"], 0, "ids are reserved when sending");
        operation["id"] = json!(0);
        assert_eq!(operation, shown);
    }
}

#[test]
fn check_counts_what_a_run_would_send() {
    let gateway = Gateway::accepting();
    let list = "phone,name\n380501000002,Ann\n12,Short\n380501000002,Ann\n380501000003,Bo\n";
    let sale = campaign().with_list(list).recipients("max_invalid: 50%").through(&gateway).write();
    let checked = expect_one_object(&sale, &["check", "sale.yaml", "--json"]);
    assert_eq!((&checked["rows"], &checked["parts"]), (&json!(4), &json!(2)));
    assert_eq!(checked["counts"], json!({ "planned": 2, "skipped": 1, "invalid": 1 }));
    assert!(gateway.requests().is_empty());
}

#[test]
fn json_results_have_the_columns_and_cells_of_the_csv() {
    let gateway = Gateway::accepting();
    let list = "phone,name,state,,\n380501000002,=1+1,new,x,y\n12,\"A \"\"b\"\"\",,,z\n380501000003,Bo,,,\n";
    let sale = campaign().with_list(list).recipients("max_invalid: 50%").through(&gateway).write();
    sale.run(&["--limit", "1"]).exits(3);
    let printed = expect_one_object(&sale, &["results", "sale", "--out", "-", "--json"]);
    assert_eq!(printed["run"], "sale@1");
    let rows = printed["rows"].as_array().expect("rows");
    let csv = sale.results();
    assert_eq!((rows.len(), csv.rows.len()), (3, 3));
    for (object, cells) in rows.iter().zip(&csv.rows) {
        for (column, cell) in cells.iter().filter(|(column, _)| !column.is_empty()) {
            let value = match &object[column] {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            assert_eq!(&value, cell.strip_prefix('\'').unwrap_or(cell), "{column}");
        }
    }
    assert_eq!((&rows[0]["row"], &rows[0]["to"], &rows[0]["parts"]), (&json!(2), &json!("380501000002"), &json!(1)));
    assert_eq!((&rows[1]["id"], &rows[1]["to"], &rows[1]["column_5"]), (&Value::Null, &json!(""), &json!("z")));
    let some = expect_one_object(&sale, &["results", "sale", "--state", "planned,invalid", "--json"]);
    assert_eq!(some["rows"].as_array().expect("rows"), &rows[1..]);
    let none = expect_one_object(&sale, &["results", "sale", "--state", "rejected", "--json"]);
    assert_eq!(none["rows"], json!([]));
}

#[test]
fn printed_results_of_a_long_list_are_a_single_object() {
    let sale = campaign().to(3_000).write();
    sale.run(&["-q"]).exits(0);
    let printed = expect_one_object(&sale, &["results", "sale", "--out", "-", "--json"]);
    let rows = printed["rows"].as_array().expect("rows").iter().map(|row| row["row"].as_u64());
    assert!(rows.eq((2..3_002).map(Some)));
}

#[test]
fn invalid_command_line_gives_a_json_error_without_usage() {
    let sale = campaign().write();
    let refused = expect_one_object(&sale, &["run", "--json"]);
    let error = refused["error"].as_str().expect("an error");
    assert!(error.starts_with("the following required arguments were not provided: <FILE>"), "{error}");
    let misspelt = expect_one_object(&sale, &["run", "sale.yaml", "--limt", "3", "--json"]);
    assert_eq!(misspelt["error"], "unexpected argument '--limt' found");
    assert_eq!(misspelt["help"], "a similar argument exists: '--limit'");
}

#[test]
fn json_progress_prints_every_note_as_an_object() {
    let gateway = Gateway::answering([Answer::CloseRead]);
    let sale = campaign().to(2).through(&gateway).write();
    sale.run(&[]).exits(4);
    let again = sale.campaign(&["run", "sale.yaml", "--no-wait", "--progress", "json"]);
    let lines: Vec<Value> = again
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
        .collect();
    let notes: Vec<&Value> = lines.iter().filter(|line| line["event"] == "note").collect();
    assert!(notes.iter().any(|note| note["text"].as_str().is_some_and(|text| text.contains("in doubt"))), "{lines:?}");
}

/// Arguments for every command, ordered so that each command finds the files and runs that it needs.
const CALLS: &[&str] = &[
    "demo --fast tour",
    "init spring",
    "check sale.yaml",
    "explain empty-cell",
    "preview sale.yaml --rows 2",
    "test sale.yaml --to +380501000002 --yes",
    "plan sale.yaml",
    "approve 0123456789abcdef",
    "run sale.yaml",
    "stop sale",
    "status",
    "status sale",
    "results sale",
    "results sale --out -",
    "report sale --out report.html",
    "show sale --row 2",
    "replies sale --out replies.csv",
    "outcome sale --file purchases.csv --at Date --amount Total --within 14d",
    "reconcile sale",
    "resolve sale --all --as sent",
    "retry sale",
    "schedule add sale.yaml",
    "schedule list",
    "schedule next sale.yaml",
    "schedule pause sale",
    "schedule resume sale",
    "schedule remove sale",
    "serve --listen nowhere",
    "serve link --for Olha",
    "serve list",
    "serve revoke Olha",
    "worker --metrics nowhere",
    "connector --gateway nobody",
    "suppress add +380501000009",
    "suppress list",
    "suppress import stop-list.csv",
    "suppress remove +380501000009 --reason asked",
    "find +380501000002",
    "forget +380501000002 --yes",
    "purge --older-than 400d",
    "gateway balance",
    "gateway senders",
    "gateway status 1",
    "gateway templates list",
    "gateway templates create welcome --text Hello --yes",
    "gateway templates delete 17 --yes",
    "gateway viber-templates list",
    "gateway viber-templates create --signature OlenaCo --text Hello --yes",
    "gateway viber-templates delete 17 --text Hello --yes",
    "gateway add second --key-env STORY_KEY --base-url http://127.0.0.1:1 --offline",
    "gateway hook local",
    "gateway trust local",
    "gateway lookup +380501000002 --gateway local --yes",
    "gateway otp +380501000002 --gateway local --yes",
    "ledger check",
    "ledger backup backup",
    "ledger restore backup",
    "ledger copy --to nowhere",
    "ledger upgrade",
    "sandbox --assumptions",
    "sandbox --listen nowhere",
    "doctor",
    "man manual",
];

/// Commands that print scripts, protocol messages, schemas or CSV instead of these objects.
const WITHOUT_OBJECTS: [&str; 4] = ["completions", "lsp", "schema", "suppress export"];

#[test]
fn every_command_prints_the_version_in_each_object() {
    let sandbox = SandboxProcess::start();
    let sale = campaign().through(&sandbox).write();
    sale.write("purchases.csv", "Phone,Date,Total\n+380501000002,2026-12-01,99.50\n");
    sale.write("stop-list.csv", "phone\n+380501000008\n");
    for call in CALLS {
        let _case = note_on_failure(format!("case: {call}"));
        let arguments: Vec<&str> = call.split(' ').chain(["--json"]).collect();
        let finished = sale.campaign(&arguments);
        for line in finished.stdout.lines() {
            match serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {}", finished.details())) {
                Value::Array(items) => assert!(items.iter().all(|item| item["version"].is_null()), "{line}"),
                object => assert!(line.starts_with("{\"version\":1,") && object.is_object(), "{line}"),
            }
        }
        assert!(!finished.stdout.is_empty(), "{}", finished.details());
    }
}

#[test]
fn version_test_calls_every_command() {
    let reference = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/commands.md")).expect("a page");
    let paths: Vec<&str> = reference
        .lines()
        .filter_map(|line| line.trim_start_matches('#').strip_prefix(" campaign ").filter(|_| line.starts_with('#')))
        .collect();
    assert!(paths.len() > 40, "{paths:?}");
    let is_called = |path: &str| CALLS.iter().any(|call| *call == path || call.starts_with(&format!("{path} ")));
    let is_group = |path: &str| paths.iter().any(|other| other.starts_with(&format!("{path} ")));
    let missing: Vec<&&str> =
        paths.iter().filter(|path| !is_called(path) && !is_group(path) && !WITHOUT_OBJECTS.contains(path)).collect();
    assert!(missing.is_empty(), "add these commands to `CALLS`: {missing:?}");
}

#[test]
fn third_party_formats_have_no_campaign_version() {
    let sale = campaign().write();
    let sarif = sale.campaign(&["check", "sale.yaml", "--format", "sarif"]).exits(0).json();
    assert_eq!(sarif["version"], "2.1.0");
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    let entry = sale.campaign(&["connector", "--print-config", "--client", "vscode", "--gateway", "local", "--json"]);
    let entry = entry.exits(0).json();
    assert!(entry["version"].is_null() && entry.is_object(), "{entry}");
}
