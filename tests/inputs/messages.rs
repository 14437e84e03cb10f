//! Message costs, extra parts, and empty values.

use serde_json::json;

use crate::support::{Folder, Gateway, Terminal, campaign, live};

/// A campaign whose profile has prices.
fn campaign_with_prices(prices: &str) -> (Gateway, Folder) {
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).through(&gateway).profile(prices).profile("currency: UAH").write();
    (gateway, sale)
}

#[test]
fn cost_is_shown_on_every_surface_if_the_profile_has_prices() {
    let (_gateway, sale) = campaign_with_prices("prices: { sms: 0.80 }");
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("cost      2.40 UAH at most");
    let output = sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json();
    assert_eq!((output["cost"].as_f64(), &output["currency"]), (Some(2.4), &json!("UAH")));
    sale.campaign(&["preview", "sale.yaml"]).exits(0).says("3 of 3 rows · sending all of them costs at most 2.40 UAH");
    sale.run(&["--dry-run"]).exits(0).says("a run costs at most 2.40 UAH");
    let (_gateway, other) = campaign_with_prices("prices: { viber: 0.50 }");
    other.campaign(&["check", "sale.yaml"]).exits(0).says("cost      unknown: the profile has no `prices` for `sms`");
    let (_gateway, free) = campaign_with_prices("account: main");
    let output = free.campaign(&["check", "sale.yaml"]).exits(0);
    assert!(!output.stdout.contains("cost"), "{}", output.stdout);
    assert_eq!(free.campaign(&["check", "sale.yaml", "--json"]).exits(0).json()["cost"], json!(null));
}

#[test]
fn confirmation_shows_cost_empty_cells_and_long_messages() {
    let sale = live();
    let long = "Hello, {{ name }} – ".to_owned() + &"sale ".repeat(20);
    sale.replace("sale.yaml", "Hello, {{ name }}", &long);
    sale.replace("sale.csv", "Person 3", "");
    let terminal = Terminal::start_on(200, sale.command(&["run", "sale.yaml", "--offline", "--limit", "2"]));
    terminal.shows("at most 3.20").shows("`name` is empty in row 3");
    terminal.shows(
        "`–` (U+2013) in row 2 makes the SMS 2 parts long instead of 1; in total, 3 extra parts in 3 rows, about 2.40",
    );
    terminal.shows("Type 2 to send").types("no");
    terminal.finish().exits(2);
}

#[test]
fn empty_values_are_counted_unless_the_text_handles_them() {
    let list = "phone,name,City name\n380501000002,Olena,Kyiv\n380501000003,,\n380501000004,,Lviv\n12,,\n";
    let check_text = |text: &str| {
        let channel = format!("  - sms: {{ signature: OlenaCo, message: '{text}' }}");
        let sale = campaign().with_list(list).recipients("max_invalid: 50%").channels(&channel).write();
        sale.campaign(&["check", "sale.yaml"]).exits(0).stderr
    };
    let output = check_text("Hi, {{ name | title }}! {{ recipient[\"City name\"] }}");
    assert!(output.contains("`name` is empty in 2 rows (first: row 3)"), "{output}");
    assert!(output.contains("`recipient[\"City name\"]` is empty in row 3"), "{output}");
    assert!(output.contains("{{ name | default(value='…', boolean=true) }}"), "{output}");
    for text in [
        "{% if name %}Hi, {{ name }}!{% endif %}",
        "Hi, {{ name | default(value=\"friend\", boolean=true) }}!",
        "Hi, {{ name if name else \"friend\" }}!",
        "{% if recipient[\"City name\"] == \"Kyiv\" %}Hi, {{ name }}!{% else %}Hi!{% endif %}",
        "Hi!",
    ] {
        assert!(!check_text(text).contains("empty in"), "{text}");
    }
}

#[test]
fn costly_character_is_named_with_a_replacement() {
    let text = format!("It’s {} {{{{ name }}}}", "sale ".repeat(20));
    let channel = format!("  - sms: {{ signature: OlenaCo, message: \"{text}\" }}");
    let sale = campaign().channels(&channel).write();
    let output = sale.campaign(&["check", "sale.yaml"]).exits(0);
    output
        .says("`’` (U+2019) in row 2 makes the SMS 2 parts long instead of 1; in total, 3 extra parts in 3 rows")
        .says("write `'` instead");
    sale.campaign(&["preview", "sale.yaml", "--rows", "2"]).exits(0).says("longer because of `’`");
    sale.replace("sale.yaml", "It’s", "It's");
    assert!(!sale.campaign(&["check", "sale.yaml"]).exits(0).stderr.contains("extra parts"));
}

#[test]
fn check_gives_reasons_for_skipped_rows() {
    let sale = campaign().with_list("phone,name\n380501000002,Olena\n380501000002,Olena\n").write();
    let output = sale.campaign(&["check", "sale.yaml"]).exits(0).says("✓ sale.yaml is ready: 1 of 2 recipients\n");
    output.says("     2  rows in sale.csv\n    −1  skipped: duplicate number  row 3\n     1  gets a message\n");
}

#[test]
fn suggested_commands_keep_the_named_gateway() {
    let (_gateway, sale) = campaign_with_prices("prices: { sms: 0.80 }");
    sale.replace("sale.yaml", "gateway: local\n", "");
    let suggested_command = |arguments: &[&str]| {
        let output = sale.campaign(arguments).exits(0).stdout;
        output.lines().last().expect("a line").to_owned()
    };
    let checked = suggested_command(&["check", "sale.yaml", "--online", "--gateway", "local"]);
    assert_eq!(checked, "next: campaign preview sale.yaml --gateway local");
    sale.campaign(&["preview", "sale.yaml", "--gateway", "local"]).exits(0).says("costs at most 2.40 UAH");
    let previewed = suggested_command(&["preview", "sale.yaml", "--gateway", "local"]);
    assert_eq!(previewed, "next: campaign run sale.yaml --gateway local");
    assert_eq!(suggested_command(&["preview", "sale.yaml"]), "next: campaign run sale.yaml");
}

#[test]
fn suggested_run_of_a_scheduled_campaign_includes_now() {
    let sale = campaign().top("schedule: { every: Mon 10:00 }\ntimezone: Europe/Kyiv").write();
    for arguments in [&["preview", "sale.yaml"][..], &["preview", "sale.yaml", "--html", "page.html"]] {
        sale.campaign(arguments).exits(0).says("next: campaign run sale.yaml --now\n");
    }
    sale.run(&["--dry-run"]).exits(0).says("next: campaign run sale.yaml --now");
    sale.campaign(&["plan", "sale.yaml"]).exits(0).says("next: campaign run sale.yaml --now --plan ");
    sale.run(&["--now"]).exits(0).says("sale@1 finished");
}

#[test]
fn line_break_in_a_cell_is_reported_with_advice() {
    let list = "phone,name\n380501000002,\"Olena\n380501000003,Ivan\nBondar\"\n380501000004,Taras\n";
    let sale = campaign().with_list(list).write();
    let output = sale.campaign(&["check", "sale.yaml"]).exits(0).says("2  rows in sale.csv");
    output.says("a cell with several lines seems to contain another row: row 2").says("correct the quotes");
    sale.replace("sale.csv", "Ivan\nBondar", "Ivan\n");
    sale.campaign(&["check", "sale.yaml"])
        .exits(2)
        .says("contains line 3, which looks like a separate row")
        .says("end of the cell");
}
