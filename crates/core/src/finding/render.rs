//! Rendering of findings: for terminals, as JSON, as SARIF 2.1.0 for editors and code hosts, and as GitHub workflow
//! commands.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde_json::{Value, json};
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

use super::{Finding, Fix, FixEdit, Rule, Severity, SourceLocation, escape_controls, escape_to_one_line};

/// The maximum width of prose, in columns.
pub const PROSE_WIDTH: usize = 100;
/// Stands for a space that must not become a line break when a text is wrapped. It is a private-use character, one
/// column wide.
pub const KEPT_BLANK: char = '\u{e000}';

/// The maximum length of the excerpt around a location, in characters.
const MAX_EXCERPT: usize = 140;
/// The maximum length of a quoted text that stays on one line, in characters.
const MAX_UNBROKEN_QUOTE: usize = 50;
/// The minimum width of the text, regardless of the length of its label.
const MIN_TEXT_WIDTH: usize = 24;

/// The findings for people, sorted by file and location; `color` adds ANSI colors.
///
/// Findings without a location come first and have no excerpt.
pub fn render_findings(findings: &[Finding], color: bool) -> String {
    render_findings_in_columns(findings, color, None)
}

/// Like [`render_findings`], but with text wrapped to a terminal of this width. Without a width, text is not wrapped.
pub fn render_findings_in_columns(findings: &[Finding], color: bool, columns: Option<usize>) -> String {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_cached_key(|finding| finding.place.as_ref().map(sort_key));
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let width = columns.map_or(MAX_EXCERPT, |columns| columns.min(MAX_EXCERPT));
    let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(width);
    let rendered: Vec<String> = sorted.into_iter().map(|finding| render_finding(finding, &renderer, columns)).collect();
    rendered.join("\n")
}

/// The findings as `check --json` prints them.
pub fn findings_json(findings: &[Finding]) -> serde_json::Value {
    findings
        .iter()
        .map(|finding| {
            let place = finding.place.as_ref();
            let mut object = serde_json::json!({
                "rule": finding.rule.id,
                "severity": severity_word(finding.severity),
                "message": finding.message,
                "file": place.map(|place| place.source.path().display().to_string()),
                "line": place.map(SourceLocation::line_number),
                "column": place.map(SourceLocation::column_number),
                "help": finding.help,
            });
            if let Some((place, fix)) = finding.placed_fix() {
                object["fix"] = fix_json(place, fix);
            }
            object
        })
        .collect()
}

/// A fix as JSON for programs. Lines and columns count from 1, columns in characters; the end is after the last
/// character.
fn fix_json(place: &SourceLocation, fix: &Fix) -> Value {
    let edit_json = |edit: &FixEdit| {
        let position = |at| place.position_of(at, |line| line.chars().count());
        let ((line, column), (end_line, end_column)) = (position(edit.span.start), position(edit.span.end));
        json!({
            "line": line,
            "column": column,
            "end_line": end_line,
            "end_column": end_column,
            "text": edit.text,
        })
    };
    json!({ "title": fix.title, "edits": fix.edits.iter().map(edit_json).collect::<Vec<_>>() })
}

fn sort_key(place: &SourceLocation) -> (PathBuf, usize, usize) {
    (place.source.path().to_owned(), place.line_number(), place.column_number())
}

/// Whether a quoted text stays on one line, because people copy it: a command or a short text.
pub fn is_kept_whole(quoted: &str) -> bool {
    quoted.starts_with("campaign ") || quoted.chars().count() <= MAX_UNBROKEN_QUOTE
}

/// Replaces the spaces between groups of digits with [`KEPT_BLANK`], so that a number is not wrapped.
pub fn keep_digit_groups(text: &str) -> String {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let bytes = text.as_bytes();
    let is_within_number = |at: usize| {
        is_digit(at.checked_sub(1).and_then(|before| bytes.get(before)))
            && (1..=3).all(|after| is_digit(bytes.get(at + after)))
            && !is_digit(bytes.get(at + 4))
    };
    let keep = |(at, c): (usize, char)| if c == ' ' && is_within_number(at) { KEPT_BLANK } else { c };
    text.char_indices().map(keep).collect()
}

/// Wraps a text to fit beside a label of this width. Without `columns`, the text is not wrapped.
fn wrap_text(text: &str, label_width: usize, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    // Every second part is quoted, unless a backtick is unpaired.
    let is_quoted = |at: usize| at % 2 == 1 && text.matches('`').count().is_multiple_of(2);
    let parts = text.split('`').enumerate().map(|(at, part)| match is_quoted(at) && is_kept_whole(part) {
        true => part.replace(' ', KEPT_BLANK.encode_utf8(&mut [0; 4])),
        false => part.to_owned(),
    });
    let parts = parts.collect::<Vec<_>>().join("`");
    let options = Options::new(columns.min(PROSE_WIDTH).saturating_sub(label_width).max(MIN_TEXT_WIDTH))
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    textwrap::fill(&keep_digit_groups(&parts), options).replace(KEPT_BLANK, " ")
}

fn render_finding(finding: &Finding, renderer: &Renderer, columns: Option<usize>) -> String {
    let level = match finding.severity {
        Severity::Note => Level::NOTE,
        Severity::Warning => Level::WARNING,
        Severity::Error => Level::ERROR,
    };
    let path = finding.place.as_ref().map(|place| place.source.path().display().to_string());
    // The width of the label, such as `error[rule]: `.
    let label_width = severity_word(finding.severity).len() + finding.rule.id.len() + 4;
    let title =
        level.primary_title(wrap_text(&escape_to_one_line(&finding.message), label_width, columns)).id(finding.rule.id);
    let mut group = Group::with_title(title);
    let is_placed = path.is_some();
    if let Some((place, path)) = finding.place.as_ref().zip(path) {
        let (line, span) = find_first_line(place);
        let snippet = Snippet::source(line).path(path).line_start(place.line_number());
        group = group.element(snippet.annotation(AnnotationKind::Primary.span(span)));
    }
    if let Some(help) = &finding.help {
        // The label ` = help: ` follows a margin as wide as the line number.
        let margin = finding.place.as_ref().map_or(0, |place| place.line_number().to_string().len());
        group =
            group.element(Level::HELP.message(wrap_text(&escape_controls(help), margin + " = help: ".len(), columns)));
    }
    let mut text = renderer.render(&[group]);
    if !is_placed {
        // Without an excerpt, the bar between title and help has no purpose.
        text = text.lines().filter(|line| strip_colors(line).trim() != "|").collect::<Vec<_>>().join("\n");
    }
    text.push('\n');
    text
}

/// Strips color codes from a line.
fn strip_colors(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default();
    let others = parts.map(|part| part.split_once('m').map_or("", |(_, text)| text));
    std::iter::once(first).chain(others).collect()
}

/// The first line of the location without a BOM, and its underlined part.
///
/// A span over several lines would be drawn as a bracket beside the lines, which does not show the exact location.
fn find_first_line(place: &SourceLocation) -> (&str, Range<usize>) {
    let text = place.source.text();
    let bom = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let begin = text[..place.span.start].rfind('\n').map_or(bom, |newline| newline + 1);
    let line = text.get(begin..).unwrap_or("").lines().next().unwrap_or("");
    let clamp = |at: usize| at.saturating_sub(begin).min(line.len());
    (line, clamp(place.span.start)..clamp(place.span.end))
}

/// The name of a severity in machine-readable output.
pub fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

const SARIF_SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The findings of campaigns as a log of one run. A finding without a location is shown at the campaign file.
///
/// Columns are in UTF-16 units: the default of the standard (SARIF 3.14.17), stated explicitly.
pub fn render_sarif(findings: &[(&Path, Finding)]) -> Value {
    let mut rules: Vec<&'static Rule> = Vec::new();
    for (_, finding) in findings {
        if !rules.contains(&finding.rule) {
            rules.push(finding.rule);
        }
    }
    let results: Vec<Value> = findings.iter().map(|(file, finding)| result_json(file, finding, &rules)).collect();
    json!({
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "campaign",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|rule| rule_json(rule)).collect::<Vec<_>>(),
            } },
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    })
}

fn rule_json(rule: &Rule) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": { "text": format!("{}.", rule.text.summary()) },
        "fullDescription": { "text": rule.text.cause },
        "help": { "text": rule.text.fix },
        "defaultConfiguration": { "level": severity_word(rule.severity) },
    })
}

fn result_json(file: &Path, finding: &Finding, rules: &[&'static Rule]) -> Value {
    let help = finding.help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    let location = match &finding.place {
        Some(place) => location_json(place.source.path(), Some(region_json(place))),
        None => location_json(file, None),
    };
    let mut result = json!({
        "ruleId": finding.rule.id,
        "ruleIndex": rules.iter().position(|rule| *rule == finding.rule),
        "level": severity_word(finding.severity),
        "message": { "text": format!("{}{help}", finding.message) },
        "locations": [{ "physicalLocation": location }],
    });
    if let Some((place, fix)) = finding.placed_fix() {
        result["fixes"] = json!([sarif_fix(place, fix)]);
    }
    result
}

/// A fix as SARIF describes it (3.55), with columns in UTF-16 units.
fn sarif_fix(place: &SourceLocation, fix: &Fix) -> Value {
    let replacement_json = |edit: &FixEdit| {
        let position = |at| place.position_of(at, |line| line.encode_utf16().count());
        let ((line, column), (end_line, end_column)) = (position(edit.span.start), position(edit.span.end));
        let region = json!({ "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column });
        json!({ "deletedRegion": region, "insertedContent": { "text": edit.text } })
    };
    json!({
        "description": { "text": fix.title },
        "artifactChanges": [{
            "artifactLocation": { "uri": format_uri(place.source.path()) },
            "replacements": fix.edits.iter().map(replacement_json).collect::<Vec<_>>(),
        }],
    })
}

fn location_json(file: &Path, region: Option<Value>) -> Value {
    let mut location = json!({ "artifactLocation": { "uri": format_uri(file) } });
    if let Some(region) = region {
        location["region"] = region;
    }
    location
}

fn region_json(place: &SourceLocation) -> Value {
    let (line, columns) = place.utf16_range();
    json!({ "startLine": line, "startColumn": columns.start(), "endLine": line, "endColumn": columns.end() })
}

/// Converts a path to a URI reference: relative as typed, or `file:`.
fn format_uri(path: &Path) -> String {
    let parts: Vec<String> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(percent_encode(&name.to_string_lossy())),
            Component::ParentDir => Some("..".to_owned()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        })
        .collect();
    let parts = parts.join("/");
    if path.is_absolute() { format!("file:///{parts}") } else { parts }
}

/// Percent-encodes a name for a URI.
fn percent_encode(name: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    name.as_bytes()
        .iter()
        .map(|byte| if is_plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// The findings of campaigns as workflow commands. A finding without a location is shown at the campaign file.
///
/// The form and the escapes are GitHub's ("Workflow commands for GitHub Actions").
pub fn render_github_commands(findings: &[(&Path, Finding)]) -> String {
    findings.iter().map(|(file, finding)| format_command(file, finding) + "\n").collect()
}

fn format_command(file: &Path, finding: &Finding) -> String {
    let level = match finding.severity {
        Severity::Note => "notice",
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    let mut properties = match &finding.place {
        Some(place) => format!(
            "file={},line={},col={}",
            escape_property(&place.source.path().display().to_string()),
            place.line_number(),
            place.column_number()
        ),
        None => format!("file={}", escape_property(&file.display().to_string())),
    };
    properties += &format!(",title={}", escape_property(finding.rule.id));
    let help = finding.help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    format!("::{level} {properties}::{}", escape_data(&format!("{}{help}", finding.message)))
}

/// Escapes the message of a workflow command, which follows the second `::`.
fn escape_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property of a workflow command.
fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
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
    fn fix_is_included_in_json_and_sarif_output() {
        let source = SourceText::new("a.yaml", "x: 😀 @a\nvars:\n");
        let fix = Fix::new("put it in quotes", [(8..8, "\"".to_owned()), (10..10, "\"".to_owned())]);
        let finding = Finding::new(&REFUSES, "no").at(SourceLocation::new(&source, 8..10)).fix(fix);
        let json = findings_json(std::slice::from_ref(&finding));
        assert_eq!(json[0]["fix"]["title"], "put it in quotes");
        assert_eq!(
            json[0]["fix"]["edits"][1],
            json!({ "line": 1, "column": 8, "end_line": 1, "end_column": 8, "text": "\"" })
        );
        let sarif = render_sarif(&[(Path::new("a.yaml"), finding.clone())]);
        let change = &sarif["runs"][0]["results"][0]["fixes"][0]["artifactChanges"][0];
        assert_eq!(change["artifactLocation"]["uri"], "a.yaml");
        assert_eq!(
            change["replacements"][0]["deletedRegion"],
            json!({ "startLine": 1, "startColumn": 7, "endLine": 1, "endColumn": 7 })
        );
        assert_eq!(change["replacements"][0]["insertedContent"]["text"], "\"");
        let without_fix = finding.fix(None);
        assert_eq!(findings_json(std::slice::from_ref(&without_fix))[0].get("fix"), None);
        assert_eq!(render_sarif(&[(Path::new("a.yaml"), without_fix)])["runs"][0]["results"][0].get("fixes"), None);
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
    fn excerpt_shows_the_line_number_in_the_file() {
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
        let colored = render_findings(&[Finding::new(&REFUSES, "x").help("y")], true);
        assert!(!colored.contains('|'), "{colored}");
    }

    #[test]
    fn wrapped_text_is_indented_and_commands_are_not_split() {
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
        // No line is wider than `PROSE_WIDTH`.
        let wide = render_findings_in_columns(&[Finding::new(&REFUSES, message.repeat(3))], false, Some(200));
        assert!(wide.lines().all(|line| line.chars().count() <= PROSE_WIDTH), "{wide}");
    }

    #[test]
    fn output_has_colors_only_if_requested() {
        let finding = [Finding::new(&REFUSES, "y")];
        assert!(render_findings(&finding, true).contains('\u{1b}'));
        assert!(!render_plain(&finding).contains('\u{1b}'));
    }
}

#[cfg(test)]
mod export_tests {
    use super::*;
    use crate::finding::{RULE_TEXT, SourceText};

    static RULE: Rule = Rule::error("odd", RULE_TEXT);

    #[test]
    fn sarif_columns_are_utf16_and_end_exclusive() {
        let source = SourceText::new("my campaigns/осінь.yaml", "a: 1\nx: \"😀 ой\"\nb: 2\n");
        let start = source.text().find("ой").unwrap();
        let finding = Finding::new(&RULE, "no").at(SourceLocation::new(&source, start..start + "ой".len())).help("yes");
        let log = render_sarif(&[(Path::new("a.yaml"), finding), (Path::new("/b.yaml"), Finding::new(&RULE, "alone"))]);
        let results = &log["runs"][0]["results"];
        let place = &results[0]["locations"][0]["physicalLocation"];
        assert_eq!(place["region"], json!({ "startLine": 2, "startColumn": 8, "endLine": 2, "endColumn": 10 }));
        assert_eq!(place["artifactLocation"]["uri"], "my%20campaigns/%D0%BE%D1%81%D1%96%D0%BD%D1%8C.yaml");
        assert_eq!(
            results[1]["locations"][0]["physicalLocation"],
            json!({ "artifactLocation": { "uri": "file:///b.yaml" } })
        );
        assert_eq!((&results[0]["ruleIndex"], &results[1]["ruleIndex"]), (&json!(0), &json!(0)));
        assert_eq!(log["runs"][0]["tool"]["driver"]["rules"].as_array().map(Vec::len), Some(1));
    }
}

#[cfg(test)]
mod github_tests {
    use super::*;
    use crate::finding::{RULE_TEXT, Rule, SourceLocation, SourceText};

    static RULE: Rule = Rule::warning("odd", RULE_TEXT);

    #[test]
    fn github_command_escapes_lines_and_properties() {
        let source = SourceText::new("a,b:c.yaml", "name: x\n");
        let finding = Finding::new(&RULE, "100 % odd:\nreally")
            .at(SourceLocation::new(&source, 6..7))
            .help("write `x`,\r\nor `y`");
        assert_eq!(
            render_github_commands(&[(Path::new("a.yaml"), finding), (Path::new("d.yaml"), Finding::new(&RULE, "x"))]),
            "::warning file=a%2Cb%3Ac.yaml,line=1,col=7,title=odd::100 %25 odd:%0Areally%0Ahelp: write `x`,%0D%0Aor `y`\n\
             ::warning file=d.yaml,title=odd::x\n"
        );
    }
}
