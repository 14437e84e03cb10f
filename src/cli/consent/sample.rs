//! A sample message as lines: what it says on each channel.

use std::borrow::Cow;

use crate::cli::text::{StyledLine, dim, plain};
use crate::domain::{MessageContent, format_count};
use crate::report::describe_sms_size;

/// The most lines of a text that are shown.
const MAX_TEXT_LINES: usize = 12;

/// What a message says, channel by channel; the lines have no indent.
pub(super) fn sample_lines(content: &MessageContent<Cow<'_, str>>) -> Vec<StyledLine> {
    let names = content.stages.iter().map(|stage| stage.channel().name().len());
    let width = names.max().unwrap_or_default();
    let mut lines = Vec::new();
    for stage in &content.stages {
        let mut name = stage.channel().name();
        let mut add = |spans: Vec<_>| {
            let bar = dim(format!("{name:<width$} │ "));
            lines.push(StyledLine::new([bar].into_iter().chain(spans)).with_hang(width + 3));
            name = "";
        };
        for (field, text) in stage.texts() {
            match field.key {
                "signature" => {}
                "message" => {
                    let said: Vec<&str> = text.split('\n').collect();
                    said.iter().take(MAX_TEXT_LINES).for_each(|line| add(vec![plain(*line)]));
                    if said.len() > MAX_TEXT_LINES {
                        add(vec![dim(format!(
                            "… {} more",
                            format_count((said.len() - MAX_TEXT_LINES) as u64, "line")
                        ))]);
                    }
                }
                key => add(vec![dim(format!("{key} ")), plain(text.to_string())]),
            }
        }
        if let Some(text) = stage.billed_text() {
            add(vec![dim(describe_sms_size(text))]);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::text::StyledText;
    use crate::domain::{ExtraProperties, OperationKind, Sms, Stage};

    #[test]
    fn sample_labels_each_line_with_its_channel() {
        let message: Cow<'_, str> = "Hello\nBye\u{1b}[2J".into();
        let sms = Sms {
            signature: "Shop".into(),
            message,
            lifetime: None,
            short_link: None,
            max_parts: 1,
            plain: None,
            fields: ExtraProperties::new(),
        };
        let content = MessageContent { kind: OperationKind::Sms, stages: vec![Stage::Sms(sms)] };
        let mut text = StyledText::new();
        sample_lines(&content).into_iter().for_each(|line| text.push(line));
        assert_eq!(
            text.render(None, false),
            "sms │ Hello\n    │ Bye\\u{1b}[2J\n    │ 1 part: 13 of 70 characters (Unicode)\n"
        );
    }
}
