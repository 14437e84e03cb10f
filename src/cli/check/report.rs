//! The report of `campaign check` about one campaign: what it would send, and what is worth a look.

use std::path::Path;

use super::FileCheck;
use crate::check::online::Cost;
use crate::cli::forecast::{self, SAMPLE_WIDTH};
use crate::cli::text::{SpanMeaning, StyledLine, StyledText, bad, caution, dim, good, plain, span, strong};
use crate::finding::{Finding, PROSE_WIDTH, Severity, escape_to_one_line};
use crate::report::{format_count, format_thousands};

/// The first line: whether the campaign can be sent. `is_strict` tells that only `--strict` makes errors of the findings.
pub(super) fn ready_line(file: &Path, findings: &[Finding], is_strict: bool) -> StyledLine {
    let errors = findings.iter().filter(|finding| finding.is_error()).count() as u64;
    let name = strong(file.display().to_string());
    // A list that is only fetched by a run has no rows to report on.
    if errors == 0 {
        return StyledLine::new([caution("! "), name, plain(" has no errors so far: its list was not checked")]);
    }
    match is_strict {
        true => {
            StyledLine::new([bad("✗ "), name, plain(format!(" fails `--strict`: {}", format_count(errors, "warning")))])
        }
        false => {
            StyledLine::new([bad("✗ "), name, plain(format!(" cannot be sent: {}", format_count(errors, "error")))])
        }
    }
}

/// The report; `is_ready` tells that there are no errors besides those that `--strict` makes. At a terminal of so many
/// columns it has the warnings and notes too.
pub(super) fn render_report(file: &Path, checked: &FileCheck, is_ready: bool, columns: Option<usize>) -> StyledText {
    let FileCheck { findings, cost, forecast, samples, inputs, variants, online, .. } = checked;
    let warnings = findings.iter().filter(|finding| finding.severity == Severity::Warning).count() as u64;
    let mut text = match findings.iter().any(Finding::is_error) {
        true => StyledText::from(ready_line(file, findings, is_ready)),
        false if forecast.messages == 0 => {
            let none = format!(" has no messages to send: 0 of {}", format_count(forecast.rows, "recipient"));
            StyledText::from(StyledLine::new([caution("! "), strong(file.display().to_string()), plain(none)]))
        }
        false => {
            let recipients = format_count(forecast.rows, "recipient");
            let mut ready = format!(" is ready: {} of {recipients}", format_thousands(forecast.messages));
            if warnings > 0 {
                ready += &format!(", {}", format_count(warnings, "warning"));
            }
            StyledText::from(StyledLine::new([good("✓ "), strong(file.display().to_string()), plain(ready)]))
        }
    };
    let mut forecast = forecast.clone();
    let balance = online.as_ref().and_then(|online| online.balance.as_ref());
    if forecast.currency.is_none() {
        forecast.currency = balance.map(|balance| balance.currency.clone());
    }
    forecast::add_recipients(&mut text, &forecast, inputs);
    if forecast.messages > 0 {
        forecast::add_heading(&mut text, "Messages");
        forecast::add_messages(&mut text, &forecast);
        let known = online.as_ref().map(|online| &online.cost).or(cost.as_ref());
        if let Some(Cost::Unknown(channels)) = known
            && !channels.is_empty()
        {
            forecast::add_labelled(&mut text, "cost", [forecast::describe_unknown_cost(channels).into()]);
        }
        if let Some(variants) = variants {
            forecast::add_labelled(&mut text, "variants", [variants.as_str().into()]);
        }
    }
    if let Some(balance) = balance {
        let money = format!("{} {}", balance.amount, balance.currency);
        forecast::add_labelled(&mut text, "balance", [money.trim_end().into()]);
    }
    if let Some(columns) = columns {
        add_findings(&mut text, findings, Severity::Warning, columns);
        add_findings(&mut text, findings, Severity::Note, columns);
    }
    forecast::add_samples(&mut text, samples, columns.unwrap_or(SAMPLE_WIDTH));
    text
}

/// Adds the findings of a severity.
fn add_findings(text: &mut StyledText, findings: &[Finding], severity: Severity, columns: usize) {
    let mut found = findings.iter().filter(|finding| finding.severity == severity).peekable();
    if found.peek().is_none() {
        return;
    }
    let (title, mark) = match severity {
        Severity::Warning => ("Warnings", span(SpanMeaning::Caution, "! ")),
        Severity::Note | Severity::Error => ("Notes", span(SpanMeaning::Dim, "· ")),
    };
    forecast::add_heading(text, title);
    for finding in found {
        let message = escape_to_one_line(&finding.message);
        let rule = finding.rule.id;
        // The rule stands at the right edge if there is room for it.
        let used = 4 + console::measure_text_width(&message) + rule.len();
        let gap = " ".repeat(columns.min(PROSE_WIDTH).saturating_sub(used).max(2));
        text.push(StyledLine::new([mark.clone(), plain(message), plain(gap), dim(rule)]).with_indent(2));
        if let Some(place) = &finding.place {
            let at = format!("{}:{}:{}", place.source.path().display(), place.line_number(), place.column_number());
            text.push(StyledLine::new([dim(at)]).with_indent(4).unbroken());
        }
        if let Some(help) = &finding.help {
            for (index, line) in help.lines().enumerate() {
                let label = if index == 0 { "help: " } else { "" };
                text.add_line(4, [span(SpanMeaning::Next, label), plain(line)]);
            }
        }
    }
}
