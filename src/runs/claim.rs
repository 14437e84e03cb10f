//! Taking a campaign on an account, which is where everything begins that may send or decide.

use super::Error;
use crate::ledger::{Author, Hold, Ledger};

/// Takes a campaign on an account.
///
/// # Errors
/// When another process has it, or nobody can tell.
pub async fn hold(ledger: &dyn Ledger, campaign: &str, gateway: &str, account: &str) -> Result<Hold, Error> {
    match ledger.hold(campaign, account).await? {
        Some(hold) => Ok(hold),
        None => Err(Error::Busy {
            campaign: campaign.to_owned(),
            gateway: gateway.to_owned(),
            since: ledger.held_since(campaign, account).await?,
        }),
    }
}

/// What stands for a person whose name is not known.
const SOMEBODY: &str = "somebody";

/// Whether it is known who decided.
#[must_use]
pub fn is_known(author: &Author) -> bool {
    !matches!(author, Author::Person(name) if name == SOMEBODY)
}

/// The name of the person at this computer, as decisions keep it.
#[must_use]
pub fn person() -> String {
    let known = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    known.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| SOMEBODY.to_owned())
}
