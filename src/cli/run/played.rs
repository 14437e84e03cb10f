//! What a rehearsal with a scenario tells of the sandbox: over which channels, and what it cost.

use serde_json::{Value, json};

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

/// The same for a program. Those that were read or replied to are among the delivered.
pub(super) fn json(counts: &Counts) -> Value {
    let tally = |tally: &ChannelTally| {
        let ChannelTally { delivered, read, replied, failed, spent } = *tally;
        json!({ "delivered": delivered, "read": read, "replied": replied, "failed": failed, "spent": spent.shortest() })
    };
    let channels: serde_json::Map<String, Value> =
        counts.channels.iter().map(|(channel, of)| (channel.name().to_owned(), tally(of))).collect();
    json!({
        "channels": channels,
        "statuses": counts.statuses,
        "spent": counts.funds.spent.shortest(),
        "balance": counts.funds.balance.shortest(),
        "currency": counts.funds.currency,
    })
}
