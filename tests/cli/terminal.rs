//! A person at a terminal: what is asked before people get messages, and what moves while they do.

use crate::support::{Gateway, Reachable as _, Terminal, campaign, live, nobody, phone, until};

#[test]
fn nobody_gets_a_message_unless_the_number_of_recipients_is_typed() {
    let sale = live();
    for typed in ["", "yes", "4", "33", "-3", "3 0"] {
        let asked = Terminal::start(sale.command(&["run", "sale.yaml", "--offline"]));
        asked.shows("through local at gateway.invalid").shows("3 planned").shows("Hello, Person 2");
        asked.shows("type the number of recipients (3) to send, anything else to leave: ").types(typed);
        asked.shows("nothing was sent: the number was not typed");
        asked.finish().exits(2);
    }
    sale.campaign(&["show", "sale", "--row", "2"]).exits(2).says("there is no run");
    let agreed = Terminal::start(sale.command(&["run", "sale.yaml", "--offline"]));
    agreed.shows("anything else to leave: ").types("3");
    agreed.shows("no connection");
    agreed.finish().exits(5);
    assert_eq!(sale.results().states(), ["planned"; 3]);
}

#[test]
fn going_on_with_a_live_run_asks_again_and_tells_the_cost_without_the_gateway() {
    let sale = live();
    sale.run(&["--yes", "--offline"]).exits(5);
    for (limit, cost) in [("9", "this costs at most 2.40"), ("2", "this costs at most 1.60")] {
        let asked = Terminal::start(sale.command(&["run", "sale.yaml", "--offline", "--limit", limit]));
        asked.shows("going on with sale@1").shows(cost).shows("type the number of recipients").types("no");
        asked.finish().exits(2);
    }
    sale.replace("gateways.yaml", "prices: { sms:", "prices: { viber:");
    let asked = Terminal::start(sale.command(&["run", "sale.yaml", "--offline"]));
    asked.shows("this has no known cost: the profile's `prices` lack `sms`").types("no");
    asked.finish().exits(2);
}

#[test]
fn a_code_for_one_number_needs_a_yes_in_letters() {
    let sale = live();
    let number = phone(2).to_string();
    let command = || sale.command(&["gateway", "otp", &number, "--gateway", "local"]);
    for typed in ["y", "", "1"] {
        let asked = Terminal::start(command());
        asked.shows("type `yes` to go on, anything else to leave: ").types(typed);
        asked.shows("nothing was sent: `yes` was not typed");
        asked.finish().exits(2);
    }
}

#[test]
fn a_narrow_terminal_breaks_no_word_of_a_summary() {
    let sale = campaign().to(3).write();
    let run = Terminal::start_on(30, sale.command(&["run", "sale.yaml"]));
    run.shows("3 rows: 3 accepted by the\r\n").shows("    gateway\r\n").shows("next ");
    run.finish().exits(0);
    let status = Terminal::start_on(30, sale.command(&["status", "sale"]));
    status.shows("3 rows: 3 accepted by the\r\n").shows("    gateway\r\n");
    status.finish().exits(0);
}

#[test]
fn an_interrupt_at_the_question_leaves_at_once_and_sends_nothing() {
    let sale = live();
    let mut asked = Terminal::start(sale.command(&["run", "sale.yaml", "--offline"]));
    asked.shows("anything else to leave: ");
    asked.signal("INT");
    asked.finish().exits(130);
    sale.campaign(&["show", "sale", "--row", "2"]).exits(2).says("there is no run");
}

#[test]
fn a_terminal_shows_a_bar_while_messages_go_out_and_the_summary_at_the_end() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(60).batches_of(10).delivery("rate: 60/s").through(&gateway).write();
    let run = Terminal::start(sale.command(&["run", "sale.yaml"]));
    run.shows("\u{1b}[").shows("accepted").shows("60 rows: 60 accepted by the gateway").shows("next: ");
    let shown = run.shown();
    let bar = shown.find("/60").or_else(|| shown.find("of 60")).unwrap_or_else(|| panic!("{shown:?}"));
    assert!(bar < shown.find("60 rows: 60 accepted by the gateway").expect("the summary"), "{shown:?}");
    run.finish().exits(0);
}

/// The speeds that a bar told, in rows per second.
fn speeds(shown: &str) -> Vec<f64> {
    let before = shown.match_indices("/s ").map(|(at, _)| shown[..at].rsplit("  ").next().unwrap_or_default());
    before.map(|rate| rate.replace(' ', "").parse().unwrap_or_else(|_| panic!("`{rate}` is no speed"))).collect()
}

#[test]
fn going_on_tells_the_speed_of_this_start_alone_with_all_numbers_in_one_style() {
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
fn a_gateway_out_of_reach_leaves_nothing_to_estimate() {
    let gateway = Gateway::accepting();
    let sale = campaign().delivery("stop_after: { unreachable: 2s }").through(&gateway).write();
    sale.replace("gateways.yaml", &gateway.base_url(), &nobody());
    let run = Terminal::start(sale.command(&["run", "sale.yaml"]));
    run.shows("waiting ").shows("the gateway took nothing for");
    let shown = run.shown();
    run.finish().exits(5);
    assert!(!shown.contains(" left") && speeds(&shown).is_empty(), "{shown}");
}

#[test]
fn the_list_of_runs_cuts_no_word_however_narrow_the_terminal_is() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(9).delivery("stop_after: { unreachable: 1s }").through(&gateway).write();
    sale.run(&["--limit", "4"]).exits(0);
    sale.replace("gateways.yaml", &gateway.base_url(), &nobody());
    sale.run(&[]).exits(5);
    let whole = sale.campaign(&["status"]).exits(0);
    for columns in [40, 80] {
        let listed = Terminal::start_on(columns, sale.command(&["status"]));
        listed.shows("sale@1");
        until("the list is whole", || listed.shown().ends_with("next: campaign status sale@1\r\n"));
        let shown = listed.shown();
        listed.finish().exits(0);
        assert!(shown.lines().all(|line| line.chars().count() <= columns.into()), "{columns}:\n{shown}");
        if columns == 80 {
            assert_eq!(shown.lines().count(), 3, "two lines a run, and what comes next:\n{shown}");
            continue;
        }
        let words = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        let missing: Vec<_> = words(&whole.stdout.lines().skip(1).collect::<Vec<_>>().join(" "))
            .into_iter()
            .filter(|word| !words(&shown.replace("rows:", "")).contains(word))
            .collect();
        assert!(missing.is_empty(), "{missing:?} in\n{shown}");
    }
}

#[test]
fn question_about_some_rows_counts_only_these() {
    let sale = live();
    let asked = Terminal::start_on(200, sale.command(&["run", "sale.yaml", "--offline", "-n", "1"]));
    asked.shows("(3 rows)").shows("this sends 1 message now; the other 2 stay planned");
    asked.shows("about 1 part,").shows("costs at most 0.80").shows("Hello, Person 2");
    asked.shows("type the number of recipients (1)").types("no");
    asked.finish().exits(2);
    let asked = Terminal::start_on(200, sale.command(&["run", "sale.yaml", "--offline", "--rows", "4"]));
    asked.shows("Hello, Person 4").types("no");
    let shown = asked.shown();
    asked.finish().exits(2);
    assert!(!shown.contains("Person 2"), "{shown}");
    sale.run(&["--yes", "--offline"]).exits(5);
    let asked = Terminal::start_on(200, sale.command(&["run", "sale.yaml", "--offline", "-n", "2"]));
    asked.shows("3 rows: 3 planned").shows("this sends 2 messages now; the other 1 stays planned").types("no");
    asked.finish().exits(2);
}
