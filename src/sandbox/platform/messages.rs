//! The messages that the sandbox took.

use std::collections::HashMap;
use std::sync::Arc;

use super::{LifecycleState, MessageFacts, VirtualTime};
use crate::domain::{Endpoint, Phone};
use crate::sandbox::request::{ClientId, ClientIdKey, Kind, MessageQuery};

/// The gateway's identifier of the first message; the others follow one by one.
pub(crate) const FIRST_MSG_ID: u64 = 700_000_001;

/// A message, taken or refused. Millions of them are kept, so it holds no more than its life needs.
#[derive(Clone, Debug)]
pub(crate) struct SandboxMessage {
    /// The client's identifier; without one the gateway's stands for it.
    pub id: Option<ClientId>,
    /// Where its statuses go.
    pub hook: Option<Arc<str>>,
    /// Its recipient; always there if it was taken.
    pub phone: Option<Phone>,
    /// When it came.
    pub at: VirtualTime,
    pub state: LifecycleState,
    /// The number of its asynchronous request.
    pub request: Option<u32>,
    /// The number of its envelope among those that hold sends.
    pub envelope: u32,
    /// The number of its plan.
    pub plan: u32,
    /// The index of its account.
    pub account: u32,
    pub kind: Kind,
}

impl SandboxMessage {
    /// What conditions can ask about it; nothing if it has no recipient.
    pub(crate) fn condition_facts(&self) -> Option<MessageFacts> {
        let endpoint = if self.request.is_some() { Endpoint::Async } else { Endpoint::Sync };
        Some(MessageFacts { phone: self.phone?, envelope: self.envelope.into(), endpoint })
    }
}

/// The gateway's identifier of the message with that index.
pub(crate) fn msg_id_of(index: u32) -> u64 {
    FIRST_MSG_ID + u64::from(index)
}

/// All messages, found by either identifier. No identifier and no phone is refused for being there already.
#[derive(Debug, Default)]
pub(crate) struct MessageStore {
    all: Vec<SandboxMessage>,
    /// The latest of an account and a client's identifier; numbers apart, because they are small, and lookups and code
    /// calls (`false`) apart from messages: clients give them all the same one.
    by_number: HashMap<(u32, bool, u64), u32>,
    by_text: HashMap<(u32, bool, Box<str>), u32>,
}

impl MessageStore {
    /// Keeps a message and gives its index; the client's identifier now means this message.
    pub(crate) fn insert(&mut self, mut message: SandboxMessage) -> u32 {
        let index = self.len();
        let (account, is_message) = (message.account, message.kind.is_message());
        match message.id.as_ref().map(ClientId::to_key) {
            Some(ClientIdKey::Number(number)) => drop(self.by_number.insert((account, is_message, number), index)),
            Some(ClientIdKey::Text(text)) => drop(self.by_text.insert((account, is_message, text), index)),
            None => {}
        }
        // A campaign's messages share their hook.
        if let Some(last) = self.all.last().filter(|last| last.hook == message.hook) {
            message.hook.clone_from(&last.hook);
        }
        self.all.push(message);
        index
    }

    /// The message with that index.
    pub(crate) fn message_at(&self, index: u32) -> &SandboxMessage {
        &self.all[index as usize]
    }

    /// Moves a message on in its life.
    pub(crate) fn set_state(&mut self, index: u32, state: LifecycleState) {
        self.all[index as usize].state = state;
    }

    /// The message of that account that is asked for, with its index.
    pub(crate) fn find_message(&self, account: u32, question: &MessageQuery) -> Option<(u32, &SandboxMessage)> {
        let index = match question {
            MessageQuery::Id(id) => self.index_of_client_id(account, id.to_key())?,
            MessageQuery::MsgId(id) => self.index_of_msg_id(&id.to_key())?,
        };
        let message = self.all.get(index as usize)?;
        (message.account == account).then_some((index, message))
    }

    /// How many there are, which is the index of the next.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.all.len()).expect("four milliard messages fit into no memory")
    }

    fn index_of_client_id(&self, account: u32, key: ClientIdKey) -> Option<u32> {
        // Of what has the same identifier a message is meant.
        let found = [true, false].into_iter().find_map(|is_message| match &key {
            ClientIdKey::Number(number) => self.by_number.get(&(account, is_message, *number)).copied(),
            ClientIdKey::Text(text) => self.by_text.get(&(account, is_message, text.clone())).copied(),
        });
        found.or_else(|| {
            // The gateway's identifier stands for the one that the client left out.
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
            kind: Kind::Sms,
        }
    }

    fn find_index(
        messages: &MessageStore,
        question: fn(ClientId) -> MessageQuery,
        id: serde_json::Value,
    ) -> Option<u32> {
        messages.find_message(0, &question(ClientId::from_json(&id)?)).map(|(index, _)| index)
    }

    #[test]
    fn message_is_found_by_either_id_in_any_spelling() {
        let mut messages = MessageStore::default();
        let first = messages.insert(test_message(0, Some(7)));
        let second = messages.insert(test_message(0, None));
        assert_eq!((first, second), (0, 1));
        for id in [json!(7), json!("7"), json!("007")] {
            assert_eq!(find_index(&messages, MessageQuery::Id, id), Some(first));
        }
        for id in [json!(msg_id_of(second)), json!(msg_id_of(second).to_string())] {
            assert_eq!(find_index(&messages, MessageQuery::MsgId, id.clone()), Some(second));
            assert_eq!(find_index(&messages, MessageQuery::Id, id), Some(second), "it stands for the missing id");
        }
        for nothing in [json!(0), json!(msg_id_of(second) + 1), json!(u64::MAX), json!("x"), json!("")] {
            assert_eq!(find_index(&messages, MessageQuery::Id, nothing.clone()), None);
            assert_eq!(find_index(&messages, MessageQuery::MsgId, nothing), None);
        }
        assert_eq!(find_index(&messages, MessageQuery::Id, json!(msg_id_of(first))), None, "it has an id of its own");
    }

    #[test]
    fn reused_id_refers_to_the_later_message() {
        let mut messages = MessageStore::default();
        let (first, second) = (messages.insert(test_message(0, Some(7))), messages.insert(test_message(0, Some(7))));
        assert_ne!(first, second);
        assert_eq!(find_index(&messages, MessageQuery::Id, json!(7)), Some(second));
        assert_eq!(find_index(&messages, MessageQuery::MsgId, json!(msg_id_of(first))), Some(first));
    }

    #[test]
    fn lookup_does_not_replace_message_with_same_id() {
        let mut messages = MessageStore::default();
        let sent = messages.insert(test_message(0, Some(1)));
        for id in [1, 2] {
            messages.insert(SandboxMessage { kind: Kind::Hlr, ..test_message(0, Some(id)) });
        }
        assert_eq!(find_index(&messages, MessageQuery::Id, json!(1)), Some(sent));
        assert_eq!(find_index(&messages, MessageQuery::Id, json!(2)), Some(2), "nothing else has it");
    }

    #[test]
    fn message_of_another_account_is_not_found() {
        let mut messages = MessageStore::default();
        let ours = messages.insert(test_message(0, Some(7)));
        let theirs = messages.insert(test_message(1, Some(7)));
        let unnamed = messages.insert(test_message(1, None));
        assert_eq!(find_index(&messages, MessageQuery::Id, json!(7)), Some(ours));
        for hidden in [theirs, unnamed] {
            assert_eq!(find_index(&messages, MessageQuery::MsgId, json!(msg_id_of(hidden))), None);
        }
        assert_eq!(find_index(&messages, MessageQuery::Id, json!(msg_id_of(unnamed))), None);
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
