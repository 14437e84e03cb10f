//! HTML tags in texts.

use super::as_it_stands;
use crate::check::broken_text::find_html_tags;
use crate::domain::NamedTemplate;
use crate::finding::{Rule, RuleText};
use crate::message::{TextProblem, mask_tags};

pub(super) static RULE: Rule = Rule::warning(
    "html-tag",
    RuleText {
        cause: "An HTML tag would be sent literally. Messages are plain text, not web pages.",
        example: &["message: \"Sale!<br>Until Sunday.\""],
        fix: "remove the tags; for a line break, write the text on separate lines after `|`",
    },
);

/// The tags of a text that everybody gets.
pub(super) fn check_html_tags(text: &NamedTemplate) -> Vec<TextProblem> {
    let help = |tags: &[&str]| {
        let is_break = |tag: &str| tag.to_ascii_lowercase().starts_with("<br");
        let line_break = "write a line break: put the text after `|`, on separate lines";
        match (tags.iter().any(|tag| is_break(tag)), tags.iter().all(|tag| is_break(tag))) {
            (true, true) => line_break.to_owned(),
            (true, false) => format!("for `<br>`, {line_break}; remove the other tags"),
            (false, _) => "remove the tags".to_owned(),
        }
    };
    as_it_stands::markup_finding(text, &find_html_tags(&mask_tags(text)), &RULE, help).into_iter().collect()
}
