//! Unknown and missing arguments of filters.

use crate::domain::Text;
use crate::finding::{Rule, RuleText, did_you_mean, list, list_all};
use crate::message::{FilterCall, TextProblem, filter_calls, problem_at};

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
pub(super) fn judge(text: &Text) -> Vec<TextProblem> {
    filter_calls(text).iter().flat_map(|call| of_call(text, call)).collect()
}

fn of_call(text: &Text, call: &FilterCall) -> Vec<TextProblem> {
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
            None => format!("use an argument that `{name}` accepts: {}", list_all(known())),
        };
        let message = format!("the filter `{name}` has no argument `{argument}`");
        problems.push(problem_at(text, at.clone(), &RULE, message, &help));
    }
    let given = |required: &str| arguments.iter().any(|(argument, _)| argument == required);
    let missing: Vec<&str> =
        required.iter().copied().filter(|required| !given(required) && !meant.contains(required)).collect();
    if !missing.is_empty() {
        let message = format!("the filter `{name}` needs {}", list(missing.iter().copied()));
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
    fn arguments_that_a_filter_lacks_or_does_not_have_are_found() {
        for (source, message, help) in [
            ("{{ a | round(precison=2) }}", "no argument `precison`", "did you mean `precision`?"),
            ("{{ a | truncate }}", "needs `length`", "write `truncate(length=…)`"),
            ("{{ a | replace(form='x', to='y') }}", "no argument `form`", "did you mean `from`?"),
            ("{{ a | upper(locale='uk') }}", "no argument `locale`", "`upper` takes no arguments"),
            ("{% if a | default(val='x') == 'x' %}y{% endif %}", "no argument `val`", "did you mean `value`?"),
        ] {
            let text = Text { name: "t".into(), source: source.into() };
            let problems = judge(&text);
            let [problem] = problems.as_slice() else { panic!("{source}: {problems:?}") };
            assert!(problem.message.contains(message), "{source}: {}", problem.message);
            assert!(problem.help.as_ref().is_some_and(|said| said.contains(help)), "{source}: {:?}", problem.help);
        }
        for source in [
            "{{ a | round(precision=2) | str }}",
            "{{ a | default(value=b | default(value='x'), boolean=true) }}",
            "{{ a | split(pat=\",\") | join(sep=\"; \") }}",
        ] {
            assert_eq!(judge(&Text { name: "t".into(), source: source.into() }), [], "{source}");
        }
    }
}
