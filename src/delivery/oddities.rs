//! What answers do otherwise than the contract says while they still prove what became of the messages; counted, and
//! told once per run.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::domain::{GatewayMessageId, OperationOutcome};
use crate::gateway::{ContractDeviation, GatewayReply};

/// How many identifiers of the gateway are remembered: one that gives the same to many gives one of them again.
const REMEMBERED: usize = 10_000;

/// The oddities of one start.
#[derive(Clone, Debug, Default)]
pub struct DeviationCounts {
    counts: BTreeMap<ContractDeviation, u64>,
    known: FxHashSet<GatewayMessageId>,
}

impl DeviationCounts {
    /// Takes in an answer whose outcome is recorded.
    pub(super) fn observe(&mut self, reply: &GatewayReply) {
        for oddity in &reply.deviations {
            *self.counts.entry(*oddity).or_default() += 1;
        }
        for outcome in &reply.outcomes {
            let OperationOutcome::Accepted { msg_id: Some(msg_id), .. } = outcome else { continue };
            if self.known.contains(msg_id) {
                *self.counts.entry(ContractDeviation::RepeatedMsgId).or_default() += 1;
            } else if self.known.len() < REMEMBERED {
                self.known.insert(msg_id.clone());
            }
        }
    }

    /// These and those of a start that went on where this one ended.
    #[must_use]
    pub(super) fn merge(mut self, next: Self) -> Self {
        for (oddity, count) in next.counts {
            *self.counts.entry(oddity).or_default() += count;
        }
        self.known.extend(next.known);
        self
    }

    /// Each kind with its count.
    pub fn counts(&self) -> impl Iterator<Item = (ContractDeviation, u64)> {
        self.counts.iter().map(|(oddity, count)| (*oddity, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::Signal;

    #[test]
    fn deviations_are_counted_and_repeated_ids_once_each() {
        let accepted = |msg_id| OperationOutcome::Accepted {
            msg_id: Some(GatewayMessageId::Number(msg_id)),
            parts: None,
            answer: None,
        };
        let reply = |ids: &[u64], oddities| GatewayReply {
            outcomes: ids.iter().map(|id| accepted(*id)).collect(),
            signal: Signal::Go,
            evidence: None,
            deviations: oddities,
        };
        let mut oddities = DeviationCounts::default();
        oddities.observe(&reply(&[1, 2, 3], Vec::new()));
        assert_eq!(oddities.counts().count(), 0);
        oddities.observe(&reply(&[7; 5], vec![ContractDeviation::NumericRequestId]));
        oddities.observe(&reply(&[7, 4], vec![ContractDeviation::NegativeMsgId, ContractDeviation::NegativeMsgId]));
        let told: Vec<_> = oddities.counts().collect();
        let expected = [
            (ContractDeviation::NumericRequestId, 1),
            (ContractDeviation::NegativeMsgId, 2),
            (ContractDeviation::RepeatedMsgId, 5),
        ];
        assert_eq!(told, expected);
    }
}
