//! What a rehearsal with a scenario tells of the sandbox: over which channels, and what it cost.

use crate::report::thousands;
use crate::sandbox::{ChannelTally, Counts};

/// What became of the messages, as lines for a person.
pub(super) fn lines(counts: &Counts) -> Vec<String> {
    let currency = &counts.funds.currency;
    let mut lines = Vec::new();
    for (channel, tally) in &counts.channels {
        let ChannelTally { delivered, read, replied, failed, spent } = *tally;
        let parts = [(delivered, "delivered"), (read, "read"), (replied, "replied to"), (failed, "not delivered")];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, what)| format!("{} {what}", thousands(count))).collect();
        lines.push(format!("{channel}: {} · {} {currency}", parts.join(", "), spent.shortest()));
    }
    let funds = &counts.funds;
    lines.push(format!(
        "spent in the scenario: {} {currency}, {} left",
        funds.spent.shortest(),
        funds.balance.shortest()
    ));
    lines
}
