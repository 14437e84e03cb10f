//! What an account has: its money, its sender names, its templates.
//!
//! What never changes stands in the scenario; here is the rest, and the questions about both.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{BalanceRecord, OperationError, Templates};
use crate::domain::{Amount, Channel};
use crate::sandbox::request::SendRequest;
use crate::sandbox::scenario::{self, SenderStatus};

/// An account as it is now.
#[derive(Debug)]
pub(crate) struct SandboxAccount {
    settings: scenario::AccountSettings,
    balance: Amount,
    /// Where statuses go that no `hook` keeps.
    pub notify: Option<Arc<str>>,
    pub templates: Templates,
}

impl SandboxAccount {
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
    pub(crate) fn balance_record(&self) -> BalanceRecord {
        BalanceRecord { amount: self.balance.trim_decimals(), currency: self.settings.currency.clone() }
    }

    /// The answer to `sender`; nothing of an account that knows every name: a list would deny the others.
    pub(crate) fn sender_records(&self) -> Value {
        let senders = self.settings.senders.iter().flatten();
        senders.map(|(name, status)| json!({ "name": name, "status": status.name() })).collect()
    }

    /// Whether it may send this: with its own verified names, and on its routes.
    pub(crate) fn check_allowed(&self, load: &SendRequest) -> Result<(), OperationError> {
        if !load.signatures.iter().all(|signature| self.knows_sender(signature)) {
            return Err(OperationError::ALPHA_NAME);
        }
        let routed = self.settings.whatsapp || load.stages.iter().all(|stage| stage.channel != Channel::Whatsapp);
        if routed { Ok(()) } else { Err(OperationError::NO_ROUTE) }
    }

    /// Takes an amount out of the balance.
    pub(crate) fn charge(&mut self, amount: Amount) -> Result<(), OperationError> {
        if self.balance < amount {
            return Err(OperationError::NO_MONEY);
        }
        self.balance = self.balance.saturating_sub(amount);
        Ok(())
    }

    /// Puts an amount back.
    pub(crate) fn refund(&mut self, amount: Amount) {
        self.balance = self.balance.saturating_add(amount);
    }

    fn knows_sender(&self, signature: &str) -> bool {
        self.settings.senders.as_ref().is_none_or(|senders| {
            senders.iter().any(|(name, status)| name == signature && *status == SenderStatus::Checked)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ChannelStage;
    use super::*;

    fn load(signature: &str, channel: Channel) -> SendRequest {
        SendRequest { stages: vec![ChannelStage::new(channel, 1, None)], signatures: vec![signature.into()] }
    }

    #[test]
    fn listed_account_sends_only_under_verified_names() {
        let senders =
            Some(vec![("OlenaCo".to_owned(), SenderStatus::Checked), ("Fresh".to_owned(), SenderStatus::New)]);
        let listed = SandboxAccount::new(scenario::AccountSettings { senders, ..scenario::AccountSettings::default() });
        let open = SandboxAccount::new(scenario::AccountSettings::default());
        for (name, known) in [("OlenaCo", true), ("Fresh", false), ("olenaco", false), ("Other", false)] {
            let expected = if known { Ok(()) } else { Err(OperationError::ALPHA_NAME) };
            assert_eq!(listed.check_allowed(&load(name, Channel::Sms)), expected, "{name}");
            assert_eq!(open.check_allowed(&load(name, Channel::Sms)), Ok(()), "{name}");
        }
        let told = json!([{"name": "OlenaCo", "status": "Checked"}, {"name": "Fresh", "status": "New"}]);
        assert_eq!((listed.sender_records(), open.sender_records()), (told, json!([])));
    }

    #[test]
    fn whatsapp_operation_needs_a_route() {
        let without =
            SandboxAccount::new(scenario::AccountSettings { whatsapp: false, ..scenario::AccountSettings::default() });
        assert_eq!(without.check_allowed(&load("OlenaCo", Channel::Whatsapp)), Err(OperationError::NO_ROUTE));
        assert_eq!(without.check_allowed(&load("OlenaCo", Channel::Sms)), Ok(()));
        assert_eq!(
            SandboxAccount::new(scenario::AccountSettings::default())
                .check_allowed(&load("OlenaCo", Channel::Whatsapp)),
            Ok(())
        );
    }

    #[test]
    fn balance_is_exact_and_never_overdrawn() {
        let amount = |text: &str| text.parse::<Amount>().expect("an amount");
        let balance = amount("1.000001");
        let mut account =
            SandboxAccount::new(scenario::AccountSettings { balance, ..scenario::AccountSettings::default() });
        assert_eq!(account.charge(amount("1.000002")), Err(OperationError::NO_MONEY));
        assert_eq!(account.charge(balance), Ok(()));
        assert_eq!(account.charge(amount("0.000001")), Err(OperationError::NO_MONEY));
        account.refund(amount("0.000001"));
        assert_eq!(account.balance(), amount("0.000001"));
    }
}
