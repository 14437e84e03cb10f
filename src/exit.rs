//! Exit codes, and the failures that end a command: message, findings, hint and exit code.

use std::path::Path;

use super::hint::error_hint;
use super::suggested::{RepeatedOptions, shell_path};
use campaign_core::finding::{Finding, quote_for_shell, rules};
use campaign_core::regular_file::has_run_out_of_file_handles;
use campaign_engine::report::{FAILED_STATES, IN_DOUBT_STATES, ResultsError};
use campaign_gateway::FailureCause;
use campaign_ledger::{LedgerError, RowState, Run, RunProgress, StateCounts, StopKind};
use campaign_runs::{
    BackupRefusal, Error, InputChanges, NothingLeft, ReconciledRun, ReleasedRun, RetryRefusal, StaleResults,
    TemplateRefusal,
};

/// Success. After a run: no row was rejected, invalid, failed or in doubt.
pub(super) const SUCCESS: u8 = 0;
pub(super) const BUG: u8 = 1;
/// The command line or an input is invalid. The command sent nothing.
pub(super) const INVALID: u8 = 2;
/// Finished, with rejected or invalid rows.
pub(super) const REJECTIONS: u8 = 3;
/// Finished, with rows in doubt.
pub(super) const IN_DOUBT: u8 = 4;
/// Stopped before the end.
pub(super) const STOPPED: u8 = 5;
/// Another process is sending the run.
pub(super) const BUSY: u8 = 6;
/// The gateway rejected the key.
pub(super) const REFUSED_KEY: u8 = 7;
/// The ledger or the results could not be read or written, or the system refused a resource.
pub(super) const STORAGE: u8 = 74;
/// A process that signal n stops exits with this number plus n.
pub(super) const SIGNAL: u8 = 128;

/// The exit code of a `run` command, determined by the stop reason and the counts. The first matching code applies.
pub(super) fn exit_code_of_end(stop: Option<StopKind>, counts: &StateCounts) -> u8 {
    let any = |states: &[RowState]| states.iter().any(|state| counts.get(*state) > 0);
    match stop {
        Some(StopKind::Ledger | StopKind::ResultsUnwritten) => STORAGE,
        Some(StopKind::Interrupted(signal)) => SIGNAL.saturating_add(signal),
        Some(StopKind::LeaseLost) => BUSY,
        Some(StopKind::KeyRefused) => REFUSED_KEY,
        Some(StopKind::Internal) => BUG,
        Some(
            StopKind::StopRequested
            | StopKind::Breaker
            | StopKind::Unreachable
            | StopKind::OffContract
            | StopKind::Credit
            | StopKind::Budget
            | StopKind::Window
            | StopKind::Halted
            | StopKind::Inconsistent,
        ) => STOPPED,
        None if any(&[RowState::Planned, RowState::Sending]) => STOPPED,
        // The requested rows were processed, so their states determine the exit code.
        Some(StopKind::Limit | StopKind::DeadlineReached) | None if any(&IN_DOUBT_STATES) => IN_DOUBT,
        // Some recipients got no message before the deadline.
        Some(StopKind::DeadlineReached) => REJECTIONS,
        Some(StopKind::Limit) | None if any(&FAILED_STATES) => REJECTIONS,
        Some(StopKind::Limit) | None => SUCCESS,
    }
}

fn exit_code_of_error(error: &Error) -> u8 {
    match error {
        Error::KeyRefused(_) => REFUSED_KEY,
        Error::Unanswered { failure, .. } | Error::Template(TemplateRefusal::Unclear { failure, .. }) => {
            exit_code_of_inquiry(failure.cause)
        }
        Error::Template(TemplateRefusal::NothingDeleted { .. }) => REJECTIONS,
        Error::TooManyThisHour { .. }
        | Error::TooManyInquiries { .. }
        | Error::Retry(RetryRefusal::Unconfirmed { accepted: None, .. }) => STOPPED,
        Error::Busy { .. }
        | Error::BusyRun { .. }
        | Error::NothingToStopYet { .. }
        | Error::Taken { .. }
        | Error::SinglesOnTheirWay { .. } => BUSY,
        Error::InputsChanged(changed) if matches!(changed.changes, InputChanges::Copies { damaged: true, .. }) => {
            STORAGE
        }
        Error::Ledger(LedgerError::Purged { .. } | LedgerError::NotUpgraded { .. })
        | Error::Results(ResultsError::Ledger(LedgerError::Purged { .. })) => INVALID,
        // Building the HTTP client fails only for local reasons, such as certificates or file handles.
        Error::Client(_)
        | Error::Backup(BackupRefusal::NotRestored { .. })
        | Error::LedgerLost { .. }
        | Error::Ledger(_)
        | Error::Results(_)
        | Error::Storage(_) => STORAGE,
        Error::Interrupted { signal, .. } => SIGNAL.saturating_add(*signal),
        Error::Internal(_) => BUG,
        Error::Findings(_)
        | Error::UnknownGateway { .. }
        | Error::Input(_)
        | Error::Template(TemplateRefusal::NoSuchTemplate { .. } | TemplateRefusal::TextUnknown { .. })
        | Error::IdTaken
        | Error::SandboxAccount
        | Error::NoGateway
        | Error::SeveralGateways(_)
        | Error::NoSuchRun { .. }
        | Error::RoundUnfinished { .. }
        | Error::Retry(_)
        | Error::Cancelled { .. }
        | Error::SingleRun { .. }
        | Error::NoCampaign(_)
        | Error::OtherFile { .. }
        | Error::RunsElsewhere { .. }
        | Error::TextChanged { .. }
        | Error::NoGatewayNamed
        | Error::InputsChanged(_)
        | Error::NotConfirmed { .. }
        | Error::OtherNumber { .. }
        | Error::TooManyRecipients { .. }
        | Error::TooManyAbroad { .. }
        | Error::NoSuchRow { .. }
        | Error::Decision(_)
        | Error::RehearsalForgotten { .. }
        | Error::NothingToCancel { .. }
        | Error::HostChanged { .. }
        | Error::WeakerApproval(_)
        | Error::OtherReach { .. }
        | Error::Backup(BackupRefusal::MaySendTwice { .. })
        | Error::ResultsPlace(_)
        | Error::Policy(_)
        | Error::Plan(_)
        | Error::Schedule(_) => INVALID,
    }
}

/// The exit code of an inquiry that failed.
fn exit_code_of_inquiry(cause: FailureCause) -> u8 {
    match cause {
        FailureCause::KeyRefused => REFUSED_KEY,
        FailureCause::Refused => REJECTIONS,
        FailureCause::NotConnected | FailureCause::SlowDown(_) | FailureCause::TimedOut | FailureCause::Unclear => {
            STOPPED
        }
    }
}

/// The exit code of a `run` command that has no recipients to send to.
pub(super) fn exit_code_without_run(nothing: &NothingLeft) -> u8 {
    let code = exit_code_of_end(None, &nothing.selected);
    if nothing.doubt { more_severe_code(code, IN_DOUBT) } else { code }
}

/// The more serious of two exit codes.
pub(super) fn more_severe_code(code: u8, other: u8) -> u8 {
    let rank = |code: u8| match code {
        STORAGE => 0,
        SIGNAL.. => 1,
        INVALID => 2,
        BUSY => 3,
        REFUSED_KEY => 4,
        STOPPED => 5,
        IN_DOUBT => 6,
        REJECTIONS => 7,
        SUCCESS => 8,
        // A bug, or an unknown code.
        _ => 1,
    };
    if rank(other) < rank(code) { other } else { code }
}

/// The exit code of `run` for the current state of a run.
pub(super) fn exit_code_of_run(run: &Run, counts: &StateCounts, is_owned: bool) -> u8 {
    match (is_owned, run.progress) {
        (true, _) => BUSY,
        // An abandoned run keeps its exit code, because no command resumes it.
        (false, RunProgress::Finished) if run.stop_reason.is_some() => exit_code_of_end(run.stop, counts),
        // Without planned rows, the next `run` only finishes the run.
        (false, RunProgress::Open)
            if counts.get(RowState::Planned) > 0 || run.stop.is_some_and(|stop| stop != StopKind::Limit) =>
        {
            STOPPED
        }
        (false, _) => {
            let mut counts = counts.clone();
            // The planned rows of a replaced run will not be sent.
            let planned = counts.get(RowState::Planned);
            counts.shift(RowState::Planned, RowState::Skipped, planned);
            // In a shared run, each process is responsible for the rows that it is sending.
            let sending = if run.shared { counts.get(RowState::Sending) } else { 0 };
            counts.shift(RowState::Sending, RowState::Skipped, sending);
            exit_code_of_end(None, &counts)
        }
    }
}

/// The exit code of a run after `reconcile`, `resolve` or `stop --for-good`. If the results could not be updated, this
/// is the code of a storage failure. A reopened run has the code of a stopped run.
pub(super) fn exit_code_of_released_run(released: &ReleasedRun) -> u8 {
    match released.stale_results {
        Some(StaleResults::Failed(_)) => STORAGE,
        _ if released.reopened => STOPPED,
        _ => exit_code_of_run(&released.run, &released.snapshot.counts, false),
    }
}

/// The exit code of `reconcile`: 0 if no rows are in doubt and the gateway was not asked, otherwise the exit code of
/// `run`. `polled` is the number of other messages that the gateway was asked about.
pub(super) fn exit_code_of_reconciliation(
    ReconciledRun { reconciliation, released }: &ReconciledRun,
    polled: u64,
) -> u8 {
    let counts = &released.snapshot.counts;
    let is_clear = reconciliation.asked + polled == 0 && IN_DOUBT_STATES.iter().all(|state| counts.get(*state) == 0);
    match released.stale_results {
        Some(StaleResults::Failed(_)) => STORAGE,
        _ if is_clear => SUCCESS,
        _ => exit_code_of_released_run(released),
    }
}

/// The reason why a command failed.
#[derive(Debug)]
pub(super) enum CommandFailure {
    /// A failure of the command itself.
    Explained(Explanation),
    /// An error of the `campaign_runs` crate.
    Run(Box<Error>),
}

/// A failure as the user sees it.
#[derive(Debug)]
pub(super) struct Explanation {
    pub(super) exit: u8,
    /// One sentence. Findings contain the details.
    pub(super) message: String,
    pub(super) findings: Vec<Finding>,
    /// The remedy, printed on a `help:` line.
    pub(super) help: Option<String>,
}

impl CommandFailure {
    pub(super) fn new(exit: u8, message: impl Into<String>) -> Self {
        Self::Explained(Explanation::new(exit, message))
    }

    /// Creates a failure for invalid input. If the process has no free file handles, a storage failure is created
    /// instead.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::Explained(Explanation::invalid(message))
    }

    /// Creates a failure for invalid input with findings, which the message summarizes.
    pub(super) fn with_findings(message: impl Into<String>, findings: Vec<Finding>) -> Self {
        Self::Explained(Explanation { findings, ..Explanation::invalid(message) })
    }

    /// Sets the remedy of the failure; an error of the `campaign_runs` crate keeps its own remedy.
    pub(super) fn with_help(self, help: impl Into<String>) -> Self {
        match self {
            Self::Explained(explanation) => Self::Explained(Explanation { help: Some(help.into()), ..explanation }),
            run @ Self::Run(_) => run,
        }
    }

    /// Creates a failure for a state folder or results that could not be read or written.
    pub(super) fn storage_failure(message: impl std::fmt::Display) -> Self {
        Self::new(STORAGE, message.to_string())
    }

    /// Converts the failure into an explanation. Suggested commands repeat `options`.
    pub(super) fn into_explanation(self, options: &RepeatedOptions) -> Explanation {
        match self {
            CommandFailure::Explained(explanation) => explanation,
            CommandFailure::Run(error) => Explanation::from_run_error(&error, options),
        }
    }
}

impl Explanation {
    fn new(exit: u8, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), findings: Vec::new(), help: None }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::new(if has_run_out_of_file_handles() { STORAGE } else { INVALID }, message)
    }

    /// Explains an error of the `campaign_runs` crate. Suggested commands repeat `options`.
    pub(super) fn from_run_error(error: &Error, options: &RepeatedOptions) -> Self {
        // An input that cannot be opened because no file handles are free is not invalid.
        let exit = match exit_code_of_error(error) {
            INVALID if has_run_out_of_file_handles() => STORAGE,
            exit => exit,
        };
        let findings = match error {
            Error::UnknownGateway { name, file, findings } => with_add_gateway_help(name, file, findings, options),
            error => error.findings().to_vec(),
        };
        Self { exit, message: error.to_string(), findings, help: error_hint(error, options) }
    }

    /// The message and its remedy on one line.
    pub(super) fn to_single_line(&self) -> String {
        match &self.help {
            Some(help) => format!("{}; {help}", self.message),
            None => self.message.clone(),
        }
    }
}

/// Adds a help text with the command that creates the unknown gateway, unless the name is probably misspelt.
fn with_add_gateway_help(name: &str, campaign: &Path, findings: &[Finding], options: &RepeatedOptions) -> Vec<Finding> {
    let add = options.command(format!("gateway add {} --for {}", quote_for_shell(name), shell_path(campaign)));
    let mut findings = findings.to_vec();
    let unknown = findings.iter_mut().filter(|finding| *finding.rule == rules::UNKNOWN_GATEWAY);
    for unknown in unknown.filter(|finding| !finding.help.as_ref().is_some_and(|help| help.ends_with('?'))) {
        let help = unknown.help.take().map(|help| format!("{help}; ")).unwrap_or_default();
        unknown.help = Some(format!("{help}to add it: {add}"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_severe_stop_determines_the_exit_code() {
        // A bug always has its own exit code.
        let kinds = StopKind::ALL.into_iter().filter(|kind| *kind != StopKind::Internal);
        let code = |kind: StopKind| exit_code_of_end(Some(kind), &StateCounts::default());
        for (kind, other) in kinds.clone().flat_map(|kind| kinds.clone().map(move |other| (kind, other))) {
            if kind.severity() > other.severity() {
                assert_eq!(more_severe_code(code(kind), code(other)), code(kind), "{kind:?} beside {other:?}");
                assert_ne!(code(kind), code(other), "{kind:?} beside {other:?}");
            }
        }
    }

    #[test]
    fn first_applicable_exit_code_wins() {
        let counts = |states: &[RowState]| {
            let mut counts = StateCounts::default();
            states.iter().for_each(|state| counts.add(*state, 1));
            counts
        };
        let table = [
            (Some(StopKind::Ledger), vec![RowState::InDoubt], 74),
            (Some(StopKind::ResultsUnwritten), vec![RowState::Accepted], 74),
            (Some(StopKind::Interrupted(2)), vec![RowState::Planned], 130),
            (Some(StopKind::Interrupted(15)), vec![RowState::Planned], 143),
            (Some(StopKind::Interrupted(1)), vec![], 129),
            (Some(StopKind::LeaseLost), vec![], 6),
            (Some(StopKind::KeyRefused), vec![RowState::Planned], 7),
            (Some(StopKind::Internal), vec![RowState::Planned], 1),
            (Some(StopKind::StopRequested), vec![RowState::Planned, RowState::InDoubt], 5),
            (Some(StopKind::Limit), vec![RowState::Planned, RowState::Rejected, RowState::InDoubt], 4),
            (Some(StopKind::Limit), vec![RowState::Planned, RowState::Rejected], 3),
            (Some(StopKind::Limit), vec![RowState::Planned, RowState::Accepted], 0),
            (None, vec![RowState::Planned], 5),
            (None, vec![RowState::InDoubt, RowState::Rejected], 4),
            (None, vec![RowState::Accepted, RowState::Invalid], 3),
            (None, vec![RowState::Accepted, RowState::Skipped, RowState::Queued, RowState::Delivered], 0),
        ];
        for (stopped, states, expected) in table {
            assert_eq!(exit_code_of_end(stopped, &counts(&states)), expected, "{stopped:?} {states:?}");
        }
    }
}
