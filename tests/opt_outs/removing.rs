//! Opt-out removal: a single number, or all numbers added by an import.

use serde_json::json;

use super::{entries, opt_out};
use crate::support::{Folder, Terminal, campaign, phone};

/// The rows whose numbers are on the suppression list.
fn suppressed_rows(sale: &Folder) -> Vec<usize> {
    let number = |row: usize| phone(row).to_string();
    let listed = entries(sale);
    (2..20).filter(|row| listed.iter().any(|entry| entry["phone"] == number(*row))).collect()
}

/// Imports the numbers of these rows from a file.
fn import_rows(sale: &Folder, file: &str, header: &str, rows: std::ops::Range<usize>, cells: &str) {
    let lines: String = rows.map(|row| format!("+{}{cells}\n", phone(row))).collect();
    sale.write(file, &format!("phone{header}\n{lines}"));
    sale.campaign(&["suppress", "import", file, "--yes"]).exits(0);
}

#[test]
fn number_is_removed_only_after_yes_is_typed() {
    let sale = campaign().write();
    opt_out(&sale, 2, &["--reason", "asked by phone"]);
    let number = format!("+{}", phone(2));
    let remove = || sale.command(&["suppress", "remove", &number]);
    let terminal = Terminal::start(remove());
    terminal
        .shows("asked by phone")
        .shows("can get marketing messages again")
        .shows("Type yes to remove 1 opt-out")
        .types("");
    terminal.shows("Nothing was changed.");
    terminal.finish().exits(2);
    let refused = sale.campaign(&["suppress", "remove", &number]).exits(2).says("help: ").says("`--yes`");
    assert!(!refused.stderr.contains(&phone(2).to_string()), "{}", refused.details());
    assert_eq!(suppressed_rows(&sale), [2]);
    let terminal = Terminal::start(remove());
    terminal.shows("or press Enter").types("yes");
    terminal.shows("can get marketing messages from any campaign again");
    terminal.finish().exits(0);
    sale.campaign(&["suppress", "remove", &number]).exits(0).says("is not on the list");
}

#[test]
fn removal_names_the_remaining_campaign_opt_outs() {
    let sale = campaign().write();
    let number = format!("+{}", phone(2));
    opt_out(&sale, 2, &[]);
    opt_out(&sale, 2, &["--campaign", "autumn"]);
    let removed = sale.campaign(&["suppress", "remove", &number, "--scope", "marketing", "--yes"]).exits(0);
    removed.says("again; it had been on the list").says("The number is still opted out of `autumn`.");
    let number = format!("+{}", phone(3));
    sale.campaign(&["suppress", "add", &number, "--scope", "all"]).exits(0);
    let removed = sale.campaign(&["suppress", "remove", &number, "--yes"]).exits(0);
    removed.says("can get marketing and service messages from any campaign again");
}

#[test]
fn undoing_an_import_removes_only_opt_outs_that_it_added() {
    let sale = campaign().write();
    opt_out(&sale, 2, &[]);
    import_rows(&sale, "stop.csv", "", 3..5, "");
    std::fs::create_dir(sale.path("lists")).expect("a folder");
    // The file has a `source` column from another program, and some numbers were already on the list.
    import_rows(&sale, "lists/clients.csv", ",source", 2..9, ",shop");
    opt_out(&sale, 8, &["--reason", "asked by phone"]);
    assert_eq!(suppressed_rows(&sale), (2..9).collect::<Vec<_>>());
    let undo = &["suppress", "remove", "--source", "lists/clients.csv"][..];
    let refused = sale.campaign(undo).exits(2).says("removing 3 opt-outs that 1 import added");
    refused.says("nothing was changed").says("help: ");
    let terminal = Terminal::start(sale.command(undo));
    terminal
        .shows("Remove 3 opt-outs from 1 import?")
        .shows("clients.csv, ")
        .shows("replies, are kept")
        .shows("Type 3 to remove");
    terminal.types("yes");
    terminal.shows("Nothing was changed.");
    terminal.finish().exits(2);
    assert_eq!(suppressed_rows(&sale).len(), 7);
    let terminal = Terminal::start(sale.command(undo));
    terminal.shows("or press Enter").types("3");
    terminal.shows("3 opt-outs removed from the list");
    terminal.finish().exits(0);
    assert_eq!(suppressed_rows(&sale), [2, 3, 4, 8], "numbers from before, from another file, and added by hand since");
    sale.campaign(&[undo, &["--yes"]].concat())
        .exits(2)
        .says("the list contains no opt-outs imported from")
        .says("help: ");
    sale.campaign(&["suppress", "remove", "--source", "stpo.csv", "--yes"]).exits(2).says("did you mean `stop.csv`?");
    // Removed numbers can be imported again.
    import_rows(&sale, "lists/clients.csv", "", 2..9, "");
    let output = sale.campaign(&[undo, &["--yes", "--json"]].concat()).exits(0).json();
    assert_eq!((&output["removed"], &output["forgotten"]), (&json!(3), &json!(0)), "{output}");
}

#[test]
fn same_named_imports_are_undone_separately_or_together() {
    let sale = campaign().write();
    import_rows(&sale, "stop.csv", "", 2..4, "");
    let first = entries(&sale)[0]["source"].as_str().expect("a source").to_owned();
    import_rows(&sale, "stop.csv", "", 2..7, "");
    let refused = sale.campaign(&["suppress", "remove", "--source", "stop.csv"]).exits(2);
    refused.says("removing 5 opt-outs that 2 imports added");
    sale.campaign(&["suppress", "remove", "--source", &first, "--yes"]).exits(0).says("2 opt-outs removed");
    assert_eq!(suppressed_rows(&sale), [4, 5, 6]);
}

#[test]
fn undoing_one_of_several_imports_requires_its_source() {
    let sale = campaign().write();
    for folder in ["s", "t"] {
        std::fs::create_dir(sale.path(folder)).expect("a folder");
    }
    import_rows(&sale, "s/list.csv", "", 2..3, "");
    // Rows with a value in the `source` column still belong to the import of their file.
    import_rows(&sale, "t/list.csv", ",source", 3..5, ",shop");
    import_rows(&sale, "a, b.csv", "", 5..6, "");
    let remove = |source: &str| sale.campaign(&["suppress", "remove", "--source", source, "--yes"]);
    let sources: Vec<String> =
        entries(&sale).iter().map(|entry| entry["source"].as_str().expect("a source").to_owned()).collect();
    let refused = remove("t/list.csv").exits(2).says("`t/list.csv` names several imports; nothing was changed");
    refused.says(&format!("--source '{}'", sources[0]));
    remove("a").exits(2).says("the list contains no opt-outs imported from `a`");
    assert_eq!(suppressed_rows(&sale), [2, 3, 4, 5]);
    remove(sources[1].strip_suffix(", shop").expect("the source of the row")).exits(0).says("2 opt-outs removed");
    remove("a, b.csv").exits(0).says("1 opt-out removed");
    assert_eq!(suppressed_rows(&sale), [2]);
    remove("s/list.csv").exits(0);
}

#[test]
fn undoing_an_import_keeps_other_scopes_and_forgotten_numbers() {
    let sale = campaign().write();
    import_rows(&sale, "stop.csv", ",scope", 2..5, ",campaign:sale");
    import_rows(&sale, "stop.csv", "", 5..8, "");
    sale.campaign(&["forget", &format!("+{}", phone(7)), "--yes"]).exits(0);
    let remove = &["suppress", "remove", "--source", "stop.csv", "--yes", "--json"][..];
    let output = sale.campaign(&[remove, &["--campaign", "sale"]].concat()).exits(0).json();
    assert_eq!(output["removed"], json!(3));
    let output = sale.campaign(remove).exits(0).json();
    assert_eq!(output["removed"], json!(2));
    assert_eq!(entries(&sale).len(), 1, "a forgotten number stays on the list");
}

#[test]
fn imported_export_keeps_its_original_sources() {
    let (source, target) = (campaign().write(), campaign().write());
    opt_out(&source, 2, &[]);
    let exported = source.campaign(&["suppress", "export"]).exits(0).stdout;
    target.write("list.csv", &exported);
    let terminal = Terminal::start(target.command(&["suppress", "import", "list.csv"]));
    terminal.shows("cannot undo this import").shows("or press Enter").types("");
    terminal.finish().exits(2);
    let output = target.campaign(&["suppress", "import", "list.csv", "--yes"]).exits(0).details();
    assert!(!output.contains("to undo"), "{output}");
    target
        .campaign(&["suppress", "remove", "--source", "list.csv", "--yes"])
        .exits(2)
        .says("the list contains no opt-outs");
    assert_eq!(suppressed_rows(&target), [2]);
}

#[test]
fn removing_a_campaign_opt_out_keeps_the_marketing_opt_out() {
    let sale = campaign().write();
    sale.run(&[]).exits(0);
    let number = format!("+{}", phone(2));
    opt_out(&sale, 2, &["--reason", "asked by phone"]);
    let remove = &["suppress", "remove", &number, "--campaign", "sale", "--yes"][..];
    let still = "The number is still opted out of all campaigns";
    let output = sale.campaign(remove).exits(0).says(still).says("asked by phone");
    output.says("has no separate opt-out from campaign sale; nothing was changed");
    sale.campaign(&["suppress", "add", &number, "--campaign", "sale"]).exits(0);
    let terminal = Terminal::start_on(200, sale.command(&remove[..5]));
    terminal.shows(still).shows("Type yes to remove 1 opt-out").types("yes");
    terminal.shows(still);
    let output = terminal.finish().exits(0);
    assert!(!output.details().contains("can get marketing messages from"), "{}", output.details());
    assert_eq!(entries(&sale).len(), 1);
    let output = sale.campaign(&[remove, &["--json"]].concat()).exits(0).json();
    assert_eq!((&output["removed"], &output["still"]["scope"]), (&json!([]), &json!("marketing")));
    sale.campaign(&["suppress", "remove", &number, "--yes"])
        .exits(0)
        .says("can get marketing messages from any campaign again");
    sale.campaign(remove).exits(0).says("is not on the list for campaign sale; nothing was changed");
}
