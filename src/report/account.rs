//! What the account of a gateway told, as JSON for programs; members that it did not tell are null.

use serde_json::{Value, json};

use crate::domain::GatewayMessageId;
use crate::gateway::{AskStatus, InquiryFailure, MessageRecord, SenderName, SmsTemplate, ViberTemplate};

/// A sender name.
#[must_use]
pub fn sender_json(sender: &SenderName) -> Value {
    json!({ "name": sender.name, "status": sender.status })
}

/// An SMS template.
#[must_use]
pub fn sms_template_json(template: &SmsTemplate) -> Value {
    let SmsTemplate { id, name, text, count, created } = template;
    json!({ "id": id_json(id.as_ref()), "name": name, "template": text, "count": count, "datetime": created })
}

/// A Viber template.
#[must_use]
pub fn viber_template_json(template: &ViberTemplate) -> Value {
    let ViberTemplate { id, signature, text, status } = template;
    json!({ "id": id_json(id.as_ref()), "signature": signature, "template": text, "status": status })
}

/// What the gateway knows of a message, under the identifier that it was asked with, or why it does not tell.
#[must_use]
pub fn message_json(asked: &AskStatus, answer: &Result<MessageRecord, InquiryFailure>) -> Value {
    let (ours, theirs) = (asked.own_id(), asked.gateway_id());
    match answer {
        Ok(record) => json!({
            "id": id_json(record.id.as_ref().or(ours.as_ref())),
            "msg_id": id_json(record.msg_id.as_ref().or(theirs.as_ref())),
            "type": record.channel,
            "status": record.status.name(),
            "updated": record.updated,
        }),
        Err(failed) => {
            json!({ "id": id_json(ours.as_ref()), "msg_id": id_json(theirs.as_ref()), "error": failed.reason })
        }
    }
}

/// An identifier as the gateway wrote it: a number, a text or nothing.
fn id_json(id: Option<&GatewayMessageId>) -> Value {
    match id {
        Some(GatewayMessageId::Number(number)) => (*number).into(),
        Some(GatewayMessageId::Text(text)) => text.as_str().into(),
        None => Value::Null,
    }
}
