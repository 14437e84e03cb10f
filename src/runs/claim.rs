//! Taking a run: the lock of its campaign on its account, and the owner's token in the ledger.

use std::path::Path;

use super::Error;
use crate::delivery::RunLock;
use crate::ledger::{Ledger, Owner, RunId};

/// Takes the lock of a campaign on an account.
///
/// # Errors
/// When another process has it, or it cannot be made.
pub fn lock(state: &Path, campaign: &str, gateway: &str, account: &str) -> Result<RunLock, Error> {
    RunLock::take(state, campaign, account)
        .map_err(|error| Error::Storage(format!("the run cannot be locked: {error}")))?
        .ok_or_else(|| Error::Busy { campaign: campaign.to_owned(), gateway: gateway.to_owned() })
}

/// Takes a run; gives the new owner, and how many requests of the owner before it are in doubt from now on.
///
/// The caller has the run's lock.
///
/// # Errors
/// When the ledger cannot be written.
pub async fn claim(ledger: &dyn Ledger, run: RunId) -> Result<(Owner, usize), Error> {
    let owner = Owner(rand::random());
    let doubtful = ledger.claim(run, owner).await?;
    Ok((owner, doubtful))
}

/// The name of the person at this computer, as decisions keep it.
#[must_use]
pub fn person() -> String {
    let known = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    known.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "somebody".to_owned())
}
