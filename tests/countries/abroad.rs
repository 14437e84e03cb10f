//! `home` and `limits.abroad` of a profile: recipients abroad are reported, and too many of them are refused.

use std::fs;

use serde_json::{Value, json};

use super::{EWA, LIST, OLENA, TARAS, international_campaign};
#[cfg(target_os = "linux")]
use crate::support::{Clock, Server, until};
use crate::support::{Draft, Folder, Gateway, KEY_VARIABLE, Terminal, live};

/// A campaign whose profile has Ukraine as its home country.
fn campaign_at_home(gateway: &Gateway) -> Draft {
    international_campaign(gateway).profile("home: [UA]")
}

/// The rules that `check` reports, with their messages.
fn findings(sale: &Folder) -> Vec<(String, String)> {
    let checked = sale.campaign(&["check", "sale.yaml", "--json"]).json();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let found = checked["findings"].as_array().expect("findings").iter();
    found.map(|finding| (text(finding, "rule"), text(finding, "message"))).collect()
}

#[test]
fn recipients_abroad_are_counted_by_country() {
    let sale = campaign_at_home(&Gateway::accepting()).write();
    let abroad = "2 outside UA: 1 in DE and 1 in PL";
    sale.campaign(&["check", "sale.yaml"]).exits(0).says(abroad);
    sale.campaign(&["plan", "sale.yaml"]).exits(0).says(abroad);
    let json = sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json();
    let counts = json!([{ "country": "DE", "recipients": 1 }, { "country": "PL", "recipients": 1 }]);
    assert_eq!(json["campaigns"][0]["abroad"], counts);
    let planned = sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json();
    assert_eq!(planned["forecast"]["abroad"], counts);
    // If the campaign lists the expected `countries`, recipients in these countries are not reported.
    sale.replace("sale.yaml", "recipients:\n", "countries: [UA, PL, DE]\nrecipients:\n");
    assert!(!sale.campaign(&["check", "sale.yaml"]).exits(0).details().contains("outside UA"));
}

#[test]
fn profile_policy_does_not_hide_recipients_abroad() {
    let sale = campaign_at_home(&Gateway::accepting()).profile("policy: { countries: [UA, PL] }").write();
    let (skipped, abroad) = ("−1  skipped: country", "1 outside UA: 1 in PL");
    sale.campaign(&["check", "sale.yaml"]).exits(0).says(skipped).says(abroad);
    sale.campaign(&["plan", "sale.yaml"]).exits(0).says(skipped).says(abroad);
    let json = sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json();
    assert_eq!(json["campaigns"][0]["abroad"], json!([{ "country": "PL", "recipients": 1 }]));
    let new = "1 recipient in a country that no earlier run on this account has reached: 1 in PL";
    assert!(findings(&sale).contains(&("new-country".to_owned(), new.to_owned())));
}

#[test]
fn prompt_shows_recipients_abroad_and_new_countries() {
    let sale = live();
    let profiles = fs::read_to_string(sale.path("gateways.yaml")).expect("profiles");
    sale.write("gateways.yaml", &format!("{}\n  home: [UA]\n", profiles.trim_end()));
    sale.write("sale.csv", LIST);
    let terminal = Terminal::start(sale.command(&["run", "sale.yaml", "--offline"]));
    terminal.shows("2 outside UA: 1 in DE and 1 in PL").shows("no earlier run");
    terminal.types("");
    terminal.finish().exits(2);
}

#[test]
fn country_is_new_until_a_run_on_the_account_has_reached_it() {
    let gateway = Gateway::accepting();
    let sale = campaign_at_home(&gateway).write();
    let warns = |message: &str| {
        let found = findings(&sale);
        found.iter().any(|(rule, text)| rule == "new-country" && text.contains(message))
    };
    assert!(warns("2 recipients in countries that no earlier run on this account has reached: 1 in DE and 1 in PL"));
    sale.run(&["--rows", "3"]).exits(0);
    assert_eq!(gateway.phones(), [EWA]);
    assert!(warns("1 recipient in a country that no earlier run on this account has reached: 1 in DE"));
    // In the next edition, these countries are no longer new.
    sale.run(&[]).exits(0);
    sale.replace("sale.yaml", "name: sale\n", "name: sale\nedition: second\n");
    assert!(!findings(&sale).iter().any(|(rule, _)| rule == "new-country"));
}

#[test]
fn too_many_recipients_abroad_are_refused_before_sending() {
    let gateway = Gateway::accepting();
    let sale = campaign_at_home(&gateway).profile("limits: { abroad: 1 }").write();
    let refused = "the edition would have 2 recipients outside UA";
    sale.campaign(&["check", "sale.yaml"]).exits(2).says(refused).says("--up-to-abroad 2");
    sale.campaign(&["plan", "sale.yaml"]).exits(2).says(refused);
    sale.run(&[]).exits(2).says(refused).says("nothing was sent").says("--up-to-abroad 2");
    sale.run(&["--limit", "1"]).exits(2).says(refused);
    sale.run(&["--up-to-abroad", "1"]).exits(2).says(refused);
    assert!(gateway.requests().is_empty());
    let plan = sale.campaign(&["plan", "sale.yaml", "--up-to-abroad", "2"]).exits(0);
    plan.says("run sale.yaml --up-to-abroad 2 --plan ");
    sale.run(&["--up-to-abroad", "2"]).exits(0);
    assert_eq!(gateway.phones().len(), 4);
}

#[test]
fn abroad_limit_counts_all_runs_of_an_edition() {
    let gateway = Gateway::accepting();
    let sale = campaign_at_home(&gateway).profile("limits: { abroad: 1 }").write();
    sale.write("sale.csv", &format!("phone,name\n+{OLENA},Olena\n+{EWA},Ewa\n"));
    sale.run(&[]).exits(0);
    // Another list for the same edition.
    sale.write("sale.csv", &format!("phone,name\n+{TARAS},Taras\n+{},Jan\n", EWA + 1));
    sale.run(&[]).exits(2).says("the edition would have 2 recipients outside UA");
    sale.write("sale.csv", &format!("phone,name\n+{TARAS},Taras\n+{EWA},Ewa\n"));
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [OLENA, EWA, TARAS]);
    sale.replace("sale.yaml", "name: sale\n", "name: sale\nedition: second\n");
    sale.write("sale.csv", &format!("phone,name\n+{},Jan\n", EWA + 1));
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), 4, "each edition has its own count");
}

#[test]
fn abroad_limit_applies_to_shared_runs_and_approved_plans() {
    let gateway = Gateway::accepting();
    let sale = campaign_at_home(&gateway).write();
    let plan = sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json();
    let digest = plan["digest"].as_str().expect("a digest").to_owned();
    let profiles = fs::read_to_string(sale.path("gateways.yaml")).expect("profiles");
    sale.write("gateways.yaml", &format!("{profiles}  limits: {{ abroad: 1 }}\n"));
    sale.run(&["--shared"]).exits(2).says("outside UA");
    sale.run(&["--plan", &digest]).exits(2).says("outside UA");
    assert!(gateway.requests().is_empty());
    sale.run(&["--shared", "--up-to-abroad", "2"]).exits(0);
    assert_eq!(gateway.phones().len(), 4);
}

#[cfg(target_os = "linux")]
#[test]
fn schedule_with_too_many_recipients_abroad_sends_nothing() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let draft = campaign_at_home(&gateway).top("timezone: UTC").top("schedule: { every: day 12:00 }");
    let sale = draft.write();
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    let profiles = fs::read_to_string(sale.path("gateways.yaml")).expect("profiles");
    sale.write("gateways.yaml", &format!("{profiles}  limits: {{ abroad: 1 }}\n"));
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(2).says("outside UA");
    let due = sale.campaign(&["schedule", "next", "sale.yaml", "--json"]).exits(0).json_list()[0]["at"].clone();
    let due: jiff::Timestamp = due.as_str().expect("a time").parse().expect("a time");
    let server = Server::start_after(&sale, &clock.set_to(due - jiff::SignedDuration::from_secs(1)), &[]);
    until("the run is refused", || server.stderr().contains("outside UA"));
    server.end("TERM").exits(0);
    assert!(gateway.sends().is_empty());
}

#[test]
fn gateway_add_asks_for_home_countries_and_sets_the_limit() {
    let folder = Folder::new(true);
    let add = ["gateway", "add", "main", "--key-env", KEY_VARIABLE, "--rate", "1/s", "--offline"];
    let terminal = Terminal::start(folder.command(&add));
    terminal.shows("URL of the gateway, such as ").types("https://gateway.example");
    terminal.shows("or press Enter for sync mode: ").types("");
    terminal.shows("Which countries do you send to?").shows("or press Enter to skip: ").types("UK");
    terminal.shows("did you mean `GB`?").types("UA, GB");
    terminal.shows("added without testing the key");
    terminal.finish().exits(0);
    let written = fs::read_to_string(folder.path("gateways.yaml")).expect("profiles");
    assert!(written.ends_with("  home:\n  - GB\n  - UA\n  limits:\n    abroad: 100\n"), "{written}");
    let second = ["gateway", "add", "second", "--base-url", "https://g.example", "--home", "UA"];
    folder.campaign(&[&second[..], &add[3..]].concat()).exits(0);
    let third = ["gateway", "add", "third", "--base-url", "https://g.example"];
    folder.campaign(&[&third[..], &add[3..]].concat()).exits(0);
    let written = fs::read_to_string(folder.path("gateways.yaml")).expect("profiles");
    assert_eq!((written.matches("home:").count(), written.matches("abroad: 100").count()), (2, 2), "{written}");
}
