//! The overview of the dashboard: what needs attention, and figures by period.

use std::fs;

use jiff::{SignedDuration, Timestamp};

use crate::support::{Answer, Browser, Clock, Gateway, Server, campaign, until};

fn main_text(browser: &Browser) -> String {
    browser.page("/").one("main").words()
}

#[test]
fn nearly_exhausted_budget_needs_attention() {
    let gateway = Gateway::accepting();
    let draft = campaign().to(3).through(&gateway).top("limits: { cost: 5 }");
    let sale = draft.profile("prices: { sms: 0.80 }").profile("currency: UAH").write();
    sale.run(&[]).exits(0);
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    until("the cost is counted", || main_text(&browser).contains("Maximum cost 2.40 UAH"));
    assert!(!main_text(&browser).contains("of its budget"));
    let list = fs::read_to_string(sale.path("sale.csv")).expect("the list");
    sale.write("sale.csv", &format!("{list}380501000098,Vira\n380501000099,Nadia\n"));
    sale.run(&[]).exits(0);
    until("both runs of the edition count", || {
        main_text(&browser).contains("sale@2 has used 4.00 UAH of its budget of 5.00 UAH")
    });
    assert!(!main_text(&browser).contains("sale@1 has used"), "one budget, one line");
    assert!(main_text(&browser).contains("Maximum cost 4.00 UAH"));
}

#[test]
fn messages_in_doubt_need_attention() {
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
    let sale = campaign().to(10).batches_of(4).one_at_a_time().delivery("timeout: 10s").through(&gateway).write();
    sale.run(&[]).exits(4);
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    let page = browser.page("/");
    let alerts: Vec<String> = page.with_class("attention").iter().map(|alert| alert.words()).collect();
    assert!(alerts.iter().any(|alert| alert.contains("4 messages in sale@1 are in doubt")), "{alerts:?}");
    assert!(page.all("a").iter().any(|link| link.attribute("href") == "/runs/sale@1#run-doubt"));
}

#[test]
fn missing_receipts_need_attention_after_a_while() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(0);
    for (minutes, expects_warning) in [(5, false), (60, true), (10 * 24 * 60, false)] {
        let now = Timestamp::now() + SignedDuration::from_mins(minutes);
        let server = Server::start_after(&sale, &format!("export TZ=UTC; {}", clock.set_to(now)), &[]);
        let words = main_text(&Browser::signed_in(&server));
        assert_eq!(
            words.contains("No delivery receipts have arrived for sale@1"),
            expects_warning,
            "{minutes}: {words}"
        );
    }
}

#[test]
fn period_figures_count_runs_by_their_start_time() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let sale = campaign().to(5).through(&gateway).write();
    sale.run(&[]).exits(0);
    for (days, today, week) in [
        (0, "Today Sent 5 1 run", "Last 7 days Sent 5 1 run"),
        (3, "Today Sent 0 0 runs", "Last 7 days Sent 5 1 run"),
        (8, "Today Sent 0 0 runs", "Last 7 days Sent 0 0 runs"),
    ] {
        let now = Timestamp::now() + SignedDuration::from_hours(24 * days);
        let server = Server::start_after(&sale, &format!("export TZ=UTC; {}", clock.set_to(now)), &[]);
        let words = main_text(&Browser::signed_in(&server));
        assert!(words.contains(today) && words.contains(week), "{days}: {words}");
    }
}
