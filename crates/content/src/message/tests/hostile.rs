//! Tests with hostile and random texts: rendering never panics and always ends.

use proptest::prelude::*;

use super::{CELLS, compile_sms, names, render_sms, sms_content};
use crate::message::engine::MAX_BYTES;
use crate::message::{CompiledMessages, compile_messages};

#[test]
fn hostile_text_fails_quickly() {
    let cell = "x".repeat(MAX_BYTES);
    let cells = [CELLS[0], CELLS[1], &cell, CELLS[3]];
    let long = "y".repeat(60_000);
    let doubling = "{% set a = a ~ a %}".repeat(100);
    let table = [
        "{% for a in range(end=1000) %}{% for b in range(end=1000) %}{% endfor %}{% endfor %}".to_owned(),
        "{% for a in code %}{% for b in code %}{% for c in code %}{% endfor %}{% endfor %}{% endfor %}".into(),
        "{% for a in code | split(pat='') %}{% endfor %}".into(),
        format!("{{% set a = code %}}{doubling}"),
        "{% set a = [1] %}".to_owned() + &"{% set a = [a, a] %}".repeat(100),
        "{% set a = [1] %}".to_owned() + &"{% set a = [a] %}".repeat(100),
        "{% set a = {'b': 1} %}".to_owned() + &"{% set a = {'b': a, 'c': a} %}".repeat(100),
        "{% set a = code %}{% for c in range(end=100) %}{% set_global a = a ~ a %}{% endfor %}".into(),
        "{% set a = code %}".to_owned() + &"{% set a %}{{ a }}{{ a }}{% endset %}".repeat(50),
        format!("{{% set a %}}{{% for c in code %}}{long}{{% endfor %}}{{% endset %}}{{{{ a }}}}"),
        "{% for a in range(end=1000) %}{{ code }}{% endfor %}".into(),
        "{% filter replace(from='x', to='yyyy') %}{{ code }}{% endfilter %}".into(),
        "{{ code ~ code }}".into(),
        "{% for a in range(end=900) %}{% include 'a.txt' %}{% endfor %}".into(),
    ];
    let include = "{% if code %}{% endif %}".repeat(50);
    for source in table {
        let start = std::time::Instant::now();
        let result = render_sms(&compile_sms(&source, &[("a.txt", &include)]), &cells);
        assert!(result.is_err(), "{}", &source[..source.len().min(80)]);
        assert!(start.elapsed().as_secs() < 5, "{}", &source[..source.len().min(80)]);
    }
}

#[test]
fn text_with_thousands_of_names_is_rejected_quickly() {
    for tag in ["{% include 'a.txt' %}", "{{ code | nope }}", "{{ nope() }}", "{% if code is nope %}{% endif %}"] {
        let source = tag.repeat(60_000 / tag.len());
        let problems =
            compile_messages(&sms_content("Olena", &source), &names(), &mut |_| Ok("a".repeat(60_000))).unwrap_err();
        let reported: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
        assert!(matches!(reported[..], [message] if message.contains("for the number of tags")), "{tag}: {reported:?}");
    }
}

#[test]
fn texts_with_the_deepest_allowed_nesting_can_be_rendered() {
    let nested = |n: usize| format!("{{% if code %}}{{% include '{}' %}}{{% endif %}}", n + 1);
    let texts: Vec<(String, String)> =
        (0..14).map(|n| (n.to_string(), nested(n))).chain([("14".into(), "end".into())]).collect();
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, source)| (name.as_str(), source.as_str())).collect();
    assert_eq!(render_sms(&compile_sms("{% include '0' %}", &texts), &CELLS).as_deref(), Ok("end"));
    let parents: Vec<(String, String)> = (0..5)
        .map(|n| {
            (n.to_string(), format!("{{% extends '{}' %}}{{% block a %}}{{{{ super() }}}}{n},{{% endblock %}}", n + 1))
        })
        .chain([("5".into(), "{% block a %}end{% endblock %}".into())])
        .collect();
    let parents: Vec<(&str, &str)> = parents.iter().map(|(name, source)| (name.as_str(), source.as_str())).collect();
    let filled = render_sms(&compile_sms("{% extends '0' %}", &parents), &CELLS);
    assert!(filled.is_ok_and(|text| text.starts_with("end4,3,")));
    let elifs = format!("{{% if Note %}}{}{{% else %}}end{{% endif %}}", "{% elif Note %}".repeat(100));
    assert_eq!(render_sms(&compile_sms(&elifs, &[]), &CELLS).as_deref(), Ok("end"));
}

fn any_fragment() -> impl Strategy<Value = String> {
    let value = prop::sample::select(vec![
        "code",
        "first_name",
        "recipient['Note']",
        "row",
        "1",
        "-2.5",
        "'a'",
        "true",
        "none",
        "[1,'b']",
        "{'k':1}",
        "c",
        "x",
        "loop.index0",
        "range(end=3)",
        "(1+2)",
        "[code][0]",
        "code[0]",
        "code[1:]",
        "code[::-1]",
        "recipient[code]",
        "not code",
        "code?.a",
        "recipient?['zz']",
        "throw(message='t')",
        "9223372036854775807",
        "'a'[code]",
    ]);
    let operator = prop::sample::select(vec![
        " ~ ",
        " + ",
        " - ",
        " * ",
        " / ",
        " // ",
        " % ",
        " ** ",
        " == ",
        " < ",
        " in ",
        " not in ",
        " and ",
        " or ",
        " if code else ",
    ]);
    let filter = prop::sample::select(vec![
        "",
        "|upper",
        "|int",
        "|float",
        "|round(precision=400)",
        "|first",
        "|split(pat='')",
        "|join(sep=code)",
        "|truncate(length=2)",
        "|default(value=1)",
        "|reverse",
        "|sort",
        "|unique",
        "|length",
        "|nth(n=1)",
        "|get(key='k')",
        "|abs",
        "|group_by(attribute='a')",
        "|pairs",
        "|pluralize",
        "|title",
        "|str",
        "|replace(from='', to='b')",
        "|trim(pat='')",
        " is odd",
        " is divisible_by(divisor=0)",
        " is containing(pat='a')",
        " is starting_with(pat=1)",
        "|int(base=99)",
        "|sort(attribute='a.b')",
    ]);
    let expression = prop::collection::vec((value, filter, operator), 1..4).prop_map(|parts| {
        let mut text = String::new();
        for (index, (value, filter, operator)) in parts.into_iter().enumerate() {
            text += if index == 0 { "" } else { operator };
            text = text + value + filter;
        }
        text
    });
    (expression, 0..9usize).prop_map(|(expression, form)| match form {
        0 | 1 => format!("{{{{ {expression} }}}}"),
        2 => format!("{{% if {expression} %}}x{{% endif %}}"),
        3 => format!("{{% set x = {expression} %}}{{{{ x }}}}"),
        4 => format!("{{% for c in {expression} %}}{{{{ c }}}}{{% else %}}-{{% endfor %}}"),
        5 => format!("{{% set x %}}{{{{ {expression} }}}}{{% endset %}}"),
        6 => format!("{{% filter upper %}}{{{{- {expression} -}}}}{{% endfilter %}}"),
        7 => format!("{{% for c in code %}}{{% set_global x = {expression} %}}{{% endfor %}}"),
        _ => format!("a{{#-{expression}-#}}b"),
    })
}

fn compile_source(source: &str) -> Option<CompiledMessages> {
    compile_messages(&sms_content("Olena", source), &names(), &mut |_| Ok("{{ code }}".into())).ok()
}

proptest! {
    #[test]
    fn rendering_never_panics(parts in prop::collection::vec(any_fragment(), 1..4), code in "[ -~я😀]{0,9}") {
        let parts = parts.concat();
        // Every name that the fragments use is defined.
        let source = format!("{{% set x = 1 %}}{{% set c = 'x' %}}{{% for i in 'ab' %}}{parts}{{% endfor %}}");
        if let Some(compiled) = compile_source(&source) {
            let _ = render_sms(&compiled, &["1", "Оля", &code, "n"]);
        }
    }

    #[test]
    fn compiling_never_panics(source in "(\\{\\{|\\}\\}|\\{%|%\\}|\\{#|#\\}|-|[a-z]{1,3}| |if|for|in|set|endfor|endif|=|\\||'|\"|\\\\|\\(|\\)|\\[|\\]|[0-9.]|<|>|/|я|😀|\n|~|raw|endraw|block|endblock){0,30}") {
        if let Some(compiled) = compile_source(&source) {
            let _ = render_sms(&compiled, &CELLS);
        }
    }

    #[test]
    fn text_without_tags_is_sent_unchanged(source in "[^{]{1,50}") {
        prop_assume!(!source.trim().is_empty());
        let compiled = compile_source(&source);
        prop_assert!(compiled.is_some_and(|c| render_sms(&c, &CELLS) == Ok(source)));
    }

    #[test]
    fn cell_is_inserted_unchanged(code in "\\PC{1,60}") {
        prop_assume!(!code.trim().is_empty());
        let cells = ["1", "2", &code, ""];
        prop_assert_eq!(render_sms(&compile_sms("{{ code }}", &[]), &cells), Ok(code.clone()));
        prop_assert_eq!(render_sms(&compile_sms("{{ recipient.code }}", &[]), &cells), Ok(code.clone()));
    }
}
