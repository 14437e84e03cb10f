//! Required fields of operations, and charges of a pipeline (contract 4.3).

use campaign_core::domain::{Amount, Channel, Status};
use campaign_manifest::Percentage;
use campaign_sandbox::{Behaviour, Behaviours, Scenario};
use serde_json::{Value, json};

use super::TestSandbox;
use super::examples::{MESSAGE_TYPES, example, with_changes};
use super::in_process::millionths;

/// The required fields of each operation, by the contract or by our interpretation of its gaps.
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

/// Gateway contract 4.3: an operation without a required field fails, and the other operations succeed.
#[test]
fn operation_without_a_required_field_fails_alone() {
    let sandbox = TestSandbox::start();
    let good = example("sms", 1);
    for (kind, fields) in REQUIRED {
        for field in fields {
            for value in [Value::Null, json!(""), json!({"no": "such"})] {
                let incomplete = with_changes(&example(kind, 2), json!({*field: value}));
                let items = sandbox.items(&[good.clone(), incomplete.clone(), good.clone()]);
                let successes: Vec<_> = items.iter().map(|item| item["success"] == true).collect();
                assert_eq!(successes, [true, false, true], "{incomplete}\n{items:?}");
                assert!(items[1]["error"].is_string(), "{items:?}");
            }
        }
    }
}

/// Gateway contract 4.3: `phone` is a number. Clients also send a string of digits, or comma-separated numbers.
#[test]
fn phone_is_digits_without_a_plus_sign() {
    let sandbox = TestSandbox::start();
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
        let item = sandbox.item(&with_changes(&example("sms", 1), json!({"phone": phone})));
        assert_eq!(item["data"].get("parts").and_then(Value::as_u64), parts, "{phone}\n{item}");
        assert!(parts.is_some() || item["error"] == "Please enter valid receiver phone number", "{item}");
    }
}

/// Gateway contract 4.3, `viber`: each `viber_type` requires its fields.
#[test]
fn viber_message_requires_the_fields_of_its_type() {
    let sandbox = TestSandbox::start();
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
        let bare = with_changes(&example("viber", 1), json!({"viber_type": kind, "viber_message": null}));
        let complete = fields.iter().fold(bare, |message, (name, value)| with_changes(&message, json!({*name: value})));
        assert_eq!(sandbox.item(&complete)["success"], true, "{complete}");
        for (name, _) in fields.iter().filter(|(name, _)| kind != "carousel" || *name == "viber_carousel") {
            let incomplete = with_changes(&complete, json!({*name: null}));
            assert_eq!(sandbox.item(&incomplete)["success"], false, "{incomplete}");
        }
    }
    let unknown = with_changes(&example("viber", 1), json!({"viber_type": "video"}));
    assert_eq!(sandbox.item(&unknown)["success"], false);
}

/// Gateway contract 4.3, `pipeline`: the parameters of each channel are in the object with its name.
#[test]
fn pipeline_channel_reads_parameters_from_its_own_object() {
    let sandbox = TestSandbox::start();
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
        with_changes(&with_changes(&bare, stages.clone()), changes)
    };
    let all = json!(["voice", "telegram", "viber", "rcs", "sms", "whatsapp"]);
    assert_eq!(sandbox.item(&pipeline(json!({"pipeline": all})))["success"], true);
    for (channel, required) in [
        ("sms", &["message", "signature"][..]),
        ("telegram", &["message"]),
        ("viber", &["message", "signature", "type"]),
        ("voice", &[]),
        ("rcs", &["message", "signature"]),
        ("whatsapp", &[]),
    ] {
        let alone = json!({"pipeline": [channel]});
        assert_eq!(sandbox.item(&pipeline(alone.clone()))["success"], true, "{channel}");
        for field in required {
            let stage = with_changes(&stages[channel], json!({*field: null}));
            let incomplete = with_changes(&pipeline(alone.clone()), json!({channel: stage}));
            assert_eq!(sandbox.item(&incomplete)["success"], false, "{incomplete}");
        }
        let other = if channel == "sms" { "viber" } else { "sms" };
        let unused = with_changes(&pipeline(json!({"pipeline": [other]})), json!({channel: null}));
        assert_eq!(sandbox.item(&unused)["success"], true, "an object that no stage uses can be missing: {unused}");
    }
    let incomplete_voice =
        with_changes(&pipeline(json!({"pipeline": ["voice"]})), json!({"voice": {"gender": "robot"}}));
    assert_eq!(sandbox.item(&incomplete_voice)["success"], false);
}

/// Gateway contract 4.3, `pipeline`: WhatsApp's object is not validated; an empty message is accepted and charged.
#[test]
fn empty_whatsapp_message_is_accepted_and_charged() {
    let sandbox = TestSandbox::start();
    let price = to_millionths(Scenario::default().prices.for_channel(Channel::Whatsapp));
    for whatsapp in [Value::Null, json!({}), json!({"message": ""}), json!({"message": 5, "signature": []})] {
        let before = sandbox.balance();
        let bare = json!({"type": "pipeline", "id": 1, "phone": 380_501_234_567_u64, "pipeline": ["whatsapp"]});
        let operation = with_changes(&bare, json!({"whatsapp": whatsapp}));
        assert_eq!(sandbox.item(&operation)["success"], true, "{operation}");
        sandbox.drain();
        assert_eq!(before - sandbox.balance(), price, "{operation}");
    }
}

fn to_millionths(amount: Amount) -> i64 {
    millionths(&serde_json::to_value(amount).expect("a number"))
}

/// A scenario in which these channels deliver no messages.
fn scenario_without_delivery(channels: &[Channel]) -> Scenario {
    let mut behaviours = Behaviours::default();
    for channel in channels {
        let delivered: Percentage = "0%".parse().expect("a share");
        let fails_as = Status::Undeliverable;
        behaviours.set(*channel, Behaviour { delivered, fails_as, ..Behaviour::default_for(*channel) });
    }
    Scenario { behaviours, ..Scenario::default() }
}

/// Gateway contract 4.3: the most expensive stage is reserved, and the difference is refunded after delivery.
#[test]
fn most_expensive_stage_is_reserved_and_the_rest_refunded() {
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
        // The sandbox runs in real time, so that no message is delivered between the two requests.
        let sandbox = TestSandbox::start_at_own_speed(scenario_without_delivery(failing_stages));
        let before = sandbox.balance();
        sandbox.payload(&example(kind, 1));
        let highest_price = stages.iter().map(|stage| prices.for_channel(*stage)).max().expect("stages");
        let reserved = to_millionths(highest_price);
        assert_eq!(before - sandbox.balance(), reserved, "{kind} without {failing_stages:?}: reserved");
        sandbox.drain();
        let delivered = stages.iter().find(|stage| !failing_stages.contains(stage)).expect("one delivers");
        assert_eq!(
            before - sandbox.balance(),
            to_millionths(prices.for_channel(*delivered)),
            "{kind} without {failing_stages:?}"
        );
        let charged: i64 = sandbox.journal("charge").iter().map(|line| millionths(&line["amount"])).sum();
        assert_eq!(charged, to_millionths(prices.for_channel(*delivered)), "the journal adds up");
        let status = sandbox.payload(&json!({"type": "status", "id": 1}));
        assert_eq!(status["type"], delivered.name(), "{kind} without {failing_stages:?}");
    }
}

/// Gateway contract 4.3, `rcs+sms`: the SMS is sent only if the delivery by RCS fails.
#[test]
fn fallback_is_sent_only_after_the_previous_stage_fails() {
    for (failing_stages, channels) in [(&[][..], &["rcs"][..]), (&[Channel::Rcs], &["rcs", "sms"])] {
        let sandbox = TestSandbox::start_with(scenario_without_delivery(failing_stages));
        sandbox.payload(&example("rcs+sms", 1));
        sandbox.drain();
        let mut tried_channels: Vec<_> = sandbox.journal("status").iter().map(|line| line["type"].clone()).collect();
        tried_channels.dedup();
        assert_eq!(tried_channels, channels);
    }
}

/// Gateway contract 1.1 and 3: every message ends in a final status.
#[test]
fn message_of_every_type_ends_in_a_final_status() {
    let sandbox = TestSandbox::start();
    let operations: Vec<_> = (1..).zip(MESSAGE_TYPES).map(|(id, kind)| example(kind, id)).collect();
    sandbox.items(&operations);
    let counts = sandbox.drain();
    for id in 1..=MESSAGE_TYPES.len() {
        let status = sandbox.payload(&json!({"type": "status", "id": id}))["status"].clone();
        assert!(status == "DELIVERED" || status == "READ", "message {id}: {status}");
    }
    assert_eq!(counts.statuses.values().sum::<u64>(), MESSAGE_TYPES.len() as u64);
}
