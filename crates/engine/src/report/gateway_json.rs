//! JSON of gateway answers: sender names, templates, message status, lookups and rehearsals. Values that the gateway
//! did not return are null.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use campaign_core::domain::GatewayMessageId;
use campaign_gateway::{AskStatus, InquiryFailure, MessageRecord, SenderName, SmsTemplate, ViberTemplate};
use campaign_sandbox::{ChannelTally, Counts};

/// A sender name as JSON.
#[must_use]
pub fn sender_json(sender: &SenderName) -> Value {
    let SenderName { name, status } = sender;
    json!({ "name": name, "status": status })
}

/// An SMS template as JSON.
#[must_use]
pub fn sms_template_json(template: &SmsTemplate) -> Value {
    let SmsTemplate { id, name, text, count, created } = template;
    json!({ "id": id_json(id.as_ref()), "name": name, "template": text, "count": count, "datetime": created })
}

/// A Viber template as JSON.
#[must_use]
pub fn viber_template_json(template: &ViberTemplate) -> Value {
    let ViberTemplate { id, signature, text, status } = template;
    json!({ "id": id_json(id.as_ref()), "signature": signature, "template": text, "status": status })
}

/// The gateway's record of a message with the requested identifier, or the reason why there is none.
#[must_use]
pub fn message_json(asked: &AskStatus, answer: &Result<MessageRecord, InquiryFailure>) -> Value {
    let (ours, theirs) = (asked.own_id(), asked.gateway_id());
    match answer {
        Ok(MessageRecord { id, msg_id, channel, status, updated }) => json!({
            "id": id_json(id.as_ref().or(ours.as_ref())),
            "msg_id": id_json(msg_id.as_ref().or(theirs.as_ref())),
            "type": channel,
            "status": status.name(),
            "updated": updated,
        }),
        Err(failed) => {
            json!({ "id": id_json(ours.as_ref()), "msg_id": id_json(theirs.as_ref()), "error": failed.reason })
        }
    }
}

/// An identifier in the form that the gateway uses: a number, a string or null.
fn id_json(id: Option<&GatewayMessageId>) -> Value {
    match id {
        Some(GatewayMessageId::Number(number)) => (*number).into(),
        Some(GatewayMessageId::Text(text)) => text.as_str().into(),
        None => Value::Null,
    }
}

/// Known members of gateway answers, with their names in our output.
const KNOWN_MEMBERS: [(&str, &str); 11] = [
    ("code", "code"),
    ("price", "price"),
    ("phone", "number"),
    ("status", "status"),
    ("network.origin.name", "operator"),
    ("network.origin.country.name", "country"),
    ("ported", "ported"),
    ("network.ported.name", "ported to"),
    ("network.ported.country.name", "ported to country"),
    ("mccmnc", "mccmnc"),
    ("imsi", "imsi"),
];

/// The members of an answer with their values. Known members come first, under our names.
#[must_use]
pub fn parse_answer_members(answer: &str) -> Vec<(String, String)> {
    let mut members = Vec::new();
    collect_members("", answer, &mut members);
    let known = |path: &str| KNOWN_MEMBERS.iter().position(|(known, _)| *known == path);
    members.sort_by_key(|(path, _)| known(path).unwrap_or(KNOWN_MEMBERS.len()));
    let called = |path: String| known(&path).map_or(path, |index| KNOWN_MEMBERS[index].1.to_owned());
    members.into_iter().map(|(path, value)| (called(path), value)).collect()
}

/// Adds the values below `path`, each under its full path; a list is one value. Empty and null values are skipped.
fn collect_members(path: &str, json: &str, members: &mut Vec<(String, String)>) {
    if let Ok(object) = serde_json::from_str::<BTreeMap<String, &RawValue>>(json) {
        for (name, value) in object {
            let path = if path.is_empty() { name } else { format!("{path}.{name}") };
            collect_members(&path, value.get(), members);
        }
        return;
    }
    // A number keeps all its digits.
    let value = serde_json::from_str::<String>(json).unwrap_or_else(|_| match json {
        "true" => "yes".to_owned(),
        "false" => "no".to_owned(),
        "null" => String::new(),
        other => other.to_owned(),
    });
    if !value.is_empty() {
        members.push((path.to_owned(), value));
    }
}

/// The counts of a rehearsal: messages by channel, and money. Delivered messages include those that were read or
/// answered.
#[must_use]
pub fn rehearsal_json(counts: &Counts) -> Value {
    let tally = |tally: &ChannelTally| {
        let ChannelTally { delivered, read, replied, failed, spent } = *tally;
        json!({ "delivered": delivered, "read": read, "replied": replied, "failed": failed, "spent": spent.trim_decimals() })
    };
    let channels: Map<String, Value> =
        counts.channels.iter().map(|(channel, of)| (channel.name().to_owned(), tally(of))).collect();
    json!({
        "channels": channels,
        "statuses": counts.statuses,
        "spent": counts.funds.spent.trim_decimals(),
        "balance": counts.funds.balance.trim_decimals(),
        "currency": counts.funds.currency,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn owned((name, value): (&str, &str)) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn known_members_come_first_and_others_keep_their_names() {
        let answer = r#"{"zone":[1,2],"imsi":255010000000000001,"ported":false,"phone":380501000002,
            "network":{"origin":{"name":"Sandbox Mobile","prefix":"50","country":{"name":"Ukraine"}},"ported":null}}"#;
        let expected = [
            ("number", "380501000002"),
            ("operator", "Sandbox Mobile"),
            ("country", "Ukraine"),
            ("ported", "no"),
            ("imsi", "255010000000000001"),
            ("network.origin.prefix", "50"),
            ("zone", "[1,2]"),
        ];
        assert_eq!(parse_answer_members(answer), expected.map(owned));
    }

    #[test]
    fn codes_keep_zeros_and_prices_keep_digits() {
        let expected = [("code", "0042"), ("price", "0.50")];
        assert_eq!(parse_answer_members(r#"{"price":0.50,"code":"0042"}"#), expected.map(owned));
    }

    proptest! {
        #[test]
        fn arbitrary_answers_do_not_panic(text: String) {
            let _ = parse_answer_members(&text);
        }
    }
}
