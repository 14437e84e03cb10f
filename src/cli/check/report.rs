//! The report of `campaign check` about one campaign: what it would send, and what is worth a look.

use std::path::Path;

use super::FileCheck;
use crate::check::online::Cost;
use crate::cli::forecast::{self, WIDTH};
use crate::cli::text::{Line, Meaning, Text, bad, caution, dim, good, plain, span, strong};
use crate::finding::{Finding, PROSE, Severity, one_line};
use crate::report::{plural, thousands};

/// The first line: whether the campaign can be sent. `is_strict` tells that only `--strict` makes errors of the findings.
pub(super) fn header(file: &Path, findings: &[Finding], is_strict: bool) -> Line {
    let errors = findings.iter().filter(|finding| finding.is_error()).count() as u64;
    let name = strong(file.display().to_string());
    // A list that is only fetched by a run has no rows to report on.
    if errors == 0 {
        return Line::new([caution("! "), name, plain(" has no errors so far: its list was not checked")]);
    }
    match is_strict {
        true => Line::new([bad("✗ "), name, plain(format!(" fails `--strict`: {}", plural(errors, "warning")))]),
        false => Line::new([bad("✗ "), name, plain(format!(" cannot be sent: {}", plural(errors, "error")))]),
    }
}

/// The report; `is_ready` tells that there are no errors besides those that `--strict` makes. At a terminal of so many
/// columns it has the warnings and notes too.
pub(super) fn of(file: &Path, checked: &FileCheck, is_ready: bool, columns: Option<usize>) -> Text {
    let FileCheck { findings, cost, forecast, samples, inputs, variants, online, .. } = checked;
    let warnings = findings.iter().filter(|finding| finding.severity == Severity::Warning).count() as u64;
    let mut text = match findings.iter().any(Finding::is_error) {
        true => Text::from(header(file, findings, is_ready)),
        false if forecast.messages == 0 => {
            let none = format!(" has no messages to send: 0 of {}", plural(forecast.rows, "recipient"));
            Text::from(Line::new([caution("! "), strong(file.display().to_string()), plain(none)]))
        }
        false => {
            let recipients = plural(forecast.rows, "recipient");
            let mut ready = format!(" is ready: {} of {recipients}", thousands(forecast.messages));
            if warnings > 0 {
                ready += &format!(", {}", plural(warnings, "warning"));
            }
            Text::from(Line::new([good("✓ "), strong(file.display().to_string()), plain(ready)]))
        }
    };
    let mut forecast = forecast.clone();
    let balance = online.as_ref().and_then(|online| online.balance.as_ref());
    if forecast.currency.is_none() {
        forecast.currency = balance.map(|balance| balance.currency.clone());
    }
    forecast::recipients(&mut text, &forecast, inputs);
    if forecast.messages > 0 {
        forecast::heading(&mut text, "Messages");
        forecast::messages(&mut text, &forecast);
        let known = online.as_ref().map(|online| &online.cost).or(cost.as_ref());
        if let Some(Cost::Unknown(channels)) = known
            && !channels.is_empty()
        {
            forecast::labelled(&mut text, "cost", [forecast::unknown_cost(channels).into()]);
        }
        if let Some(variants) = variants {
            forecast::labelled(&mut text, "variants", [variants.as_str().into()]);
        }
    }
    if let Some(balance) = balance {
        let money = format!("{} {}", balance.amount, balance.currency);
        forecast::labelled(&mut text, "balance", [money.trim_end().into()]);
    }
    if let Some(columns) = columns {
        section(&mut text, findings, Severity::Warning, columns);
        section(&mut text, findings, Severity::Note, columns);
    }
    forecast::samples(&mut text, samples, columns.unwrap_or(WIDTH));
    text
}

/// Adds the findings of a severity.
fn section(text: &mut Text, findings: &[Finding], severity: Severity, columns: usize) {
    let mut found = findings.iter().filter(|finding| finding.severity == severity).peekable();
    if found.peek().is_none() {
        return;
    }
    let (title, mark) = match severity {
        Severity::Warning => ("Warnings", span(Meaning::Caution, "! ")),
        Severity::Note | Severity::Error => ("Notes", span(Meaning::Dim, "· ")),
    };
    forecast::heading(text, title);
    for finding in found {
        let message = one_line(&finding.message);
        let rule = finding.rule.id;
        // The rule stands at the right edge if there is room for it.
        let used = 4 + console::measure_text_width(&message) + rule.len();
        let gap = " ".repeat(columns.min(PROSE).saturating_sub(used).max(2));
        text.push(Line::new([mark.clone(), plain(message), plain(gap), dim(rule)]).indented(2));
        if let Some(place) = &finding.place {
            let at = format!("{}:{}:{}", place.source.path().display(), place.line(), place.column());
            text.push(Line::new([dim(at)]).indented(4).whole());
        }
        if let Some(help) = &finding.help {
            for (index, line) in help.lines().enumerate() {
                let label = if index == 0 { "help: " } else { "" };
                text.line(4, [span(Meaning::Next, label), plain(line)]);
            }
        }
    }
}
