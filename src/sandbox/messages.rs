//! The messages that the sandbox took.

use std::collections::HashMap;

use jiff::Timestamp;

use super::client_id::{ClientId, Key};
use super::operation::Question;

/// The gateway's identifier of the first message; the others follow one by one.
pub(super) const FIRST_MSG_ID: u64 = 700_000_001;

/// A message, taken or refused. A million of them are kept, so it holds no more than is asked for.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// The client's identifier; without one the gateway's stands for it.
    pub id: Option<ClientId>,
    /// The `type` that its status tells.
    pub label: &'static str,
    /// Whether it was taken; a refused one is kept only where the refusal was not answered.
    pub taken: bool,
    /// When it came.
    pub at: Timestamp,
}

/// All messages, found by either identifier. No identifier and no phone is refused for being there already.
#[derive(Debug, Default)]
pub(super) struct Messages {
    all: Vec<Message>,
    by_id: HashMap<Key, u64>,
}

impl Messages {
    /// Keeps a message and gives its identifier; the client's now means this message.
    pub(super) fn add(&mut self, message: Message) -> u64 {
        let msg_id = FIRST_MSG_ID + self.all.len() as u64;
        let key = message.id.as_ref().map_or(Key::Number(msg_id), ClientId::key);
        self.by_id.insert(key, msg_id);
        self.all.push(message);
        msg_id
    }

    /// The message that is asked for, with its identifier.
    pub(super) fn find(&self, question: &Question) -> Option<(u64, &Message)> {
        let msg_id = match question {
            Question::Id(id) => *self.by_id.get(&id.key())?,
            Question::MsgId(id) => match id.key() {
                Key::Number(msg_id) => msg_id,
                Key::Text(_) => return None,
            },
        };
        let index = usize::try_from(msg_id.checked_sub(FIRST_MSG_ID)?).ok()?;
        Some((msg_id, self.all.get(index)?))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(id: Option<u64>) -> Message {
        Message { id: id.map(ClientId::Whole), label: "sms", taken: true, at: Timestamp::UNIX_EPOCH }
    }

    fn found(messages: &Messages, question: fn(ClientId) -> Question, id: serde_json::Value) -> Option<u64> {
        messages.find(&question(ClientId::from_json(&id)?)).map(|(msg_id, _)| msg_id)
    }

    #[test]
    fn a_message_is_found_by_either_identifier_however_it_is_spelt() {
        let mut messages = Messages::default();
        let first = messages.add(message(Some(7)));
        let second = messages.add(message(None));
        assert_eq!((first, second), (FIRST_MSG_ID, FIRST_MSG_ID + 1));
        for id in [json!(7), json!("7"), json!("007")] {
            assert_eq!(found(&messages, Question::Id, id), Some(first));
        }
        for msg_id in [json!(second), json!(second.to_string())] {
            assert_eq!(found(&messages, Question::MsgId, msg_id.clone()), Some(second));
            assert_eq!(found(&messages, Question::Id, msg_id), Some(second), "it stands for the missing id");
        }
        for nothing in [json!(0), json!(second + 1), json!(u64::MAX), json!("x"), json!("")] {
            assert_eq!(found(&messages, Question::Id, nothing.clone()), None);
            assert_eq!(found(&messages, Question::MsgId, nothing), None);
        }
    }

    #[test]
    fn an_id_used_twice_makes_two_messages_and_means_the_later() {
        let mut messages = Messages::default();
        let (first, second) = (messages.add(message(Some(7))), messages.add(message(Some(7))));
        assert_ne!(first, second);
        assert_eq!(found(&messages, Question::Id, json!(7)), Some(second));
        assert_eq!(found(&messages, Question::MsgId, json!(first)), Some(first));
    }
}
