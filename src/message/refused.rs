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

#[cfg(test)]
mod tests {
    use crate::message::compile;
    use crate::message::fixtures::{names, sms};

    #[test]
    fn what_a_channel_would_not_take_is_told_with_all_else_that_is_wrong_with_texts() {
        let problems =
            compile(&sms("Olena & Company", "{{ nope }}"), &names(), &mut |_| Err("none".to_owned())).unwrap_err();
        let told: Vec<&str> = problems.iter().map(|problem| problem.rule.id).collect();
        assert_eq!(told, ["unknown-variable", "text-refused"]);
    }
}
