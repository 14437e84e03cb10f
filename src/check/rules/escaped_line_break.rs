//! Line breaks in texts that are written as `\n`.

use crate::check::broken_text::find_escaped_line_break;
use crate::domain::NamedTemplate;
use crate::finding::{Rule, RuleText};
use crate::message::{TextProblem, constant_parts, problem_at};

pub(super) static RULE: Rule = Rule::warning(
    "escaped-line-break",
    RuleText {
        cause: "`\\n` would be sent literally. In YAML, it is a line break only inside double quotes.",
        example: &["message: 'Hello!\\nSee you on Friday.'"],
        fix: "use a real line break, or put the text in double quotes",
    },
);

/// The first `\n` of a text that everybody gets.
pub(super) fn check_escaped_line_breaks(text: &NamedTemplate) -> Vec<TextProblem> {
    let first = constant_parts(text)
        .find_map(|(part, at)| find_escaped_line_break(part).map(|found| at.start + found.start..at.start + found.end));
    let problem = first.map(|span| {
        let message = format!("`{}` would be sent literally", &text.source[span.clone()]);
        let help = "use a real line break; in the campaign file, put the text after `|` or in double quotes";
        problem_at(text, span, &RULE, message, help)
    });
    problem.into_iter().collect()
}
