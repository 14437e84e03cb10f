//! Texts and cells that other programs have damaged, and undamaged texts in many languages.

use crate::support::{campaign, note_on_failure, phone};

/// The rules that `check` reports for this SMS to recipients with these names, without notes.
fn find_rules(message: &str, names: &[&str]) -> Vec<String> {
    let rows = names.iter().enumerate().map(|(row, name)| format!("{},\"{name}\"\n", phone(row + 2)));
    let list = format!("phone,name\n{}", rows.collect::<String>());
    let channel = format!("  - sms:\n      signature: OlenaCo\n      max_parts: 9\n      message: {message}");
    let sale = campaign().with_list(&list).channels(&channel).write();
    let output = sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json();
    let findings = output["findings"].as_array().expect("findings");
    let problems = findings.iter().filter(|finding| finding["severity"] != "note");
    for finding in problems.clone() {
        assert!(finding["help"].is_string(), "no help: {finding}");
    }
    problems.map(|finding| finding["rule"].as_str().expect("a rule").to_owned()).collect()
}

#[test]
fn each_kind_of_damaged_cell_is_reported_under_its_rule() {
    for (cell, rule) in [
        ("?????", "lost-letters"),
        ("????? ????????", "lost-letters"),
        ("Ol\u{fffd}na", "lost-letters"),
        ("Olena\u{96}", "control-character"),
        ("РћР»РµРЅР°", "misread-encoding"),
        ("JosÃ©", "misread-encoding"),
        ("O&#039;Neil", "html-entity"),
        ("&quot;Olena&quot;", "html-entity"),
        ("'00123", "leading-apostrophe"),
    ] {
        let _case = note_on_failure(format!("case: {cell}"));
        assert_eq!(find_rules("'Hello, {{ name }}'", &["Olena", cell, cell]), [rule], "{cell}");
    }
}

#[test]
fn each_kind_of_damaged_text_is_reported_under_its_rule() {
    for (message, rule) in [
        ("'Hello<br>{{ name }}'", "html-tag"),
        ("'Hello&nbsp;{{ name }}'", "html-entity"),
        ("'Tom &amp; Co, {{ name }}'", "html-entity"),
        ("'Hello%0A{{ name }}'", "url-escape"),
        ("'**Sale** for {{ name }}'", "markdown"),
        ("'Hello\\n{{ name }}'", "escaped-line-break"),
        ("'РџСЂРёРІС–С‚, {{ name }}'", "misread-encoding"),
        ("'?????? {{ name }}, ?????'", "lost-letters"),
    ] {
        let _case = note_on_failure(format!("case: {message}"));
        assert_eq!(find_rules(message, &["Olena", "Ivan"]), [rule], "{message}");
    }
}

#[test]
fn texts_and_names_in_many_languages_are_not_damaged() {
    let names = [
        "Ґанна Їжакевич",
        "В’ячеслав",
        "Łucja Żółć",
        "Élodie L’Hôte",
        "Jürgen Müßig",
        "Ștefan Țîru",
        "Ελένη Παπαδοπούλου",
        "ნინო ბერიძე",
        "Zoë 😀",
        "O'Neil",
        "Tom & Jerry",
    ];
    for message in [
        "'{{ name }}, готові? Знижка -20% на все: https://shop.example/a%20b?x=1&y=2'",
        "'{{ name }}, 100** грн; ** умови на сайті'",
        "'{{ name }}, hast du Lust??? 5 < 7 & 3 > 2'",
        "\"{{ name }}, première ligne\\nseconde ligne ?\"",
    ] {
        let _case = note_on_failure(format!("case: {message}"));
        let found = find_rules(message, &names);
        let damage: Vec<&String> =
            found.iter().filter(|rule| !["costly-character", "same-link"].contains(&rule.as_str())).collect();
        assert!(damage.is_empty(), "{message}: {damage:?}");
    }
}
