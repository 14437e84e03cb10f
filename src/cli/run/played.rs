//! What a rehearsal with a scenario tells of the sandbox: over which channels, and what it cost.

use crate::report::format_thousands;
use crate::sandbox::{ChannelTally, Counts};

/// What became of the messages, as lines for a person.
pub(super) fn describe_sandbox(counts: &Counts) -> Vec<String> {
    let currency = &counts.funds.currency;
    let mut lines = Vec::new();
    for (channel, tally) in &counts.channels {
        let ChannelTally { delivered, read, replied, failed, spent } = *tally;
        // The sandbox also counts read messages as delivered, and messages with a reply as read.
        let among = join_counts(&[(read, "read"), (replied, "answered")]);
        let among = if among.is_empty() { among } else { format!(" ({among})") };
        let delivered = (delivered > 0).then(|| format!("{} delivered{among}", format_thousands(delivered)));
        let failed = Some(join_counts(&[(failed, "not delivered")])).filter(|failed| !failed.is_empty());
        let parts: Vec<String> = delivered.into_iter().chain(failed).collect();
        lines.push(format!("{channel}: {} · {} {currency}", parts.join(", "), spent.trim_decimals()));
    }
    let funds = &counts.funds;
    lines.push(format!(
        "cost in this scenario: {} {currency}; balance left: {} {currency}",
        funds.spent.trim_decimals(),
        funds.balance.trim_decimals()
    ));
    lines
}

/// Counts with their nouns, without zeros.
fn join_counts(counts: &[(u64, &str)]) -> String {
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    counts.map(|(count, what)| format!("{} {what}", format_thousands(*count))).collect::<Vec<_>>().join(", ")
}
