//! Taking a campaign on an account, which is where everything begins that may send or decide.

use super::Error;
use crate::ledger::{Author, CampaignLock, Ledger};

/// Takes a campaign on an account.
///
/// # Errors
/// When another process has it, or nobody can tell.
pub async fn hold_campaign(
    ledger: &dyn Ledger,
    campaign: &str,
    gateway: &str,
    account: &str,
) -> Result<CampaignLock, Error> {
    match ledger.acquire_campaign_lock(campaign, account).await? {
        Some(hold) => Ok(hold),
        None => Err(Error::Busy {
            campaign: campaign.to_owned(),
            gateway: gateway.to_owned(),
            since: ledger.find_lock_time(campaign, account).await?,
        }),
    }
}

/// What stands for a person whose name is not known.
const UNKNOWN_PERSON: &str = "somebody";

/// Whether it is known who decided.
#[must_use]
pub fn is_known_author(author: &Author) -> bool {
    !matches!(author, Author::Person(name) if name == UNKNOWN_PERSON)
}

/// The name of the person at this computer, as decisions keep it.
#[must_use]
pub fn current_person() -> String {
    let known = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    known.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| UNKNOWN_PERSON.to_owned())
}
