//! Unknown and missing arguments of filters.

use crate::domain::NamedTemplate;
use crate::finding::{Rule, RuleText, did_you_mean, join_alternatives, join_names};
use crate::message::{FilterCall, TextProblem, find_filter_calls, problem_at};

pub(super) static RULE: Rule = Rule::warning(
    "filter-argument",
    RuleText {
        cause: "A filter has a wrong or missing argument. An unknown argument is ignored, and a missing one makes \
                every row fail.",
        example: &["message: \"Hi, {{ first_name | default(valeu='friend') }}!\""],
        fix: "use the arguments listed in the finding, each with its name",
    },
);

/// The arguments of the filters of a text.
pub(super) fn check_filter_arguments(text: &NamedTemplate) -> Vec<TextProblem> {
    find_filter_calls(text).iter().flat_map(|call| check_call(text, call)).collect()
}

fn check_call(text: &NamedTemplate, call: &FilterCall) -> Vec<TextProblem> {
    let FilterCall { name, span, arguments, required, optional } = call;
    let known = || required.iter().chain(*optional).copied();
    let mut problems = Vec::new();
    let mut meant = Vec::new();
    for (argument, at) in arguments.iter().filter(|(argument, _)| !known().any(|known| known == argument)) {
        let near =
            did_you_mean(argument, known()).or_else(|| known().find(|known| known.starts_with(argument.as_str())));
        meant.extend(near);
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if known().next().is_none() => format!("remove it: `{name}` takes no arguments"),
            None => format!("use an argument that `{name}` accepts: {}", join_names(known())),
        };
        let message = format!("the filter `{name}` has no argument `{argument}`");
        problems.push(problem_at(text, at.clone(), &RULE, message, &help));
    }
    let given = |required: &str| arguments.iter().any(|(argument, _)| argument == required);
    let missing: Vec<&str> =
        required.iter().copied().filter(|required| !given(required) && !meant.contains(required)).collect();
    if !missing.is_empty() {
        let message = format!("the filter `{name}` needs {}", join_alternatives(missing.iter().copied()));
        let written: Vec<String> = required.iter().map(|argument| format!("{argument}=…")).collect();
        let help = format!("write `{name}({})`", written.join(", "));
        problems.push(problem_at(text, span.clone(), &RULE, message, &help));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(problem.help.as_ref().is_some_and(|said| said.contains(help)), "{source}: {:?}", problem.help);
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
}
