//! Status inquiries (contract 2.5 and 4.3 `status`), for people and for the reconciliation of messages in doubt.
//!
//! For people, all members of a record are read. For reconciliation, a record counts only if it has the requested
//! identifier and a status.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Inquiry;
use crate::StatusAnswer;
use crate::json_api::HttpExchange;
use crate::json_api::members::{
    AnswerBody, AnswerItem, RedactingReader, SuccessFlag, read_object, read_record, read_timestamp, read_whole_number,
};
use campaign_core::domain::{GatewayMessageId, MessageId, ReportedChannel, Status};

/// The gateway's record of a message. Members that are not reported are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    /// Our identifier.
    pub id: Option<GatewayMessageId>,
    /// The gateway's identifier.
    pub msg_id: Option<GatewayMessageId>,
    /// The channel, as the gateway names it.
    pub channel: Option<String>,
    /// The status, the only member that every record must have.
    pub status: Status,
    /// The time of the last change, in the gateway's text (ISO 8601 with offset).
    pub updated: Option<String>,
}

/// Asks for the status of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskStatus {
    /// By our identifier (contract 4.3).
    Id(MessageId),
    /// By the gateway's identifier, which the contract does not mention but the platform accepts.
    MsgId(GatewayMessageId),
}

/// The relevant members of a status record (contract 2.5).
#[derive(Deserialize)]
struct StatusPayload<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    msg_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    channel: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    updated: Option<&'a RawValue>,
}

impl AskStatus {
    /// An inquiry by our identifier, parsed from text. `None` if the text cannot be one of our identifiers.
    pub fn from_own_id(text: &str) -> Option<Self> {
        parse_id(text).map(AskStatus::Id)
    }

    /// An inquiry by the gateway's identifier, exactly as written. `None` if the text is blank.
    pub fn from_gateway_id(text: &str) -> Option<Self> {
        // A number with leading zeros is a text, which must stay as it is.
        let plain = parse_id(text).filter(|number| number.to_string() == text).map(MessageId::get);
        let id = plain.map_or_else(|| GatewayMessageId::Text(text.to_owned()), GatewayMessageId::Number);
        (!text.trim().is_empty()).then_some(AskStatus::MsgId(id))
    }

    /// Our identifier, if the inquiry uses it.
    pub fn own_id(&self) -> Option<GatewayMessageId> {
        match self {
            AskStatus::Id(id) => Some(GatewayMessageId::Number(id.get())),
            AskStatus::MsgId(_) => None,
        }
    }

    /// The gateway's identifier, if the inquiry uses it.
    pub fn gateway_id(&self) -> Option<GatewayMessageId> {
        match self {
            AskStatus::Id(_) => None,
            AskStatus::MsgId(id) => Some(id.clone()),
        }
    }

    /// Whether the record can belong to the requested message. A record without an identifier always can.
    fn matches_record(&self, record: &StatusPayload<'_>, reader: &RedactingReader<'_>) -> bool {
        match self {
            AskStatus::Id(id) => record.id.is_none_or(|reported| read_whole_number(reported) == Some(id.get())),
            AskStatus::MsgId(requested) => {
                reader.read_id(record.msg_id).is_none_or(|reported| reported.to_string() == requested.to_string())
            }
        }
    }
}

fn parse_id(text: &str) -> Option<MessageId> {
    let is_numeric = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_numeric).and_then(MessageId::new)
}

impl Inquiry for AskStatus {
    type Answer = MessageRecord;
    const READS_ONLY: bool = true;

    fn to_operation(&self) -> Value {
        match self {
            AskStatus::Id(id) => json!({ "type": "status", "id": id.get() }),
            AskStatus::MsgId(GatewayMessageId::Number(number)) => json!({ "type": "status", "msg_id": number }),
            AskStatus::MsgId(GatewayMessageId::Text(text)) => json!({ "type": "status", "msg_id": text }),
        }
    }

    fn read_answer(
        &self,
        payload: Option<&RawValue>,
        reader: &RedactingReader<'_>,
    ) -> Result<MessageRecord, &'static str> {
        let record: StatusPayload<'_> = read_record(payload)?;
        if !self.matches_record(&record, reader) {
            return Err("is for a different message");
        }
        let status = reader.read_text(record.status).ok_or("has no status")?;
        Ok(MessageRecord {
            id: reader.read_id(record.id),
            msg_id: reader.read_id(record.msg_id),
            channel: reader.read_text(record.channel),
            status: Status::from_name(&status),
            updated: reader.read_text(record.updated),
        })
    }
}

/// The operation that asks for the status of a message.
pub(in crate::json_api) fn status_operation(id: MessageId) -> Vec<u8> {
    format!(r#"{{"type":"status","id":{id}}}"#).into_bytes()
}

/// Reads the answers to status inquiries, one answer for each identifier. `reader` removes the key from quoted texts.
pub fn read_status_answers(
    ids: &[MessageId],
    exchange: &HttpExchange,
    reader: &RedactingReader<'_>,
) -> Vec<StatusAnswer> {
    let unclear = |reason: &str| vec![StatusAnswer::Unclear(reason.to_owned()); ids.len()];
    let body = match exchange {
        HttpExchange::Answer { status: 200, body, .. } => body,
        HttpExchange::Answer { status, .. } | HttpExchange::TooLong { status } => {
            return unclear(&format!("HTTP {status}"));
        }
        HttpExchange::NotConnected(reason) | HttpExchange::Handshake(reason) | HttpExchange::Broken(reason) => {
            return unclear(reason);
        }
        HttpExchange::TimedOut(_) => return unclear("the gateway did not respond in time"),
    };
    let Some(top) = AnswerBody::read(body) else {
        return unclear("the response is not the expected JSON");
    };
    if SuccessFlag::read(top.success) != SuccessFlag::True {
        return unclear(&reader.read_text(top.error).unwrap_or_else(|| "rejected without an error message".to_owned()));
    }
    let items: Vec<&RawValue> = top.data.and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default();
    if items.len() != ids.len() {
        return unclear("the number of results differs from the number of queries");
    }
    ids.iter().zip(items).map(|(&id, item)| read_status_answer(id, item, reader)).collect()
}

/// Reads the answer about the message with `id`.
fn read_status_answer(id: MessageId, item: &RawValue, reader: &RedactingReader<'_>) -> StatusAnswer {
    let unclear = || StatusAnswer::Unclear("the response is for a different message or has no status".to_owned());
    let Some(item) = AnswerItem::read(item) else { return unclear() };
    match SuccessFlag::read(item.success) {
        SuccessFlag::False => StatusAnswer::Denied(reader.read_text(item.error).unwrap_or_default()),
        SuccessFlag::Unclear => unclear(),
        SuccessFlag::True => {
            let Some(record) = item.data.and_then(|data| read_object::<StatusPayload<'_>>(data.get())) else {
                return unclear();
            };
            match (record.id.and_then(read_whole_number), reader.read_text(record.status)) {
                (Some(reported_id), Some(status)) if reported_id == id.get() => StatusAnswer::Known {
                    status: Status::from_name(&status),
                    msg_id: reader.read_id(record.msg_id),
                    channel: reader.read_text(record.channel).and_then(|word| ReportedChannel::parse(&word)),
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
    use crate::json_api::inquiry::tests::read_payload;

    fn by_id() -> AskStatus {
        AskStatus::Id(MessageId::new(7).unwrap())
    }

    #[test]
    fn status_record_can_have_string_ids_and_missing_members() {
        let full = r#"{"id":"7","msg_id":99,"type":"viber","status":"READ","updated":"2026-11-21T10:00:00+02:00"}"#;
        let record = read_payload(&by_id(), full).unwrap();
        assert_eq!(
            (record.id, record.msg_id),
            (Some(GatewayMessageId::Text("7".into())), Some(GatewayMessageId::Number(99)))
        );
        assert_eq!((record.channel.as_deref(), record.status), (Some("viber"), Status::Read));
        assert_eq!(record.updated.as_deref(), Some("2026-11-21T10:00:00+02:00"));
        let payload = read_payload(&by_id(), r#"{"status":"Paused"}"#).unwrap();
        assert_eq!(payload.status, Status::Other("Paused".into()));
        assert_eq!((payload.id, payload.msg_id, payload.channel, payload.updated), (None, None, None, None));
    }

    #[test]
    fn record_of_another_message_is_rejected() {
        let by_msg_id = |id| AskStatus::MsgId(id);
        let table = [
            (by_id(), r#"{"id":8,"status":"READ"}"#, false),
            (by_id(), r#"{"id":"x","status":"READ"}"#, false),
            (by_id(), r#"{"id":7.0,"status":"READ"}"#, true),
            (by_id(), r#"{"id":7}"#, false),
            (by_msg_id(GatewayMessageId::Number(99)), r#"{"id":"5","msg_id":"99","status":"READ"}"#, true),
            (by_msg_id(GatewayMessageId::Text("a-1".into())), r#"{"msg_id":"a-1","status":"READ"}"#, true),
            (by_msg_id(GatewayMessageId::Number(99)), r#"{"msg_id":98,"status":"READ"}"#, false),
        ];
        for (inquiry, data, fits) in table {
            assert_eq!(read_payload(&inquiry, data).is_ok(), fits, "{inquiry:?} {data}");
        }
    }

    #[test]
    fn own_and_gateway_ids_are_parsed_by_different_rules() {
        let id = |number| Some(AskStatus::Id(MessageId::new(number).unwrap()));
        let number = |number| Some(AskStatus::MsgId(GatewayMessageId::Number(number)));
        let text = |text: &str| Some(AskStatus::MsgId(GatewayMessageId::Text(text.into())));
        let table = [
            ("7", false, id(7)),
            ("007", false, id(7)),
            ("9007199254740992", false, None),
            ("+7", false, None),
            ("a-1", false, None),
            ("", false, None),
            ("7", true, number(7)),
            ("007", true, text("007")),
            ("9007199254740993", true, text("9007199254740993")),
            ("a-1", true, text("a-1")),
            (" ", true, None),
        ];
        for (typed, is_gateway_id, expected) in table {
            let inquiry = if is_gateway_id { AskStatus::from_gateway_id(typed) } else { AskStatus::from_own_id(typed) };
            assert_eq!(inquiry, expected, "{typed} {is_gateway_id}");
        }
    }
}

#[cfg(test)]
mod reconciliation_tests {
    use super::*;
    use campaign_core::domain::GatewayMessageId;

    fn read_single_answer(body: &str) -> StatusAnswer {
        let exchange = HttpExchange::Answer { status: 200, retry_after: None, body: body.as_bytes().to_vec() };
        let mut answers =
            read_status_answers(&[MessageId::new(7).unwrap()], &exchange, &RedactingReader::new("s3cret-key"));
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    #[test]
    fn status_is_known_only_for_the_requested_message() {
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
        assert_eq!(read_single_answer(&record("7")), known);
        assert_eq!(read_single_answer(&record(r#""7""#)), known);
        assert!(matches!(read_single_answer(&record("8")), StatusAnswer::Unclear(_)));
        assert!(matches!(read_single_answer(&record("null")), StatusAnswer::Unclear(_)));
    }

    #[test]
    fn unknown_message_is_denied_and_other_answers_are_unclear() {
        let denied = r#"{"success":true,"data":[{"success":false,"error":"no such message"}]}"#;
        assert_eq!(read_single_answer(denied), StatusAnswer::Denied("no such message".into()));
        for body in [
            "",
            "[]",
            "{}",
            r#"{"success":false,"error":"Access denied"}"#,
            r#"{"success":true,"data":[]}"#,
            r#"{"success":true,"data":[1,2]}"#,
            r#"{"success":true,"data":[{"success":1}]}"#,
        ] {
            assert!(matches!(read_single_answer(body), StatusAnswer::Unclear(_)), "{body}");
        }
    }
}
