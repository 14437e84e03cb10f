//! Tests in campaign files: passes, failures with their positions, and the effect of a failure.

use std::fmt::Write as _;

use serde_json::Value;

use crate::support::{Folder, Gateway, campaign, in_files, phone};

/// A campaign with prices, a condition and two channels, to which tests are added.
const SALE: &str = "\
timezone: Europe/Kyiv
gateway: production
recipients: { file: sale.csv, region: UA, where: plan == \"gold\" }
channels:
  - viber: { signature: OlenaCo, message: \"{{ first_name }}, -{{ discount }}% until Sunday\" }
  - sms: { signature: OlenaCo, message: \"-{{ discount }}% in all our shops\" }
tests:
";
const PROFILES: &str = "production:\n  base_url: \"https://gateway.example\"\n  api_key: { env: NO_KEY }\n  rate: 10/s\n  \
                        prices: { viber: 0.50, sms: 0.80 }\n  currency: UAH\n";
const LIST: &str = "phone,first_name,plan,discount\n+380501000002,Олена,gold,10\n+380501000003,Тарас,basic,\n";
/// The cells of a recipient of `SALE`.
const GOLD: &str = "{ first_name: Олена, plan: gold, discount: 10 }";

fn folder(campaign: &str) -> Folder {
    let folder = Folder::new(false);
    folder.write("gateways.yaml", PROFILES);
    folder.write("sale.csv", LIST);
    folder.write("sale.yaml", campaign);
    folder
}

/// The findings of `check --tests-only` about these files.
fn findings(folder: &Folder, files: &[&str], code: i32) -> Vec<Value> {
    let arguments = [&["check", "--tests-only", "--json"], files].concat();
    let checked = folder.campaign(&arguments).exits(code).json();
    checked["findings"].as_array().expect("findings").clone()
}

fn text<'v>(finding: &'v Value, key: &str) -> &'v str {
    finding[key].as_str().unwrap_or_default()
}

/// The rest of the line from the position of a finding.
fn text_at<'t>(yaml: &'t str, finding: &Value) -> &'t str {
    let number = |key: &str| finding[key].as_u64().expect("a number") as usize;
    let line = yaml.lines().nth(number("line") - 1).expect("a line");
    &line[line.char_indices().nth(number("column") - 1).expect("a column").0..]
}

#[test]
fn each_expectation_passes_and_fails_for_the_right_reason() {
    // Each case: an expectation that passes, one that fails, the text at the finding, and the finding's message.
    let table = [
        ("channels: [viber, sms]", "channels: [sms]", "channels:", "the channels are `[viber, sms]`, not `[sms]`"),
        (
            "viber: { text: \"Олена, -10% until Sunday\" }",
            "viber: { text: \"Олена, -15% until Sunday\" }",
            "\"Олена, -15%",
            "the text on `viber` has `-10%` instead of `-15%`",
        ),
        ("sms: { parts: 1 }", "sms: { parts: 2 }", "2 }", "the text on `sms` has 1 part instead of 2"),
        (
            "sms: { contains: [\"-10%\", shops] }",
            "sms: { contains: [\"-10%\", shop s] }",
            "shop s]",
            "the text on `sms` does not contain `shop s`",
        ),
        (
            "sms: { not_contains: [None, \"  \"] }",
            "sms: { not_contains: [None, \"all \"] }",
            "\"all \"]",
            "the text on `sms` contains `\"all \"`",
        ),
        (
            "sms: { matches: '^-\\d+% [^{}]*$' }",
            "sms: { matches: '^\\d+% [^{}]*$' }",
            "'^\\d+%",
            "the text on `sms` does not match `^\\d+% [^{}]*$`",
        ),
        ("max_cost: 0.80", "max_cost: 0.79", "0.79", "the message can cost 0.80 UAH, but at most 0.79 is allowed"),
        ("channels: [viber, sms]", "rcs: { contains: [a] }", "rcs:", "the message has no channel `rcs`"),
        (
            "viber: { text: \"Олена, -10% until Sunday\" }",
            "skipped: filtered",
            "filtered",
            "the recipient gets a message on `viber` and `sms`, but must be skipped as `filtered`",
        ),
    ];
    let (mut good, mut bad) = (SALE.to_owned(), SALE.to_owned());
    for (number, (holds, fails, ..)) in table.iter().enumerate() {
        for (yaml, expect) in [(&mut good, holds), (&mut bad, fails)] {
            let _ = write!(yaml, "  - name: t{number}\n    given: {GOLD}\n    expect:\n      {expect}\n");
        }
    }
    let sale = folder(&good);
    assert_eq!(findings(&sale, &["sale.yaml"], 0), [] as [Value; 0]);
    sale.write("sale.yaml", &bad);
    let found = findings(&sale, &["sale.yaml"], 2);
    assert_eq!(found.len(), table.len(), "{found:#?}");
    for (number, (_, fails, position, message)) in table.iter().enumerate() {
        let message = format!("test `t{number}`: {message}");
        let finding = found.iter().find(|finding| finding["message"] == message.as_str());
        let finding = finding.unwrap_or_else(|| panic!("{fails}: no {message:?} in {found:#?}"));
        assert!(text_at(&bad, finding).starts_with(position), "{fails}: {}", text_at(&bad, finding));
        assert_eq!(finding["rule"], "test-failed");
    }
}

#[test]
fn tests_can_expect_an_exact_or_maximum_number_of_parts() {
    let yaml = |parts: &str| {
        format!(
            "{SALE}  - name: long\n    given: {{ plan: gold, first_name: О, discount: \"{}\" }}\n    \
             expect: {{ sms: {{ {parts} }} }}\n",
            "ї".repeat(60)
        )
    };
    let sale = folder(&yaml("parts: 2, max_parts: 2"));
    assert_eq!(findings(&sale, &["sale.yaml"], 0), [] as [Value; 0]);
    sale.write("sale.yaml", &yaml("max_parts: 1"));
    let found = findings(&sale, &["sale.yaml"], 2);
    assert_eq!(found[0]["message"], "test `long`: the text on `sms` has 2 parts, but at most 1");
}

#[test]
fn recipients_are_skipped_for_reasons_that_need_no_ledger() {
    let holdout = "holdout: 50%\n";
    let until = "delivery: { until: 2026-12-01 10:00 }\n";
    for (top, given, at, expect, message) in [
        ("", "{ plan: basic }", "", "skipped: filtered", None),
        (
            "",
            "{ plan: basic }",
            "",
            "channels: [sms]",
            Some("the recipient is skipped as `filtered` and gets no message"),
        ),
        (
            "",
            "{ plan: basic }",
            "",
            "skipped: holdout",
            Some("the recipient is skipped as `filtered`, not as `holdout`"),
        ),
        (holdout, GOLD, "", "skipped: holdout", None),
        (holdout, GOLD, "", "channels: [viber, sms]", None),
        (
            "",
            GOLD,
            "",
            "skipped: holdout",
            Some("the recipient gets a message on `viber` and `sms`, but must be skipped as `holdout`"),
        ),
        (until, GOLD, "2026-12-01 10:00", "skipped: expired", None),
        (until, GOLD, "2026-12-01 09:59", "channels: [viber, sms]", None),
        (
            until,
            GOLD,
            "2026-12-01 09:59",
            "skipped: expired",
            Some("the recipient gets a message on `viber` and `sms`, but must be skipped as `expired`"),
        ),
    ] {
        let at = if at.is_empty() { String::new() } else { format!("    at: {at}\n") };
        let sale = folder(&format!("{top}{SALE}  - name: x\n    given: {given}\n{at}    expect: {{ {expect} }}\n"));
        let found = findings(&sale, &["sale.yaml"], if message.is_some() { 2 } else { 0 });
        let expected: Vec<String> = message.into_iter().map(|message| format!("test `x`: {message}")).collect();
        assert_eq!(
            found.iter().map(|finding| text(finding, "message")).collect::<Vec<_>>(),
            expected,
            "{given} {expect}"
        );
    }
}

#[test]
fn test_requires_only_the_cells_and_times_it_uses() {
    let windowed = SALE.replace("tests:", "delivery: { window: 09:00-20:00 }\ntests:");
    let dated = SALE.replace("until Sunday", "on {{ today }}");
    for (yaml, keys, message) in [
        (SALE, "given: { plan: gold, first_name: О }", "the texts use `discount`, which the test does not give"),
        (SALE, "given: { first_name: О }", "`where` uses `plan`, which the test does not give"),
        (SALE, "given: { plan: gold, frist_name: О }", "the list has no column `frist_name`"),
        (SALE, "given: { phone: 12, plan: gold, first_name: О, discount: 1 }", "the recipient is invalid: "),
        (&windowed, "given: GOLD", "`at` is required, because the campaign has a sending window"),
        (
            &windowed,
            "given: GOLD\n    at: 2026-12-01 20:30",
            "the sending window is closed at this time, so the message waits",
        ),
        (&windowed, "given: GOLD\n    at: 2026-12-01 10:30", ""),
        (&dated, "given: GOLD", "`at` is required, because the texts use `today`"),
        (&dated, "each: 5", "`at` is required, because the texts use `today`"),
    ] {
        let keys = keys.replace("GOLD", GOLD);
        let sale = folder(&format!("{yaml}  - name: x\n    {keys}\n    expect: {{ channels: [viber, sms] }}\n"));
        let found = findings(&sale, &["sale.yaml"], if message.is_empty() { 0 } else { 2 });
        match found.as_slice() {
            [] => assert_eq!(message, "", "{keys}"),
            [one] => assert!(
                text(one, "message").starts_with(&format!("test `x`: {message}")) && !message.is_empty(),
                "{keys}: {one:#}"
            ),
            several => panic!("{keys}: {several:#?}"),
        }
    }
    let at = format!(
        "{dated}  - name: x\n    given: {GOLD}\n    at: 2031-05-07 10:00\n    \
         expect: {{ viber: {{ contains: [on 2031-05-07] }} }}\n"
    );
    assert_eq!(findings(&folder(&at), &["sale.yaml"], 0), [] as [Value; 0], "`at` decides the date");
}

/// Campaigns, each as its keys without the tests, and the recipient of a test. Each text ends with `until Sunday`.
const CAMPAIGNS: [(&str, &str); 8] = [
    ("channels: [ sms: { signature: OlenaCo, message: \"Sale, -10% until Sunday\" } ]", "given: {}"),
    (
        "channels: [ sms: { signature: OlenaCo, message: \"{{ first_name }}, sale until Sunday\" } ]",
        "given: { first_name: Olena }",
    ),
    (
        "channels: [ sms: { signature: OlenaCo, message: \"{% if plan == 'gold' %}Gold {% endif %}sale \
         until Sunday\" } ]",
        "given: { plan: gold }",
    ),
    (
        "vars: { shop: Olena & Co }\n\
         channels: [ sms: { signature: OlenaCo, message: \"{{ shop }}: sale until Sunday\" } ]",
        "given: {}",
    ),
    (
        "timezone: Europe/Kyiv\nchannels: [ sms: { signature: OlenaCo, message: \"{{ today }}: sale until Sunday\" } ]",
        "given: {}\n    at: 2026-12-01 10:00",
    ),
    (
        "channels: [ sms: { signature: OlenaCo, message: { by: plan, texts: { gold: \"Gold sale until Sunday\", basic: \
         \"Sale until Sunday\" } } } ]",
        "given: { plan: gold }",
    ),
    (
        "channels: [ sms: { signature: OlenaCo, message: \"{{ hello }} sale until Sunday\" } ]\nvars: { hello: Hi }\n\
         variants: { a: { share: 50% }, b: { share: 50%, vars: { hello: Hey } } }",
        "given: { variant: b }",
    ),
    (
        "data: { stores: { file: stores.csv, key: city } }\n\
         channels: [ sms: { signature: OlenaCo, message: \"{{ stores[plan].address }}: sale until Sunday\" } ]",
        "given: { plan: gold }",
    ),
];
/// The rendered text of each campaign.
const TEXTS: [&str; 8] = [
    "Sale, -10% until Sunday",
    "Olena, sale until Sunday",
    "Gold sale until Sunday",
    "Olena & Co: sale until Sunday",
    "2026-12-01: sale until Sunday",
    "Gold sale until Sunday",
    "Hey sale until Sunday",
    "Shop Street 1: sale until Sunday",
];
/// Expectations that the texts meet, with the value that a finding points to. `TEXT` stands for the rendered text.
const EXPECTATIONS: [(&str, &str); 5] = [
    ("text: \"TEXT\"", "\"TEXT\""),
    ("max_parts: 1", "1"),
    ("contains: [sale, until Sunday]", "until Sunday]"),
    ("not_contains: [None, \"  \"]", "None,"),
    ("matches: 'until Sunday$'", "'until Sunday$'"),
];

#[test]
fn failed_expectation_is_located_in_each_of_forty_campaigns() {
    let sale = folder("");
    sale.write("stores.csv", "city,address\ngold,Shop Street 1\nbasic,Shop Street 2\n");
    let (mut files, mut values) = (Vec::new(), Vec::new());
    for ((keys, recipient), rendered) in CAMPAIGNS.iter().zip(TEXTS) {
        for (expect, value) in EXPECTATIONS {
            let file = format!("c{}.yaml", files.len());
            let expect = expect
                .replace("TEXT", rendered)
                .replace("[sale,", if rendered.contains("sale") { "[sale," } else { "[Sale," });
            let yaml = format!(
                "recipients: {{ file: sale.csv, region: UA }}\n{keys}\ntests:\n  - name: sale\n    {recipient}\n    \
                 expect:\n      sms:\n        {expect}\n"
            );
            sale.write(&file, &yaml);
            files.push(file);
            values.push((yaml, value.replace("TEXT", rendered)));
        }
    }
    assert_eq!(files.len(), 40);
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    assert_eq!(findings(&sale, &names, 0), [] as [Value; 0]);
    for (file, (yaml, _)) in files.iter().zip(&mut values) {
        let (channels, tests) = yaml.split_once("tests:").expect("tests");
        // Only the messages change, so each expectation fails.
        *yaml = format!("{}tests:{tests}", channels.replace("until Sunday", &format!("None{}", " of it".repeat(40))));
        sale.write(file, yaml);
    }
    let found = findings(&sale, &names, 2);
    for (file, (yaml, value)) in files.iter().zip(&values) {
        let file_findings: Vec<&Value> = found.iter().filter(|finding| finding["file"] == file.as_str()).collect();
        let [finding] = file_findings.as_slice() else { panic!("{file}: {file_findings:#?}\n{yaml}") };
        assert_eq!(finding["rule"], "test-failed", "{file}");
        assert!(text_at(yaml, finding).starts_with(value.as_str()), "{file}: {finding:#}");
    }
}

/// A failing test for `campaign()`.
const FAILING: &str =
    "tests: [ { name: a greeting, given: { name: Olena }, expect: { sms: { text: \"Hi, Olena\" } } } ]";

#[test]
fn failed_campaign_test_blocks_runs_plans_and_schedules() {
    let gateway = Gateway::accepting();
    let schedule = "timezone: Europe/Kyiv\nschedule: { every: day 10:00 }";
    let sale = campaign().through(&gateway).top(schedule).top(FAILING).write();
    let message = "test `a greeting`: the text on `sms` has `Hello,` instead of `Hi,`";
    for command in [
        "run sale.yaml --now --yes",
        "run sale.yaml --now --dry-run",
        "plan sale.yaml",
        "check sale.yaml",
        "schedule add sale.yaml --yes",
    ] {
        let arguments: Vec<&str> = command.split(' ').collect();
        let refused = sale.campaign(&arguments).exits(2);
        assert!(
            refused.details().contains("test-failed") && refused.details().contains(message),
            "{}",
            refused.details()
        );
    }
    assert!(gateway.requests().is_empty(), "a failed test sends nothing");
    sale.replace("sale.yaml", "Hi, Olena", "Hello, Olena");
    sale.campaign(&["run", "sale.yaml", "--now", "--yes"]).exits(0);
    assert!(!gateway.requests().is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn schedule_does_not_run_tests_when_it_fires() {
    use crate::support::{Clock, Server, until};
    use jiff::{SignedDuration, Timestamp};

    let _files = in_files();
    let gateway = Gateway::accepting();
    let tests = "tests: [ { name: short names, each: 5, expect: { sms: { not_contains: [Maximilian] } } } ]";
    let schedule = "timezone: Europe/Kyiv\nschedule: { every: day 10:00, wait_for_file: 2h }";
    let sale = campaign().through(&gateway).top(schedule).top(tests).write();
    let schedule = sale.campaign(&["schedule", "add", "sale.yaml", "--yes", "--json"]).exits(0).json();
    let due: Timestamp = schedule["next"][0].as_str().expect("a moment").parse().expect("a moment");
    sale.write("sale.csv", &format!("phone,name\n{},Maximilian\n", phone(2)));
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("short names");
    let server = Server::start_after(&sale, &Clock::new().set_to(due - SignedDuration::from_secs(2)), &[]);
    until("the schedule sends", || !gateway.requests().is_empty());
    server.end("TERM").exits(0);
}

#[test]
fn tests_use_a_stable_sample_of_the_list() {
    let mut list = "phone,name\n".to_owned();
    for row in 2..502 {
        let name = if row % 10 == 0 { "Maximilian" } else { "Olena" };
        let _ = writeln!(list, "{},{name}", phone(row));
    }
    let tests = "tests:\n  - name: every row\n    each: 500\n    expect: { sms: { not_contains: [Maximilian] } }\n  \
                 - name: some rows\n    each: 40\n    expect: { sms: { not_contains: [Maximilian] } }\n  \
                 - name: parts\n    each: 500\n    expect: { sms: { max_parts: 1, matches: '^[^{}]*$' } }";
    let sale = campaign().with_list(&list).top(tests).write();
    let found = findings(&sale, &["sale.yaml"], 2);
    let messages: Vec<&str> = found.iter().map(|finding| text(finding, "message")).collect();
    assert_eq!(messages.len(), 2, "{messages:#?}");
    assert_eq!(
        messages[0],
        "test `every row`: in row 10, the text on `sms` contains `Maximilian` (and 49 more rows of 500 fail)"
    );
    assert!(
        messages[1].starts_with("test `some rows`: in row ") && messages[1].contains(" of 40 fail)"),
        "{}",
        messages[1]
    );
    assert!(!found.iter().any(|finding| finding.to_string().contains("Hello, ")), "texts of recipients are not shown");
    assert_eq!(findings(&sale, &["sale.yaml"], 2), found, "the sample is the same");
}

#[test]
fn random_rows_are_rows_that_get_a_message() {
    let tests = "tests: [ { name: names, each: 100, expect: { sms: { not_contains: [Maximilian] } } } ]";
    let list = format!("phone,name\n{0},Olena\n{0},Maximilian\n{1},Petro\n", phone(2), phone(3));
    let sale = campaign().with_list(&list).top(tests).write();
    assert_eq!(findings(&sale, &["sale.yaml"], 0).len(), 0, "the second row with the same number is skipped");
    let mut list = "phone,name\n".to_owned();
    for row in 2..42 {
        let _ = writeln!(list, "{},Olena", phone(row));
    }
    let sale = campaign().with_list(&list).top("holdout: 20%").write();
    sale.run(&[]).exits(0);
    let results = sale.results();
    let reasons = results.column("reason");
    assert!(reasons.contains(&"holdout"), "{reasons:?}");
    let mut held_out = "phone,name\n".to_owned();
    for (row, reason) in (2..).zip(reasons) {
        let name = if reason == "holdout" { "Maximilian" } else { "Olena" };
        let _ = writeln!(held_out, "{},{name}", phone(row));
    }
    let sale = campaign().with_list(&held_out).top("holdout: 20%").top(tests).write();
    assert_eq!(findings(&sale, &["sale.yaml"], 0).len(), 0, "the holdout group gets no message");
}

#[test]
fn tests_only_check_needs_no_list_prices_or_ledger() {
    let sale = folder(&format!(
        "{}  - name: given\n    given: {GOLD}\n    expect: {{ max_cost: 0.50, sms: {{ contains: [\"-10%\"] }} }}\n  \
         - name: each\n    each: 5\n    expect: {{ channels: [viber, sms] }}\n",
        SALE.replace("file: sale.csv", "url: \"https://crm.example/people.csv\"")
    ));
    let checked =
        sale.campaign(&["check", "sale.yaml", "--tests-only", "--gateway", "sandbox", "--json"]).exits(0).json();
    let outcomes: Vec<&str> =
        checked["tests"].as_array().expect("tests").iter().map(|test| text(test, "outcome")).collect();
    assert_eq!(outcomes, ["passed", "not_run"]);
    let rules: Vec<(&str, &str)> = checked["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|finding| (text(finding, "rule"), text(finding, "severity")))
        .collect();
    assert_eq!(rules, [("test-not-run", "note"), ("test-not-run", "note")]);
    assert!(!sale.path("state").exists(), "no ledger is created");
}

#[test]
fn preview_shows_a_made_up_recipient_without_a_row_number() {
    let sale = folder(SALE.trim_end_matches("tests:\n"));
    let preview = |given: &str| sale.campaign(&["preview", "sale.yaml", "--given", given]);
    let shown = preview("first_name=Олена,plan=gold,discount=10").exits(0);
    for part in ["to +380500000001 · viber, then sms", "│ Олена, -10% until Sunday", "1 part: 21 of 160"] {
        assert!(shown.stdout.contains(part), "no {part:?} in {}", shown.details());
    }
    preview("plan=basic").exits(0).says("skipped: filtered");
    preview("plan=gold,first_name=О").exits(0).says("`--given` has no cell for `discount`, so it is empty");
    preview("plan=gold").exits(0).says("no cell for `discount` and `first_name`, so they are empty");
    preview("frist_name=О").exits(2).says("did you mean `first_name`?");
    let json = sale.campaign(&["preview", "sale.yaml", "--given", "plan=gold,first_name=О,discount=5", "--json"]);
    let json = json.exits(0).json();
    assert_eq!((&json["row"], &json["operation"]["type"]), (&Value::Null, &Value::from("viber+sms")), "{json}");
}

#[test]
fn preview_of_a_made_up_recipient_respects_countries() {
    let sale = folder(&SALE.trim_end_matches("tests:\n").replace("gateway: ", "countries: [PL]\ngateway: "));
    let preview = |given: &str| sale.campaign(&["preview", "sale.yaml", "--given", given]).exits(0);
    let given = "plan=gold,first_name=О,discount=5";
    preview(&format!("phone=+380501234567,{given}")).says("skipped: country");
    preview(&format!("phone=+48501234567,{given}")).says("to +48501234567");
    preview(given).says("to +48");
}

#[test]
fn junit_report_has_a_case_per_test() {
    let sale = folder(&format!(
        "{SALE}  - name: \"passes & \\\"quotes\\\"\"\n    given: {GOLD}\n    expect: {{ channels: [viber, sms] }}\n  \
         - name: fails\n    given: {GOLD}\n    expect: {{ sms: {{ contains: [a<b] }} }}\n"
    ));
    sale.write("broken.yaml", "recipients: { file: sale.csv }\nchannels: [ sms: { signature: OlenaCo } ]\n");
    let output = sale.campaign(&["check", "sale.yaml", "broken.yaml", "--tests-only", "--format", "junit"]).exits(2);
    for line in [
        "<testsuites name=\"campaign\" tests=\"3\" failures=\"2\" skipped=\"0\" errors=\"0\">",
        "<testsuite name=\"sale.yaml\" tests=\"2\" failures=\"1\" skipped=\"0\" errors=\"0\">",
        "<testcase classname=\"sale.yaml\" name=\"passes &amp; &quot;quotes&quot;\" file=\"sale.yaml\" line=\"8\"/>",
        "<failure message=\"test `fails`: the text on `sms` does not contain `a&lt;b`\" type=\"test-failed\">",
        "<testcase classname=\"broken.yaml\" name=\"the campaign has no errors\">",
    ] {
        assert!(output.stdout.contains(line), "no {line} in {}", output.stdout);
    }
    let whole = sale.campaign(&["check", "sale.yaml", "--format", "junit"]).exits(2);
    assert!(whole.stdout.contains("<testcase classname=\"sale.yaml\" name=\"fails\""), "{}", whole.details());
}
