//! URL escapes in texts, such as `%20`.

use super::as_it_stands;
use crate::check::broken_text::find_url_escapes;
use crate::domain::NamedTemplate;
use crate::finding::{Rule, RuleText};
use crate::message::{TextProblem, mask_tags};

pub(super) static RULE: Rule = Rule::warning(
    "url-escape",
    RuleText {
        cause: "A URL escape would be sent literally. `%20` is a space and `%0A` a line break only in addresses.",
        example: &["message: \"Sale!%0AUntil Sunday.\""],
        fix: "use a real space or line break",
    },
);

/// Escaped spaces and line breaks in a text.
pub(super) fn check_url_escapes(text: &NamedTemplate) -> Vec<TextProblem> {
    let masked = mask_tags(text);
    let help = |escapes: &[&str]| {
        let line_break = "a line break: put the text after `|`, on separate lines";
        let help = match (escapes.contains(&"%20"), escapes.iter().any(|escape| *escape != "%20")) {
            (true, true) => format!("write a space for `%20`, and for the others {line_break}"),
            (true, false) => "write a space".to_owned(),
            (false, _) => format!("write {line_break}"),
        };
        match has_plus_for_blank(&masked) {
            true => format!("{help}; a `+` between words also stands for a space"),
            false => help,
        }
    };
    as_it_stands::markup_finding(text, &find_url_escapes(&masked), &RULE, help).into_iter().collect()
}

fn has_plus_for_blank(text: &str) -> bool {
    text.match_indices('+')
        .any(|(at, _)| text[..at].ends_with(char::is_alphabetic) && text[at + 1..].starts_with(char::is_alphabetic))
}
