//! Questions about messages by our identifiers, by which rows in doubt are reconciled (contract 4.3 `status`).
//!
//! It reads only what proves something. All that a status tells a person is read in `inquiry/status.rs`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::RedactingReader;
use super::exchange::HttpExchange;
use super::loose::{SuccessFlag, read_timestamp, read_whole_number};
use super::members::{AnswerBody, AnswerItem, read_object};
use crate::domain::{MessageId, ReportedChannel, Status};
use crate::gateway::StatusAnswer;

/// The operation that asks about one message.
pub(super) fn status_operation(id: MessageId) -> Vec<u8> {
    format!(r#"{{"type":"status","id":{id}}}"#).into_bytes()
}

/// The members of a status record that are looked at (contract 2.5).
#[derive(Deserialize)]
struct StatusAnswerPayload<'a> {
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
pub(crate) fn read_status_answers(
    ids: &[MessageId],
    seen: &HttpExchange,
    words: &RedactingReader<'_>,
) -> Vec<StatusAnswer> {
    let unclear = |why: &str| vec![StatusAnswer::Unclear(why.to_owned()); ids.len()];
    let body = match seen {
        HttpExchange::Answer { status: 200, body, .. } => body,
        HttpExchange::Answer { status, .. } | HttpExchange::TooLong { status } => {
            return unclear(&format!("HTTP {status}"));
        }
        HttpExchange::NotConnected(why) | HttpExchange::Handshake(why) | HttpExchange::Broken(why) => {
            return unclear(why);
        }
        HttpExchange::TimedOut(_) => return unclear("the gateway did not respond in time"),
    };
    let Some(top) = AnswerBody::read(body) else {
        return unclear("the response is not the expected JSON");
    };
    if SuccessFlag::read(top.success) != SuccessFlag::True {
        return unclear(&words.read_text(top.error).unwrap_or_else(|| "rejected without an error message".to_owned()));
    }
    let items: Vec<&RawValue> = top.data.and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default();
    if items.len() != ids.len() {
        return unclear("the number of results differs from the number of queries");
    }
    ids.iter().zip(items).map(|(&id, item)| read_answer(id, item, words)).collect()
}

fn read_answer(id: MessageId, item: &RawValue, words: &RedactingReader<'_>) -> StatusAnswer {
    let unclear = || StatusAnswer::Unclear("the response is for a different message or has no status".to_owned());
    let Some(item) = AnswerItem::read(item) else { return unclear() };
    match SuccessFlag::read(item.success) {
        SuccessFlag::False => StatusAnswer::Denied(words.read_text(item.error).unwrap_or_default()),
        SuccessFlag::Unclear => unclear(),
        SuccessFlag::True => {
            let Some(record) = item.data.and_then(|data| read_object::<StatusAnswerPayload<'_>>(data.get())) else {
                return unclear();
            };
            match (record.id.and_then(read_whole_number), words.read_text(record.status)) {
                (Some(named), Some(status)) if named == id.get() => StatusAnswer::Known {
                    status: Status::from_name(&status),
                    msg_id: words.read_id(record.msg_id),
                    channel: words.read_text(record.channel).and_then(|word| ReportedChannel::parse(&word)),
                    updated: record.updated.and_then(|updated| read_timestamp(Some(updated))),
                },
                _ => unclear(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::GatewayMessageId;

    fn read_one(body: &str) -> StatusAnswer {
        let exchange = HttpExchange::Answer { status: 200, retry_after: None, body: body.as_bytes().to_vec() };
        let mut answers =
            read_status_answers(&[MessageId::new(7).unwrap()], &exchange, &RedactingReader::new("s3cret-key"));
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    #[test]
    fn status_is_known_only_for_the_asked_message() {
        let record = |id: &str| {
            format!(
                r#"{{"success":true,"data":[{{"success":true,"data":{{"id":{id},"msg_id":"9","status":"READ"}}}}]}}"#
            )
        };
        let known = StatusAnswer::Known {
            status: Status::Read,
            msg_id: Some(GatewayMessageId::Text("9".into())),
            channel: None,
            updated: None,
        };
        assert_eq!(read_one(&record("7")), known);
        assert_eq!(read_one(&record(r#""7""#)), known);
        assert!(matches!(read_one(&record("8")), StatusAnswer::Unclear(_)));
        assert!(matches!(read_one(&record("null")), StatusAnswer::Unclear(_)));
    }

    #[test]
    fn unknown_message_is_denied_and_all_else_is_unclear() {
        let denied = r#"{"success":true,"data":[{"success":false,"error":"no such message"}]}"#;
        assert_eq!(read_one(denied), StatusAnswer::Denied("no such message".into()));
        for body in [
            "",
            "[]",
            "{}",
            r#"{"success":false,"error":"Access denied"}"#,
            r#"{"success":true,"data":[]}"#,
            r#"{"success":true,"data":[1,2]}"#,
            r#"{"success":true,"data":[{"success":1}]}"#,
        ] {
            assert!(matches!(read_one(body), StatusAnswer::Unclear(_)), "{body}");
        }
    }
}
