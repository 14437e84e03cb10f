//! The status of one message, asked for by a person (contract 2.5 and 4.3 `status`).
//!
//! It tells all that the gateway does, and proves nothing to a run; that is `json_api/status_answer.rs`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Inquiry;
use crate::domain::{GatewayMessageId, MessageId, Status};
use crate::gateway::json_api::loose::read_whole_number;
use crate::gateway::json_api::words::{RedactingReader, read_record};

/// What the gateway knows of a message; members that it does not tell are nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    /// Our identifier.
    pub id: Option<GatewayMessageId>,
    /// The gateway's identifier.
    pub msg_id: Option<GatewayMessageId>,
    /// The channel, in the gateway's word.
    pub channel: Option<String>,
    /// The status.
    pub status: Status,
    /// When it last changed, in the gateway's text (ISO 8601 with offset).
    pub updated: Option<String>,
}

/// Asks for the status of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskStatus {
    /// By our identifier (contract 4.3).
    Id(MessageId),
    /// By the gateway's, which the contract does not show and the platform answers.
    MsgId(GatewayMessageId),
}

#[derive(Deserialize)]
struct StatusInquiryPayload<'a> {
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
    /// The question about the message with our identifier, as it was written; nothing where it is none of ours.
    #[must_use]
    pub fn from_own_id(written: &str) -> Option<Self> {
        parse_id(written).map(AskStatus::Id)
    }

    /// The question about the message with the gateway's identifier, as it was written; nothing where it is blank.
    #[must_use]
    pub fn from_gateway_id(written: &str) -> Option<Self> {
        // A number with leading zeros is a text, of which nothing may be lost.
        let plain = parse_id(written).filter(|number| number.to_string() == written).map(MessageId::get);
        let id = plain.map_or_else(|| GatewayMessageId::Text(written.to_owned()), GatewayMessageId::Number);
        (!written.trim().is_empty()).then_some(AskStatus::MsgId(id))
    }

    /// Our identifier, if it is asked with that.
    #[must_use]
    pub fn own_id(&self) -> Option<GatewayMessageId> {
        match self {
            AskStatus::Id(id) => Some(GatewayMessageId::Number(id.get())),
            AskStatus::MsgId(_) => None,
        }
    }

    /// The gateway's identifier, if it is asked with that.
    #[must_use]
    pub fn gateway_id(&self) -> Option<GatewayMessageId> {
        match self {
            AskStatus::Id(_) => None,
            AskStatus::MsgId(id) => Some(id.clone()),
        }
    }

    /// Whether the record can be the one of this message; one that names no message can.
    fn is_about_record(&self, record: &StatusInquiryPayload<'_>, words: &RedactingReader<'_>) -> bool {
        match self {
            AskStatus::Id(id) => record.id.is_none_or(|told| read_whole_number(told) == Some(id.get())),
            AskStatus::MsgId(asked) => {
                words.read_id(record.msg_id).is_none_or(|told| told.to_string() == asked.to_string())
            }
        }
    }
}

fn parse_id(written: &str) -> Option<MessageId> {
    let digits = written.bytes().all(|byte| byte.is_ascii_digit());
    written.parse().ok().filter(|_| digits).and_then(MessageId::new)
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
        words: &RedactingReader<'_>,
    ) -> Result<MessageRecord, &'static str> {
        let record: StatusInquiryPayload<'_> = read_record(payload)?;
        if !self.is_about_record(&record, words) {
            return Err("is for a different message");
        }
        let status = words.read_text(record.status).ok_or("has no status")?;
        Ok(MessageRecord {
            id: words.read_id(record.id),
            msg_id: words.read_id(record.msg_id),
            channel: words.read_text(record.channel),
            status: Status::from_name(&status),
            updated: words.read_text(record.updated),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::read_payload;
    use super::*;

    fn by_id() -> AskStatus {
        AskStatus::Id(MessageId::new(7).unwrap())
    }

    #[test]
    fn record_is_read_with_numbers_strings_or_missing_members() {
        let full = r#"{"id":"7","msg_id":99,"type":"viber","status":"READ","updated":"2026-11-21T10:00:00+02:00"}"#;
        let record = read_payload(&by_id(), full).unwrap();
        assert_eq!(
            (record.id, record.msg_id),
            (Some(GatewayMessageId::Text("7".into())), Some(GatewayMessageId::Number(99)))
        );
        assert_eq!((record.channel.as_deref(), record.status), (Some("viber"), Status::Read));
        assert_eq!(record.updated.as_deref(), Some("2026-11-21T10:00:00+02:00"));
        let bare = read_payload(&by_id(), r#"{"status":"Paused"}"#).unwrap();
        assert_eq!(bare.status, Status::Other("Paused".into()));
        assert_eq!((bare.id, bare.msg_id, bare.channel, bare.updated), (None, None, None, None));
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
        for (asked, data, fits) in table {
            assert_eq!(read_payload(&asked, data).is_ok(), fits, "{asked:?} {data}");
        }
    }

    #[test]
    fn identifier_is_asked_about_by_its_stated_kind() {
        let ours = |number| Some(AskStatus::Id(MessageId::new(number).unwrap()));
        let number = |number| Some(AskStatus::MsgId(GatewayMessageId::Number(number)));
        let text = |text: &str| Some(AskStatus::MsgId(GatewayMessageId::Text(text.into())));
        let table = [
            ("7", false, ours(7)),
            ("007", false, ours(7)),
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
        for (typed, is_gateways, expected) in table {
            let asked = if is_gateways { AskStatus::from_gateway_id(typed) } else { AskStatus::from_own_id(typed) };
            assert_eq!(asked, expected, "{typed} {is_gateways}");
        }
    }
}
