//! What answers do otherwise than the contract says while they still prove what became of the messages; counted, and
//! told once per run.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::domain::{MsgId, Outcome};
use crate::gateway::{Oddity, Reply};

/// How many identifiers of the gateway are remembered: one that gives the same to many gives one of them again.
const REMEMBERED: usize = 10_000;

/// The oddities of one start.
#[derive(Clone, Debug, Default)]
pub struct Oddities {
    counts: BTreeMap<Oddity, u64>,
    known: FxHashSet<MsgId>,
}

impl Oddities {
    /// Takes in an answer whose outcome is recorded.
    pub(super) fn observe(&mut self, reply: &Reply) {
        for oddity in &reply.oddities {
            *self.counts.entry(*oddity).or_default() += 1;
        }
        for outcome in &reply.outcomes {
            let Outcome::Accepted { msg_id: Some(msg_id), .. } = outcome else { continue };
            if self.known.contains(msg_id) {
                *self.counts.entry(Oddity::RepeatedMsgId).or_default() += 1;
            } else if self.known.len() < REMEMBERED {
                self.known.insert(msg_id.clone());
            }
        }
    }

    /// These and those of a start that went on where this one ended.
    #[must_use]
    pub(super) fn and(mut self, next: Self) -> Self {
        for (oddity, count) in next.counts {
            *self.counts.entry(oddity).or_default() += count;
        }
        self.known.extend(next.known);
        self
    }

    /// Each kind with its count.
    pub fn counts(&self) -> impl Iterator<Item = (Oddity, u64)> {
        self.counts.iter().map(|(oddity, count)| (*oddity, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::Signal;

    #[test]
    fn each_oddity_is_counted_and_an_identifier_of_several_messages_for_all_but_the_first() {
        let accepted = |msg_id| Outcome::Accepted { msg_id: Some(MsgId::Number(msg_id)), parts: None, answer: None };
        let reply = |ids: &[u64], oddities| Reply {
            outcomes: ids.iter().map(|id| accepted(*id)).collect(),
            signal: Signal::Go,
            evidence: None,
            oddities,
        };
        let mut oddities = Oddities::default();
        oddities.observe(&reply(&[1, 2, 3], Vec::new()));
        assert_eq!(oddities.counts().count(), 0);
        oddities.observe(&reply(&[7; 5], vec![Oddity::NumericRequestId]));
        oddities.observe(&reply(&[7, 4], vec![Oddity::NegativeMsgId, Oddity::NegativeMsgId]));
        let told: Vec<_> = oddities.counts().collect();
        let expected = [(Oddity::NumericRequestId, 1), (Oddity::NegativeMsgId, 2), (Oddity::RepeatedMsgId, 5)];
        assert_eq!(told, expected);
    }
}
