//! What a scenario's faults do to envelopes, operations and answers.
//!
//! Which of them apply is decided in `faults`; what happens on the wire is the shell's.

use super::{EnvelopeFaults, decision};
use crate::sandbox::platform::{
    EnvelopeFacts, GatewayEmulator, MessageFacts, OperationError, OperationOrigin, ResultData, ResultItem, SendResult,
};
use crate::sandbox::request::{ClientId, ParsedEnvelope, RequestItem};
use crate::sandbox::scenario::{FaultEffect, Scenario};

/// The identifiers of the message that nobody sent: the largest that a client can use, and one that no message has.
const FOREIGN_IDS: (u64, u64) = (9_007_199_254_740_991, 1);

impl GatewayEmulator {
    /// Lets a well-formed operation through, unless the scenario refuses one of its recipients.
    pub(crate) fn check_item_faults(&self, item: &RequestItem, origin: OperationOrigin) -> Result<(), OperationError> {
        let (envelope, endpoint) = (origin.envelope.into(), origin.endpoint());
        let facts = item.phones.iter().map(|phone| MessageFacts { phone: *phone, envelope, endpoint });
        let error = facts.into_iter().find_map(|facts| decision::decide_item_error(&self.scenario, facts));
        error.map_or(Ok(()), |error| Err(OperationError::custom(error)))
    }
}

/// What goes wrong with an envelope; nothing does with one that sends nothing.
pub(crate) fn faults_for_envelope<'a>(
    scenario: &'a Scenario,
    envelope: &ParsedEnvelope,
    origin: OperationOrigin,
) -> EnvelopeFaults<'a> {
    if scenario.faults.is_empty() || !envelope.holds_sends() {
        return EnvelopeFaults::default();
    }
    let phones: Vec<_> = envelope.items.iter().flat_map(|item| item.phones.iter().copied()).collect();
    let facts = EnvelopeFacts { phones: &phones, envelope: origin.envelope.into(), endpoint: origin.endpoint() };
    decision::decide_envelope_faults(scenario, facts)
}

/// The items of an answer with what goes wrong with them.
pub(crate) fn apply_item_faults(mut items: Vec<ResultItem>, faults: &[&FaultEffect]) -> Vec<ResultItem> {
    for fault in faults {
        match fault {
            FaultEffect::Reordered => items.reverse(),
            FaultEffect::Missing => drop(items.pop()),
            FaultEffect::Foreign => items.splice(..items.len().min(1), [foreign_result()]).for_each(drop),
            _ => {}
        }
    }
    items
}

/// The result of a message that nobody sent.
fn foreign_result() -> ResultItem {
    let (id, msg_id) = FOREIGN_IDS;
    ResultItem::new(None, Ok(ResultData::Sent(SendResult { id: ClientId::Whole(id), msg_id, data: 1, parts: 1 })))
}
