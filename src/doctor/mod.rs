//! `campaign doctor`: checks this machine, the ledger and the gateways, and names a remedy for each problem.
//!
//! It sends no messages. It neither creates nor upgrades a ledger.

mod gateways;
mod ledger;
mod machine;

use serde_json::{Value, json};

use super::args::DoctorArgs;
use super::context::Context;
use super::exit::{CommandFailure, Explanation};
use super::text::{Span, SpanMeaning, StyledLine, StyledText, bad, caution, dim, good, plain, span, strong};
use super::{args, exit};
use campaign_engine::report::format_count;
use gateways::ProfileChecks;
use machine::ClockWatch;

/// The width of the labels, which the texts follow.
const LABEL_WIDTH: usize = 12;

/// The verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckStatus {
    /// The check found no problem.
    Ok,
    /// The check passed, but something needs attention.
    Warning,
    /// The check failed; the command exits with this code.
    Failed(u8),
    /// The check was impossible, or there is nothing to check.
    Skipped,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct CheckResult {
    /// The name in JSON.
    check: &'static str,
    /// The gateway profile, if the check is about one.
    gateway: Option<String>,
    status: CheckStatus,
    /// The finding, as a fragment.
    message: String,
    /// The remedy.
    help: Option<String>,
}

impl CheckResult {
    fn new(check: &'static str, status: CheckStatus, message: impl Into<String>) -> Self {
        Self { check, gateway: None, status, message: message.into(), help: None }
    }

    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, CheckStatus::Ok, message)
    }

    fn skipped(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, CheckStatus::Skipped, message)
    }

    fn warning(check: &'static str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(check, CheckStatus::Warning, message).with_help(help)
    }

    fn failed(check: &'static str, code: u8, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(check, CheckStatus::Failed(code), message).with_help(help)
    }

    /// Creates a failed check with the message and the remedy of a failure. `fallback_help` is the remedy if the
    /// failure itself names no remedy.
    fn from_failure(check: &'static str, failure: Explanation, fallback_help: impl Into<String>) -> Self {
        let Explanation { exit, message, help, .. } = failure;
        let (message, remedy) = split_remedy(&message.replace("; nothing was sent", ""));
        Self::failed(check, exit, message, help.or(remedy).unwrap_or_else(|| fallback_help.into()))
    }

    fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    fn with_gateway(self, gateway: &str) -> Self {
        Self { gateway: Some(gateway.to_owned()), ..self }
    }

    /// The label in the text output.
    fn label(&self) -> &'static str {
        match self.check {
            "state-folder" => "state folder",
            "disk" => "disk space",
            "time-zone" => "time zone",
            "profiles" => "gateways",
            check => check,
        }
    }

    fn lines(&self) -> [Option<StyledLine>; 2] {
        let (mark, label) = match self.status {
            CheckStatus::Ok => (good("✓"), strong(format!("{:LABEL_WIDTH$}", self.label()))),
            CheckStatus::Warning => (caution("!"), strong(format!("{:LABEL_WIDTH$}", self.label()))),
            CheckStatus::Failed(_) => (bad("✗"), strong(format!("{:LABEL_WIDTH$}", self.label()))),
            CheckStatus::Skipped => (dim("·"), dim(format!("{:LABEL_WIDTH$}", self.label()))),
        };
        let message = match &self.gateway {
            Some(gateway) => format!("{gateway}: {}", self.message),
            None => self.message.clone(),
        };
        let indent = LABEL_WIDTH + 3;
        let result = StyledLine::with_mark_and_label(mark, label, &message).with_hang(indent);
        let remedy = |help: &String| {
            StyledLine::with_label(span(SpanMeaning::Next, "help:"), help).with_indent(indent).with_hang(6)
        };
        [Some(result), self.help.as_ref().map(remedy)]
    }

    fn to_json(&self) -> Value {
        let status = match self.status {
            CheckStatus::Ok => "ok",
            CheckStatus::Warning => "warning",
            CheckStatus::Failed(_) => "failed",
            CheckStatus::Skipped => "skipped",
        };
        json!({
            "check": self.check, "gateway": self.gateway, "status": status, "message": self.message, "help": self.help,
        })
    }
}

/// Splits a message such as `the variable is not set; set it to the key` into the problem and its remedy.
fn split_remedy(message: &str) -> (String, Option<String>) {
    match message.split_once("; ") {
        Some((problem, remedy)) => (problem.to_owned(), Some(remedy.to_owned())),
        None => (message.to_owned(), None),
    }
}

pub(super) async fn run_doctor(context: &Context, args: &DoctorArgs) -> Result<u8, CommandFailure> {
    // The permissions check reports the same problems.
    context.exposure.mute();
    let state = context.state_folder()?;
    let profiles = ProfileChecks::find(context, args.gateway.as_deref())?;
    let spinner = context.output.show_spinner("Checking…");
    let watch = ClockWatch::start();
    let ledger = ledger::check_ledger(context).await;
    let gateways = profiles.run(context, &ledger.access).await;
    let clock = watch.check(&gateways.times, ledger.latest_run.as_ref());
    drop(spinner);
    let first_results = [machine::check_state_folder(&state), machine::check_disk(&state), ledger.result, clock];
    let last_results = [machine::check_time_zone(), machine::check_permissions(context, &state)];
    let results: Vec<CheckResult> = first_results.into_iter().chain(gateways.results).chain(last_results).collect();
    Ok(report_results(context, &results))
}

/// Prints the results, and returns the exit code of the most serious failure.
fn report_results(context: &Context, results: &[CheckResult]) -> u8 {
    let codes = results.iter().filter_map(|result| match result.status {
        CheckStatus::Failed(code) => Some(code),
        CheckStatus::Ok | CheckStatus::Warning | CheckStatus::Skipped => None,
    });
    let code = codes.fold(exit::SUCCESS, exit::more_severe_code);
    let count =
        |is_counted: fn(CheckStatus) -> bool| results.iter().filter(|result| is_counted(result.status)).count() as u64;
    let failed = count(|status| matches!(status, CheckStatus::Failed(_)));
    let warnings = count(|status| status == CheckStatus::Warning);
    let problems = format_count(failed, "problem");
    if context.output.json {
        let checks: Vec<Value> = results.iter().map(CheckResult::to_json).collect();
        let mut object = json!({ "program": args::program_version(), "checks": checks, "exit": code });
        if failed > 0 {
            object["error"] = format!("{problems} found").into();
        }
        context.output.print_object(&object);
        return code;
    }
    let mut text = StyledText::new();
    text.add_line(0, [dim(format!("campaign {}", args::program_version()))]);
    for line in results.iter().flat_map(CheckResult::lines).flatten() {
        text.push(line);
    }
    text.add_blank();
    let warning_spans: Vec<Span> = match warnings {
        0 => Vec::new(),
        _ => vec![plain(", "), caution(format_count(warnings, "warning"))],
    };
    text.push(match (failed, warnings) {
        (0, 0) => StyledLine::success([plain("no problems found")]),
        (0, _) => StyledLine::attention([plain(format!("no problems, {}", format_count(warnings, "warning")))]),
        _ => StyledLine::failure([bad(problems)].into_iter().chain(warning_spans)),
    });
    // A failure code makes `print_done` print the warnings even if the command is quiet.
    context.output.print_done(text, if warnings > 0 { exit::INVALID } else { code });
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_serious_failure_decides_the_exit_code() {
        let order = [exit::STORAGE, exit::INVALID, exit::REFUSED_KEY, exit::STOPPED, exit::SUCCESS];
        for (index, more_severe) in order.iter().enumerate() {
            for less_severe in &order[index..] {
                assert_eq!(exit::more_severe_code(*more_severe, *less_severe), *more_severe);
                assert_eq!(exit::more_severe_code(*less_severe, *more_severe), *more_severe);
            }
        }
    }

    #[test]
    fn every_failed_check_has_a_remedy() {
        let failure = |message: &str, help: Option<&str>| {
            let explanation = Explanation {
                exit: exit::STORAGE,
                message: message.to_owned(),
                findings: Vec::new(),
                help: help.map(str::to_owned),
            };
            let result = CheckResult::from_failure("ledger", explanation, "ask for help");
            (result.message, result.help.expect("a remedy"))
        };
        let expected = |message: &str, help: &str| (message.to_owned(), help.to_owned());
        assert_eq!(failure("it failed", None), expected("it failed", "ask for help"));
        assert_eq!(failure("it failed; wait", None), expected("it failed", "wait"));
        assert_eq!(failure("it failed; nothing was sent", Some("wait")), expected("it failed", "wait"));
    }
}
