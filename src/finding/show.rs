//! Findings on a terminal and as JSON.

use std::ops::Range;
use std::path::PathBuf;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Finding, Place, Severity, harmless, one_line};

/// The longest part of a line, in characters, that is shown around a place.
const WIDTH: usize = 140;

/// The findings as a person reads them, by file and place; `color` adds ANSI colours.
///
/// A finding without a place comes before those of any file and shows only its words.
#[must_use]
pub fn show(findings: &[Finding], color: bool) -> String {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_cached_key(|finding| finding.place.as_ref().map(order));
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(WIDTH);
    let shown: Vec<String> = sorted.into_iter().map(|finding| show_one(finding, &renderer)).collect();
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
                "line": place.map(Place::line),
                "column": place.map(Place::column),
                "help": finding.help,
            })
        })
        .collect()
}

fn order(place: &Place) -> (PathBuf, usize, usize) {
    (place.source.path().to_owned(), place.line(), place.column())
}

fn show_one(finding: &Finding, renderer: &Renderer) -> String {
    let level = match finding.severity {
        Severity::Note => Level::NOTE,
        Severity::Warning => Level::WARNING,
        Severity::Error => Level::ERROR,
    };
    let path = finding.place.as_ref().map(|place| place.source.path().display().to_string());
    let title = level.primary_title(one_line(&finding.message)).id(finding.rule.id);
    let mut group = Group::with_title(title);
    let is_placed = path.is_some();
    if let Some((place, path)) = finding.place.as_ref().zip(path) {
        let (line, span) = first_line(place);
        let snippet = Snippet::source(line).path(path).line_start(place.line());
        group = group.element(snippet.annotation(AnnotationKind::Primary.span(span)));
    }
    if let Some(help) = &finding.help {
        group = group.element(Level::HELP.message(harmless(help)));
    }
    let mut text = renderer.render(&[group]);
    if !is_placed {
        // Without an excerpt, there is nothing for the bar between title and help to connect.
        text = text.lines().filter(|line| uncoloured(line).trim() != "|").collect::<Vec<_>>().join("\n");
    }
    text.push('\n');
    text
}

/// A line without the codes that colour it.
fn uncoloured(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default();
    let others = parts.map(|part| part.split_once('m').map_or("", |(_, text)| text));
    std::iter::once(first).chain(others).collect()
}

/// The place's first line without a BOM, and the part of it that is underlined.
///
/// A span over several lines would be drawn as a bracket beside them, which hides what matters.
fn first_line(place: &Place) -> (&str, Range<usize>) {
    let text = place.source.text();
    let bom = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let begin = text[..place.span.start].rfind('\n').map_or(bom, |newline| newline + 1);
    let line = text.get(begin..).unwrap_or("").lines().next().unwrap_or("");
    let within = |at: usize| at.saturating_sub(begin).min(line.len());
    (line, within(place.span.start)..within(place.span.end))
}

/// The word of a severity in what programs read.
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
    use super::super::Source;
    use super::*;
    use crate::finding::Rule;

    static REFUSES: Rule = Rule::error("refuses", "It is so.", "Mend it.");
    static WARNS: Rule = Rule::warning("warns", "It is so.", "Mend it.");

    fn plain(findings: &[Finding]) -> String {
        show(findings, false)
    }

    #[test]
    fn the_text_is_underlined_in_its_line_also_behind_cyrillic() {
        let source = Source::new("a.yaml", "name: x\nvars: { мова: укр }\n");
        let start = source.text().find("укр").unwrap();
        let finding = Finding::new(&REFUSES, "no such language")
            .at(Place::new(&source, start..start + "укр".len()))
            .help("write `uk`");
        assert_eq!(
            plain(&[finding]),
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
    fn findings_are_sorted_by_file_and_place_with_a_blank_line_between() {
        let (a, b) = (Source::new("a.yaml", "one\ntwo\n"), Source::new("b.yaml", "one\n"));
        let at = |source, span, message: &str| Finding::new(&WARNS, message).at(Place::new(source, span));
        let findings =
            [at(&b, 0..1, "third"), at(&a, 4..5, "second"), at(&a, 0..1, "first"), Finding::new(&REFUSES, "zeroth")];
        let text = plain(&findings);
        let titles: Vec<&str> = text.lines().filter(|line| line.contains("]: ")).collect();
        assert_eq!(
            titles,
            ["error[refuses]: zeroth", "warning[warns]: first", "warning[warns]: second", "warning[warns]: third"]
        );
        assert_eq!(text.matches("\n\n").count(), 3);
    }

    #[test]
    fn an_excerpt_shows_the_lines_number_in_its_file() {
        let source = Source::new("big.csv", "+380501234567;ok\nbad\n");
        let place = Place { first_line: 1_000_000, ..Place::new(&source, 17..20) };
        let text = plain(&[Finding::new(&REFUSES, "not a number").at(place)]);
        assert!(text.contains("big.csv:1000001:1"), "{text}");
        assert!(text.contains("1000001 | bad"), "{text}");
    }

    #[test]
    fn a_finding_without_a_place_is_its_words() {
        let text = plain(&[Finding::new(&REFUSES, "`a.yaml` does not exist").help("check its name")]);
        assert_eq!(text, "error[refuses]: `a.yaml` does not exist\n = help: check its name\n");
        let coloured = show(&[Finding::new(&REFUSES, "x").help("y")], true);
        assert!(!coloured.contains('|'), "{coloured}");
    }

    #[test]
    fn colours_come_only_when_asked_for() {
        let finding = [Finding::new(&REFUSES, "y")];
        assert!(show(&finding, true).contains('\u{1b}'));
        assert!(!plain(&finding).contains('\u{1b}'));
    }
}
