//! Interactive use at a terminal: confirmation prompts and the progress bar.

use crate::support::{Gateway, Reachable as _, Terminal, campaign, live, phone, unreachable_url, until};

#[test]
fn run_sends_only_if_the_exact_number_is_typed() {
    let sale = live();
    for typed in ["", "yes", "4", "33", "-3", "3 0"] {
        let terminal = Terminal::start(sale.command(&["run", "sale.yaml", "--offline"]));
        terminal.shows("Send 3 messages through local (gateway.invalid)?").shows("recipients 3 of 3 in sale.csv");
        terminal.shows("channels sms").shows("cost at most 2.40").shows("Hello, Person 2");
        terminal.shows("Type 3 to send, or press Enter to cancel: ").types(typed);
        terminal.shows("Cancelled. Nothing was sent.");
        let shown = terminal.shown();
        assert!(!shown.contains("ledger") && !shown.contains("error:"), "{shown}");
        terminal.finish().exits(2);
    }
    sale.campaign(&["show", "sale", "--row", "2"]).exits(2).says("there is no run");
    let confirmed = Terminal::start(sale.command(&["run", "sale.yaml", "--offline"]));
    confirmed.shows("or press Enter to cancel: ").types("3");
    confirmed.shows("cannot connect");
    confirmed.finish().exits(5);
    assert_eq!(sale.results().states(), ["planned"; 3]);
}

#[test]
fn resumed_run_asks_again_with_the_cost_and_a_sample() {
    let sale = live();
    sale.run(&["--yes", "--offline"]).exits(5);
    for (limit, number, cost) in [("9", 3, "at most 2.40"), ("2", 2, "at most 1.60")] {
        let terminal = Terminal::start(sale.command(&["run", "sale.yaml", "--offline", "--limit", limit]));
        terminal.shows(&format!("Resume sale@1: send {number} messages through local (gateway.invalid)?"));
        terminal.shows(cost).shows("Hello, Person 2").shows(&format!("Type {number} to send")).types("no");
        terminal.finish().exits(2);
    }
    sale.replace("gateways.yaml", "prices: { sms:", "prices: { viber:");
    let terminal = Terminal::start(sale.command(&["run", "sale.yaml", "--offline"]));
    terminal.shows("cost unknown: the profile has no `prices` for `sms`").types("no");
    terminal.finish().exits(2);
}

#[test]
fn prompt_of_a_resumed_run_excludes_new_opt_outs() {
    let sale = live();
    sale.run(&["--yes", "--offline"]).exits(5);
    sale.campaign(&["suppress", "add", &format!("+{}", phone(2))]).exits(0);
    let terminal = Terminal::start(sale.command(&["run", "sale.yaml", "--offline"]));
    terminal.shows("Resume sale@1: send 2 messages").shows("2 of 3 planned; the others will not get a message now");
    terminal.shows("at most 1.60").shows("Hello, Person 3").shows("Type 2 to send").types("no");
    let shown = terminal.shown();
    terminal.finish().exits(2);
    assert!(!shown.contains("Person 2"), "{shown}");
}

#[test]
fn prompt_has_a_sample_for_each_variant_and_condition() {
    let sale = live();
    sale.replace("sale.yaml", "Hello, {{ name }}", "Hello{% if name == 'Person 4' %} again{% endif %}, {{ name }}");
    let terminal = Terminal::start(sale.command(&["run", "sale.yaml", "--offline"]));
    terminal.shows("samples row 2").shows("Hello, Person 2").shows("row 4").shows("Hello again, Person 4").types("no");
    let shown = terminal.shown();
    terminal.finish().exits(2);
    assert!(!shown.contains("Person 3"), "{shown}");
    let terminal = Terminal::start(sale.command(&["run", "sale.yaml", "--offline", "--rows", "3"]));
    terminal.shows("sample row 3").shows("Hello, Person 3").types("no");
    let shown = terminal.shown();
    terminal.finish().exits(2);
    assert!(!shown.contains("again"), "{shown}");
}

#[test]
fn cell_in_a_prompt_cannot_control_the_terminal() {
    let sale = live();
    sale.write("sale.csv", "phone,name\n+380501234567,\u{1b}[2J\u{202e}Olena\n");
    let terminal = Terminal::start(sale.command(&["run", "sale.yaml", "--offline"]));
    terminal.shows("\\u{1b}[2J\\u{202e}Olena").types("no");
    terminal.finish().exits(2);
}

#[test]
fn code_call_needs_a_typed_confirmation() {
    let sale = live();
    let number = phone(2).to_string();
    let command = || sale.command(&["gateway", "otp", &number, "--gateway", "local"]);
    for typed in ["y", "", "1"] {
        let terminal = Terminal::start(command());
        terminal.shows("Type yes to call, or press Enter to cancel: ").types(typed);
        terminal.shows("Cancelled. Nothing was sent.");
        terminal.finish().exits(2);
    }
}

#[test]
fn summary_is_wrapped_between_words_on_a_narrow_terminal() {
    let sale = campaign().to(3).write();
    let run = Terminal::start_on(30, sale.command(&["run", "sale.yaml"]));
    run.shows("3 rows: 3 accepted by the\r\n").shows("    gateway\r\n").shows("next ");
    run.finish().exits(0);
    let status = Terminal::start_on(30, sale.command(&["status", "sale"]));
    status.shows("3 rows: 3 accepted by the\r\n").shows("    gateway\r\n");
    status.finish().exits(0);
}

#[test]
fn interrupt_at_the_prompt_exits_at_once_and_sends_nothing() {
    let sale = live();
    let mut terminal = Terminal::start(sale.command(&["run", "sale.yaml", "--offline"]));
    terminal.shows("or press Enter to cancel: ");
    terminal.signal("INT");
    let (finished, shown) = terminal.finish_with_output();
    finished.exits(130);
    let after = shown.rsplit_once("to cancel:").expect("the question").1;
    assert!(after.trim_start_matches(' ').starts_with("\r\n"), "the error is on a separate line: {shown:?}");
    sale.campaign(&["show", "sale", "--row", "2"]).exits(2).says("there is no run");
}

#[test]
fn terminal_shows_a_bar_while_sending_and_then_the_summary() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(60).batches_of(10).delivery("rate: 60/s").through(&gateway).write();
    let run = Terminal::start(sale.command(&["run", "sale.yaml"]));
    run.shows("\u{1b}[").shows("accepted").shows("60 rows: 60 accepted by the gateway").shows("next: ");
    let shown = run.shown();
    let bar = shown.find("/60").or_else(|| shown.find("of 60")).unwrap_or_else(|| panic!("{shown:?}"));
    assert!(bar < shown.find("60 rows: 60 accepted by the gateway").expect("the summary"), "{shown:?}");
    run.finish().exits(0);
}

/// Returns the speeds that a progress bar showed, in rows per second.
fn speeds(shown: &str) -> Vec<f64> {
    let before = shown.match_indices("/s ").map(|(at, _)| shown[..at].rsplit("  ").next().unwrap_or_default());
    before.map(|rate| rate.replace(' ', "").parse().unwrap_or_else(|_| panic!("`{rate}` is not a speed"))).collect()
}

#[test]
fn resumed_run_shows_the_speed_since_it_resumed() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(12_100).batches_of(100).through(&gateway).write();
    sale.run(&["--limit", "12000"]).exits(0);
    sale.replace("sale.yaml", "rate: 100000/s", "rate: 40/s");
    sale.replace("sale.yaml", "batch: 100", "batch: 10");
    let run = Terminal::start(sale.command(&["run", "sale.yaml"]));
    run.shows(" left").shows("12 100 rows: 12 100 accepted by the gateway");
    let shown = run.shown();
    run.finish().exits(0);
    let speeds = speeds(&shown);
    assert!(!speeds.is_empty() && speeds.iter().all(|speed| *speed < 60.0), "{speeds:?}\n{shown}");
    assert!(shown.contains(" of 12 100  12 0") && !shown.contains("12,1"), "{shown}");
}

#[test]
fn run_with_unreachable_gateway_shows_no_time_estimate() {
    let gateway = Gateway::accepting();
    let sale = campaign().delivery("stop_after: { unreachable: 2s }").through(&gateway).write();
    sale.replace("gateways.yaml", &gateway.base_url(), &unreachable_url());
    let run = Terminal::start(sale.command(&["run", "sale.yaml"]));
    run.shows("waiting ").shows("the gateway accepted no requests for");
    let shown = run.shown();
    run.finish().exits(5);
    assert!(!shown.contains(" left") && speeds(&shown).is_empty(), "{shown}");
}

#[test]
fn run_list_never_breaks_a_word_at_any_width() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(9).delivery("stop_after: { unreachable: 1s }").through(&gateway).write();
    sale.run(&["--limit", "4"]).exits(0);
    sale.replace("gateways.yaml", &gateway.base_url(), &unreachable_url());
    sale.run(&[]).exits(5);
    let output = sale.campaign(&["status"]).exits(0);
    for columns in [40, 80] {
        let terminal = Terminal::start_on(columns, sale.command(&["status"]));
        terminal.shows("sale@1");
        until("the list is complete", || terminal.shown().ends_with("next: campaign status sale@1\r\n"));
        let shown = terminal.shown();
        terminal.finish().exits(0);
        assert!(shown.lines().all(|line| line.chars().count() <= columns.into()), "{columns}:\n{shown}");
        let words = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        let missing: Vec<_> = words(&output.stdout.lines().skip(1).collect::<Vec<_>>().join(" "))
            .into_iter()
            .filter(|word| !words(&shown.replace("rows:", "")).contains(word))
            .collect();
        assert!(missing.is_empty(), "{missing:?} in\n{shown}");
    }
}

#[test]
fn prompt_for_selected_rows_counts_only_those_rows() {
    let sale = live();
    let terminal = Terminal::start_on(200, sale.command(&["run", "sale.yaml", "--offline", "-n", "1"]));
    terminal.shows("Send 1 message").shows("1 of 3 in sale.csv; 2 more remain planned");
    terminal.shows("at most 0.80").shows("Hello, Person 2");
    terminal.shows("Type 1 to send").types("no");
    terminal.finish().exits(2);
    let terminal = Terminal::start_on(200, sale.command(&["run", "sale.yaml", "--offline", "--rows", "4"]));
    terminal.shows("Hello, Person 4").types("no");
    let shown = terminal.shown();
    terminal.finish().exits(2);
    assert!(!shown.contains("Person 2"), "{shown}");
    sale.run(&["--yes", "--offline"]).exits(5);
    let terminal = Terminal::start_on(200, sale.command(&["run", "sale.yaml", "--offline", "-n", "2"]));
    terminal.shows("3 rows: 3 planned").shows("2 of 3 planned; the others will not get a message now").types("no");
    terminal.finish().exits(2);
}
