//! A message that shows that something is missing: a comma after nothing.

use roaring::RoaringBitmap;

use super::rows::describe_first;
use crate::finding::{Finding, Rule, RuleText};

pub(super) static RULE: Rule = Rule::warning(
    "empty-greeting",
    RuleText {
        cause: "A missing value leaves a gap in a message. The message reads “Hello , …” or starts with a comma.",
        example: &[
            "message: \"Hello {% if first_name %}{{ first_name }}{% endif %}, -20% today!\"",
            "list.csv: phone,first_name",
            "          380501234567,",
        ],
        fix: "move the comma and the space into the condition: `Hello{% if first_name %}, {{ first_name }}{% endif \
              %}!`",
    },
);

/// The rows whose message shows a hole.
#[must_use]
pub(super) fn report_rows(rows: &RoaringBitmap) -> Option<Finding> {
    let rows = Some(rows).filter(|rows| !rows.is_empty())?;
    let message = format!("the message has a gap in {}, as in `Hello , …`", describe_first(rows));
    let help = "move the comma and the space into the condition: `Hello{% if name %}, {{ name }}{% endif %}!`";
    Some(Finding::new(&RULE, message).help(help))
}

/// A message that shows a hole.
pub(super) fn report_message() -> Finding {
    let help = "fill in the value, or remove the comma and the space";
    Finding::new(&RULE, "the message has a gap, as in `Hello , …`").help(help)
}

/// Whether a message begins with the sign that ends something, or has one behind a blank.
pub(in crate::check) fn has_empty_greeting(message: &str) -> bool {
    let bytes = message.as_bytes();
    if matches!(bytes.first(), Some(b',' | b'!' | b'.' | b';' | b':')) {
        return true;
    }
    bytes
        .windows(3)
        .any(|three| three[0] == b' ' && matches!(three[1], b',' | b'!' | b';') && !three[2].is_ascii_punctuation())
        || matches!(bytes, [.., b' ', b',' | b'!' | b'.' | b';'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comma_after_an_empty_name_is_found() {
        for hole in ["Hello , your code", ", -20% today", "Hi !", "! Sale", "Dear ; x", "Вітаємо , знижки"]
        {
            assert!(has_empty_greeting(hole), "{hole}");
        }
        for whole in ["Hello, you", "Hi! -20%", "…", "3 : 4", "wow !!", "a .b", ""] {
            assert!(!has_empty_greeting(whole), "{whole}");
        }
    }
}
