//! Schedules of campaigns: review, activation, changes since the activation, and their current state.
//!
//! A schedule is stored with the digest of its campaign, so that an occurrence sends only the texts that were
//! activated.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::check_campaign::{check_inputs, check_ledger_for_run, run_campaign_tests};
use super::find::absolute_file_path;
use super::inputs::mentions_today;
use super::ledger_health::{refuse_lost_ledger, refuse_stray_copies};
use super::plan::{Digest, check_profile};
use super::ports::confirm;
use super::{
    Adapters, Consent, Error, Inputs, ListSurvey, PendingOccurrence, Proposal, ProtectedFiles, ScheduleRefusal,
    SkippedOccurrence, current_person, find_schedule, find_schedule_damage, find_schedule_problems, handled_until,
    inputs, list_recent_occurrences, load_schedule, read_destination_key, run_blocking, survey_list,
};
use campaign_core::calendar::{Occurrence, Schedule};
use campaign_core::finding::{BriefFinding, Finding};
use campaign_engine::check::{RunStart, TextInputs, find_text_problems};
pub use campaign_ledger::ScheduleOrder;
use campaign_ledger::{ActiveSchedule, DamagedSchedule, ScheduleUpdate, StrayCopies};
use campaign_manifest::{Campaign, CampaignDay, Destination, PathScope, Profile};

/// The number of upcoming occurrences that are shown for the activation.
const SHOWN_OCCURRENCES: usize = 3;

/// A schedule under review before its activation.
#[derive(Debug)]
pub struct ScheduleActivation {
    /// The campaign on its first day.
    pub inputs: Arc<Inputs>,
    /// The schedule of the campaign.
    pub schedule: Schedule,
    /// The next occurrences, three at most.
    pub next: Vec<Occurrence>,
    /// The survey of the list. `None` if the list does not exist yet, or is fetched only when the run is due.
    pub survey: Option<ListSurvey>,
    /// Warnings and notes of `check` for the next dates.
    pub findings: Vec<Finding>,
    /// Whether each occurrence sends the same texts as the one before.
    pub repeats_itself: bool,
    /// Whether the activation replaces an active schedule.
    pub was_active: bool,
    active: ActiveSchedule,
}

impl ScheduleActivation {
    /// Reviews a campaign with a schedule before its activation. If there is no ledger yet, the adapters have an empty
    /// ledger, and `strays` are the copies of runs in the state folder.
    ///
    /// # Errors
    /// If the schedule cannot be activated.
    pub async fn review(adapters: &Adapters, file: &Path, strays: Option<Vec<StrayCopies>>) -> Result<Self, Error> {
        let now = (adapters.clock)();
        let refuse = |refusal| Err(Error::Schedule(refusal));
        let undated = load_undated_campaign(file)?;
        let Some(schedule) = undated.schedule.clone() else {
            return refuse(ScheduleRefusal::None { file: file.to_owned() });
        };
        let next: Vec<Occurrence> = schedule.occurrences_after(now).take(SHOWN_OCCURRENCES).collect();
        let Some(first) = next.first() else { return refuse(ScheduleRefusal::Over { file: file.to_owned() }) };
        let refuse_loss = async |inputs: &Inputs| match &strays {
            Some(strays) => refuse_stray_copies(strays.clone(), &adapters.state, inputs).await,
            None => refuse_lost_ledger(adapters.ledger.as_ref(), inputs).await,
        };
        let inputs = Inputs::load(file, None, &adapters.profiles, CampaignDay::Coming(first.nominal.date()))?;
        refuse_loss(&inputs).await?;
        let inputs = Arc::new(inputs.for_occurrence(first));
        refuse_loss(&inputs).await?;
        if !inputs.campaign.has_gateway_key() {
            return Err(Error::NoGatewayNamed);
        }
        let name = inputs.campaign.brief.name.clone();
        let path = absolute_file_path(file);
        // A damaged record is replaced, because activating the schedule reviews everything again.
        let stored = adapters.ledger.list_schedules().await?;
        let was_active = stored.iter().any(|stored| schedule_name(stored) == name);
        let active = stored.into_iter().flatten().find(|active| active.name == name);
        if let Some(other) = active.filter(|active| active.file != path) {
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
        let is_dated = undated.recipients != inputs.campaign.recipients;
        // A list that is not a file is fetched only when the run is due.
        let list_comes_later =
            inputs.list.is_unfetched() || (is_dated || schedule.wait_for_file.is_some()) && !inputs.list.is_available();
        let survey = match list_comes_later {
            true => None,
            false => Some(survey_list(&inputs, Some(adapters.ledger.as_ref()), &adapters.observer).await?),
        };
        let mut findings = check_inputs(&inputs, survey.as_ref(), RunStart::Scheduled(now));
        findings.extend(run_campaign_tests(&inputs).await?.into_iter().flat_map(|test| test.findings));
        findings.extend(check_ledger_for_run(&inputs, adapters.ledger.as_ref(), now).await?);
        if findings.iter().any(Finding::is_error) {
            return Err(Error::Findings(findings));
        }
        let (before, current) = (&undated.brief, &inputs.campaign.brief);
        let repeats_itself = schedule.repeats_after(now)
            && before.all_contents().eq(current.all_contents())
            && !mentions_today(current, survey.as_ref().map_or(&Vec::new(), |survey| &survey.includes));
        let active = ActiveSchedule {
            name,
            file: path,
            digest: run_blocking(move || campaign_digest(&undated)).await?,
            gateway: inputs.campaign.brief.gateway.clone(),
            addresses: format_addresses(&inputs.destination),
            account: inputs.destination.account_name().to_owned(),
            by: current_person(),
            activated_at: now,
            since: now,
            paused: false,
        };
        Ok(Self { schedule, next, survey, findings, repeats_itself, was_active, active, inputs })
    }

    /// Asks for confirmation as before a live run.
    ///
    /// # Errors
    /// If the activation was not confirmed.
    pub async fn confirm(self, consent: &dyn Consent) -> Result<ConfirmedActivation, Error> {
        if let Some(profile) = self.inputs.destination.remote_profile() {
            let samples = match self.survey.as_ref().filter(|_| consent.shows_proposals()) {
                Some(survey) => survey.pick_samples(&self.inputs, &survey.survey.planned_rows())?,
                None => Vec::new(),
            };
            confirm(consent, Proposal::ActivateSchedule { activation: &self, profile, samples: &samples }).await?;
        }
        Ok(ConfirmedActivation { inputs: self.inputs, active: self.active })
    }
}

/// A confirmed activation of a schedule.
#[derive(Debug)]
pub struct ConfirmedActivation {
    inputs: Arc<Inputs>,
    active: ActiveSchedule,
}

impl ConfirmedActivation {
    /// Activates the schedule in the ledger, which might be new since the review.
    ///
    /// # Errors
    /// If the ledger fails, or the profile's host or approval rule contradicts it.
    pub async fn activate(self, adapters: &Adapters) -> Result<ActiveSchedule, Error> {
        if let Some(profile) = self.inputs.destination.profile() {
            check_profile(adapters, profile).await?;
        }
        adapters.ledger.update_schedules(ScheduleUpdate::Activate(self.active.clone())).await?;
        Ok(self.active)
    }
}

/// Pauses, resumes or removes an active schedule. A schedule cannot be resumed if there are signs that the ledger lacks
/// sent messages of the campaign.
///
/// # Errors
/// If no active schedule has this name, or the ledger fails or is refused.
pub async fn apply_schedule_order(adapters: &Adapters, name: &str, order: ScheduleOrder) -> Result<(), Error> {
    let ledger = adapters.ledger.as_ref();
    if let (ScheduleOrder::Resume { .. }, Ok(Some(active))) = (order, find_schedule(ledger, name).await) {
        let today = (adapters.clock)().to_zoned(TimeZone::UTC).date();
        // A schedule whose file has errors does not fire until it is activated again, which checks the ledger too.
        let inputs = Inputs::load(Path::new(&active.file), None, &adapters.profiles, CampaignDay::Coming(today));
        if let Ok(inputs) = inputs {
            refuse_lost_ledger(ledger, &inputs).await?;
        }
    }
    if ledger.update_schedules(ScheduleUpdate::Order { name: name.to_owned(), order }).await? {
        return Ok(());
    }
    let names: Vec<String> =
        ledger.list_schedules().await?.iter().map(|stored| schedule_name(stored).to_owned()).collect();
    let near = campaign_core::finding::did_you_mean(name, names.iter().map(String::as_str)).map(ToOwned::to_owned);
    Err(Error::Schedule(ScheduleRefusal::Unknown { name: name.to_owned(), near, any: !names.is_empty() }))
}

fn schedule_name(stored: &Result<ActiveSchedule, DamagedSchedule>) -> &str {
    match stored {
        Ok(active) => &active.name,
        Err(damaged) => &damaged.name,
    }
}

/// The change of a schedule since its activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleChange {
    /// The campaign file cannot be read or has errors.
    Unreadable,
    /// The campaign file or one of its texts.
    Campaign,
    /// The gateway or one of its addresses.
    Addresses,
    /// The account of the gateway.
    Account,
}

impl fmt::Display for ScheduleChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "the campaign file now has errors or cannot be read",
            Self::Campaign => "the campaign file or one of its templates has changed",
            Self::Addresses => "the gateway or one of its addresses has changed",
            Self::Account => "the gateway account has changed",
        })
    }
}

/// Loads a campaign without a date, which excludes the texts of individual days, because such texts belong to
/// occurrences.
///
/// # Errors
/// If the campaign has errors, all of which are returned.
pub(super) fn load_undated_campaign(file: &Path) -> Result<Campaign, Error> {
    let loaded = inputs::load_with_tables(file, CampaignDay::Coming(Date::ZERO), PathScope::Anywhere);
    let is_valid = !loaded.findings.iter().any(Finding::is_error);
    loaded.value.filter(|_| is_valid).ok_or(Error::Findings(loaded.findings))
}

/// Computes the digest of a campaign file and its texts, without the texts of individual days.
pub(super) fn campaign_digest(campaign: &Campaign) -> String {
    let mut texts: Vec<(String, String)> =
        campaign.places.file_texts().map(|(name, text)| (name.into(), text.into())).collect();
    let mut load = |name: &str| {
        let loaded = campaign.folders.read_text(name).map(|(_, text)| text);
        texts.extend(loaded.iter().map(|text| (name.to_owned(), text.clone())));
        loaded
    };
    // Included texts are found only by reading the texts that include them. Other checks report problems in the texts.
    let text_inputs = TextInputs { places: None, trims_cells: true, load: &mut load };
    let _ = find_text_problems(&campaign.brief, text_inputs, &campaign.today.to_string());
    texts.sort();
    texts.dedup();
    let file = Digest::new().with(campaign.places.source());
    texts.iter().fold(file, |digest, (name, text)| digest.with(name).with(text)).finish()
}

/// Loads the campaign of an active schedule, if its file and texts are unchanged.
pub fn load_active_campaign(active: &ActiveSchedule) -> Option<Campaign> {
    load_undated_campaign(Path::new(&active.file)).ok().filter(|campaign| campaign_digest(campaign) == active.digest)
}

/// Finds the active schedule of a campaign, and returns an error if the campaign has changed since the activation.
/// Returns `None` if the campaign has no active schedule.
pub(super) async fn find_active_schedule(
    adapters: &Adapters,
    inputs: &Arc<Inputs>,
) -> Result<Option<ActiveSchedule>, Error> {
    let name = &inputs.campaign.brief.name;
    let Some(active) = find_schedule(adapters.ledger.as_ref(), name).await? else { return Ok(None) };
    let (compared, inputs) = (active.clone(), Arc::clone(inputs));
    match run_blocking(move || find_schedule_change(&compared, &inputs)).await? {
        Some(change) => Err(Error::Schedule(ScheduleRefusal::Changed(change))),
        None => Ok(Some(active)),
    }
}

/// The digest that approves all occurrences of a schedule; it covers the texts and the destination, but not the list or
/// the day.
pub(super) fn standing_digest(active: &ActiveSchedule) -> String {
    let ActiveSchedule { digest, gateway, addresses, account, .. } = active;
    Digest::new().with("campaign schedule 1").with(digest).with(gateway).with(addresses).with(account).finish()
}

/// Formats the addresses of a destination as text.
pub(super) fn format_addresses(destination: &Destination) -> String {
    let format = |profile: &Profile| match &profile.async_url {
        Some(other) => format!("{} {other}", profile.base_url),
        None => profile.base_url.to_string(),
    };
    destination.profile().map(format).unwrap_or_default()
}

/// Finds the first change since the schedule was activated, if there is any.
///
/// A new key or rate of the gateway is not a change.
pub(super) fn find_schedule_change(active: &ActiveSchedule, inputs: &Inputs) -> Option<ScheduleChange> {
    match load_undated_campaign(Path::new(&active.file)) {
        Err(_) => Some(ScheduleChange::Unreadable),
        Ok(campaign) if campaign_digest(&campaign) != active.digest => Some(ScheduleChange::Campaign),
        Ok(_) if inputs.campaign.brief.gateway != active.gateway => Some(ScheduleChange::Addresses),
        Ok(_) if format_addresses(&inputs.destination) != active.addresses => Some(ScheduleChange::Addresses),
        Ok(_) if inputs.destination.account_name() != active.account => Some(ScheduleChange::Account),
        Ok(_) => None,
    }
}

/// Whether an active schedule fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleStatus {
    /// The schedule fires when it is due.
    Active,
    /// The schedule is paused until a person resumes it.
    Paused,
    /// The campaign, the gateway or the account changed after the activation. The schedule must be activated again.
    Changed(ScheduleChange),
    /// A record of the schedule in the ledger is damaged, so the schedule does not fire.
    Damaged(String),
}

/// An active schedule with its current state.
#[derive(Clone, Debug)]
pub struct ScheduleView {
    /// The name of the campaign and schedule.
    pub name: String,
    /// The campaign file.
    pub file: String,
    /// Only occurrences after this time count.
    pub since: Timestamp,
    /// Whether the schedule fires.
    pub state: ScheduleStatus,
    /// The schedule in its file. `None` if the file changed or a record is damaged.
    pub schedule: Option<Schedule>,
    /// The next occurrence that fires.
    pub next: Option<Occurrence>,
    /// The last occurrence, if it was skipped.
    pub skipped: Option<SkippedOccurrence>,
    /// The last occurrence that was due but has no record, if there is one.
    pub pending: Option<PendingOccurrence>,
    /// The findings about its current file.
    pub findings: Vec<BriefFinding>,
}

impl ScheduleStatus {
    /// The name of the status in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Active => "armed",
            Self::Paused => "paused",
            Self::Changed(_) => "changed",
            Self::Damaged(_) => "damaged",
        }
    }

    /// A description of the damage. `None` if the schedule is not damaged.
    pub fn problem(&self) -> Option<&str> {
        match self {
            Self::Damaged(problem) => Some(problem),
            Self::Active | Self::Paused | Self::Changed(_) => None,
        }
    }
}

impl ScheduleView {
    /// The schedule's JSON form, as `schedule list --json` prints it.
    pub fn to_json(&self) -> Value {
        let next = self.next.as_ref().map(Occurrence::format_moment);
        let mut object = json!({ "name": self.name, "file": self.file, "state": self.state.as_str(), "next": next });
        if let Some(problem) = self.state.problem() {
            object["problem"] = problem.into();
        }
        if let Some(skipped) = &self.skipped {
            object["skipped"] = skipped.to_json();
        }
        if let Some(pending) = &self.pending {
            object["due"] = pending.to_json();
        }
        if !self.findings.is_empty() {
            object["findings"] = json!(self.findings);
        }
        object
    }

    async fn load(adapters: &Adapters, active: ActiveSchedule) -> Result<Self, Error> {
        let now = (adapters.clock)();
        let damage = find_schedule_damage(adapters.ledger.as_ref(), &active, now).await?;
        // Damaged records cannot be read, so the last occurrence is unknown in that case.
        let last = match &damage {
            Some(_) => Vec::new(),
            None => list_recent_occurrences(adapters.ledger.as_ref(), &active, now, 1).await?,
        };
        let skipped = last.first().and_then(SkippedOccurrence::from_record);
        let (state, schedule) = match (damage, load_schedule(adapters, &active).await?) {
            (Some(error), _) => (ScheduleStatus::Damaged(error.describe_damage()), None),
            (None, Ok(schedule)) if active.paused => (ScheduleStatus::Paused, Some(schedule)),
            (None, Ok(schedule)) => (ScheduleStatus::Active, Some(schedule)),
            (None, Err(change)) => (ScheduleStatus::Changed(change), None),
        };
        let findings = match state {
            ScheduleStatus::Changed(ScheduleChange::Unreadable) => find_schedule_problems(adapters, &active).await?,
            _ => Vec::new(),
        };
        let firing = schedule.as_ref().filter(|_| state == ScheduleStatus::Active);
        let next = firing.and_then(|schedule| schedule.occurrences_after(now.max(active.since)).next());
        let pending = match firing {
            Some(schedule) => {
                PendingOccurrence::find(adapters, &active, schedule, handled_until(&active, last.first())).await?
            }
            None => None,
        };
        let ActiveSchedule { name, file, since, .. } = active;
        Ok(Self { name, file, since, state, schedule, next, skipped, pending, findings })
    }
}

impl From<DamagedSchedule> for ScheduleView {
    fn from(DamagedSchedule { name, file, error }: DamagedSchedule) -> Self {
        let state = ScheduleStatus::Damaged(error.describe_damage());
        Self {
            name,
            file,
            since: Timestamp::MAX,
            state,
            schedule: None,
            next: None,
            skipped: None,
            pending: None,
            findings: Vec::new(),
        }
    }
}

/// Loads views of all active schedules, including damaged schedules.
///
/// # Errors
/// If the ledger or a file cannot be read.
pub async fn load_schedule_views(adapters: &Adapters) -> Result<Vec<ScheduleView>, Error> {
    let mut views = Vec::new();
    for stored in adapters.ledger.list_schedules().await? {
        views.push(match stored {
            Ok(active) => ScheduleView::load(adapters, active).await?,
            Err(damaged) => damaged.into(),
        });
    }
    Ok(views)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn active_schedules_from_earlier_versions_keep_their_digest() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sale.yaml");
        let keys =
            "timezone: UTC\nschedule: { every: day 10:00 }\nnotify: { command: [notify-send, \"{{ text }}\"] }\n";
        let sms = "channels:\n  - sms: { signature: Olena, message: { file: hello.txt } }\n";
        fs::write(&file, format!("name: sale\n{keys}recipients: {{ file: sale.csv }}\n{sms}")).unwrap();
        fs::write(folder.path().join("hello.txt"), "Hello").unwrap();
        let digest = campaign_digest(&load_undated_campaign(&file).unwrap());
        assert_eq!(digest, "479cef6f73aca044db449f54043d72a3c2a48f021be38adbcdbc28034114909d");
        let active = ActiveSchedule {
            name: "sale".to_owned(),
            file: file.display().to_string(),
            digest,
            gateway: "production".to_owned(),
            addresses: "https://gateway.example".to_owned(),
            account: "gateway.example".to_owned(),
            by: "olha".to_owned(),
            activated_at: jiff::Timestamp::UNIX_EPOCH,
            since: jiff::Timestamp::UNIX_EPOCH,
            paused: false,
        };
        assert_eq!(standing_digest(&active), "3ed02f6e147380edf4da88d3b0ab8313b855d905cec82d4908d0ff829f96562f");
        assert!(load_active_campaign(&active).is_some());
        fs::write(folder.path().join("hello.txt"), "Goodbye").unwrap();
        assert!(load_active_campaign(&active).is_none());
    }
}
