//! Asking a gateway about a campaign before it is sent: one envelope for balance and sender names.

use std::time::Duration;

use super::{AccountView, Adapters, Error, GatewayAccount, Inputs, RunEvent};
use crate::check::online::{self, AccountAnswer, Cost, check_account, find_signatures};
use crate::finding::Finding;
use crate::gateway::{AskBalance, AskSenders, Balance, FailureCause};
use crate::manifest::Profile;

/// How long the answer is waited for: the question is a service, not a condition.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What a gateway said about a campaign.
#[derive(Debug)]
pub struct OnlineAnswer {
    /// What speaks against sending.
    pub findings: Vec<Finding>,
    /// What the account has; nothing where that is not known.
    pub balance: Option<Balance>,
    /// What the messages cost.
    pub cost: Cost,
    key_refused: bool,
}

/// Asks the gateway of a campaign about messages that cost so much.
///
/// # Errors
/// When it cannot be asked; what it says is no error.
pub async fn ask_online(
    adapters: &Adapters,
    (inputs, profile): (&Inputs, &Profile),
    cost: Cost,
) -> Result<OnlineAnswer, Error> {
    let account = GatewayAccount::open(adapters, profile, ANSWER_TIMEOUT).await?;
    let told: AccountAnswer = account.ask_both((&AskBalance, &AskSenders)).await?;
    let campaign = &inputs.campaign;
    let signatures = find_signatures(&campaign.brief, &campaign.places, &inputs.today);
    let view = |view| (adapters.name_view)(view, &profile.name);
    let (balance, senders) = (view(AccountView::Balance), view(AccountView::Senders));
    let (verified, key) = (&profile.sender_verified, profile.api_key.to_string());
    let known = online::AccountTerms { verified, key: &key, balance: &balance, senders: &senders };
    Ok(OnlineAnswer {
        findings: check_account(&told, &signatures, known, &cost),
        key_refused: matches!(&told, Err(refused) if refused.cause == FailureCause::KeyRefused),
        balance: told.ok().and_then(|(balance, _)| balance.ok()),
        cost,
    })
}

/// Asks the gateway of a campaign, and refuses what it speaks against. Returns the balance, which is reported unless a
/// question shows it.
pub(super) async fn refuse_online(
    adapters: &Adapters,
    of: (&Inputs, &Profile),
    cost: Cost,
    is_shown: bool,
) -> Result<Option<Balance>, Error> {
    let answer = ask_online(adapters, of, cost).await?;
    let balance = answer.balance.clone();
    let is_allowed = !answer.findings.iter().any(Finding::is_error);
    if let Some(balance) = balance.clone().filter(|_| !is_shown || !is_allowed) {
        (adapters.observer)(RunEvent::Money { balance, cost: answer.cost.clone() });
    }
    (adapters.observer)(RunEvent::Warnings(answer.into_warnings()?));
    Ok(balance)
}

impl OnlineAnswer {
    /// The warnings, unless there are errors, which refuse a run.
    fn into_warnings(self) -> Result<Vec<Finding>, Error> {
        match self.findings.iter().any(Finding::is_error) {
            false => Ok(self.findings),
            true if self.key_refused => Err(Error::KeyRefused(self.findings)),
            true => Err(Error::Findings(self.findings)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rules::{KEY_REFUSED, ONLINE_UNKNOWN, SENDER_UNKNOWN};

    #[test]
    fn refused_key_is_a_separate_error_and_warnings_pass() {
        let cost = || Cost::Unknown(Vec::new());
        let answer = |findings, key_refused| OnlineAnswer { findings, balance: None, cost: cost(), key_refused };
        let refused = answer(vec![Finding::new(&KEY_REFUSED, "x")], true).into_warnings();
        assert!(matches!(refused, Err(Error::KeyRefused(_))));
        let unknown = answer(vec![Finding::new(&SENDER_UNKNOWN, "x")], false).into_warnings();
        assert!(matches!(unknown, Err(Error::Findings(_))));
        assert_eq!(answer(vec![Finding::new(&ONLINE_UNKNOWN, "x")], false).into_warnings().unwrap().len(), 1);
    }
}
