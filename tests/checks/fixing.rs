//! `check --fix`: the mistakes that it corrects, its prompt, and the files that it writes.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::support::{Folder, Terminal, campaign};

/// A campaign without mistakes.
const CORRECT: &str = "# The sale\nname: sale\nrecipients:\n  file: sale.csv\n\
    channels:\n  - sms:\n      signature: OlenaCo\n\
    \x20     message: \"Sale: Hello, {{ name }}\"\ndelivery:\n  rate: 100000/s\n";

/// The same campaign with mistakes that hide each other.
fn faulty_yaml() -> String {
    CORRECT
        .replace("recipients:\n  file: ", "recipents:\n\tfile:")
        .replace("\"Sale: Hello, {{ name }}\"", "Sale: Hello, {{ name }}")
        .replace("rate: 100000/s", "rate: “100000/s”")
}

fn faulty_sale() -> Folder {
    let sale = campaign().write();
    sale.write("sale.yaml", &faulty_yaml());
    sale
}

fn read(sale: &Folder) -> String {
    fs::read_to_string(sale.path("sale.yaml")).expect("the campaign")
}

#[test]
fn unambiguous_mistakes_are_fixed_and_the_campaign_is_ready() {
    let sale = faulty_sale();
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("next: campaign check sale.yaml --fix");
    let fixed = sale.campaign(&["check", "sale.yaml", "--fix", "--yes"]).exits(0);
    assert_eq!(read(&sale), CORRECT, "{}", fixed.details());
    for line in ["-recipents:", "+recipients:", "+      message: \"Sale: Hello, {{ name }}\"", "sale.yaml is ready"] {
        assert!(fixed.stdout.contains(line), "{line}: {}", fixed.details());
    }
    let again = sale.campaign(&["check", "sale.yaml", "--fix"]).exits(0);
    assert!(!again.stdout.contains("@@") && read(&sale) == CORRECT, "{}", again.details());
}

#[test]
fn corrections_need_confirmation_and_refusal_changes_nothing() {
    let sale = faulty_sale();
    let refused = sale.campaign(&["check", "sale.yaml", "--fix"]).exits(2);
    refused.says("+recipients:").says("add `--yes`");
    for answer in ["", "y", "no"] {
        let terminal = Terminal::start(sale.command(&["check", "sale.yaml", "--fix"]));
        terminal.shows("+recipients:").shows("Type yes to write them").types(answer);
        terminal.finish().exits(2);
        assert_eq!(read(&sale), faulty_yaml(), "{answer}");
    }
    let mut terminal = Terminal::start(sale.command(&["check", "sale.yaml", "--fix"]));
    terminal.shows("Type yes to write them");
    terminal.signal("INT");
    assert_ne!(terminal.finish().code(), Some(0));
    assert_eq!(read(&sale), faulty_yaml());
    let terminal = Terminal::start(sale.command(&["check", "sale.yaml", "--fix"]));
    terminal.shows("Type yes to write them").types("yes");
    terminal.finish().exits(0);
    assert_eq!(read(&sale), CORRECT);
}

#[test]
fn file_changed_during_the_prompt_is_not_overwritten() {
    let sale = faulty_sale();
    let terminal = Terminal::start(sale.command(&["check", "sale.yaml", "--fix"]));
    terminal.shows("Type yes to write them");
    let other = faulty_yaml().replace("# The sale", "# The other sale");
    sale.write("sale.yaml", &other);
    terminal.types("yes");
    terminal.shows("changed by someone else");
    terminal.finish().exits(2);
    assert_eq!(read(&sale), other);
}

#[test]
fn fix_changes_no_other_bytes_or_file_attributes() {
    let sale = faulty_sale();
    let windows = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
    fs::remove_file(sale.path("sale.yaml")).expect("the campaign");
    sale.write("real/shared.yaml", &windows(&faulty_yaml()));
    fs::set_permissions(sale.path("real/shared.yaml"), fs::Permissions::from_mode(0o640)).expect("a mode");
    symlink("real/shared.yaml", sale.path("sale.yaml")).expect("a link");
    sale.campaign(&["check", "sale.yaml", "--fix", "--yes"]);
    assert_eq!(read(&sale), windows(CORRECT));
    assert!(fs::symlink_metadata(sale.path("sale.yaml")).expect("the link").is_symlink());
    let mode = fs::metadata(sale.path("real/shared.yaml")).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let entries: Vec<_> = fs::read_dir(sale.path("real")).expect("the folder").collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
}

#[test]
fn read_only_file_is_refused_and_left_unchanged() {
    let sale = faulty_sale();
    fs::set_permissions(sale.path("sale.yaml"), fs::Permissions::from_mode(0o444)).expect("a mode");
    sale.campaign(&["check", "sale.yaml", "--fix", "--yes"]).exits(2).says("read-only");
    assert_eq!(read(&sale), faulty_yaml());
}

#[test]
fn ambiguous_or_audience_changing_fixes_are_only_reported() {
    for (right, wrong) in [
        ("  rate: 100000/s", "  rate: 100000/s\npurpose: servise"),
        ("  file: sale.csv", "  file: sale.csv\n  duplicates: alow"),
        ("  - sms:", "  - smss:"),
        ("\"Sale: Hello, {{ name }}\"", "Sale: Hello, {{ name }} # or not"),
        ("  rate: 100000/s", "  rte: 100000/s\n  rate: 100000/s"),
    ] {
        let sale = campaign().write();
        let faulty = CORRECT.replace(right, wrong);
        sale.write("sale.yaml", &faulty);
        let reported = sale.campaign(&["check", "sale.yaml", "--fix", "--yes"]).exits(2);
        assert_eq!(read(&sale), faulty, "{}", reported.details());
        assert!(!reported.stdout.contains("--fix"), "{}", reported.details());
    }
}

#[test]
fn json_contains_suggested_and_applied_fixes() {
    let sale = campaign().write();
    sale.write("sale.yaml", &CORRECT.replace("delivery:", "delivry:"));
    let found = sale.campaign(&["check", "sale.yaml", "--json"]).exits(2).json();
    let fix = &found["findings"][0]["fix"];
    assert_eq!(fix["title"], "write `delivery`", "{found}");
    assert_eq!(fix["edits"][0]["text"], "delivery", "{found}");
    assert_eq!((&fix["edits"][0]["line"], &fix["edits"][0]["end_column"]), (&9.into(), &8.into()), "{found}");
    let fixed = sale.campaign(&["check", "sale.yaml", "--json", "--fix", "--yes"]).exits(0).json();
    assert_eq!(fixed["fixed"][0]["file"], "sale.yaml", "{fixed}");
    assert_eq!(fixed["fixed"][0]["fixes"][0], "write `delivery`", "{fixed}");
    sale.campaign(&["check", "sale.yaml", "--fix", "--format", "sarif"]).exits(2).says("cannot be used with");
}

#[test]
fn gateways_file_is_fixed_without_showing_secrets() {
    let sale = campaign().write();
    sale.write("sale.yaml", &CORRECT.replace("name: sale", "name: sale\ngateway: shop"));
    let profile =
        "shop:\n  api_key: { file: key.txt }\n  base_url: https://gateway.example\n  rate: 10/s\n  batch_limit: 50\n";
    sale.write("gateways.yaml", &profile.replace("batch_limit", "batch_limt"));
    let fixed = sale.campaign(&["check", "sale.yaml", "--fix", "--yes"]);
    let text = fs::read_to_string(sale.path("gateways.yaml")).expect("the profiles");
    assert_eq!(text, profile, "{}", fixed.details());
}
