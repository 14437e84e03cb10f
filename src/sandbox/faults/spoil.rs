//! What a scenario's faults do to envelopes, operations and answers.
//!
//! Which of them apply is decided in `faults`; what happens on the wire is the shell's.

use super::{EnvelopeFaults, decision};
use crate::sandbox::platform::{
    EnvelopeFacts, MessageFacts, Origin, Payload, Platform, Refusal, ResultItem, SendResult,
};
use crate::sandbox::request::{ClientId, Envelope, Item};
use crate::sandbox::scenario::{Effect, Scenario};

/// The identifiers of the message that nobody sent: the largest that a client can use, and one that no message has.
const FOREIGN: (u64, u64) = (9_007_199_254_740_991, 1);

impl Platform {
    /// Lets a well-formed operation through, unless the scenario refuses one of its recipients.
    pub(crate) fn let_through(&self, item: &Item, origin: Origin) -> Result<(), Refusal> {
        let (envelope, endpoint) = (origin.envelope.into(), origin.endpoint());
        let facts = item.phones.iter().map(|phone| MessageFacts { phone: *phone, envelope, endpoint });
        let error = facts.into_iter().find_map(|facts| decision::item_error(&self.scenario, facts));
        error.map_or(Ok(()), |error| Err(Refusal::in_words(error)))
    }
}

/// What goes wrong with an envelope; nothing does with one that sends nothing.
pub(crate) fn faults_of<'a>(scenario: &'a Scenario, envelope: &Envelope, origin: Origin) -> EnvelopeFaults<'a> {
    if scenario.faults.is_empty() || !envelope.holds_sends() {
        return EnvelopeFaults::default();
    }
    let phones: Vec<_> = envelope.items.iter().flat_map(|item| item.phones.iter().copied()).collect();
    let facts = EnvelopeFacts { phones: &phones, envelope: origin.envelope.into(), endpoint: origin.endpoint() };
    decision::of_envelope(scenario, facts)
}

/// The items of an answer with what goes wrong with them.
pub(crate) fn spoilt(mut items: Vec<ResultItem>, faults: &[&Effect]) -> Vec<ResultItem> {
    for fault in faults {
        match fault {
            Effect::Reordered => items.reverse(),
            Effect::Missing => drop(items.pop()),
            Effect::Foreign => items.splice(..items.len().min(1), [foreign()]).for_each(drop),
            _ => {}
        }
    }
    items
}

/// The result of a message that nobody sent.
fn foreign() -> ResultItem {
    let (id, msg_id) = FOREIGN;
    ResultItem::new(None, Ok(Payload::Sent(SendResult { id: ClientId::Whole(id), msg_id, data: 1, parts: 1 })))
}
