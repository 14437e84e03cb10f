//! Message texts that cannot be rendered for some rows.

use crate::support::{Gateway, campaign, phone};

/// A list with four cells under `discount`. One is empty, and one is not a number.
fn list() -> String {
    let cells = ["5", "10", "", "x"];
    let rows = cells.iter().enumerate().map(|(row, cell)| format!("{},Olena,{cell}\n", phone(row + 2)));
    format!("phone,name,discount\n{}", rows.collect::<String>())
}

#[test]
fn failed_comparison_is_reported_with_its_position_and_remedy() {
    let message = "{{ name }}{% if discount > 0 %}, -{{ discount }}%{% endif %}";
    let channel = format!("  - viber:\n      signature: Olena\n      message: \"{message}\"");
    let sale = campaign().with_list(&list()).channels(&channel).write();
    let output = sale.campaign(&["check", "sale.yaml", "--json"]).json();
    let findings = output["findings"].as_array().expect("findings");
    let problems: Vec<_> = findings.iter().filter(|finding| finding["severity"] != "note").collect();
    let [finding] = problems.as_slice() else { panic!("expected one finding: {output:#}") };
    assert_eq!((&finding["rule"], &finding["severity"]), (&"text-fails".into(), &"error".into()));
    assert_eq!(finding["message"], "`discount` is text but is compared with a number");
    let help = "write `discount | int > 0`, or `discount != '' and discount | int > 0` if some cells are empty";
    assert_eq!(finding["help"], help);
    let yaml = std::fs::read_to_string(sale.path("sale.yaml")).expect("a file");
    let (index, text) = yaml.lines().enumerate().find(|(_, line)| line.contains("discount > 0")).expect("the line");
    assert_eq!(finding["line"], index + 1);
    assert_eq!(finding["column"], text.find("discount > 0").expect("the position") + 1);
    let position = format!("sale.yaml:{}:{}", index + 1, text.find("discount > 0").expect("the position") + 1);
    let output = sale.campaign(&["check", "sale.yaml"]).exits(2).details();
    assert!(output.contains(&position), "no {position} in {output}");
}

#[test]
fn text_that_fails_for_every_row_is_an_error_and_sends_nothing() {
    let list = format!("phone,name,sum\n{},Olena,\"1 250,50\"\n{},Taras,\"90,00\"\n", phone(2), phone(3));
    let channel = "  - sms: { signature: OlenaCo, message: \"{% if sum | float > 5 %}{{ name }}{% endif %}!\" }";
    let sale = campaign().with_list(&list).channels(channel).write();
    let output = sale.campaign(&["check", "sale.yaml", "--json"]).exits(2).json();
    let finding = &output["findings"][0];
    assert_eq!((&finding["rule"], &finding["severity"]), (&"text-fails".into(), &"error".into()));
    let expected = "rows 2 and 3 are invalid: the cell in `sum` contains a number with a comma or spaces";
    assert_eq!(finding["message"], expected);
    assert!(
        finding["help"].as_str().is_some_and(|help| help.contains("`1250.50` instead of `1 250,50`")),
        "{output:#}"
    );
    sale.campaign(&["run", "sale.yaml", "--no-wait"]).exits(2);
    // If the text can be rendered for at least one row, `check` passes.
    sale.write("sale.csv", &format!("{list}{},Maria,2000\n", phone(4)));
    sale.campaign(&["check", "sale.yaml"]).exits(0);
}

#[test]
fn converted_cell_or_row_number_can_be_compared() {
    let list = format!("phone,name,discount\n{},Olena,5\n", phone(2));
    for condition in [
        "{% set discount = discount | int %}{% if discount > 0 %}",
        "{% if discount and discount | int > 0 %}",
        "{% if row > 1 %}",
        "{% if discount is defined and discount > '0' %}",
    ] {
        let channel =
            format!("  - sms: {{ signature: OlenaCo, message: \"{condition}{{{{ name }}}}{{% endif %}}!\" }}");
        let sale = campaign().with_list(&list).channels(&channel).write();
        let output = sale.campaign(&["check", "sale.yaml"]).exits(0);
        assert!(output.stdout.contains("Olena!"), "{condition}: {}", output.details());
    }
}

#[test]
fn number_converted_by_an_including_text_can_be_compared() {
    let list = format!("phone,name,discount\n{},Olena,5\n{},Taras,7\n", phone(2), phone(3));
    let channel = "  - sms: { signature: OlenaCo, message: { file: sale.txt } }";
    let sale = campaign().with_list(&list).channels(channel).write();
    sale.write("sale.txt", "{% set discount = discount | int %}{% include 'shared.txt' %}");
    sale.write("shared.txt", "{% if discount > 6 %}{{ name }}{% else %}friend{% endif %}!");
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("friend!").says("Taras!");
}

#[test]
fn suggested_where_condition_excludes_empty_cells() {
    let gateway = Gateway::accepting();
    let list = format!("phone,points\n{},5\n{},\n{},1\n", phone(2), phone(3), phone(4));
    let draft = |condition: &str| campaign().with_list(&list).recipients(condition).through(&gateway);
    let channel = "  - sms: { signature: OlenaCo, message: Hello }";
    let sale = draft("where: \"points > 3\"").channels(channel).write();
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("points != '' and points | int > 3");
    let sale = draft("where: \"points != '' and points | int > 3\"").channels(channel).write();
    sale.run(&[]).exits(0);
    assert_eq!(sale.results().states(), ["accepted", "skipped", "skipped"]);
}

#[test]
fn cells_of_invalid_rows_count_when_texts_are_matched() {
    let list = format!("phone,language\n{},de\n12,uk\n13,uk\n", phone(2));
    let channel = "  - sms: { signature: OlenaCo, message: { by: language, texts: { uk: uk.txt, en: en.txt } } }";
    let sale = campaign().with_list(&list).channels(channel).recipients("max_invalid: 90%").write();
    sale.write("uk.txt", "Hi");
    sale.write("en.txt", "Hi");
    let output = sale.campaign(&["check", "sale.yaml"]);
    assert!(!output.stderr.contains("no-text-chosen"), "{}", output.details());
}

#[test]
fn failure_in_a_text_file_is_reported_at_its_line() {
    let channel = "  - sms: { signature: OlenaCo, message: { file: sale.txt } }";
    let sale = campaign().with_list(&list()).channels(channel).write();
    sale.write("sale.txt", "{{ name }},\nyour {{ discount | int }}%\n");
    let output = sale.campaign(&["check", "sale.yaml"]);
    let expected = [
        "sale.txt:2:9",
        "row 5 is invalid: the cell in `discount` is not a number",
        "is empty and cannot be converted to a number",
    ];
    for part in expected {
        assert!(output.stderr.contains(part), "no {part}: {}", output.details());
    }
    assert!(!output.stderr.contains("i64") && !output.stderr.contains("`string`"), "{}", output.details());
}

#[test]
fn filters_format_amounts_and_dates_in_the_campaign_language() {
    let list = format!("phone,sum,due\n{},4392.66,2026-12-05\n", phone(2));
    let channel = "  - sms: { signature: OlenaCo, message: \"{{ sum | money }} | {{ due | date }} | {{ sum | float | round }}\" }";
    for (language, expected) in [
        ("language: uk", "4 392,66 | 5 грудня 2026 | 4393"),
        ("language: en", "4,392.66 | 5 December 2026 | 4393"),
        ("language: de", "4.392,66 | 5. Dezember 2026 | 4393"),
    ] {
        let sale = campaign().with_list(&list).channels(channel).top(language).write();
        let output = sale.campaign(&["check", "sale.yaml"]).exits(0);
        assert!(output.stdout.contains(expected), "no {expected}: {}", output.details());
    }
    let sale = campaign().with_list(&list).channels(channel).recipients("region: UA").write();
    let output = sale.campaign(&["check", "sale.yaml"]).exits(0);
    assert!(output.stdout.contains("4 392,66 | 5 грудня 2026"), "{}", output.details());
}
