//! The rows of a run on the dashboard: filters, columns of the list, downloads, and the title of the campaign.

use crate::support::{
    Answer, Browser, Folder, Gateway, Html, Reachable as _, Server, accepted, campaign, phone, rejected, until,
};

/// Creates a campaign with a title that was sent to eight recipients; every third row and row 4 are rejected.
fn titled_campaign() -> (Folder, Gateway) {
    let gateway = Gateway::always(Answer::items(|operation| {
        let to = operation["phone"].to_string();
        let row = (2..20).find(|row| to.contains(&phone(*row).to_string())).expect("a row");
        match row % 3 {
            0 => rejected(operation, "No route to this number"),
            _ if row == 4 => rejected(operation, "Unknown sender"),
            _ => accepted(operation),
        }
    }));
    let sale = campaign().to(8).through(&gateway).top("title: Autumn sale").write();
    sale.run(&["--keep-going"]).exits(3);
    (sale, gateway)
}

fn listed_rows(page: &Html) -> Vec<u32> {
    let links = page.all("a").into_iter().filter(|link| link.attribute("href").contains("/rows/"));
    links.filter_map(|link| link.text.trim().parse().ok()).collect()
}

fn sign_in(sale: &Folder, server: &Server) -> Browser {
    let link = sale.campaign(&["serve", "link", "--json", "--for", "Olha", "--decide"]).exits(0).json();
    Browser::with_link(server, link["url"].as_str().expect("an address"))
}

#[test]
fn failure_reason_links_to_exactly_its_rows() {
    let (sale, _gateway) = titled_campaign();
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    let page = browser.page("/runs/sale@1");
    let reasons = page.all("a").into_iter().filter(|link| link.attribute("href").contains("&reason="));
    let mut found = Vec::new();
    for link in reasons {
        let rows = browser.page(link.attribute("href"));
        found.push((link.words(), listed_rows(&rows)));
    }
    let expected = [("No route to this number", vec![3, 6, 9]), ("Unknown sender", vec![4])];
    assert_eq!(found, expected.map(|(reason, rows)| (reason.to_owned(), rows)));
    let by_channel = |channel: &str| listed_rows(&browser.page(&format!("/runs/sale@1/rows?channel={channel}")));
    assert_eq!(by_channel("sms"), (2..=9).collect::<Vec<_>>());
    assert_eq!(by_channel("viber"), [0_u32; 0]);
    assert_eq!(browser.get("/runs/sale@1/rows?channel=pigeon").status, 404);
}

#[test]
fn chosen_column_of_the_list_is_shown() {
    let (sale, _gateway) = titled_campaign();
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    assert!(!browser.page("/runs/sale@1/rows").one("main").words().contains("Person 3"));
    let page = browser.page("/runs/sale@1/rows?column=name&state=rejected");
    let words = page.one("main").words();
    assert!(words.contains("Person 3") && words.contains("Person 4") && !words.contains("Person 5"), "{words}");
}

#[test]
fn phone_numbers_in_a_list_column_are_masked() {
    let gateway = Gateway::accepting();
    let list = "phone,name,contact\n380501000002,Olha,+38 (067) 123-45-67\n";
    let sale = campaign().with_list(list).through(&gateway).write();
    sale.replace("sale.yaml", "Hello, {{ name }}", "Hello, {{ name }}, call {{ contact }}");
    sale.run(&[]).exits(0);
    let server = Server::start(&sale, &[]);
    let (viewer, olha) = (Browser::signed_in(&server), sign_in(&sale, &server));
    for (path, shown) in [
        ("/runs/sale@1/rows?column=contact", "&numbers=shown"),
        ("/runs/sale@1/rows/2", "?numbers=shown"),
        ("/runs/sale@1/preview", "?numbers=shown"),
    ] {
        let shown = format!("{path}{shown}");
        let words = |browser: &Browser, path: &str| browser.page(path).one("main").words();
        for masked in [words(&viewer, path), words(&viewer, &shown), words(&olha, path)] {
            assert!(masked.contains("…67") && !masked.contains("123-45"), "{masked}");
        }
        assert!(words(&olha, &shown).contains("+38 (067) 123-45-67"), "{shown}");
    }
}

#[test]
fn only_deciders_can_download_the_filtered_rows() {
    let (sale, _gateway) = titled_campaign();
    let server = Server::start(&sale, &[]);
    let olha = sign_in(&sale, &server);
    let viewer = Browser::signed_in(&server);
    for path in ["/runs/sale@1/export", "/runs/sale@1/export?format=xlsx"] {
        assert_eq!(viewer.get(path).status, 403, "{path}");
    }
    assert!(!viewer.get("/runs/sale@1/rows").body.contains("/export"));
    let page = olha.page("/runs/sale@1/rows?state=rejected&reason=No+route+to+this+number");
    let links = page.all("a").into_iter().filter(|link| link.attribute("href").contains("/export?"));
    let links: Vec<&str> = links.map(|link| link.attribute("href")).collect();
    assert_eq!(links.len(), 2, "{links:?}");
    let download = olha.get(links[0]);
    assert_eq!(download.header("content-disposition"), "attachment; filename=\"sale@1-rejected.csv\"");
    let rows: Vec<&str> = download.body.lines().filter(|line| line.contains("No route to this number")).collect();
    assert_eq!(rows.len(), 3, "{}", download.body);
    for row in [3, 6, 9] {
        assert!(download.body.contains(&phone(row).to_string()), "{row}: {}", download.body);
    }
    assert!(!download.body.contains(&phone(4).to_string()), "{}", download.body);
    assert_eq!(olha.get("/runs/sale@1/export?format=pdf").status, 404);
    let log = server.end("TERM").exits(0).stderr;
    assert!(!log.contains("50100000"), "{log}");
}

#[test]
fn title_of_the_campaign_is_shown_and_changes_no_message() {
    let (sale, gateway) = titled_campaign();
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    assert_eq!(browser.page("/runs/sale@1").one("h1").words(), "Autumn sale");
    for (path, named) in
        [("/", "Autumn sale sale@1"), ("/runs", "Autumn sale sale@1"), ("/campaigns", "Autumn sale sale 1 sale@1")]
    {
        let words = browser.page(path).one("main").words();
        assert!(words.contains(named), "{path}: {words}");
    }
    sale.campaign(&["report", "sale", "--out", "report.html"]).exits(0);
    let report = std::fs::read_to_string(sale.path("report.html")).expect("a page");
    assert!(report.contains("<h1>Autumn sale</h1>"));
    assert!(gateway.sends().iter().all(|send| !format!("{send:?}").contains("Autumn")), "the gateway does not get it");
}

#[test]
fn changed_title_does_not_prevent_a_run_from_resuming() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(8).through(&gateway).top("title: Autumn sale").write();
    sale.run(&["--limit", "4"]).exits(0);
    sale.replace("sale.yaml", "Autumn sale", "Winter sale");
    sale.run(&[]).exits(0);
    assert_eq!(sale.results().counts()["accepted"], 8);
    assert_eq!(sale.results().rows[0]["run"], "sale@1", "the same run continues");
}

#[test]
fn variant_comparison_counts_the_rows_of_each_variant() {
    let gateway = Gateway::accepting();
    let variants = "variants: { a: { share: 50% }, b: { share: 50% } }";
    let sale = campaign().to(60).through(&gateway).top(variants).write();
    sale.run(&[]).exits(0);
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    let links: Vec<String> =
        browser.page("/runs/sale@1").all("a").iter().map(|link| link.attribute("href").to_owned()).collect();
    assert!(links.contains(&"/runs/sale@1/variants".to_owned()), "{links:?}");
    let words = browser.page("/runs/sale@1/variants").one("main").words();
    let results = sale.results();
    for variant in ["a", "b"] {
        let sent = results.rows.iter().filter(|row| row["variant"] == variant).count();
        assert!(sent > 0 && words.contains(&format!("{variant} {sent} 0% (0 to ")), "{variant} {sent}: {words}");
        let listed = browser.page(&format!("/runs/sale@1/rows?variant={variant}")).one("main").words();
        assert!(listed.contains(&format!(" of {sent}.")), "{listed}");
    }
    let plain = campaign().write();
    plain.run(&[]).exits(0);
    let server = Server::start(&plain, &[]);
    assert_eq!(Browser::signed_in(&server).get("/runs/sale@1/variants").status, 404);
}

/// The rows of `sale@1` that the dashboard lists for this query, and the rows of the downloaded file.
fn listed_and_exported(browser: &Browser, query: &str) -> (Vec<u32>, Vec<u32>) {
    let listed = listed_rows(&browser.page(&format!("/runs/sale@1/rows{query}")));
    let file = browser.get(&format!("/runs/sale@1/export{query}")).body;
    let exported = file.lines().filter_map(|line| line.split_once(',')?.0.parse().ok()).collect();
    (listed, exported)
}

#[test]
fn cancelled_rows_are_listed_and_found_by_their_reason() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(8).batches_of(2).delivery("stop_after: { unreachable: 1s }").through(&gateway).write();
    sale.run(&["--limit", "4"]).exits(0);
    sale.replace("gateways.yaml", &gateway.base_url(), "http://127.0.0.1:9");
    sale.run(&[]).exits(5);
    sale.campaign(&["stop", "sale", "--for-good", "--yes"]).exits(0);
    let server = Server::start(&sale, &[]);
    let olha = sign_in(&sale, &server);
    let (all, cancelled) = ((2..=9).collect::<Vec<_>>(), (6..=9).collect::<Vec<_>>());
    assert_eq!(listed_and_exported(&olha, ""), (all.clone(), all));
    for query in ["?state=skipped", "?reason=cancelled", "?state=skipped&reason=cancelled"] {
        assert_eq!(listed_and_exported(&olha, query), (cancelled.clone(), cancelled.clone()), "{query}");
    }
    assert_eq!(listed_rows(&olha.page("/runs/sale@1/rows?state=accepted&reason=cancelled")), [0_u32; 0]);
}

#[test]
fn rows_that_a_new_run_replaced_are_found_by_their_reason() {
    let gateway = Gateway::accepting();
    let draft = || campaign().through(&gateway);
    let sale = draft().to(8).write();
    sale.run(&["--limit", "4"]).exits(0);
    draft().to(9).rewrite(&sale);
    sale.run(&["--accept-changes"]).exits(0);
    let server = Server::start(&sale, &[]);
    let olha = sign_in(&sale, &server);
    let replaced: Vec<u32> = (6..=9).collect();
    assert_eq!(listed_and_exported(&olha, "?reason=replaced"), (replaced.clone(), replaced));
}

#[test]
fn blank_lines_of_the_list_are_not_rows() {
    let gateway = Gateway::accepting();
    let phones: Vec<String> = (2..8).map(|row| format!("{},x", phone(row))).collect();
    let sale = campaign().with_list(&format!("phone,name\n{}\n\n\n", phones.join("\n\n,\n"))).through(&gateway).write();
    sale.run(&["--limit", "2"]).exits(0);
    let server = Server::start(&sale, &[]);
    let olha = sign_in(&sale, &server);
    let (all, rest) = (vec![2, 5, 8, 11, 14, 17], vec![8, 11, 14, 17]);
    assert_eq!(listed_and_exported(&olha, ""), (all.clone(), all.clone()));
    assert_eq!(listed_and_exported(&olha, "?state=planned"), (rest.clone(), rest.clone()));
    for (row, status) in [(2, 200), (3, 404), (8, 200), (18, 404)] {
        assert_eq!(olha.get(&format!("/runs/sale@1/rows/{row}")).status, status, "row {row}");
    }
    sale.campaign(&["stop", "sale", "--for-good", "--yes"]).exits(0);
    until("the cancelled rows are listed", || {
        listed_and_exported(&olha, "?reason=cancelled") == (rest.clone(), rest.clone())
    });
    assert_eq!(listed_and_exported(&olha, ""), (all.clone(), all));
}
