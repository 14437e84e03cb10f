//! `campaign check --tests-only`, and the results of tests as text, JSON and JUnit XML.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::args::{CheckArgs, Format};
use super::context::Context;
use super::exit::{self, CommandFailure};
use super::output::Output;
use super::text::{StyledLine, StyledText, bad, caution, dim, good, plain, strong};
use campaign_core::finding::{
    Finding, SourceLocation, findings_json, render_github_commands, render_sarif, rules, severity_word,
};
use campaign_engine::check::{TestOutcome, TestResult};
use campaign_engine::report::format_count;
use campaign_runs::run_campaign_tests;

/// The results of the tests of a campaign file.
pub(super) struct TestedFile {
    /// The file as typed.
    file: PathBuf,
    tests: Vec<TestResult>,
    /// The findings that do not belong to a test.
    others: Vec<Finding>,
}

impl TestedFile {
    /// The results of a file, and all findings about it.
    pub(super) fn new(file: &Path, tests: Vec<TestResult>, findings: &[Finding]) -> Self {
        let belongs_to_test = |finding: &&Finding| tests.iter().any(|test| test.findings.contains(finding));
        let others = findings.iter().filter(|finding| !belongs_to_test(finding)).cloned().collect();
        Self { file: file.to_owned(), tests, others }
    }

    fn count(&self, outcome: TestOutcome) -> u64 {
        self.tests.iter().filter(|test| test.outcome == outcome).count() as u64
    }

    /// All findings, without duplicates: several tests can have the same finding about a text.
    fn findings(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.others.clone();
        for finding in self.tests.iter().flat_map(|test| &test.findings) {
            if !findings.contains(finding) {
                findings.push(finding.clone());
            }
        }
        findings
    }

    /// Renders the file with the outcome of each test.
    fn render(&self) -> StyledText {
        let name = strong(self.file.display().to_string());
        let (failed, passed) = (self.count(TestOutcome::Failed), self.count(TestOutcome::Passed));
        let not_run = self.count(TestOutcome::NotRun);
        let counts = describe_counts(&self.tests);
        let has_errors = failed > 0 || self.findings().iter().any(Finding::is_error);
        let mut text = StyledText::from(match (has_errors, self.tests.is_empty()) {
            (true, true) => StyledLine::new([bad("✗ "), name, plain(" has errors, so its tests were not run")]),
            (true, false) => StyledLine::new([bad("✗ "), name, plain(format!(": {counts}"))]),
            (false, true) => StyledLine::new([caution("! "), name, plain(" has no tests")]),
            (false, false) if passed == 0 && not_run > 0 => {
                StyledLine::new([caution("! "), name, plain(format!(": {counts}"))])
            }
            (false, false) => StyledLine::new([good("✓ "), name, plain(format!(": {counts}"))]),
        });
        for test in &self.tests {
            let (mark, end) = match test.outcome {
                TestOutcome::Passed => (good("✓ "), plain("")),
                TestOutcome::Failed => (bad("✗ "), plain("")),
                TestOutcome::NotRun => (caution("! "), dim(" (not run)")),
            };
            text.push(StyledLine::new([mark, plain(test.name.clone()), end]).with_indent(2));
        }
        text
    }
}

/// The number of tests by outcome: `3 tests passed, 1 failed`.
pub(super) fn describe_counts(tests: &[TestResult]) -> String {
    let outcomes = [(TestOutcome::Passed, "passed"), (TestOutcome::Failed, "failed"), (TestOutcome::NotRun, "not run")];
    let mut counts: Vec<String> = Vec::new();
    for (outcome, word) in outcomes {
        let count = tests.iter().filter(|test| test.outcome == outcome).count() as u64;
        match (count, counts.is_empty()) {
            (0, _) => {}
            (count, true) => counts.push(format!("{} {word}", format_count(count, "test"))),
            (count, false) => counts.push(format!("{count} {word}")),
        }
    }
    counts.join(", ")
}

/// The results as JSON, one object for each test.
pub(super) fn tests_json(file: &Path, tests: &[TestResult]) -> Vec<Value> {
    let to_json = |test: &TestResult| {
        json!({
            "file": file,
            "name": test.name,
            "line": test.place.as_ref().map(SourceLocation::line_number),
            "outcome": outcome_word(test.outcome),
        })
    };
    tests.iter().map(to_json).collect()
}

fn outcome_word(outcome: TestOutcome) -> &'static str {
    match outcome {
        TestOutcome::Passed => "passed",
        TestOutcome::Failed => "failed",
        TestOutcome::NotRun => "not_run",
    }
}

/// Runs only the tests of the files, without the ledger.
pub(super) async fn test_campaigns(context: &Context, args: &CheckArgs) -> Result<u8, CommandFailure> {
    let mut tested_files = Vec::new();
    let spinner = context.output.show_spinner("Running the tests…");
    for file in &args.files {
        tested_files.push(match test_file(context, args, file).await {
            Ok(tests) => TestedFile::new(file, tests, &[]),
            Err(failure) => TestedFile::new(file, Vec::new(), &findings_from_failure(context, failure)?),
        });
    }
    drop(spinner);
    let findings: Vec<(&Path, Finding)> = tested_files
        .iter()
        .flat_map(|tests| tests.findings().into_iter().map(|finding| (tests.file.as_path(), finding)))
        .map(|(file, finding)| (file, if args.strict { finding.into_strict() } else { finding }))
        .collect();
    let code = if findings.iter().any(|(_, finding)| finding.is_error()) { exit::INVALID } else { exit::SUCCESS };
    if print_for_other_programs(&context.output, args.format, &findings, &tested_files) {
        return Ok(code);
    }
    let findings: Vec<Finding> = findings.into_iter().map(|(_, finding)| finding).collect();
    if context.output.json {
        let tests: Vec<Value> = tested_files.iter().flat_map(|file| tests_json(&file.file, &file.tests)).collect();
        let findings = findings_json(&findings);
        context.output.print_object(&json!({ "findings": findings, "tests": tests, "exit": code }));
        return Ok(code);
    }
    context.output.print_findings(&findings);
    let mut text = StyledText::new();
    tested_files.iter().for_each(|file| text.extend(file.render()));
    context.output.print_done(text, code);
    Ok(code)
}

/// Prints the result of a check in a format for other programs, such as SARIF. Prints nothing and returns `false` for
/// text and JSON.
pub(super) fn print_for_other_programs(
    output: &Output,
    format: Option<Format>,
    findings: &[(&Path, Finding)],
    tested_files: &[TestedFile],
) -> bool {
    match format {
        Some(Format::Github) => output.print_unwrapped(&render_github_commands(findings)),
        Some(Format::Sarif) => output.print_foreign_json(&render_sarif(findings)),
        Some(Format::Junit) => output.print_unwrapped(&render_junit(tested_files)),
        Some(Format::Text | Format::Json) | None => return false,
    }
    true
}

/// Runs the tests of a file.
pub(super) async fn test_file(
    context: &Context,
    args: &CheckArgs,
    file: &Path,
) -> Result<Vec<TestResult>, CommandFailure> {
    let inputs = context.load_campaign(file, args.gateway.as_deref())?;
    // The ledger is needed only for a list that comes from an earlier run.
    let ledger = if args.list.fetch { context.open_existing_ledger().await? } else { None };
    let inputs = context.fetch_list(inputs, args.list.fetch, ledger.as_deref()).await?;
    Ok(run_campaign_tests(&inputs).await?)
}

/// The findings of a file that cannot be checked.
///
/// # Errors
/// If the failure is not about the file.
pub(super) fn findings_from_failure(
    context: &Context,
    failure: CommandFailure,
) -> Result<Vec<Finding>, CommandFailure> {
    let failure = failure.into_explanation(&context.output.options);
    if failure.exit != exit::INVALID {
        return Err(CommandFailure::Explained(failure));
    }
    if failure.findings.is_empty() {
        let mut finding = Finding::new(&rules::CHECK, failure.message);
        finding.help = failure.help;
        return Ok(vec![finding]);
    }
    Ok(failure.findings)
}

/// The results as JUnit XML: a suite for each file, and a case for each test. The errors of a file that do not belong
/// to a test share one additional case.
fn render_junit(tested_files: &[TestedFile]) -> String {
    let mut suites = String::new();
    let (mut all, mut all_failed, mut all_skipped) = (0, 0, 0);
    for file in tested_files {
        let errors: Vec<&Finding> = file.others.iter().filter(|finding| finding.is_error()).collect();
        let name = escape_xml(&file.file.display().to_string());
        let mut cases = String::new();
        if !errors.is_empty() {
            let _ = writeln!(cases, "    <testcase classname=\"{name}\" name=\"the campaign has no errors\">");
            write_failure(&mut cases, &errors);
            cases.push_str("    </testcase>\n");
        }
        for test in &file.tests {
            write_case(&mut cases, &name, test);
        }
        let count = file.tests.len() as u64 + u64::from(!errors.is_empty());
        let failed = file.count(TestOutcome::Failed) + u64::from(!errors.is_empty());
        let skipped = file.count(TestOutcome::NotRun);
        let _ = writeln!(
            suites,
            "  <testsuite name=\"{name}\" tests=\"{count}\" failures=\"{failed}\" skipped=\"{skipped}\" \
             errors=\"0\">\n{cases}  </testsuite>",
        );
        (all, all_failed, all_skipped) = (all + count, all_failed + failed, all_skipped + skipped);
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"campaign\" tests=\"{all}\" \
         failures=\"{all_failed}\" skipped=\"{all_skipped}\" errors=\"0\">\n{suites}</testsuites>\n"
    )
}

fn write_case(cases: &mut String, file: &str, test: &TestResult) {
    let line = test.place.as_ref().map(|place| format!(" line=\"{}\"", place.line_number())).unwrap_or_default();
    let name = escape_xml(&test.name);
    let _ = write!(cases, "    <testcase classname=\"{file}\" name=\"{name}\" file=\"{file}\"{line}");
    match test.outcome {
        TestOutcome::Passed => cases.push_str("/>\n"),
        TestOutcome::Failed => {
            cases.push_str(">\n");
            let errors: Vec<&Finding> = test.findings.iter().filter(|finding| finding.is_error()).collect();
            write_failure(cases, &errors);
            cases.push_str("    </testcase>\n");
        }
        TestOutcome::NotRun => {
            let message = test.findings.first().map(|finding| escape_xml(&finding.message)).unwrap_or_default();
            let _ = writeln!(cases, ">\n      <skipped message=\"{message}\"/>\n    </testcase>");
        }
    }
}

/// Writes one failure with all findings, because readers of JUnit XML expect one failure per case.
fn write_failure(cases: &mut String, findings: &[&Finding]) {
    let Some(first) = findings.first() else { return };
    let (message, rule) = (escape_xml(&first.message), first.rule.id);
    let _ = write!(cases, "      <failure message=\"{message}\" type=\"{rule}\">");
    let described: Vec<String> = findings.iter().map(|finding| describe_finding(finding)).collect();
    let _ = writeln!(cases, "{}</failure>", escape_xml(&described.join("\n")));
}

/// A finding on one line, and its help.
fn describe_finding(finding: &Finding) -> String {
    let place = finding
        .place
        .as_ref()
        .map(|place| format!("{}:{}:{}: ", place.source.path().display(), place.line_number(), place.column_number()));
    let help = finding.help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    let severity = severity_word(finding.severity);
    format!("{}{severity}[{}]: {}{help}", place.unwrap_or_default(), finding.rule.id, finding.message)
}

/// Escapes a text for XML 1.0. Control characters that XML cannot contain are replaced.
fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_becomes_valid_xml() {
        assert_eq!(
            escape_xml("a < b & \"c\"\n\u{1}\u{ffff}Олена"),
            "a &lt; b &amp; &quot;c&quot;&#10;\u{fffd}\u{fffd}Олена"
        );
    }
}
