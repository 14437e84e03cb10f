//! What a rehearsal's summary shows of the sandbox.

use std::collections::BTreeMap;

use super::kind::Kind;

/// What the sandbox took and refused since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Envelopes that were accepted.
    pub envelopes: u64,
    /// Envelopes that were refused as a whole.
    pub refused_envelopes: u64,
    /// Messages that were taken: one for each recipient of each accepted send.
    pub messages: u64,
    /// Parts of all messages that were taken.
    pub parts: u64,
    /// Operations of accepted envelopes by their `type`; only types that occurred.
    pub operations: BTreeMap<&'static str, Tally>,
}

/// How many operations of one type were executed, and how many refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations whose item said `success` true, or would have on the synchronous endpoint.
    pub accepted: u64,
    /// The others.
    pub rejected: u64,
}

impl Counts {
    /// Counts one operation.
    pub(super) fn operation(&mut self, kind: Kind, accepted: bool) {
        let tally = self.operations.entry(kind.name()).or_default();
        if accepted {
            tally.accepted += 1;
        } else {
            tally.rejected += 1;
        }
    }
}
