//! The messages that the sandbox took.

use std::collections::HashMap;
use std::sync::Arc;

use super::{MessageFacts, Moment, State};
use crate::domain::{Endpoint, Phone};
use crate::sandbox::request::{ClientId, Key, Kind, Question};

/// The gateway's identifier of the first message; the others follow one by one.
pub(crate) const FIRST_MSG_ID: u64 = 700_000_001;

/// A message, taken or refused. Millions of them are kept, so it holds no more than its life needs.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// The client's identifier; without one the gateway's stands for it.
    pub id: Option<ClientId>,
    /// Where its statuses go.
    pub hook: Option<Arc<str>>,
    /// Its recipient; always there if it was taken.
    pub phone: Option<Phone>,
    /// When it came.
    pub at: Moment,
    pub state: State,
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

impl Message {
    /// What conditions can ask about it; nothing if it has no recipient.
    pub(crate) fn facts(&self) -> Option<MessageFacts> {
        let endpoint = if self.request.is_some() { Endpoint::Async } else { Endpoint::Sync };
        Some(MessageFacts { phone: self.phone?, envelope: self.envelope.into(), endpoint })
    }
}

/// The gateway's identifier of the message with that index.
pub(crate) fn msg_id(index: u32) -> u64 {
    FIRST_MSG_ID + u64::from(index)
}

/// All messages, found by either identifier. No identifier and no phone is refused for being there already.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    all: Vec<Message>,
    /// The latest of an account and a client's identifier; numbers apart, because they are small, and lookups and code
    /// calls (`false`) apart from messages: clients give them all the same one.
    by_number: HashMap<(u32, bool, u64), u32>,
    by_text: HashMap<(u32, bool, Box<str>), u32>,
}

impl Messages {
    /// Keeps a message and gives its index; the client's identifier now means this message.
    pub(crate) fn add(&mut self, mut message: Message) -> u32 {
        let index = self.count();
        let (account, is_message) = (message.account, message.kind.is_message());
        match message.id.as_ref().map(ClientId::key) {
            Some(Key::Number(number)) => drop(self.by_number.insert((account, is_message, number), index)),
            Some(Key::Text(text)) => drop(self.by_text.insert((account, is_message, text), index)),
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
    pub(crate) fn at(&self, index: u32) -> &Message {
        &self.all[index as usize]
    }

    /// Moves a message on in its life.
    pub(crate) fn set_state(&mut self, index: u32, state: State) {
        self.all[index as usize].state = state;
    }

    /// The message of that account that is asked for, with its index.
    pub(crate) fn find(&self, account: u32, question: &Question) -> Option<(u32, &Message)> {
        let index = match question {
            Question::Id(id) => self.by_client_id(account, id.key())?,
            Question::MsgId(id) => self.by_msg_id(&id.key())?,
        };
        let message = self.all.get(index as usize)?;
        (message.account == account).then_some((index, message))
    }

    /// How many there are, which is the index of the next.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.all.len()).expect("four milliard messages fit into no memory")
    }

    fn by_client_id(&self, account: u32, key: Key) -> Option<u32> {
        // Of what has the same identifier a message is meant.
        let found = [true, false].into_iter().find_map(|is_message| match &key {
            Key::Number(number) => self.by_number.get(&(account, is_message, *number)).copied(),
            Key::Text(text) => self.by_text.get(&(account, is_message, text.clone())).copied(),
        });
        found.or_else(|| {
            // The gateway's identifier stands for the one that the client left out.
            let index = self.by_msg_id(&key)?;
            self.all.get(index as usize)?.id.is_none().then_some(index)
        })
    }

    fn by_msg_id(&self, key: &Key) -> Option<u32> {
        match key {
            Key::Number(msg_id) => u32::try_from(msg_id.checked_sub(FIRST_MSG_ID)?).ok(),
            Key::Text(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::super::Phase;
    use super::*;

    fn message(account: u32, id: Option<u64>) -> Message {
        let at = Moment::of(Timestamp::UNIX_EPOCH);
        Message {
            id: id.map(ClientId::Whole),
            hook: None,
            phone: Phone::new(380_501_234_567),
            at,
            state: State::at_intake(Phase::Queued, at),
            request: None,
            envelope: 1,
            plan: 0,
            account,
            kind: Kind::Sms,
        }
    }

    fn found(messages: &Messages, question: fn(ClientId) -> Question, id: serde_json::Value) -> Option<u32> {
        messages.find(0, &question(ClientId::from_json(&id)?)).map(|(index, _)| index)
    }

    #[test]
    fn a_message_is_found_by_either_identifier_however_it_is_spelt() {
        let mut messages = Messages::default();
        let first = messages.add(message(0, Some(7)));
        let second = messages.add(message(0, None));
        assert_eq!((first, second), (0, 1));
        for id in [json!(7), json!("7"), json!("007")] {
            assert_eq!(found(&messages, Question::Id, id), Some(first));
        }
        for id in [json!(msg_id(second)), json!(msg_id(second).to_string())] {
            assert_eq!(found(&messages, Question::MsgId, id.clone()), Some(second));
            assert_eq!(found(&messages, Question::Id, id), Some(second), "it stands for the missing id");
        }
        for nothing in [json!(0), json!(msg_id(second) + 1), json!(u64::MAX), json!("x"), json!("")] {
            assert_eq!(found(&messages, Question::Id, nothing.clone()), None);
            assert_eq!(found(&messages, Question::MsgId, nothing), None);
        }
        assert_eq!(found(&messages, Question::Id, json!(msg_id(first))), None, "it has an id of its own");
    }

    #[test]
    fn an_id_used_twice_makes_two_messages_and_means_the_later() {
        let mut messages = Messages::default();
        let (first, second) = (messages.add(message(0, Some(7))), messages.add(message(0, Some(7))));
        assert_ne!(first, second);
        assert_eq!(found(&messages, Question::Id, json!(7)), Some(second));
        assert_eq!(found(&messages, Question::MsgId, json!(msg_id(first))), Some(first));
    }

    #[test]
    fn a_lookup_does_not_take_the_identifier_of_a_message() {
        let mut messages = Messages::default();
        let sent = messages.add(message(0, Some(1)));
        for id in [1, 2] {
            messages.add(Message { kind: Kind::Hlr, ..message(0, Some(id)) });
        }
        assert_eq!(found(&messages, Question::Id, json!(1)), Some(sent));
        assert_eq!(found(&messages, Question::Id, json!(2)), Some(2), "nothing else has it");
    }

    #[test]
    fn nobody_finds_the_message_of_another_account() {
        let mut messages = Messages::default();
        let ours = messages.add(message(0, Some(7)));
        let theirs = messages.add(message(1, Some(7)));
        let unnamed = messages.add(message(1, None));
        assert_eq!(found(&messages, Question::Id, json!(7)), Some(ours));
        for hidden in [theirs, unnamed] {
            assert_eq!(found(&messages, Question::MsgId, json!(msg_id(hidden))), None);
        }
        assert_eq!(found(&messages, Question::Id, json!(msg_id(unnamed))), None);
    }

    #[test]
    fn messages_share_their_hook() {
        let mut messages = Messages::default();
        for _ in 0..2 {
            messages.add(Message { hook: Some("https://a.example/".into()), ..message(0, None) });
        }
        let hooks: Vec<_> = [0, 1].map(|index| messages.at(index).hook.clone()).into_iter().flatten().collect();
        assert!(Arc::ptr_eq(&hooks[0], &hooks[1]));
    }
}
