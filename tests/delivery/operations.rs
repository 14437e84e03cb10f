//! Operations that a campaign can send (contract 4.3).

use serde_json::{Value, json};

use crate::support::{Gateway, SandboxProcess, campaign};

const SMS: &str = "  - sms: { signature: OlenaCo, message: Hello }";
const VIBER: &str = "  - viber: { signature: OlenaCo, message: Hello }";
const RCS: &str = "  - rcs: { signature: OlenaCo, message: Hello, image: \"https://cdn.example/a.png\", button: Shop, link: \"https://shop.example\" }";
const RCS_STAGE: &str = "  - rcs: { signature: OlenaCo, message: Hello }";
const TELEGRAM: &str = "  - telegram: { message: \"4821\" }";
const VOICE: &str = "  - voice: { message: Hello, gender: female, language: uk-UA, name: uk-UA-Standard-A }";
const WHATSAPP: &str = "  - whatsapp: { signature: OlenaCo, message: Hello }";

/// Channels, the resulting operation type, and its keys in addition to `type`, `id` and `phone`.
fn operation_cases() -> Vec<(Vec<&'static str>, &'static str, Value)> {
    let rcs = json!({ "rcs_signature": "OlenaCo", "rcs_message": "Hello", "rcs_image": "https://cdn.example/a.png",
        "rcs_button": "Shop", "rcs_link": "https://shop.example" });
    let viber = json!({ "viber_type": "text", "viber_signature": "OlenaCo", "viber_message": "Hello" });
    let sms = json!({ "sms_signature": "OlenaCo", "sms_message": "Hello" });
    let voice = json!({ "gender": "female", "language": "uk-UA", "name": "uk-UA-Standard-A" });
    let texts = json!({ "signature": "OlenaCo", "message": "Hello" });
    vec![
        (vec![SMS], "sms", sms.clone()),
        (vec![VIBER], "viber", viber.clone()),
        (vec![RCS], "rcs", rcs.clone()),
        (vec![TELEGRAM], "telegram", json!({ "message": "4821" })),
        (vec![VOICE], "voice", json!({ "message": "Hello", "voice": voice })),
        (vec![VIBER, SMS], "viber+sms", merge(&viber, &sms)),
        (vec![RCS, SMS], "rcs+sms", merge(&rcs, &sms)),
        (vec![RCS, VIBER, SMS], "rcs+viber+sms", merge(&merge(&rcs, &viber), &sms)),
        (vec!["  - hlr: {}"], "hlr", json!({})),
        (vec!["  - call/otp: {}"], "call/otp", json!({})),
        (vec![WHATSAPP], "pipeline", json!({ "pipeline": ["whatsapp"], "whatsapp": texts })),
        (
            vec![VOICE, TELEGRAM, VIBER, RCS_STAGE, SMS, WHATSAPP],
            "pipeline",
            json!({ "pipeline": ["voice", "telegram", "viber", "rcs", "sms", "whatsapp"],
                "voice": merge(&json!({ "message": "Hello" }), &voice), "telegram": { "message": "4821" },
                "viber": merge(&json!({ "type": "text" }), &texts), "rcs": texts, "sms": texts, "whatsapp": texts }),
        ),
    ]
}

fn merge(one: &Value, other: &Value) -> Value {
    let members = [one, other].into_iter().flat_map(|object| object.as_object().expect("an object").clone());
    Value::Object(members.collect())
}

#[test]
fn channels_produce_the_operation_shown_in_the_contract() {
    for (channels, kind, keys) in operation_cases() {
        let gateway = Gateway::accepting();
        let sale = campaign().channels(&channels.join("\n")).through(&gateway).write();
        sale.run(&[]).exits(0);
        let results = sale.results();
        let operations: Vec<Value> = gateway.sends().into_iter().flat_map(|request| request.operations()).collect();
        assert_eq!(operations.len(), 3, "{kind}");
        for (operation, row) in operations.iter().zip(&results.rows) {
            let (id, to): (u64, u64) = (row["id"].parse().unwrap(), row["to"].parse().unwrap());
            assert_eq!(operation, &merge(&json!({ "type": kind, "id": id, "phone": to }), &keys));
            assert_eq!((row["state"].as_str(), row["operation"].as_str()), ("accepted", kind));
        }
    }
}

#[test]
fn sandbox_accepts_every_operation() {
    let sandbox = SandboxProcess::start();
    for (channels, kind, _) in operation_cases() {
        let sale = campaign().channels(&channels.join("\n")).through(&sandbox).write();
        sale.run(&[]).exits(0);
        assert_eq!(sale.results().column("operation"), [kind; 3]);
    }
}

#[test]
fn lookup_and_code_call_answers_are_in_the_results() {
    for (kind, member) in [("hlr", "mccmnc"), ("call/otp", "code")] {
        let gateway = Gateway::accepting();
        let sale = campaign().channels(&format!("  - {kind}: {{}}")).through(&gateway).write();
        sale.run(&[]).exits(0);
        for row in &sale.results().rows {
            let answer: Value = serde_json::from_str(&row["answer"]).expect("JSON");
            assert!(!answer[member].is_null(), "{answer}");
        }
    }
}

#[test]
fn unsubscribe_link_is_allowed_only_in_a_plain_sms() {
    let gateway = Gateway::accepting();
    let sms = "  - sms: { signature: OlenaCo, message: Hello, unsubscribe_link: true }";
    let sale = campaign().channels(sms).through(&gateway).write();
    sale.run(&[]).exits(0);
    assert!(gateway.sends()[0].operations().iter().all(|operation| operation["unsubscribe_link"] == json!(true)));
    let viber = "  - viber: { signature: OlenaCo, message: Hello }";
    for channels in [format!("{viber}\n{sms}"), format!("{sms}\n{viber}")] {
        campaign().channels(&channels).through(&gateway).rewrite(&sale);
        sale.run(&[]).exits(2).says("error[not-carried]").says("only a plain `sms` has a field for this key");
    }
    let twice = sms.replace("true }", "true, fields: { unsubscribe_link: false } }");
    campaign().channels(&twice).through(&gateway).rewrite(&sale);
    sale.run(&[]).exits(2).says("error[field-collision]");
}

#[test]
fn custom_fields_are_sent_unchanged() {
    let gateway = Gateway::accepting();
    let sms = "  - sms: { signature: OlenaCo, message: Hello, lifetime: 2h, short_link: true, fields: { unsubscribe_link: true, tag: [1, x] } }";
    campaign().channels(sms).through(&gateway).write().run(&[]).exits(0);
    for operation in gateway.sends()[0].operations() {
        assert_eq!((&operation["sms_lifetime"], &operation["short_link"]), (&json!(7200), &json!(true)));
        assert_eq!((&operation["unsubscribe_link"], &operation["tag"]), (&json!(true), &json!([1, "x"])));
    }
}
