//! Questions about messages by our identifiers, by which rows in doubt are reconciled (contract 4.3 `status`).
//!
//! It reads only what proves something. All that a status tells a person is read in `inquiry/status.rs`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Words;
use super::exchange::Exchange;
use super::loose::{Success, instant, whole};
use super::members::{Item, Top, object};
use crate::domain::{MessageId, ReportedChannel, Status};
use crate::gateway::StatusAnswer;

/// The operation that asks about one message.
pub(super) fn question(id: MessageId) -> Vec<u8> {
    format!(r#"{{"type":"status","id":{id}}}"#).into_bytes()
}

/// The members of a status record that are looked at (contract 2.5).
#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    msg_id: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    channel: Option<&'a RawValue>,
    #[serde(borrow)]
    updated: Option<&'a RawValue>,
}

/// Reads the answers, one per question; `words` takes the key out of what they quote.
pub(crate) fn answers(ids: &[MessageId], seen: &Exchange, words: &Words<'_>) -> Vec<StatusAnswer> {
    let unclear = |why: &str| vec![StatusAnswer::Unclear(why.to_owned()); ids.len()];
    let body = match seen {
        Exchange::Answer { status: 200, body, .. } => body,
        Exchange::Answer { status, .. } | Exchange::TooLong { status } => return unclear(&format!("HTTP {status}")),
        Exchange::NotConnected(why) | Exchange::Handshake(why) | Exchange::Broken(why) => return unclear(why),
        Exchange::TimedOut(_) => return unclear("the gateway did not respond in time"),
    };
    let Some(top) = Top::read(body) else {
        return unclear("the response is not the expected JSON");
    };
    if Success::of(top.success) != Success::True {
        return unclear(&words.text(top.error).unwrap_or_else(|| "rejected without an error message".to_owned()));
    }
    let items: Vec<&RawValue> = top.data.and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default();
    if items.len() != ids.len() {
        return unclear("the number of results differs from the number of queries");
    }
    ids.iter().zip(items).map(|(&id, item)| answer(id, item, words)).collect()
}

fn answer(id: MessageId, item: &RawValue, words: &Words<'_>) -> StatusAnswer {
    let unclear = || StatusAnswer::Unclear("the response is for a different message or has no status".to_owned());
    let Some(item) = Item::read(item) else { return unclear() };
    match Success::of(item.success) {
        Success::False => StatusAnswer::Denied(words.text(item.error).unwrap_or_default()),
        Success::Unclear => unclear(),
        Success::True => {
            let Some(record) = item.data.and_then(|data| object::<Record<'_>>(data.get())) else {
                return unclear();
            };
            match (record.id.and_then(whole), words.text(record.status)) {
                (Some(named), Some(status)) if named == id.get() => StatusAnswer::Known {
                    status: Status::from_name(&status),
                    msg_id: words.id(record.msg_id),
                    channel: words.text(record.channel).and_then(|word| ReportedChannel::from_word(&word)),
                    updated: record.updated.and_then(|updated| instant(Some(updated))),
                },
                _ => unclear(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::MsgId;

    fn asked(body: &str) -> StatusAnswer {
        let exchange = Exchange::Answer { status: 200, retry_after: None, body: body.as_bytes().to_vec() };
        let mut answers = answers(&[MessageId::new(7).unwrap()], &exchange, &Words::new("s3cret-key"));
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    #[test]
    fn a_status_is_known_only_of_the_message_that_was_asked_about() {
        let record = |id: &str| {
            format!(
                r#"{{"success":true,"data":[{{"success":true,"data":{{"id":{id},"msg_id":"9","status":"READ"}}}}]}}"#
            )
        };
        let known = StatusAnswer::Known {
            status: Status::Read,
            msg_id: Some(MsgId::Text("9".into())),
            channel: None,
            updated: None,
        };
        assert_eq!(asked(&record("7")), known);
        assert_eq!(asked(&record(r#""7""#)), known);
        assert!(matches!(asked(&record("8")), StatusAnswer::Unclear(_)));
        assert!(matches!(asked(&record("null")), StatusAnswer::Unclear(_)));
    }

    #[test]
    fn a_message_is_denied_in_the_gateways_words_and_all_else_is_unclear() {
        let denied = r#"{"success":true,"data":[{"success":false,"error":"no such message"}]}"#;
        assert_eq!(asked(denied), StatusAnswer::Denied("no such message".into()));
        for body in [
            "",
            "[]",
            "{}",
            r#"{"success":false,"error":"Access denied"}"#,
            r#"{"success":true,"data":[]}"#,
            r#"{"success":true,"data":[1,2]}"#,
            r#"{"success":true,"data":[{"success":1}]}"#,
        ] {
            assert!(matches!(asked(body), StatusAnswer::Unclear(_)), "{body}");
        }
    }
}
