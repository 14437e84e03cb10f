//! Firing an occurrence of what was armed: a run of its own, unattended.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use tokio::sync::watch;

use super::armed::{find_schedule_change, standing_digest};
use super::inputs::mentions_today;
use super::{
    Adapters, Consent, ConsentRefusal, Error, Inputs, Launch, Profiles, Proposal, ProtectedFiles, RunOutcome,
    RunRequest, ScheduleChange, ScheduleRefusal, list_campaign_runs, run_blocking,
};
use crate::calendar::{Occurrence, Schedule};
use crate::delivery::{FrozenInputs, Interrupt};
use crate::finding::BriefFinding;
use crate::gateway::BoxFuture;
use crate::ledger::{ActiveSchedule, Ledger, OccurrenceKey, OccurrenceRecord, Run, RunFilter, RunId, RunProgress};
use crate::manifest::CampaignDay;

/// The yes of whoever armed it, for what was armed.
struct ScheduleConsent;

impl Consent for ScheduleConsent {
    fn can_confirm(&self) -> bool {
        true
    }

    fn ask<'a>(&'a self, question: Proposal<'a>) -> BoxFuture<'a, Result<(), ConsentRefusal>> {
        let covered = matches!(question, Proposal::Begin { .. } | Proposal::Resume { .. });
        Box::pin(async move { if covered { Ok(()) } else { Err(ConsentRefusal::NoTerminal) } })
    }
}

/// Which occurrence of a campaign it is.
#[must_use]
pub fn occurrence_key(campaign: &str, occurrence: &Occurrence) -> OccurrenceKey {
    OccurrenceKey {
        schedule: campaign.to_owned(),
        nominal: occurrence.format_nominal(),
        zone: occurrence.zone_name().to_owned(),
    }
}

/// What is armed, as its files say it now: when it is due, or what changed since.
///
/// # Errors
/// When its files cannot be looked at.
pub async fn load_schedule(
    adapters: &Adapters,
    armed: &ActiveSchedule,
) -> Result<Result<Schedule, ScheduleChange>, Error> {
    let (profiles, now, armed) = (adapters.profiles.clone(), (adapters.clock)(), armed.clone());
    run_blocking(move || {
        let today = now.to_zoned(TimeZone::UTC).date();
        let Ok(inputs) = Inputs::load(Path::new(&armed.file), None, &profiles, CampaignDay::Coming(today)) else {
            return Err(ScheduleChange::Unreadable);
        };
        match (find_schedule_change(&armed, &inputs), inputs.campaign.schedule) {
            (None, Some(schedule)) => Ok(schedule),
            (change, _) => Err(change.unwrap_or(ScheduleChange::Campaign)),
        }
    })
    .await
}

/// The problems of the files of an active schedule.
///
/// # Errors
/// When its files cannot be looked at.
pub async fn check_schedule(adapters: &Adapters, armed: &ActiveSchedule) -> Result<Vec<BriefFinding>, Error> {
    let (profiles, now, file) = (adapters.profiles.clone(), (adapters.clock)(), armed.file.clone());
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

/// A campaign as an occurrence of its schedule sends it.
///
/// # Errors
/// With everything that is wrong with it.
pub fn load_occurrence(
    profiles: &Profiles,
    (file, gateway): (&Path, Option<&str>),
    occurrence: &Occurrence,
) -> Result<Inputs, Error> {
    let inputs = Inputs::load(file, gateway, profiles, CampaignDay::Is(occurrence.nominal.date()))?;
    Ok(inputs.for_occurrence(occurrence))
}

/// The file of an occurrence's list, whether it is there or not; nothing where the list comes from elsewhere.
///
/// # Errors
/// With everything that is wrong with the campaign.
pub fn occurrence_list_path(
    adapters: &Adapters,
    armed: &ActiveSchedule,
    occurrence: &Occurrence,
) -> Result<Option<PathBuf>, Error> {
    let day = CampaignDay::Coming(occurrence.nominal.date());
    let inputs = Inputs::load(Path::new(&armed.file), None, &adapters.profiles, day)?;
    Ok(inputs.campaign.recipients.list_file().map(|list| list.path().to_owned()))
}

/// Fires an occurrence, or goes on with the run that it began.
///
/// # Errors
/// Why nothing was sent; or that a second signal came.
pub async fn fire_occurrence(
    adapters: Adapters,
    armed: &ActiveSchedule,
    occurrence: &Occurrence,
    interrupt: watch::Receiver<Interrupt>,
) -> Result<RunOutcome, Error> {
    let inputs = load_occurrence(&adapters.profiles, (Path::new(&armed.file), None), occurrence)?;
    // After the texts were read: what changes from here on is not what is sent.
    if let Some(change) = find_schedule_change(armed, &inputs) {
        return Err(Error::Schedule(ScheduleRefusal::Changed(change)));
    }
    let armed = Some(standing_digest(armed));
    // Where other machines use the ledger, workers there may help.
    let shared = adapters.ledger.is_shared() && inputs.destination.is_live();
    let request =
        RunRequest { occurrence: Some(occurrence.clone()), schedule_digest: armed, shared, ..RunRequest::default() };
    let files = ProtectedFiles { state: &adapters.state, profiles: &adapters.profiles };
    let launch = Launch::prepare(Arc::new(inputs), request, files)?;
    launch.run(adapters, Arc::new(ScheduleConsent), interrupt).await
}

/// The occurrence that a run is of; nothing where it is of none.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn find_occurrence(ledger: &dyn Ledger, run: RunId) -> Result<Option<Occurrence>, Error> {
    Ok(ledger.find_run_occurrence(run).await?.as_ref().and_then(recorded_occurrence))
}

/// The unfinished run of a campaign, with which `run` goes on; a rehearsal always begins anew.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn find_unfinished_run(ledger: &dyn Ledger, inputs: &Inputs) -> Result<Option<Run>, Error> {
    if !inputs.destination.is_live() {
        return Ok(None);
    }
    Ok(list_campaign_runs(ledger, inputs).await?.into_iter().rfind(|run| run.progress == RunProgress::Open))
}

/// The occurrence that a record is of.
#[must_use]
pub fn recorded_occurrence(record: &OccurrenceRecord) -> Option<Occurrence> {
    parse_occurrence(&record.key)
}

/// The occurrence that has this key.
pub(super) fn parse_occurrence(key: &OccurrenceKey) -> Option<Occurrence> {
    let nominal = DateTime::strptime("%Y-%m-%d %H:%M", &key.nominal).ok()?;
    Occurrence::at_local_time(nominal, &TimeZone::get(&key.zone).ok()?)
}

/// Whether a run says what another one said before it, word for word.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn has_same_text(ledger: &dyn Ledger, run: &Run, before: RunId) -> Result<bool, Error> {
    let Some(before) = ledger.list_runs(RunFilter::with_key(before)).await?.pop() else { return Ok(false) };
    let frozen = (FrozenInputs::load_for_run(ledger, run).await, FrozenInputs::load_for_run(ledger, &before).await);
    let (Ok(now), Ok(before)) = frozen else { return Ok(false) };
    Ok(before.has_same_messages(&now.brief, &now.includes) && !mentions_today(&now.brief, &now.includes))
}
