//! Tests of how each text failure is explained, located and remedied.

use super::*;
use crate::message::tests::{compile_sms, render_sms};
use crate::message::{RenderError, TextProblem};

/// The problem of a text if `code` has this value and `Note` is empty.
fn render_problem(source: &str, code: &str) -> TextProblem {
    let cells = ["380501234567", "Olena", code, ""];
    match render_sms(&compile_sms(source, &[]), &cells) {
        Err(RenderError::TemplateFails(problem)) => *problem,
        other => panic!("{source}: {other:?}"),
    }
}

#[test]
fn each_failure_is_reported_with_its_position_and_a_remedy() {
    let table = [
        // Comparisons.
        (
            "{% if code > 0 %}x{% endif %}",
            "5",
            7,
            "the cell in `code` is text but is compared with a number",
            "write `code | int > 0`",
        ),
        ("{% if code >= 0.5 %}x{% endif %}", "5", 7, "compared with a number", "write `code | float >= 0.5`"),
        ("{% if 5 < code %}x{% endif %}", "5", 7, "the cell in `code` is text", "write `5 < code | int`"),
        (
            "{% if recipient['code'] > 0 %}x{% endif %}",
            "5",
            7,
            "the cell in `code` is text",
            "write `recipient['code'] | int > 0`",
        ),
        (
            "{% if code | int > '100' %}x{% endif %}",
            "5",
            7,
            "is text but is compared with a number",
            "write `code | int > 100`",
        ),
        ("{% if code | split(pat=',') > 1 %}x{% endif %}", "5", 7, "cannot compare", "values of the same type"),
        // Arithmetic.
        (
            "{{ code * 2 }}",
            "5",
            4,
            "the cell in `code` is text, but arithmetic needs numbers",
            "write `code | int`, or `code | float`",
        ),
        ("{{ 2 * '3' }}", "5", 8, "is text, but arithmetic needs numbers", "write `3`"),
        (
            "{{ code + 5 }}",
            "5",
            4,
            "`+` adds numbers, but the cell in `code` is text",
            "write `code | int + 5` to add numbers, or `code ~ 5` to join text",
        ),
        ("{{ -code }}", "5", 5, "the cell in `code` is text, but `-` needs a number", "write `0 - (code | int)`"),
        ("{{ 10 / (code | int) }}", "0", 10, "division by zero", "{% endif %}"),
        ("{{ code | int ** 999 }}", "99", 4, "result of a calculation is too large", "check the numbers"),
        // Numbers in cells.
        ("{{ code | int }}", "x1", 4, "the cell in `code` is not a number", "correct the cell in the list"),
        (
            "{{ code | int }}",
            "",
            4,
            "the cell in `code` is empty and cannot be converted to a number",
            "write `code | default(value=0, boolean=true) | int`",
        ),
        (
            "{{ code | int }}",
            "1 200",
            4,
            "contains a number with a comma or spaces",
            "write `1200` instead of `1 200` in the list",
        ),
        ("{{ code | int }}", "12.5", 4, "the cell in `code` is not a whole number", "write `code | float`"),
        ("{{ code | float }}", "12,5", 4, "contains a number with a comma or spaces", "| float"),
        ("{{ recipient['code'] | int }}", "x", 4, "the cell in `code` is not a number", "in the list"),
        ("{{ [code] | int }}", "x", 4, "is a list, which is not a number", "`| int`"),
        // Filters and tests with values of the wrong type.
        (
            "{{ code | round }}",
            "12.5",
            4,
            "the filter `round` needs a number, but the cell in `code` is text",
            "write `code | float | round`",
        ),
        (
            "{{ code | first }}",
            "a,b",
            4,
            "the filter `first` needs a list, but the cell in `code` is text",
            "write `code | split(pat=\",\") | first`",
        ),
        (
            "{{ code | abs }}",
            "5",
            4,
            "the filter `abs` needs a number, but the cell in `code` is text",
            "write `code | float | abs`",
        ),
        ("{{ 5 | upper }}", "x", 4, "the filter `upper` needs text", "write `5 | str | upper`"),
        (
            "{{ code | pluralize }}",
            "5",
            4,
            "needs a whole number, but the cell in `code` is text",
            "write `code | int | pluralize`",
        ),
        (
            "{% if code is odd %}x{% endif %}",
            "5",
            7,
            "the test `odd` needs a number, but the cell in `code` is text",
            "write `code | float is odd`",
        ),
        ("{{ code | keys }}", "5", 4, "the filter `keys` needs a map", "remove `| keys`"),
        ("{{ 5 | length }}", "x", 4, "the filter `length` needs text or a list", "| str"),
        // Arguments.
        ("{{ code | truncate }}", "x", 4, "`truncate` needs `length`", "write `truncate(length=…)`"),
        (
            "{{ code | truncate(length='5') }}",
            "x",
            4,
            "an argument to the filter `truncate` is text, but must be a whole number",
            "remove the quotes",
        ),
        ("{{ code | truncate(length=-1) }}", "x", 4, "is negative or too large", "non-negative number"),
        ("{{ 1.5 | round(method='up') }}", "x", 4, "unknown `method` for `round`", "`\"ceil\"`"),
        // Missing values.
        (
            "{% set parts = code | split(pat=',') %}{{ parts[5] }}",
            "a,b",
            43,
            "`parts[5]` has no value in this row; the list has fewer items",
            "write `parts[5] | default(value=\"…\")`",
        ),
        (
            "{% if Note %}{% set y = 1 %}{% endif %}{{ y }}",
            "x",
            43,
            "`y` has no value in this row",
            "write `y | default(value=\"…\")`",
        ),
        ("{% if Note %}{% set y = 1 %}{% endif %}{{ y.a }}", "x", 43, "has no value in this row", "| default"),
        ("{{ {'a': 1} | get(key=code) }}", "x", 4, "does not contain the key", "default="),
        ("{{ code['x'] }}", "ab", 9, "a whole number", "| int`"),
        // Loops and lists.
        ("{% for x in 5 %}{{ x }}{% endfor %}", "x", 13, "a loop needs a list", "split(pat=\",\")"),
        (
            "{% for k, v in code %}{{ v }}{% endfor %}",
            "ab",
            16,
            "a loop over keys and values needs a map, but the cell in `code` is text",
            "one variable",
        ),
        ("{% if 'a' in 5 %}x{% endif %}", "x", 14, "`in` searches a list or text", "in [\"Kyiv\", \"Lviv\"]"),
        ("{{ [1, 'a'] | sort | join }}", "x", 4, "cannot be sorted", "convert all items to text"),
        // Amounts and dates.
        ("{{ code | money }}", "12 UAH", 4, "the cell in `code` is not an amount", "the currency in the message"),
        ("{{ code | money }}", "1,200", 4, "a thousands or a decimal separator", "1200.50"),
        ("{{ code | date }}", "soon", 4, "is not a valid date", "as `2026-12-05`"),
        ("{{ code | date }}", "", 4, "the cell in `code` is empty and cannot be shown as a date", "{% if code %}"),
    ];
    let mut wrong = Vec::new();
    for (source, code, column, sentence, remedy) in table {
        let problem = render_problem(source, code);
        let help = problem.help.clone().unwrap_or_default();
        if problem.column != column || !problem.message.contains(sentence) || !help.contains(remedy) {
            wrong.push(format!("{source} with `{code}`: {}: {}; {help}", problem.column, problem.message));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn failure_never_shows_a_cell_or_an_internal_type() {
    for source in [
        "{{ code | int }}",
        "{{ code | float }}",
        "{{ code * 2 }}",
        "{% if code > 1 %}x{% endif %}",
        "{{ (code | replace(from='x', to='') | int) ** 999 }}",
        "{{ [code] | nth(n=code) }}",
        "{{ {'a': 1} | get(key=code) }}",
        "{{ code | money }}",
        "{{ code | date }}",
    ] {
        let problem = render_problem(source, "380501234567x");
        let output = format!("{} {}", problem.message, problem.help.unwrap_or_default());
        for word in ["050123", "i64", "u64", "f64", "string", "i128", "usize", "&["] {
            assert!(!output.contains(word), "{source}: {output}");
        }
    }
}

#[test]
fn thrown_message_is_shown_unchanged() {
    let problem = render_problem("{% if code == 'x' %}{{ throw(message='no code') }}{% endif %}", "x");
    assert_eq!((problem.message.as_str(), problem.help), ("no code", None));
}

#[test]
fn internal_tera_message_is_replaced_by_a_general_one() {
    let kind = ErrorKind::Msg("Something `i64` new 380501234567".into());
    let (failure, _) = explain_failure(&kind, "{{ code }}", 3..7, &|_| true);
    assert!(!failure.reason.contains("i64") && !failure.reason.contains("050"), "{failure:?}");
}
