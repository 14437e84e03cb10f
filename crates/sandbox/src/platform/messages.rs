//! Messages of the sandbox, their channel plans, and lookup by identifier.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::{LifecycleState, VirtualTime};
use crate::request::{ClientId, ClientIdKey, MessageInquiry, OperationType};
use crate::scenario::{MessageFacts, PartPrices};
use campaign_core::domain::{Amount, Channel, Endpoint, Phone};

/// The gateway's identifier of the first message; later ones are consecutive.
pub(crate) const FIRST_MSG_ID: u64 = 700_000_001;

/// An accepted or rejected message. There might be millions, so it is small.
#[derive(Clone, Debug)]
pub(crate) struct SandboxMessage {
    /// The client's identifier. If it is missing, answers contain the gateway's identifier instead.
    pub(crate) id: Option<ClientId>,
    /// The webhook address for its statuses.
    pub(crate) hook: Option<Arc<str>>,
    /// The recipient, always present for accepted messages.
    pub(crate) phone: Option<Phone>,
    /// The time of arrival.
    pub(crate) at: VirtualTime,
    /// The current state.
    pub(crate) state: LifecycleState,
    /// The number of its asynchronous request.
    pub(crate) request: Option<u32>,
    /// The number of its envelope among the envelopes with messages.
    pub(crate) envelope: u32,
    /// The number of its plan.
    pub(crate) plan: u32,
    /// The index of its account.
    pub(crate) account: u32,
    /// The type of its operation.
    pub(crate) kind: OperationType,
}

impl SandboxMessage {
    /// The facts that conditions can use; `None` if the message has no recipient.
    pub(crate) fn condition_facts(&self) -> Option<MessageFacts> {
        let endpoint = if self.request.is_some() { Endpoint::Async } else { Endpoint::Sync };
        Some(MessageFacts { phone: self.phone?, envelope: self.envelope.into(), endpoint })
    }
}

/// The gateway's identifier of the message at this index.
pub(crate) fn msg_id_of(index: u32) -> u64 {
    FIRST_MSG_ID + u64::from(index)
}

/// All messages, by either identifier. Duplicate identifiers and numbers are allowed.
#[derive(Debug, Default)]
pub(crate) struct MessageStore {
    all: Vec<SandboxMessage>,
    /// The latest message of an account and client identifier. Numbers have their own map, because they are small.
    /// Lookups and verification calls (`false`) are separate from messages, because clients give all of them the same
    /// identifier.
    by_number: HashMap<(u32, bool, u64), u32>,
    by_text: HashMap<(u32, bool, Box<str>), u32>,
}

impl MessageStore {
    /// Stores a message and returns its index. If the client identifier was used before, it now refers to this message.
    pub(crate) fn insert(&mut self, mut message: SandboxMessage) -> u32 {
        let index = self.len();
        let (account, is_message) = (message.account, message.kind.is_message());
        match message.id.as_ref().map(ClientId::to_key) {
            Some(ClientIdKey::Number(number)) => drop(self.by_number.insert((account, is_message, number), index)),
            Some(ClientIdKey::Text(text)) => drop(self.by_text.insert((account, is_message, text), index)),
            None => {}
        }
        // Consecutive messages with the same hook share its allocation.
        if let Some(last) = self.all.last().filter(|last| last.hook == message.hook) {
            message.hook.clone_from(&last.hook);
        }
        self.all.push(message);
        index
    }

    /// The message at this index.
    pub(crate) fn message_at(&self, index: u32) -> &SandboxMessage {
        &self.all[index as usize]
    }

    /// Sets the state of a message.
    pub(crate) fn set_state(&mut self, index: u32, state: LifecycleState) {
        self.all[index as usize].state = state;
    }

    /// Finds a message of an account, with its index.
    pub(crate) fn find_message(&self, account: u32, inquiry: &MessageInquiry) -> Option<(u32, &SandboxMessage)> {
        let index = match inquiry {
            MessageInquiry::Id(id) => self.index_of_client_id(account, id.to_key())?,
            MessageInquiry::MsgId(id) => self.index_of_msg_id(&id.to_key())?,
        };
        let message = self.all.get(index as usize)?;
        (message.account == account).then_some((index, message))
    }

    /// The number of messages, which is the index of the next one.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.all.len()).expect("four billion messages do not fit into memory")
    }

    fn index_of_client_id(&self, account: u32, key: ClientIdKey) -> Option<u32> {
        // If several operations have the same identifier, a message takes precedence over a lookup or a code call.
        let index = [true, false].into_iter().find_map(|is_message| match &key {
            ClientIdKey::Number(number) => self.by_number.get(&(account, is_message, *number)).copied(),
            ClientIdKey::Text(text) => self.by_text.get(&(account, is_message, text.clone())).copied(),
        });
        index.or_else(|| {
            // The gateway's identifier replaces a missing client identifier.
            let index = self.index_of_msg_id(&key)?;
            self.all.get(index as usize)?.id.is_none().then_some(index)
        })
    }

    fn index_of_msg_id(&self, key: &ClientIdKey) -> Option<u32> {
        match key {
            ClientIdKey::Number(msg_id) => u32::try_from(msg_id.checked_sub(FIRST_MSG_ID)?).ok(),
            ClientIdKey::Text(_) => None,
        }
    }
}

/// The default lifetime of a message, in seconds (contract 8).
const DEFAULT_LIFETIME: u64 = 172_800;

/// One attempt to deliver a message: a channel and its billed parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChannelStage {
    pub(crate) channel: Channel,
    /// Billed parts; 1 for channels without parts.
    pub(crate) parts: u32,
    /// Whether the call waits for a key press (DTMF); only for voice.
    pub(crate) dtmf: bool,
    /// Seconds until the channel gives up; 136 years mean never.
    lifetime: u32,
}

impl ChannelStage {
    /// Creates a stage with a lifetime in seconds, or with the gateway's default lifetime.
    pub(crate) fn new(channel: Channel, parts: u32, lifetime: Option<u64>) -> Self {
        let lifetime = u32::try_from(lifetime.unwrap_or(DEFAULT_LIFETIME)).unwrap_or(u32::MAX);
        Self { channel, parts, dtmf: false, lifetime }
    }

    /// Sets whether the call waits for a key press.
    pub(crate) fn with_dtmf(self, dtmf: bool) -> Self {
        Self { dtmf, ..self }
    }

    /// The time for which the channel tries to deliver the message.
    pub(crate) fn lifetime(&self) -> Duration {
        Duration::from_secs(self.lifetime.into())
    }

    /// The price of the stage.
    pub(crate) fn price(&self, prices: &PartPrices) -> Amount {
        prices.for_channel(self.channel).saturating_mul(self.parts.into())
    }
}

/// The price of the most expensive stage, which the gateway reserves (contract 4.3 `pipeline`).
pub(crate) fn highest_price(stages: &[ChannelStage], prices: &PartPrices) -> Amount {
    stages.iter().map(|stage| stage.price(prices)).max().unwrap_or_default()
}

/// The number of parts of the longest stage.
pub(crate) fn most_parts(stages: &[ChannelStage]) -> u32 {
    stages.iter().map(|stage| stage.parts).max().unwrap_or_default()
}

/// The distinct channel plans of all messages.
#[derive(Debug, Default)]
pub(crate) struct StagePlans {
    pub(crate) all: Vec<Arc<[ChannelStage]>>,
    numbers: HashMap<Arc<[ChannelStage]>, u32>,
}

impl StagePlans {
    /// Stores a plan with these stages, unless it is already stored, and returns its number.
    pub(crate) fn intern(&mut self, stages: &[ChannelStage]) -> u32 {
        if let Some(number) = self.numbers.get(stages) {
            return *number;
        }
        let plan: Arc<[ChannelStage]> = stages.into();
        let number = u32::try_from(self.all.len()).expect("there are fewer plans than messages");
        self.all.push(Arc::clone(&plan));
        self.numbers.insert(plan, number);
        number
    }

    /// The stages of a plan.
    pub(crate) fn stages_of(&self, number: u32) -> &[ChannelStage] {
        &self.all[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::super::Phase;
    use super::*;

    fn test_message(account: u32, id: Option<u64>) -> SandboxMessage {
        let at = VirtualTime::from_timestamp(Timestamp::UNIX_EPOCH);
        SandboxMessage {
            id: id.map(ClientId::Whole),
            hook: None,
            phone: Phone::new(380_501_234_567),
            at,
            state: LifecycleState::at_intake(Phase::Queued, at),
            request: None,
            envelope: 1,
            plan: 0,
            account,
            kind: OperationType::Sms,
        }
    }

    fn find_index(
        messages: &MessageStore,
        inquiry: fn(ClientId) -> MessageInquiry,
        id: serde_json::Value,
    ) -> Option<u32> {
        messages.find_message(0, &inquiry(ClientId::from_json(&id)?)).map(|(index, _)| index)
    }

    #[test]
    fn message_is_found_by_either_id_as_a_number_or_text() {
        let mut messages = MessageStore::default();
        let first = messages.insert(test_message(0, Some(7)));
        let second = messages.insert(test_message(0, None));
        assert_eq!((first, second), (0, 1));
        for id in [json!(7), json!("7"), json!("007")] {
            assert_eq!(find_index(&messages, MessageInquiry::Id, id), Some(first));
        }
        for id in [json!(msg_id_of(second)), json!(msg_id_of(second).to_string())] {
            assert_eq!(find_index(&messages, MessageInquiry::MsgId, id.clone()), Some(second));
            assert_eq!(find_index(&messages, MessageInquiry::Id, id), Some(second), "it replaces the missing id");
        }
        for unknown in [json!(0), json!(msg_id_of(second) + 1), json!(u64::MAX), json!("x"), json!("")] {
            assert_eq!(find_index(&messages, MessageInquiry::Id, unknown.clone()), None);
            assert_eq!(find_index(&messages, MessageInquiry::MsgId, unknown), None);
        }
        assert_eq!(find_index(&messages, MessageInquiry::Id, json!(msg_id_of(first))), None, "it has an id of its own");
    }

    #[test]
    fn reused_id_refers_to_the_later_message() {
        let mut messages = MessageStore::default();
        let (first, second) = (messages.insert(test_message(0, Some(7))), messages.insert(test_message(0, Some(7))));
        assert_ne!(first, second);
        assert_eq!(find_index(&messages, MessageInquiry::Id, json!(7)), Some(second));
        assert_eq!(find_index(&messages, MessageInquiry::MsgId, json!(msg_id_of(first))), Some(first));
    }

    #[test]
    fn lookup_does_not_replace_a_message_with_the_same_id() {
        let mut messages = MessageStore::default();
        let sent = messages.insert(test_message(0, Some(1)));
        for id in [1, 2] {
            messages.insert(SandboxMessage { kind: OperationType::Hlr, ..test_message(0, Some(id)) });
        }
        assert_eq!(find_index(&messages, MessageInquiry::Id, json!(1)), Some(sent));
        assert_eq!(find_index(&messages, MessageInquiry::Id, json!(2)), Some(2), "nothing else has it");
    }

    #[test]
    fn message_of_another_account_is_not_found() {
        let mut messages = MessageStore::default();
        let first = messages.insert(test_message(0, Some(7)));
        let second = messages.insert(test_message(1, Some(7)));
        let unnamed = messages.insert(test_message(1, None));
        assert_eq!(find_index(&messages, MessageInquiry::Id, json!(7)), Some(first));
        for hidden in [second, unnamed] {
            assert_eq!(find_index(&messages, MessageInquiry::MsgId, json!(msg_id_of(hidden))), None);
        }
        assert_eq!(find_index(&messages, MessageInquiry::Id, json!(msg_id_of(unnamed))), None);
    }

    #[test]
    fn messages_share_one_hook_allocation() {
        let mut messages = MessageStore::default();
        for _ in 0..2 {
            messages.insert(SandboxMessage { hook: Some("https://a.example/".into()), ..test_message(0, None) });
        }
        let hooks: Vec<_> = [0, 1].map(|index| messages.message_at(index).hook.clone()).into_iter().flatten().collect();
        assert!(Arc::ptr_eq(&hooks[0], &hooks[1]));
    }
}

#[cfg(test)]
mod plan_tests {
    use super::*;

    #[test]
    fn plan_is_stored_once_and_priced_by_its_costliest_stage() {
        let stages = [ChannelStage::new(Channel::Viber, 1, None), ChannelStage::new(Channel::Sms, 3, Some(u64::MAX))];
        let mut plans = StagePlans::default();
        assert_eq!([&stages[..], &stages[..1], &stages[..]].map(|stages| plans.intern(stages)), [0, 1, 0]);
        assert_eq!((plans.stages_of(0), plans.all.len()), (&stages[..], 2));
        let prices = PartPrices::default();
        assert_eq!(highest_price(&stages, &prices), prices.for_channel(Channel::Sms).saturating_mul(3));
        assert_eq!(most_parts(&stages), 3);
        assert_eq!(stages[0].lifetime(), Duration::from_secs(172_800));
        assert!(stages[1].lifetime() > Duration::from_secs(100 * 365 * 86_400));
    }
}
