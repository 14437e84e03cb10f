//! A condition that takes the text of a cell for something else.

use crate::domain::Text;
use crate::finding::{Finding, Rule};
use crate::message::{Asked, TextProblem, problem_at, questions};

pub(super) static RULE: Rule = Rule::warning(
    "cell-is-text",
    "A cell is text: `{% if vip %}` is true for each one that is not empty, `false` and `0` too, and a comparison with `true` or with a \
     number without quotes is true for none.",
    "Compare with the text that stands in the list, as it stands there: `{% if vip == 'true' %}`.",
);

/// Words that mean no, and what stands beside them where they mean yes.
const MEANT: [(&str, &str); 6] =
    [("false", "true"), ("no", "yes"), ("n", "y"), ("0", "1"), ("off", "on"), ("ні", "так")];

/// The comparisons of a text that no cell passes; `is_column` tells which names are columns.
pub(super) fn judge(text: &Text, is_column: impl Fn(&str) -> bool) -> Vec<TextProblem> {
    let asked = questions(text).into_iter().filter(|question| is_column(&question.name));
    let problem = |question: crate::message::Question| {
        let name = &question.name;
        let (message, help) = match question.asked {
            Asked::IsBool(word) => (
                format!("`{name}` is never `{word}`: a cell is text"),
                format!("write `{name} == '{word}'`, with the text as it stands in the list"),
            ),
            Asked::IsNumber(written) => {
                (format!("`{name}` is never a number: a cell is text"), format!("write `{written}`"))
            }
            Asked::Whether | Asked::IsText(_) => return None,
        };
        Some(problem_at(text, question.span, &RULE, message, &help))
    };
    asked.filter_map(problem).collect()
}

/// What rows say of a condition that asks whether a cell is something.
pub(super) fn taken_for_true(name: &str, example: &str, rows: &str) -> Finding {
    let message = format!("`{{% if {name} %}}` is true in {rows}, where the cell says `{example}`: any text is true");
    let yes = MEANT.iter().find(|(no, _)| no.eq_ignore_ascii_case(example.trim())).map_or("…", |(_, yes)| yes);
    let help = format!("write `{{% if {name} == '{yes}' %}}`, with the word that means yes as it stands in the list");
    Finding::new(&RULE, message).help(help)
}

/// What rows say of a comparison that none of them passes.
pub(super) fn nearly(name: &str, asked: &str, example: &str, rows: &str) -> Finding {
    let message = format!("no row has `{asked}` in `{name}`, but `{example}` stands in {rows}");
    let help = format!("write it as it stands in the list: `{{% if {name} == '{example}' %}}`, or mend the list");
    Finding::new(&RULE, message).help(help)
}
