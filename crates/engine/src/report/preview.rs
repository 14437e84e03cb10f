//! Preview of messages as recipients will see them.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Read;

use serde_json::{Value, json};

use crate::check::{CompiledCampaign, ComposedMessage, Recipe};
use campaign_content::audience::{Chunk, RecipientReader, RecordRef, ValidNumber};
use campaign_content::message::{MarkedText, Marker};
use campaign_core::domain::{
    MessageContent, MessageId, Operation, OperationKind, Phone, Rcs, Row, RowSet, Sms, SmsEncoding, Stage, Viber,
    find_costly_characters, format_count, measure_sms,
};
use campaign_core::finding::{Finding, escape_to_one_line};
use campaign_gateway::encode_operation;
use campaign_ledger::{ExcludedRows, RowState};

/// Renders the message for a row as the recipient sees it.
pub fn render_preview(row: Row, phone: Phone, content: &MessageContent<Cow<'_, str>>) -> String {
    format!("row {row} · {}", render_message_preview(phone, content))
}

/// Renders a message as the recipient sees it, without a row number.
pub fn render_message_preview(phone: Phone, content: &MessageContent<Cow<'_, str>>) -> String {
    let channels: Vec<&str> = content.stages.iter().map(|stage| stage.channel().name()).collect();
    let mut text = format!("to +{phone} · {}", channels.join(", then "));
    if content.stages.len() > 1 || content.kind == OperationKind::Pipeline {
        let _ = write!(text, " (sent as `{}`)", content.kind);
    }
    text.push('\n');
    for stage in &content.stages {
        render_stage(&mut text, stage);
    }
    text
}

/// Renders an SMS template for the operator who approves it.
pub fn render_template_preview(name: &str, template: &str) -> String {
    let mut text = format!("the SMS template {}\n", escape_to_one_line(name));
    write_body(&mut text, template);
    text
}

/// A row as JSON: the operation as it would be sent, with 0 as the identifier, or the reason there is no message.
pub fn preview_json(row: Row, preview: RowPreview<'_>) -> Value {
    match preview {
        RowPreview::Message { phone, content } => {
            let operation = MessageId::new(0).map(|id| encode_operation(&Operation { id, phone, content }));
            let operation: Value = operation.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
            json!({ "row": row.get(), "operation": operation })
        }
        RowPreview::LeftOut { state, reason } => json!({ "row": row.get(), "state": state.name(), "reason": reason }),
    }
}

fn render_stage(text: &mut String, stage: &Stage<Cow<'_, str>>) {
    let channel = stage.channel().name();
    match stage {
        Stage::Sms(Sms { signature, message, plain, .. }) => {
            write_heading(text, channel, signature, &format!(" · {}", describe_sms_size(message)));
            write_body(text, message);
            if let Some(plain) = plain {
                let _ = writeln!(
                    text,
                    "    `plain: {}` replaced some characters; this is the message as it will be sent",
                    plain.name()
                );
            }
            if let Some(costly) = find_costly_characters(message) {
                let costly: Vec<String> = costly.characters.iter().map(|c| format!("`{c}`")).collect();
                let _ = writeln!(text, "    longer because of {}", costly.join(" and "));
            }
        }
        Stage::Viber(viber) => render_viber(text, channel, viber),
        Stage::Rcs(Rcs { signature, message, image, button, link, .. }) => {
            write_heading(text, channel, signature, "");
            write_body(text, message);
            write_image(text, image.as_deref());
            write_button(text, button.as_deref(), link.as_deref());
        }
        Stage::Telegram(telegram) => {
            write_heading(text, channel, "one-time code", "");
            write_body(text, &telegram.message);
        }
        Stage::Voice(voice) => {
            let speaker = [&voice.gender, &voice.language, &voice.name];
            let speaker: Vec<&str> = speaker.into_iter().flatten().map(Cow::as_ref).collect();
            write_heading(text, channel, &speaker.join(", "), " · spoken");
            write_body(text, &voice.message);
        }
        Stage::Whatsapp(whatsapp) => {
            write_heading(text, channel, &whatsapp.signature, "");
            write_body(text, &whatsapp.message);
        }
        Stage::Hlr(_) => write_heading(text, channel, "number lookup; sends no message", ""),
        Stage::CallOtp(_) => {
            write_heading(text, channel, "call; the last four digits of the calling number are the code", "")
        }
    }
}

/// Describes an SMS by the number of its parts, and by how much of their capacity it uses: `1 part: 41 of 70 characters
/// (Unicode)`.
pub fn describe_sms_size(message: &str) -> String {
    let size = measure_sms(message);
    let encoding = match size.encoding {
        SmsEncoding::Gsm7 => "GSM-7",
        SmsEncoding::Ucs2 => "Unicode",
    };
    let parts = format_count(size.parts as u64, "part");
    format!("{parts}: {} of {} characters ({encoding})", size.units, size.capacity())
}

fn render_viber(text: &mut String, channel: &str, viber: &Viber<Cow<'_, str>>) {
    write_heading(text, channel, &viber.signature, &format!(" · {}", viber.kind.name()));
    if let Some(message) = &viber.message {
        write_body(text, message);
    }
    write_image(text, viber.image.as_deref());
    write_button(text, viber.button.as_deref(), viber.link.as_deref());
    for card in &viber.carousel {
        write_body(text, card.caption.as_deref().unwrap_or("(no caption)"));
        write_image(text, Some(&card.image));
        write_button(text, Some(&card.button), Some(&card.url));
    }
}

fn write_heading(text: &mut String, channel: &str, sender: &str, details: &str) {
    let _ = writeln!(text, "  {channel:<9}{}{details}", escape_to_one_line(sender));
}

fn write_body(text: &mut String, message: &str) {
    for line in message.split('\n') {
        let _ = writeln!(text, "    │ {}", escape_to_one_line(line));
    }
}

fn write_image(text: &mut String, image: Option<&str>) {
    if let Some(image) = image {
        let _ = writeln!(text, "    image {}", escape_to_one_line(image));
    }
}

fn write_button(text: &mut String, button: Option<&str>, link: Option<&str>) {
    match (button, link) {
        (Some(button), Some(link)) => {
            let _ = writeln!(text, "    [{}] → {}", escape_to_one_line(button), escape_to_one_line(link));
        }
        (Some(label), None) | (None, Some(label)) => {
            let _ = writeln!(text, "    [{}]", escape_to_one_line(label));
        }
        (None, None) => {}
    }
}

/// The preview of a row: its message, or the reason it gets none.
#[derive(Clone, Debug)]
pub enum RowPreview<'r> {
    /// The message to the row.
    Message {
        /// The recipient.
        phone: Phone,
        /// The text.
        content: MessageContent<Cow<'r, str>>,
    },
    /// The row gets no message.
    LeftOut {
        /// The state of the row: skipped or invalid.
        state: RowState,
        /// The reason as it is recorded for the row, such as `duplicate number`.
        reason: &'r str,
    },
}

/// A message with the parts that come from the recipient's row marked.
#[derive(Clone, Debug)]
pub struct MarkedMessage {
    /// The recipient.
    pub phone: Phone,
    /// The index of the variant; 0 without variants.
    pub arm: usize,
    /// The text.
    pub content: MessageContent<MarkedText>,
}

/// Shows at most `limit` rows of a list, or of `rows` if the operator named rows. `left_out` are the rows without a
/// message.
///
/// Returns the number of rows that were shown.
///
/// # Errors
/// If the list is damaged.
pub fn preview_rows<R: Read>(
    prepared: &mut CompiledCampaign<R>,
    left_out: &ExcludedRows,
    rows: Option<&RowSet>,
    limit: usize,
    mut show: impl FnMut(Row, RowPreview<'_>),
) -> Result<usize, Box<Finding>> {
    let CompiledCampaign { reader, recipe, .. } = prepared;
    for_each_row(reader, recipe, left_out, rows, limit, |record, row| match row {
        Ok(ComposedMessage { number: ValidNumber { phone, .. }, message, .. }) => {
            show(record.row, RowPreview::Message { phone, content: message.content() });
        }
        Err((state, reason)) => show(record.row, RowPreview::LeftOut { state, reason }),
    })
}

/// Like [`preview_rows`], but marks the parts of each message that come from the row's cells.
///
/// # Errors
/// If the list is damaged.
pub fn preview_marked_rows<R: Read>(
    prepared: &mut CompiledCampaign<R>,
    left_out: &ExcludedRows,
    rows: Option<&RowSet>,
    limit: usize,
    mut show: impl FnMut(Row, Result<MarkedMessage, (RowState, &str)>),
) -> Result<usize, Box<Finding>> {
    let CompiledCampaign { reader, recipe, .. } = prepared;
    let mut markers: Vec<Marker<'_>> = recipe.markers().collect();
    for_each_row(reader, recipe, left_out, rows, limit, |record, row| {
        let marked = row.map(|ComposedMessage { number, arm, message }| {
            let content = markers[arm].mark_content(
                record.row,
                |column| recipe.cell_text(record.fields, column),
                &message.content(),
            );
            MarkedMessage { phone: number.phone, arm, content }
        });
        show(record.row, marked);
    })
}

/// Composes the messages of at most `limit` rows, and passes each to `show`. Rows in `left_out` are passed with their
/// state and reason. Returns the number of rows.
fn for_each_row<R: Read>(
    reader: &mut RecipientReader<R>,
    recipe: &Recipe,
    left_out: &ExcludedRows,
    rows: Option<&RowSet>,
    limit: usize,
    mut show: impl FnMut(RecordRef<'_>, Result<ComposedMessage<'_>, (RowState, &str)>),
) -> Result<usize, Box<Finding>> {
    let mut composer = recipe.composer();
    let mut left_out = left_out.iter_by_row().peekable();
    let (mut chunk, mut count) = (Chunk::new(), 0);
    while count < limit && reader.read_chunk(&mut chunk)? {
        let chosen = chunk.iter().filter(|record| rows.is_none_or(|rows| rows.contains(record.row)));
        for record in chosen.take(limit - count) {
            let row = record.row;
            while left_out.next_if(|(excluded, ..)| *excluded < row).is_some() {}
            if let Some((_, state, reason)) = left_out.next_if(|(excluded, ..)| *excluded == row) {
                show(record, Err((state, reason)));
            } else if let Ok(composed) = composer.compose(record) {
                show(record, Ok(composed));
            }
            count += 1;
        }
    }
    Ok(count)
}
