//! What a rehearsal with a scenario tells of the sandbox: over which channels, and what it cost.

use crate::report::thousands;
use crate::sandbox::{ChannelTally, Counts};

/// What became of the messages, as lines for a person.
pub(super) fn lines(counts: &Counts) -> Vec<String> {
    let currency = &counts.funds.currency;
    let mut lines = Vec::new();
    for (channel, tally) in &counts.channels {
        let ChannelTally { delivered, read, replied, failed, spent } = *tally;
        // The sandbox also counts read messages as delivered, and messages with a reply as read.
        let among = listed(&[(read, "read"), (replied, "answered")]);
        let among = if among.is_empty() { among } else { format!(" ({among})") };
        let delivered = (delivered > 0).then(|| format!("{} delivered{among}", thousands(delivered)));
        let failed = Some(listed(&[(failed, "not delivered")])).filter(|failed| !failed.is_empty());
        let parts: Vec<String> = delivered.into_iter().chain(failed).collect();
        lines.push(format!("{channel}: {} · {} {currency}", parts.join(", "), spent.shortest()));
    }
    let funds = &counts.funds;
    lines.push(format!(
        "cost in this scenario: {} {currency}; balance left: {} {currency}",
        funds.spent.shortest(),
        funds.balance.shortest()
    ));
    lines
}

/// Counts with their nouns, without zeros.
fn listed(counts: &[(u64, &str)]) -> String {
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    counts.map(|(count, what)| format!("{} {what}", thousands(*count))).collect::<Vec<_>>().join(", ")
}
