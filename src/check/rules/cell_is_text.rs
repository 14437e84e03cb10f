//! A condition that takes the text of a cell for something else.

use std::collections::HashSet;

use crate::domain::variable::{CAMPAIGN_VARIABLES, ROW_VARIABLES, is_reserved};
use crate::domain::{NamedTemplate, Stage};
use crate::finding::{Finding, Rule, RuleText, rules};
use crate::manifest::CampaignBrief;
use crate::message::{
    ConditionCheck, ConditionKind, TextProblem, find_condition_checks, find_defined_names, find_number_comparisons,
    number_remedy, problem_at,
};

pub(super) static RULE: Rule = Rule::warning(
    "cell-is-text",
    RuleText {
        cause: "A message treats a cell as a number or boolean. Cells are always text: `{% if vip %}` is \
                true even for `false` and `0`, and a cell never equals a number.",
        example: &["message: \"{% if code == 5 %}Thank you!{% endif %}\""],
        fix: "compare with the text in the list, `code == \"5\"`, or convert the cell: `code | int == 5`",
    },
);

/// Words that mean no, and what stands beside them where they mean yes.
const NEGATIVE_AND_POSITIVE: [(&str, &str); 6] =
    [("false", "true"), ("no", "yes"), ("n", "y"), ("0", "1"), ("off", "on"), ("ні", "так")];

/// The comparisons of a text that no cell passes; `is_column` tells which names are columns.
pub(super) fn check_comparisons(text: &NamedTemplate, is_column: impl Fn(&str) -> bool) -> Vec<TextProblem> {
    let fails = find_number_comparisons(text);
    let asked = find_condition_checks(text)
        .into_iter()
        .filter(|question| is_column(&question.name) && !fails.contains(question));
    let problem = |question: ConditionCheck| {
        let name = &question.name;
        let (message, help) = match question.kind {
            ConditionKind::IsBool(word) => (
                format!("`{name}` is never `{word}`, because cells are always text"),
                format!("write `{name} == '{word}'`, using the exact text from the list"),
            ),
            ConditionKind::IsNumber(written) => {
                (format!("`{name}` is never a number, because cells are always text"), number_remedy(name, &written))
            }
            ConditionKind::IsTruthy | ConditionKind::IsText(_) => return None,
        };
        Some(problem_at(text, question.span, &RULE, message, &help))
    };
    asked.filter_map(problem).collect()
}

/// Comparisons by which texts test whether a cell is more or less than a number: each of them fails with every row.
///
/// `columns` are the names of columns in texts, if known; `included` are the texts that others include.
pub(in crate::check) fn find_failing_comparisons(
    brief: &CampaignBrief,
    columns: Option<&[String]>,
    included: impl Iterator<Item = NamedTemplate>,
) -> Vec<TextProblem> {
    let constants = brief.constant_names();
    let texts =
        brief.all_contents().flat_map(|content| &content.stages).flat_map(Stage::texts).map(|(_, text)| text.clone());
    let texts: Vec<NamedTemplate> =
        texts.chain(included).filter(|text| !NamedTemplate::is_stand_in(&text.name)).collect();
    // A text sees the names that the text which includes it defines.
    let defined: HashSet<String> = texts.iter().flat_map(|text| find_defined_names(&text.source)).collect();
    let is_column = |name: &str| {
        columns.is_none_or(|columns| columns.iter().any(|column| column == name))
            && may_be_column(&defined, &constants, name)
    };
    let mut problems: Vec<TextProblem> = Vec::new();
    for text in texts {
        for ConditionCheck { name, kind: asked, span } in find_number_comparisons(&text) {
            let ConditionKind::IsNumber(written) = asked else { continue };
            if !is_column(&name) {
                continue;
            }
            let message = format!("`{name}` is text but is compared with a number");
            let help = number_remedy(&name, &written);
            let problem = problem_at(&text, span, &rules::TEXT_FAILS, message, &help);
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
    }
    problems
}

/// Whether a name of a text may be a column: neither a constant, nor defined by texts, nor a name of the program.
pub(super) fn may_be_column(defined: &HashSet<String>, constants: &[&str], name: &str) -> bool {
    let is_ours = is_reserved(name) || ROW_VARIABLES.contains(&name) || CAMPAIGN_VARIABLES.contains(&name);
    !defined.contains(name) && !is_ours && !constants.contains(&name)
}

/// What rows say of a condition that asks whether a cell is something.
pub(super) fn report_taken_for_true(name: &str, example: &str, rows: &str) -> Finding {
    let message =
        format!("`{{% if {name} %}}` is true in {rows}, where the cell is `{example}`: any text counts as true");
    let yes = NEGATIVE_AND_POSITIVE
        .iter()
        .find(|(no, _)| no.eq_ignore_ascii_case(example.trim()))
        .map_or("…", |(_, yes)| yes);
    let help = format!("write `{{% if {name} == '{yes}' %}}`, with the word that the list uses for “yes”");
    Finding::new(&RULE, message).help(help)
}

/// What rows say of a comparison that none of them passes.
pub(super) fn report_near_match(name: &str, asked: &str, example: &str, rows: &str) -> Finding {
    let message = format!("no row has `{asked}` in the column `{name}`; the value is `{example}` in {rows}");
    let help = format!("use the value from the list, as in `{{% if {name} == '{example}' %}}`, or correct the list");
    Finding::new(&RULE, message).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordered_number_comparison_is_not_reported_twice() {
        let told = |source: &str| -> Vec<String> {
            let text = NamedTemplate { name: "t".into(), source: source.into() };
            check_comparisons(&text, |name| name == "points")
                .into_iter()
                .map(|problem| problem.help.unwrap_or_default())
                .collect()
        };
        for silent in
            ["{% if points > 5 %}x{% endif %}", "{% if points | int == 5 %}x{% endif %}", "{% if n == 5 %}x{% endif %}"]
        {
            assert_eq!(told(silent), [""; 0], "{silent}");
        }
        let expected = "write `points | int == 5`, or `points != '' and points | int == 5` if some cells are empty";
        assert_eq!(told("{% if points == 5 %}x{% endif %}"), [expected]);
    }
}
