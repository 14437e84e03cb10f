//! What a rehearsal with a scenario tells of the sandbox, as JSON for programs.

use serde_json::{Map, Value, json};

use crate::sandbox::{ChannelTally, Counts};

/// What became of the messages, channel by channel, and of the money. Those that were read or replied to are among the
/// delivered.
#[must_use]
pub fn rehearsal_json(counts: &Counts) -> Value {
    let tally = |tally: &ChannelTally| {
        let ChannelTally { delivered, read, replied, failed, spent } = *tally;
        json!({ "delivered": delivered, "read": read, "replied": replied, "failed": failed, "spent": spent.trim_decimals() })
    };
    let channels: Map<String, Value> =
        counts.channels.iter().map(|(channel, of)| (channel.name().to_owned(), tally(of))).collect();
    json!({
        "channels": channels,
        "statuses": counts.statuses,
        "spent": counts.funds.spent.trim_decimals(),
        "balance": counts.funds.balance.trim_decimals(),
        "currency": counts.funds.currency,
    })
}
