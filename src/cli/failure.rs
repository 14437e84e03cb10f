//! The failures that end a command, each with its message, its findings, its hint and its exit code.
//!
//! Errors of `runs` have their messages. What to do next is in `hint`, and the exit codes are in `exit`.

use std::path::Path;

use super::exit;
use super::hint::error_hint;
use super::suggested::{RepeatedOptions, shell_path};
use crate::finding::{Finding, quote_for_shell, rules};
use crate::ledger::LedgerError;
use crate::regular_file::ran_out_of_handles;
use crate::report::ResultsError;
use crate::runs::Error;

/// Why a command ended without its result.
#[derive(Debug)]
pub(super) enum CommandFailure {
    /// What the command itself has to say.
    Explained(Explanation),
    /// What a run could not do.
    Run(Box<Error>),
}

/// A failure as it is told.
#[derive(Debug)]
pub(super) struct Explanation {
    pub(super) exit: u8,
    /// One sentence; the findings, where there are any, tell the rest.
    pub(super) message: String,
    pub(super) findings: Vec<Finding>,
    /// What to do next, if that has a line of its own.
    pub(super) help: Option<String>,
}

impl CommandFailure {
    pub(super) fn new(exit: u8, message: impl Into<String>) -> Self {
        Self::Explained(Explanation::new(exit, message))
    }

    /// An input is wrong, or could not be opened for want of a handle, which no input is to blame for.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::Explained(Explanation::invalid(message))
    }

    /// Inputs are wrong in these ways, which this message sums up.
    pub(super) fn with_findings(message: impl Into<String>, findings: Vec<Finding>) -> Self {
        Self::Explained(Explanation { findings, ..Explanation::invalid(message) })
    }

    /// The same failure with what to do next.
    pub(super) fn with_help(self, help: impl Into<String>) -> Self {
        match self {
            Self::Explained(explanation) => Self::Explained(Explanation { help: Some(help.into()), ..explanation }),
            run @ Self::Run(_) => run,
        }
    }

    /// Something in the state folder or the results could not be written or read.
    pub(super) fn storage_failure(message: impl std::fmt::Display) -> Self {
        Self::new(exit::STORAGE, message.to_string())
    }

    /// How it is shown; suggested commands have these options.
    pub(super) fn into_explanation(self, options: &RepeatedOptions) -> Explanation {
        match self {
            CommandFailure::Explained(explanation) => explanation,
            CommandFailure::Run(error) => Explanation::of_run_error(&error, options),
        }
    }
}

impl Explanation {
    fn new(exit: u8, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), findings: Vec::new(), help: None }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::new(if ran_out_of_handles() { exit::STORAGE } else { exit::INVALID }, message)
    }

    /// An error of `runs`; suggested commands have these options.
    pub(super) fn of_run_error(error: &Error, options: &RepeatedOptions) -> Self {
        // An input that could not be opened for want of a handle is not wrong.
        let exit = match exit::code_of_error(error) {
            exit::INVALID if ran_out_of_handles() => exit::STORAGE,
            exit => exit,
        };
        let findings = match error {
            Error::UnknownGateway { name, file, findings } => with_gateway_to_add(name, file, findings, options),
            error => error.findings().to_vec(),
        };
        Self { exit, message: error.to_string(), findings, help: error_hint(error, options) }
    }

    /// The message with the hint on one line.
    pub(super) fn to_single_line(&self) -> String {
        match &self.help {
            Some(help) => format!("{}; {help}", self.message),
            None => self.message.clone(),
        }
    }
}

/// The findings, with the command that adds an unknown gateway, unless its name is probably misspelt.
fn with_gateway_to_add(name: &str, campaign: &Path, findings: &[Finding], options: &RepeatedOptions) -> Vec<Finding> {
    let add = options.command(format!("gateway add {} --for {}", quote_for_shell(name), shell_path(campaign)));
    let mut findings = findings.to_vec();
    let unknown = findings.iter_mut().filter(|finding| *finding.rule == rules::UNKNOWN_GATEWAY);
    for unknown in unknown.filter(|finding| !finding.help.as_ref().is_some_and(|help| help.ends_with('?'))) {
        let known = unknown.help.take().map(|known| format!("{known}; ")).unwrap_or_default();
        unknown.help = Some(format!("{known}to add it: {add}"));
    }
    findings
}

impl From<Error> for CommandFailure {
    fn from(error: Error) -> Self {
        CommandFailure::Run(Box::new(error))
    }
}

impl From<LedgerError> for CommandFailure {
    fn from(error: LedgerError) -> Self {
        Error::from(error).into()
    }
}

impl From<ResultsError> for CommandFailure {
    fn from(error: ResultsError) -> Self {
        Error::from(error).into()
    }
}
