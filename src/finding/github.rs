//! Findings as GitHub workflow commands, one on each line. GitHub shows them at the line of the file.

use std::path::Path;

use super::{Finding, Severity};

/// The findings of campaigns as workflow commands. A finding without a place is shown at the campaign file.
///
/// The form and the escapes are GitHub's ("Workflow commands for GitHub Actions").
#[must_use]
pub fn github(findings: &[(&Path, Finding)]) -> String {
    findings.iter().map(|(file, finding)| command(file, finding) + "\n").collect()
}

fn command(file: &Path, finding: &Finding) -> String {
    let level = match finding.severity {
        Severity::Note => "notice",
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    let mut at = match &finding.place {
        Some(place) => format!(
            "file={},line={},col={}",
            property(&place.source.path().display().to_string()),
            place.line(),
            place.column()
        ),
        None => format!("file={}", property(&file.display().to_string())),
    };
    at += &format!(",title={}", property(finding.rule.id));
    let help = finding.help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    format!("::{level} {at}::{}", data(&format!("{}{help}", finding.message)))
}

/// The text after the second `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Place, RULE_TEXT, Rule, Source};

    static RULE: Rule = Rule::warning("odd", RULE_TEXT);

    #[test]
    fn a_finding_is_a_command_whose_texts_end_no_line_and_begin_no_property() {
        let source = Source::new("a,b:c.yaml", "name: x\n");
        let finding =
            Finding::new(&RULE, "100 % odd:\nreally").at(Place::new(&source, 6..7)).help("write `x`,\r\nor `y`");
        assert_eq!(
            github(&[(Path::new("a.yaml"), finding), (Path::new("d.yaml"), Finding::new(&RULE, "x"))]),
            "::warning file=a%2Cb%3Ac.yaml,line=1,col=7,title=odd::100 %25 odd:%0Areally%0Ahelp: write `x`,%0D%0Aor `y`\n\
             ::warning file=d.yaml,title=odd::x\n"
        );
    }
}
