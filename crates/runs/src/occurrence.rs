//! Occurrences of schedules: firing an occurrence as an unattended run, and recording skipped occurrences. A damaged
//! record stops only its own schedule.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::inputs::mentions_today;
use super::ports::ConsentInAdvance;
use super::schedule::{find_schedule_change, load_active_campaign, standing_digest};
use super::{
    Adapters, Error, Inputs, Launch, MAX_APPROVAL_WAIT, PlanContent, Profiles, ProtectedFiles, RunOutcome, RunRequest,
    ScheduleChange, ScheduleRefusal, count_approvals, find_occurrence_plan, list_campaign_runs, run_blocking,
};
use campaign_core::calendar::{Occurrence, Schedule, lateness};
use campaign_core::finding::{BriefFinding, Finding, escape_to_one_line, mask_numbers};
use campaign_engine::delivery::{FrozenInputs, Interrupt};
use campaign_ledger::{
    ActiveSchedule, ApprovalFilter, DamagedPlan, Ledger, LedgerError, OccurrenceFilter, OccurrenceKey,
    OccurrenceOutcome, OccurrenceRecord, Plan, Run, RunFilter, RunId, RunProgress, ScheduleStore,
};
use campaign_manifest::{CampaignDay, SendingDeadline};

/// The ledger's key of an occurrence, whose schedule has the name of the campaign.
pub fn occurrence_key(campaign: &str, occurrence: &Occurrence) -> OccurrenceKey {
    OccurrenceKey {
        schedule: campaign.to_owned(),
        nominal: occurrence.format_nominal_time(),
        zone: occurrence.zone_name().to_owned(),
    }
}

/// Loads the schedule from its current files, or returns the change since the schedule was activated.
///
/// # Errors
/// If reading the files panicked, which is a bug.
pub async fn load_schedule(
    adapters: &Adapters,
    schedule: &ActiveSchedule,
) -> Result<Result<Schedule, ScheduleChange>, Error> {
    let (profiles, now, active) = (adapters.profiles.clone(), (adapters.clock)(), schedule.clone());
    run_blocking(move || {
        let today = now.to_zoned(TimeZone::UTC).date();
        let Ok(inputs) = Inputs::load(Path::new(&active.file), None, &profiles, CampaignDay::Coming(today)) else {
            return Err(ScheduleChange::Unreadable);
        };
        match (find_schedule_change(&active, &inputs), inputs.campaign.schedule) {
            (None, Some(schedule)) => Ok(schedule),
            (change, _) => Err(change.unwrap_or(ScheduleChange::Campaign)),
        }
    })
    .await
}

/// Finds the problems in the files of an active schedule.
///
/// # Errors
/// If reading the files panicked, which is a bug.
pub async fn find_schedule_problems(
    adapters: &Adapters,
    schedule: &ActiveSchedule,
) -> Result<Vec<BriefFinding>, Error> {
    let (profiles, now, file) = (adapters.profiles.clone(), (adapters.clock)(), schedule.file.clone());
    run_blocking(move || {
        let today = now.to_zoned(TimeZone::UTC).date();
        match Inputs::load(Path::new(&file), None, &profiles, CampaignDay::Coming(today)) {
            Err(Error::Findings(findings) | Error::UnknownGateway { findings, .. }) => {
                BriefFinding::from_findings(&findings)
            }
            Ok(_) | Err(_) => Vec::new(),
        }
    })
    .await
}

/// Loads a campaign for one of its occurrences.
///
/// # Errors
/// If the campaign has errors, all of which are returned.
pub fn load_occurrence(
    profiles: &Profiles,
    file: &Path,
    gateway: Option<&str>,
    occurrence: &Occurrence,
) -> Result<Inputs, Error> {
    let inputs = Inputs::load(file, gateway, profiles, CampaignDay::Is(occurrence.nominal.date()))?;
    Ok(inputs.for_occurrence(occurrence))
}

/// Finds the path of an occurrence's list, whether or not the file exists. `None` if the list is not a file.
///
/// # Errors
/// If the campaign has errors, all of which are returned.
pub fn find_occurrence_list_path(
    profiles: &Profiles,
    file: &Path,
    gateway: Option<&str>,
    occurrence: &Occurrence,
) -> Result<Option<PathBuf>, Error> {
    let inputs = Inputs::load(file, gateway, profiles, CampaignDay::Coming(occurrence.nominal.date()))?;
    Ok(inputs.campaign.recipients.list_file().map(|list| list.path().to_owned()))
}

/// Fires an occurrence, or resumes its run.
///
/// # Errors
/// If nothing was sent, or a second signal arrived.
pub async fn fire_occurrence(
    adapters: Adapters,
    schedule: &ActiveSchedule,
    occurrence: &Occurrence,
    interrupt: watch::Receiver<Interrupt>,
) -> Result<RunOutcome, Error> {
    let inputs = load_occurrence(&adapters.profiles, Path::new(&schedule.file), None, occurrence)?;
    // The texts have already been read, so later changes to the files are not sent.
    if let Some(change) = find_schedule_change(schedule, &inputs) {
        return Err(Error::Schedule(ScheduleRefusal::Changed(change)));
    }
    let schedule_digest = Some(standing_digest(schedule));
    // If other machines use the ledger, their workers can help.
    let shared = adapters.ledger.properties().shared && inputs.destination.is_live();
    let request = RunRequest { occurrence: Some(occurrence.clone()), schedule_digest, shared, ..RunRequest::default() };
    let files = ProtectedFiles { state: &adapters.state, profiles: &adapters.profiles };
    let launch = Launch::prepare(Arc::new(inputs), request, files)?;
    launch.run(adapters, Arc::new(ConsentInAdvance), interrupt).await
}

/// Finds the occurrence that started a run. Returns `None` if the run was not started by an occurrence.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn find_occurrence(ledger: &dyn Ledger, run: RunId) -> Result<Option<Occurrence>, Error> {
    let recorded = campaign_ledger::find_occurrence(ledger, OccurrenceFilter::Run(run)).await?;
    Ok(recorded.as_ref().and_then(recorded_occurrence))
}

/// Finds the unfinished run of a campaign, which `campaign run` resumes. Rehearsals always start from the beginning.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn find_unfinished_run(ledger: &dyn Ledger, inputs: &Inputs) -> Result<Option<Run>, Error> {
    if !inputs.destination.is_live() {
        return Ok(None);
    }
    Ok(list_campaign_runs(ledger, inputs).await?.into_iter().rfind(|run| run.progress == RunProgress::Open))
}

/// The time at which the run of an occurrence ends because of its campaign's `until`. `None` if `until` is not a
/// duration, or if the run has not begun.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn find_run_deadline(
    adapters: &Adapters,
    schedule: &ActiveSchedule,
    occurrence: &Occurrence,
) -> Result<Option<Timestamp>, LedgerError> {
    let (ledger, key) = (adapters.ledger.as_ref(), occurrence_key(&schedule.name, occurrence));
    let recorded = campaign_ledger::find_occurrence(ledger, OccurrenceFilter::Key(&key)).await?;
    let Some(OccurrenceOutcome::Fired(run)) = recorded.map(|record| record.outcome) else { return Ok(None) };
    let Some(run) = ledger.list_runs(RunFilter::with_key(run)).await?.pop() else { return Ok(None) };
    let active = schedule.clone();
    let until = run_blocking(move || load_active_campaign(&active).and_then(|campaign| campaign.until)).await;
    let Ok(Some(SendingDeadline::After(time))) = until else { return Ok(None) };
    Ok(run.began_at.checked_add(time).ok())
}

/// Parses the occurrence of a record.
pub fn recorded_occurrence(record: &OccurrenceRecord) -> Option<Occurrence> {
    parse_occurrence(&record.key)
}

/// Parses an occurrence from its key.
pub(super) fn parse_occurrence(key: &OccurrenceKey) -> Option<Occurrence> {
    let nominal = DateTime::strptime("%Y-%m-%d %H:%M", &key.nominal).ok()?;
    Occurrence::at_local_time(nominal, &TimeZone::get(&key.zone).ok()?)
}

/// Whether two runs are known to send the same texts.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn has_same_text(ledger: &dyn Ledger, run: &Run, earlier: RunId) -> Result<bool, Error> {
    let Some(earlier) = ledger.list_runs(RunFilter::with_key(earlier)).await?.pop() else { return Ok(false) };
    let frozen = (FrozenInputs::load_for_run(ledger, run).await, FrozenInputs::load_for_run(ledger, &earlier).await);
    let (Ok(current), Ok(earlier)) = frozen else { return Ok(false) };
    let has_same_messages = earlier.has_same_messages(&current.brief, &current.includes);
    // The texts of two days differ if they mention the date.
    Ok(has_same_messages && !mentions_today(&current.brief, &current.includes))
}

/// The reason an occurrence was skipped, with the findings that refused it. The record contains no phone numbers.
///
/// The ledger stores the record as text: only the words or, if there are findings, JSON. Earlier versions stored only
/// words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkipRecord {
    /// The reason in words.
    pub why: String,
    /// The findings, if there are any.
    pub findings: Vec<BriefFinding>,
}

/// An occurrence that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedOccurrence {
    /// The occurrence, restored from the local time and time zone in the ledger.
    pub occurrence: Occurrence,
    /// The reason the occurrence was skipped.
    pub record: SkipRecord,
}

impl SkipRecord {
    /// No process could start the run at its time.
    pub const MISSED: &str = "missed";
    /// Another run of the campaign was being sent.
    pub const BUSY: &str = "the campaign was still being sent";
    /// The next run became due while the list was missing.
    pub const OVERTAKEN: &str = "the next run became due while this run was waiting for its list";
    /// The run was not approved in time.
    pub const UNAPPROVED: &str = "the run was not approved in time";
    /// The schedule changed while the run was waiting.
    pub const WITHDRAWN: &str = "the schedule was paused or activated again while this run was waiting";
    /// No recipients were left.
    pub const NO_RECIPIENTS_LEFT: &str = "no recipients were left";
    /// The campaign has changed since its schedule was activated.
    pub const CHANGED: &str = "the campaign has changed since its schedule was activated";
    /// The gateway or one of its addresses has changed since the schedule was activated.
    pub const GATEWAY_CHANGED: &str =
        "the gateway or one of its addresses has changed since the schedule was activated";
    /// The gateway account has changed since the schedule was activated.
    pub const ACCOUNT_CHANGED: &str = "the gateway account has changed since the schedule was activated";
    /// The reasons with fixed texts, which the dashboard translates.
    pub const FIXED_REASONS: [&str; 9] = [
        Self::MISSED,
        Self::BUSY,
        Self::OVERTAKEN,
        Self::UNAPPROVED,
        Self::WITHDRAWN,
        Self::NO_RECIPIENTS_LEFT,
        Self::CHANGED,
        Self::GATEWAY_CHANGED,
        Self::ACCOUNT_CHANGED,
    ];

    /// Creates a record from a reason and its findings. Phone numbers in the reason are masked.
    pub fn new(why: &str, findings: &[Finding]) -> Self {
        Self { why: mask_numbers(why), findings: BriefFinding::from_findings(findings) }
    }

    /// Creates a record from the reason and the findings of an error, without the remark that nothing was sent.
    pub fn from_error(error: &Error) -> Self {
        let message = error.to_string();
        Self::new(message.trim_end_matches("; nothing was sent"), error.findings())
    }

    /// The text that the ledger stores for the record: JSON if there are findings, or else the plain reason.
    pub fn to_text(&self) -> String {
        let json = serde_json::to_string(self).ok().filter(|_| !self.findings.is_empty());
        json.unwrap_or_else(|| self.why.clone())
    }

    /// Parses the text that the ledger stores for a record.
    pub fn from_text(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|_| Self { why: text.to_owned(), findings: Vec::new() })
    }
}

impl fmt::Display for SkipRecord {
    /// Writes the record as one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape_to_one_line(&self.why))?;
        for (index, finding) in self.findings.iter().enumerate() {
            write!(f, "{} {finding}", if index == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl SkippedOccurrence {
    /// The skipped occurrence, if a record has one.
    pub(super) fn from_record(record: &OccurrenceRecord) -> Option<Self> {
        let OccurrenceOutcome::Skipped(reason) = &record.outcome else { return None };
        Some(Self { occurrence: recorded_occurrence(record)?, record: SkipRecord::from_text(reason) })
    }

    /// The JSON form of the skipped occurrence.
    pub fn to_json(&self) -> Value {
        let Self { occurrence, record } = self;
        json!({
            "at": occurrence.format_moment(),
            "local": occurrence.format_nominal_time(),
            "reason": record.why,
            "findings": record.findings,
        })
    }
}

/// An occurrence that was due, but has neither begun nor been skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingOccurrence {
    /// The occurrence.
    pub occurrence: Occurrence,
    /// Why it has not begun.
    pub state: PendingState,
}

/// Why a due occurrence has not begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PendingState {
    /// It waits only for `campaign serve`.
    Due,
    /// It waits for the list with this path.
    AwaitsList(PathBuf),
    /// It waits for an approval of the plan with this digest.
    AwaitsApproval(String),
    /// It is too late to begin. `campaign serve` will record it as skipped.
    Missed,
}

impl PendingOccurrence {
    /// Finds the last occurrence after `handled` that was due.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub(super) async fn find(
        adapters: &Adapters,
        active: &ActiveSchedule,
        schedule: &Schedule,
        handled: Timestamp,
    ) -> Result<Option<Self>, Error> {
        let (ledger, now) = (adapters.ledger.as_ref(), (adapters.clock)());
        let due = schedule.find_due(handled, now);
        let is_current = due.current.is_some();
        let Some(occurrence) = due.current.or(due.missed) else { return Ok(None) };
        let plan = match lateness(occurrence.at, now) <= MAX_APPROVAL_WAIT {
            true => find_occurrence_plan(ledger, &occurrence_key(&active.name, &occurrence)).await?,
            false => None,
        };
        let state = match plan {
            Some(digest) if count_approvals(ledger, active, &digest).await? == 0 => {
                PendingState::AwaitsApproval(digest)
            }
            None if !is_current => PendingState::Missed,
            None if schedule.wait_for_file.is_some() => find_missing_list(adapters, active, &occurrence)
                .await?
                .map_or(PendingState::Due, PendingState::AwaitsList),
            Some(_) | None => PendingState::Due,
        };
        Ok(Some(Self { occurrence, state }))
    }

    /// The JSON form of the occurrence.
    pub fn to_json(&self) -> Value {
        let Self { occurrence, state } = self;
        let mut object = json!({ "at": occurrence.format_moment(), "local": occurrence.format_nominal_time() });
        match state {
            PendingState::AwaitsList(path) => object["list"] = path.display().to_string().into(),
            PendingState::AwaitsApproval(digest) => object["plan"] = digest.as_str().into(),
            PendingState::Missed => object["missed"] = true.into(),
            PendingState::Due => {}
        }
        object
    }
}

/// Finds the path of the list of an occurrence if the list is a file that does not exist.
async fn find_missing_list(
    adapters: &Adapters,
    active: &ActiveSchedule,
    occurrence: &Occurrence,
) -> Result<Option<PathBuf>, Error> {
    let (profiles, file, day) = (adapters.profiles.clone(), active.file.clone(), occurrence.nominal.date());
    let find_list = move || {
        // A problem in the file is shown with the state of the schedule.
        let inputs = Inputs::load(Path::new(&file), None, &profiles, CampaignDay::Coming(day)).ok()?;
        let list = inputs.campaign.recipients.list_file().filter(|_| !inputs.list.is_available())?;
        Some(list.path().to_owned())
    };
    run_blocking(find_list).await
}

/// The time up to which every occurrence of a schedule counts as handled: that of the last record, or of the activation
/// if it is later.
pub fn handled_until(schedule: &ActiveSchedule, last: Option<&OccurrenceRecord>) -> Timestamp {
    last.map_or(schedule.since, |last| last.at.max(schedule.since))
}

/// The number of latest occurrences that are checked.
const CHECKED_OCCURRENCES: u32 = 50;

/// Finds the schedule with this name.
///
/// # Errors
/// If the record of this schedule is damaged, or the ledger cannot be read.
pub async fn find_schedule(ledger: &dyn ScheduleStore, name: &str) -> Result<Option<ActiveSchedule>, LedgerError> {
    for stored in ledger.list_schedules().await? {
        match stored {
            Ok(schedule) if schedule.name == name => return Ok(Some(schedule)),
            Err(damaged) if damaged.name == name => return Err(damaged.error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(None)
}

/// Lists the latest occurrences of a schedule up to the time `until`, at most `limit`, newest first.
///
/// A damaged record no longer counts after the schedule is activated or resumed again, because only later occurrences
/// fire after that. Records before a damaged record are not returned, because the position of the damaged record is
/// unknown.
///
/// # Errors
/// If a record that counts is damaged, or the ledger cannot be read.
pub async fn list_recent_occurrences(
    ledger: &dyn Ledger,
    schedule: &ActiveSchedule,
    until: Timestamp,
    limit: u32,
) -> Result<Vec<OccurrenceRecord>, LedgerError> {
    let mut recent = Vec::new();
    let filter = OccurrenceFilter::Latest { schedule: &schedule.name, until, most: limit };
    for stored in ledger.list_occurrences(filter).await? {
        match stored {
            Ok(record) => recent.push(record),
            Err(damaged) if damaged.at.is_some_and(|at| at <= schedule.since) => break,
            Err(damaged) => return Err(damaged.error),
        }
    }
    Ok(recent)
}

/// Finds the damaged record of an occurrence, run, plan or approval that stops a schedule, if there is one.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn find_schedule_damage(
    ledger: &dyn Ledger,
    schedule: &ActiveSchedule,
    now: Timestamp,
) -> Result<Option<LedgerError>, LedgerError> {
    match check_records(ledger, schedule, now).await {
        Ok(()) => Ok(None),
        Err(error) if error.concerns_records() => Ok(Some(error)),
        Err(error) => Err(error),
    }
}

/// Reads the records that a schedule needs to fire, and returns the first damage as an error.
async fn check_records(ledger: &dyn Ledger, schedule: &ActiveSchedule, now: Timestamp) -> Result<(), LedgerError> {
    list_recent_occurrences(ledger, schedule, now, CHECKED_OCCURRENCES).await?;
    ledger.list_runs(RunFilter::for_campaign(&schedule.name)).await?;
    ledger.list_approvals(ApprovalFilter::Digest(&standing_digest(schedule))).await?;
    for stored in ledger.list_plans("").await? {
        match stored {
            Ok(plan) if plan.at > schedule.since && belongs_to_schedule(&plan, schedule) => {
                ledger.list_approvals(ApprovalFilter::Digest(&plan.digest)).await?;
            }
            Err(DamagedPlan { record, at, error })
                if at.is_none_or(|at| at > schedule.since) && might_belong_to_schedule(&record, schedule) =>
            {
                return Err(error);
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Whether a plan belongs to an occurrence of this schedule.
fn belongs_to_schedule(plan: &Plan, schedule: &ActiveSchedule) -> bool {
    record_names_campaign(&plan.record, schedule)
        && serde_json::from_str(&plan.record).is_ok_and(|content| is_occurrence_plan(&content, schedule))
}

/// Whether a damaged plan might belong to an occurrence of this schedule.
fn might_belong_to_schedule(record: &str, schedule: &ActiveSchedule) -> bool {
    record_names_campaign(record, schedule)
        && serde_json::from_str(record).map_or(true, |content| is_occurrence_plan(&content, schedule))
}

fn is_occurrence_plan(content: &PlanContent, schedule: &ActiveSchedule) -> bool {
    match content {
        PlanContent::Campaign(planned) => {
            planned.inputs.brief.name == schedule.name && planned.options.occurrence.is_some()
        }
        PlanContent::Pending(_) => false,
    }
}

/// Whether the record of a plan contains the campaign's name.
fn record_names_campaign(record: &str, schedule: &ActiveSchedule) -> bool {
    record.contains(&Value::from(schedule.name.as_str()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_core::finding::rules;

    #[test]
    fn skip_record_round_trips_through_its_text() {
        let finding = Finding::new(&rules::CHECK, "the list is gone").help("bring it");
        for (reason, findings) in [("missed", &[][..]), ("1 problem found", std::slice::from_ref(&finding))] {
            let record = SkipRecord::new(reason, findings);
            assert_eq!(SkipRecord::from_text(&record.to_text()), record);
        }
        assert_eq!(SkipRecord::new("missed", &[]).to_text(), "missed", "as earlier versions wrote it");
        for earlier in ["1 problem found", "{", "{\"why\": 1}", "\"x\"", ""] {
            assert_eq!(SkipRecord::from_text(earlier).why, earlier);
        }
        let line = SkipRecord::new("1 problem found", &[finding.clone(), finding]).to_string();
        assert_eq!(line, "1 problem found: the list is gone [check]; the list is gone [check]");
    }
}
