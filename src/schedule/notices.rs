//! What somebody wants to be told of a schedule: kept in the ledger, as what is told of runs.

use std::path::Path;

use crate::domain::NotificationEvent;
use crate::ledger::{ActiveSchedule, LedgerError, NewNotification};
use crate::manifest::{Campaign, CampaignDay, load_campaign};
use crate::message::Notice;
use crate::notify::create_notification;
use crate::runs::{Adapters, load_active_campaign};

/// A schedule that someone is notified about.
#[derive(Clone, Copy)]
pub(super) struct NotifiedSchedule<'a> {
    /// Its name, which is the campaign's.
    pub(super) name: &'a str,
    /// The campaign file.
    pub(super) file: &'a Path,
    /// Its record, unless that is damaged.
    pub(super) armed: Option<&'a ActiveSchedule>,
}

impl<'a> From<&'a ActiveSchedule> for NotifiedSchedule<'a> {
    fn from(armed: &'a ActiveSchedule) -> Self {
        Self { name: &armed.name, file: armed.file.as_ref(), armed: Some(armed) }
    }
}

/// Has those told who want to hear this of a schedule, as its campaign file says now; one that cannot be read tells nobody.
///
/// The program of a campaign file that changed since its schedule became active is not started: nobody agreed to it.
///
/// # Errors
/// When the ledger cannot be written.
pub(super) async fn notify_about(
    adapters: &Adapters,
    schedule: impl Into<NotifiedSchedule<'_>>,
    occasion: NotificationEvent,
    what: &str,
) -> Result<(), LedgerError> {
    let kept = build_notifications(adapters, schedule.into(), (occasion, what));
    store_notifications(adapters, kept).await
}

async fn store_notifications(adapters: &Adapters, kept: Vec<NewNotification>) -> Result<(), LedgerError> {
    if kept.is_empty() { Ok(()) } else { adapters.ledger.queue_notifications(kept).await }
}

fn build_notifications(
    adapters: &Adapters,
    NotifiedSchedule { name, file, armed }: NotifiedSchedule<'_>,
    (occasion, what): (NotificationEvent, &str),
) -> Vec<NewNotification> {
    let now = (adapters.clock)();
    // A file of another campaign, which a damaged record may name, has no say in it.
    let campaign = load_campaign(file, CampaignDay::Of(now)).value.filter(|campaign| campaign.brief.name == name);
    let activated = armed.and_then(load_active_campaign);
    let is_activated = |campaign: &Campaign| activated.as_ref().is_some_and(|known| known.notify == campaign.notify);
    let campaign = campaign.map(|campaign| match is_activated(&campaign) {
        true => campaign,
        false => campaign.without_notify_command(),
    });
    let gateways = adapters.profiles.load(Some(file)).unwrap_or_default();
    let of_campaign = || campaign.as_ref().map(|campaign| campaign.brief.gateway.as_str());
    let gateway = armed.map(|armed| armed.gateway.as_str()).or_else(of_campaign).unwrap_or_default();
    let profile = gateways.find_profile(gateway).ok();
    let told = campaign.iter().flat_map(|campaign| campaign.notify_settings(profile));
    let notice = Notice {
        occasion,
        campaign: name.to_owned(),
        run: None,
        gateway: gateway.to_owned(),
        text: format!("{name} through {gateway}: {what}"),
        rows: 0,
        counts: std::collections::BTreeMap::new(),
        why: Some(what.to_owned()),
        results: None,
        at: now.to_string(),
    };
    told.filter_map(|notify| create_notification(notify, &notice)).collect()
}
