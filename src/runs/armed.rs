//! What was armed, and whether it is still what it was: what fires is what somebody agreed to.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use jiff::civil::Date;

use super::digest::Digest;
use super::{Adapters, Error, Inputs, ScheduleRefusal, find_schedule, run_blocking, tables};
use crate::check::{TextInputs, find_text_problems};
use crate::finding::Finding;
use crate::ledger::ActiveSchedule;
use crate::manifest::{Campaign, CampaignDay, Destination, PathScope, Profile};

/// What changed of a schedule since it was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleChange {
    /// The campaign file cannot be read, or something in it is wrong.
    Unreadable,
    /// The campaign file or a text of it.
    Campaign,
    /// The gateway is another one, or has other addresses.
    Addresses,
    /// The account behind the gateway.
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

/// The campaign of a file on no day: without the texts of single days, which are the occurrences' own.
///
/// # Errors
/// With everything that is wrong with it.
pub(super) fn load_timeless(file: &Path) -> Result<Campaign, Error> {
    let loaded = tables::load_with_tables(file, CampaignDay::Coming(Date::ZERO), PathScope::Anywhere);
    let sound = !loaded.findings.iter().any(Finding::is_error);
    loaded.value.filter(|_| sound).ok_or(Error::Findings(loaded.findings))
}

/// The digest of a campaign file and its texts, those of single days left out.
pub(super) fn campaign_digest(campaign: &Campaign) -> String {
    let mut texts: Vec<(String, String)> =
        campaign.places.file_texts().map(|(name, text)| (name.into(), text.into())).collect();
    let mut load = |name: &str| {
        let loaded = campaign.folders.read_text(name).map(|(_, text)| text);
        texts.extend(loaded.iter().map(|text| (name.to_owned(), text.clone())));
        loaded
    };
    // Which texts others include, only reading them tells; what is wrong with them is told elsewhere.
    let texts_of = TextInputs { places: None, trims_cells: true, load: &mut load };
    let _ = find_text_problems(&campaign.brief, texts_of, &campaign.today.to_string());
    texts.sort();
    texts.dedup();
    let file = Digest::new().with(campaign.places.source());
    texts.iter().fold(file, |digest, (name, text)| digest.with(name).with(text)).finish()
}

/// The campaign of an active schedule, if its file and texts are the activated ones.
#[must_use]
pub fn load_active_campaign(armed: &ActiveSchedule) -> Option<Campaign> {
    load_timeless(Path::new(&armed.file)).ok().filter(|now| campaign_digest(now) == armed.digest)
}

/// What is armed of a campaign, as long as its file says what was armed; nothing where nothing is.
pub(super) async fn find_active_schedule(
    adapters: &Adapters,
    inputs: &Arc<Inputs>,
) -> Result<Option<ActiveSchedule>, Error> {
    let name = &inputs.campaign.brief.name;
    let Some(armed) = find_schedule(adapters.ledger.as_ref(), name).await? else { return Ok(None) };
    let (compared, inputs) = (armed.clone(), Arc::clone(inputs));
    match run_blocking(move || find_schedule_change(&compared, &inputs)).await? {
        Some(change) => Err(Error::Schedule(ScheduleRefusal::Changed(change))),
        None => Ok(Some(armed)),
    }
}

/// What all occurrences of a schedule are approved by: what fires and where it goes, whatever the list and the day.
pub(super) fn standing_digest(armed: &ActiveSchedule) -> String {
    let ActiveSchedule { digest, gateway, addresses, account, .. } = armed;
    Digest::new().with("campaign schedule 1").with(digest).with(gateway).with(addresses).with(account).finish()
}

/// The addresses that a destination has.
pub(super) fn format_addresses(destination: &Destination) -> String {
    let of = |profile: &Profile| match &profile.async_url {
        Some(other) => format!("{} {other}", profile.base_url),
        None => profile.base_url.to_string(),
    };
    destination.profile().map(of).unwrap_or_default()
}

/// What changed since it was armed; nothing if nothing did.
///
/// A new key or rate of the gateway changes nothing.
pub(super) fn find_schedule_change(armed: &ActiveSchedule, inputs: &Inputs) -> Option<ScheduleChange> {
    match load_timeless(Path::new(&armed.file)) {
        Err(_) => Some(ScheduleChange::Unreadable),
        Ok(now) if campaign_digest(&now) != armed.digest => Some(ScheduleChange::Campaign),
        Ok(_) if inputs.campaign.brief.gateway != armed.gateway => Some(ScheduleChange::Addresses),
        Ok(_) if format_addresses(&inputs.destination) != armed.addresses => Some(ScheduleChange::Addresses),
        Ok(_) if inputs.destination.account_name() != armed.account => Some(ScheduleChange::Account),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn active_schedules_of_earlier_versions_keep_their_digest() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sale.yaml");
        let keys =
            "timezone: UTC\nschedule: { every: day 10:00 }\nnotify: { command: [notify-send, \"{{ text }}\"] }\n";
        let sms = "channels:\n  - sms: { signature: Olena, message: { file: hello.txt } }\n";
        fs::write(&file, format!("name: sale\n{keys}recipients: {{ file: sale.csv }}\n{sms}")).unwrap();
        fs::write(folder.path().join("hello.txt"), "Hello").unwrap();
        let digest = campaign_digest(&load_timeless(&file).unwrap());
        assert_eq!(digest, "479cef6f73aca044db449f54043d72a3c2a48f021be38adbcdbc28034114909d");
        let armed = ActiveSchedule {
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
        assert_eq!(standing_digest(&armed), "3ed02f6e147380edf4da88d3b0ab8313b855d905cec82d4908d0ff829f96562f");
        assert!(load_active_campaign(&armed).is_some());
        fs::write(folder.path().join("hello.txt"), "Goodbye").unwrap();
        assert!(load_active_campaign(&armed).is_none());
    }
}
