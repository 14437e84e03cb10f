//! The run report: one file that matches the ledger at any time and shows no phone numbers.

use std::fs;

use serde_json::{Value, json};

use crate::receipts::{Hooked, operations};
#[cfg(target_os = "linux")]
use crate::support::Clock;
use crate::support::{
    Answer, Browser, Folder, Gateway, Html, Process, Results, Server, campaign, change_ledger, in_files, rejected,
    until,
};

const VIBER_THEN_SMS: &str = "  - viber: { signature: OlenaCo, message: \"Hi {{ name }}\" }\n  - sms: { signature: OlenaCo, message: \"Hi {{ name }}, {{ phone }}\" }";

/// A written report: its text, its page and its embedded data.
struct Report {
    page: String,
    html: Html,
    data: Value,
}

fn write_report(sale: &Folder, options: &[&str]) -> Report {
    sale.campaign(&[&["report", "sale", "--out", "report.html"], options].concat()).exits(0);
    let page = fs::read_to_string(sale.path("report.html")).expect("a page");
    let (before, rest) = page.split_once("<script type=\"application/json\" id=\"run-data\">").expect("its numbers");
    let (data, after) = rest.split_once("</script>").expect("their end");
    let plain_page = format!("{before}{after}");
    let is_self_contained = !plain_page.contains("<script") && !plain_page.contains("<img") && !page.contains("url(");
    assert!(is_self_contained, "a script or an external resource");
    let html = Html::sound(&plain_page);
    Report { data: serde_json::from_str(data).expect("JSON"), html, page }
}

impl Report {
    /// Returns the bars of a section, each with its nesting depth and its value.
    fn bars(&self, part: &str) -> Vec<(usize, u64)> {
        let start = self.page.find(&format!("id=\"run-{part}\"")).expect("the part");
        let table = &self.page[start..];
        let table = &table[..table.find("</table>").expect("its table")];
        let rows = table.split("<tr class=\"depth-").skip(1);
        let row = |row: &str| {
            let value = row.split("<data value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a number");
            (row[..1].parse().expect("a depth"), value.parse().expect("a number"))
        };
        rows.map(row).collect()
    }
}

/// Counts the rows of the results by state.
fn counts(results: &Results) -> Value {
    let mut counts = serde_json::Map::new();
    for state in results.states() {
        let count = counts.get(state).and_then(Value::as_u64).unwrap_or_default();
        counts.insert(state.to_owned(), (count + 1).into());
    }
    counts.into()
}

/// Builds a receipt for a channel, `after` seconds after sending.
fn receipt(channel: &str, status: &str, sent: &str, after: i64) -> String {
    let updated = sent.parse::<jiff::Timestamp>().expect("a time") + jiff::SignedDuration::from_secs(after);
    json!({ "success": true, "type": channel, "status": status, "updated": updated.to_string() }).to_string()
}

/// Creates a run with twelve messages delivered by Viber, and five delivered by SMS after Viber failed. Two messages
/// failed and one was rejected. One row was skipped and one was invalid.
fn delivered_run() -> Hooked {
    let mut list = "phone,name\n".to_owned();
    (2..22).for_each(|row| list += &format!("{},Person {row}\n", 380_501_000_000_u64 + row));
    list += "380501000002,Again\nnobody,Nobody\n";
    let refuse = |operation: &Value| match operation["phone"].as_u64() == Some(380_501_000_021) {
        true => rejected(operation, "No route to 380501000021"),
        false => crate::support::accepted(operation),
    };
    let gateway = Gateway::always(Answer::items(refuse));
    let draft = campaign().with_list(&list).recipients("max_invalid: 100%").channels(VIBER_THEN_SMS).through(&gateway);
    let draft = draft.top("timezone: Europe/Kyiv").top("limits: { cost: 100 }");
    let hooked = Hooked::write(draft.profile("prices: { sms: 0.80, viber: 0.50 }").profile("currency: UAH"));
    let server = hooked.serve();
    hooked.sale.run(&["--keep-going"]).exits(3);
    let results = hooked.results();
    let sent: Vec<String> = results.column("submitted_at").into_iter().map(str::to_owned).collect();
    for (index, (operation, sent)) in operations(&gateway).iter().zip(&sent).enumerate() {
        let receipts = match index {
            0..4 => vec![("viber", "DELIVERED", 0), ("viber", "READ", 0)],
            4..12 => vec![("viber", "DELIVERED", 0)],
            12..17 => vec![("viber", "EXPIRED", 3), ("sms", "DELIVERED", 5)],
            17..19 => vec![("sms", "UNDELIVERABLE", 0)],
            _ => vec![],
        };
        for (channel, status, after) in receipts {
            assert_eq!(hooked.post(operation, &receipt(channel, status, sent, after)), 200);
        }
    }
    drop(server);
    hooked
}

#[test]
fn figures_agree_with_status_and_results_and_cover_every_row() {
    let hooked = delivered_run();
    let report = write_report(&hooked.sale, &["--lang", "en"]);
    let status = hooked.sale.campaign(&["status", "sale", "--json"]).json();
    for member in ["counts", "channels", "rows", "parts", "state"] {
        assert_eq!(report.data[member], status[member], "{member}");
    }
    assert_eq!(report.data["counts"], counts(&hooked.results()));
    assert_eq!(report.data["figures"]["counts"], report.data["counts"]);
    // Each level splits into excluded and remaining rows: the list into skipped and planned, planned into rejected and
    // accepted, and so on.
    let funnel = report.bars("funnel");
    assert_eq!(funnel, [(0, 22), (1, 1), (1, 1), (0, 20), (1, 1), (0, 19), (1, 2), (0, 17), (0, 4)]);
    let (reasons, figures) = (report.bars("failures"), &report.data["figures"]);
    assert_eq!(reasons.iter().map(|(_, rows)| rows).sum::<u64>(), 3);
    assert_eq!(figures["failures"]["rows"], 3);
    let way = &figures["ways"][0];
    assert_eq!(way["channels"][0]["reached"], 19, "{way}");
    assert_eq!((&way["channels"][1]["reached"], &way["untold"]), (&json!(7), &json!(0)), "{way}");
    let arrived = figures["arrived"]["points"].as_array().expect("points");
    let count_arrivals = |channel: &str, first: bool| -> u64 {
        let kinds = arrived.iter().flat_map(|point| point["by"].as_array().expect("kinds"));
        let matching = kinds.filter(|kind| kind["channel"] == channel && kind["first"] == first);
        matching.map(|kind| kind["messages"].as_u64().expect("a number")).sum()
    };
    assert_eq!((count_arrivals("viber", true), count_arrivals("sms", false)), (12, 5));
    // 19 messages cost at most 0.80 each, and one was rejected.
    let money = &figures["money"];
    assert_eq!((&money["used_at_most"], &money["given_back"]), (&json!(15.2), &json!(0.8)));
    assert_eq!((&money["budget"], &money["currency"]), (&json!(100), &json!("UAH")));
    let page = report.html.one("main").words();
    for words in
        ["Finished", "20 of 20 messages processed", "Europe/Kyiv", "15.20\u{a0}UAH", "Viber → SMS", "UNDELIVERABLE"]
    {
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.contains(&words), "{words}: {page}");
    }
}

#[test]
fn report_hides_numbers_even_in_gateway_text_unless_requested() {
    let hooked = delivered_run();
    let report = write_report(&hooked.sale, &[]);
    assert!(!report.page.contains("380501") && !report.page.contains("0501000"), "{}", report.page);
    assert!(report.page.contains("No route to …21"), "the gateway's words");
    assert!(report.html.with_class("phone-viber").len() == 5 && report.page.contains("Hi "));
    let unmasked = write_report(&hooked.sale, &["--unmasked"]);
    assert!(unmasked.page.contains("+380501000002") && !unmasked.page.contains("No route to 380501000021"));
}

#[test]
fn report_of_an_ended_run_is_reproducible_and_reads_no_messages() {
    let hooked = delivered_run();
    hooked.sale.campaign(&["reconcile", "sale", "--all"]);
    let first = write_report(&hooked.sale, &[]);
    let again = write_report(&hooked.sale, &[]);
    assert_eq!(first.data, again.data);
    change_ledger(&hooked.sale, "CREATE TABLE aside AS SELECT * FROM envelopes; DELETE FROM envelopes");
    let later = write_report(&hooked.sale, &[]);
    assert_eq!((&later.data, later.bars("funnel")), (&first.data, first.bars("funnel")));
}

#[cfg(target_os = "linux")]
#[test]
fn report_of_a_purged_run_shows_its_stored_figures() {
    let _files = in_files();
    let hooked = delivered_run();
    hooked.sale.campaign(&["reconcile", "sale", "--all"]);
    let before = write_report(&hooked.sale, &["--lang", "en"]);
    let (clock, then) = (Clock::new(), jiff::Timestamp::now() + jiff::SignedDuration::from_hours(500 * 24));
    let purge = hooked.sale.command_after(&clock.set_to(then), &["purge", "--older-than", "400d", "--yes"]);
    Process::start(purge).finish().exits(0);
    let after = write_report(&hooked.sale, &["--lang", "en"]);
    assert_eq!(after.data["figures"], before.data["figures"]);
    assert_eq!(after.bars("funnel"), before.bars("funnel"));
    assert!(after.html.one("main").words().contains("Purged") && after.html.with_class("phone").is_empty());
    change_ledger(&hooked.sale, "DELETE FROM figures");
    let bare = write_report(&hooked.sale, &["--lang", "en"]);
    assert_eq!((&bare.data["figures"], &bare.data["counts"]), (&Value::Null, &before.data["counts"]));
    assert!(bare.html.one("main").words().contains("Only these counts are stored"));
    let sum: u64 = bare.bars("funnel").iter().skip(1).take(1).map(|(_, rows)| rows).sum();
    assert_eq!(sum, 2, "skipped rows are shown without reasons");
}

#[test]
fn report_shows_a_run_in_progress_and_how_to_resolve_doubt() {
    let gateway = Gateway::answering([Answer::items(crate::support::accepted), Answer::Held]);
    let draft = campaign().to(10).channels(VIBER_THEN_SMS).through(&gateway).batches_of(5).one_at_a_time();
    let hooked = Hooked::write(draft);
    let run = hooked.sale.start(&[]);
    crate::support::until("the second request arrives", || gateway.sends().len() == 2);
    let live = write_report(&hooked.sale, &["--lang", "en"]);
    assert_eq!(
        (&live.data["state"], &live.data["counts"]),
        (&json!("sending"), &json!({ "planned": 4, "sending": 5, "accepted": 1 }))
    );
    assert!(live.html.one("main").words().contains("Sending. 1 of 10 messages processed"));
    run.kill();
    let broken = write_report(&hooked.sale, &["--lang", "en"]);
    assert_eq!(broken.data["counts"], json!({ "planned": 4, "in_doubt": 5, "accepted": 1 }));
    let doubt = &broken.data["figures"]["doubt"];
    let rows: Vec<u64> =
        doubt["rows"].as_array().expect("rows").iter().map(|row| row["row"].as_u64().expect("a row")).collect();
    assert_eq!(rows, [3, 4, 5, 6, 7]);
    let page = broken.html.one("main").words();
    for words in
        ["5 rows are in doubt", "campaign reconcile sale@1", "campaign resolve sale@1 --rows N --as send-again"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    gateway.release();
}

#[test]
fn gateway_text_is_escaped_in_reports_in_both_languages() {
    let hostile = "</script><script>alert(1)</script><b onclick='x'>\u{202e}";
    let gateway = Gateway::always(Answer::items(move |operation| rejected(operation, hostile)));
    let sale = campaign().to(4).through(&gateway).write();
    sale.run(&["--keep-going"]).exits(3);
    for (language, title) in [("en", "Failure reasons"), ("uk", "Причини невдач")] {
        let report = write_report(&sale, &["--lang", language]);
        assert_eq!(report.html.one("html").attribute("lang"), language);
        assert!(report.html.all("b").is_empty());
        let main = report.html.one("main").text.clone();
        assert!(main.contains("</script><script>alert(1)</script><b onclick='x'>\\u{202e}"), "{main}");
        assert!(report.html.all("h2").iter().any(|heading| heading.words() == title));
        assert_eq!(report.data["figures"]["failures"]["by"][0]["rows"], 4);
    }
}

#[test]
fn every_chart_has_a_label_and_a_table() {
    let hooked = delivered_run();
    let report = write_report(&hooked.sale, &["--lang", "en"]);
    let charts: Vec<_> = report.html.elements.iter().filter(|element| element.attribute("role") == "img").collect();
    assert!(charts.len() >= 4, "{}", charts.len());
    assert!(charts.iter().all(|chart| !chart.attribute("aria-label").trim().is_empty()));
    // The technical details are collapsible too.
    assert_eq!(report.html.with_class("chart").len() + 1, report.html.all("details").len());
    let silent = report.html.all("svg").into_iter().filter(|svg| {
        let is_labelled_or_hidden = svg.attribute("role") == "img" || svg.attribute("aria-hidden") == "true";
        !is_labelled_or_hidden && !["plot", "labels"].contains(&svg.attribute("class"))
    });
    assert_eq!(silent.count(), 0, "an empty chart is hidden from screen readers");
}

#[test]
fn json_output_has_the_report_path_and_misuse_writes_nothing() {
    let sale = campaign().write();
    sale.run(&[]).exits(0);
    let output = sale.campaign(&["report", "sale", "--out", "out.html", "--json"]).exits(0).json();
    assert_eq!((&output["html"], &output["exit"], &output["run"]), (&json!("out.html"), &json!(0), &json!("sale@1")));
    assert_eq!(output["figures"]["counts"], output["counts"]);
    sale.campaign(&["report", "nothing", "--out", "a.html"]).exits(2);
    sale.campaign(&["report", "sale", "--out", "sale.csv"]).exits(2).says("not a page written by campaign");
    assert!(!sale.path("a.html").exists());
}

#[test]
fn remaining_budget_counts_all_runs_of_the_edition() {
    let gateway = Gateway::accepting();
    let draft = campaign().to(3).through(&gateway).top("limits: { cost: 10 }");
    let sale = draft.profile("prices: { sms: 0.80 }").profile("currency: UAH").write();
    sale.run(&[]).exits(0);
    assert_eq!(write_report(&sale, &[]).data["figures"]["money"]["budget_left"], json!(7.6));
    let list = fs::read_to_string(sale.path("sale.csv")).expect("the list");
    sale.write("sale.csv", &format!("{list}380501000098,Vira\n380501000099,Nadia\n"));
    sale.replace("sale.yaml", "cost: 10", "cost: 5");
    sale.run(&[]).exits(0);
    let second = write_report(&sale, &["--lang", "en"]);
    let money = &second.data["figures"]["money"];
    assert_eq!((&second.data["run"], &money["used_at_most"]), (&json!("sale@2"), &json!(1.6)));
    assert_eq!((&money["budget"], &money["budget_left"]), (&json!(5), &json!(1.0)));
    assert!(second.html.one("main").words().contains("Remaining edition budget 1.00 UAH"));
    sale.campaign(&["report", "sale@1", "--out", "report.html"]).exits(0);
    let first = fs::read_to_string(sale.path("report.html")).expect("a page");
    assert!(!first.contains("budget_left"), "the limit has changed since");
}

#[test]
fn unreported_parts_make_the_total_a_minimum() {
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
    let sale = campaign().to(6).batches_of(5).one_at_a_time().through(&gateway).write();
    sale.run(&[]).exits(4);
    let words = |page: &Html, id: &str| {
        let named = ["dl", "section"].into_iter().flat_map(|tag| page.all(tag)).find(|part| part.attribute("id") == id);
        named.expect("the part").words()
    };
    let in_report = words(&write_report(&sale, &[]).html, "run-numbers");
    assert!(in_report.contains("Billed parts, at least 1"), "{in_report}");
    let server = Server::start(&sale, &[]);
    let on_page = words(&Browser::signed_in(&server).page("/runs/sale@1"), "standing");
    assert!(on_page.contains("at least 1 billed part,"), "{on_page}");
    let gateway = Gateway::accepting();
    let all = campaign().to(6).through(&gateway).write();
    all.run(&[]).exits(0);
    let in_report = words(&write_report(&all, &[]).html, "run-numbers");
    assert!(in_report.contains("Billed parts 6"), "{in_report}");
}

#[test]
fn billed_parts_include_every_attempt() {
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead, Answer::Accept]);
    let hooked = Hooked::write(campaign().to(2).batches_of(1).one_at_a_time().through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(4);
    let sent = hooked.results().column("submitted_at")[0].to_owned();
    assert_eq!(hooked.post(&operations(&gateway)[0], &receipt("sms", "UNDELIVERABLE", &sent, 0)), 200);
    hooked.sale.campaign(&["retry", "sale", "--state", "failed"]).exits(4).says("at least 2 parts");
    assert_eq!(hooked.results().column("parts"), ["2", ""]);
    let report = write_report(&hooked.sale, &["--lang", "en"]);
    let status = hooked.sale.campaign(&["status", "sale", "--json"]).json();
    assert_eq!((&report.data["parts"], &status["parts"]), (&json!(2), &json!(2)));
    let page = report.html.one("main").words();
    assert!(page.contains("Billed parts, at least 2"), "{page}");
    drop(server);
}

#[test]
fn cost_counts_messages_without_a_price_separately() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).through(&gateway).profile("currency: UAH").write();
    sale.run(&["--limit", "1"]);
    sale.replace("gateways.yaml", "currency: UAH", "prices: { sms: 0.80 }\n  currency: UAH");
    sale.run(&[]).exits(0);
    let report = write_report(&sale, &["--lang", "en"]);
    let money = &report.data["figures"]["money"];
    assert_eq!((&money["used_at_most"], &money["unpriced"]), (&json!(1.6), &json!(1)));
    let note = "1.60 UAH without 1 message whose price is unknown";
    let page = report.html.one("main").words();
    assert_eq!(page.matches(note).count(), 2, "{page}");
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    until("the overview names the message", || browser.page("/").one("main").words().contains(note));
    assert!(browser.page("/runs").one("main").words().contains(note));
}

#[test]
fn report_is_written_beside_the_results_by_default() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(2).through(&gateway).write();
    sale.run(&[]).exits(0);
    let output = sale.campaign(&["report", "sale", "--json"]).exits(0).json();
    let default_path = sale.path("results/sale.report.html");
    assert!(output["html"].as_str().is_some_and(|html| html.ends_with("results/sale.report.html")), "{output}");
    let page = |path: &std::path::Path| std::fs::read_to_string(path).expect("a page");
    assert!(page(&default_path).contains("sale@1"));
    sale.run(&["--again", "2"]).exits(0);
    sale.campaign(&["report", "sale@1"]).exits(0).says("results/sale@1.report.html");
    sale.campaign(&["report", "sale", "--lang", "uk"]).exits(0).says("results/sale.report.html");
    assert!(page(&default_path).contains("sale@2") && !page(&default_path).contains("sale@1"));
    assert!(page(&sale.path("results/sale@1.report.html")).contains("sale@1"));
    sale.write("results/sale.report.html", "my own page");
    sale.campaign(&["report", "sale"]).exits(2).says("is not a page written by campaign");
    assert_eq!(page(&default_path), "my own page");
}
