//! What rows show: what a person would wonder at in a message, told once with a count.

use std::fmt::Write as _;

use crate::support::{Folder, Gateway, campaign, live, phone};

/// What `check` says of an SMS with this text to people with these cells under `name`, `vip` and `code`.
fn told(message: &str, cells: &[[&str; 3]]) -> String {
    let mut list = "phone,name,vip,code\n".to_owned();
    for (row, [name, vip, code]) in cells.iter().enumerate() {
        writeln!(list, "{},\"{name}\",{vip},{code}", phone(row + 2)).expect("a string");
    }
    let channel = format!("  - sms: {{ signature: OlenaCo, message: '{message}' }}");
    let sale = campaign().with_list(&list).channels(&channel).write();
    sale.campaign(&["check", "sale.yaml"]).exits(0).stderr
}

#[test]
fn placeholder_word_in_a_message_is_counted_by_column() {
    let hello = "Hello, {{ name }}! {{ vip }} {{ code }}";
    for nothing in ["None", "nan", "null", "undefined", "#N/A", "#REF!", "{{ first }}", "-"] {
        let said = told(hello, &[["Olena", "a", "1"], [nothing, "a", "2"], [nothing, "a", "3"]]);
        let expected = format!(
            "the column `name` contains `{nothing}` in 2 rows (first: row 3), and recipients would see this value"
        );
        assert!(said.contains(&expected), "{said}");
        assert_eq!(said.matches("[placeholder-value]").count(), 1, "{said}");
    }
    for fine in ["Nan", "Noneta", "Null-Emma", "O-Ren"] {
        assert!(!told(hello, &[[fine, "a", "1"]]).contains("placeholder-value"), "{fine}");
    }
    let unsaid = "{% if vip == \"None\" %}Hi{% else %}Hello {{ name }}{% endif %}{{ code }}";
    assert!(!told(unsaid, &[["Olena", "None", "1"]]).contains("placeholder-value"), "what is not said is no matter");
}

#[test]
fn message_with_a_gap_is_reported_unless_the_gap_is_allowed() {
    let minded = "Hello {% if name %}{{ name }}{% endif %}, your {{ vip }} code is {{ code }}";
    let rows = [["Olena", "a", "1"], ["", "a", "2"]];
    assert!(told(minded, &rows).contains("in row 3, as in `Hello , …`"), "{}", told(minded, &rows));
    let relied = told("Hello {{ name }}, {{ vip }} {{ code }}", &rows);
    assert!(relied.contains("empty-cell") && !relied.contains("empty-greeting"), "{relied}");
    let right = "Hello{% if name %} {{ name }}{% endif %}, {{ vip }} {{ code }}";
    assert!(!told(right, &rows).contains("warning"), "{}", told(right, &rows));
}

#[test]
fn condition_that_reads_no_as_true_is_reported() {
    let bare = "{% if vip %}Thank you{% else %}Hello{% endif %} {{ name }} {{ code }}";
    let said = told(bare, &[["Olena", "true", "1"], ["Petro", "FALSE", "2"], ["Ivan", "false", "3"]]);
    assert!(said.contains("`{% if vip %}` is true in 2 rows (first: row 3), where the cell is `FALSE`"), "{said}");
    for fine in [["Olena", "gold", "1"], ["Olena", "", "1"], ["Olena", "yes", "1"]] {
        assert!(!told(bare, &[fine]).contains("cell-is-text"), "{fine:?}");
    }
    let compared = "{% if vip == \"true\" %}Thank you{% else %}Hello{% endif %} {{ name }} {{ code }}";
    let said = told(compared, &[["Olena", "TRUE", "1"], ["Petro", "FALSE", "2"]]);
    assert!(said.contains("no row has `true` in the column `vip`; the value is `TRUE` in row 2"), "{said}");
    assert!(
        !told(compared, &[["Olena", "TRUE", "1"], ["Petro", "true", "2"]]).contains("cell-is-text"),
        "some row passes it"
    );
}

#[test]
fn loop_over_the_letters_of_a_list_is_found() {
    let looped =
        |list: &str| format!("{{% for part in {list} %}}{{{{ part }}}} {{% endfor %}}{{{{ vip }}}} {{{{ code }}}}");
    let rows = [["Olena;Ivan", "a", "1"], ["Petro", "b", "2"]];
    let said = told(&looped("name"), &rows);
    assert!(said.contains("the loop over `name` splits the cell into single characters in row 2"), "{said}");
    assert!(said.contains("write `name | split(pat=\";\")` in the loop"), "{said}");
    assert!(!told(&looped("name | split(pat=\";\")"), &rows).contains("loop-over-text"));
    assert!(!told(&looped("name"), &[["4321", "a", "1"]]).contains("loop-over-text"), "letters may be meant");
}

#[test]
fn mistakes_and_links_of_cells_are_reported_once_per_column() {
    let hello = "Hello, {{ name }}! {{ vip }} {{ code }}";
    let rows =
        [["Олeна", "http://a.example", "1"], ["Пeтpo", "HTTP://b.example", "2"], ["Olena", "https://c.example", "3"]];
    let said = told(hello, &rows);
    assert!(
        said.contains(
            "the Cyrillic word `Олeна` contains the Latin letter `e`, in the column `name` of 2 rows (first: row 2)"
        ),
        "{said}"
    );
    assert!(said.contains("the column `vip` contains links that do not start with `https://` in 2 rows"), "{said}");
}

#[test]
fn list_with_longer_values_than_the_sample_is_noted() {
    let rows = [["Olena", "a", "1"], ["Petro", "b", "2"]];
    let same = told("Sale! https://shop.example", &rows);
    assert!(same.contains("note[same-for-all]") && same.contains("the column `name`"), "{same}");
    assert!(same.contains("note[same-link]") && same.contains("no message uses the column `code`"), "{same}");
    assert!(same.contains("note[unused-column]: no message uses the columns `name`, `vip`, `code`"), "{same}");
    let used = told("{{ name }}, {{ vip }}: https://shop.example/?c={{ code }}", &rows);
    assert!(!used.contains("note"), "{used}");
    let one = told("{{ name }}: https://shop.example/?c={{ code }}", &rows);
    assert!(one.contains("no message uses the column `vip`") && !one.contains("same-"), "{one}");
}

#[test]
fn odd_cells_of_skipped_rows_are_not_reported() {
    let sale = campaign()
        .with_list(&format!("phone,name\n{},Olena\n{},None\n12,nan\n", phone(2), phone(2)))
        .recipients("max_invalid: 100%")
        .write();
    let told = sale.campaign(&["check", "sale.yaml"]).exits(0);
    assert!(!told.stderr.contains("placeholder-value"), "{}", told.told());
}

#[test]
fn check_warns_if_no_row_gets_a_message() {
    let gateway = Gateway::accepting();
    let none = |sale: &Folder, said: &str| {
        let told = sale.campaign(&["check", "sale.yaml"]).exits(0).says("warning[no-messages]").says(said);
        assert_eq!(told.stderr.matches("no-messages").count(), 1, "{}", told.told());
        sale.campaign(&["check", "sale.yaml", "--strict"]).exits(2);
    };
    let sale = campaign().to(3).through(&gateway).write();
    sale.campaign(&["suppress", "add", &format!("+{}", phone(2))]).exits(0);
    sale.run(&[]).exits(0);
    none(&sale, "none of the 3 rows gets a message: 2 already sent, 1 opted out");
    none(&campaign().with_list("phone,name\n123,Olena\nabc,Petro\n").write(), "gets a message: 1 invalid (");
    let repeated = format!("phone,name\n{0},Olena\n", phone(2));
    let sale = campaign().with_list(&repeated).write();
    sale.campaign(&["suppress", "add", &format!("+{}", phone(2))]).exits(0);
    none(&sale, "the only row gets no message: 1 opted out");
    sale.replace("sale.yaml", "recipients:", "recipients:\n  empty: ok");
    let fine = sale.campaign(&["check", "sale.yaml"]).exits(0);
    assert!(!fine.stderr.contains("no-messages"), "{}", fine.told());
}

#[test]
fn run_that_sends_nothing_says_why_and_suggests_a_check() {
    let sale = campaign().to(2).write();
    for row in 2..4 {
        sale.campaign(&["suppress", "add", &format!("+{}", phone(row))]).exits(0);
    }
    let told = sale.run(&[]).exits(0).stdout;
    assert!(told.contains("2 skipped: opted out (first in row 2)"), "{told}");
    assert!(told.contains("campaign check sale.yaml") && !told.contains("gateway add"), "{told}");
    assert!(!told.contains("real run"), "{told}");
    let invalid = campaign().with_list("phone,name\n123,Olena\n").write().run(&[]).exits(3).stdout;
    assert!(invalid.contains("1 invalid: ") && !invalid.contains("gateway add"), "{invalid}");
}

#[test]
fn warnings_of_the_list_are_shown_by_every_run() {
    let list = format!("phone,name\n{},Olena\n{},#N/A\n", phone(2), phone(3));
    let draft = || campaign().with_list(&list);
    let sale = draft().write();
    let said = sale.run(&[]).exits(0).says("[placeholder-value]").stderr;
    assert_eq!(said.matches("[placeholder-value]").count(), 1, "{said}");
    sale.run(&["--dry-run"]).exits(0).says("[placeholder-value]");
    draft().write().run(&["-q"]).exits(0).says("[placeholder-value]");
    let gateway = Gateway::accepting();
    for arguments in [&["--yes"][..], &["--yes", "-q"]] {
        let told = draft().through(&gateway).write().run(&[&["--gateway", "local"], arguments].concat()).exits(0);
        assert!(told.stderr.contains("[placeholder-value]"), "{}", told.told());
    }
    let live = live();
    live.write("sale.csv", &list);
    live.run(&["--yes", "--offline", "--gateway", "local"]).exits(5).says("[placeholder-value]");
}
