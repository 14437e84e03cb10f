//! What each operation requires, and what a pipeline costs: contract 4.3.

use campaign::domain::{Amount, Channel, Status};
use campaign::manifest::Percentage;
use campaign::sandbox::{Behaviour, Behaviours, Scenario};
use serde_json::{Value, json};

use super::Stand;
use super::examples::{SENDS, example, with};
use super::stand::millionths;

/// The fields that the contract requires of each operation, and those that its gaps are filled with.
const REQUIRED: [(&str, &[&str]); 16] = [
    ("hlr", &["phone"]),
    ("call/otp", &["phone"]),
    ("sms", &["phone", "sms_signature", "sms_message"]),
    ("viber", &["phone", "viber_type", "viber_signature", "viber_message"]),
    ("rcs", &["phone", "rcs_message", "rcs_signature", "rcs_image", "rcs_button", "rcs_link"]),
    ("rcs+sms", &["phone", "rcs_message", "rcs_signature", "rcs_image", "rcs_button", "rcs_link"]),
    ("rcs+sms", &["sms_message", "sms_signature"]),
    ("rcs+viber+sms", &["phone", "rcs_message", "rcs_signature", "rcs_image", "rcs_button", "rcs_link"]),
    ("rcs+viber+sms", &["viber_type", "viber_signature", "viber_message", "sms_message", "sms_signature"]),
    ("viber+sms", &["phone", "viber_type", "viber_signature", "viber_message", "sms_message", "sms_signature"]),
    ("telegram", &["phone", "message"]),
    ("voice", &["phone", "message"]),
    ("pipeline", &["phone", "pipeline", "sms", "viber"]),
    ("template/create", &["name", "template"]),
    ("template/viber/create", &["signature", "template"]),
    ("status", &["id"]),
];

/// Contract 4.3: an operation without a field that it requires fails in its item, and in nothing else.
#[test]
fn operation_without_a_required_field_fails_alone() {
    let stand = Stand::new();
    let good = example("sms", 1);
    for (kind, fields) in REQUIRED {
        for field in fields {
            for value in [Value::Null, json!(""), json!({"no": "such"})] {
                let lacking = with(&example(kind, 2), json!({*field: value}));
                let items = stand.items(&[good.clone(), lacking.clone(), good.clone()]);
                let successes: Vec<_> = items.iter().map(|item| item["success"] == true).collect();
                assert_eq!(successes, [true, false, true], "{lacking}\n{items:?}");
                assert!(items[1]["error"].is_string(), "{items:?}");
            }
        }
    }
}

/// Contract 4.3: `phone` is a number; clients send digits in a string and several of them too.
#[test]
fn phone_is_digits_without_a_plus_sign() {
    let stand = Stand::new();
    for (phone, parts) in [
        (json!(380_501_234_567_u64), Some(1)),
        (json!("380501234567"), Some(1)),
        (json!("380501234567,380671234567"), Some(2)),
        (json!("+380501234567"), None),
        (json!("0501234567"), None),
        (json!(12), None),
        (json!(38_050.5), None),
        (json!(-380_501_234_567_i64), None),
        (json!([380_501_234_567_u64]), None),
    ] {
        let item = stand.item(&with(&example("sms", 1), json!({"phone": phone})));
        assert_eq!(item["data"].get("parts").and_then(Value::as_u64), parts, "{phone}\n{item}");
        assert!(parts.is_some() || item["error"] == "Please enter valid receiver phone number", "{item}");
    }
}

/// Contract 4.3 `viber`: the values of `viber_type`, each with what it shows.
#[test]
fn viber_message_shows_the_fields_of_its_type() {
    let stand = Stand::new();
    let (text, image) = (("viber_message", json!("Hi")), ("viber_image", json!("https://cdn.example/a.png")));
    let (link, button) = (("viber_link", json!("https://shop.example/")), ("viber_button", json!("Shop")));
    let card =
        json!({"caption": "A", "image": "https://cdn.example/a.png", "url": "https://shop.example/", "button": "Buy"});
    let cards = ("viber_carousel", json!([card, card]));
    for (kind, fields) in [
        ("text", vec![&text]),
        ("image", vec![&image]),
        ("text+link", vec![&text, &link, &button]),
        ("text+image+link", vec![&text, &image, &link, &button]),
        ("carousel", vec![&text, &cards]),
    ] {
        let bare = with(&example("viber", 1), json!({"viber_type": kind, "viber_message": null}));
        let whole = fields.iter().fold(bare, |message, (name, value)| with(&message, json!({*name: value})));
        assert_eq!(stand.item(&whole)["success"], true, "{whole}");
        for (name, _) in fields.iter().filter(|(name, _)| kind != "carousel" || *name == "viber_carousel") {
            let lacking = with(&whole, json!({*name: null}));
            assert_eq!(stand.item(&lacking)["success"], false, "{lacking}");
        }
    }
    let unknown = with(&example("viber", 1), json!({"viber_type": "video"}));
    assert_eq!(stand.item(&unknown)["success"], false);
}

/// Contract 4.3 `pipeline`: each channel takes its parameters from the object of its name.
#[test]
fn every_channel_of_a_pipeline_takes_the_object_of_its_name() {
    let stand = Stand::new();
    let stages = json!({
        "sms": {"message": "Hi", "signature": "OlenaCo"},
        "telegram": {"message": "1234"},
        "viber": {"message": "Hi", "signature": "OlenaCo", "type": "text"},
        "voice": {"gender": "male", "language": "en-GB", "name": "en-GB-Standard-A"},
        "rcs": {"message": "Hi", "signature": "OlenaCo"},
        "whatsapp": {"message": "Hi", "signature": "OlenaCo"},
    });
    let pipeline = |changes: Value| {
        let bare = json!({"type": "pipeline", "id": 1, "phone": 380_501_234_567_u64});
        with(&with(&bare, stages.clone()), changes)
    };
    let all = json!(["voice", "telegram", "viber", "rcs", "sms", "whatsapp"]);
    assert_eq!(stand.item(&pipeline(json!({"pipeline": all})))["success"], true);
    for (channel, required) in [
        ("sms", &["message", "signature"][..]),
        ("telegram", &["message"]),
        ("viber", &["message", "signature", "type"]),
        ("voice", &[]),
        ("rcs", &["message", "signature"]),
        ("whatsapp", &[]),
    ] {
        let alone = json!({"pipeline": [channel]});
        assert_eq!(stand.item(&pipeline(alone.clone()))["success"], true, "{channel}");
        for field in required {
            let stage = with(&stages[channel], json!({*field: null}));
            let lacking = with(&pipeline(alone.clone()), json!({channel: stage}));
            assert_eq!(stand.item(&lacking)["success"], false, "{lacking}");
        }
        let other = if channel == "sms" { "viber" } else { "sms" };
        let unused = with(&pipeline(json!({"pipeline": [other]})), json!({channel: null}));
        assert_eq!(stand.item(&unused)["success"], true, "an object that no stage uses may be missing: {unused}");
    }
    let neither = with(&pipeline(json!({"pipeline": ["voice"]})), json!({"voice": {"gender": "robot"}}));
    assert_eq!(stand.item(&neither)["success"], false);
}

/// Contract 4.3 `pipeline`: WhatsApp's object is not validated; an empty message is accepted and charged.
#[test]
fn empty_whatsapp_message_is_accepted_and_charged() {
    let stand = Stand::new();
    let price = micros(Scenario::default().prices.for_channel(Channel::Whatsapp));
    for whatsapp in [Value::Null, json!({}), json!({"message": ""}), json!({"message": 5, "signature": []})] {
        let before = stand.balance();
        let bare = json!({"type": "pipeline", "id": 1, "phone": 380_501_234_567_u64, "pipeline": ["whatsapp"]});
        let operation = with(&bare, json!({"whatsapp": whatsapp}));
        assert_eq!(stand.item(&operation)["success"], true, "{operation}");
        stand.run_out();
        assert_eq!(before - stand.balance(), price, "{operation}");
    }
}

fn micros(amount: Amount) -> i64 {
    millionths(&serde_json::to_value(amount).expect("a number"))
}

/// A scenario in which these channels deliver nothing.
fn failing(channels: &[Channel]) -> Scenario {
    let mut behaviours = Behaviours::default();
    for channel in channels {
        let delivered: Percentage = "0%".parse().expect("a share");
        let fails_as = Status::Undeliverable;
        behaviours.set(*channel, Behaviour { delivered, fails_as, ..Behaviour::default_for(*channel) });
    }
    Scenario { behaviours, ..Scenario::default() }
}

/// Contract 4.3: the dearest stage is reserved, and the difference comes back after the delivery.
#[test]
fn dearest_stage_is_reserved_and_rest_refunded() {
    let (sms, viber, rcs) = (Channel::Sms, Channel::Viber, Channel::Rcs);
    let prices = Scenario::default().prices;
    for (kind, stages, failing_stages) in [
        ("pipeline", &[viber, sms][..], &[][..]),
        ("pipeline", &[viber, sms], &[viber]),
        ("rcs+viber+sms", &[rcs, viber, sms], &[rcs]),
        ("rcs+viber+sms", &[rcs, viber, sms], &[rcs, viber]),
        ("rcs+sms", &[rcs, sms], &[rcs]),
        ("viber+sms", &[viber, sms], &[]),
    ] {
        // As slow as the world, so that nothing is delivered between the two questions.
        let stand = Stand::playing_slowly(failing(failing_stages));
        let before = stand.balance();
        stand.payload(&example(kind, 1));
        let dearest = stages.iter().map(|stage| prices.for_channel(*stage)).max().expect("stages");
        assert_eq!(before - stand.balance(), micros(dearest), "{kind} without {failing_stages:?}: reserved");
        stand.run_out();
        let delivered = stages.iter().find(|stage| !failing_stages.contains(stage)).expect("one delivers");
        assert_eq!(
            before - stand.balance(),
            micros(prices.for_channel(*delivered)),
            "{kind} without {failing_stages:?}"
        );
        let charged: i64 = stand.journal("charge").iter().map(|line| millionths(&line["amount"])).sum();
        assert_eq!(charged, micros(prices.for_channel(*delivered)), "the journal adds up");
        let status = stand.payload(&json!({"type": "status", "id": 1}));
        assert_eq!(status["type"], delivered.name(), "{kind} without {failing_stages:?}");
    }
}

/// Contract 4.3 `rcs+sms`: the SMS is sent when the delivery by RCS fails, and only then.
#[test]
fn fallback_is_sent_only_after_the_stage_before_it_fails() {
    for (failing_stages, channels) in [(&[][..], &["rcs"][..]), (&[Channel::Rcs], &["rcs", "sms"])] {
        let stand = Stand::playing(failing(failing_stages));
        stand.payload(&example("rcs+sms", 1));
        stand.run_out();
        let mut tried: Vec<_> = stand.journal("status").iter().map(|line| line["type"].clone()).collect();
        tried.dedup();
        assert_eq!(tried, channels);
    }
}

/// Contract 1.1 and 3: every message ends in a final status.
#[test]
fn every_message_comes_to_an_end() {
    let stand = Stand::new();
    let operations: Vec<_> = (1..).zip(SENDS).map(|(id, kind)| example(kind, id)).collect();
    stand.items(&operations);
    let counts = stand.run_out();
    for id in 1..=SENDS.len() {
        let status = stand.payload(&json!({"type": "status", "id": id}))["status"].clone();
        assert!(status == "DELIVERED" || status == "READ", "message {id}: {status}");
    }
    assert_eq!(counts.statuses.values().sum::<u64>(), SENDS.len() as u64);
}
