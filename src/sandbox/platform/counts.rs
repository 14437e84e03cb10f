//! What a rehearsal's summary shows of the sandbox.

use std::collections::BTreeMap;

use super::Phase;
use crate::domain::{Amount, Channel};
use crate::sandbox::request::Kind;

/// What the sandbox took and refused since it started, and what became of it.
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
    pub operations: BTreeMap<&'static str, OperationTally>,
    /// Messages, lookups and code calls by the channel that delivered them or was tried last; only channels that occurred.
    pub channels: BTreeMap<Channel, ChannelTally>,
    /// The same by their final status in the gateway's words, each under its latest; those still on their way are in none.
    pub statuses: BTreeMap<String, u64>,
    /// Money, over all accounts.
    pub funds: Funds,
}

/// How many operations of one type were executed, and how many refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationTally {
    /// Operations whose item said `success` true, or would have on the synchronous endpoint.
    pub accepted: u64,
    /// The others.
    pub rejected: u64,
}

/// What became of messages in one channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelTally {
    /// Those that it delivered.
    pub delivered: u64,
    /// Those of them that were read.
    pub read: u64,
    /// Those of them that were replied to.
    pub replied: u64,
    /// Those that it failed to deliver as the last channel that was tried.
    pub failed: u64,
    /// What they cost.
    pub spent: Amount,
}

/// Where the accounts' money is; the three amounts add up to what the accounts began with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Funds {
    /// What was charged for good.
    pub spent: Amount,
    /// What is reserved for messages on their way.
    pub reserved: Amount,
    /// What is left.
    pub balance: Amount,
    /// The currency of the first account; amounts in another are added as they are.
    pub currency: String,
}

impl Counts {
    /// Counts one operation.
    pub(crate) fn count_operation(&mut self, kind: Kind, accepted: bool) {
        let tally = self.operations.entry(kind.name()).or_default();
        if accepted {
            tally.accepted += 1;
        } else {
            tally.rejected += 1;
        }
    }

    /// Counts a message's final status.
    pub(crate) fn count_final_status(&mut self, status: &str) {
        match self.statuses.get_mut(status) {
            Some(count) => *count += 1,
            None => drop(self.statuses.insert(status.to_owned(), 1)),
        }
    }

    /// Counts what became of a message in the channel that delivered it or was tried last.
    pub(crate) fn count_channel_result(&mut self, channel: Channel, phase: Phase) {
        let tally = self.channels.entry(channel).or_default();
        match phase {
            Phase::Delivered => tally.delivered += 1,
            Phase::Read => tally.read += 1,
            Phase::Replied => tally.replied += 1,
            Phase::Failed(_) => tally.failed += 1,
            Phase::Queued | Phase::Accepted | Phase::Rejected => {}
        }
    }

    /// A message that was counted under this status has another one now.
    pub(crate) fn uncount_status(&mut self, status: &str) {
        if let Some(count) = self.statuses.get_mut(status) {
            *count -= 1;
            if *count == 0 {
                self.statuses.remove(status);
            }
        }
    }

    /// Takes money out of a balance until it is known what it is spent on.
    pub(crate) fn reserve_funds(&mut self, amount: Amount) {
        self.funds.balance = self.funds.balance.saturating_sub(amount);
        self.funds.reserved = self.funds.reserved.saturating_add(amount);
    }

    /// Spends some of what was reserved on a channel and gives back the rest.
    pub(crate) fn settle_funds(&mut self, channel: Channel, reserved: Amount, spent: Amount) {
        let Funds { spent: all, reserved: held, balance, .. } = &mut self.funds;
        *held = held.saturating_sub(reserved);
        *all = all.saturating_add(spent);
        *balance = balance.saturating_add(reserved).saturating_sub(spent);
        let tally = self.channels.entry(channel).or_default();
        tally.spent = tally.spent.saturating_add(spent);
    }
}
