//! Rendering of findings for terminals and as JSON.

use std::ops::Range;
use std::path::PathBuf;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

use super::{Finding, Severity, SourceLocation, escape_controls, escape_to_one_line};

/// The maximum width of prose, in columns.
pub const PROSE_WIDTH: usize = 100;
/// Replaces spaces that must not become line breaks while a text is wrapped. A private-use character, one column wide.
pub const KEPT_BLANK: char = '\u{e000}';

/// The maximum part of a line around a location, in characters.
const MAX_EXCERPT: usize = 140;
/// The maximum length of a quoted text that stays on one line, in characters.
const MAX_UNBROKEN_QUOTE: usize = 50;
/// The minimum width of the text, whatever the length of its label.
const MIN_TEXT_WIDTH: usize = 24;

/// The findings for people, sorted by file and location; `color` adds ANSI colors.
///
/// A finding without a location comes before those of any file and has no excerpt.
#[must_use]
pub fn render_findings(findings: &[Finding], color: bool) -> String {
    render_findings_in_columns(findings, color, None)
}

/// The same on a terminal of this width, with wrapped text. Without a width, text is not wrapped.
#[must_use]
pub fn render_findings_in_columns(findings: &[Finding], color: bool, columns: Option<usize>) -> String {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_cached_key(|finding| finding.place.as_ref().map(sort_key));
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let width = columns.map_or(MAX_EXCERPT, |columns| columns.min(MAX_EXCERPT));
    let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(width);
    let shown: Vec<String> = sorted.into_iter().map(|finding| render_finding(finding, &renderer, columns)).collect();
    shown.join("\n")
}

/// The findings as `check --json` prints them.
#[must_use]
pub fn findings_json(findings: &[Finding]) -> serde_json::Value {
    findings
        .iter()
        .map(|finding| {
            let place = finding.place.as_ref();
            serde_json::json!({
                "rule": finding.rule.id,
                "severity": severity_word(finding.severity),
                "message": finding.message,
                "file": place.map(|place| place.source.path().display().to_string()),
                "line": place.map(SourceLocation::line_number),
                "column": place.map(SourceLocation::column_number),
                "help": finding.help,
            })
        })
        .collect()
}

fn sort_key(place: &SourceLocation) -> (PathBuf, usize, usize) {
    (place.source.path().to_owned(), place.line_number(), place.column_number())
}

/// Whether a quoted text stays on one line: a command or a short text, because people copy them.
#[must_use]
pub fn is_kept_whole(quoted: &str) -> bool {
    quoted.starts_with("campaign ") || quoted.chars().count() <= MAX_UNBROKEN_QUOTE
}

/// Wraps a text to fit beside a label of this width.
fn wrap_text(text: &str, label: usize, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    // Every second part is quoted, unless a backtick is unpaired.
    let is_quoted = |at: usize| at % 2 == 1 && text.matches('`').count().is_multiple_of(2);
    let kept = text.split('`').enumerate().map(|(at, part)| match is_quoted(at) && is_kept_whole(part) {
        true => part.replace(' ', KEPT_BLANK.encode_utf8(&mut [0; 4])),
        false => part.to_owned(),
    });
    let kept = kept.collect::<Vec<_>>().join("`");
    let options = Options::new(columns.min(PROSE_WIDTH).saturating_sub(label).max(MIN_TEXT_WIDTH))
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    textwrap::fill(&kept, options).replace(KEPT_BLANK, " ")
}

fn render_finding(finding: &Finding, renderer: &Renderer, columns: Option<usize>) -> String {
    let level = match finding.severity {
        Severity::Note => Level::NOTE,
        Severity::Warning => Level::WARNING,
        Severity::Error => Level::ERROR,
    };
    let path = finding.place.as_ref().map(|place| place.source.path().display().to_string());
    // `error[rule]: `
    let label = severity_word(finding.severity).len() + finding.rule.id.len() + 4;
    let title =
        level.primary_title(wrap_text(&escape_to_one_line(&finding.message), label, columns)).id(finding.rule.id);
    let mut group = Group::with_title(title);
    let is_placed = path.is_some();
    if let Some((place, path)) = finding.place.as_ref().zip(path) {
        let (line, span) = find_first_line(place);
        let snippet = Snippet::source(line).path(path).line_start(place.line_number());
        group = group.element(snippet.annotation(AnnotationKind::Primary.span(span)));
    }
    if let Some(help) = &finding.help {
        // ` = help: ` after the line number.
        let number = finding.place.as_ref().map_or(0, |place| place.line_number().to_string().len());
        group = group.element(Level::HELP.message(wrap_text(&escape_controls(help), number + 9, columns)));
    }
    let mut text = renderer.render(&[group]);
    if !is_placed {
        // Without an excerpt, a bar between title and help connects nothing.
        text = text.lines().filter(|line| strip_colors(line).trim() != "|").collect::<Vec<_>>().join("\n");
    }
    text.push('\n');
    text
}

/// A line without color codes.
fn strip_colors(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default();
    let others = parts.map(|part| part.split_once('m').map_or("", |(_, text)| text));
    std::iter::once(first).chain(others).collect()
}

/// The first line of the location without a BOM, and its underlined part.
///
/// A span over several lines would be drawn as a bracket beside them, which hides what matters.
fn find_first_line(place: &SourceLocation) -> (&str, Range<usize>) {
    let text = place.source.text();
    let bom = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let begin = text[..place.span.start].rfind('\n').map_or(bom, |newline| newline + 1);
    let line = text.get(begin..).unwrap_or("").lines().next().unwrap_or("");
    let within = |at: usize| at.saturating_sub(begin).min(line.len());
    (line, within(place.span.start)..within(place.span.end))
}

/// The name of a severity in machine-readable output.
#[must_use]
pub fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::SourceText;
    use crate::finding::{RULE_TEXT, Rule};

    static REFUSES: Rule = Rule::error("refuses", RULE_TEXT);
    static WARNS: Rule = Rule::warning("warns", RULE_TEXT);

    fn render_plain(findings: &[Finding]) -> String {
        render_findings(findings, false)
    }

    #[test]
    fn underline_is_aligned_after_cyrillic_text() {
        let source = SourceText::new("a.yaml", "name: x\nvars: { мова: укр }\n");
        let start = source.text().find("укр").unwrap();
        let finding = Finding::new(&REFUSES, "no such language")
            .at(SourceLocation::new(&source, start..start + "укр".len()))
            .help("write `uk`");
        assert_eq!(
            render_plain(&[finding]),
            "error[refuses]: no such language\n\
             \x20--> a.yaml:2:15\n\
             \x20 |\n\
             2 | vars: { мова: укр }\n\
             \x20 |               ^^^\n\
             \x20 |\n\
             \x20 = help: write `uk`\n"
        );
    }

    #[test]
    fn findings_are_sorted_and_separated_by_blank_lines() {
        let (a, b) = (SourceText::new("a.yaml", "one\ntwo\n"), SourceText::new("b.yaml", "one\n"));
        let at = |source, span, message: &str| Finding::new(&WARNS, message).at(SourceLocation::new(source, span));
        let findings =
            [at(&b, 0..1, "third"), at(&a, 4..5, "second"), at(&a, 0..1, "first"), Finding::new(&REFUSES, "zeroth")];
        let text = render_plain(&findings);
        let titles: Vec<&str> = text.lines().filter(|line| line.contains("]: ")).collect();
        assert_eq!(
            titles,
            ["error[refuses]: zeroth", "warning[warns]: first", "warning[warns]: second", "warning[warns]: third"]
        );
        assert_eq!(text.matches("\n\n").count(), 3);
    }

    #[test]
    fn excerpt_shows_line_number_of_the_file() {
        let source = SourceText::new("big.csv", "+380501234567;ok\nbad\n");
        let place = SourceLocation { first_line: 1_000_000, ..SourceLocation::new(&source, 17..20) };
        let text = render_plain(&[Finding::new(&REFUSES, "not a number").at(place)]);
        assert!(text.contains("big.csv:1000001:1"), "{text}");
        assert!(text.contains("1000001 | bad"), "{text}");
    }

    #[test]
    fn finding_without_place_has_no_excerpt() {
        let text = render_plain(&[Finding::new(&REFUSES, "`a.yaml` does not exist").help("check its name")]);
        assert_eq!(text, "error[refuses]: `a.yaml` does not exist\n = help: check its name\n");
        let coloured = render_findings(&[Finding::new(&REFUSES, "x").help("y")], true);
        assert!(!coloured.contains('|'), "{coloured}");
    }

    #[test]
    fn text_wraps_after_its_label_and_commands_stay_whole() {
        let source = SourceText::new("a.yaml", "one\n");
        let message = "a message with many words, which does not fit into the columns of a narrow terminal";
        let help = "delete the line, or run `campaign check a.yaml --gateway production` and read what it prints";
        let finding = Finding::new(&REFUSES, message).at(SourceLocation::new(&source, 0..3)).help(help);
        let text = render_findings_in_columns(std::slice::from_ref(&finding), false, Some(60));
        assert_eq!(
            text,
            "error[refuses]: a message with many words, which does not\n\
             \x20               fit into the columns of a narrow terminal\n\
             \x20--> a.yaml:1:1\n\
             \x20 |\n\
             1 | one\n\
             \x20 | ^^^\n\
             \x20 |\n\
             \x20 = help: delete the line, or run\n\
             \x20         `campaign check a.yaml --gateway production` and\n\
             \x20         read what it prints\n"
        );
        assert!(!render_findings_in_columns(std::slice::from_ref(&finding), false, None).contains("narrow\n"));
        // No line is wider than prose.
        let wide = render_findings_in_columns(&[Finding::new(&REFUSES, message.repeat(3))], false, Some(200));
        assert!(wide.lines().all(|line| line.chars().count() <= PROSE_WIDTH), "{wide}");
    }

    #[test]
    fn output_has_no_colors_by_default() {
        let finding = [Finding::new(&REFUSES, "y")];
        assert!(render_findings(&finding, true).contains('\u{1b}'));
        assert!(!render_plain(&finding).contains('\u{1b}'));
    }
}
