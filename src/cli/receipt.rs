//! A receipt in the words of people and of programs.

use serde_json::{Value, json};

use super::clock::second;
use crate::domain::{Receipt, ReceiptSource, RecipientReply, ReportedChannel};

/// A receipt for a program.
pub(super) fn receipt_json(receipt: &Receipt) -> Value {
    let reply = |reply: &RecipientReply| {
        json!({
            "at": reply.at.map(|at| at.to_string()), "text": reply.text,
            "media": reply.media.as_ref().map(|media| {
                json!({ "url": media.url, "filename": media.filename, "filesize": media.filesize })
            }),
        })
    };
    let source = match receipt.source {
        ReceiptSource::Webhook => "webhook",
        ReceiptSource::Asked => "asked",
        ReceiptSource::AskedLast => "asked_last",
    };
    json!({
        "event": "receipt", "source": source, "status": receipt.status.name(),
        "channel": receipt.channel.as_ref().map(ReportedChannel::as_str), "updated": receipt.updated.map(|at| at.to_string()),
        "msg_id": receipt.msg_id.as_ref().map(ToString::to_string), "request_id": receipt.request_id,
        "error": receipt.error, "digit": receipt.digit, "duration": receipt.duration,
        "replies": receipt.replies.iter().map(reply).collect::<Vec<_>>(),
    })
}

/// A receipt for a person.
pub(super) fn describe_receipt(receipt: &Receipt) -> String {
    let mut text = match receipt.source {
        ReceiptSource::Webhook => format!("receipt: {}", receipt.status),
        ReceiptSource::Asked => format!("receipt (requested): {}", receipt.status),
        ReceiptSource::AskedLast => {
            format!("last receipt (requested after the lifetimes of all channels had ended): {}", receipt.status)
        }
    };
    text += &receipt.channel.as_ref().map(|channel| format!(" on {}", channel.as_str())).unwrap_or_default();
    text += &receipt.updated.map(|at| format!(", since {}", second(at))).unwrap_or_default();
    text += &receipt.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    text += &receipt.duration.map(|seconds| format!(", call duration {seconds} s")).unwrap_or_default();
    text += &receipt.digit.as_ref().map(|digit| format!(", pressed {digit}")).unwrap_or_default();
    for reply in &receipt.replies {
        text += &format!(", replied: {}", if reply.text.is_empty() { "(a file)" } else { &reply.text });
    }
    text
}
