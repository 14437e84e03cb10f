//! Findings about sending windows and end times, before any message is sent.

use crate::support::{Gateway, Terminal, campaign, live, note_on_failure};

#[test]
fn invalid_window_or_end_time_is_refused_with_its_location() {
    let gateway = Gateway::accepting();
    for (line, words) in [
        ("window: 9-20", "`9-20` is not a range of hours"),
        ("window: { days: mon-fri }", "hours"),
        ("window: { hours: 09:00-20:00, days: someday }", "`someday` is not a valid list of weekdays"),
        ("window: { hours: 09:00-20:00, except: [2026-02-30] }", "under `except` is not a valid date"),
        ("window: { hours: 09:00-20:00, zone: cty }", "the list has no column `cty`"),
        ("until: tomorrow", "`until: tomorrow`"),
        ("until: 0s", "no time for sending"),
    ] {
        let _case = note_on_failure(format!("case: {line}"));
        let sale = campaign().through(&gateway).top("timezone: Europe/Kyiv").delivery(line).write();
        for command in ["check", "run"] {
            sale.campaign(&[command, "sale.yaml"]).exits(2).says(words).says("sale.yaml:");
        }
    }
    let sale = campaign().through(&gateway).top("timezone: Europe/Kyiv").delivery("until: 2020-12-07 20:00").write();
    for command in ["check", "plan", "run"] {
        let output = sale.campaign(&[command, "sale.yaml"]).exits(2);
        output.says("`until` has passed: 2020-12-07 20:00").says("sale.yaml:");
    }
    sale.campaign(&["status"]).exits(0).says("no runs");
    for line in ["window: 09:00-20:00", "until: 2099-12-07 20:00"] {
        let sale = campaign().through(&gateway).delivery(line).write();
        sale.campaign(&["check", "sale.yaml"]).exits(2).says("`timezone` must be set").says("sale.yaml:");
    }
    assert!(gateway.sends().is_empty());
}

#[test]
fn messages_past_the_end_time_are_reported_in_advance() {
    let gateway = Gateway::accepting();
    let campaign_with_end = |line: &str| {
        let sale = campaign().to(100).through(&gateway).top("timezone: Europe/Kyiv").delivery(line).write();
        sale.replace("sale.yaml", "rate: 100000/s", "rate: 1/s");
        sale
    };
    let sale = campaign_with_end("until: 30s");
    for command in ["check", "plan"] {
        let output = sale.campaign(&[command, "sale.yaml"]).exits(0);
        output
            .says("about 30 of 100 messages can be sent before 20")
            .says("the other 70 are skipped")
            .says("sale.yaml:");
    }
    sale.campaign(&["check", "sale.yaml", "--strict"]).exits(2);
    sale.campaign(&["explain", "until-near"]).exits(0);
    for line in ["until: 100s", "until: 2099-12-07 20:00"] {
        let output = campaign_with_end(line).campaign(&["check", "sale.yaml"]).exits(0);
        assert!(!output.details().contains("until-near"), "{}", output.details());
    }
    let sale = campaign_with_end("until: 2099-12-07 20:00");
    sale.replace("sale.yaml", "until: 2099", "per_day: 1\n  window: 00:00-24:00\n  until: 2099");
    assert!(!sale.campaign(&["check", "sale.yaml"]).exits(0).details().contains("until-near"));
    let sale = campaign_with_end("until: 3d");
    sale.replace("sale.yaml", "until: 3d", "per_day: 20\n  until: 3d");
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("about 80 of 100 messages can be sent");
    assert!(gateway.sends().is_empty());
}

#[test]
fn row_with_an_unknown_zone_is_reported_and_sent() {
    let gateway = Gateway::accepting();
    let list = "phone,name,city\n380501000002,A,Europe/Kyiv\n380501000003,B,Kyiv\n380501000004,C,\n";
    let draft = campaign().with_list(list).through(&gateway).top("timezone: Europe/Kyiv");
    let sale = draft.delivery("window: { hours: 00:00-24:00, zone: city }").write();
    let checked = sale.campaign(&["check", "sale.yaml"]).exits(0);
    checked.says("the time zone is missing or not valid in 2 rows (first: row 3)").says("unknown-zone");
    let output = sale.campaign(&["check", "sale.yaml"]);
    assert!(!output.details().contains("no message uses the column `city`"), "{}", output.details());
    assert_eq!(sale.run(&["--json"]).exits(0).json()["sent"], 3);
}

#[test]
fn time_zone_advice_keeps_the_intended_offset() {
    for (cell, advice) in [
        ("GMT+2", "did you mean `Etc/GMT-2`?"),
        ("UTC-3", "did you mean `Etc/GMT+3`?"),
        ("MSK", "did you mean `Europe/Moscow`?"),
        ("Z", "did you mean `UTC`?"),
        ("EEDT", "help: write a name from the time zone database"),
    ] {
        let list = format!("phone,name,city\n380501000002,A,Europe/Kyiv\n380501000003,B,{cell}\n");
        let draft = campaign().with_list(&list).top("timezone: Europe/Kyiv");
        let sale = draft.delivery("window: { hours: 00:00-24:00, zone: city }").write();
        sale.campaign(&["check", "sale.yaml"]).exits(0).says(advice);
    }
}

#[test]
fn zone_with_an_inverted_sign_shows_its_local_time() {
    let gateway = Gateway::accepting();
    let list = "phone,name,city\n380501000002,A,Europe/Kyiv\n380501000003,B,Etc/GMT-2\n";
    let draft = campaign().with_list(list).through(&gateway).top("timezone: Etc/GMT+2");
    let sale = draft.delivery("window: { hours: 00:00-24:00, zone: city }").write();
    for command in ["check", "plan"] {
        let output = sale.campaign(&[command, "sale.yaml"]).exits(0);
        let output =
            output.says("`Etc/GMT+2` is UTC-02:00, where it is ").says("write `Etc/GMT-2`, which is UTC+02:00");
        output.says("`Etc/GMT-2` in the column `city` of row 3 is UTC+02:00, where it is ");
    }
    let live = live();
    live.replace("sale.yaml", "recipients:\n", "timezone: Etc/GMT+2\nrecipients:\n");
    let terminal = Terminal::start_on(200, live.command(&["run", "sale.yaml", "--offline"]));
    terminal.shows("note: `Etc/GMT+2` is UTC-02:00, where it is ").types("no");
    terminal.finish().exits(2);
    sale.replace("sale.yaml", "Etc/GMT+2", "Europe/Kyiv");
    assert!(!sale.campaign(&["check", "sale.yaml"]).details().contains("`Etc/GMT+2` is UTC"));
    assert!(gateway.sends().is_empty());
}

#[test]
fn windows_without_overlap_or_zone_are_refused() {
    let gateway = Gateway::accepting();
    let draft = || campaign().through(&gateway).profile("policy: { window: 09:00-12:00 }");
    let together = "the windows `12:00-20:00` and `09:00-12:00` are never open at the same time in the next year";
    let recipient_window = "window: { hours: 12:00-20:00, zone: recipient }";
    // All recipients have Ukrainian numbers.
    for (zone, window, refusal) in [
        ("Europe/Kyiv", "window: 12:00-20:00", Some(together)),
        ("Europe/Kyiv", "window: 11:59-20:00", None),
        ("Europe/Kyiv", recipient_window, Some("no messages can be sent: the window does not open within a year")),
        ("America/New_York", recipient_window, None),
        ("Europe/Kyiv", "in_flight: 1", None),
    ] {
        let _case = note_on_failure(format!("case: {zone} {window}"));
        let sale = draft().top(&format!("timezone: {zone}")).delivery(window).write();
        let output = sale.campaign(&["check", "sale.yaml"]).exits(if refusal.is_some() { 2 } else { 0 });
        if let Some(words) = refusal {
            output.says(words);
        }
    }
    draft().write().campaign(&["check", "sale.yaml"]).exits(2).says("needs the campaign's `timezone`");
}

#[test]
fn check_and_rehearsal_report_the_number_of_sending_windows() {
    let draft = campaign().to(100).top("timezone: Europe/Kyiv").delivery("rate: 60/h");
    // At this rate, 100 messages take 100 minutes. The window is open for 40 minutes a day.
    let sale = draft.delivery("window: 09:00-09:40").write();
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("at 1/min, over 3 sending windows");
    sale.run(&[]).exits(0).says("at `delivery.rate: 1/min`, spread over 3 sending windows");
    sale.replace("sale.yaml", "09:00-09:40", "09:00-20:00");
    let output = sale.campaign(&["check", "sale.yaml"]).exits(0).says("at 1/min");
    assert!(!output.details().contains("sending windows"), "{}", output.details());
}

#[test]
fn fallback_after_the_window_warns_and_suggests_a_lifetime() {
    let channels = |lifetime: &str| {
        format!(
            "  - viber: {{ signature: OlenaCo, message: Hi{lifetime} }}\n  - sms: {{ signature: OlenaCo, message: Hi }}"
        )
    };
    for (lifetime, window, has_warning) in [
        ("", "window: 09:00-20:00", true),
        (", lifetime: 12h", "window: 09:00-20:00", true),
        (", lifetime: 10h", "window: 09:00-20:00", false),
        ("", "window: 00:00-24:00", false),
        ("", "in_flight: 2", false),
    ] {
        let _case = note_on_failure(format!("case: {lifetime} {window}"));
        let draft = campaign().channels(&channels(lifetime)).top("timezone: Europe/Kyiv");
        let output = draft.delivery(window).delivery("rate: 1/s").write().campaign(&["check", "sale.yaml"]).exits(0);
        assert_eq!(output.details().contains("fallback-outside"), has_warning, "{}", output.details());
        if has_warning {
            output
                .says("if `viber` fails, `sms` might be sent after the window closes")
                .says("write `lifetime: 10h` or less");
        }
    }
}

#[test]
fn check_reports_a_fallback_of_a_variant_outside_the_window() {
    let stages =
        "[{ viber: { signature: OlenaCo, message: Hi, lifetime: 12h } }, { sms: { signature: OlenaCo, message: Hi } }]";
    let variants = format!("variants: {{ a: {{ share: 50% }}, b: {{ share: 50%, channels: {stages} }} }}");
    let draft = campaign().top("timezone: Europe/Kyiv").top(&variants).delivery("window: 09:00-20:00");
    draft.write().campaign(&["check", "sale.yaml"]).exits(0).says("fallback-outside").says("sale.yaml:3:");
}
