//! A gateway that is new here: its account is asked before anything about it is written.

use std::time::Duration;

use super::{Adapters, Error, GatewayAccount};
use crate::draft::ProfileDraft;
use crate::gateway::{AskBalance, AskSenders, Balance, InquiryFailure, SenderName};

/// How long the answer is waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What the account of a new profile says of itself.
#[derive(Debug)]
pub struct NewAccount {
    /// Its money.
    pub balance: Result<Balance, InquiryFailure>,
    /// Its sender names.
    pub senders: Result<Vec<SenderName>, InquiryFailure>,
}

/// Asks the account of a new profile unless nobody is to be asked, then writes the profile; its host is known from now on.
///
/// # Errors
/// When the account cannot be asked or refuses the key, and nothing is written then; or the profile cannot be written.
pub async fn add_gateway(adapters: &Adapters, draft: &ProfileDraft, ask: bool) -> Result<Option<NewAccount>, Error> {
    let profile = &draft.profile;
    let told = if ask { Some(ask_account(adapters, draft).await?) } else { None };
    draft.write().map_err(|error| Error::Storage(error.to_string()))?;
    adapters.ledger.trust_host(&profile.name, &profile.trusted_hosts()).await?;
    Ok(told)
}

async fn ask_account(adapters: &Adapters, ProfileDraft { profile, .. }: &ProfileDraft) -> Result<NewAccount, Error> {
    let account = GatewayAccount::open_new(adapters, profile, ANSWER_TIMEOUT)?;
    let answer = account.ask_both((&AskBalance, &AskSenders)).await?;
    let (balance, senders) = answer.map_err(|failure| Error::Unanswered {
        gateway: profile.name.clone(),
        key: profile.api_key.to_string(),
        failure,
    })?;
    Ok(NewAccount { balance, senders })
}
