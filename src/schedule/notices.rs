//! What somebody wants to be told of a schedule: kept in the ledger, as what is told of runs.

use std::path::Path;

use jiff::Timestamp;

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
    let now = (adapters.clock)();
    match kept(adapters, armed, (occasion, what), now) {
        kept if kept.is_empty() => Ok(()),
        kept => adapters.ledger.notify(kept).await,
    }
}

fn kept(
    adapters: &Adapters,
    armed: &ArmedSchedule,
    (occasion, what): (Occasion, &str),
    now: Timestamp,
) -> Vec<NewNotification> {
    let file: &Path = armed.file.as_ref();
    let campaign = load_campaign(file, Day::Of(now)).value;
    let gateways = adapters.profiles.load(Some(file)).unwrap_or_default();
    let profile = gateways.profile(&armed.gateway).ok();
    let told = campaign.iter().flat_map(|campaign| campaign.told(profile));
    let notice = Notice {
        occasion,
        campaign: armed.name.clone(),
        run: None,
        gateway: armed.gateway.clone(),
        text: format!("{} through {}: {what}", armed.name, armed.gateway),
        rows: 0,
        counts: std::collections::BTreeMap::new(),
        why: Some(what.to_owned()),
        results: None,
        at: now.to_string(),
    };
    told.filter_map(|notify| notification(notify, &notice)).collect()
}
