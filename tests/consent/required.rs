//! Required consent: every command that sends skips recipients without consent, and reports the reason.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{COLUMNS, consenting_campaign, days_ago, list_with_consents};
use crate::support::{Answer, Clock, Gateway, Process, Server, accepted, campaign, in_files, phone, rejected, until};

fn number(row: usize) -> String {
    format!("+{}", phone(row))
}

#[test]
fn row_without_consent_is_skipped_on_every_surface() {
    let (gateway, today, old) = (Gateway::accepting(), days_ago(0), days_ago(800));
    let future = days_ago(-2);
    let consents = [
        format!("так {today}"),
        format!("ні {today}"),
        format!("YES {old}"),
        String::new(),
        format!("1 {today} 10:00"),
        "yes soon".to_owned(),
        "yes".to_owned(),
        format!("yes {future}"),
    ];
    let consents: Vec<&str> = consents.iter().map(String::as_str).collect();
    let sale = consenting_campaign(&consents).through(&gateway).write();
    let counts = json!({ "planned": 2, "skipped": 6 });
    let checked = sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json();
    assert_eq!(checked["counts"], counts);
    let findings = checked["findings"].as_array().expect("findings");
    let dates = findings.iter().find(|finding| finding["rule"] == "consent-date").expect("a finding");
    assert!(dates["message"].as_str().is_some_and(|message| message.contains("3 rows (first: row 7)")), "{dates}");
    assert_eq!(sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json()["counts"], counts);
    sale.campaign(&["preview", "sale.yaml", "--rows", "3"]).exits(0).says("no consent");
    sale.run(&["--dry-run"]).exits(0).says("no consent").says("consent expired");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 6].map(phone));
    let reasons = ["", "no consent", "consent expired", "no consent", "", "no consent", "no consent", "no consent"];
    assert_eq!(sale.results().column("reason"), reasons);
    // Rehearsals skip the same recipients.
    let rehearsed = sale.run(&["--gateway", "sandbox", "--json"]).exits(0).json();
    assert_eq!(rehearsed["counts"]["skipped"], 6, "{rehearsed}");
}

#[test]
fn consents_that_nothing_requires_are_reported() {
    let list = format!("phone,name,agreed\n+{},Olena,yes\n+{},Petro,\n", phone(2), phone(3));
    let sale = campaign().with_list(&list).recipients("consent: { column: agreed }").write();
    let warning = "warning[consent-not-required]: 1 recipient has no valid consent, but gets a message";
    sale.campaign(&["check", "sale.yaml"]).exits(0).says(warning);
    for top in ["consent: required", "purpose: service"] {
        let silent = campaign().with_list(&list).recipients("consent: { column: agreed }").top(top).write();
        let output = silent.campaign(&["check", "sale.yaml"]).exits(0);
        assert!(!output.details().contains("consent-not-required"), "{}", output.details());
    }
    sale.replace("sale.yaml", "consent: { column: agreed }", "consent: required");
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("move `consent: required` to the top level");
}

#[test]
fn each_row_is_skipped_for_the_first_applicable_reason() {
    let (gateway, polish) = (Gateway::accepting(), 48_501_234_567_u64);
    let answers = [(phone(2), "yes"), (phone(3), "no"), (phone(4), "no"), (polish, "yes"), (polish + 1, "no")];
    let rows: String = answers.iter().map(|(number, answer)| format!("+{number},Olena,{answer}\n")).collect();
    let draft = campaign().with_list(&format!("phone,name,agreed\n{rows}")).recipients("consent: { column: agreed }");
    let sale = draft.top("consent: required").top("countries: [UA]").through(&gateway).write();
    sale.campaign(&["suppress", "add", &number(3)]).exits(0);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [phone(2)]);
    assert_eq!(sale.results().column("reason"), ["", "opted out", "no consent", "country", "no consent"]);
}

#[test]
fn consent_columns_without_required_consent_skip_no_recipients() {
    let gateway = Gateway::accepting();
    let list = list_with_consents(&["no", "no", "no"]);
    let sale = campaign().with_list(&list).recipients(COLUMNS).through(&gateway).write();
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 3, 4].map(phone));
}

#[test]
fn service_messages_need_no_consent() {
    let gateway = Gateway::accepting();
    let draft = consenting_campaign(&["no", "", "yes"]).top("purpose: service").through(&gateway);
    let sale = draft.profile("policy: { consent: required }").write();
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 3, 4].map(phone));
}

#[test]
fn profile_policy_requires_consent_in_every_campaign() {
    let (gateway, today) = (Gateway::accepting(), days_ago(0));
    let list = list_with_consents(&[&format!("yes {today}"), "no"]);
    let draft = || campaign().with_list(&list).through(&gateway).profile("policy: { consent: required }");
    let sale = draft().write();
    let refused = sale.run(&[]).exits(2).says("the profile `local` requires consent").says("`purpose: service`");
    assert_eq!(refused.details().matches("error[").count(), 1, "{}", refused.details());
    draft().recipients(COLUMNS).rewrite(&sale);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [phone(2)]);
}

#[test]
fn missing_consent_source_is_reported_as_one_error() {
    let gateway = Gateway::accepting();
    let draft = campaign().top("consent: required").top("timezone: UTC").top("schedule: { every: day 10:00 }");
    let sale = draft.through(&gateway).profile("policy: { consent: required }").write();
    for command in [&["check", "sale.yaml"][..], &["run", "sale.yaml"], &["schedule", "add", "sale.yaml"]] {
        let refused = sale.campaign(command).exits(2).says("consent is required, but");
        assert_eq!(refused.details().matches("error[consent]").count(), 1, "{}", refused.details());
    }
    assert!(gateway.sends().is_empty());
}

#[test]
fn invalid_consent_keys_are_reported_at_their_position() {
    let gateway = Gateway::accepting();
    for (key, says) in [
        ("consent: { at: Дата }", "does not say where consent is recorded"),
        ("consent: { column: Згода, phone: phone }", "applies only to a `file`"),
        ("consent: { column: Згода, valid_for: 2 years }", "`valid_for` needs the consent dates"),
        ("consent: { column: Згода, at: Дата згоди, valid_for: soon }", "not a period such as `24 months`"),
        ("consent: { file: no.csv }", "no.csv"),
        ("consent: { column: Згдоа }", "did you mean `Згода`?"),
    ] {
        let sale = campaign().with_list(&list_with_consents(&["yes"])).top("consent: required").recipients(key);
        let sale = sale.through(&gateway).write();
        sale.run(&[]).exits(2).says("error[consent]").says("sale.yaml:6:").says(says).says("nothing was sent");
    }
    assert!(gateway.sends().is_empty());
}

#[test]
fn consent_file_is_read_again_when_a_run_resumes() {
    let (gateway, today) = (Gateway::accepting(), days_ago(0));
    let consents = "consent: { file: consents.csv, column: answer, at: since, region: UA }";
    let sale = campaign().to(5).recipients(consents).top("consent: required").through(&gateway).write();
    let entry = |row: usize, answer: &str| format!("0{};{answer};{today}\n", phone(row) % 1_000_000_000);
    let file = |rows: &[String]| format!("Телефон;answer;since\n{}", rows.concat());
    let all: Vec<String> = (2..6).map(|row| entry(row, "так")).collect();
    sale.write("consents.csv", &file(&all));
    sale.run(&["--limit", "1"]).exits(0);
    assert_eq!(gateway.phones(), [phone(2)]);
    // Row 3 withdrew, row 4 is no longer in the file, and row 6 consented too late for this run.
    sale.write("consents.csv", &file(&[entry(2, "ні"), entry(3, "ні"), entry(5, "так"), entry(6, "так")]));
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 5].map(phone));
    assert_eq!(sale.results().column("reason"), ["", "no consent", "no consent", "", "no consent"]);
    std::fs::remove_file(sale.path("consents.csv")).expect("a file");
    sale.run(&["--again", "5"]).exits(2).says("consents.csv").says("nothing was sent");
}

#[test]
fn undated_consent_is_reported_with_its_row_in_the_consent_file() {
    let (gateway, today) = (Gateway::accepting(), days_ago(0));
    let consents = "consent: { file: consents.csv, at: since }";
    let sale = campaign().to(4).recipients(consents).top("consent: required").through(&gateway).write();
    let entry = |row: usize, since: &str| format!("{},{since}\n", number(row));
    let entries = [entry(9, &today), entry(5, "soon"), entry(3, &today), entry(4, &today)];
    sale.write("consents.csv", &format!("phone,since\n{}", entries.concat()));
    let message = "the consent in `consents.csv` has no valid date, so it counts as missing: row 3";
    sale.campaign(&["check", "sale.yaml"]).exits(0).says(message);
    sale.write("consents.csv", &format!("phone,since\n{}{}", entries.concat(), entry(2, "later")));
    let message = "the consents in `consents.csv` have no valid date, so they count as missing: 2 rows (first: row 3)";
    sale.campaign(&["check", "sale.yaml"]).exits(0).says(message);
}

#[test]
fn consent_file_row_without_a_valid_number_is_reported() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(2).recipients("consent: { file: numbers.txt }").top("consent: required");
    let sale = sale.through(&gateway).write();
    sale.write("numbers.txt", &format!("{}\n{}\n38050x\n", number(3), number(9)));
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("consent-row").says("row 3");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [phone(3)], "a file of numbers alone lists consents");
}

#[test]
fn consent_file_with_two_phone_columns_needs_a_choice() {
    let gateway = Gateway::accepting();
    let rows = [(2, 4), (9, 3)].map(|(mobile, home)| format!("{},{}\n", number(mobile), number(home))).concat();
    let draft = |consent: &str| campaign().to(3).recipients(consent).top("consent: required").through(&gateway);
    let sale = draft("consent: { file: yes.csv }").write();
    sale.write("yes.csv", &format!("Mobile,Home\n{rows}"));
    let refused = sale.run(&[]).exits(2).says("error[consent]").says("(`Mobile`, `Home`)").says("phone: \"Header\"");
    assert_eq!(refused.details().matches("error[").count(), 1, "{}", refused.details());
    draft("consent: { file: yes.csv, phone: phone }").rewrite(&sale);
    sale.write("yes.csv", &format!("phone,phone\n{rows}"));
    sale.run(&[]).exits(2).says("error[consent]").says("its own header");
    // A number in the second column counts even if the first rows of the column are empty.
    draft("consent: { file: yes.csv }").rewrite(&sale);
    sale.write("yes.csv", &format!("phone,phone 2\n{}{rows}", format!("{},\n", number(9)).repeat(2_000)));
    sale.run(&[]).exits(2).says("(`phone`, `phone 2`)");
    assert!(gateway.sends().is_empty());
    draft("consent: { file: yes.csv, phone: Home }").rewrite(&sale);
    sale.write("yes.csv", &format!("Mobile,Home\n{rows}"));
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [3, 4].map(phone));
    // A column that the campaign reads as text is not a phone column.
    draft("consent: { file: yes.csv, source: Home }").rewrite(&sale);
    sale.run(&["--again", "1"]).exits(0);
    assert_eq!(gateway.phones(), [3, 4, 2].map(phone));
}

#[test]
fn rejected_message_is_not_resent_after_consent_is_withdrawn() {
    let refusing = Answer::items(|operation| rejected(operation, "No route"));
    let gateway = Gateway::answering([refusing, Answer::items(accepted)]);
    let draft = campaign().to(3).delivery("stop_after: { same_error_in_a_row: 9 }").top("consent: required");
    let sale = draft.recipients("consent: { file: yes.csv }").through(&gateway).write();
    let all = format!("phone\n{}\n{}\n{}\n", number(2), number(3), number(4));
    sale.write("yes.csv", &all);
    sale.run(&["--rows", "2"]).exits(3);
    sale.run(&[]).exits(3);
    sale.write("yes.csv", &format!("phone\n{}\n", number(3)));
    sale.campaign(&["retry", "sale", "--yes"]).exits(3).says("consent");
    assert_eq!(gateway.phones(), [2, 3, 4].map(phone));
    sale.write("yes.csv", &all);
    sale.campaign(&["retry", "sale", "--yes"]).exits(0);
    assert_eq!(gateway.phones(), [2, 3, 4, 2].map(phone));
}

#[test]
fn test_message_needs_the_consent_of_its_number() {
    let (gateway, today) = (Gateway::accepting(), days_ago(0));
    let sale = consenting_campaign(&[&format!("yes {today}"), &format!("no {today}")]).through(&gateway).write();
    for row in [3, 9] {
        sale.campaign(&["test", "sale.yaml", "--to", &number(row)]).exits(2).says("marketing requires consent");
    }
    sale.campaign(&["test", "sale.yaml", "--to", &number(2)]).exits(0);
    assert_eq!(gateway.phones(), [phone(2)]);
}

#[cfg(target_os = "linux")]
#[test]
fn scheduled_run_skips_rows_without_consent() {
    let _files = in_files();
    let (gateway, today, clock) = (Gateway::accepting(), days_ago(0), Clock::new());
    let draft = consenting_campaign(&[&format!("yes {today}"), "no", ""]).through(&gateway);
    let sale = draft.top("timezone: UTC").top("schedule: { every: day 10:00 }").write();
    let schedule = sale.campaign(&["schedule", "add", "sale.yaml", "--json"]).exits(0).json();
    let due: Timestamp = schedule["next"][0].as_str().expect("a date").parse().expect("a date");
    let server = Server::start_after(&sale, &clock.set_to(due - SignedDuration::from_secs(2)), &[]);
    let counts = || sale.campaign(&["status", "sale", "--json"]).json()["counts"].clone();
    until("the occurrence is sent", || counts() == json!({ "accepted": 1, "skipped": 2 }));
    server.end("TERM");
    assert_eq!(gateway.phones(), [phone(2)]);
}

#[test]
fn worker_receives_only_rows_with_consent() {
    let (gateway, today) = (Gateway::accepting(), days_ago(0));
    let (yes, no) = (format!("yes {today}"), format!("no {today}"));
    let consents: Vec<&str> = (0..120).map(|row| if row % 2 == 0 { yes.as_str() } else { no.as_str() }).collect();
    let sale = consenting_campaign(&consents).batches_of(5).delivery("rate: 30/s").through(&gateway).write();
    let mut worker = Process::start(sale.command(&["worker"]));
    until("the worker looks for runs", || worker.stdout().contains("ready to send shards of runs"));
    sale.run(&["--shared"]).exits(0);
    worker.signal("TERM");
    assert!(worker.finish().exits(0).stdout.contains(": sent "));
    let mut phones = gateway.phones();
    phones.sort_unstable();
    assert_eq!(phones, (2..122).step_by(2).map(phone).collect::<Vec<_>>());
}

#[test]
fn worker_that_requires_consent_refuses_a_run_without_it() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(90).batches_of(5).delivery("rate: 30/s").through(&gateway).write();
    let profile = std::fs::read_to_string(sale.path("gateways.yaml")).expect("a profile");
    sale.write("strict.yaml", &format!("{profile}  policy: {{ consent: required }}\n"));
    let mut worker = Process::start(sale.command(&["worker", "--gateways", "strict.yaml"]));
    until("the worker looks for runs", || worker.stdout().contains("ready to send shards of runs"));
    let run = sale.start(&["--shared"]);
    until("the worker refuses", || {
        (worker.stdout() + &worker.stderr())
            .contains("requires consent on this machine, but not on the machine that started sale@1")
    });
    run.finish().exits(0);
    worker.signal("TERM");
    worker.finish();
    assert_eq!(gateway.phones().len(), 90);
}
