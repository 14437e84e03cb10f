//! Arming: a campaign with a schedule is looked at as before a run, agreed to, and kept with its digest.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use super::armed::{campaign_digest, format_addresses, load_timeless};
use super::check_campaign::{check_inputs, check_ledger_for_run};
use super::consent::confirm;
use super::inputs::mentions_today;
use super::plan::check_profile;
use super::whose::absolute_file_path;
use super::{
    Adapters, Consent, Error, Inputs, ListSurvey, Proposal, ProtectedFiles, ScheduleRefusal, current_person,
    read_destination_key, run_blocking, survey_list,
};
use crate::calendar::{Occurrence, Schedule};
use crate::check::RunStart;
use crate::finding::Finding;
use crate::ledger::{ActiveSchedule, DamagedSchedule, ScheduleStore};
use crate::manifest::CampaignDay;

/// How many of the next dates are shown to whoever arms it.
const SHOWN_OCCURRENCES: usize = 3;

/// What is going to be armed.
#[derive(Debug)]
pub struct ScheduleActivation {
    /// The campaign, as of its first day.
    pub inputs: Arc<Inputs>,
    /// When it is due.
    pub schedule: Schedule,
    /// The next occurrences, three at most.
    pub next: Vec<Occurrence>,
    /// What was found in the list; nothing where it is to come.
    pub survey: Option<ListSurvey>,
    /// Warnings and notes of `check`, judged from the next dates.
    pub findings: Vec<Finding>,
    /// Whether each occurrence says what the one before said.
    pub repeats_itself: bool,
    /// Whether it takes the place of what was armed before.
    pub was_armed: bool,
    armed: ActiveSchedule,
}

impl ScheduleActivation {
    /// Looks at a campaign with a schedule: everything that can be known before it fires.
    ///
    /// # Errors
    /// Why it cannot be armed.
    pub async fn review(adapters: &Adapters, file: &Path) -> Result<Self, Error> {
        let now = (adapters.clock)();
        let refuse = |refusal| Err(Error::Schedule(refusal));
        let timeless = load_timeless(file)?;
        let Some(schedule) = timeless.schedule.clone() else {
            return refuse(ScheduleRefusal::None { file: file.to_owned() });
        };
        let next: Vec<Occurrence> = schedule.occurrences_after(now).take(SHOWN_OCCURRENCES).collect();
        let Some(first) = next.first() else { return refuse(ScheduleRefusal::Over { file: file.to_owned() }) };
        let inputs = Inputs::load(file, None, &adapters.profiles, CampaignDay::Coming(first.nominal.date()))?;
        let inputs = Arc::new(inputs.for_occurrence(first));
        if !inputs.campaign.has_gateway_key() {
            return Err(Error::NoGatewayNamed);
        }
        let name = inputs.campaign.brief.name.clone();
        let here = absolute_file_path(file);
        // A damaged record of it is replaced: whoever activates it looks at all of it once more.
        let stored = adapters.ledger.list_schedules().await?;
        let was_armed = stored.iter().any(|stored| schedule_name(stored) == name);
        let known = stored.into_iter().flatten().find(|known| known.name == name);
        if let Some(other) = known.filter(|known| known.file != here) {
            return refuse(ScheduleRefusal::OtherFile { name, there: PathBuf::from(&other.file) });
        }
        let profiles = &adapters.profiles;
        if let Some(finding) = (ProtectedFiles { state: &adapters.state, profiles }).check_results_target(&inputs) {
            return Err(Error::Findings(vec![finding]));
        }
        read_destination_key(&inputs.destination)?;
        if let Some(profile) = inputs.destination.profile() {
            check_profile(adapters, profile).await?;
        }
        let dated = timeless.recipients != inputs.campaign.recipients;
        // What is no file is fetched when it is due.
        let to_come =
            inputs.list.is_unfetched() || (dated || schedule.wait_for_file.is_some()) && !inputs.list.is_available();
        let survey = match to_come {
            true => None,
            false => Some(survey_list(&inputs, Some(adapters.ledger.as_ref()), &adapters.observer).await?),
        };
        let mut findings = check_inputs(&inputs, survey.as_ref(), RunStart::Scheduled(now));
        findings.extend(check_ledger_for_run(&inputs, adapters.ledger.as_ref(), now).await?);
        if findings.iter().any(Finding::is_error) {
            return Err(Error::Findings(findings));
        }
        let (before, now_says) = (&timeless.brief, &inputs.campaign.brief);
        let repeats_itself = schedule.repeats_after(now)
            && before.all_contents().eq(now_says.all_contents())
            && !mentions_today(now_says, survey.as_ref().map_or(&Vec::new(), |survey| &survey.includes));
        let armed = ActiveSchedule {
            name,
            file: here,
            digest: run_blocking(move || campaign_digest(&timeless)).await?,
            gateway: inputs.campaign.brief.gateway.clone(),
            addresses: format_addresses(&inputs.destination),
            account: inputs.destination.account_name().to_owned(),
            by: current_person(),
            activated_at: now,
            since: now,
            paused: false,
        };
        Ok(Self { schedule, next, survey, findings, repeats_itself, was_armed, armed, inputs })
    }

    /// Asks for a yes as before a live run, and arms it.
    ///
    /// # Errors
    /// Why it was not armed.
    pub async fn activate(self, adapters: &Adapters, consent: &dyn Consent) -> Result<ActiveSchedule, Error> {
        if let Some(profile) = self.inputs.destination.remote_profile() {
            let samples = match self.survey.as_ref().filter(|_| consent.shows_proposals()) {
                Some(survey) => survey.pick_samples(&self.inputs, &survey.survey.planned_rows())?,
                None => Vec::new(),
            };
            confirm(consent, Proposal::ActivateSchedule { arming: &self, profile, samples: &samples }).await?;
        }
        adapters.ledger.activate_schedule(self.armed.clone()).await?;
        Ok(self.armed)
    }
}

/// Pauses, resumes or forgets what is armed under a name.
///
/// # Errors
/// When nothing is armed under it, or the ledger fails.
pub async fn apply_schedule_order(ledger: &dyn ScheduleStore, name: &str, order: ScheduleOrder) -> Result<(), Error> {
    let known = match order {
        ScheduleOrder::Pause => ledger.pause_schedule(name).await?,
        ScheduleOrder::Resume { since } => ledger.resume_schedule(name, since).await?,
        ScheduleOrder::Remove => ledger.deactivate_schedule(name).await?,
    };
    if known {
        return Ok(());
    }
    let names: Vec<String> =
        ledger.list_schedules().await?.iter().map(|stored| schedule_name(stored).to_owned()).collect();
    let near = crate::finding::did_you_mean(name, names.iter().map(String::as_str)).map(ToOwned::to_owned);
    Err(Error::Schedule(ScheduleRefusal::Unknown { name: name.to_owned(), near, any: !names.is_empty() }))
}

fn schedule_name(stored: &Result<ActiveSchedule, DamagedSchedule>) -> &str {
    match stored {
        Ok(armed) => &armed.name,
        Err(damaged) => &damaged.name,
    }
}

/// What is ordered of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleOrder {
    /// Nothing of it fires until it is resumed.
    Pause,
    /// What is due after this moment fires again.
    Resume {
        /// The moment.
        since: Timestamp,
    },
    /// It is forgotten.
    Remove,
}
