//! Text and JSON forms of counts, durations, costs and local times. Pure.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::check::online::Cost;
use campaign_core::domain::format_thousands;
use campaign_core::finding::join_names;
use campaign_ledger::{RowState, StateCounts};

/// The counts as a JSON object, state by state.
#[must_use]
pub fn counts_json(counts: &StateCounts) -> serde_json::Value {
    counts
        .iter()
        .map(|(state, count)| (state.name().to_owned(), count.into()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The counts in display order: delivered messages include read ones, which follow.
pub fn displayed_counts(counts: &StateCounts) -> impl Iterator<Item = (RowState, u64)> {
    let shown =
        |state: RowState| if state == RowState::Delivered { counts.count_delivered() } else { counts.get(state) };
    RowState::ALL.into_iter().map(move |state| (state, shown(state))).filter(|(_, count)| *count > 0)
}

/// The counts on one line, in the order of the states.
#[must_use]
pub fn format_counts(counts: &StateCounts) -> String {
    format_counts_with_partial(counts, 0)
}

/// The counts on one line, with the number of messages that were delivered only in part.
#[must_use]
pub fn format_counts_with_partial(counts: &StateCounts, in_part: u64) -> String {
    let parts: Vec<String> = describe_counts(counts, in_part).into_iter().map(|(_, words)| words).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(" · ") }
}

/// The counts as texts, state by state. Delivered messages include those that were read.
#[must_use]
pub fn describe_counts(counts: &StateCounts, in_part: u64) -> Vec<(RowState, String)> {
    let part = |(state, count): (RowState, u64)| match state {
        RowState::Read => None,
        RowState::Delivered => Some((state, describe_delivered(count, counts.get(RowState::Read), in_part))),
        state => Some((state, format!("{} {}", format_thousands(count), describe_state(state)))),
    };
    displayed_counts(counts).filter_map(part).collect()
}

/// Delivered messages, with the number of read and of partly delivered ones: `20 delivered (5 read)`.
fn describe_delivered(delivered: u64, read: u64, in_part: u64) -> String {
    let among = [(read, "read"), (in_part, "only in part")].into_iter().filter(|(count, _)| *count > 0);
    let among: Vec<String> = among.map(|(count, what)| format!("{} {what}", format_thousands(count))).collect();
    let among = if among.is_empty() { String::new() } else { format!(" ({})", among.join(", ")) };
    format!("{} delivered{among}", format_thousands(delivered))
}

/// The name of a state for display.
fn describe_state(state: RowState) -> String {
    match state {
        // Readers could mistake "accepted" for delivered.
        RowState::Accepted => "accepted by the gateway".to_owned(),
        state => state.format_words(),
    }
}

/// A duration in units that fit its size: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`.
#[must_use]
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

/// The cost of messages, to follow "this": `costs at most 8.00 UAH`.
#[must_use]
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
#[must_use]
pub fn format_local_minute(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// A local time to the second: `2026-11-26 17:02:31`.
#[must_use]
pub fn format_local_second(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
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
}
