//! What an account has: its money, its sender names, its templates.
//!
//! What never changes stands in the scenario; here is the rest, and the questions about both.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Balance, Refusal, Templates};
use crate::domain::{Amount, Channel};
use crate::sandbox::request::Load;
use crate::sandbox::scenario::{self, SenderStatus};

/// An account as it is now.
#[derive(Debug)]
pub(crate) struct Account {
    settings: scenario::AccountSettings,
    balance: Amount,
    /// Where statuses go that no `hook` keeps.
    pub notify: Option<Arc<str>>,
    pub templates: Templates,
}

impl Account {
    /// An account at its beginning.
    pub(crate) fn new(settings: scenario::AccountSettings) -> Self {
        let notify = settings.notify.as_deref().map(Arc::from);
        Self { balance: settings.balance, notify, templates: Templates::default(), settings }
    }

    /// What it has left.
    pub(crate) fn balance(&self) -> Amount {
        self.balance
    }

    /// The answer to `balance`.
    pub(crate) fn balance_record(&self) -> Balance {
        Balance { amount: self.balance.shortest(), currency: self.settings.currency.clone() }
    }

    /// The answer to `sender`; nothing of an account that knows every name: a list would deny the others.
    pub(crate) fn senders(&self) -> Value {
        let senders = self.settings.senders.iter().flatten();
        senders.map(|(name, status)| json!({ "name": name, "status": status.name() })).collect()
    }

    /// Whether it may send this: with its own verified names, and on its routes.
    pub(crate) fn allows(&self, load: &Load) -> Result<(), Refusal> {
        if !load.signatures.iter().all(|signature| self.knows_sender(signature)) {
            return Err(Refusal::ALPHA_NAME);
        }
        let routed = self.settings.whatsapp || load.stages.iter().all(|stage| stage.channel != Channel::Whatsapp);
        if routed { Ok(()) } else { Err(Refusal::NO_ROUTE) }
    }

    /// Takes an amount out of the balance.
    pub(crate) fn take(&mut self, amount: Amount) -> Result<(), Refusal> {
        if self.balance < amount {
            return Err(Refusal::NO_MONEY);
        }
        self.balance = self.balance.minus(amount);
        Ok(())
    }

    /// Puts an amount back.
    pub(crate) fn give_back(&mut self, amount: Amount) {
        self.balance = self.balance.plus(amount);
    }

    fn knows_sender(&self, signature: &str) -> bool {
        self.settings.senders.as_ref().is_none_or(|senders| {
            senders.iter().any(|(name, status)| name == signature && *status == SenderStatus::Checked)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Stage;
    use super::*;

    fn load(signature: &str, channel: Channel) -> Load {
        Load { stages: vec![Stage::new(channel, 1, None)], signatures: vec![signature.into()] }
    }

    #[test]
    fn an_account_with_a_list_sends_only_under_its_verified_names() {
        let senders =
            Some(vec![("OlenaCo".to_owned(), SenderStatus::Checked), ("Fresh".to_owned(), SenderStatus::New)]);
        let listed = Account::new(scenario::AccountSettings { senders, ..scenario::AccountSettings::default() });
        let open = Account::new(scenario::AccountSettings::default());
        for (name, known) in [("OlenaCo", true), ("Fresh", false), ("olenaco", false), ("Other", false)] {
            let expected = if known { Ok(()) } else { Err(Refusal::ALPHA_NAME) };
            assert_eq!(listed.allows(&load(name, Channel::Sms)), expected, "{name}");
            assert_eq!(open.allows(&load(name, Channel::Sms)), Ok(()), "{name}");
        }
        let told = json!([{"name": "OlenaCo", "status": "Checked"}, {"name": "Fresh", "status": "New"}]);
        assert_eq!((listed.senders(), open.senders()), (told, json!([])));
    }

    #[test]
    fn whatsapp_needs_a_route() {
        let without =
            Account::new(scenario::AccountSettings { whatsapp: false, ..scenario::AccountSettings::default() });
        assert_eq!(without.allows(&load("OlenaCo", Channel::Whatsapp)), Err(Refusal::NO_ROUTE));
        assert_eq!(without.allows(&load("OlenaCo", Channel::Sms)), Ok(()));
        assert_eq!(
            Account::new(scenario::AccountSettings::default()).allows(&load("OlenaCo", Channel::Whatsapp)),
            Ok(())
        );
    }

    #[test]
    fn a_balance_is_taken_to_the_last_millionth_and_never_overdrawn() {
        let amount = |text: &str| text.parse::<Amount>().expect("an amount");
        let balance = amount("1.000001");
        let mut account = Account::new(scenario::AccountSettings { balance, ..scenario::AccountSettings::default() });
        assert_eq!(account.take(amount("1.000002")), Err(Refusal::NO_MONEY));
        assert_eq!(account.take(balance), Ok(()));
        assert_eq!(account.take(amount("0.000001")), Err(Refusal::NO_MONEY));
        account.give_back(amount("0.000001"));
        assert_eq!(account.balance(), amount("0.000001"));
    }
}
