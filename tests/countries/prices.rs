//! Prices by country: estimates, plans, budgets and figures use the price of each recipient's country.

use serde_json::{Value, json};

use super::{EWA, OLENA, international_campaign};
use crate::support::{Draft, Gateway};

/// A campaign with prices for Ukraine, Poland and all other countries.
fn priced_campaign(gateway: &Gateway) -> Draft {
    let prices = "prices: { sms: { UA: 0.80, PL: 2.10, else: 4.00 } }";
    international_campaign(gateway).profile(prices).profile("currency: UAH")
}

fn cost(report: &Value) -> Option<f64> {
    report["cost"].as_f64()
}

#[test]
fn estimates_use_the_price_of_each_country() {
    let gateway = Gateway::accepting();
    let sale = priced_campaign(&gateway).write();
    let checked = sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json();
    assert_eq!((cost(&checked), &checked["currency"]), (Some(7.7), &json!("UAH")));
    assert_eq!(cost(&sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json()), Some(7.7));
    let first_rows = sale.campaign(&["plan", "sale.yaml", "--rows", "2,3", "--json"]).exits(0).json();
    assert_eq!(cost(&first_rows), Some(2.9));
    sale.campaign(&["check", "sale.yaml", "--show-settings"]).exits(0).says("UA: 0.80, PL: 2.10, else: 4.00");
}

#[test]
fn budget_counts_the_price_of_each_country() {
    let gateway = Gateway::accepting();
    let sale = priced_campaign(&gateway).top("limits: { cost: 3 }").write();
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("the messages can cost up to 7.70 UAH");
    let stopped = sale.run(&["--json"]).exits(5).json();
    assert_eq!(stopped["why"].as_str().map(|why| why.contains("has used 2.90 of its `limits.cost` of 3")), Some(true));
    assert_eq!(gateway.phones(), [OLENA, EWA], "0.80 and 2.10");
}

#[test]
fn single_price_covers_all_countries_and_a_map_needs_else() {
    let gateway = Gateway::accepting();
    let sale = international_campaign(&gateway).profile("prices: { sms: 0.80 }").write();
    assert_eq!(cost(&sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json()), Some(3.2));
    sale.replace("gateways.yaml", "sms: 0.80", "sms: { UA: 0.80 }");
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("`sms` needs `else`, the price for all other countries");
}
