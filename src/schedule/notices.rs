//! What somebody wants to be told of a schedule: kept in the ledger, as what is told of runs.

use std::path::Path;

use crate::domain::Occasion;
use crate::ledger::{ArmedSchedule, LedgerError, NewNotification};
use crate::manifest::{Day, load_campaign};
use crate::message::Notice;
use crate::notify::notification;
use crate::runs::Adapters;

/// Has those told who want to hear this of a schedule, as its campaign file says now; one that cannot be read tells nobody.
///
/// # Errors
/// When the ledger cannot be written.
pub(super) async fn tell_of(
    adapters: &Adapters,
    armed: &ArmedSchedule,
    occasion: Occasion,
    what: &str,
) -> Result<(), LedgerError> {
    let kept = kept(adapters, (&armed.name, armed.file.as_ref(), Some(&armed.gateway)), (occasion, what));
    keep(adapters, kept).await
}

/// The same of a schedule of which only the name and the file are known.
///
/// # Errors
/// When the ledger cannot be written.
pub(super) async fn tell_about(
    adapters: &Adapters,
    (name, file): (&str, &Path),
    occasion: Occasion,
    what: &str,
) -> Result<(), LedgerError> {
    let kept = kept(adapters, (name, file, None), (occasion, what));
    keep(adapters, kept).await
}

async fn keep(adapters: &Adapters, kept: Vec<NewNotification>) -> Result<(), LedgerError> {
    if kept.is_empty() { Ok(()) } else { adapters.ledger.notify(kept).await }
}

fn kept(
    adapters: &Adapters,
    (name, file, gateway): (&str, &Path, Option<&str>),
    (occasion, what): (Occasion, &str),
) -> Vec<NewNotification> {
    let now = (adapters.clock)();
    // A file of another campaign, which a damaged record may name, has no say in it.
    let campaign = load_campaign(file, Day::Of(now)).value.filter(|campaign| campaign.brief.name == name);
    let gateways = adapters.profiles.load(Some(file)).unwrap_or_default();
    let of_campaign = || campaign.as_ref().map(|campaign| campaign.brief.gateway.as_str());
    let gateway = gateway.or_else(of_campaign).unwrap_or_default();
    let profile = gateways.profile(gateway).ok();
    let told = campaign.iter().flat_map(|campaign| campaign.told(profile));
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
    told.filter_map(|notify| notification(notify, &notice)).collect()
}
