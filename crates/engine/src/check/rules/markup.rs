//! Rules about markup that a channel would send literally: HTML, Markdown and escape sequences.

use std::ops::Range;

use super::damaged_text::{
    decode_entity, find_escaped_line_break, find_html_entities, find_html_tags, find_markdown, find_url_escapes,
};
use campaign_content::message::{TextProblem, constant_parts, mask_tags, problem_at};
use campaign_core::define_rules;
use campaign_core::domain::NamedTemplate;
use campaign_core::finding::{Finding, Rule, join_names};

define_rules! {
    TEXTS:
    warning HTML_ENTITY = "html-entity" {
        cause: "An HTML entity would be sent literally. Messages are plain text, not web pages.",
        example: ["message: \"Olena &amp; Co: -20%\""],
        fix: "write the character itself, and export the list without HTML",
    }
    warning HTML_TAG = "html-tag" {
        cause: "An HTML tag would be sent literally. Messages are plain text, not web pages.",
        example: ["message: \"Sale!<br>Until Sunday.\""],
        fix: "remove the tags; for a line break, write the text on separate lines after `|`",
    }
    warning MARKDOWN = "markdown" {
        cause: "Markdown would be sent literally. No channel renders `**bold**` or `[text](address)`.",
        example: ["message: \"**Sale** until Sunday\""],
        fix: "remove the Markdown, and write plain addresses; WhatsApp and Viber show `*word*` in bold",
    }
    warning STRAY_TAG_END = "stray-tag-end" {
        cause: "A tag ends that never began. Its braces would be sent literally.",
        example: ["message: \"Hello, {{ first_name }} }}!\""],
        fix: "remove the braces, or write the beginning of the tag",
    }
    warning ALTERNATIVE_TEXTS = "alternative-texts" {
        cause: "A list of alternatives would be sent literally. Texts are not chosen at random.",
        example: ["message: \"{Hi|Hello}, {{ first_name }}!\""],
        fix: "keep one of the texts, or compare several with `variants`",
    }
    warning URL_ESCAPE = "url-escape" {
        cause: "A URL escape would be sent literally. `%20` and `%0A` mean a space and a line break only in addresses.",
        example: ["message: \"Sale!%0AUntil Sunday.\""],
        fix: "use a real space or line break",
    }
    warning ESCAPED_LINE_BREAK = "escaped-line-break" {
        cause: "`\\n` would be sent literally. In YAML, it is a line break only inside double quotes.",
        example: ["message: 'Hello!\\nSee you on Friday.'"],
        fix: "use a real line break, or put the text in double quotes",
    }
}

/// The maximum number of markup fragments that a finding names.
const MAX_NAMED: usize = 8;
/// The maximum number of characters of a fragment that are shown.
const MAX_CHARS: usize = 60;

/// A finding at the first of `spans`, which names each distinct fragment once. `None` if `spans` is empty.
pub(super) fn markup_finding(
    text: &NamedTemplate,
    spans: &[Range<usize>],
    rule: &'static Rule,
    help: impl FnOnce(&[&str]) -> String,
) -> Option<TextProblem> {
    let first = spans.first()?.clone();
    let mut fragments: Vec<&str> = Vec::new();
    for fragment in spans.iter().map(|span| &text.source[span.clone()]) {
        if !fragments.contains(&fragment) {
            fragments.push(fragment);
        }
    }
    let more = fragments.len().saturating_sub(MAX_NAMED);
    fragments.truncate(MAX_NAMED);
    let names: Vec<String> = fragments.iter().map(|fragment| shorten(fragment)).collect();
    let names = join_names(names.iter().map(String::as_str));
    let message = match more {
        0 => format!("{names} would be sent literally"),
        more => format!("{names}, and {more} more, would be sent literally"),
    };
    Some(problem_at(text, first, rule, message, &help(&fragments)))
}

/// Shortens a long fragment to its first characters.
fn shorten(fragment: &str) -> String {
    match fragment.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &fragment[..end]),
        None => fragment.to_owned(),
    }
}

/// Reports HTML entities in the constant parts of a text.
pub(super) fn check_html_entities(text: &NamedTemplate) -> Option<TextProblem> {
    let describe_replacement = |entity: &str| match decode_entity(entity) {
        Some(character) if character == " " => "a space".to_owned(),
        Some(character) => format!("`{character}`"),
        None => "the character itself".to_owned(),
    };
    let help = |entities: &[&str]| match entities {
        [entity] => format!("write {}", describe_replacement(entity)),
        several => {
            let replacements: Vec<String> =
                several.iter().map(|entity| format!("{} for `{entity}`", describe_replacement(entity))).collect();
            format!("write {}", replacements.join(", "))
        }
    };
    markup_finding(text, &find_html_entities(&mask_tags(text)), &HTML_ENTITY, help)
}

/// A finding about HTML entities in the cells of a column.
pub(super) fn report_html_entity(column: &str, example: &str, rows: &str) -> Finding {
    let replacement = decode_entity(example).filter(|character| character != " ");
    let replacement = replacement.map(|character| format!(" instead of `{character}`"));
    let message = format!("the column `{column}` contains `{example}`{} in {rows}", replacement.unwrap_or_default());
    Finding::new(&HTML_ENTITY, message)
        .help("export the list again without HTML encoding, or replace the HTML entities in the list")
}

/// Reports HTML tags in the constant parts of a text.
pub(super) fn check_html_tags(text: &NamedTemplate) -> Vec<TextProblem> {
    let help = |tags: &[&str]| {
        let is_break = |tag: &str| tag.to_ascii_lowercase().starts_with("<br");
        let line_break = "to add a line break, write the text on separate lines after `|`";
        match (tags.iter().any(|tag| is_break(tag)), tags.iter().all(|tag| is_break(tag))) {
            (true, true) => line_break.to_owned(),
            (true, false) => format!("{line_break} instead of using `<br>`; remove the other tags"),
            (false, _) => "remove the tags".to_owned(),
        }
    };
    markup_finding(text, &find_html_tags(&mask_tags(text)), &HTML_TAG, help).into_iter().collect()
}

/// Reports Markdown in the constant parts of a text.
pub(super) fn check_markdown(text: &NamedTemplate) -> Vec<TextProblem> {
    let help = |fragments: &[&str]| {
        let plain = fragments.iter().map(|fragment| match fragment.rsplit_once("](") {
            Some((_, address)) if fragment.starts_with('[') => address.trim_end_matches(')'),
            _ => fragment.trim_matches(['*', '_']),
        });
        format!("write {}", join_names(plain))
    };
    markup_finding(text, &find_markdown(&mask_tags(text), &text.source), &MARKDOWN, help).into_iter().collect()
}

/// Reports ends of tags in the constant parts of a text.
pub(super) fn check_stray_tag_ends(text: &NamedTemplate) -> Vec<TextProblem> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    // A part with the beginning of a tag is the content of a `raw` block.
    for (part, span) in constant_parts(text).filter(|(part, _)| !part.contains("{{") && !part.contains("{%")) {
        let to_span = |at: usize, length: usize| span.start + at..span.start + at + length;
        if span.start > 0 && part.starts_with('}') && !part.starts_with("}}") {
            spans.push(to_span(0, 1));
        }
        let ends = ["}}", "%}"].into_iter().flat_map(|end| part.match_indices(end));
        spans.extend(ends.map(|(at, end)| to_span(at, end.len())));
    }
    let help = |_: &[&str]| "remove it, or write the beginning of the tag, `{{` or `{%`, before it".to_owned();
    markup_finding(text, &spans, &STRAY_TAG_END, help).into_iter().collect()
}

/// Reports lists of alternatives, such as `{Hi|Hello}`, in the constant parts of a text.
pub(super) fn check_alternative_texts(text: &NamedTemplate) -> Vec<TextProblem> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    for (part, span) in constant_parts(text) {
        for (open, _) in part.match_indices('{') {
            let inner = part[open + 1..].split(['{', '}']).next().unwrap_or_default();
            let close = open + 1 + inner.len();
            if inner.contains('|') && inner.contains(char::is_alphanumeric) && part[close..].starts_with('}') {
                spans.push(span.start + open..span.start + close + 1);
            }
        }
    }
    let help = |_: &[&str]| "keep one of the texts; to compare several, use `variants`".to_owned();
    markup_finding(text, &spans, &ALTERNATIVE_TEXTS, help).into_iter().collect()
}

/// Reports URL-escaped spaces and line breaks in the constant parts of a text.
pub(super) fn check_url_escapes(text: &NamedTemplate) -> Vec<TextProblem> {
    let masked = mask_tags(text);
    let help = |escapes: &[&str]| {
        let line_break = "a line break: put the text after `|`, on separate lines";
        let help = match (escapes.contains(&"%20"), escapes.iter().any(|escape| *escape != "%20")) {
            (true, true) => format!("replace `%20` with a space, and the others with {line_break}"),
            (true, false) => "write a space".to_owned(),
            (false, _) => format!("write {line_break}"),
        };
        match has_plus_for_space(&masked) {
            true => format!("{help}; a `+` between words also stands for a space"),
            false => help,
        }
    };
    markup_finding(text, &find_url_escapes(&masked), &URL_ESCAPE, help).into_iter().collect()
}

fn has_plus_for_space(text: &str) -> bool {
    text.match_indices('+')
        .any(|(at, _)| text[..at].ends_with(char::is_alphabetic) && text[at + 1..].starts_with(char::is_alphabetic))
}

/// Finds the first `\n`, written as two characters, in the constant parts of a text.
pub(super) fn check_escaped_line_breaks(text: &NamedTemplate) -> Vec<TextProblem> {
    let first = constant_parts(text).find_map(|(part, span)| {
        find_escaped_line_break(part).map(|escape| span.start + escape.start..span.start + escape.end)
    });
    let problem = first.map(|span| {
        let message = format!("`{}` would be sent literally", &text.source[span.clone()]);
        let help = "use a real line break; in the campaign file, put the text after `|` or in double quotes";
        problem_at(text, span, &ESCAPED_LINE_BREAK, message, help)
    });
    problem.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_core::finding::RuleText;

    static RULE: Rule =
        Rule::warning("fragment", RuleText { cause: "A fragment.", example: &["text: \"<b>\""], fix: "remove it" });

    fn find_reported(check: fn(&NamedTemplate) -> Vec<TextProblem>, source: &str) -> Vec<String> {
        check(&NamedTemplate { name: "t".into(), source: source.into() })
            .into_iter()
            .map(|found| found.message)
            .collect()
    }

    #[test]
    fn braces_without_a_tag_are_reported() {
        for (source, reported) in [
            ("{{ name }}}!", "`}` would be sent literally"),
            ("name}}, 20%}", "`}}` and `%}` would be sent literally"),
            ("{{ name }} :-} 100%", ""),
            ("{% raw %}{{ name }}{% endraw %}", ""),
        ] {
            let expected: Vec<&str> = Some(reported).filter(|reported| !reported.is_empty()).into_iter().collect();
            assert_eq!(find_reported(check_stray_tag_ends, source), expected, "{source}");
        }
        assert_eq!(
            find_reported(check_alternative_texts, "{Hi|Hello}, {a} {|}"),
            ["`{Hi|Hello}` would be sent literally"]
        );
    }

    #[test]
    fn finding_lists_each_fragment_once_and_truncates_long_lists() {
        let message = |source: &str, spans: &[Range<usize>]| {
            let text = NamedTemplate { name: "t".into(), source: source.into() };
            markup_finding(&text, spans, &RULE, |fragments| fragments.join(" ")).map(|problem| problem.message)
        };
        assert_eq!(message("ab", &[]), None);
        let span_to = |end: usize| vec![Range { start: 0, end }];
        assert_eq!(message("ab", &span_to(1)).as_deref(), Some("`a` would be sent literally"));
        assert_eq!(message("aba", &[0..1, 1..2, 2..3]).as_deref(), Some("`a` and `b` would be sent literally"));
        let single_characters: Vec<Range<usize>> = (0..10).map(|at| at..at + 1).collect();
        assert!(
            message("abcdefghij", &single_characters).unwrap().ends_with("`h`, and 2 more, would be sent literally")
        );
        let long = format!("<{}>", "є".repeat(80));
        assert!(message(&long, &span_to(long.len())).unwrap().contains("є…`"));
    }
}
