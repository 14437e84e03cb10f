//! Actions of the dashboard, and the log of these actions.
//!
//! The log gets a line before an action is executed, and a second line with the outcome. The log contains no complete
//! phone numbers.

use std::collections::HashSet;
use std::fs;
use std::future::Future;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::extract::Path as UrlPath;
use axum::response::Response;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::page_error::{InvalidInput, PageError, is_server_failure};
use super::request::{DecisionForm, FormFields, PageRequest, VerifiedForm, encode_path_segment};
use campaign_content::audience::parse_phone_number;
use campaign_core::domain::{Phone, RowSet};
use campaign_core::private::{self, ExistingFile};
use campaign_engine::delivery::Reconciliation;
use campaign_engine::report::{IN_DOUBT_STATES, RunView, is_owned};
use campaign_ledger::{Additions, LedgerError, OptOut, Run};
use campaign_runs::{
    DoubtDecision, Error, OptOutTerms, ReconciledRun, Resolution, RowChoice, RunPhase, ScheduleOrder,
    apply_schedule_order, find_schedule, list_opt_outs, remove_opt_outs, run_blocking,
};

/// The time for which a page waits for the answers of the gateway about rows in doubt.
const RECONCILE_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum length of a reason.
const MAX_REASON_LENGTH: usize = 500;

/// Asks the process that is sending a run to stop after the messages in flight.
pub(super) async fn stop_run(
    UrlPath(name): UrlPath<String>,
    DecisionForm(VerifiedForm { mut request, .. }): DecisionForm,
) -> Response {
    let result = async {
        let run = request.find_run(&name).await?;
        let (action, ledger) = (new_action_record(&request, "stop", run.name()), request.pages.adapters.ledger.clone());
        let nothing_to_do = |stopping: &bool| (!stopping).then_some("the run is not being sent");
        let stop = async move { campaign_runs::stop_run(ledger.as_ref(), &run).await };
        let stopping = execute_action(&request, action, stop, nothing_to_do).await?;
        Ok(format!("/runs/{}?done={}", encode_path_segment(&name), if stopping { "stop" } else { "not-sending" }))
    };
    let result = result.await;
    request.respond_to_action(result)
}

/// Records a decision about rows in doubt.
pub(super) async fn resolve_rows(
    UrlPath(name): UrlPath<String>,
    DecisionForm(VerifiedForm { mut request, fields }): DecisionForm,
) -> Response {
    let result = async {
        let decision = match fields.get("decision") {
            Some("sent") => DoubtDecision::Sent,
            Some("not-sent") => DoubtDecision::NotSent,
            Some("send-again") => DoubtDecision::SendAgain,
            _ => return Err(PageError::InvalidInput(InvalidInput::Decision)),
        };
        let run = request.find_run(&name).await?;
        let rows = match fields.get("row") {
            Some(row) => {
                let rows = row.parse::<RowSet>().ok().filter(|rows| rows.single_row().is_some());
                RowChoice::Rows(rows.ok_or(PageError::Unknown)?)
            }
            None => RowChoice::Waiting,
        };
        let typed = parse_typed_count(&fields);
        check_typed_count(&request, &run, &rows, typed).await?;
        let reason = fields.get("why").map(|reason| reason.chars().take(MAX_REASON_LENGTH).collect());
        let by = request.visitor.name.clone();
        let action = new_action_record(&request, fields.get("decision").unwrap_or_default(), run.name());
        let resolution = Resolution { rows, decision, by, why: reason, duplicates: typed };
        let (adapters, key) = (request.pages.adapters.clone(), run.key);
        let resolve = async move { campaign_runs::resolve_doubts(&adapters, run, &resolution).await };
        execute_action(&request, action, resolve, |_| None).await?;
        request.pages.run_watcher.invalidate(key);
        let row = fields.get("row").map(|row| format!("/rows/{}", encode_path_segment(row))).unwrap_or_default();
        Ok(format!("/runs/{}{row}?done=resolve", encode_path_segment(&name)))
    };
    let result = result.await;
    request.respond_to_action(result)
}

/// Checks that the user typed the number of affected rows, even for the decision `sent`, for which `campaign resolve`
/// needs no number. `resolve_doubts` checks the typed count again.
async fn check_typed_count(
    request: &PageRequest,
    run: &Run,
    rows: &RowChoice,
    typed: Option<u64>,
) -> Result<(), PageError> {
    let affected = match rows {
        RowChoice::Waiting => {
            let owned = is_owned(request.ledger(), run).await?;
            let view = RunView::load(request.ledger(), run.clone(), owned).await?;
            IN_DOUBT_STATES.into_iter().map(|state| view.counts.get(state)).sum()
        }
        RowChoice::Rows(_) | RowChoice::File(_) => 1,
    };
    // If no rows are in doubt, the decision itself reports that.
    if typed == Some(affected) || affected == 0 {
        Ok(())
    } else {
        Err(PageError::InvalidInput(InvalidInput::Count { rows: affected }))
    }
}

pub(super) async fn pause_schedule(
    UrlPath(name): UrlPath<String>,
    DecisionForm(VerifiedForm { request, .. }): DecisionForm,
) -> Response {
    let result = execute_schedule_order(&request, &name, "pause", ScheduleOrder::Pause).await;
    request.respond_to_action(result)
}

/// Resumes a schedule. Occurrences during the pause are skipped.
pub(super) async fn resume_schedule(
    UrlPath(name): UrlPath<String>,
    DecisionForm(VerifiedForm { request, .. }): DecisionForm,
) -> Response {
    let since = request.pages.now();
    let result = execute_schedule_order(&request, &name, "resume", ScheduleOrder::Resume { since }).await;
    request.respond_to_action(result)
}

async fn execute_schedule_order(
    request: &PageRequest,
    name: &str,
    action: &str,
    order: ScheduleOrder,
) -> Result<String, PageError> {
    find_schedule(request.ledger(), name).await?.ok_or(PageError::Unknown)?;
    let (adapters, schedule) = (request.pages.adapters.clone(), name.to_owned());
    let change = async move { apply_schedule_order(&adapters, &schedule, order).await };
    execute_action(request, new_action_record(request, action, name.to_owned()), change, |()| None).await?;
    Ok(format!("/schedules?done={action}"))
}

/// Adds a phone number to the suppression list.
pub(super) async fn suppress_number(DecisionForm(VerifiedForm { request, fields }): DecisionForm) -> Response {
    let result = async {
        let phone = parse_phone(fields.get("phone").unwrap_or_default())?;
        let reason = fields.get("why").map(|text| text.chars().take(MAX_REASON_LENGTH).collect());
        let action = new_action_record(&request, "suppress", phone.format_masked());
        let terms = OptOutTerms { reason, by: Some(request.visitor.name.clone()), ..OptOutTerms::default() };
        let (ledger, now) = (request.pages.adapters.ledger.clone(), request.pages.now());
        let suppress = async move { campaign_runs::add_opt_out(ledger.as_ref(), phone, &terms, now).await };
        let nothing_to_do = |(_, additions): &(OptOut, Additions)| {
            (additions.added == 0).then_some("the number is already on the list")
        };
        let (_, additions) = execute_action(&request, action, suppress, nothing_to_do).await?;
        request.pages.opt_outs.invalidate().await;
        Ok(format!("/opt-outs?done={}", if additions.added > 0 { "suppress" } else { "suppressed" }))
    };
    let result = result.await;
    request.respond_to_action(result)
}

/// Removes a phone number from the suppression list. The user types the number of entries of the phone number, as shown
/// on the confirmation page.
pub(super) async fn remove_opt_out(DecisionForm(VerifiedForm { request, fields }): DecisionForm) -> Response {
    let result = async {
        let phone = parse_phone(fields.get("phone").unwrap_or_default())?;
        let reason = fields.get("why").map(|text| text.chars().take(MAX_REASON_LENGTH).collect());
        let terms = OptOutTerms { reason, by: Some(request.visitor.name.clone()), ..OptOutTerms::default() };
        let entries = list_opt_outs(request.ledger(), phone, &OptOutTerms::default()).await?.len() as u64;
        if entries > 0 && parse_typed_count(&fields) != Some(entries) {
            return Err(PageError::InvalidInput(InvalidInput::Entries { entries }));
        }
        let action = new_action_record(&request, "unsuppress", phone.format_masked());
        let ledger = request.pages.adapters.ledger.clone();
        let remove = async move { remove_opt_outs(ledger.as_ref(), phone, &terms).await };
        let nothing_to_do = |removed: &Vec<OptOut>| removed.is_empty().then_some("the number is not on the list");
        let removed = execute_action(&request, action, remove, nothing_to_do).await?;
        request.pages.opt_outs.invalidate().await;
        Ok(format!("/opt-outs?done={}", if removed.is_empty() { "not-listed" } else { "unsuppress" }))
    };
    let result = result.await;
    request.respond_to_action(result)
}

/// Asks the gateway about the rows in doubt of a run.
pub(super) async fn reconcile_run(
    UrlPath(name): UrlPath<String>,
    DecisionForm(VerifiedForm { mut request, .. }): DecisionForm,
) -> Response {
    let result = async {
        let run = request.find_run(&name).await?;
        LedgerError::refuse_purged(&run)?;
        let (action, adapters, key) =
            (new_action_record(&request, "reconcile", run.name()), request.pages.adapters.clone(), run.key);
        let reconcile = async move { campaign_runs::reconcile_run(&adapters, run).await };
        let nothing_to_do = |ended: &ReconciledRun| AnswerSummary::new(&ended.reconciliation).explain_no_change();
        let executed = execute_action(&request, action, reconcile, nothing_to_do);
        // At a low rate, a large number of inquiries takes a long time. The action continues, and the page shows its
        // result later.
        let result = match tokio::time::timeout(RECONCILE_TIMEOUT, executed).await {
            Ok(executed) => AnswerSummary::new(&executed?.reconciliation).confirmation_name(),
            Err(_) => "reconciling",
        };
        request.pages.run_watcher.invalidate(key);
        Ok(format!("/runs/{}?done={result}", encode_path_segment(&name)))
    };
    let result = result.await;
    request.respond_to_action(result)
}

/// What the gateway's answers about messages in doubt showed.
enum AnswerSummary {
    Complete,
    /// Some answers were inconclusive or missing.
    Partial,
    NothingNew,
    Inconclusive,
    /// No usable response, for example because the gateway cannot be reached.
    Unusable,
}

impl AnswerSummary {
    fn new(reconciliation: &Reconciliation) -> Self {
        let Reconciliation { found, failed, not_found, unresolved, blind, unclear, .. } = *reconciliation;
        match (found + failed + not_found + unresolved, unclear, blind) {
            (0, 0, 0) => Self::NothingNew,
            (0, 0, _) => Self::Inconclusive,
            (0, ..) => Self::Unusable,
            (_, 0, 0) => Self::Complete,
            _ => Self::Partial,
        }
    }

    /// The name of the confirmation that the page shows.
    fn confirmation_name(&self) -> &'static str {
        match self {
            Self::Complete => "reconcile",
            Self::Partial => "reconcile-partly",
            Self::NothingNew => "reconcile-unchanged",
            Self::Inconclusive => "reconcile-blind",
            Self::Unusable => "reconcile-unclear",
        }
    }

    /// The reason for the log of actions why nothing changed. `None` if something did.
    fn explain_no_change(&self) -> Option<&'static str> {
        match self {
            Self::Complete | Self::Partial => None,
            Self::NothingNew => Some("the gateway reported nothing new"),
            Self::Inconclusive => Some("the responses were inconclusive"),
            Self::Unusable => Some("no usable response from the gateway"),
        }
    }
}

/// Parses a phone number in international format, with or without `+`.
pub(super) fn parse_phone(typed: &str) -> Result<Phone, PageError> {
    let international = || parse_phone_number(&format!("+{}", typed.trim_start_matches('+')), None);
    let phone = parse_phone_number(typed, None).or_else(|_| international());
    phone.map_err(|_| PageError::InvalidInput(InvalidInput::Phone))
}

/// Parses the count that the user typed to confirm an action.
pub(super) fn parse_typed_count(fields: &FormFields) -> Option<u64> {
    fields.get("count").and_then(|count| count.replace([' ', '\u{a0}', '\u{202f}'], "").parse().ok())
}

/// Creates the record of a new action by the visitor.
pub(super) fn new_action_record(request: &PageRequest, action: &str, target: String) -> ActionRecord {
    ActionRecord::new(request.pages.now(), request.visitor.name.clone(), action, target)
}

/// Records an action, executes it and records its outcome, even if the browser disconnects. The server waits for the
/// action to finish before it shuts down.
///
/// `nothing_to_do` returns a reason if the executed action changed nothing.
pub(super) async fn execute_action<T: Send + 'static>(
    request: &PageRequest,
    action: ActionRecord,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
    nothing_to_do: impl Fn(&T) -> Option<&'static str> + Send + 'static,
) -> Result<T, PageError> {
    let log = request.pages.action_log.clone();
    let executed = request.pages.actions.spawn(async move {
        tracing::info!("{} requested on the dashboard: {} {}", action.by, action.action, action.target);
        record_action(&log, action.clone()).await?;
        let (result, ended_action) = match work.await {
            Ok(result) => {
                let unchanged = nothing_to_do(&result);
                let outcome = unchanged.map_or(ActionOutcome::Done, |_| ActionOutcome::Unchanged);
                (Ok(result), action.with_outcome(outcome, unchanged))
            }
            Err(error) => {
                let outcome = if is_failure(&error) { ActionOutcome::Failed } else { ActionOutcome::Refused };
                let (refusal, reason) = PageError::from_error_with_reason(error);
                (Err(refusal), action.with_outcome(outcome, Some(&reason)))
            }
        };
        if let Err(PageError::Failed(problem)) = record_action(&log, ended_action).await {
            tracing::warn!("cannot record the outcome of an action: {problem}");
        }
        result
    });
    let executed = executed.await;
    executed.map_err(|error| PageError::Failed(format!("an action ended unexpectedly; this is a bug: {error}")))?
}

/// Whether this error means that the action failed and might have been executed. All other errors mean that the action
/// was refused.
fn is_failure(error: &Error) -> bool {
    match error {
        Error::Taken { .. } | Error::Results(_) => true,
        Error::Interrupted { phase, .. } => *phase != RunPhase::Preparing,
        Error::Ledger(error) => !matches!(error, LedgerError::Purged { .. }),
        error => is_server_failure(error),
    }
}

/// Adds a line to the log of actions.
async fn record_action(log: &ActionLog, action: ActionRecord) -> Result<(), PageError> {
    let log = log.clone();
    Ok(run_blocking(move || log.append(&action)).await??)
}

/// An action in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ActionRecord {
    /// The time at which the action was requested.
    pub(super) at: Timestamp,
    /// The name of the visitor.
    pub(super) by: String,
    /// The kind of action.
    #[serde(rename = "order")]
    pub(super) action: String,
    /// What the action applies to: a run, a schedule or a masked number.
    #[serde(rename = "of")]
    pub(super) target: String,
    /// The identifier that all lines of an action share; `None` in lines of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// The outcome; `None` in lines of earlier versions, which did not record outcomes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<ActionOutcome>,
    /// The reason the action changed nothing or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ActionOutcome {
    /// The action is about to be executed. If no other line follows, the action's outcome is unknown.
    Begun,
    /// The action was executed.
    Done,
    /// There was nothing to do.
    Unchanged,
    /// The rules of the command do not allow the action. Nothing was done.
    Refused,
    /// The ledger or a file failed. The action might have been executed.
    Failed,
}

impl ActionOutcome {
    /// The name of the outcome in the log and in the translations.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Done => "done",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

impl ActionRecord {
    /// Creates the record of an action that is about to be executed.
    pub(super) fn new(at: Timestamp, by: String, action: &str, target: String) -> Self {
        let (id, outcome) = (Some(format!("{:016x}", rand::random::<u64>())), Some(ActionOutcome::Begun));
        Self { at, by, action: action.to_owned(), target, id, outcome, reason: None }
    }

    /// Returns a copy of the record with an outcome and a shortened reason.
    pub(super) fn with_outcome(&self, outcome: ActionOutcome, reason: Option<&str>) -> Self {
        let reason = reason.map(|reason| reason.split_whitespace().collect::<Vec<_>>().join(" "));
        let reason = reason.map(|reason| reason.chars().take(MAX_REASON_LENGTH).collect());
        Self { outcome: Some(outcome), reason, ..self.clone() }
    }
}

/// The log file of actions.
#[derive(Clone, Debug)]
pub(super) struct ActionLog(PathBuf);

impl ActionLog {
    /// Returns the log in a state folder.
    pub(super) fn in_state_folder(state: &Path) -> Self {
        Self(state.join("orders.jsonl"))
    }

    /// Appends an action to the log.
    ///
    /// # Errors
    /// If the action cannot be written. It must not be executed in that case.
    pub(super) fn append(&self, action: &ActionRecord) -> io::Result<()> {
        let mut line = serde_json::to_vec(action)?;
        line.push(b'\n');
        let mut file = private::open_file(&self.0, ExistingFile::Append)?;
        file.write_all(&line)?;
        file.sync_all()
    }

    /// Reads the latest actions, newest first, with the outcome of each action if it is known. Unreadable lines are
    /// skipped.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn read_latest(&self, limit: usize) -> io::Result<Vec<ActionRecord>> {
        let bytes = match fs::read(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            result => result?,
        };
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().rev().filter_map(|line| serde_json::from_str::<ActionRecord>(line).ok());
        let mut seen_ids = HashSet::new();
        // The line with the outcome comes after the first line of an action, so reading backwards finds it first.
        let actions = lines.filter(|action| action.id.as_ref().is_none_or(|id| seen_ids.insert(id.clone())));
        Ok(actions.take(limit).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_action(target: &str) -> ActionRecord {
        ActionRecord::new(Timestamp::UNIX_EPOCH, "Olha".to_owned(), "stop", target.to_owned())
    }

    #[test]
    fn action_that_might_have_sent_messages_has_failed_and_is_not_refused() {
        let run = || "sale@1".to_owned();
        let interrupted = |phase| Error::Interrupted { signal: 15, phase };
        for (error, failed) in [
            (Error::Taken { run: run() }, true),
            (interrupted(RunPhase::Sending(2)), true),
            (interrupted(RunPhase::Ending), true),
            (interrupted(RunPhase::Preparing), false),
            (Error::SingleRun { run: run() }, false),
            (Error::Storage("the disk is full".to_owned()), true),
        ] {
            assert_eq!(is_failure(&error), failed, "{error}");
        }
    }

    #[test]
    fn latest_actions_are_listed_first_with_their_outcomes() {
        let folder = tempfile::tempdir().unwrap();
        let actions = ActionLog::in_state_folder(folder.path());
        assert_eq!(actions.read_latest(2).unwrap(), []);
        let [first, second, third] = ["a@1", "b@1", "c@1"].map(test_action);
        let refused_action = first.with_outcome(ActionOutcome::Refused, Some("another process\n  sends it"));
        let done_action = second.with_outcome(ActionOutcome::Done, None);
        for line in [&first, &refused_action, &second, &done_action, &third] {
            actions.append(line).unwrap();
        }
        assert_eq!(actions.read_latest(2).unwrap(), [third.clone(), done_action.clone()]);
        assert_eq!(actions.read_latest(9).unwrap(), [third, done_action.clone(), refused_action.clone()]);
        assert_eq!(refused_action.reason.as_deref(), Some("another process sends it"));
        let mut damaged = fs::read(&actions.0).unwrap();
        let last = damaged.iter().rposition(|byte| *byte == b'{').unwrap();
        damaged[last] = 0xff;
        fs::write(&actions.0, damaged).unwrap();
        assert_eq!(actions.read_latest(9).unwrap(), [done_action, refused_action], "the other lines are read");
    }

    #[test]
    fn actions_from_earlier_versions_have_no_outcome() {
        let folder = tempfile::tempdir().unwrap();
        let actions = ActionLog::in_state_folder(folder.path());
        let line = r#"{"at":"1970-01-01T00:00:00Z","by":"Olha","order":"stop","of":"a@1"}"#;
        fs::write(&actions.0, format!("{line}\n{line}\n")).unwrap();
        let latest = actions.read_latest(9).unwrap();
        assert_eq!(latest.len(), 2);
        assert!(latest.iter().all(|action| action.outcome.is_none()));
    }
}
