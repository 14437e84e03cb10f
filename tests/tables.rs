//! Lookup tables (`data`) in message texts.

use crate::support::{Draft, Folder, Gateway, campaign, phone};

const STORES: &str = "City;address;hours\nKyiv;Khreshchatyk 1;9-20\nLviv;\"Rynok 2; yard\";10-18\n";

/// A draft with one recipient in each of these cities, with this message and the table of stores.
fn shopper_draft(cities: &[&str], message: &str) -> Draft {
    let rows = cities.iter().enumerate().map(|(index, city)| format!("{},{city}\n", phone(index + 2)));
    let list = format!("phone,city\n{}", rows.collect::<String>());
    let sms = format!("  - sms: {{ signature: OlenaCo, message: \"{message}\" }}");
    campaign().with_list(&list).channels(&sms).top("data: { stores: { file: stores.csv, key: City } }")
}

fn campaign_with_stores(draft: Draft, gateway: &Gateway) -> Folder {
    let sale = draft.through(gateway).write();
    sale.write("stores.csv", STORES);
    sale
}

/// The texts that the gateway received, in order.
fn sent_texts(gateway: &Gateway) -> Vec<String> {
    let operations = gateway.sends().iter().flat_map(|request| request.operations()).collect::<Vec<_>>();
    operations.iter().map(|operation| operation["sms_message"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn message_uses_the_table_entry_of_its_row() {
    let gateway = Gateway::accepting();
    let sale = campaign_with_stores(shopper_draft(&["Lviv", "Kyiv"], "Come to {{ stores[city].address }}"), &gateway);
    sale.campaign(&["preview", "sale.yaml"]).exits(0).says("Come to Rynok 2; yard");
    sale.run(&[]).exits(0);
    assert_eq!(sent_texts(&gateway), ["Come to Rynok 2; yard", "Come to Khreshchatyk 1"]);
}

#[test]
fn unusual_cells_of_a_table_are_reported_like_cells_of_the_list() {
    let gateway = Gateway::accepting();
    let sale = shopper_draft(&["Lviv", "Kyiv"], "Come to {{ stores[city].address }}, {{ stores[city].hours }}");
    let sale = campaign_with_stores(sale, &gateway);
    sale.write("stores.csv", "City;address;hours;note\nKyiv;;None;\nLviv;Rynok 2;\"9&ndash;20\";None\n");
    let report = sale.campaign(&["check", "sale.yaml"]).exits(0);
    let report = report.says("empty-cell").says("the column `address` is empty in 1 row of the table `stores`");
    let report = report.says("the column `hours` contains `None` in 1 row of the table `stores`").says("html-entity");
    assert!(!report.details().contains("`note`"), "no text uses this column: {}", report.details());
    sale.campaign(&["preview", "sale.yaml"]).exits(0).says("empty-cell");
    sale.write("stores.csv", STORES);
    let report = sale.campaign(&["check", "sale.yaml"]).exits(0);
    assert!(!report.details().contains("of the table"), "{}", report.details());
}

#[test]
fn table_columns_that_only_an_included_text_uses_are_checked() {
    let gateway = Gateway::accepting();
    let sale = campaign_with_stores(shopper_draft(&["Lviv", "Kyiv"], "Hi{% include 'more.txt' %}"), &gateway);
    sale.write("templates/more.txt", "!{% include 'store.txt' %}");
    sale.write("templates/store.txt", " Come to {{ stores[city].address }}, {{ stores[city].hours }}");
    sale.write("stores.csv", "City;address;hours\nKyiv;;None\nLviv;Rynok 2;9-20\n");
    let report = sale.campaign(&["check", "sale.yaml"]).exits(0);
    let report = report.says("the column `address` is empty in 1 row of the table `stores`");
    report.says("the column `hours` contains `None` in 1 row of the table `stores`");
    sale.write("templates/store.txt", " Come to {{ stores[city].adress }}");
    let report = sale.campaign(&["check", "sale.yaml"]).exits(2);
    report.says("the table `stores` has no column `adress`").says("(in `store.txt`, line 1, column 13)");
}

#[test]
fn table_keys_and_conditions_match_accents_in_any_form() {
    let gateway = Gateway::accepting();
    let (composed, separate) = ("Orl\u{e9}ans", "Orle\u{301}ans");
    let draft = shopper_draft(&[separate, composed, "Lviv"], "Come to {{ stores[city].address }}");
    let sale = campaign_with_stores(draft.recipients(&format!("where: city == '{composed}'")), &gateway);
    sale.write("stores.csv", &format!("City;address\nLviv;Rynok 2\n{separate};Rue 3\n"));
    sale.run(&[]).exits(0);
    assert_eq!(sent_texts(&gateway), ["Come to Rue 3", "Come to Rue 3"]);
}

#[test]
fn row_without_a_table_entry_or_default_is_invalid() {
    let gateway = Gateway::accepting();
    let sale = campaign_with_stores(shopper_draft(&["Lviv", "Odesa"], "Come to {{ stores[city].address }}"), &gateway);
    let reason = "`stores[city]` has no value because the table has no row for this key";
    sale.campaign(&["check", "sale.yaml"]).exits(0).says(reason).says("row 3");
    sale.run(&[]).exits(3);
    assert_eq!(sale.results().states(), ["accepted", "invalid"]);

    let with_default = "Come to {{ stores[city]?.address | default(value='our shop') }}";
    let gateway = Gateway::accepting();
    campaign_with_stores(shopper_draft(&["Lviv", "Odesa"], with_default), &gateway).run(&[]).exits(0);
    assert_eq!(sent_texts(&gateway), ["Come to Rynok 2; yard", "Come to our shop"]);
}

#[test]
fn run_keeps_its_table_and_reports_a_changed_one() {
    let gateway = Gateway::accepting();
    let sale = campaign_with_stores(shopper_draft(&["Lviv", "Kyiv", "Lviv"], "{{ stores[city].address }}"), &gateway);
    let read_digest = |sale: &Folder| sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json()["digest"].clone();
    let digest = read_digest(&sale);
    sale.replace("stores.csv", "Khreshchatyk 1", "Khreshchatyk 9");
    assert_ne!(read_digest(&sale), digest);
    sale.write("stores.csv", STORES);
    assert_eq!(read_digest(&sale), digest);
    sale.run(&["--limit", "1"]).exits(0);
    sale.replace("stores.csv", "Khreshchatyk 1", "Khreshchatyk 9");
    sale.run(&[]).exits(2).says("`data`");
    std::fs::remove_file(sale.path("stores.csv")).expect("the table exists");
    sale.run(&[]).exits(2).says("stores.csv").says("does not exist");
    sale.write("stores.csv", STORES);
    sale.run(&[]).exits(0);
    assert_eq!(sent_texts(&gateway), ["Rynok 2; yard", "Khreshchatyk 1", "Rynok 2; yard"]);
}

/// A table with this number of columns, column names of length `name`, and rows that are empty except for the first
/// cell.
fn wide_table(columns: usize, name: usize, rows: usize) -> String {
    let header: String = (1..columns).map(|column| format!(";{column:0name$}")).collect();
    let rows = (0..rows).map(|row| format!("{row}{}\n", ";".repeat(columns - 1)));
    format!("City{header}\n{}", rows.collect::<String>())
}

#[test]
fn mistake_in_a_table_or_its_use_is_reported_before_sending() {
    let gateway = Gateway::accepting();
    let cases = [
        (
            STORES.replace("City", "Town"),
            "it has no column `City`; use one of the table's columns: `Town`, `address` and `hours`",
        ),
        (STORES.replace("Lviv", "Kyiv"), "row 3 has the same `City` as an earlier row"),
        (STORES.replace("Lviv", " "), "row 3 has no value under `City`"),
        (STORES.replace("hours", "address"), "more than one column named `address`"),
        (STORES.replace("address", "street"), "the table `stores` has no column `address`"),
        (String::new(), "the table `stores` cannot be used"),
        (wide_table(501, 1, 1), "more than 500 columns or 8 KiB of headers"),
        (wide_table(16_000, 1, 100), "more than 500 columns or 8 KiB of headers"),
        (wide_table(100, 90, 1), "more than 500 columns or 8 KiB of headers"),
        (wide_table(500, 5, 501), "more than 10,000 rows, 250,000 cells or 1 MiB of text"),
    ];
    for (stores, expected) in cases {
        let sale = campaign_with_stores(shopper_draft(&["Lviv"], "{{ stores[city].address }}"), &gateway);
        sale.write("stores.csv", &stores);
        let check = sale.campaign(&["check", "sale.yaml"]).exits(2);
        let output = check.stderr.clone() + &check.stdout;
        let (message, help) = expected.split_once("; ").unwrap_or((expected, ""));
        assert!(
            output.contains(message) && output.contains(help) && output.contains("sale.yaml:"),
            "{expected}: {output}"
        );
        sale.run(&[]).exits(2);
    }
    for (data, expected) in [
        ("data: { city: { file: stores.csv, key: City } }", "`city` is ambiguous here"),
        ("data: { stores: { file: stores.csv } }", "`stores` needs `key`"),
        ("data: { stores: stores.csv }", "write `stores: { file: stores.csv }`"),
        ("data: { stores: { file: \"{{ today }}.csv\", key: City } }", "cannot contain the date"),
        ("data: { row: { file: stores.csv, key: City } }", "`row` is a built-in name"),
    ] {
        let sale = campaign_with_stores(
            campaign()
                .with_list(&format!("phone,city\n{},Lviv\n", phone(2)))
                .channels("  - sms: { signature: OlenaCo, message: \"{{ city }}\" }")
                .top(data),
            &gateway,
        );
        sale.campaign(&["check", "sale.yaml"]).exits(2).says(expected);
    }
    assert!(gateway.sends().is_empty());
}
