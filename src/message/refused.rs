//! Texts that are the same for everybody, and that a channel would not take.

use super::lex::is_constant;
use super::problem::TextProblem;
use crate::domain::{Content, Text, text_violation};
use crate::finding::rules;

/// The limits of the channels that constant texts break.
pub(super) fn refused(content: &Content<Text>) -> Vec<TextProblem> {
    let mut problems = Vec::new();
    for stage in &content.stages {
        for (field, text) in stage.texts().filter(|(_, text)| is_constant(&text.source)) {
            let violation = text_violation(stage, field, &text.source);
            problems.extend(violation.map(|violation| {
                let (whole, message) = (0..text.source.len(), violation.to_string());
                TextProblem::new(&text.name, &text.source, whole, &rules::TEXT_REFUSED, message)
            }));
        }
    }
    problems
}
