//! Findings as GitHub workflow commands, one on each line. GitHub shows them at the line of the file.

use std::path::Path;

use super::{Finding, Severity};

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

/// The text after the second `::`.
fn escape_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property.
fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
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
