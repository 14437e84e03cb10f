//! What a sandbox plays: its accounts and prices, how messages fare, and what goes wrong.
//!
//! A scenario is plain data, valid by construction. It decides nothing by itself and knows no
//! clock: `life`, `faults` and `platform` read it. Whatever is left to chance is drawn from its
//! seed and from what is being decided, so that the same scenario plays the same way every time.

mod behaviour;
mod channels;
mod fault;
mod keys;
mod load;

pub use behaviour::{Behaviour, Behaviours, Exception, ReadBehaviour, ReplyBehaviour};
pub use fault::{Blindness, FaultEffect, ScenarioCondition, ScenarioFault, WebhookFault};
pub use load::{load_scenario, scenario_schema};

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::domain::{Amount, Channel};

/// What a sandbox plays.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What chance is drawn from.
    pub seed: u64,
    /// How many seconds pass for messages in one second of real time.
    pub speed: u32,
    /// The accounts, of which there is at least one; the first without a key has the server's.
    pub accounts: Vec<AccountSettings>,
    /// What each account may send in a time; nothing if that is any amount.
    pub limit: Option<OperationLimit>,
    /// What a part costs, per channel.
    pub prices: PartPrices,
    /// Whether a message that no channel delivered is charged (the last channel that was tried).
    pub charge_undelivered: bool,
    /// How messages fare, per channel.
    pub behaviours: Behaviours,
    /// Messages that fare otherwise; the first that applies to a message and a channel counts.
    pub exceptions: Vec<Exception>,
    /// What goes wrong, in the order in which it was written.
    pub faults: Vec<ScenarioFault>,
    /// How long `status` does not know a message that was taken.
    pub status_lag: Duration,
    /// What `status` answers instead of the truth.
    pub status_blind: Option<Blindness>,
    /// Webhooks.
    pub webhooks: WebhookBehaviour,
    /// How long a Viber template waits before it is `submitted`, and again before its last status.
    pub template_review: Duration,
    /// Whether Viber templates end as `approved`; otherwise as `rejected`.
    pub templates_approved: bool,
}

/// An account of the gateway; its key is in no log.
#[derive(Clone, PartialEq)]
pub struct AccountSettings {
    /// The key that opens it; nothing for the one that the server's own key opens.
    pub key: Option<String>,
    /// The money that it begins with.
    pub balance: Amount,
    /// The code of its currency.
    pub currency: String,
    /// Where statuses go that no `hook` keeps (contract 6.4).
    pub notify: Option<String>,
    /// Whether it has a WhatsApp route.
    pub whatsapp: bool,
    /// Its sender names with their statuses; nothing if every well-formed name is known.
    pub senders: Option<Vec<(String, SenderStatus)>>,
}

/// What the operator says of a sender name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderStatus {
    /// Not verified yet: it cannot be used.
    New,
    /// Verified.
    Checked,
}

impl SenderStatus {
    /// The word on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SenderStatus::New => "New",
            SenderStatus::Checked => "Checked",
        }
    }
}

/// How many operations an account may send, in virtual time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperationLimit {
    /// Operations per second; more than 0 and finite.
    pub rate: f64,
    /// How many at once after a rest.
    pub burst: NonZeroU32,
}

/// What one part costs, per channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartPrices([Amount; Channel::ALL.len()]);

impl PartPrices {
    /// The price of a part in that channel.
    #[must_use]
    pub fn for_channel(&self, channel: Channel) -> Amount {
        self.0[channel as usize]
    }

    /// Sets the price of a part in that channel.
    pub fn set(&mut self, channel: Channel, price: Amount) {
        self.0[channel as usize] = price;
    }
}

/// How webhooks are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookBehaviour {
    /// The waits before a webhook that was not answered with 200 is tried again.
    pub retry: Vec<Duration>,
    /// Whether an asynchronous `pipeline` reports to its `hook` as other operations do, and not only a refusal.
    pub async_pipeline: bool,
    /// Whether a webhook also reports the failure of each earlier channel.
    pub intermediate: bool,
}

impl fmt::Debug for AccountSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountSettings")
            .field("key", &self.key.as_ref().map(|_| "…"))
            .field("balance", &self.balance)
            .field("currency", &self.currency)
            .field("whatsapp", &self.whatsapp)
            .field("senders", &self.senders)
            .finish_non_exhaustive()
    }
}
