//! Lists of recipients.

use crate::support::{Gateway, campaign, phone, telling};

use super::refused;

#[test]
fn a_list_that_cannot_be_read_is_told_with_its_place_and_nothing_is_sent() {
    for (list, words) in [
        ("phone,name\n380501000002,\"open\n380501000003,b\n", &["sale.csv:2:14", "quote"][..]),
        ("telephone,name\n380501000002,a\n", &["sale.csv:1:1", "`phone`", "columns: { phone: \"telephone\" }"]),
        ("phone,name\n380501000002,a,b\n", &["sale.csv:2:", "3 cells"]),
        ("phone,name\n", &["sale.csv", "no recipients"]),
        ("", &["sale.csv"]),
        ("phone,name,name\n380501000002,a,b\n", &["sale.csv:1:", "name"]),
    ] {
        let _case = telling(format!("case: {list:?}"));
        let gateway = Gateway::accepting();
        refused(&campaign().with_list(list).through(&gateway).write(), &gateway, words);
    }
}

#[test]
fn too_many_invalid_rows_stop_everything_before_it_starts() {
    let people: String = (2..20).map(|row| format!("{},Person {row}\n", phone(row))).collect();
    let list = format!("phone,name\n{people}12,Short\nnot a number,Odd\n");
    let gateway = Gateway::accepting();
    let sale = campaign().with_list(&list).recipients("max_invalid: 9%").through(&gateway).write();
    refused(&sale, &gateway, &["2 of 20", "max_invalid"]);
    campaign().with_list(&list).recipients("max_invalid: 10%").through(&gateway).rewrite(&sale);
    sale.run(&[]).exits(3);
    assert_eq!(gateway.phones().len(), 18);
}

#[test]
fn a_row_whose_text_cannot_be_sent_is_invalid_alone() {
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
fn an_empty_whatsapp_text_never_leaves() {
    let whatsapp = "  - whatsapp: { signature: OlenaCo, message: \"{{ name }}\" }";
    let list = format!("phone,name\n{},\n{},Ann\n", phone(2), phone(3));
    let gateway = Gateway::accepting();
    let draft = campaign().with_list(&list).recipients("max_invalid: 50%").channels(whatsapp);
    draft.through(&gateway).write().run(&[]).exits(3);
    assert_eq!(gateway.phones(), [phone(3)]);
}

#[test]
fn columns_are_named_and_national_numbers_understood() {
    let list = "Мобільний;Ім'я\n050 123 45 67;Олена\n";
    let gateway = Gateway::accepting();
    let columns = "columns: { phone: \"Мобільний\", name: \"Ім'я\" }";
    let sale = campaign().with_list(list).recipients(columns).recipients("region: UA").through(&gateway).write();
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [380_501_234_567]);
    assert_eq!(gateway.sends()[0].operations()[0]["sms_message"], "Hello, Олена");
}
