//! Runs with `--plan`: they send the planned texts to the planned recipients, or to fewer.

use serde_json::json;

use super::plan;
use crate::support::{Draft, Folder, Gateway, campaign, in_files, phone, run_sql, with_ledger};

/// Drafts a campaign with a price per message. Its text is in `hello.txt`.
fn draft_sale(gateway: &Gateway) -> Draft {
    let sms = "  - sms: { signature: OlenaCo, message: { file: hello.txt } }";
    let priced =
        campaign().channels(sms).to(5).through(gateway).profile("prices: { sms: 0.80 }").profile("currency: UAH");
    priced.top("timezone: Europe/Kyiv").delivery("window: 00:00-24:00").delivery("until: 2099-01-01 10:00")
}

/// Creates the campaign and its text, which contains the date and an include.
fn write_sale(gateway: &Gateway) -> Folder {
    let folder = draft_sale(gateway).write();
    folder.write("hello.txt", "Hello, {% include \"name.txt\" %}, on {{ today }}");
    folder.write("name.txt", "{{ name }}");
    folder
}

#[test]
fn plan_shows_its_size_and_maximum_cost_and_sends_nothing() {
    let gateway = Gateway::accepting();
    let sale = write_sale(&gateway);
    sale.campaign(&["suppress", "add", &format!("+{}", phone(3))]).exits(0);
    let mut planned = sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json();
    let digest = planned["digest"].as_str().unwrap().to_owned();
    assert_eq!(digest.len(), 64);
    let forecast = planned.as_object_mut().and_then(|planned| planned.remove("forecast")).expect("a forecast");
    let skipped = json!([{ "state": "skipped", "reason": "opted out", "rows": 1, "first": [3] }]);
    assert_eq!((&forecast["left_out"], &forecast["messages"]), (&skipped, &json!(4)));
    let figures = json!({
        "digest": digest, "rows": 5, "counts": { "planned": 4, "skipped": 1 }, "messages": 4, "parts": 4,
        "cost": 3.20, "currency": "UAH", "exit": 0, "on_in_doubt": "hold", "version": 1,
        "resources": [{ "key": "recipients.file", "kind": "source", "value": "sale.csv" }],
    });
    assert_eq!(planned, figures);
    let output = sale.campaign(&["plan", "sale.yaml"]).exits(0);
    output
        .says("−1  skipped: opted out  row 3\n     4  get a message\n")
        .says("3.20 UAH at most")
        .says("hours     within 00:00-24:00, until 2099-01-01 10:00, by the clocks of Europe/Kyiv")
        .says(&format!("campaign run sale.yaml --plan {}", &digest[..16]));
    let partial = sale.campaign(&["plan", "sale.yaml", "--json", "--rows", "2-4"]).exits(0).json();
    assert_eq!((&partial["messages"], &partial["parts"]), (&json!(2), &json!(2)));
    assert_ne!(partial["digest"], digest);
    assert!(gateway.requests().is_empty());
}

#[test]
fn plan_can_be_run_by_its_digest_or_a_prefix_of_it() {
    let gateway = Gateway::accepting();
    let sale = write_sale(&gateway);
    let digest = plan(&sale, &[]);
    assert_eq!(plan(&sale, &[]), digest, "the digest does not depend on the time");
    sale.run(&["--plan", &digest[..16]]).exits(0);
    assert_eq!(gateway.phones().len(), 5);
    let again = sale.run(&["--plan", &digest, "--json"]).exits(0).json();
    assert_eq!(again["sent"], 0, "every recipient has the message");
    assert_eq!(gateway.phones().len(), 5);
}

#[test]
fn changed_plan_input_is_named_and_the_run_is_refused() {
    let gateway = Gateway::accepting();
    let sale = write_sale(&gateway);
    let digest = plan(&sale, &[]);
    let changes = [
        ("sale.yaml", "name: sale", "edition: second\nname: sale", "`edition`"),
        ("sale.yaml", "OlenaCo", "Olena", "the text `channels[0].sms.signature`"),
        ("hello.txt", "Hello", "Goodbye", "the text `hello.txt`"),
        ("name.txt", "{{ name }}", "you", "the text `name.txt`"),
        ("sale.csv", "Person 2", "Person II", "the list"),
        ("gateways.yaml", "http://127.0.0.1:", "http://localhost:", "the gateway's addresses, the gateway's account"),
        ("gateways.yaml", "local:\n", "local:\n  account: other\n", "the gateway's account"),
        ("sale.yaml", "window: 00:00-24:00", "window: 00:00-23:59", "the sending hours"),
        ("sale.yaml", "until: 2099", "until: 2098", "the sending hours"),
        ("gateways.yaml", "local:\n", "local:\n  policy: { window: \"00:00-23:59\" }\n", "the sending hours"),
    ];
    for (file, old, new, named) in changes {
        sale.replace(file, old, new);
        let refused = sale.run(&["--plan", &digest]).exits(2).says("this run differs from plan");
        refused.says(&format!(": {named} changed"));
        sale.replace(file, new, old);
    }
    for (options, named) in
        [(["--limit", "2"], "`--limit`"), (["--rows", "2-3"], "`--rows`"), (["--again", "5"], "`--again`")]
    {
        sale.run(&[&["--plan", digest.as_str()], &options[..]].concat())
            .exits(2)
            .says(&format!("the option {named} changed"));
    }
    sale.run(&["--plan", &digest, "--gateway", "sandbox"]).exits(2).says(": the gateway changed");
    for unknown in ["0123", ""] {
        sale.run(&["--plan", unknown]).exits(2).says(&format!("there is no plan `{unknown}`"));
    }
    assert!(gateway.requests().is_empty(), "nothing was sent");
    // Settings that do not affect who gets which message are not part of the plan.
    sale.replace("sale.yaml", "rate: 100000/s", "rate: 90000/s");
    sale.run(&["--plan", &digest]).exits(0);
    assert_eq!(gateway.phones().len(), 5);
}

#[test]
fn run_options_must_match_the_plan() {
    let gateway = Gateway::accepting();
    let sale = write_sale(&gateway);
    let options = ["--limit", "2", "--rows", "3-6"];
    let digest = plan(&sale, &options);
    sale.run(&["--plan", &digest]).exits(2).says("the option `--rows`").says("the option `--limit`");
    sale.run(&[&["--plan", digest.as_str()], &options[..]].concat()).exits(0);
    assert_eq!(gateway.phones(), [3, 4].map(phone));
}

#[test]
fn run_can_have_fewer_recipients_than_planned_but_not_more() {
    let gateway = Gateway::accepting();
    let sale = write_sale(&gateway);
    let number = format!("+{}", phone(3));
    sale.campaign(&["suppress", "add", &number]).exits(0);
    let four = plan(&sale, &[]);
    sale.campaign(&["suppress", "remove", "--yes", &number]).exits(0);
    sale.run(&["--plan", &four]).exits(2).says("has 4 recipients, but this run would send to 5");
    assert!(gateway.requests().is_empty());
    let five = plan(&sale, &[]);
    assert_eq!(five, four, "opt-outs are not part of the plan");
    sale.campaign(&["suppress", "add", &number]).exits(0);
    sale.run(&["--plan", &five]).exits(0);
    assert_eq!(gateway.phones(), [2, 4, 5, 6].map(phone));
}

#[test]
fn partial_run_of_a_plan_resumes_with_the_full_plan() {
    let gateway = Gateway::accepting();
    let sale = write_sale(&gateway);
    let digest = plan(&sale, &[]);
    let partial = plan(&sale, &["--limit", "2"]);
    sale.run(&["--plan", &partial, "--limit", "2"]).exits(0);
    sale.run(&["--plan", &partial]).exits(2).says("the option `--limit` changed");
    sale.run(&["--plan", &digest]).exits(0);
    assert_eq!(gateway.phones(), [2, 3, 4, 5, 6].map(phone));
}

#[test]
fn plan_of_the_rest_of_a_run_is_sent_despite_an_opt_out() {
    let gateway = Gateway::accepting();
    let sale = write_sale(&gateway);
    sale.run(&["--limit", "2", "--yes"]).exits(0);
    sale.campaign(&["suppress", "add", &format!("+{}", phone(5))]).exits(0);
    let planned = sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json();
    assert_eq!(planned["messages"], 2, "{planned}");
    sale.run(&["--plan", planned["digest"].as_str().expect("a digest")]).exits(0);
    assert_eq!(gateway.phones(), [2, 3, 4, 6].map(phone));
}

#[test]
fn sending_again_is_refused_while_a_run_is_unfinished() {
    let gateway = Gateway::accepting();
    let sale = write_sale(&gateway);
    sale.run(&["--limit", "2", "--yes"]).exits(0);
    for command in ["plan", "run"] {
        sale.campaign(&[command, "sale.yaml", "--again", "5"]).exits(2).says("again while sale@1 is unfinished");
    }
}

#[test]
fn plan_shows_samples_only_of_selected_rows() {
    let gateway = Gateway::accepting();
    let sale = write_sale(&gateway);
    let planned = sale.campaign(&["plan", "sale.yaml", "--rows", "4"]).exits(0);
    let planned = planned.says("−4  not selected now").says("row 4  sms");
    assert!(!planned.stdout.contains("row 2"), "{}", planned.details());
    sale.run(&["--limit", "2", "--yes"]).exits(0);
    let nothing_left = sale.campaign(&["plan", "sale.yaml", "--rows", "2"]).exits(0);
    assert!(!nothing_left.stdout.contains("Samples"), "{}", nothing_left.details());
}

#[test]
fn plan_is_kept_for_thirty_days() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = write_sale(&gateway);
    let digest = plan(&sale, &[]);
    // The record has a checksum, so the test moves the run's clock instead of editing the record.
    let clock = crate::support::Clock::new();
    let run_after = |days: i64| {
        let then = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(days * 24);
        let mut command = sale.command_after(&clock.set_to(then), &["run", "sale.yaml", "--plan", &digest]);
        command.stdin(std::process::Stdio::null());
        crate::support::Process::start(command).finish()
    };
    run_after(31).exits(2).says("there is no plan");
    assert!(gateway.requests().is_empty());
    // The text contains another date by now, but the plan still applies.
    run_after(29).exits(0);
    assert_eq!(gateway.phones().len(), 5);
}

#[test]
fn plan_tampered_with_in_the_ledger_sends_nothing() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = write_sale(&gateway);
    let digest = plan(&sale, &[]);
    with_ledger(&sale, async |ledger| {
        run_sql(ledger, "UPDATE plans SET record = replace(record, '\"messages\":5', '\"messages\":9')").await
    });
    sale.run(&["--plan", &digest]).exits(74).says("damaged");
    assert!(gateway.requests().is_empty());
}

#[test]
fn plan_without_recipients_suggests_no_run() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(0);
    let plan = sale.campaign(&["plan", "sale.yaml"]).exits(0).says("next: campaign check sale.yaml");
    assert!(!plan.stdout.contains("Messages") && !plan.stdout.contains("--plan"), "{}", plan.details());
}
