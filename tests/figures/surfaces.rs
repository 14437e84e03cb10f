//! Commands, pages and files that show figures, each compared with the figures in the results.

use std::collections::BTreeMap;
use std::fs;

use calamine::{Data, Reader as _, Xlsx, open_workbook};
use serde_json::{Value, json};

use super::from_csv::Figures;
use crate::support::{Browser, Folder, Html, until};

/// Fails unless every surface shows these figures.
#[track_caller]
pub(super) fn assert_surfaces(sale: &Folder, browser: &Browser, figures: &Figures) {
    assert_status(sale, figures);
    assert_json(&sale.campaign(&["status", "sale", "--json"]).json(), figures);
    assert_report(sale, figures);
    assert_dashboard(browser, figures);
    assert_workbook(sale, figures);
}

/// Parses a line such as `3 accepted by the gateway · 9 delivered (3 read, 1 only in part)` into counts by state.
fn parse_counts(line: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for part in line.split(" · ").flat_map(|part| part.split(['(', ')', ','])).map(str::trim) {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ' ').unwrap_or(part.len());
        let (number, words) = part.split_at(end);
        if let Ok(number) = number.replace(' ', "").parse::<u64>() {
            let state = if words == "accepted by the gateway" { "accepted" } else { words };
            counts.insert(state.replace(' ', "_"), number);
        }
    }
    counts
}

/// Returns the counts as a line for people shows them.
fn displayed_counts(figures: &Figures) -> BTreeMap<String, u64> {
    let mut counts = figures.counts_by_state();
    if figures.in_part() > 0 {
        counts.insert("only_in_part".to_owned(), figures.in_part());
    }
    counts
}

/// Fails unless the line with all rows in this text has these figures.
#[track_caller]
pub(super) fn assert_lines(text: &str, figures: &Figures) {
    let start = format!("  {} rows: ", figures.rows());
    let line = text.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_else(|| panic!("no rows in:\n{text}"));
    assert_eq!(parse_counts(line), displayed_counts(figures), "{text}");
}

fn assert_status(sale: &Folder, figures: &Figures) {
    let text = sale.campaign(&["status", "sale"]).stdout;
    assert_lines(&text, figures);
    for (name, channel) in &figures.channels {
        let name = if name == "unknown" { "channel not reported" } else { name };
        let line = text.lines().find(|line| line.starts_with(&format!("  {name}: ")));
        let counts =
            parse_counts(line.unwrap_or_else(|| panic!("no {name} in:\n{text}")).split_once(": ").expect("counts").1);
        let delivered = counts.get("delivered").copied().unwrap_or_default();
        assert_eq!(delivered, channel.delivered, "{name} in:\n{text}");
    }
    let list = sale.campaign(&["status"]).stdout;
    let delivered = format!("{} delivered", figures.delivered());
    assert!(figures.delivered() == 0 || list.contains(&delivered), "{delivered}: {list}");
}

fn assert_json(status: &Value, figures: &Figures) {
    assert_eq!(status["counts"], json!(figures.states), "each row has one state");
    assert_eq!(status["delivered_or_read"], figures.delivered());
    for (name, channel) in &figures.channels {
        let reported = &status["channels"][name];
        let count = |state: &str| reported["counts"][state].as_u64().unwrap_or_default();
        assert_eq!(count("delivered") + count("read"), channel.delivered, "{name}: {status}");
        for (member, number) in
            [("read", channel.read), ("in_part", channel.in_part), ("uncertain_times", channel.uncertain)]
        {
            assert_eq!(reported[member], number, "{name}.{member}: {status}");
        }
        assert_eq!(
            reported["delivery"]["messages"].as_u64().unwrap_or_default(),
            channel.seconds.len() as u64,
            "{status}"
        );
        assert_eq!(reported["delivery"]["at_latest"].as_u64().unwrap_or_default(), channel.at_latest, "{status}");
        for (member, percent) in [("median_seconds", 50), ("p95_seconds", 95)] {
            let (value, expected) = (reported["delivery"][member].as_f64(), channel.percentile(percent));
            let is_near =
                value.zip(expected).is_none_or(|(value, expected)| (value - expected).abs() <= expected * 0.001 + 0.01);
            assert!(is_near && value.is_some() == expected.is_some(), "{name}.{member}: {value:?}, {expected:?}");
        }
    }
}

/// Parses a number that is grouped with spaces of several kinds.
fn parse_number(text: &str) -> u64 {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("not a number: {text:?}"))
}

/// Returns the number in the funnel row with this label.
fn funnel_number(html: &Html, label: &str) -> Option<u64> {
    let cells: Vec<_> = html.elements.iter().filter(|element| ["th", "td"].contains(&element.name.as_str())).collect();
    let index = cells.iter().position(|cell| cell.name == "th" && cell.words().starts_with(label))?;
    cells.get(index + 1).map(|cell| parse_number(&cell.words()))
}

fn assert_report(sale: &Folder, figures: &Figures) {
    sale.campaign(&["report", "sale", "--out", "report.html", "--lang", "en"]);
    let page = fs::read_to_string(sale.path("report.html")).expect("a page");
    let (before, rest) = page.split_once("<script type=\"application/json\" id=\"run-data\">").expect("its numbers");
    let (data, after) = rest.split_once("</script>").expect("their end");
    assert_json(&serde_json::from_str(data).expect("JSON"), figures);
    let html = Html::sound(&format!("{before}{after}"));
    // The number of a figure follows its name.
    let (mut named, mut name) = (BTreeMap::new(), None);
    for element in &html.elements {
        match element.name.as_str() {
            "dt" => name = Some(element.words()),
            "data" => named.extend(name.take().map(|name| (name, parse_number(element.attribute("value"))))),
            _ => {}
        }
    }
    assert_eq!(named["Rows in the list"], figures.rows());
    assert_eq!((named["Delivered"], named["Read"]), (figures.delivered(), figures.read()), "{named:?}");
    assert_eq!(named.get("Delivered only in part").copied().unwrap_or_default(), figures.in_part(), "{named:?}");
    assert_eq!(named["Failed or rejected"], figures.state("failed") + figures.state("rejected"), "{named:?}");
    assert_funnel(&html, figures);
}

fn assert_funnel(html: &Html, figures: &Figures) {
    assert_eq!(funnel_number(html, "Delivered"), Some(figures.delivered()));
    assert_eq!(funnel_number(html, "Read").unwrap_or_default(), figures.read());
    for (name, channel) in figures.channels.iter().filter(|(_, channel)| channel.delivered + channel.read > 0) {
        let label = format!("Delivered: {}. Read: {}.", channel.delivered, channel.read);
        assert!(html.one("main").words().contains(&label), "{name}: {label}");
    }
}

fn assert_dashboard(browser: &Browser, figures: &Figures) {
    // A page can be up to one second behind the run.
    let shown = figures.counts_by_state();
    for path in ["/runs/sale@1", "/runs/sale@1/rows?state=delivered"] {
        let mut last = BTreeMap::new();
        let agrees = || {
            last = page_counts(&browser.page(path));
            last == shown
        };
        until(path, agrees);
    }
    assert_funnel(&browser.page("/runs/sale@1"), figures);
    let expected = [figures.delivered(), figures.read()];
    for path in ["/", "/runs"] {
        until(path, || {
            let page = browser.page(path);
            let shares: Vec<u64> =
                page.all("data").iter().map(|share| parse_number(share.attribute("value"))).collect();
            shares == expected || shares.is_empty() && expected == [0, 0]
        });
    }
    let rows = browser.page("/runs/sale@1/rows?state=delivered");
    let listed = rows.all("tr").len().saturating_sub(1) as u64;
    assert_eq!(listed, figures.delivered(), "the rows behind the number");
}

/// Returns the counts of a page by state.
fn page_counts(page: &Html) -> BTreeMap<String, u64> {
    let chips = page.with_class("count").into_iter().filter_map(|chip| {
        let state = chip.attribute("class").split_once("count-")?.1.to_owned();
        Some((state, parse_number(&chip.words())))
    });
    chips.collect()
}

fn assert_workbook(sale: &Folder, figures: &Figures) {
    sale.campaign(&["results", "sale", "--out", "book.xlsx"]);
    let mut book: Xlsx<_> = open_workbook(sale.path("book.xlsx")).expect("a workbook");
    let rows = book.worksheet_range_at(0).expect("a sheet").expect("a readable file");
    let column = rows.rows().next().expect("a header").iter().position(|cell| cell == &Data::String("state".into()));
    let mut states: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows.rows().skip(1) {
        *states.entry(row[column.expect("the column")].to_string()).or_default() += 1;
    }
    assert_eq!(states, figures.states);
    let sheet = book.worksheet_range("Figures").expect("a sheet of figures");
    let mut shown: BTreeMap<(String, String), u64> = BTreeMap::new();
    for row in sheet.rows().skip(1) {
        let Data::Float(messages) = row[2] else { panic!("not a number: {row:?}") };
        shown.insert((row[0].to_string(), row[1].to_string()), messages as u64);
    }
    let lookup =
        |figure: &str, channel: &str| shown.get(&(figure.to_owned(), channel.to_owned())).copied().unwrap_or_default();
    assert_eq!(lookup("rows", ""), figures.rows());
    let (delivered, in_part) = ("delivered (including read)", "delivered only in part");
    for (figure, messages) in [(delivered, figures.delivered()), ("read", figures.read()), (in_part, figures.in_part())]
    {
        assert_eq!(lookup(figure, ""), messages, "{figure}: {shown:?}");
    }
    for (name, channel) in &figures.channels {
        let names = [delivered, "read", in_part, "delivery time is an upper bound", "delivery time uncertain"];
        let expected = [channel.delivered, channel.read, channel.in_part, channel.at_latest, channel.uncertain];
        assert_eq!(names.map(|figure| lookup(figure, name)), expected, "{name}: {shown:?}");
    }
}
