//! Suspicious cells of the list, reported once per column with the number of rows.

use std::fmt::Write as _;

use crate::support::{Folder, Gateway, campaign, live, phone};

/// The output of `check` for this SMS to recipients with these cells under `name`, `vip` and `code`.
fn check_message(message: &str, cells: &[[&str; 3]]) -> String {
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
        let output = check_message(hello, &[["Olena", "a", "1"], [nothing, "a", "2"], [nothing, "a", "3"]]);
        let expected = format!(
            "the column `name` contains `{nothing}` in 2 rows (first: row 3), and recipients would see this value"
        );
        assert!(output.contains(&expected), "{output}");
        assert_eq!(output.matches("[placeholder-value]").count(), 1, "{output}");
    }
    for fine in ["Nan", "Noneta", "Null-Emma", "O-Ren"] {
        assert!(!check_message(hello, &[[fine, "a", "1"]]).contains("placeholder-value"), "{fine}");
    }
    let unprinted = "{% if vip == \"None\" %}Hi{% else %}Hello {{ name }}{% endif %}{{ code }}";
    assert!(
        !check_message(unprinted, &[["Olena", "None", "1"]]).contains("placeholder-value"),
        "the value is not part of the message"
    );
}

#[test]
fn message_with_a_gap_is_reported_unless_the_gap_is_allowed() {
    let guarded = "Hello {% if name %}{{ name }}{% endif %}, your {{ vip }} code is {{ code }}";
    let rows = [["Olena", "a", "1"], ["", "a", "2"]];
    assert!(check_message(guarded, &rows).contains("in row 3, as in `Hello , …`"), "{}", check_message(guarded, &rows));
    let unguarded = check_message("Hello {{ name }}, {{ vip }} {{ code }}", &rows);
    assert!(unguarded.contains("empty-cell") && !unguarded.contains("empty-greeting"), "{unguarded}");
    let right = "Hello{% if name %} {{ name }}{% endif %}, {{ vip }} {{ code }}";
    assert!(!check_message(right, &rows).contains("warning"), "{}", check_message(right, &rows));
}

#[test]
fn condition_that_treats_false_text_as_true_is_reported() {
    let bare = "{% if vip %}Thank you{% else %}Hello{% endif %} {{ name }} {{ code }}";
    let output = check_message(bare, &[["Olena", "true", "1"], ["Petro", "FALSE", "2"], ["Ivan", "false", "3"]]);
    assert!(output.contains("`{% if vip %}` is true in 2 rows (first: row 3), where the cell is `FALSE`"), "{output}");
    for fine in [["Olena", "gold", "1"], ["Olena", "", "1"], ["Olena", "yes", "1"]] {
        assert!(!check_message(bare, &[fine]).contains("cell-is-text"), "{fine:?}");
    }
    let compared = "{% if vip == \"true\" %}Thank you{% else %}Hello{% endif %} {{ name }} {{ code }}";
    let output = check_message(compared, &[["Olena", "TRUE", "1"], ["Petro", "FALSE", "2"]]);
    assert!(output.contains("no row has `true` in the column `vip`; the value is `TRUE` in row 2"), "{output}");
    assert!(
        !check_message(compared, &[["Olena", "TRUE", "1"], ["Petro", "true", "2"]]).contains("cell-is-text"),
        "one row matches"
    );
}

#[test]
fn loop_over_the_characters_of_a_cell_is_reported() {
    let looped =
        |list: &str| format!("{{% for part in {list} %}}{{{{ part }}}} {{% endfor %}}{{{{ vip }}}} {{{{ code }}}}");
    let rows = [["Olena;Ivan", "a", "1"], ["Petro", "b", "2"]];
    let output = check_message(&looped("name"), &rows);
    assert!(output.contains("in row 2, the loop over `name` splits the cell into individual characters"), "{output}");
    assert!(output.contains("write `name | split(pat=\";\")` in the loop"), "{output}");
    assert!(!check_message(&looped("name | split(pat=\";\")"), &rows).contains("loop-over-text"));
    assert!(
        !check_message(&looped("name"), &[["4321", "a", "1"]]).contains("loop-over-text"),
        "the loop might be intended"
    );
}

#[test]
fn mistakes_and_links_in_cells_are_reported_once_per_column() {
    let hello = "Hello, {{ name }}! {{ vip }} {{ code }}";
    let rows =
        [["Олeна", "http://a.example", "1"], ["Пeтpo", "HTTP://b.example", "2"], ["Olena", "https://c.example", "3"]];
    let output = check_message(hello, &rows);
    assert!(
        output.contains(
            "the Cyrillic word `Олeна` contains the Latin letter `e`, in the column `name` of 2 rows (first: row 2)"
        ),
        "{output}"
    );
    assert!(output.contains("the column `vip` contains links that do not start with `https://` in 2 rows"), "{output}");
}

#[test]
fn identical_texts_and_links_and_unused_columns_are_noted() {
    let rows = [["Olena", "a", "1"], ["Petro", "b", "2"]];
    let same = check_message("Sale! https://shop.example", &rows);
    assert!(same.contains("note[same-for-all]") && same.contains("the column `name`"), "{same}");
    assert!(same.contains("note[same-link]") && same.contains("no message uses the column `code`"), "{same}");
    assert!(same.contains("note[unused-column]: no message uses the columns `name`, `vip`, `code`"), "{same}");
    let used = check_message("{{ name }}, {{ vip }}: https://shop.example/?c={{ code }}", &rows);
    assert!(!used.contains("note"), "{used}");
    let one = check_message("{{ name }}: https://shop.example/?c={{ code }}", &rows);
    assert!(one.contains("no message uses the column `vip`") && !one.contains("same-"), "{one}");
}

#[test]
fn odd_cells_of_skipped_rows_are_not_reported() {
    let sale = campaign()
        .with_list(&format!("phone,name\n{},Olena\n{},None\n12,nan\n", phone(2), phone(2)))
        .recipients("max_invalid: 100%")
        .write();
    let output = sale.campaign(&["check", "sale.yaml"]).exits(0);
    assert!(!output.stderr.contains("placeholder-value"), "{}", output.details());
}

#[test]
fn dates_in_another_form_are_reported_even_if_they_filter_their_rows() {
    let rows = ["05.12.2120", "2120-12-05", "06.12.2120"].into_iter().zip(2..);
    let list: String = rows.map(|(day, row)| format!("{},Olena,{day}\n", phone(row))).collect();
    let draft = |condition: &str| {
        campaign().with_list(&format!("phone,name,due\n{list}")).recipients(&format!("where: {condition}")).write()
    };
    for condition in ["due >= today", "due == '2120-12-05'"] {
        let warned = draft(condition).campaign(&["check", "sale.yaml"]).exits(0).stderr;
        assert!(warned.contains("the cell is `05.12.2120` in 2 rows") && warned.contains("| date(format="), "{warned}");
    }
    for condition in ["due | date >= today", "due | date(format='%d.%m.%Y') >= '05.12.2120'"] {
        let refused = draft(condition).campaign(&["check", "sale.yaml"]).stderr;
        assert!(refused.contains("is ordered as text"), "{condition}: {refused}");
        assert!(refused.contains("write `due | date(format=\"%Y-%m-%d\") >= "), "{condition}: {refused}");
    }
}

#[test]
fn dates_and_numbers_that_are_ordered_as_text_are_reported() {
    let list = format!("phone,name,visit\n{},Olena,05.12.2020\n{},Petro,30.11.2020\n", phone(2), phone(3));
    let sale = campaign().with_list(&list).recipients("where: visit < today").write();
    let output = sale.campaign(&["check", "sale.yaml"]).exits(0).says("warning[cell-is-text]");
    output
        .says("the cell is `05.12.2020` in 2 rows (first: row 2)")
        .says("write `visit | date(format=\"%Y-%m-%d\") < today`");
    sale.replace("sale.yaml", "visit < today", "visit | date(format=\"%Y-%m-%d\") < today");
    let output = sale.campaign(&["check", "sale.yaml"]).exits(0).says("2 of 2");
    assert!(!output.stderr.contains("cell-is-text"), "{}", output.details());
    sale.replace("sale.yaml", "visit | date(format=\"%Y-%m-%d\") < today", "visit == today");
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("nobody-meant").says("`| date(format=\"%m-%d\")`");
    sale.replace("sale.yaml", "visit == today", "'visit >= \"01.12.2020\"'");
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("is ordered as text").says(">= \"2020-12-01\"");
    sale.replace("sale.yaml", "visit >= \"01.12.2020\"", "name > \"100\"");
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("write `name | int > 100`");
}

#[test]
fn check_warns_if_no_row_gets_a_message() {
    let gateway = Gateway::accepting();
    let check_reason = |sale: &Folder, expected: &str| {
        let output = sale.campaign(&["check", "sale.yaml"]).exits(0).says("warning[no-messages]").says(expected);
        assert_eq!(output.stderr.matches("no-messages").count(), 1, "{}", output.details());
        sale.campaign(&["check", "sale.yaml", "--strict"]).exits(2);
    };
    let sale = campaign().to(3).through(&gateway).write();
    sale.campaign(&["suppress", "add", &format!("+{}", phone(2))]).exits(0);
    sale.run(&[]).exits(0);
    check_reason(&sale, "none of the 3 rows gets a message: 2 already sent, 1 opted out");
    check_reason(&campaign().with_list("phone,name\n123,Olena\nabc,Petro\n").write(), "gets a message: 1 invalid (");
    let repeated = format!("phone,name\n{0},Olena\n", phone(2));
    let sale = campaign().with_list(&repeated).write();
    sale.campaign(&["suppress", "add", &format!("+{}", phone(2))]).exits(0);
    check_reason(&sale, "the only row gets no message: 1 opted out");
    sale.replace("sale.yaml", "recipients:", "recipients:\n  empty: ok");
    let fine = sale.campaign(&["check", "sale.yaml"]).exits(0);
    assert!(!fine.stderr.contains("no-messages"), "{}", fine.details());
    let answers = format!("phone,name,agreed\n{},Olena,maybe\n", phone(2));
    let consent = "consent: { column: agreed }\n  max_invalid: 100%";
    let asked = campaign().with_list(&answers).recipients(consent).top("consent: required").write();
    check_reason(&asked, "help: check `recipients.consent`");
}

#[test]
fn run_that_sends_nothing_says_why_and_suggests_a_check() {
    let sale = campaign().to(2).write();
    for row in 2..4 {
        sale.campaign(&["suppress", "add", &format!("+{}", phone(row))]).exits(0);
    }
    let output = sale.run(&[]).exits(0).stdout;
    assert!(output.contains("2 skipped: opted out (first in row 2)"), "{output}");
    assert!(output.contains("campaign check sale.yaml") && !output.contains("gateway add"), "{output}");
    assert!(!output.contains("real run"), "{output}");
    let invalid = campaign().with_list("phone,name\n123,Olena\n").write().run(&[]).exits(3).stdout;
    assert!(invalid.contains("1 invalid: ") && !invalid.contains("gateway add"), "{invalid}");
}

#[test]
fn warnings_about_the_list_are_shown_by_every_run() {
    let list = format!("phone,name\n{},Olena\n{},#N/A\n", phone(2), phone(3));
    let draft = || campaign().with_list(&list);
    let sale = draft().write();
    let output = sale.run(&[]).exits(0).says("[placeholder-value]").stderr;
    assert_eq!(output.matches("[placeholder-value]").count(), 1, "{output}");
    sale.run(&["--dry-run"]).exits(0).says("[placeholder-value]");
    draft().write().run(&["-q"]).exits(0).says("[placeholder-value]");
    let gateway = Gateway::accepting();
    for arguments in [&["--yes"][..], &["--yes", "-q"]] {
        let output = draft().through(&gateway).write().run(&[&["--gateway", "local"], arguments].concat()).exits(0);
        assert!(output.stderr.contains("[placeholder-value]"), "{}", output.details());
    }
    let live = live();
    live.write("sale.csv", &list);
    live.run(&["--yes", "--offline", "--gateway", "local"]).exits(5).says("[placeholder-value]");
}
