//! Activation of schedules: after one confirmation, a schedule runs unattended.

use jiff::Timestamp;
use serde_json::json;

use crate::support::{
    Clock, Cluster, Draft, Folder, Gateway, Process, Reachable as _, Server, campaign, in_files, live, until,
};

const WEEKLY: &str = "schedule: { every: Mon 10:00 }";

/// Drafts a campaign for every Monday through a gateway on loopback.
fn weekly_campaign(gateway: &Gateway) -> Draft {
    campaign().top("timezone: Europe/Kyiv").top(WEEKLY).through(gateway)
}

#[test]
fn schedule_is_listed_with_its_next_occurrences_until_removed() {
    let gateway = Gateway::accepting();
    let sale = weekly_campaign(&gateway).write();
    assert_eq!(sale.campaign(&["schedule", "list", "--json"]).exits(0).json_list(), json!([]));
    let output = sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    assert!(output.stdout.starts_with("✓ sale is active\n  next runs  Mon "), "{}", output.details());
    assert_eq!(output.stdout.matches("10:00 (Europe/Kyiv)").count(), 3, "{}", output.details());
    assert!(output.stdout.contains("warning: each run sends the same message"), "{}", output.details());
    let list_schedules = || sale.campaign(&["schedule", "list", "--json"]).exits(0).json_list();
    let next = sale.campaign(&["schedule", "next", "sale.yaml", "--json"]).exits(0).json_list()[0]["at"].clone();
    let file = sale.path("sale.yaml").canonicalize().unwrap();
    assert_eq!(list_schedules(), json!([{ "name": "sale", "file": file, "state": "armed", "next": next }]));
    sale.campaign(&["schedule", "pause", "sale"]).exits(0).says("until it is resumed");
    sale.campaign(&["schedule", "list"]).exits(0).says("next: campaign schedule resume sale");
    assert_eq!((&list_schedules()[0]["state"], &list_schedules()[0]["next"]), (&json!("paused"), &json!(null)));
    sale.campaign(&["schedule", "resume", "sale"]).exits(0).says("is active again; missed").says("  next run   Mon ");
    assert_eq!(list_schedules()[0]["state"], "armed");
    sale.campaign(&["schedule", "pause", "sael"]).exits(2).says("did you mean `sale`?");
    sale.campaign(&["schedule", "remove", "sale"]).exits(0);
    assert_eq!(list_schedules(), json!([]));
    sale.campaign(&["schedule", "remove", "sale"]).exits(2).says("there is no active schedule `sale`");
    assert!(gateway.requests().is_empty(), "nothing was sent");
}

#[test]
fn schedule_add_shows_how_to_cancel_an_unfinished_run() {
    let gateway = Gateway::accepting();
    let sale = weekly_campaign(&gateway).to(3).write();
    sale.run(&["--now", "--limit", "1"]).exits(0);
    let cancel = "campaign stop sale@1 --for-good";
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0).says(&format!("to cancel it: {cancel}"));
    sale.campaign(&["stop", "sale@1", "--for-good", "--yes"]).exits(0);
    let added = sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    assert!(!added.stdout.contains("sale@1"), "{}", added.details());
}

#[test]
fn text_with_an_included_date_gets_no_repeat_warning() {
    let gateway = Gateway::accepting();
    let sale =
        weekly_campaign(&gateway).channels("  - sms: { signature: OlenaCo, message: { file: news.txt } }").write();
    sale.write("news.txt", "Hello, {{ name }}! {% include \"end.txt\" %}");
    for (included, repeats) in [("Till then", true), ("News of {{ today }}", false)] {
        sale.write("end.txt", included);
        let output = sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
        assert_eq!(output.stdout.contains("warning: each run sends the same message"), repeats, "{}", output.details());
    }
}

#[test]
fn changed_campaign_is_reported_and_can_be_reactivated() {
    let gateway = Gateway::accepting();
    let sale = weekly_campaign(&gateway).channels("  - sms: { signature: OlenaCo, message: { file: hello.txt } }");
    let sale = sale.write();
    sale.write("hello.txt", "Hello, {% include \"name.txt\" %}");
    sale.write("name.txt", "{{ name }}");
    let read_state = || sale.campaign(&["schedule", "list", "--json"]).exits(0).json_list()[0]["state"].clone();
    let activate = || sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    activate();
    assert_eq!(read_state(), "armed");
    for (file, old, new) in [
        ("hello.txt", "Hello", "Goodbye"),
        ("name.txt", "{{ name }}", "you"),
        ("sale.yaml", "Mon 10:00", "Tue 10:00"),
        ("gateways.yaml", "http://127.0.0.1:", "http://localhost:"),
    ] {
        sale.replace(file, old, new);
        assert_eq!(read_state(), "changed", "{file}");
        sale.campaign(&["schedule", "list"]).exits(0).says("activate the schedule again");
        activate().says("is active again");
        assert_eq!(read_state(), "armed", "{file}");
    }
    let profile = std::fs::read_to_string(sale.path("gateways.yaml")).unwrap();
    sale.write("gateways.yaml", &format!("{}\n  rate: 200000/s\n", profile.trim_end()));
    assert_eq!(read_state(), "armed", "a different rate needs no new confirmation");
    std::fs::remove_file(sale.path("sale.yaml")).unwrap();
    assert_eq!(read_state(), "changed");
}

#[test]
fn resumed_schedule_without_further_dates_says_so() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let once = "schedule: { at: 2027-03-10 10:00 }";
    let sale = campaign().top("timezone: Europe/Kyiv").top(once).through(&gateway).write();
    let at = |moment: &str, arguments: &[&str]| {
        let clock_setup = clock.set_to(moment.parse().expect("a moment"));
        Process::start(sale.command_after(&clock_setup, arguments)).finish().exits(0)
    };
    at("2027-03-09T08:00:00Z", &["schedule", "add", "sale.yaml"]);
    at("2027-03-09T08:00:00Z", &["schedule", "pause", "sale"]);
    at("2027-03-11T08:00:00Z", &["schedule", "resume", "sale"]).says("is active again, but has no further runs");
}

#[test]
fn resumed_schedule_with_a_changed_campaign_is_not_active() {
    let gateway = Gateway::accepting();
    let sale = weekly_campaign(&gateway).write();
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    sale.campaign(&["schedule", "pause", "sale"]).exits(0);
    sale.replace("sale.yaml", "Mon 10:00", "Tue 10:00");
    let assert_changed = |reason: &str| {
        let resumed = sale.campaign(&["schedule", "resume", "sale"]).exits(0).says(reason).says("sends nothing");
        assert!(!resumed.stdout.contains("is active"), "{}", resumed.details());
        resumed.says("next: campaign schedule add ");
        let resumed = sale.campaign(&["schedule", "resume", "sale", "--json"]).exits(0).json();
        let listed = sale.campaign(&["schedule", "list", "--json"]).exits(0).json_list();
        assert_eq!((&resumed["state"], &listed[0]["state"]), (&json!("changed"), &json!("changed")));
        assert!(resumed["help"].as_str().is_some_and(|help| help.contains("campaign schedule add ")), "{resumed}");
    };
    assert_changed("the campaign file or one of its templates has changed");
    std::fs::remove_file(sale.path("sale.yaml")).unwrap();
    assert_changed("the campaign file now has errors or cannot be read");
    sale.campaign(&["schedule", "pause", "sale", "--json"]).exits(0).says("\"paused\"");
}

#[test]
fn live_schedule_needs_confirmation_and_a_named_gateway() {
    let sale = live();
    sale.replace("sale.yaml", "name: sale\n", &format!("name: sale\ntimezone: Europe/Kyiv\n{WEEKLY}\n"));
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(2).says("`--yes`");
    assert_eq!(sale.campaign(&["schedule", "list", "--json"]).exits(0).json_list(), json!([]));
    let added = sale.campaign(&["schedule", "add", "sale.yaml", "--yes", "--json"]).exits(0).json();
    assert_eq!((&added["state"], added["next"].as_array().unwrap().len()), (&json!("armed"), 3));
    let unnamed = campaign().top("timezone: Europe/Kyiv").top(WEEKLY).write();
    unnamed.campaign(&["schedule", "add", "sale.yaml"]).exits(2).says("gateway");
}

/// Asserts that refused activations create no ledger, although an activation does. `choose_ledger` sets the ledger of a
/// folder; `has_ledger` returns whether that ledger exists.
fn check_refused_activations(choose_ledger: impl Fn(Folder) -> Folder, has_ledger: impl Fn(&Folder) -> bool) {
    let gateway = Gateway::accepting();
    let sale = choose_ledger(weekly_campaign(&gateway).write());
    let assert_refused = |sale: &Folder, words: &str| {
        sale.campaign(&["schedule", "add", "sale.yaml"]).exits(2).says(words);
        assert!(!has_ledger(sale), "{words}");
    };
    std::fs::rename(sale.path("sale.csv"), sale.path("away.csv")).expect("a file");
    assert_refused(&sale, "sale.csv");
    std::fs::rename(sale.path("away.csv"), sale.path("sale.csv")).expect("a file");
    sale.replace("sale.yaml", "{{ name }}", "{{ nme }}");
    assert_refused(&sale, "nme");
    sale.replace("sale.yaml", "{{ nme }}", "{{ name }}");
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    assert!(has_ledger(&sale));
    assert_refused(&choose_ledger(campaign().top("timezone: Europe/Kyiv").top(WEEKLY).write()), "gateway");
    let unconfirmed = choose_ledger(live());
    unconfirmed.replace("sale.yaml", "name: sale\n", &format!("name: sale\ntimezone: Europe/Kyiv\n{WEEKLY}\n"));
    assert_refused(&unconfirmed, "`--yes`");
}

#[test]
fn refused_activation_leaves_no_ledger_behind() {
    let _files = in_files();
    check_refused_activations(|folder| folder, |sale| sale.path("state/ledger.sqlite").exists());
}

#[test]
fn refused_activation_creates_no_tables_in_a_database() {
    let Some(cluster) = Cluster::shared() else { return };
    let has_tables = |sale: &Folder| {
        let ledger = sale.ledger().expect("a database");
        cluster.run_sql(ledger, "SELECT to_regnamespace('campaign') IS NOT NULL") == "t"
    };
    check_refused_activations(|folder| folder.with_database(&cluster.create_database()), has_tables);
}

#[test]
fn invalid_campaign_is_not_activated() {
    let gateway = Gateway::accepting();
    let sale = weekly_campaign(&gateway).write();
    sale.replace("sale.yaml", "{{ name }}", "{{ nme }}");
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(2).says("nme");
    sale.replace("sale.yaml", "{{ nme }}", "{{ name }}");
    std::fs::rename(sale.path("sale.csv"), sale.path("away.csv")).unwrap();
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(2).says("sale.csv");
    sale.replace("sale.yaml", "every: Mon 10:00", "every: Mon 10:00, wait_for_file: 1h");
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0).says("which does not exist yet");
    sale.replace("sale.yaml", "every: Mon 10:00", "at: 2020-01-01 10:00");
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(2).says("has no further times");
    sale.write(
        "other/sale.yaml",
        &std::fs::read_to_string(sale.path("sale.yaml")).unwrap().replace("at: 2020", "at: 2120"),
    );
    sale.campaign(&["schedule", "add", "other/sale.yaml"]).exits(2).says("campaign schedule remove sale");
}

#[test]
fn interrupt_before_the_due_time_sends_nothing() {
    let gateway = Gateway::accepting();
    let sale = weekly_campaign(&gateway).write();
    let mut run = sale.start(&["--when-due"]);
    until("the countdown is shown", || run.stderr().contains("press Ctrl-C to stop waiting"));
    run.signal("INT");
    run.finish().exits(130).says("nothing was sent");
    assert!(gateway.requests().is_empty());
    let once = campaign().through(&gateway).write();
    once.run(&["--when-due"]).exits(2).says("has no `schedule`");
}

#[test]
fn missed_occurrence_is_reported_and_skipped() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let schedule = "schedule: { every: day 21:30, grace: 10m }";
    let sale = campaign().through(&gateway).top("timezone: UTC").top(schedule).write();
    let set_clock = |moment: &str| {
        let moment: Timestamp = moment.parse().expect("a moment");
        clock.advance(u32::try_from(moment.as_second() - Timestamp::now().as_second()).expect("a future time"));
    };
    set_clock("2030-01-10T21:29:00Z");
    let run = sale.command_after(&clock.adjustable(), &["run", "sale.yaml", "--no-wait", "--when-due"]);
    let run = Process::start(run);
    until("the countdown is shown", || run.stderr().contains("due Thu 10 Jan 2030, 21:30 (UTC)"));
    set_clock("2030-01-11T03:30:00Z");
    until("the run waits for the next occurrence", || run.stderr().contains("due Fri 11 Jan 2030, 21:30 (UTC)"));
    assert!(
        run.stderr()
            .contains("the run scheduled for Thu 10 Jan 2030, 21:30 (UTC) is 6 h 0 min overdue and will not be sent"),
        "{}",
        run.stderr()
    );
    assert!(gateway.requests().is_empty());
    set_clock("2030-01-11T21:39:00Z");
    run.finish().exits(0);
    assert_eq!(gateway.phones().len(), 3);
}

/// A daily campaign whose schedule is active, a minute before its next date.
fn daily_campaign(gateway: &Gateway, clock: &Clock) -> Folder {
    let schedule = "schedule: { every: day 21:30, grace: 10m }";
    let sale = campaign().through(gateway).top("timezone: UTC").top(schedule).write();
    clock.move_to("2030-01-10T21:29:00Z".parse().expect("a moment"));
    let add = sale.command_after(&clock.adjustable(), &["schedule", "add", "sale.yaml"]);
    Process::start(add).finish().exits(0);
    sale
}

/// Starts `run --when-due`, and waits until it shows its countdown.
fn start_countdown(sale: &Folder, clock: &Clock, arguments: &[&str]) -> Process {
    let arguments = [&["run", "sale.yaml", "--when-due"], arguments].concat();
    let run = Process::start(sale.command_after(&clock.adjustable(), &arguments));
    until("the countdown is shown", || run.stderr().contains("due Thu 10 Jan 2030, 21:30 (UTC)"));
    run
}

#[test]
fn rehearsal_of_a_date_leaves_its_live_run_to_the_server() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let sale = daily_campaign(&gateway, &clock);
    let run = start_countdown(&sale, &clock, &["--gateway", "sandbox"]);
    clock.move_to("2030-01-10T21:30:00Z".parse().expect("a moment"));
    run.finish().exits(0);
    assert!(gateway.requests().is_empty());
    let server = Server::start_after(&sale, &clock.adjustable(), &[]);
    until("the live run is sent", || gateway.phones().len() == 3);
    server.end("TERM").exits(0);
}

#[test]
fn run_when_due_does_not_send_while_the_schedule_is_paused() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let sale = daily_campaign(&gateway, &clock);
    let mut run = start_countdown(&sale, &clock, &[]);
    sale.campaign(&["schedule", "pause", "sale"]).exits(0);
    clock.move_to("2030-01-10T21:30:00Z".parse().expect("a moment"));
    until("the date is skipped", || run.stderr().contains("will not be sent: the schedule is paused"));
    run.signal("INT");
    run.finish().exits(130);
    assert!(gateway.requests().is_empty());
}

#[test]
fn run_when_due_follows_changes_to_the_schedule() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let sale = daily_campaign(&gateway, &clock);
    let run = start_countdown(&sale, &clock, &["--no-wait"]);
    sale.replace("sale.yaml", "21:30", "22:30");
    clock.move_to("2030-01-10T21:30:00Z".parse().expect("a moment"));
    until("the new time is shown", || run.stderr().contains("due Thu 10 Jan 2030, 22:30 (UTC)"));
    assert!(gateway.requests().is_empty());
    clock.move_to("2030-01-10T22:30:00Z".parse().expect("a moment"));
    run.finish().exits(0);
    assert_eq!(gateway.phones().len(), 3);
}

#[test]
fn run_when_due_waits_for_the_list_until_timeout() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let schedule = "schedule: { every: day 21:30, grace: 10m, wait_for_file: 1h }";
    let sale = campaign().through(&gateway).top("timezone: UTC").top(schedule).write();
    let set_clock = |moment: &str| clock.move_to(moment.parse().expect("a moment"));
    let list = std::fs::read_to_string(sale.path("sale.csv")).expect("a list");
    std::fs::remove_file(sale.path("sale.csv")).expect("a list");
    set_clock("2030-01-10T21:29:00Z");
    let run = sale.command_after(&clock.adjustable(), &["run", "sale.yaml", "--no-wait", "--when-due"]);
    let run = Process::start(run);
    until("the countdown is shown", || run.stderr().contains("due Thu 10 Jan 2030, 21:30 (UTC)"));
    set_clock("2030-01-10T21:30:00Z");
    until("the run waits for the list", || run.stderr().contains("waiting for the list until"));
    set_clock("2030-01-10T22:30:01Z");
    until("the run waits for the next occurrence", || run.stderr().contains("due Fri 11 Jan 2030, 21:30 (UTC)"));
    let late = "Thu 10 Jan 2030, 21:30 (UTC) will not be sent: its list did not arrive in time";
    assert!(run.stderr().contains(late), "{}", run.stderr());
    set_clock("2030-01-11T21:31:00Z");
    until("the run waits for the list again", || run.stderr().matches("waiting for the list until").count() == 2);
    assert!(gateway.requests().is_empty());
    sale.write("sale.csv", &list);
    run.finish().exits(0);
    assert_eq!(gateway.phones().len(), 3);
}

#[test]
fn schedule_shows_local_time_for_a_zone_with_an_inverted_sign() {
    let draft = campaign().through(&Gateway::accepting()).top("timezone: Etc/GMT+2");
    let sale = draft.top("schedule: { every: daily 10:00 }").write();
    for command in [&["schedule", "next", "sale.yaml"][..], &["schedule", "add", "sale.yaml"], &["schedule", "list"]] {
        sale.campaign(command).exits(0).says("10:00 (Etc/GMT+2, which is UTC-02:00, now ");
    }
}

#[test]
fn notify_command_of_a_changed_campaign_is_not_run() {
    let (gateway, receiver) = (Gateway::accepting(), Gateway::accepting());
    let policy = "policy: { notify: { when: [changed], url: { file: all.url }, local: true } }";
    let sale = weekly_campaign(&gateway).profile(policy).write();
    sale.write_secret("all.url", &receiver.base_url());
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    sale.replace("sale.yaml", "name: sale\n", "name: sale\nnotify: { command: [sh, -c, \"echo >> started\"] }\n");
    let server = Server::start(&sale, &[]);
    until("the profile's receiver is notified", || !receiver.requests().is_empty());
    server.end("TERM").exits(0);
    assert_eq!(receiver.requests()[0].json()["occasion"], "changed");
    assert!(!sale.path("started").exists());
}

#[test]
fn campaign_without_a_gateway_is_not_activated() {
    let sale = campaign().top("schedule: { every: day 10:00 }\ntimezone: Europe/Kyiv").write();
    let refused = sale.campaign(&["schedule", "add", "sale.yaml", "--yes"]).exits(2);
    let refused =
        refused.says("the campaign does not specify a gateway").says("set `gateway: NAME` in the campaign file");
    assert!(!refused.stderr.contains("--gateway "), "the command has no such option: {}", refused.details());
}
