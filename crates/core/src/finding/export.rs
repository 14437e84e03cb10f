//! Export of findings as SARIF 2.1.0, for editors and code hosts, and as GitHub workflow commands.

use std::path::{Component, Path};

use serde_json::{Value, json};

use super::{Finding, Rule, Severity, SourceLocation, severity_word};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The findings of campaigns as a log of one run. A finding without a place is shown at the campaign file.
///
/// Columns are in UTF-16 units: the default of the standard (SARIF 3.14.17), stated explicitly.
#[must_use]
pub fn render_sarif(findings: &[(&Path, Finding)]) -> Value {
    let mut rules: Vec<&'static Rule> = Vec::new();
    for (_, finding) in findings {
        if !rules.contains(&finding.rule) {
            rules.push(finding.rule);
        }
    }
    let results: Vec<Value> = findings.iter().map(|(file, finding)| result_json(file, finding, &rules)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "campaign",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|each| rule_json(each)).collect::<Vec<_>>(),
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
    json!({
        "ruleId": finding.rule.id,
        "ruleIndex": rules.iter().position(|rule| *rule == finding.rule),
        "level": severity_word(finding.severity),
        "message": { "text": format!("{}{help}", finding.message) },
        "locations": [{ "physicalLocation": location }],
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

/// A path as a URI reference: relative as typed, or `file:`.
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

/// A name with percent-encoding for a URI.
fn percent_encode(name: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    name.as_bytes()
        .iter()
        .map(|byte| if plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// The findings of campaigns as workflow commands. A finding without a place is shown at the campaign file.
///
/// The form and the escapes are GitHub's ("Workflow commands for GitHub Actions").
#[must_use]
pub fn render_github_commands(findings: &[(&Path, Finding)]) -> String {
    findings.iter().map(|(file, finding)| format_command(file, finding) + "\n").collect()
}

fn format_command(file: &Path, finding: &Finding) -> String {
    let level = match finding.severity {
        Severity::Note => "notice",
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    let mut at = match &finding.place {
        Some(place) => format!(
            "file={},line={},col={}",
            escape_property(&place.source.path().display().to_string()),
            place.line_number(),
            place.column_number()
        ),
        None => format!("file={}", escape_property(&file.display().to_string())),
    };
    at += &format!(",title={}", escape_property(finding.rule.id));
    let help = finding.help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    format!("::{level} {at}::{}", escape_data(&format!("{}{help}", finding.message)))
}

/// Escapes the text after the second `::`.
fn escape_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property.
fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
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
