//! Counts, numbers and times, for people and for programs. Pure.

use std::time::Duration;

use crate::check::online::Cost;
use crate::domain::thousands;
use crate::finding::list_all;
use crate::ledger::{State, StateCounts};

/// The counts as a JSON object, state by state.
#[must_use]
pub fn counts_json(counts: &StateCounts) -> serde_json::Value {
    counts
        .iter()
        .map(|(state, count)| (state.name().to_owned(), count.into()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The counts on one line for a person, in the order of the states.
#[must_use]
pub fn counts_line(counts: &StateCounts) -> String {
    let parts: Vec<String> = State::ALL
        .into_iter()
        .map(|state| (state, counts.get(state)))
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| format!("{} {}", thousands(count), words(state)))
        .collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(" · ") }
}

/// A state as people read it.
fn words(state: State) -> String {
    match state {
        // So that nobody takes it for delivered.
        State::Accepted => "accepted by the gateway".to_owned(),
        state => state.name().replace('_', " "),
    }
}

/// A time in words that fit its size: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`.
#[must_use]
pub fn duration(time: Duration) -> String {
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

/// What messages cost, as it reads after "this": `costs at most 8.00 UAH`.
#[must_use]
pub fn cost_words(cost: &Cost, currency: Option<&str>) -> String {
    match cost {
        Cost::AtMost(cost) => format!("costs at most {cost} {}", currency.unwrap_or_default()).trim_end().to_owned(),
        Cost::Unknown(channels) => {
            let channels = list_all(channels.iter().map(|channel| channel.name()));
            format!("has no known cost: the profile's `prices` lack {channels}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_for_people() {
        let times = [(400, "0.4 s"), (12_000, "12 s"), (200_000, "3 min 20 s"), (7_500_000, "2 h 5 min")];
        for (milliseconds, text) in times {
            assert_eq!(duration(Duration::from_millis(milliseconds)), text);
        }
    }
}
