//! A sample message as lines: what it says on each channel.

use std::borrow::Cow;

use crate::cli::text::{Line, dim, plain};
use crate::domain::{Content, plural};
use crate::report::sms_size;

/// The most lines of a text that are shown.
const LINES: usize = 12;

/// What a message says, channel by channel; the lines have no indent.
pub(super) fn sample_lines(content: &Content<Cow<'_, str>>) -> Vec<Line> {
    let names = content.stages.iter().map(|stage| stage.channel().name().len());
    let width = names.max().unwrap_or_default();
    let mut lines = Vec::new();
    for stage in &content.stages {
        let mut name = stage.channel().name();
        let mut add = |spans: Vec<_>| {
            let bar = dim(format!("{name:<width$} │ "));
            lines.push(Line::new([bar].into_iter().chain(spans)).hanging(width + 3));
            name = "";
        };
        for (field, text) in stage.texts() {
            match field.key {
                "signature" => {}
                "message" => {
                    let said: Vec<&str> = text.split('\n').collect();
                    said.iter().take(LINES).for_each(|line| add(vec![plain(*line)]));
                    if said.len() > LINES {
                        add(vec![dim(format!("… {} more", plural((said.len() - LINES) as u64, "line")))]);
                    }
                }
                key => add(vec![dim(format!("{key} ")), plain(text.to_string())]),
            }
        }
        if let Some(text) = stage.billed_text() {
            add(vec![dim(sms_size(text))]);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::text::Text;
    use crate::domain::{Extra, OperationKind, Sms, Stage};

    #[test]
    fn sample_shows_each_line_behind_its_channel() {
        let message: Cow<'_, str> = "Hello\nBye\u{1b}[2J".into();
        let sms = Sms {
            signature: "Shop".into(),
            message,
            lifetime: None,
            short_link: None,
            max_parts: 1,
            plain: None,
            fields: Extra::new(),
        };
        let content = Content { kind: OperationKind::Sms, stages: vec![Stage::Sms(sms)] };
        let mut text = Text::new();
        sample_lines(&content).into_iter().for_each(|line| text.push(line));
        assert_eq!(
            text.render(None, false),
            "sms │ Hello\n    │ Bye\\u{1b}[2J\n    │ 1 part: 13 of 70 characters (Unicode)\n"
        );
    }
}
