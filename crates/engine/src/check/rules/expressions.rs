//! Rules about template expressions: comparisons, filter arguments and constants.

use std::collections::{BTreeSet, HashSet};
use std::convert::Infallible;

use super::read_included_texts;
use crate::check::row_anomalies::NEGATIVE_WORDS;
use campaign_content::message::{
    ColumnName, ConditionCheck, ConditionKind, FilterCall, TextProblem, find_condition_checks, find_defined_names,
    find_filter_calls, find_mentions, find_number_comparisons, problem_at, suggest_conversion,
};
use campaign_core::define_rules;
use campaign_core::domain::variable::{CAMPAIGN_VARIABLES, ROW_VARIABLES, is_reserved};
use campaign_core::domain::{NamedTemplate, Stage};
use campaign_core::finding::{Finding, did_you_mean, join_names, rules};
use campaign_manifest::{Campaign, CampaignBrief, MessageVariant};

define_rules! {
    TEXTS:
    warning CELL_IS_TEXT = "cell-is-text" {
        cause: "A message treats a cell as a number or boolean. Cells are always text: `{% if vip %}` is true even for \
                `false` and `0`, and a cell never equals a number.",
        example: ["message: \"{% if code == 5 %}Thank you!{% endif %}\""],
        fix: "compare the cell with the text in the list, for example `code == \"5\"`, or convert it: `code | int == \
              5`",
    }
    warning FILTER_ARGUMENT = "filter-argument" {
        cause: "A filter has a wrong or missing argument. An unknown argument is ignored, and a missing one makes \
                every row fail.",
        example: ["message: \"Hi, {{ first_name | default(valeu='friend') }}!\""],
        fix: "use the arguments listed in the finding, each with its name",
    }
    error UNUSED_CONSTANT = "unused-constant" {
        cause: "A variant sets a constant that no message uses. Recipients of all variants would get the same message.",
        example: [
            "vars: { greeting: Hi }",
            "variants: { a: { share: 50%, vars: { greting: Hello } }, b: { share: 50% } }",
            "message: \"{{ greeting }}!\"",
        ],
        fix: "spell the name as it appears in the messages, or remove the constant",
    }
    warning SAME_VARIANTS = "same-variants" {
        cause: "Two variants send the same message. The test cannot find a difference between them.",
        example: ["variants: { a: { share: 50% }, b: { share: 50% } }"],
        fix: "give one of them its own `vars` or `channels`, or use `variant` in a text",
    }
    warning UNKNOWN_VARIANT = "unknown-variant" {
        cause: "A condition names a variant that does not exist. It has the same result for everyone.",
        example: [
            "variants: { a: { share: 50% }, b: { share: 50% } }",
            "message: \"{% if variant == 'A' %}Hi{% else %}Hello{% endif %}\"",
        ],
        fix: "use the name of a variant, in the same upper or lower case",
    }
}

/// The built-in variable with the name of the recipient's variant.
const VARIANT: &str = "variant";

/// Reports the comparisons of a text that no cell can match; `is_column` says whether a name is a column. Comparisons
/// that fail for every row are reported by [`find_failing_comparisons`].
pub(super) fn check_comparisons(text: &NamedTemplate, is_column: impl Fn(&str) -> bool) -> Vec<TextProblem> {
    let failing_checks = find_number_comparisons(text);
    let checks = find_condition_checks(text)
        .into_iter()
        .filter(|check| refers_to_cell(check, &is_column) && !failing_checks.contains(check));
    let report_check = |check: ConditionCheck| {
        let name = &check.name;
        let (message, help) = match check.kind {
            ConditionKind::IsBool { word, corrected } => (
                format!("`{name}` is never `{word}`, because cells are always text"),
                format!("write `{corrected}`, using the exact text from the list"),
            ),
            ConditionKind::IsNumber { corrected, .. } => (
                format!("`{name}` is never a number, because cells are always text"),
                suggest_conversion(name, &corrected),
            ),
            ConditionKind::IsOrderedText { corrected } => (
                format!("`{name}` is ordered as text, in which `9` comes after `100`"),
                suggest_conversion(name, &corrected),
            ),
            ConditionKind::IsTruthy | ConditionKind::IsText(_) | ConditionKind::IsDate { .. } => return None,
        };
        Some(problem_at(text, check.span, &CELL_IS_TEXT, message, &help))
    };
    checks.filter_map(report_check).collect()
}

/// Finds ordered comparisons of a cell with a number, which fail for every row.
///
/// `columns` are the column names that texts can use, if they are known; `included` are the included texts.
pub(in crate::check) fn find_failing_comparisons(
    brief: &CampaignBrief,
    columns: Option<&[String]>,
    included: impl Iterator<Item = NamedTemplate>,
) -> Vec<TextProblem> {
    let constants = brief.constant_names();
    let texts =
        brief.all_contents().flat_map(|content| &content.stages).flat_map(Stage::texts).map(|(_, text)| text.clone());
    let texts: Vec<NamedTemplate> =
        texts.chain(included).filter(|text| !NamedTemplate::is_placeholder(&text.name)).collect();
    // An included text can use the names that the including text defines.
    let defined: HashSet<String> = texts.iter().flat_map(|text| find_defined_names(&text.source)).collect();
    let is_column = |name: &str| {
        columns.is_none_or(|columns| columns.iter().any(|column| column == name))
            && can_be_column(&defined, &constants, name)
    };
    let mut problems: Vec<TextProblem> = Vec::new();
    for text in texts {
        for check in find_number_comparisons(&text) {
            if !refers_to_cell(&check, is_column) {
                continue;
            }
            let ConditionCheck { name, kind: ConditionKind::IsNumber { corrected, .. }, span, .. } = check else {
                continue;
            };
            let message = format!("`{name}` is text but is compared with a number");
            let help = suggest_conversion(&name, &corrected);
            let problem = problem_at(&text, span, &rules::TEXT_FAILS, message, &help);
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
    }
    problems
}

/// Whether a condition check refers to a cell; `is_column` says whether a name is a column.
fn refers_to_cell(check: &ConditionCheck, is_column: impl Fn(&str) -> bool) -> bool {
    match &check.column {
        ColumnName::Variable(name) => is_column(name),
        ColumnName::Header(_) => true,
    }
}

/// Whether a name in a text can be a column: neither a constant, nor defined by texts, nor built in.
pub(super) fn can_be_column(defined: &HashSet<String>, constants: &[&str], name: &str) -> bool {
    let is_built_in = is_reserved(name) || ROW_VARIABLES.contains(&name) || CAMPAIGN_VARIABLES.contains(&name);
    !defined.contains(name) && !is_built_in && !constants.contains(&name)
}

/// A finding about cells that mean “no”, but count as true.
pub(super) fn report_truthy_cells(name: &str, example: &str, rows: &str) -> Finding {
    let message =
        format!("`{{% if {name} %}}` is true in {rows}, where the cell is `{example}`: any text counts as true");
    let word = example.trim().to_lowercase();
    let yes = NEGATIVE_WORDS.iter().find(|(no, _)| *no == word).map_or("…", |(_, yes)| yes);
    let help = match example.trim() {
        "0" => format!(
            "if the column contains amounts, write `{{% if {name} | float > 0 %}}`; if it contains `1` for “yes”, write \
             `{{% if {name} == '1' %}}`"
        ),
        _ => format!("write `{{% if {name} == '{yes}' %}}`, with the word that the list uses for “yes”"),
    };
    Finding::new(&CELL_IS_TEXT, message).help(help)
}

/// A finding about cells that are compared with a date of another form.
pub(super) fn report_unlike_dates(name: &str, corrected: &str, example: &str, rows: &str) -> Finding {
    let message = format!(
        "a condition compares `{name}` with a date as text, but the cell is `{example}` in {rows}: dates match only in \
         the form `2026-12-05`"
    );
    Finding::new(&CELL_IS_TEXT, message).help(suggest_conversion(name, corrected))
}

/// A finding about a comparison that no row matches, although some cells are similar to the expected value.
pub(super) fn report_near_match(name: &str, expected: &str, example: &str, rows: &str) -> Finding {
    let message = format!("no row has `{expected}` in the column `{name}`; the value is `{example}` in {rows}");
    let help = format!("use the value from the list, as in `{{% if {name} == '{example}' %}}`, or correct the list");
    Finding::new(&CELL_IS_TEXT, message).help(help)
}

/// Finds problems with the arguments of filters in a text.
pub(super) fn check_filter_arguments(text: &NamedTemplate) -> Vec<TextProblem> {
    find_filter_calls(text).iter().flat_map(|call| check_filter_call(text, call)).collect()
}

fn check_filter_call(text: &NamedTemplate, call: &FilterCall) -> Vec<TextProblem> {
    let FilterCall { name, span, arguments, required, optional } = call;
    let accepted = || required.iter().chain(*optional).copied();
    let mut problems = Vec::new();
    let mut misspelt = Vec::new();
    for (argument, argument_span) in
        arguments.iter().filter(|(argument, _)| !accepted().any(|accepted| accepted == argument))
    {
        let suggestion = did_you_mean(argument, accepted())
            .or_else(|| accepted().find(|accepted| accepted.starts_with(argument.as_str())));
        misspelt.extend(suggestion);
        let help = match suggestion {
            Some(suggestion) => format!("did you mean `{suggestion}`?"),
            None if accepted().next().is_none() => format!("remove it: `{name}` takes no arguments"),
            None => format!("use an argument that `{name}` accepts: {}", join_names(accepted())),
        };
        let message = format!("the filter `{name}` has no argument `{argument}`");
        problems.push(problem_at(text, argument_span.clone(), &FILTER_ARGUMENT, message, &help));
    }
    let has_argument = |required: &str| arguments.iter().any(|(argument, _)| argument == required);
    let missing: Vec<&str> =
        required.iter().copied().filter(|required| !has_argument(required) && !misspelt.contains(required)).collect();
    if !missing.is_empty() {
        let message = format!("the filter `{name}` needs {}", join_names(missing.iter().copied()));
        let written: Vec<String> = required.iter().map(|argument| format!("{argument}=…")).collect();
        let help = format!("write `{name}({})`", written.join(", "));
        problems.push(problem_at(text, span.clone(), &FILTER_ARGUMENT, message, &help));
    }
    problems
}

/// Findings about variant constants that no text uses, although a used constant has a similar name.
pub(super) fn check_unused_constants(campaign: &Campaign) -> Vec<Finding> {
    let brief = &campaign.brief;
    if brief.variants.iter().all(|variant| variant.vars.is_empty()) {
        return Vec::new();
    }
    let texts = brief.all_contents().flat_map(|content| &content.stages).flat_map(Stage::texts).map(|(_, text)| text);
    let mut load = |name: &str| campaign.folders.read_text(name).ok().map(|(_, text)| text);
    let Some(used) = collect_used_names(texts, &mut load) else { return Vec::new() };
    let constants = brief.constant_names();
    let known: Vec<&str> = used.iter().map(String::as_str).filter(|name| constants.contains(name)).collect();
    let variant_findings = |variant: &'_ MessageVariant| {
        find_misspelled_constants(variant, &used, &known)
            .into_iter()
            .map(|(name, suggestion)| {
                let message = format!(
                    "no message uses `{name}`, so this constant has no effect in the variant `{}`",
                    variant.name
                );
                let place = campaign.places.locate_key(&format!("variants.{}.vars.{name}", variant.name));
                Finding::new(&UNUSED_CONSTANT, message).help(format!("did you mean `{suggestion}`?")).at(place)
            })
            .collect::<Vec<_>>()
    };
    brief.variants.iter().flat_map(variant_findings).collect()
}

/// A finding about the first two variants that send the same message.
pub(super) fn check_same_variants(campaign: &Campaign) -> Option<Finding> {
    let brief = &campaign.brief;
    let texts = brief.all_contents().flat_map(|content| &content.stages).flat_map(Stage::texts).map(|(_, text)| text);
    let mut load = |name: &str| campaign.folders.read_text(name).ok().map(|(_, text)| text);
    let used = collect_used_names(texts, &mut load)?;
    if used.contains(VARIANT) {
        return None;
    }
    let constant = |variant: &'_ MessageVariant, name: &String| {
        let own = variant.vars.iter().chain(&brief.vars).find(|(own_name, _)| own_name == name);
        own.map(|(_, value)| value.clone())
    };
    let message = |variant: &MessageVariant| {
        let constants: Vec<Option<String>> = used.iter().map(|name| constant(variant, name)).collect();
        // The texts of two variants have different names.
        let content = variant.content.as_ref().unwrap_or(&brief.content);
        let Ok(sources) = content.try_map_texts(|text| Ok::<_, Infallible>(text.source.clone()));
        (sources, constants)
    };
    let messages: Vec<_> = brief.variants.iter().map(|variant| (&variant.name, message(variant))).collect();
    let repeats = messages.iter().enumerate().find_map(|(index, (name, message))| {
        let (first, _) = messages[..index].iter().find(|(_, earlier)| earlier == message)?;
        Some((first, name))
    });
    let (first, name) = repeats?;
    let place = campaign.places.locate_key(&format!("variants.{name}"));
    let message = format!("the variants `{first}` and `{name}` send the same message");
    Some(
        Finding::new(&SAME_VARIANTS, message)
            .help("give one of them its own `vars` or `channels`, or use `variant` in a text")
            .at(place),
    )
}

/// Reports the comparisons of a text with variants that do not exist.
pub(super) fn check_variant_names(text: &NamedTemplate, brief: &CampaignBrief) -> Vec<TextProblem> {
    let names = || brief.variants.iter().map(|variant| variant.name.as_str());
    if names().next().is_none() || find_defined_names(&text.source).any(|name| name == VARIANT) {
        return Vec::new();
    }
    let report_check = |check: ConditionCheck| {
        let ConditionKind::IsText(name) = &check.kind else { return None };
        if check.column != ColumnName::Variable(VARIANT.to_owned()) || names().any(|known| known == name) {
            return None;
        }
        let help = match names().find(|known| known.eq_ignore_ascii_case(name)).or_else(|| did_you_mean(name, names()))
        {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("use one of {}", join_names(names())),
        };
        let message = format!("no variant has the name `{name}`, so the comparison has the same result for everyone");
        Some(problem_at(text, check.span, &UNKNOWN_VARIANT, message, &help))
    };
    find_condition_checks(text).into_iter().filter_map(report_check).collect()
}

/// The names that texts and their included texts mention. `None` if an included text is missing.
fn collect_used_names<'t>(
    texts: impl Iterator<Item = &'t NamedTemplate>,
    load: &mut dyn FnMut(&str) -> Option<String>,
) -> Option<BTreeSet<String>> {
    let texts: Vec<&NamedTemplate> = texts.collect();
    if texts.iter().any(|text| NamedTemplate::is_placeholder(&text.name)) {
        return None;
    }
    let included = read_included_texts(texts.iter().copied(), load).into_iter().collect::<Option<Vec<_>>>()?;
    Some(texts.into_iter().chain(&included).flat_map(|text| find_mentions(text).names).collect())
}

/// The unused constants of a variant, each with the name that was probably intended.
fn find_misspelled_constants<'v>(
    variant: &'v MessageVariant,
    used: &BTreeSet<String>,
    known: &[&'v str],
) -> Vec<(&'v str, &'v str)> {
    let is_own = |name: &str| variant.vars.iter().any(|(own_name, _)| own_name == name);
    let unused = variant.vars.iter().map(|(name, _)| name.as_str()).filter(|name| !used.contains(*name));
    unused
        .filter_map(|name| Some((name, did_you_mean(name, known.iter().copied().filter(|known| !is_own(known)))?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_manifest::Percentage;

    #[test]
    fn only_equality_of_a_column_and_a_number_is_reported() {
        let messages = |source: &str| -> Vec<String> {
            let text = NamedTemplate { name: "t".into(), source: source.into() };
            check_comparisons(&text, |name| name == "points")
                .into_iter()
                .map(|problem| problem.help.unwrap_or_default())
                .collect()
        };
        for silent in
            ["{% if points > 5 %}x{% endif %}", "{% if points | int == 5 %}x{% endif %}", "{% if n == 5 %}x{% endif %}"]
        {
            assert_eq!(messages(silent), [""; 0], "{silent}");
        }
        let expected = "write `points | int == 5`, or `points != '' and points | int == 5` if some cells are empty";
        assert_eq!(messages("{% if points == 5 %}x{% endif %}"), [expected]);
        let expected = "write `recipient['p'] | int == 5`, or `recipient['p'] != '' and recipient['p'] | int == 5` if \
                        some cells are empty";
        assert_eq!(messages("{{ 'x' if recipient['p'] == 5 else 'y' }}"), [expected]);
    }

    #[test]
    fn missing_and_unknown_filter_arguments_are_found() {
        for (source, message, help) in [
            ("{{ a | round(precison=2) }}", "no argument `precison`", "did you mean `precision`?"),
            ("{{ a | truncate }}", "needs `length`", "write `truncate(length=…)`"),
            ("{{ a | replace(form='x', to='y') }}", "no argument `form`", "did you mean `from`?"),
            ("{{ a | upper(locale='uk') }}", "no argument `locale`", "`upper` takes no arguments"),
            ("{% if a | default(val='x') == 'x' %}y{% endif %}", "no argument `val`", "did you mean `value`?"),
        ] {
            let text = NamedTemplate { name: "t".into(), source: source.into() };
            let problems = check_filter_arguments(&text);
            let [problem] = problems.as_slice() else { panic!("{source}: {problems:?}") };
            assert!(problem.message.contains(message), "{source}: {}", problem.message);
            assert!(problem.help.as_ref().is_some_and(|actual| actual.contains(help)), "{source}: {:?}", problem.help);
        }
        for source in [
            "{{ a | round(precision=2) | str }}",
            "{{ a | default(value=b | default(value='x'), boolean=true) }}",
            "{{ a | split(pat=\",\") | join(sep=\"; \") }}",
        ] {
            assert_eq!(
                check_filter_arguments(&NamedTemplate { name: "t".into(), source: source.into() }),
                [],
                "{source}"
            );
        }
    }

    fn find_suggestions(texts: &[&str], constants: &[&str], variant_constants: &[&str]) -> Vec<(String, String)> {
        let texts: Vec<NamedTemplate> =
            texts.iter().map(|source| NamedTemplate { name: "t".into(), source: (*source).into() }).collect();
        let mut load = |name: &str| (name == "part.txt").then(|| "{{ offer }}".to_owned());
        let Some(used) = collect_used_names(texts.iter(), &mut load) else { return Vec::new() };
        let vars = variant_constants.iter().map(|name| ((*name).to_owned(), String::new())).collect();
        let variant = MessageVariant { name: "a".into(), share: Percentage::WHOLE, content: None, vars };
        let unused = find_misspelled_constants(&variant, &used, constants);
        unused.into_iter().map(|(name, suggestion)| (name.to_owned(), suggestion.to_owned())).collect()
    }

    #[test]
    fn misspelt_constant_is_found_with_the_intended_name() {
        let misspelt = find_suggestions(&["{{ greeting }}, {{ name }}"], &["greeting"], &["greting"]);
        assert_eq!(misspelt, [("greting".to_owned(), "greeting".to_owned())]);
    }

    #[test]
    fn constant_that_might_be_used_is_not_reported() {
        let fine: [(&[&str], &[&str], &[&str]); 5] = [
            (&["{{ greeting }}"], &["greeting"], &["greeting"]),
            (&["{{ greeting }}"], &["greeting"], &["footer"]),
            (&["{% include 'part.txt' %}{{ ofer }}"], &["ofer"], &["offer"]),
            (&["{% include 'gone.txt' %}{{ greeting }}"], &["greeting"], &["greting"]),
            (&["{{ link_a }}"], &["link_a"], &["link_a", "link_b"]),
        ];
        for (texts, constants, variant_constants) in fine {
            assert_eq!(find_suggestions(texts, constants, variant_constants), [], "{texts:?}");
        }
    }
}
