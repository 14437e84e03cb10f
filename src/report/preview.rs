//! A message as its recipient will see it.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::preview_rows::RowPreview;
use crate::domain::{
    Content, Encoding, MessageId, Operation, OperationKind, Phone, Rcs, Row, Sms, Stage, Viber, costly_characters,
    plural, sms_text,
};
use crate::finding::one_line;
use crate::gateway::encode;

/// The message as a person reads it.
#[must_use]
pub fn preview(row: Row, phone: Phone, content: &Content<Cow<'_, str>>) -> String {
    format!("row {row} · {}", message_preview(phone, content))
}

/// The message as a person reads it, wherever it comes from.
#[must_use]
pub fn message_preview(phone: Phone, content: &Content<Cow<'_, str>>) -> String {
    let channels: Vec<&str> = content.stages.iter().map(|stage| stage.channel().name()).collect();
    let mut text = format!("to +{phone} · {}", channels.join(", then "));
    if content.stages.len() > 1 || content.kind == OperationKind::Pipeline {
        let _ = write!(text, " (sent as `{}`)", content.kind);
    }
    text.push('\n');
    for stage in &content.stages {
        stage_lines(&mut text, stage);
    }
    text
}

/// The row for programs: its operation exactly as it would be sent, but with 0 for the identifier that it will get, or why
/// it is never sent.
#[must_use]
pub fn preview_json(row: Row, preview: RowPreview<'_>) -> Value {
    match preview {
        RowPreview::Message { phone, content } => {
            let operation = MessageId::new(0).map(|id| encode(&Operation { id, phone, content }));
            let operation: Value = operation.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
            json!({ "row": row.get(), "operation": operation })
        }
        RowPreview::LeftOut { state, reason } => json!({ "row": row.get(), "state": state.name(), "reason": reason }),
    }
}

fn stage_lines(text: &mut String, stage: &Stage<Cow<'_, str>>) {
    let channel = stage.channel().name();
    match stage {
        Stage::Sms(Sms { signature, message, plain, .. }) => {
            heading(text, channel, signature, &format!(" · {}", sms_size(message)));
            body(text, message);
            if let Some(plain) = plain {
                let _ = writeln!(
                    text,
                    "    `plain: {}` replaced some characters; this is the message that is sent",
                    plain.name()
                );
            }
            if let Some(costly) = costly_characters(message) {
                let costly: Vec<String> = costly.characters.iter().map(|c| format!("`{c}`")).collect();
                let _ = writeln!(text, "    longer because of {}", costly.join(" and "));
            }
        }
        Stage::Viber(viber) => viber_lines(text, channel, viber),
        Stage::Rcs(Rcs { signature, message, image, button, link, .. }) => {
            heading(text, channel, signature, "");
            body(text, message);
            picture(text, image.as_deref());
            press(text, button.as_deref(), link.as_deref());
        }
        Stage::Telegram(telegram) => {
            heading(text, channel, "one-time code", "");
            body(text, &telegram.message);
        }
        Stage::Voice(voice) => {
            let speaker = [&voice.gender, &voice.language, &voice.name];
            let speaker: Vec<&str> = speaker.into_iter().flatten().map(Cow::as_ref).collect();
            heading(text, channel, &speaker.join(", "), " · spoken");
            body(text, &voice.message);
        }
        Stage::Whatsapp(whatsapp) => {
            heading(text, channel, &whatsapp.signature, "");
            body(text, &whatsapp.message);
        }
        Stage::Hlr(_) => heading(text, channel, "number lookup; sends no message", ""),
        Stage::CallOtp(_) => {
            heading(text, channel, "call; the last four digits of the calling number are the code", "")
        }
    }
}

/// The parts of an SMS and the characters used of them: `1 part: 41 of 70 characters (Unicode)`.
#[must_use]
pub fn sms_size(message: &str) -> String {
    let size = sms_text(message);
    let encoding = match size.encoding {
        Encoding::Gsm7 => "GSM-7",
        Encoding::Ucs2 => "Unicode",
    };
    let parts = plural(size.parts as u64, "part");
    format!("{parts}: {} of {} characters ({encoding})", size.units, size.capacity())
}

fn viber_lines(text: &mut String, channel: &str, viber: &Viber<Cow<'_, str>>) {
    heading(text, channel, &viber.signature, &format!(" · {}", viber.kind.name()));
    if let Some(message) = &viber.message {
        body(text, message);
    }
    picture(text, viber.image.as_deref());
    press(text, viber.button.as_deref(), viber.link.as_deref());
    for card in &viber.carousel {
        body(text, card.caption.as_deref().unwrap_or("(no caption)"));
        picture(text, Some(&card.image));
        press(text, Some(&card.button), Some(&card.url));
    }
}

fn heading(text: &mut String, channel: &str, from: &str, more: &str) {
    let _ = writeln!(text, "  {channel:<9}{}{more}", one_line(from));
}

fn body(text: &mut String, message: &str) {
    for line in message.split('\n') {
        let _ = writeln!(text, "    │ {}", one_line(line));
    }
}

fn picture(text: &mut String, image: Option<&str>) {
    if let Some(image) = image {
        let _ = writeln!(text, "    image {}", one_line(image));
    }
}

fn press(text: &mut String, button: Option<&str>, link: Option<&str>) {
    match (button, link) {
        (Some(button), Some(link)) => {
            let _ = writeln!(text, "    [{}] → {}", one_line(button), one_line(link));
        }
        (Some(one), None) | (None, Some(one)) => {
            let _ = writeln!(text, "    [{}]", one_line(one));
        }
        (None, None) => {}
    }
}
