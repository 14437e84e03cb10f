//! Text and JSON forms of counts, durations, costs, local times and gateway answers. This module does no I/O.
//!
//! In JSON, values that the gateway did not return are null.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::check::online::Cost;
use campaign_core::domain::{GatewayMessageId, format_thousands};
use campaign_core::finding::join_names;
use campaign_gateway::{AskStatus, InquiryFailure, MessageRecord, MessageTemplate, SenderName};
use campaign_ledger::{RowState, StateCounts};
use campaign_sandbox::{ChannelTally, Counts};

/// The counts as a JSON object, state by state.
pub fn counts_json(counts: &StateCounts) -> serde_json::Value {
    counts
        .iter()
        .map(|(state, count)| (state.name().to_owned(), count.into()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The counts in display order; the number of delivered messages includes read messages, which are also counted
/// separately.
pub fn displayed_counts(counts: &StateCounts) -> impl Iterator<Item = (RowState, u64)> {
    let displayed_count =
        |state: RowState| if state == RowState::Delivered { counts.count_delivered() } else { counts.get(state) };
    RowState::ALL.into_iter().map(move |state| (state, displayed_count(state))).filter(|(_, count)| *count > 0)
}

/// Formats the counts on one line, in the order of the states.
pub fn format_counts(counts: &StateCounts) -> String {
    format_counts_with_partial(counts, 0)
}

/// Formats the counts on one line, with the number of messages that were delivered only in part.
pub fn format_counts_with_partial(counts: &StateCounts, in_part: u64) -> String {
    let parts: Vec<String> = describe_counts(counts, in_part).into_iter().map(|(_, words)| words).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(" · ") }
}

/// Describes the counts, state by state. Delivered messages include messages that were read.
pub fn describe_counts(counts: &StateCounts, in_part: u64) -> Vec<(RowState, String)> {
    let describe = |(state, count): (RowState, u64)| match state {
        RowState::Read => None,
        RowState::Delivered => Some((state, describe_delivered(count, counts.get(RowState::Read), in_part))),
        state => Some((state, format!("{} {}", format_thousands(count), describe_state(state)))),
    };
    displayed_counts(counts).filter_map(describe).collect()
}

/// Describes delivered messages, with the counts of read and of partly delivered messages: `20 delivered (5 read)`.
fn describe_delivered(delivered: u64, read: u64, in_part: u64) -> String {
    let details = [(read, "read"), (in_part, "only in part")].into_iter().filter(|(count, _)| *count > 0);
    let details: Vec<String> = details.map(|(count, text)| format!("{} {text}", format_thousands(count))).collect();
    let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
    format!("{} delivered{details}", format_thousands(delivered))
}

/// The name of a state for display.
fn describe_state(state: RowState) -> String {
    match state {
        // Readers could mistake "accepted" for "delivered".
        RowState::Accepted => "accepted by the gateway".to_owned(),
        state => state.format_words(),
    }
}

/// Formats a duration in units that fit its size: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`.
pub fn format_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..172_800 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ if seconds % 86_400 < 3600 => format!("{} d", seconds / 86_400),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Rounds a duration up to the precision that [`format_duration`] shows, and to no less than 0.1 s.
pub fn round_up_duration(time: Duration) -> Duration {
    let unit = match time.as_secs() {
        0..10 => Duration::from_millis(100),
        10..3600 => Duration::from_secs(1),
        3600..172_800 => Duration::from_mins(1),
        _ => Duration::from_hours(1),
    };
    let units = time.as_nanos().div_ceil(unit.as_nanos()).max(1);
    unit.saturating_mul(u32::try_from(units).unwrap_or(u32::MAX))
}

/// Formats an upper bound of a duration in the same units as [`format_duration`], but rounded up.
pub(super) fn format_duration_limit(time: Duration) -> String {
    format_duration(round_up_duration(time))
}

/// Describes the cost of messages, in words that follow “this”: `costs at most 8.00 UAH`.
pub fn describe_cost(cost: &Cost, currency: Option<&str>) -> String {
    match cost {
        Cost::AtMost(cost) => format!("costs at most {cost} {}", currency.unwrap_or_default()).trim_end().to_owned(),
        Cost::Unknown(channels) => {
            let channels = join_names(channels.iter().map(|channel| channel.name()));
            format!("has an unknown cost: the profile has no `prices` for {channels}")
        }
    }
}

/// A local time to the minute: `2026-11-26 17:02`.
pub fn format_local_minute(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// A local time to the second: `2026-11-26 17:02:31`.
pub fn format_local_second(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// A sender name as JSON.
pub fn sender_json(sender: &SenderName) -> Value {
    let SenderName { name, status } = sender;
    json!({ "name": name, "status": status })
}

/// A message template as JSON, with the gateway's names.
pub fn template_json(template: &MessageTemplate) -> Value {
    let members = template.members().into_iter().map(|(key, value)| (key, json!(value)));
    [("id", id_json(template.id.as_ref()))].into_iter().chain(members).collect()
}

/// Formats as JSON the gateway's record of a message, or the reason there is no record.
pub fn message_json(inquiry: &AskStatus, answer: &Result<MessageRecord, InquiryFailure>) -> Value {
    let (own_id, gateway_id) = (inquiry.own_id(), inquiry.gateway_id());
    match answer {
        Ok(MessageRecord { id, msg_id, channel, status, updated }) => json!({
            "id": id_json(id.as_ref().or(own_id.as_ref())),
            "msg_id": id_json(msg_id.as_ref().or(gateway_id.as_ref())),
            "type": channel,
            "status": status.name(),
            "updated": updated,
        }),
        Err(failed) => {
            json!({ "id": id_json(own_id.as_ref()), "msg_id": id_json(gateway_id.as_ref()), "error": failed.reason })
        }
    }
}

/// An identifier in the form that the gateway uses: a number, a string or null.
fn id_json(id: Option<&GatewayMessageId>) -> Value {
    match id {
        Some(GatewayMessageId::Number(number)) => (*number).into(),
        Some(GatewayMessageId::Text(text)) => text.as_str().into(),
        None => Value::Null,
    }
}

/// Known members of gateway answers, with their names in our output.
const KNOWN_MEMBERS: [(&str, &str); 11] = [
    ("code", "code"),
    ("price", "price"),
    ("phone", "number"),
    ("status", "status"),
    ("network.origin.name", "operator"),
    ("network.origin.country.name", "country"),
    ("ported", "ported"),
    ("network.ported.name", "ported to"),
    ("network.ported.country.name", "ported to country"),
    ("mccmnc", "mccmnc"),
    ("imsi", "imsi"),
];

/// Parses the members of an answer, each with its value. Known members come first, under the names that campaign uses.
pub fn parse_answer_members(answer: &str) -> Vec<(String, String)> {
    let mut members = Vec::new();
    collect_members("", answer, &mut members);
    let known_index = |path: &str| KNOWN_MEMBERS.iter().position(|(known_path, _)| *known_path == path);
    members.sort_by_key(|(path, _)| known_index(path).unwrap_or(KNOWN_MEMBERS.len()));
    let display_name = |path: String| known_index(&path).map_or(path, |index| KNOWN_MEMBERS[index].1.to_owned());
    members.into_iter().map(|(path, value)| (display_name(path), value)).collect()
}

/// Adds the values below `path`, each under its full path; a list counts as one value. Empty and null values are
/// skipped.
fn collect_members(path: &str, json: &str, members: &mut Vec<(String, String)>) {
    if let Ok(object) = serde_json::from_str::<BTreeMap<String, &RawValue>>(json) {
        for (name, value) in object {
            let path = if path.is_empty() { name } else { format!("{path}.{name}") };
            collect_members(&path, value.get(), members);
        }
        return;
    }
    // A number is shown as it is written in the JSON text, so it keeps all its digits.
    let value = serde_json::from_str::<String>(json).unwrap_or_else(|_| match json {
        "true" => "yes".to_owned(),
        "false" => "no".to_owned(),
        "null" => String::new(),
        other => other.to_owned(),
    });
    if !value.is_empty() {
        members.push((path.to_owned(), value));
    }
}

/// The counts of a rehearsal: messages by channel, and money. Delivered messages include messages that were read or
/// answered.
pub fn rehearsal_json(counts: &Counts) -> Value {
    let tally = |tally: &ChannelTally| {
        let ChannelTally { delivered, read, replied, failed, spent } = *tally;
        json!({ "delivered": delivered, "read": read, "replied": replied, "failed": failed, "spent": spent.trim_decimals() })
    };
    let channels: Map<String, Value> =
        counts.channels.iter().map(|(channel, counts)| (channel.name().to_owned(), tally(counts))).collect();
    json!({
        "channels": channels,
        "statuses": counts.statuses,
        "spent": counts.funds.spent.trim_decimals(),
        "balance": counts.funds.balance.trim_decimals(),
        "currency": counts.funds.currency,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_line_includes_read_in_delivered() {
        let counts = |states: &[(RowState, u64)]| {
            let mut counts = StateCounts::default();
            states.iter().for_each(|(state, count)| counts.add(*state, *count));
            counts
        };
        let both = counts(&[
            (RowState::Accepted, 1),
            (RowState::Delivered, 1_618),
            (RowState::Read, 1_248),
            (RowState::Failed, 2),
        ]);
        assert_eq!(format_counts(&both), "1 accepted by the gateway · 2 866 delivered (1 248 read) · 2 failed");
        assert_eq!(format_counts(&counts(&[(RowState::Read, 3)])), "3 delivered (3 read)");
        assert_eq!(
            format_counts_with_partial(&both, 7).split(" · ").nth(1),
            Some("2 866 delivered (1 248 read, 7 only in part)")
        );
        assert_eq!(format_counts_with_partial(&counts(&[(RowState::Delivered, 9)]), 7), "9 delivered (7 only in part)");
        assert_eq!(format_counts(&StateCounts::default()), "none");
        assert!(displayed_counts(&both).eq([
            (RowState::Accepted, 1),
            (RowState::Delivered, 2_866),
            (RowState::Read, 1_248),
            (RowState::Failed, 2)
        ]));
    }

    #[test]
    fn durations_are_formatted_by_size() {
        let times = [(400, "0.4 s"), (12_000, "12 s"), (200_000, "3 min 20 s"), (7_500_000, "2 h 5 min")];
        for (milliseconds, text) in times {
            assert_eq!(format_duration(Duration::from_millis(milliseconds)), text);
        }
    }

    #[test]
    fn upper_bounds_of_durations_are_rounded_up() {
        let bounds = [
            (0, "0.1 s"),
            (400, "0.4 s"),
            (401, "0.5 s"),
            (9_999, "10 s"),
            (10_990, "11 s"),
            (12_000, "12 s"),
            (59_970, "1 min 0 s"),
            (3_600_001, "1 h 1 min"),
            (172_799_000, "2 d"),
            (172_800_001, "2 d 1 h"),
        ];
        for (milliseconds, text) in bounds {
            assert_eq!(format_duration_limit(Duration::from_millis(milliseconds)), text, "{milliseconds} ms");
        }
    }

    fn owned((name, value): (&str, &str)) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn known_members_come_first_and_others_keep_their_names() {
        let answer = r#"{"zone":[1,2],"imsi":255010000000000001,"ported":false,"phone":380501000002,
            "network":{"origin":{"name":"Sandbox Mobile","prefix":"50","country":{"name":"Ukraine"}},"ported":null}}"#;
        let expected = [
            ("number", "380501000002"),
            ("operator", "Sandbox Mobile"),
            ("country", "Ukraine"),
            ("ported", "no"),
            ("imsi", "255010000000000001"),
            ("network.origin.prefix", "50"),
            ("zone", "[1,2]"),
        ];
        assert_eq!(parse_answer_members(answer), expected.map(owned));
    }

    #[test]
    fn codes_keep_zeros_and_prices_keep_digits() {
        let expected = [("code", "0042"), ("price", "0.50")];
        assert_eq!(parse_answer_members(r#"{"price":0.50,"code":"0042"}"#), expected.map(owned));
    }

    proptest! {
        #[test]
        fn arbitrary_answers_do_not_panic(text: String) {
            let _ = parse_answer_members(&text);
        }
    }
}
