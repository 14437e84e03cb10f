//! Contents of dashboard pages: runs, rows, messages, campaigns and schedules.

use jiff::ToSpan as _;
use jiff::civil::Date;

use crate::support::{
    Answer, Browser, Clock, Element, Gateway, Html, Process, Server, accepted, campaign, change_ledger, in_files,
    phone, rejected, until,
};

/// Returns the rows that a page lists.
fn rows(page: &Html) -> Vec<u32> {
    let links = page.all("a").into_iter().filter(|link| link.attribute("href").contains("/rows/"));
    links.filter_map(|link| link.text.trim().parse().ok()).collect()
}

/// Creates a gateway that rejects messages to the rows for which `is_rejected` holds, with this error.
fn gateway_rejecting(error: &'static str, is_rejected: fn(usize) -> bool) -> Gateway {
    Gateway::always(Answer::items(move |operation| {
        let to = operation["phone"].to_string();
        let row = (2..400).find(|row| to.contains(&phone(*row).to_string())).expect("a row");
        if is_rejected(row) { rejected(operation, error) } else { accepted(operation) }
    }))
}

fn main_text(page: &Html) -> String {
    page.one("main").words()
}

#[test]
fn dashboard_sections_show_their_records() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).top("timezone: UTC").top("schedule: { every: daily 10:00 }").write();
    sale.run(&["--now"]).exits(0);
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    sale.campaign(&["suppress", "add", "+380501000999"]).exits(0);
    for number in ["+380501000999", "+380501000998"] {
        sale.campaign(&["suppress", "add", number, "--campaign", "sale"]).exits(0);
    }
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    for (path, expected) in [
        ("/", vec!["sale@1", "Finished", "Sent 10 1 run", "10:00 sale", "Nothing needs your attention"]),
        ("/runs", vec!["1 run", "sale@1", "Finished"]),
        ("/schedules", vec!["sale", "Active"]),
        (
            "/opt-outs",
            vec!["1 recipient opted out of marketing messages. 1 other recipient opted out of single campaigns."],
        ),
        ("/replies", vec!["No replies to review"]),
        ("/campaigns", vec!["sale", "sale@1", "Active"]),
    ] {
        let page = browser.page(path);
        let words = main_text(&page);
        for expected in expected {
            assert!(words.contains(expected), "{path}, {expected}: {words}");
        }
        let current = page.all("a").into_iter().filter(|link| link.attribute("aria-current") == "page");
        assert_eq!(current.map(|link| link.attribute("href")).collect::<Vec<_>>(), [path]);
    }
    let page = browser.page("/schedules");
    let due = page.with_class("due");
    assert!(!due.is_empty() && due.iter().all(|due| due.words().ends_with("sale")), "{}", main_text(&page));
    let preview = browser.page("/schedules/sale/preview");
    assert!(preview.with_class("phone-sms")[0].words().contains("Hello, Person 2"));
    let last_days = main_text(&browser.page("/opt-outs"));
    assert!(last_days.ends_with(" 2"), "each recipient counts once a day: {last_days}");
}

#[test]
fn rehearsals_are_hidden_by_default() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(0);
    sale.run(&["--gateway", "sandbox"]).exits(0);
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    let links = |path: &str| -> Vec<String> {
        let page = browser.page(path);
        let links = page.all("a").into_iter().map(|link| link.attribute("href"));
        links.filter(|link| link.starts_with("/runs/sale@")).map(str::to_owned).collect()
    };
    assert_eq!(links("/runs"), ["/runs/sale@1"]);
    assert_eq!(links("/runs?everything=1"), ["/runs/sale@2", "/runs/sale@1"]);
    assert!(main_text(&browser.page("/runs")).contains("Show 1 test or rehearsal"));
    assert!(main_text(&browser.page("/")).contains("Sent 3 1 run"), "the rehearsal is not counted");
}

#[test]
fn lookups_and_verification_calls_are_not_counted_as_sent_messages() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(0);
    for command in ["lookup", "otp"] {
        sale.campaign(&["gateway", command, "+380501234567", "--yes"]).exits(0);
    }
    let server = Server::start(&sale, &[]);
    assert!(main_text(&Browser::signed_in(&server).page("/")).contains("Sent 3 1 run"));
}

#[test]
fn run_list_supports_filters_sorting_and_campaign_groups() {
    let gateway = gateway_rejecting("No route", |row| row == 3);
    let sale = campaign().through(&gateway).write();
    let file = std::fs::read_to_string(sale.path("sale.yaml")).expect("the campaign");
    sale.write("offer.yaml", &format!("name: offer\n{}", file.replace("name: sale\n", "")));
    sale.campaign(&["run", "offer.yaml", "--yes"]).exits(3);
    sale.run(&[]).exits(3);
    for _ in 0..4 {
        sale.run(&["--again", "3"]).exits(3);
    }
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    let names = |path: &str| -> Vec<String> {
        let page = browser.page(path);
        let rows = page.all("th").into_iter().filter(|cell| cell.attribute("scope") == "row");
        rows.map(|cell| cell.words()).collect()
    };
    assert_eq!(names("/runs"), ["sale@5", "sale@4", "sale@3", "offer@1"], "a campaign shows its latest runs");
    assert!(main_text(&browser.page("/runs")).contains("2 earlier runs of this campaign"));
    assert_eq!(names("/runs?campaign=sale"), ["sale@5", "sale@4", "sale@3", "sale@2", "sale@1"]);
    assert_eq!(names("/runs?campaign=offer&sort=started&order=ascending"), ["offer@1"]);
    assert_eq!(names("/runs?sort=campaign&order=ascending")[0], "offer@1");
    assert_eq!(names("/runs?state=finished&days=1").len(), 4);
    assert_eq!(names("/runs?state=stopped"), [""; 0]);
    assert!(main_text(&browser.page("/runs?state=stopped")).contains("No runs match these filters"));
}

#[test]
fn search_finds_runs_and_rows_and_keeps_text_without_matches() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(0);
    sale.campaign(&["suppress", "add", "+380501000003"]).exits(0);
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    let id = sale.results().rows[1]["id"].clone();
    for (wanted, page) in
        [("sale@1", "/runs/sale@1"), ("sale", "/runs?campaign=sale&everything=1"), (id.as_str(), "/runs/sale@1/rows/3")]
    {
        let found = browser.send("/search", &[("wanted", wanted)]);
        assert_eq!((found.status, found.header("location")), (303, page), "{wanted}");
    }
    let found = browser.send("/search", &[("wanted", "380501000003")]).page();
    let words = main_text(&found);
    assert!(words.contains("sale@1") && words.contains("opted out of all marketing messages"), "{words}");
    assert_eq!(rows(&found), [3]);
    let nothing = browser.send("/search", &[("wanted", "Olena <b>")]);
    assert_eq!(nothing.status, 422);
    let page = nothing.page();
    assert!(main_text(&page).contains("Nothing was found"));
    let field = page.all("input").into_iter().find(|field| field.attribute("id") == "wanted").expect("a field");
    assert_eq!(field.attribute("value"), "Olena <b>");
}

#[test]
fn chosen_language_is_kept_in_a_cookie() {
    let sale = campaign().write();
    sale.run(&[]).exits(0);
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    let from = format!("http://{}/runs?days=7", server.address());
    let chosen = browser.request("GET", "/language/uk", &[("Referer", &from)], "");
    assert_eq!((chosen.status, chosen.header("location")), (303, "/runs?days=7"));
    assert!(chosen.header("set-cookie").starts_with("campaign-language=uk; Path=/; "), "{chosen:?}");
    let double = from.replace("/runs", "//evil.example");
    let backslash = from.replace("/runs", "/\\evil.example");
    for referer in ["http://evil.example/runs", double.as_str(), backslash.as_str(), "nonsense", ""] {
        let chosen = browser.request("GET", "/language/en", &[("Referer", referer)], "");
        assert_eq!((chosen.status, chosen.header("location")), (303, "/"), "{referer}");
    }
    let headers = [("Accept-Language", "en"), ("Cookie", "campaign-language=uk")];
    assert_eq!(browser.request("GET", "/runs", &headers, "").page().one("html").attribute("lang"), "uk");
    assert_eq!(browser.get("/language/de").status, 404);
}

#[test]
fn page_is_in_the_language_of_the_browser() {
    let sale = campaign().write();
    sale.run(&[]).exits(0);
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    for (languages, code, expected) in [("uk-UA,uk;q=0.9,en;q=0.8", "uk", "Завершено"), ("de", "en", "Finished")]
    {
        let page = browser.request("GET", "/runs/sale@1", &[("Accept-Language", languages)], "").page();
        assert_eq!(page.one("html").attribute("lang"), code);
        assert!(main_text(&page).contains(expected), "{}", main_text(&page));
    }
}

#[test]
fn run_times_are_shown_in_the_campaign_time_zone() {
    let gateway = gateway_rejecting("No route", |row| row == 3);
    // No other zone has this offset.
    let sale = campaign().to(4).top("timezone: Asia/Kathmandu").through(&gateway).write();
    sale.run(&["--keep-going"]).exits(3);
    let sent: jiff::Timestamp = sale.results().rows[0]["submitted_at"].parse().expect("a time");
    let local_time = sent.in_tz("Asia/Kathmandu").expect("a zone").strftime("%H:%M").to_string();
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    for path in ["/runs/sale@1", "/runs/sale@1/rows", "/runs/sale@1/rows/2"] {
        let page = browser.page(path);
        assert_eq!(page.with_class("clock")[0].words(), "Time zone: Asia/Kathmandu", "{path}");
        assert!(
            path == "/runs/sale@1" || main_text(&page).contains(&local_time),
            "{path}: {local_time} {}",
            main_text(&page)
        );
    }
    for path in ["/", "/runs", "/campaigns"] {
        let page = browser.page(path);
        assert_eq!(page.with_class("clock")[0].words(), "Time zone: Asia/Kathmandu", "{path}: one clock");
        assert!(main_text(&page).contains(&local_time), "{path}: {local_time} {}", main_text(&page));
    }
    let page = browser.page("/runs/sale@1");
    let links = page.all("a").into_iter().filter(|link| link.attribute("href") == "/runs/sale@1/rows?state=rejected");
    assert_eq!(links.count(), 2, "one link in the rows by state, one in the failures");
}

#[test]
fn rows_by_state_are_paginated_without_duplicates() {
    let gateway = gateway_rejecting("No route", |row| row % 4 == 3);
    let sale = campaign().to(300).batches_of(60).through(&gateway).write();
    sale.run(&["--keep-going"]).exits(3);
    let rejected_rows: Vec<u32> = sale
        .results()
        .rows
        .iter()
        .filter(|row| row["state"] == "rejected")
        .map(|row| row["row"].parse().expect("a row"))
        .collect();
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    let (mut listed_rows, mut path) = (Vec::new(), "/runs/sale@1/rows?state=rejected".to_owned());
    loop {
        let page = browser.page(&path);
        listed_rows.extend(rows(&page));
        let next = page.all("a").into_iter().find(|link| link.attribute("rel") == "next");
        let Some(next) = next else { break };
        path = next.attribute("href").to_owned();
        assert!(path.contains("from="), "a page begins at a row: {path}");
    }
    assert_eq!(listed_rows, rejected_rows);
    assert!(main_text(&browser.page("/runs/sale@1/rows?state=rejected")).contains("No route"));
    // The last page of all rows starts at the requested row and links back.
    let last = browser.page("/runs/sale@1/rows?from=280");
    assert_eq!(rows(&last), (280..=301).collect::<Vec<_>>());
    let back = last.all("a").into_iter().find(|link| link.attribute("rel") == "prev").expect("a link back");
    assert_eq!(back.attribute("href"), "/runs/sale@1/rows?from=230");
    let beyond = browser.page("/runs/sale@1/rows?state=rejected&from=302");
    assert_eq!(rows(&beyond), [0_u32; 0]);
    assert!(main_text(&beyond).contains("No more rows"), "{}", main_text(&beyond));
    let nothing = browser.get("/runs/sale@1/rows?state=nothing");
    assert_eq!(nothing.status, 404);
    assert_eq!(nothing.page().one("h1").words(), "Page not found");
}

#[test]
fn numbers_on_pages_are_masked_unless_requested_by_a_decider() {
    let gateway = gateway_rejecting("380501000003 is blocked", |row| row == 3);
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(3);
    let server = Server::start(&sale, &[]);
    let link = sale.campaign(&["serve", "link", "--for", "Olha", "--decide", "--json"]).exits(0).json();
    let decider = Browser::with_link(&server, link["url"].as_str().expect("an address"));
    let viewer = Browser::signed_in(&server);
    let pages = ["/", "/runs/sale@1", "/runs/sale@1/rows", "/runs/sale@1/rows/3", "/runs/sale@1/preview"];
    for path in pages {
        for shown in ["", "?numbers=shown"] {
            let body = viewer.get(&format!("{path}{shown}")).body;
            assert!(!body.contains("50100000"), "{path}{shown}: {body}");
        }
        assert!(!decider.get(path).body.contains("50100000"), "{path}");
    }
    assert!(decider.get("/runs/sale@1/rows").body.contains("…02"));
    // Sent messages are shown as they were sent, even if the current campaign excludes their recipients.
    assert!(viewer.page("/runs/sale@1/preview").with_class("phone-sms")[0].words().contains("Hello, Person 2"));
    for path in
        ["/runs/sale@1/rows?numbers=shown", "/runs/sale@1/rows/3?numbers=shown", "/runs/sale@1/preview?numbers=shown"]
    {
        assert!(decider.get(path).body.contains("+380501000003"), "{path}");
    }
}

#[test]
fn message_can_be_found_by_each_of_its_identifiers() {
    let gateway = gateway_rejecting("No route", |row| row == 3);
    let sale = campaign().one_at_a_time().batches_of(1).through(&gateway).write();
    sale.run(&[]).exits(3);
    let results = sale.results();
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    for wanted in ["3", &results.rows[1]["id"]] {
        let found = browser.send("/runs/sale@1/find", &[("wanted", wanted)]);
        assert_eq!((found.status, found.header("location")), (303, "/runs/sale@1/rows/3"), "{wanted}");
    }
    let found = browser.send("/runs/sale@1/find", &[("wanted", "+380 50 100 00 04")]);
    assert_eq!((found.status, rows(&found.page())), (200, vec![4]));
    let found = browser.send("/search", &[("wanted", "3"), ("run", "sale@1")]);
    assert_eq!(found.header("location"), "/runs/sale@1/rows/3", "the search of a page about a run");
    assert_eq!(browser.send("/runs/sale@1/find", &[("wanted", "Olena")]).status, 422);
    let history = main_text(&browser.page("/runs/sale@1/rows/3"));
    for expected in ["Row 3", "Rejected", "Sent alone in request", &results.rows[1]["id"], "No route"] {
        assert!(history.contains(expected), "{expected}: {history}");
    }
    assert_eq!(browser.get("/runs/sale@1/rows/99").status, 404);
}

#[test]
fn run_shows_its_frozen_and_current_campaign_with_findings() {
    let channels = "  - sms: { signature: OlenaCo, message: \"Hello, {{ name }}: http://shop.example\" }";
    let sale = campaign().channels(channels).write();
    sale.run(&[]).exits(0);
    sale.replace("sale.yaml", "Hello", "Good day");
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    let page = browser.page("/runs/sale@1/campaign");
    let shown: Vec<String> = page.all("pre").into_iter().map(|pre| pre.text.clone()).collect();
    assert!(shown[0].contains("Good day, {{ name }}") && shown[1].contains("Hello, {{ name }}"), "{shown:?}");
    assert!(main_text(&page).contains("insecure-link"), "{}", main_text(&page));
    std::fs::remove_file(sale.path("sale.yaml")).expect("removed");
    assert!(main_text(&browser.page("/runs/sale@1/campaign")).contains("no longer exists"));
}

#[test]
fn no_page_fetches_a_remote_list() {
    let sale = campaign().write();
    sale.run(&[]).exits(0);
    sale.replace("sale.yaml", "file: sale.csv", "command: [sh, -c, \"touch fetched; cat sale.csv\"]");
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    let words = main_text(&browser.page("/runs/sale@1/campaign"));
    assert!(words.contains("was not checked"), "{words}");
    browser.get("/runs/sale@1/preview");
    assert!(!sale.path("fetched").exists());
}

#[test]
fn row_page_shows_the_message_unless_the_row_was_excluded() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let list = "phone,name\n380501000002,Olha\n380501000002,Again\nnobody,Nobody\n";
    let sale = campaign().with_list(list).recipients("max_invalid: 100%").through(&gateway).write();
    sale.run(&[]).exits(3);
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    for query in ["", "?message=shown"] {
        let page = |row: u32| browser.page(&format!("/runs/sale@1/rows/{row}{query}"));
        assert!(page(2).with_class("phone-sms")[0].words().contains("Hello, Olha"));
        for (row, why) in [(3, "duplicate number"), (4, "letters instead of a phone number")] {
            assert!(page(row).with_class("phone-sms").is_empty() && main_text(&page(row)).contains(why), "{row}");
        }
    }
    for row in ["0", "1", "5", "-1", "4294967296", "x"] {
        assert_eq!(browser.get(&format!("/runs/sale@1/rows/{row}")).status, 404, "{row}");
    }
    assert!(browser.page("/runs/sale@1/rows").one("main").words().contains("Rows 1 to 3 of 3."));
    std::fs::remove_file(sale.path("state/runs/sale@1/frozen.json")).expect("the copy");
    let history = main_text(&browser.page("/runs/sale@1/rows/2"));
    assert!(history.contains("Accepted by the gateway"), "the history is shown without copies: {history}");
}

#[test]
fn occurrences_are_shown_in_the_campaign_time_zone() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    // The first and the last date shown. The first is in the campaign's time zone; the last is within thirty days by
    // the machine's clock.
    for (zone, moment, first, last) in [
        // Kathmandu is 5:45 ahead of UTC: the clock shows 00:19 on the 11th, then 00:21.
        ("Asia/Kathmandu", "2030-01-10T18:34:00Z", "2030-01-11", "2030-02-08"),
        ("Asia/Kathmandu", "2030-01-10T18:36:00Z", "2030-01-12", "2030-02-08"),
        // Pago Pago is 11:00 behind UTC: the clock shows 00:19 on the 10th, 13:00 on the 9th, and 00:00 on the 2nd.
        ("Pacific/Pago_Pago", "2030-01-10T11:19:00Z", "2030-01-10", "2030-02-08"),
        ("Pacific/Pago_Pago", "2030-01-10T00:00:00Z", "2030-01-10", "2030-02-08"),
        ("Pacific/Pago_Pago", "2030-01-02T11:00:00Z", "2030-01-02", "2030-01-31"),
    ] {
        let schedule = "schedule: { every: daily 00:20 }";
        let sale = campaign().through(&gateway).top(&format!("timezone: {zone}")).top(schedule).write();
        let set = format!("export TZ=UTC; {}", clock.set_to(moment.parse().expect("a moment")));
        Process::start(sale.command_after(&set, &["schedule", "add", "sale.yaml"])).finish().exits(0);
        let server = Server::start_after(&sale, &set, &[]);
        let page = Browser::signed_in(&server).page("/schedules");
        assert!(page.with_class("due").iter().all(|due| due.words().ends_with("00:20 sale")), "{}", main_text(&page));
        let day =
            |pair: &[Element]| (pair[0].attribute("class") == "due").then(|| pair[1].attribute("datetime").to_owned());
        let dates: Vec<String> = page.elements.windows(2).filter_map(day).collect();
        let (first, last): (Date, Date) = (first.parse().expect("a date"), last.parse().expect("a date"));
        let days = first.series(1.day()).take_while(|date| *date <= last);
        assert_eq!(dates, days.map(|date| date.to_string()).collect::<Vec<_>>(), "{zone} at {moment}");
        assert_eq!(page.with_class("clock")[0].words(), format!("Time zone: {zone}"));
    }
}

#[test]
fn sections_report_damaged_records_and_show_the_rest() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).top("timezone: UTC").top("schedule: { every: daily 10:00 }").write();
    sale.run(&["--now"]).exits(0);
    sale.run(&["--gateway", "sandbox", "--now"]).exits(0);
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    sale.campaign(&["suppress", "add", "+380501000999"]).exits(0);
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    change_ledger(&sale, "UPDATE runs SET edition = 'damaged' WHERE number = 1");
    change_ledger(&sale, "UPDATE schedules SET digest = 'damaged'");
    change_ledger(&sale, "UPDATE opt_outs SET phone = phone + 1");
    for (path, expected) in [
        ("/", vec!["sale@1 cannot be read", "The schedule sale is damaged", "an entry in the suppression list"]),
        ("/runs?everything=1", vec!["sale@1 cannot be read", "sale@2"]),
        ("/schedules", vec!["Damaged: nothing is sent", "the schedule sale is corrupt"]),
        ("/opt-outs", vec!["an entry in the suppression list"]),
        ("/campaigns", vec!["sale@2"]),
    ] {
        // The overview does not wait long for data that is slow to read, so it can be incomplete at first.
        until(path, || {
            let words = main_text(&browser.page(path));
            expected.iter().all(|expected| words.contains(expected))
        });
    }
    assert_eq!(browser.get("/runs/sale@2").status, 200);
    assert_eq!(browser.get("/runs/sale@1").status, 409);
}
