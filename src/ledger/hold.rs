//! A campaign on an account, in the hands of one process.

use std::any::Any;
use std::fmt;

use super::Run;

/// A campaign on an account that this process alone has, from before the guard looks until it is dropped.
///
/// A process that ends, however it ends, gives it back: at once where the ledger can see that, after a while elsewhere.
pub struct CampaignLock {
    campaign: String,
    account: String,
    /// What the adapter lets go of when this is dropped.
    _kept: Box<dyn Any + Send + Sync>,
}

impl CampaignLock {
    /// A hold that lasts as long as what is kept.
    pub(crate) fn new(campaign: &str, account: &str, kept: impl Any + Send + Sync) -> Self {
        Self { campaign: campaign.to_owned(), account: account.to_owned(), _kept: Box::new(kept) }
    }

    /// Whether a run is of this campaign on this account.
    #[must_use]
    pub fn covers_run(&self, run: &Run) -> bool {
        (&run.campaign, &run.account) == (&self.campaign, &self.account)
    }

    /// A name for what is held, which can be a file's on every system.
    #[must_use]
    pub fn name(&self) -> String {
        lock_name(&self.campaign, &self.account)
    }
}

/// The name of a campaign on an account.
pub(super) fn lock_name(campaign: &str, account: &str) -> String {
    let safe = |character: char| if character.is_alphanumeric() || "-_".contains(character) { character } else { '_' };
    let account: String = account.chars().map(safe).collect();
    format!("{campaign}.{account}")
}

/// The name of one of the places at which blocks of the shared runs of a campaign on an account are drawn.
pub(super) fn place_name(campaign: &str, account: &str, place: u32) -> String {
    // No account has a dot in a name, so this is no other campaign's or account's.
    format!("{}.{place}", lock_name(campaign, account))
}

impl fmt::Debug for CampaignLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").field("campaign", &self.campaign).field("account", &self.account).finish_non_exhaustive()
    }
}
