//! HTML entities.

use super::as_it_stands;
use crate::check::broken_text::{decode_entity, find_html_entities};
use crate::domain::NamedTemplate;
use crate::finding::{Finding, Rule, RuleText};
use crate::message::{TextProblem, mask_tags};

pub(super) static RULE: Rule = Rule::warning(
    "html-entity",
    RuleText {
        cause: "An HTML entity would be sent literally. Messages are plain text, not web pages.",
        example: &["message: \"Olena &amp; Co: -20%\""],
        fix: "write the character itself, and export the list without HTML",
    },
);

/// The characters of a text that everybody gets.
pub(super) fn check_text(text: &NamedTemplate) -> Option<TextProblem> {
    let meant = |entity: &str| match decode_entity(entity) {
        Some(character) if character == " " => "a space".to_owned(),
        Some(character) => format!("`{character}`"),
        None => "the character itself".to_owned(),
    };
    let help = |entities: &[&str]| match entities {
        [one] => format!("write {}", meant(one)),
        several => {
            let each: Vec<String> = several.iter().map(|entity| format!("{} for `{entity}`", meant(entity))).collect();
            format!("write {}", each.join(", "))
        }
    };
    as_it_stands::markup_finding(text, &find_html_entities(&mask_tags(text)), &RULE, help)
}

/// The cells of a column.
pub(super) fn report_rows(column: &str, example: &str, rows: &str) -> Finding {
    let meant = decode_entity(example).filter(|character| character != " ");
    let meant = meant.map(|character| format!(" instead of `{character}`"));
    let message = format!("the column `{column}` contains `{example}`{} in {rows}", meant.unwrap_or_default());
    Finding::new(&RULE, message)
        .help("export the list again without HTML encoding, or replace the HTML entities in the list")
}
