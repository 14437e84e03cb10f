//! Firing an occurrence of what was armed: a run of its own, unattended.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use tokio::sync::watch;

use super::armed::{change, standing_digest};
use super::inputs::mentions_today;
use super::{
    Adapters, ArmedChange, Consent, Error, Inputs, Launch, Outcome, OwnFiles, Profiles, Proposal, Refusal, Request,
    ScheduleRefusal, blocking, runs_of,
};
use crate::calendar::{Occurrence, Schedule};
use crate::delivery::{FrozenInputs, Interrupt};
use crate::finding::BriefFinding;
use crate::gateway::BoxFuture;
use crate::ledger::{ArmedSchedule, Ledger, OccurrenceKey, OccurrenceRecord, Progress, Run, RunFilter, RunId};
use crate::manifest::Day;

/// The yes of whoever armed it, for what was armed.
struct ArmedYes;

impl Consent for ArmedYes {
    fn can_come(&self) -> bool {
        true
    }

    fn ask<'a>(&'a self, question: Proposal<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        let covered = matches!(question, Proposal::Begin { .. } | Proposal::GoOn { .. });
        Box::pin(async move { if covered { Ok(()) } else { Err(Refusal::NobodyToAsk) } })
    }
}

/// Which occurrence of a campaign it is.
#[must_use]
pub fn occurrence_key(campaign: &str, occurrence: &Occurrence) -> OccurrenceKey {
    OccurrenceKey { schedule: campaign.to_owned(), nominal: occurrence.name(), zone: occurrence.zone_name().to_owned() }
}

/// What is armed, as its files say it now: when it is due, or what changed since.
///
/// # Errors
/// When its files cannot be looked at.
pub async fn look_at_armed(adapters: &Adapters, armed: &ArmedSchedule) -> Result<Result<Schedule, ArmedChange>, Error> {
    let (profiles, now, armed) = (adapters.profiles.clone(), (adapters.clock)(), armed.clone());
    blocking(move || {
        let today = now.to_zoned(TimeZone::UTC).date();
        let Ok(inputs) = Inputs::load(Path::new(&armed.file), None, &profiles, Day::Coming(today)) else {
            return Err(ArmedChange::Unreadable);
        };
        match (change(&armed, &inputs), inputs.campaign.schedule) {
            (None, Some(schedule)) => Ok(schedule),
            (change, _) => Err(change.unwrap_or(ArmedChange::Campaign)),
        }
    })
    .await
}

/// The problems of the files of an active schedule.
///
/// # Errors
/// When its files cannot be looked at.
pub async fn findings_of_armed(adapters: &Adapters, armed: &ArmedSchedule) -> Result<Vec<BriefFinding>, Error> {
    let (profiles, now, file) = (adapters.profiles.clone(), (adapters.clock)(), armed.file.clone());
    blocking(move || {
        let today = now.to_zoned(TimeZone::UTC).date();
        match Inputs::load(Path::new(&file), None, &profiles, Day::Coming(today)) {
            Err(Error::Findings(findings) | Error::UnknownGateway { findings, .. }) => BriefFinding::all_of(&findings),
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
    let inputs = Inputs::load(file, gateway, profiles, Day::Is(occurrence.nominal.date()))?;
    Ok(inputs.of_occurrence(occurrence))
}

/// The file of an occurrence's list, whether it is there or not; nothing where the list comes from elsewhere.
///
/// # Errors
/// With everything that is wrong with the campaign.
pub fn list_of(adapters: &Adapters, armed: &ArmedSchedule, occurrence: &Occurrence) -> Result<Option<PathBuf>, Error> {
    let day = Day::Coming(occurrence.nominal.date());
    let inputs = Inputs::load(Path::new(&armed.file), None, &adapters.profiles, day)?;
    Ok(inputs.campaign.recipients.file().map(|list| list.path().to_owned()))
}

/// Fires an occurrence, or goes on with the run that it began.
///
/// # Errors
/// Why nothing was sent; or that a second signal came.
pub async fn fire(
    adapters: Adapters,
    armed: &ArmedSchedule,
    occurrence: &Occurrence,
    interrupt: watch::Receiver<Interrupt>,
) -> Result<Outcome, Error> {
    let inputs = load_occurrence(&adapters.profiles, (Path::new(&armed.file), None), occurrence)?;
    // After the texts were read: what changes from here on is not what is sent.
    if let Some(change) = change(armed, &inputs) {
        return Err(Error::Schedule(ScheduleRefusal::Changed(change)));
    }
    let armed = Some(standing_digest(armed));
    // Where other machines use the ledger, workers there may help.
    let shared = adapters.ledger.is_shared() && inputs.destination.is_live();
    let request = Request { occurrence: Some(occurrence.clone()), armed, shared, ..Request::default() };
    let files = OwnFiles { state: &adapters.state, profiles: &adapters.profiles };
    let launch = Launch::of(Arc::new(inputs), request, files)?;
    launch.run(adapters, Arc::new(ArmedYes), interrupt).await
}

/// The occurrence that a run is of; nothing where it is of none.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn occurrence_of(ledger: &dyn Ledger, run: RunId) -> Result<Option<Occurrence>, Error> {
    Ok(ledger.occurrence_of(run).await?.as_ref().and_then(recorded_occurrence))
}

/// The unfinished run of a campaign, with which `run` goes on; a rehearsal always begins anew.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn unfinished_of(ledger: &dyn Ledger, inputs: &Inputs) -> Result<Option<Run>, Error> {
    if !inputs.destination.is_live() {
        return Ok(None);
    }
    Ok(runs_of(ledger, inputs).await?.into_iter().rfind(|run| run.progress == Progress::Open))
}

/// The occurrence that a record is of.
#[must_use]
pub fn recorded_occurrence(record: &OccurrenceRecord) -> Option<Occurrence> {
    occurrence(&record.key)
}

/// The occurrence that has this key.
pub(super) fn occurrence(key: &OccurrenceKey) -> Option<Occurrence> {
    let nominal = DateTime::strptime("%Y-%m-%d %H:%M", &key.nominal).ok()?;
    Occurrence::of(nominal, &TimeZone::get(&key.zone).ok()?)
}

/// Whether a run says what another one said before it, word for word.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn says_the_same(ledger: &dyn Ledger, run: &Run, before: RunId) -> Result<bool, Error> {
    let Some(before) = ledger.runs(RunFilter::one(before)).await?.pop() else { return Ok(false) };
    let frozen = (FrozenInputs::of_run(ledger, run).await, FrozenInputs::of_run(ledger, &before).await);
    let (Ok(now), Ok(before)) = frozen else { return Ok(false) };
    Ok(before.says(&now.brief, &now.includes) && !mentions_today(&now.brief, &now.includes))
}
