//! The suppression list: add, remove, import and export.

use super::opt_out;
use crate::support::{Gateway, campaign, phone};

#[test]
fn number_is_listed_once_with_date_and_reason() {
    let sale = campaign().write();
    let number = format!("+{}", phone(2));
    let list = || sale.campaign(&["suppress", "list", "--json"]).exits(0).json_list();
    assert_eq!(list().as_array().map(Vec::len), Some(0));
    let added = sale.campaign(&["suppress", "add", &number, "--reason", "asked by phone", "--json"]).exits(0).json();
    assert_eq!((&added["added"], &added["scope"]), (&true.into(), &"marketing".into()));
    let again = sale.campaign(&["suppress", "add", &number, "--json"]).exits(0).json();
    assert_eq!(
        (&again["added"], &again["at"], &again["reason"]),
        (&false.into(), &added["at"], &"asked by phone".into())
    );
    sale.campaign(&["suppress", "add", &number]).exits(0).says("has been on the list since").says("nothing changed");
    // An opt-out from one campaign is a separate entry, and a national number needs its country.
    let national = format!("0{}", &number[4..]);
    sale.campaign(&["suppress", "add", &national]).exits(2).says("--region UA");
    sale.campaign(&["suppress", "add", &national, "--region", "UA", "--campaign", "sale"]).exits(0);
    sale.campaign(&["suppress", "add", &number, "--campaign", "Not a name"])
        .exits(2)
        .says("is not a valid campaign name");
    let listed = list();
    let scopes: Vec<&str> = listed.as_array().unwrap().iter().map(|entry| entry["scope"].as_str().unwrap()).collect();
    assert_eq!(scopes, ["marketing", "campaign:sale"]);
    for entry in listed.as_array().unwrap() {
        assert_eq!(entry["phone"], phone(2).to_string());
        assert!(["reason", "source", "at"].iter().all(|key| entry[key].is_string()), "{entry}");
    }
    let removed =
        sale.campaign(&["suppress", "remove", "--yes", &number, "--campaign", "sale", "--json"]).exits(0).json();
    assert_eq!(removed["removed"][0]["scope"], "campaign:sale");
    sale.campaign(&["suppress", "remove", "--yes", &number]).exits(0).says("again").says("had been on the list since");
    sale.campaign(&["suppress", "remove", "--yes", &number]).exits(0).says("is not on the list");
    assert_eq!(list().as_array().map(Vec::len), Some(0));
}

#[test]
fn export_can_be_imported_with_all_its_fields() {
    let (source, target) = (campaign().write(), campaign().write());
    opt_out(&source, 2, &["--reason", "=1+1, \"asked\""]);
    opt_out(&source, 3, &["--campaign", "sale"]);
    source.write("more.csv", &format!("Мобільний;gateways\n{};loopback\n", phone(4)));
    let import = ["suppress", "import", "more.csv", "--yes", "--reason", "from the shop"];
    source.campaign(&import).exits(0).says("1 new · ");
    let exported = source.campaign(&["suppress", "export"]).exits(0).stdout;
    assert_eq!(exported.lines().count(), 4, "{exported}");
    target.write("list.csv", &exported);
    target
        .campaign(&["suppress", "import", "list.csv", "--yes"])
        .exits(0)
        .says("3 rows · 3 new · 0 already on the list");
    assert_eq!(target.campaign(&["suppress", "export"]).exits(0).stdout, exported);
    let again = target.campaign(&["suppress", "import", "list.csv", "--yes", "--json"]).exits(0).json();
    assert_eq!((&again["rows"], &again["added"], &again["already"]), (&3.into(), &0.into(), &3.into()));
    let sale_export = target.campaign(&["suppress", "export", "--campaign", "sale"]).exits(0).stdout;
    assert_eq!(sale_export.lines().count(), 2, "{sale_export}");
}

#[test]
fn import_is_all_or_nothing_and_invalid_rows_are_reported() {
    let sale = campaign().write();
    let list = format!(
        "phone,scope,at\n+{},everything,\n12,everything,\n0501234567,,\n+{},nowhere,\n+{},,yesterday\n",
        phone(2),
        phone(3),
        phone(4),
    );
    sale.write("stop.csv", &list);
    let refused = sale.campaign(&["suppress", "import", "stop.csv", "--yes"]).exits(2);
    for words in ["stop.csv:3", "too short", "stop.csv:4", "--region UA", "stop.csv:5", "`scope`", "stop.csv:6", "`at`"]
    {
        assert!(refused.stderr.contains(words), "no {words}: {}", refused.details());
    }
    assert!(!refused.stderr.contains("0501234567"), "{}", refused.details());
    assert_eq!(sale.campaign(&["suppress", "list", "--json"]).exits(0).json_list().as_array().map(Vec::len), Some(0));
    sale.campaign(&["suppress", "import", "missing.csv"]).exits(2).says("missing.csv");
}

#[test]
fn no_suppressed_number_appears_in_any_log() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).through(&gateway).write();
    let number = phone(3).to_string();
    sale.write("stop.csv", &format!("phone\n{number}\n"));
    for arguments in [
        &["suppress", "import", "stop.csv", "--yes", "-vvv"][..],
        &["suppress", "add", &format!("+{number}"), "-vvv"],
        &["suppress", "list", "-vvv"],
        &["run", "sale.yaml", "-vvv"],
        &["suppress", "remove", "--yes", &format!("+{number}"), "-vvv"],
    ] {
        let output = sale.campaign(arguments).exits(0);
        assert!(!output.stderr.contains(&number), "{}", output.details());
    }
}
