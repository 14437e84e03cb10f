//! Compilation of message texts, with a report of all problems in them.

use std::collections::HashMap;

use tera::{Context, Tera, Value};

use super::engine::{LANGUAGE, create_engine};
use super::library::{
    MeteredSource, MeteredText, MeteredTexts, TemplateAnalysis, TemplateLibrary, TextLoader, error_place, template_key,
};
use super::names::{NameChecker, NameScope, TemplateNames, TemplateNeeds, check_vars};
use super::render::{
    CompiledMessages, FilledText, MessagePiece, TemplateCells, TextSegments, failure_problem, fill_template,
    number_texts,
};
use super::syntax_errors;
use super::tokens::is_constant;
use super::{TextProblem, sort_problems};
use campaign_core::domain::{MessageContent, NamedTemplate, TextLimit, find_text_violation};
use campaign_core::finding::rules;

/// Compiles the texts of a campaign, and checks the names in them against the columns, vars and tables of the campaign.
///
/// `load` returns the text that `include` or `extends` names, or the reason why the text cannot be loaded.
///
/// # Errors
/// All problems of all texts, in order.
pub fn compile_messages(
    content: &MessageContent<NamedTemplate>,
    names: &TemplateNames,
    load: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<CompiledMessages, Vec<TextProblem>> {
    let (texts, mut constant_problems) = (list_templates(content), check_constants(content));
    let compiled = Compilation::compile(&texts, names, NameScope::Recipient, load);
    if !constant_problems.is_empty() {
        constant_problems.splice(0..0, compiled.err().unwrap_or_default());
        return Err(constant_problems);
    }
    let Compilation { tera, metered, needs, includes } = compiled?;
    let mut keys: HashMap<&str, usize> = HashMap::new();
    for (index, text) in texts.iter().enumerate() {
        keys.entry(&text.source).or_insert(index);
    }
    let piece = |text: &NamedTemplate| match keys.get(text.source.as_str()) {
        Some(&index) => MessagePiece::Template {
            key: template_key(index),
            name: text.name.clone(),
            segments: TextSegments::parse(&text.source, names),
        },
        None => MessagePiece::Constant(FilledText { rendered: text.source.clone(), plain: None }),
    };
    let (content, texts) = number_texts(content, piece);
    let (context, cells) = (shared_context(names, &needs), TemplateCells::from_needs(names, &needs));
    Ok(CompiledMessages { tera, content, texts, metered, context, cells, includes })
}

/// Renders a text that is the same for the whole campaign. The text can use only vars, `campaign` and `today`, and no
/// other texts.
///
/// # Errors
/// All problems found in the text.
pub fn render_constant(text: &NamedTemplate, names: &TemplateNames) -> Result<String, Vec<TextProblem>> {
    let mut load = |_: &str| Err("this value cannot use other templates".to_owned());
    // Problems in `vars` are reported with the recipients' texts.
    let own_problems = |problems: Vec<TextProblem>| {
        problems.into_iter().filter(|problem| problem.text == text.name).collect::<Vec<_>>()
    };
    let compiled = Compilation::compile(&[text], names, NameScope::Campaign, &mut load).map_err(own_problems)?;
    let mut buffer = Vec::new();
    fill_template(&compiled.tera, &template_key(0), &shared_context(names, &compiled.needs), &mut buffer).map_err(
        |error| {
            let span = error_place(&error, &compiled.metered).map_or(0..0, |(_, span)| span);
            vec![failure_problem(error.kind(), text, span, &|_| false)]
        },
    )
}

/// The texts that are not constant, without duplicates.
fn list_templates(content: &MessageContent<NamedTemplate>) -> Vec<&NamedTemplate> {
    let mut texts: Vec<&NamedTemplate> = Vec::new();
    for (_, text) in content.stages.iter().flat_map(|stage| stage.texts()) {
        if !is_constant(&text.source) && !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// The templates of one compilation.
pub(super) struct Compilation {
    pub(super) tera: Tera,
    pub(super) metered: MeteredTexts,
    pub(super) needs: TemplateNeeds,
    includes: Vec<(String, String)>,
}

impl Compilation {
    /// Checks the texts of a campaign and compiles them.
    ///
    /// # Errors
    /// All problems of the texts, in their order.
    pub(super) fn compile(
        texts: &[&NamedTemplate],
        names: &TemplateNames,
        scope: NameScope,
        load: &mut TextLoader<'_>,
    ) -> Result<Self, Vec<TextProblem>> {
        let mut library = TemplateLibrary::new(load, names);
        let analyses: Vec<Option<TemplateAnalysis>> = texts.iter().map(|text| library.read_text(text)).collect();
        let mut problems = check_vars(names, scope);
        problems.append(&mut library.problems);
        let mut checker = NameChecker::new(names, &library, scope);
        analyses.iter().flatten().for_each(|analysis| checker.check_text(analysis));
        let NameChecker { needs, problems: mut name_problems, .. } = checker;
        problems.append(&mut name_problems);
        if !problems.is_empty() {
            return Err(sort_problems(problems, texts));
        }
        let main_texts = analyses.iter().flatten().enumerate().map(|(index, analysis)| (template_key(index), analysis));
        let loaded = library.loaded.iter().map(|(name, analysis)| (name.clone(), analysis));
        let to_metered = |analysis: &TemplateAnalysis| MeteredText {
            text: analysis.text.clone(),
            metered: MeteredSource::from_analysis(analysis, &library),
        };
        let metered: MeteredTexts =
            main_texts.chain(loaded).map(|(key, analysis)| (key, to_metered(analysis))).collect();
        let includes = library
            .loaded
            .values()
            .map(|TemplateAnalysis { text, .. }| (text.name.clone(), text.source.clone()))
            .collect();
        Ok(Self { tera: create_tera(&metered)?, metered, needs, includes })
    }
}

fn create_tera(metered: &MeteredTexts) -> Result<Tera, Vec<TextProblem>> {
    let mut tera = create_engine();
    let sources = metered.iter().map(|(key, text)| (key, &text.metered.source));
    let added = tera.add_raw_templates(sources).map_err(|error| {
        let first = || metered.values().next().map(|first| (&first.text, 0..0));
        let place = error_place(&error, metered).or_else(first);
        let message = syntax_errors::explain_rejection(error.kind());
        let problem = |(text, span): (&NamedTemplate, _)| {
            TextProblem::new(&text.name, &text.source, span, &rules::TEXT_SYNTAX, message)
        };
        place.map(problem).into_iter().collect::<Vec<_>>()
    });
    added.map(|()| tera)
}

/// The context that all rows share.
pub(super) fn shared_context(names: &TemplateNames, needs: &TemplateNeeds) -> Context {
    let mut context = Context::new();
    context.insert_value("campaign", Value::from(names.campaign.as_str()));
    context.insert_value("today", Value::from(names.today.as_str()));
    context.insert_value(LANGUAGE, Value::from(names.language.code()));
    for (name, value) in needs.vars.iter().filter_map(|&index| names.vars.get(index)) {
        context.insert_value(name.clone(), Value::from(value.as_str()));
    }
    for (name, table) in needs.tables.iter().filter_map(|&index| names.tables.get(index)) {
        context.insert_value(name.clone(), table.to_value());
    }
    context
}

/// The problems with constant texts that violate a limit of their channel.
pub(super) fn check_constants(content: &MessageContent<NamedTemplate>) -> Vec<TextProblem> {
    let mut problems = Vec::new();
    for stage in &content.stages {
        for (field, text) in stage.texts().filter(|(_, text)| is_constant(&text.source)) {
            let violation = find_text_violation(stage, field, &stage.outgoing_text(field, &text.source));
            problems.extend(violation.map(|violation| {
                let (whole, message) = (0..text.source.len(), violation.to_string());
                let help = limit_help(field.limit, &text.source);
                TextProblem::new(&text.name, &text.source, whole, &rules::TEXT_REFUSED, message).with_help(help)
            }));
        }
    }
    problems
}

/// The remedy for a violated limit. `None` for an empty text.
fn limit_help(limit: TextLimit, text: &str) -> Option<String> {
    let address = text.trim_start_matches('/');
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    let lacks_scheme = !text.contains("://") && !text.contains(char::is_whitespace) && host.contains('.');
    // Without a path, `shop.jpg` is the name of a file.
    let is_file_name = matches!(limit, TextLimit::Image(_)) && path.is_empty();
    match limit {
        TextLimit::NotEmpty => None,
        TextLimit::AtMost(_) => Some("shorten the text".to_owned()),
        TextLimit::Parts => Some("shorten the message, or raise `max_parts`; longer messages cost more".to_owned()),
        TextLimit::AlphaName => Some("write the sender name exactly as registered".to_owned()),
        TextLimit::WebAddress | TextLimit::Image(_) if lacks_scheme && !is_file_name => {
            Some(format!("write `https://{address}`"))
        }
        TextLimit::Image(_) => {
            Some("upload the image, and write its full URL, for example `https://shop.example/sale.jpg`".to_owned())
        }
        TextLimit::WebAddress => Some("write the full URL, for example `https://shop.example/sale`".to_owned()),
        TextLimit::Digits { .. } => Some("write only the code, for example `{{ code }}`".to_owned()),
        TextLimit::OneOf(_) => Some("write one of these values".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_core::domain::{ExtraProperties, OperationKind, Stage, Telegram, Whatsapp};

    fn names() -> TemplateNames {
        TemplateNames {
            headers: ["phone", "Ім'я", "code", "Last name", "row", "Promo", "Promo", "if"].map(String::from).to_vec(),
            names: ["phone", "first_name", "code", "Last name", "row", "p1", "p2", "if"].map(String::from).to_vec(),
            vars: vec![("shop".into(), "Olena".into())],
            campaign: "autumn".into(),
            today: "2026-11-21".into(),
            ..TemplateNames::default()
        }
    }

    const TEXTS: [(&str, &str); 9] = [
        ("child.txt", "{% extends 'base.txt' %}"),
        ("ok.txt", "{{ code }}{% set inner = 1 %}"),
        ("bad.txt", "one\n{{ cod }}"),
        ("broken.txt", "{{ code"),
        ("a.txt", "{% include 'b.txt' %}"),
        ("b.txt", "{% include 'a.txt' %}"),
        ("local.txt", "{{ mine }}"),
        ("base.txt", "{% block body %}{% block tail %}{% endblock %}{% endblock %}"),
        ("circle.txt", "{% extends 'circle.txt' %}"),
    ];

    fn text(name: &str, source: &str) -> NamedTemplate {
        NamedTemplate { name: name.into(), source: source.into() }
    }

    fn content(first: &str, second: &str) -> MessageContent<NamedTemplate> {
        let telegram =
            Telegram { message: text("telegram.message", first), lifetime: None, fields: ExtraProperties::new() };
        let (signature, message) = (text("whatsapp.signature", "Olena"), text("whatsapp.message", second));
        let whatsapp = Whatsapp { signature, message, fields: ExtraProperties::new() };
        MessageContent {
            kind: OperationKind::Pipeline,
            stages: vec![Stage::Telegram(telegram), Stage::Whatsapp(whatsapp)],
        }
    }

    fn collect_problems(first: &str, second: &str, names: &TemplateNames) -> Vec<TextProblem> {
        let mut load = |name: &str| {
            let found = TEXTS.iter().find(|(text, _)| *text == name);
            found.map(|(_, source)| (*source).to_owned()).ok_or_else(|| "there is no such file".to_owned())
        };
        compile_messages(&content(first, second), names, &mut load).err().unwrap_or_default()
    }

    /// `rule line:column+length message; help` of the only problem.
    fn format_only_problem(source: &str) -> String {
        match collect_problems(source, "x", &names()).as_slice() {
            [TextProblem { line, column, length, rule, message, help, .. }] => {
                format!("{rule} {line}:{column}+{length} {message}; {}", help.as_deref().unwrap_or(""))
            }
            other => format!("{other:#?}"),
        }
    }

    #[test]
    fn unknown_name_is_reported_with_its_position_and_a_suggestion() {
        let table = [
            (
                "Привіт,\n  {{ frist_name }}",
                "unknown-variable 2:6+10 unknown variable `frist_name`; did you mean `first_name`?",
            ),
            (
                "{{ 'я' ~ nothing }}",
                "unknown-variable 1:10+7 unknown variable `nothing`; use one of these names: `phone`, `first_name`",
            ),
            ("{{ first_Name }}", "did you mean `first_name`?"),
            ("{{ last_name }}", "write `recipient[\"Last name\"]`, because this header is not a valid variable name"),
            (
                "{{ recipient['Last nam'] }}",
                "unknown-column 1:4+21 no column has the header `Last nam`; did you mean `recipient[\"Last name\"]`?",
            ),
            ("{{ recipient['first_name'] }}", "write `first_name`, or write `recipient[\"Ім'я\"]`"),
            ("{{ recipient.cod }}", "did you mean `recipient[\"code\"]`?"),
            ("{{ recipient['Promo'] }}", "name-clash 1:4+18 several columns have the header `Promo`"),
            ("{{ row }}", "name-clash 1:4+3 `row` is ambiguous here"),
            ("{{ recipient }}", "whole-recipient 1:4+9"),
            ("{{ __tera_context }}", "unknown-variable 1:4+14 `__tera_context` cannot be used"),
            ("{% set __x = 1 %}", "unknown-variable 1:8+3 `__x` cannot be used"),
            ("{{ campaign.name }}", "unknown-variable 1:4+8 `campaign` is text, so a dot cannot follow it"),
            ("{{ loop.index }}", "unknown variable `loop`"),
            (
                "{{ if }}",
                "unknown-variable 1:4+2 unknown variable `if`; write `recipient[\"if\"]`, because this header is not a \
                 valid variable name",
            ),
            ("{% for c in code %}{% set d = c %}{% endfor %}{{ d }}", "unknown-variable 1:50+1 unknown variable `d`"),
            ("{{ late }}{% set late = 1 %}", "unknown-variable 1:4+4 unknown variable `late`"),
            ("{% if gone %}x{% endif %}", "unknown-variable 1:7+4 unknown variable `gone`"),
            ("{{ code | titel }}", "unknown-filter 1:11+5 unknown filter `titel`; did you mean `title`?"),
            ("{{ code | escape }}", "unknown-filter 1:11+6 the filter `escape` is for web pages"),
            ("{{ code is defind }}", "unknown-test 1:12+6 unknown test `defind`; did you mean `defined`?"),
            (
                "{{ now() }}",
                "unknown-function 1:4+3 unknown function `now`; for the date of the run, write `{{ today }}`",
            ),
            (
                "{% if code == Kyiv %}x{% endif %}",
                "`Kyiv`; if you mean the text `Kyiv`, write it in quotes: `'Kyiv'`; otherwise, use one of these names",
            ),
            ("{{ get_env(name='HOME') }}", "unknown-function 1:4+7 unknown function `get_env`"),
            ("{{ super() }}", "unknown-function 1:4+5 `super()`"),
            ("{{ __round(cost=0) }}", "unknown-function 1:4+7"),
            ("{{ code | __kept }}", "unknown-filter 1:11+6"),
        ];
        for (source, expected) in table {
            let problem = format_only_problem(source);
            assert!(problem.contains(expected), "{source}: `{problem}` does not say `{expected}`");
        }
    }

    #[test]
    fn syntax_errors_are_explained_in_plain_words() {
        let table = [
            (
                "{{ code",
                "text-syntax 1:8+1 `{{ code` is not closed; `}}` is missing; add `}}` where the tag or block should end",
            ),
            ("{% if code %}\nx", "text-syntax 2:2+1 `{% if code %}` is not closed; `{% endif %}` is missing"),
            ("Hi {{ first name }}", "text-syntax 1:13+4 `name` is not allowed here; expected `}}`"),
            (
                "{{ Last name }}",
                "write `{{ recipient[\"Last name\"] }}`, because this header is not a valid variable name",
            ),
            (
                "{{ Ім'я }}",
                "`І` is not allowed in a tag; write `{{ recipient[\"Ім'я\"] }}`, because this header is not a valid \
                 variable name",
            ),
            ("{{{ code }}}", "remove the third brace: write `{{ code }}`"),
            ("Hi {{{ recipient[\"Last name\"] }}}!", "remove the third brace: write `{{ recipient[\"Last name\"] }}`"),
            ("{% if Місто == 'Київ' %}x{% endif %}", "for other headers, write `recipient[\"Місто\"]`"),
            ("{% if Ім'я = 'Олена' %}x{% endif %}", "for other headers, write `recipient[\"Ім'я\"]`"),
            ("{{ №1 }}", "`№` is not allowed in a tag; use Latin letters"),
            ("{% fi code %}", "unknown tag `fi`; did you mean `if`?"),
            ("{% code %}", "unknown tag `code`; to print a value, write it between `{{` and `}}`"),
            ("{{ }}", "`}}` is not allowed here; expected one of"),
            ("{{ code | default('x') }}", "`'x'` is not allowed here; expected a name; name the arguments"),
            ("{{ code | default(value=“x”) }}", "`“` is not allowed in a tag; use straight quotes"),
            ("{{ 'a }}", "string opened with `'` is missing its closing `'`"),
            ("{# x", "closing comment tag `#}` not found"),
            ("{% include name %}", "`name` is not allowed here; expected string"),
            ("{% if code %}{% else %}{% elif code %}{% endif %}", "text-syntax"),
            ("{{ [x for x in code] }}", "unsupported 1:7+3 templates do not support list comprehensions"),
            ("{{ <Button /> }}", "unsupported 1:4+1 templates do not support components"),
            ("{% component Card() %}{% endcomponent %}", "unsupported 1:4+"),
        ];
        for (source, expected) in table {
            let problem = format_only_problem(source);
            assert!(problem.contains(expected), "{source}: `{problem}` does not say `{expected}`");
        }
    }

    #[test]
    fn invalid_include_is_reported_at_its_position() {
        let table = [
            ("x\n{% include 'gone.txt' %}", "missing-include 2:12+10 cannot include `gone.txt`: there is no such file"),
            ("{% extends 'gone.txt' %}", "missing-include 1:12+10"),
            (
                "{% include 'a.txt' %}",
                "include-cycle 1:12+7 `a.txt` includes itself: `a.txt`, then `b.txt`, then `a.txt`",
            ),
            ("{% extends 'circle.txt' %}", "include-cycle"),
            ("{% include 'bad.txt' %}", "unknown-variable 2:4+3 unknown variable `cod`; did you mean `code`?"),
            ("{% include 'broken.txt' %}", "text-syntax 1:8+1"),
            ("{% include 'child.txt' %}", "unsupported 1:12+11 `child.txt` extends another template"),
            ("{% include 'local.txt' %}{% set mine = 1 %}", "unknown variable `mine`"),
            ("{% include 'ok.txt' %}{{ inner }}", "unknown variable `inner`"),
            (
                "{% extends 'base.txt' %}{% block bdoy %}{% endblock %}",
                "unknown-block 1:34+4 none of the parent templates has a `bdoy` block; did you mean `body`?",
            ),
        ];
        for (source, expected) in table {
            let problem = format_only_problem(source);
            assert!(problem.contains(expected), "{source}: `{problem}` does not say `{expected}`");
        }
        for source in [
            "{% set mine = 1 %}{% include 'local.txt' %}{% include 'ok.txt' %}{% include 'ok.txt' %}",
            "{% for mine in code %}{% include 'local.txt' %}{% endfor %}",
            "{% extends 'base.txt' %}{% block tail %}{{ code }}{% endblock %}",
        ] {
            assert_eq!(collect_problems(source, "x", &names()), [], "{source}");
        }
    }

    #[test]
    fn all_problems_are_reported_at_once_and_in_order() {
        let names = TemplateNames { vars: vec![("code".into(), "x".into()), ("today".into(), "x".into())], ..names() };
        let first = "{{ zz1 }}{{ code | zz2 }}\n{% include 'zz3' %}{{ zz4 }}{% include 'bad.txt' %}";
        let found = collect_problems(first, "{{ zz5 }}{{ '", &names);
        let problems: Vec<_> = found.iter().map(|p| format!("{} {}:{} {}", p.text, p.line, p.column, p.rule)).collect();
        assert_eq!(
            problems,
            [
                "telegram.message 1:4 unknown-variable",
                "telegram.message 1:20 unknown-filter",
                "telegram.message 2:12 missing-include",
                "telegram.message 2:23 unknown-variable",
                "whatsapp.message 1:13 text-syntax",
                "bad.txt 2:4 unknown-variable",
                "vars.code 1:1 name-clash",
                "vars.today 1:1 name-clash",
            ]
        );
    }

    #[test]
    fn text_that_would_exhaust_the_engine_is_rejected() {
        let elifs = format!("{{% if code %}}{}{{% endif %}}", "{% elif code %}".repeat(5_000));
        let nested = format!("{}{}", "{% if code %}".repeat(3_000), "{% endif %}".repeat(3_000));
        let brackets = format!("{{{{ {}code{} }}}}", "(".repeat(20_000), ")".repeat(20_000));
        let sum = format!("{{{{ 1{} }}}}", " + 1".repeat(15_000));
        let blocks: String =
            (0..40).map(|n| format!("{{% block b{n} %}}")).collect::<String>() + &"{% endblock %}".repeat(40);
        let after_slip = format!("{{% if\u{a0}code %}}{nested}");
        let sources = [elifs, nested, brackets, sum, blocks, after_slip];
        for source in sources.into_iter().chain(["x{{ code }}".repeat(7_000), "{{code}}".repeat(8_000)]) {
            let problem = format_only_problem(&source);
            assert!(problem.starts_with("text-"), "{}: {problem}", &source[..40]);
        }
        let chain = |name: &str| Ok(format!("{{% include '{name}x' %}}"));
        let endless = compile_messages(&content("{% include 'x' %}", "x"), &names(), &mut { chain }).unwrap_err();
        assert!(endless.iter().any(|problem| problem.message.contains("more than 16 templates")), "{endless:?}");
        let wide = |name: &str| match name.len() {
            15 => Ok(String::new()),
            _ => Ok(format!("{{% include '{name}x' %}}").repeat(9)),
        };
        let wide = compile_messages(&content("{% include 'x' %}", "x"), &names(), &mut { wide }).unwrap_err();
        assert!(wide.iter().all(|problem| problem.rule.id == "text-too-long"), "{wide:?}");
    }

    #[test]
    fn constant_can_use_only_campaign_values() {
        let table = [
            ("{{ today }}", "2026-11-21"),
            ("{{ campaign }}-{{ shop | lower }}", "autumn-olena"),
            ("spring", "spring"),
            ("", ""),
        ];
        for (source, expected) in table {
            assert_eq!(render_constant(&text("edition", source), &names()).as_deref(), Ok(expected), "{source}");
        }
        let table = [
            ("a {{ first_name }}", "1:6", "the same for all recipients"),
            ("{{ recipient['code'] }}", "1:4", "the same for all recipients"),
            ("{{ tody }}", "1:4", "did you mean `today`?"),
            ("{% include 'ok.txt' %}", "1:12", "this value cannot use other templates"),
            ("{{ shop | int }}", "1:4", "not a number"),
        ];
        for (source, place, expected) in table {
            let TextProblem { line, column, message, help, .. } =
                render_constant(&text("edition", source), &names()).unwrap_err().remove(0);
            let output = format!("{line}:{column} {message} {}", help.unwrap_or_default());
            assert!(output.starts_with(place) && output.contains(expected), "{source}: {output}");
        }
    }
}

#[cfg(test)]
mod constant_tests {
    use crate::message::compile_messages;
    use crate::message::tests::{names, sms_content};

    #[test]
    fn channel_limit_violations_are_reported_with_other_problems() {
        let problems =
            compile_messages(&sms_content("Olena & Company", "{{ nope }}"), &names(), &mut |_| Err("none".to_owned()))
                .unwrap_err();
        let reported: Vec<&str> = problems.iter().map(|problem| problem.rule.id).collect();
        assert_eq!(reported, ["unknown-variable", "text-refused"]);
    }
}
