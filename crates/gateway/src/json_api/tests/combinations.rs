//! All combinations of correct and wrong members of an answer: the client must read each one as the reference does.

use std::collections::{BTreeMap, BTreeSet};

use super::{SentRequest, reference};
use campaign_core::domain::{Endpoint, OperationKind};

/// Possible members of an answer. `None` is a missing member.
const SUCCESSES: [Option<&str>; 10] = [
    Some("true"),
    Some("false"),
    Some("1"),
    Some("0"),
    Some(r#""true""#),
    Some(r#""false""#),
    Some("null"),
    Some("[]"),
    Some("{}"),
    None,
];
const ERRORS: [Option<&str>; 9] = [
    None,
    Some(r#""Access denied""#),
    Some(r#""Invalid message type""#),
    Some(r#""Operator not supported""#),
    Some(r#"" ""#),
    Some("null"),
    Some("403"),
    Some("false"),
    Some(r#"{"text":"Access denied"}"#),
];
const IDS: [Option<&str>; 16] = [
    None,
    Some("null"),
    Some("102"),
    Some(r#""102""#),
    Some(r#""0102""#),
    Some("102.0"),
    Some("1.02e2"),
    Some("102.5"),
    Some("-102"),
    Some("101"),
    Some("103"),
    Some("999"),
    Some("18446744073709551718"),
    Some("1e300"),
    Some(r#""x102""#),
    Some("[102]"),
];
const MSG_IDS: [Option<&str>; 10] = [
    None,
    Some("null"),
    Some("7"),
    Some("-7"),
    Some("7.5"),
    Some("99999999999999999999999"),
    Some(r#""cf-7""#),
    Some(r#"" ""#),
    Some("false"),
    Some("{}"),
];

/// A JSON object. Members without a value are omitted.
fn object(members: &[(&str, Option<&str>)]) -> String {
    let members = members.iter().filter_map(|(name, value)| Some(format!(r#""{name}":{}"#, (*value)?)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn item(success: Option<&str>, error: Option<&str>, data: &str) -> String {
    object(&[("success", success), ("error", error), ("data", Some(data))])
}

/// An accepted message.
fn accepted_item(id: u32) -> String {
    item(Some("true"), None, &format!(r#"{{"id":{id},"msg_id":7{id},"data":1,"parts":1}}"#))
}

fn list_answer(items: &[String]) -> String {
    object(&[("success", Some("true")), ("data", Some(&format!("[{}]", items.join(","))))])
}

/// Answers with each combination of the members that concern the whole envelope.
fn envelope_answers() -> Vec<String> {
    let valid_list = format!("[{},{},{}]", accepted_item(101), accepted_item(102), accepted_item(103));
    let nested = r#"{"info":[{"deep":{"msg_id":null}}]}"#;
    let payloads = [None, Some("null"), Some("{}"), Some("[]"), Some(valid_list.as_str()), Some(nested)];
    let mut bodies = Vec::new();
    for success in SUCCESSES {
        for error in ERRORS {
            for data in payloads {
                bodies.push(object(&[("success", success), ("error", error), ("data", data)]));
            }
        }
    }
    let requests = [r#""cf-ray-1""#, r#""""#, r#"" ""#, "17", "-17", "null", "true", "{}", "[]"];
    bodies.extend(
        requests.iter().flat_map(|request| {
            SUCCESSES.map(|success| object(&[("success", success), ("request_id", Some(request))]))
        }),
    );
    bodies
}

/// All lists in which the second of three items differs from the others.
fn list_answers() -> Vec<String> {
    let mut bodies = Vec::new();
    for success in [Some("true"), Some("false"), Some("1"), Some(r#""true""#), Some("null"), None] {
        for id in IDS {
            for msg_id in MSG_IDS {
                let other = item(success, Some(r#""No route""#), &object(&[("id", id), ("msg_id", msg_id)]));
                bodies.push(list_answer(&[accepted_item(101), other, accepted_item(103)]));
            }
        }
    }
    bodies
}

/// Lists with a wrong length or order, or with invalid items.
fn odd_lists() -> Vec<String> {
    let rejected_item = |error: &str| item(Some("false"), Some(error), r#"{"id":102}"#);
    let items = [
        accepted_item(101),
        accepted_item(102),
        accepted_item(103),
        accepted_item(999),
        rejected_item(r#""No route""#),
    ];
    let item_without_id = |success| item(Some(success), Some(r#""No route""#), r#"{"msg_id":null}"#);
    let odd_items = [
        item_without_id("true"),
        item_without_id("false"),
        rejected_item(r#"" Not enough money ""#),
        item(Some("true"), None, r#"{"phone":380501234501}"#),
        item(Some("true"), None, r#"{"phone":"380501234599","id":102}"#),
        item(Some("true"), None, r#"{"code":"0042","price":0.5}"#),
        item(Some("true"), None, "[102,7,1]"),
        "null".to_owned(),
        "7".to_owned(),
        "[]".to_owned(),
        r#"[true,{"id":102,"msg_id":7,"parts":1}]"#.to_owned(),
        "[true,[102,7,1]]".to_owned(),
    ];
    let all: Vec<&String> = items.iter().chain(&odd_items).collect();
    let mut bodies = vec![list_answer(&[])];
    for first in &all {
        bodies.push(list_answer(&[(*first).clone()]));
        for second in &all {
            bodies.push(list_answer(&[(*first).clone(), (*second).clone()]));
            bodies.extend(items.iter().map(|third| list_answer(&[(*first).clone(), (*second).clone(), third.clone()])));
        }
    }
    bodies.push(list_answer(&vec![accepted_item(102); 4]));
    bodies
}

/// Bodies that are not answers.
fn foreign_bodies() -> Vec<String> {
    let whole = list_answer(&[accepted_item(101), accepted_item(102), accepted_item(103)]);
    let items = format!("[{},{},{}]", accepted_item(101), accepted_item(102), accepted_item(103));
    let mut bodies: Vec<String> =
        ["", " ", "<html>", "OK", "true", "null", "[]", "\u{feff}{}", "{"].map(Into::into).into();
    bodies.push(format!("{whole}{whole}"));
    bodies.push(format!("[{whole}]"));
    bodies.push(format!("\u{feff}{whole}"));
    // The members of an answer as an array, in the order of the record.
    bodies.push(format!("[true,null,{items},\"cf-ray-1\"]"));
    bodies.push(r#"[false,"Access denied",null,null]"#.to_owned());
    bodies
}

#[test]
fn reader_agrees_with_the_reference_on_constructed_answers() {
    let requests = [
        (Endpoint::Sync, OperationKind::Sms, 3),
        (Endpoint::Sync, OperationKind::Hlr, 3),
        (Endpoint::Sync, OperationKind::CallOtp, 3),
        (Endpoint::Sync, OperationKind::CallOtp, 1),
        (Endpoint::Async, OperationKind::Viber, 3),
    ];
    let bodies: BTreeSet<String> =
        [envelope_answers(), list_answers(), odd_lists(), foreign_bodies()].into_iter().flatten().collect();
    assert!(bodies.len() > 1_500, "{} answers", bodies.len());
    let mut counts = BTreeMap::new();
    for (endpoint, kind, count) in requests {
        for body in &bodies {
            let sent = SentRequest { endpoint, kind, count };
            let expected = reference::judge(sent, 200, body.as_bytes());
            assert_eq!(sent.read_answer(200, body.as_bytes()), expected, "{sent:?} answered with {body}");
            for letter in expected.0.chars() {
                *counts.entry((letter, expected.1)).or_insert(0) += 1;
            }
        }
    }
    // The bodies cover all combinations of outcome and signal in this table, and no others.
    let lines: Vec<String> = counts.keys().map(|(letter, signal)| format!("{letter} {signal}")).collect();
    let table = [
        "? stop: fatal",
        "? stop: off contract",
        "? strange",
        "? warn",
        "a go",
        "a stop: fatal",
        "a stop: off contract",
        "a warn",
        "n split",
        "n stop: envelope",
        "n stop: key",
        "q go",
        "r go",
        "r stop: fatal",
        "r stop: off contract",
        "r warn",
    ];
    assert_eq!(lines, table);
}

#[test]
fn status_other_than_200_proves_nothing_unless_trusted() {
    let sent = SentRequest::messages(3);
    for body in [
        list_answer(&[accepted_item(101), accepted_item(102), accepted_item(103)]),
        r#"{"success":false,"error":"Access denied"}"#.to_owned(),
    ] {
        for status in (100..=999).filter(|status| *status != 200) {
            let outcomes = sent.read_answer(status, body.as_bytes());
            assert_eq!(outcomes, reference::judge(sent, status, body.as_bytes()), "HTTP {status}");
            assert_eq!(outcomes.0, if [503, 520].contains(&status) { "nnn" } else { "???" }, "HTTP {status}");
        }
    }
}
