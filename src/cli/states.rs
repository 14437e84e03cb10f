//! The counts and states of messages and runs, coloured by what they mean. Words say the same without colours.

use super::text::{Meaning, Span, joined, plain, span, strong};
use crate::ledger::{State, StateCounts};
use crate::report::{RunStatus, count_parts};

/// What a state means for its message.
pub(super) fn meaning(state: State) -> Meaning {
    match state {
        State::Accepted | State::Queued | State::Delivered | State::Read => Meaning::Good,
        State::Rejected | State::Failed | State::NotSent => Meaning::Bad,
        State::Invalid | State::InDoubt | State::Unresolved | State::AssumedSent => Meaning::Caution,
        State::Planned | State::Sending | State::Skipped => Meaning::Plain,
    }
}

/// A state as people read it.
pub(super) fn state(state: State) -> Span {
    span(meaning(state), state.words())
}

/// The rows of a run by state.
pub(super) fn counts(counts: &StateCounts, in_part: u64) -> Vec<Span> {
    let parts = count_parts(counts, in_part);
    if parts.is_empty() {
        return vec![plain("none")];
    }
    joined(parts.into_iter().map(|(state, words)| vec![span(meaning(state), words)]), " · ")
}

/// What a run does, or how it ended, with a mark before it. A finished run with rows in doubt needs attention.
pub(super) fn status(status: &RunStatus, counts: &StateCounts) -> Span {
    let (meaning, mark) = match status {
        RunStatus::Sending => (Meaning::Next, "▸"),
        RunStatus::Finished if counts.get(State::InDoubt) + counts.get(State::Unresolved) > 0 => {
            (Meaning::Caution, "!")
        }
        RunStatus::Finished => (Meaning::Good, "✓"),
        RunStatus::Stopped(_) | RunStatus::Interrupted | RunStatus::ToGoOn => (Meaning::Caution, "!"),
        RunStatus::GivenUp(_) | RunStatus::Cancelled => (Meaning::Bad, "✗"),
        RunStatus::Replaced => (Meaning::Dim, "-"),
    };
    span(meaning, format!("{mark} {status}"))
}

/// The first line about a run: its name, and where and how it is sent.
pub(super) fn heading<'p>(name: &str, parts: impl IntoIterator<Item = &'p str>) -> Vec<Span> {
    joined([vec![strong(name)]].into_iter().chain(parts.into_iter().map(|part| vec![plain(part)])), " · ")
}

#[cfg(test)]
mod tests {
    use super::super::text::{Line, Text};
    use super::*;

    fn rendered(spans: Vec<Span>, color: bool) -> String {
        Text::from(Line::new(spans)).render(None, color)
    }

    #[test]
    fn finished_run_is_marked_if_rows_are_in_doubt() {
        let mut sent = StateCounts::default();
        sent.add(State::Accepted, 2);
        let mark = |counts: &StateCounts| rendered(vec![status(&RunStatus::Finished, counts)], false);
        assert!(mark(&sent).starts_with('✓'));
        sent.add(State::InDoubt, 1);
        assert!(mark(&sent).starts_with('!'));
    }

    #[test]
    fn every_state_is_told_by_its_word_and_its_colour() {
        let mut all = StateCounts::default();
        State::ALL.into_iter().for_each(|state| all.add(state, 1));
        let (bare, coloured) = (rendered(counts(&all, 0), false), rendered(counts(&all, 0), true));
        assert_eq!(console::strip_ansi_codes(&coloured), bare);
        for words in ["1 accepted by the gateway", "1 rejected", "1 in doubt", "1 failed"] {
            assert!(bare.contains(words), "{bare}");
        }
        for words in ["\u{1b}[32m1 accepted", "\u{1b}[1m\u{1b}[31m1 rejected", "\u{1b}[33m1 in doubt"] {
            assert!(coloured.contains(words), "{coloured:?}");
        }
    }
}
