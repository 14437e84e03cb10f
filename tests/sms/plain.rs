//! `plain`: replacement of characters that make an SMS longer, in messages and previews.

use serde_json::Value;

use crate::support::{Gateway, Request, campaign, phone};

/// A text of about 90 characters with a name. It has one part in Latin letters, and two in Cyrillic.
const TEXT: &str = "Добрий день, {{ name }}! Знижка — до п’ятниці… Завітайте ще: «Оленка», Щ-Плаза, Єреван";

fn list() -> String {
    format!("phone,name\n{},Юрій Щербак\n{},Zoë\n", phone(2), phone(3))
}

fn sms(text: &str, plain: &str) -> String {
    format!("  - sms: {{ signature: OlenaCo, message: \"{text}\"{plain} }}")
}

/// The operations that a gateway received.
fn operations(gateway: &Gateway) -> Vec<Value> {
    gateway.sends().iter().flat_map(Request::operations).collect()
}

/// The SMS texts that a gateway received.
fn sent_texts(gateway: &Gateway) -> Vec<String> {
    let text = |operation: &Value| operation["sms_message"].as_str().expect("a text").to_owned();
    operations(gateway).iter().map(text).collect()
}

#[test]
fn transliterated_text_is_used_on_every_surface() {
    let gateway = Gateway::accepting();
    let sale =
        campaign().with_list(&list()).channels(&sms(TEXT, ", plain: latin, max_parts: 1")).through(&gateway).write();
    let output: Value = sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json();
    assert_eq!(output["parts"], 2);
    let latin =
        "Dobryi den, Yurii Shcherbak! Znyzhka - do piatnytsi... Zavitaite shche: \"Olenka\", Shch-Plaza, Yerevan";
    sale.campaign(&["preview", "sale.yaml"])
        .exits(0)
        .says(latin)
        .says("1 part: 101 of 160 characters (GSM-7)")
        .says("`plain: latin`");
    sale.run(&[]).exits(0);
    assert_eq!(sent_texts(&gateway), [latin.to_owned(), latin.replace("Yurii Shcherbak", "Zoe")]);
    // Without `plain`, the text has two parts, and only one is allowed.
    campaign().with_list(&list()).channels(&sms(TEXT, ", max_parts: 1")).through(&gateway).rewrite(&sale);
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("2 parts exceed `max_parts: 1`");
}

#[test]
fn typographic_quotes_are_replaced_and_reported_only_if_present() {
    let gateway = Gateway::accepting();
    let list = format!("phone,name\n{},Ann’s\n{},Ганна\n{},Ann\n", phone(2), phone(3), phone(4));
    let draft = campaign().with_list(&list).channels(&sms("{{ name }} 20%", ", plain: quotes")).through(&gateway);
    let sale = draft.write();
    let shown = sale.campaign(&["preview", "sale.yaml"]).exits(0);
    assert_eq!(shown.stdout.matches("`plain: quotes`").count(), 1, "{}", shown.stdout);
    sale.run(&[]).exits(0);
    assert_eq!(sent_texts(&gateway), ["Ann's 20%", "Ганна 20%", "Ann 20%"]);
}

#[test]
fn constant_text_is_checked_as_sent() {
    let text = "я".repeat(150);
    let draft = |plain| campaign().channels(&sms(&text, plain));
    draft(", max_parts: 2, plain: latin").write().campaign(&["check", "sale.yaml"]).exits(0);
    draft(", max_parts: 2").write().campaign(&["check", "sale.yaml"]).exits(2).says("3 parts");
}

#[test]
fn other_channels_keep_their_texts() {
    let gateway = Gateway::accepting();
    let viber = "  - viber: { signature: OlenaCo, message: \"Привіт — «{{ name }}»\" }";
    let sms = sms("Привіт — «{{ name }}»", ", plain: latin");
    let sale = campaign().with_list(&list()).channels(&format!("{viber}\n{sms}")).through(&gateway).write();
    sale.run(&[]).exits(0);
    let operation = &operations(&gateway)[0];
    assert_eq!(operation["viber_message"], "Привіт — «Юрій Щербак»");
    assert_eq!(operation["sms_message"], "Pryvit - \"Yurii Shcherbak\"");
    assert!(operation.get("plain").is_none());
}

#[test]
fn plain_setting_is_frozen_with_the_run() {
    let gateway = Gateway::accepting();
    let draft = |plain| campaign().with_list(&list()).channels(&sms("Привіт, {{ name }}", plain)).through(&gateway);
    let sale = draft(", plain: latin").write();
    sale.run(&["--limit", "1"]).exits(0);
    draft("").rewrite(&sale);
    sale.run(&[]).exits(2).says("the channels or their messages");
    draft(", plain: latin").rewrite(&sale);
    sale.run(&[]).exits(0);
    assert_eq!(sent_texts(&gateway), ["Pryvit, Yurii Shcherbak", "Pryvit, Zoe"]);
}

#[test]
fn unknown_plain_value_is_reported_with_known_values() {
    let sale = campaign().channels(&sms("Hi", ", plain: letters")).write();
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("sale.yaml:5:").says("`quotes`").says("`latin`");
}
