//! Recipient lists: unreadable files, invalid rows, and column names.

use crate::support::{Gateway, Results, campaign, note_on_failure, phone};

use super::assert_refused;

#[test]
fn unreadable_list_is_reported_with_its_location_and_not_sent() {
    for (list, words) in [
        ("phone,name\n380501000002,\"open\n380501000003,b\n", &["sale.csv:2:14", "quote"][..]),
        ("telephone,name\n380501000002,a\n", &["sale.csv:1:1", "`phone`", "columns: { phone: \"telephone\" }"]),
        ("phone,name\n380501000002,a,b\n", &["sale.csv:2:", "3 cells"]),
        ("phone,name\n", &["sale.csv", "no recipients"]),
        ("", &["sale.csv"]),
        ("phone,name,name\n380501000002,a,b\n", &["sale.csv:1:", "name"]),
    ] {
        let _case = note_on_failure(format!("case: {list:?}"));
        let gateway = Gateway::accepting();
        assert_refused(&campaign().with_list(list).through(&gateway).write(), &gateway, words);
    }
}

#[test]
fn run_is_refused_if_too_many_rows_are_invalid() {
    let people: String = (2..20).map(|row| format!("{},Person {row}\n", phone(row))).collect();
    let list = format!("phone,name\n{people}{}not a number,Odd\n", "12,Short\n".repeat(4));
    let gateway = Gateway::accepting();
    let sale = campaign().with_list(&list).recipients("max_invalid: 21%").through(&gateway).write();
    assert_refused(&sale, &gateway, &["5 of 23", "max_invalid"]);
    campaign().with_list(&list).recipients("max_invalid: 22%").through(&gateway).rewrite(&sale);
    sale.run(&[]).exits(3);
    assert_eq!(gateway.phones().len(), 18);
}

#[test]
fn unsendable_text_invalidates_only_its_row() {
    let sms = "  - sms: { signature: OlenaCo, message: \"{{ name }}\", max_parts: 1 }";
    let people: String = (4..40).map(|row| format!("{},Person {row}\n", phone(row))).collect();
    let list = format!("phone,name\n{},{}\n{},\" \"\n{people}", phone(2), "x".repeat(161), phone(3));
    let gateway = Gateway::accepting();
    let sale = campaign().with_list(&list).channels(sms).through(&gateway).write();
    sale.run(&[]).exits(3);
    let results = sale.results();
    assert_eq!(results.states()[..3], ["invalid", "invalid", "accepted"]);
    assert!(results.column("reason")[0].contains("parts") && results.column("reason")[1].contains("empty"));
    assert_eq!(gateway.phones(), (4..40).map(phone).collect::<Vec<_>>());
}

#[test]
fn empty_whatsapp_text_is_never_sent() {
    let whatsapp = "  - whatsapp: { signature: OlenaCo, message: \"{{ name }}\" }";
    let list = format!("phone,name\n{},\n{},Ann\n", phone(2), phone(3));
    let gateway = Gateway::accepting();
    let draft = campaign().with_list(&list).recipients("max_invalid: 50%").channels(whatsapp);
    draft.through(&gateway).write().run(&[]).exits(3);
    assert_eq!(gateway.phones(), [phone(3)]);
}

#[test]
fn columns_can_be_mapped_and_national_numbers_are_read() {
    let list = "Мобільний;Ім'я\n050 123 45 67;Олена\n";
    let gateway = Gateway::accepting();
    let columns = "columns: { phone: \"Мобільний\", name: \"Ім'я\" }";
    let sale = campaign().with_list(list).recipients(columns).recipients("region: UA").through(&gateway).write();
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [380_501_234_567]);
    assert_eq!(gateway.sends()[0].operations()[0]["sms_message"], "Hello, Олена");
}

#[test]
fn too_many_invalid_rows_are_listed_with_the_best_advice() {
    let long = "x".repeat(500);
    let national = "0501234567,Ann\n".repeat(30);
    let rounded = "3.80501E+11,Bo\n".repeat(30);
    let valid: String = (100..140).map(|row| format!("{},Ok\n", phone(row))).collect();
    let texts: String = (2..32).map(|row| format!("{},{long}{}\n", phone(row), "y".repeat(row))).collect();
    for (rows, advice) in
        [(&national, "`region: UA`"), (&rounded, "format the column as text"), (&texts, "raise `max_parts`")]
    {
        let _case = note_on_failure(format!("case: {advice}"));
        let sale = campaign().with_list(&format!("phone,name\n12,Short\n{valid}{rows}")).write();
        for arguments in [&["check", "sale.yaml"][..], &["run", "sale.yaml"]] {
            let refused = sale.campaign(arguments).exits(2).says("31 of 71 rows are invalid").says(advice);
            refused.says("`max_invalid: 100%` in a copy of the campaign file").says("the results of `run --dry-run`");
        }
        let report = sale.campaign(&["check", "sale.yaml", "--json"]).exits(2).json();
        let messages =
            report["findings"].as_array().expect("findings").iter().filter_map(|finding| finding["message"].as_str());
        let named = messages.filter(|message| message.starts_with("row")).flat_map(|message| {
            let rows = message.split([':']).next().expect("rows").split(" and ").next().expect("rows");
            rows.split([' ', ',']).filter_map(|word| word.parse::<u32>().ok()).collect::<Vec<_>>()
        });
        assert_eq!(named.filter(|row| *row != 2).count(), 19, "{report}");
        // Follow the advice.
        sale.replace("sale.yaml", "recipients:\n", "recipients:\n  max_invalid: 100%\n");
        sale.campaign(&["run", "sale.yaml", "--dry-run"]).exits(3);
        let all = Results::read(&sale.path("results/sale.sandbox.dry-run.csv"));
        assert!(all.rows.iter().filter(|row| row["state"] == "invalid" && !row["reason"].is_empty()).count() == 31);
    }
}
