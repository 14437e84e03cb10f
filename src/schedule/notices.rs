//! What somebody wants to be told of a schedule: kept in the ledger, as what is told of runs.

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
    match kept(armed, occasion, what, now) {
        Some(kept) => adapters.ledger.notify(vec![kept]).await,
        None => Ok(()),
    }
}

fn kept(armed: &ArmedSchedule, occasion: Occasion, what: &str, now: Timestamp) -> Option<NewNotification> {
    let campaign = load_campaign(armed.file.as_ref(), Day::Of(now)).value?;
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
    notification(campaign.notify.as_ref()?, &notice)
}
