//! The counts and states of messages and runs, coloured by what they mean. Words say the same without colours.

use super::text::{Span, SpanMeaning, join_spans, plain, span, strong};
use crate::ledger::{RowState, StateCounts};
use crate::report::{RunStatus, describe_counts};

/// What a state means for its message.
pub(super) fn state_meaning(state: RowState) -> SpanMeaning {
    match state {
        RowState::Accepted | RowState::Queued | RowState::Delivered | RowState::Read => SpanMeaning::Good,
        RowState::Rejected | RowState::Failed | RowState::NotSent => SpanMeaning::Bad,
        RowState::Invalid | RowState::InDoubt | RowState::Unresolved | RowState::AssumedSent => SpanMeaning::Caution,
        RowState::Planned | RowState::Sending | RowState::Skipped => SpanMeaning::Plain,
    }
}

/// A state as people read it.
pub(super) fn state_span(state: RowState) -> Span {
    span(state_meaning(state), state.format_words())
}

/// The rows of a run by state.
pub(super) fn count_spans(counts: &StateCounts, in_part: u64) -> Vec<Span> {
    let parts = describe_counts(counts, in_part);
    if parts.is_empty() {
        return vec![plain("none")];
    }
    join_spans(parts.into_iter().map(|(state, words)| vec![span(state_meaning(state), words)]), " · ")
}

/// What a run does, or how it ended, with a mark before it. A finished run with rows in doubt needs attention.
pub(super) fn run_status_span(status: &RunStatus, counts: &StateCounts) -> Span {
    let (meaning, mark) = match status {
        RunStatus::Sending => (SpanMeaning::Next, "▸"),
        RunStatus::Finished if counts.get(RowState::InDoubt) + counts.get(RowState::Unresolved) > 0 => {
            (SpanMeaning::Caution, "!")
        }
        RunStatus::Finished => (SpanMeaning::Good, "✓"),
        RunStatus::Stopped(_) | RunStatus::Interrupted | RunStatus::Resumable => (SpanMeaning::Caution, "!"),
        RunStatus::Abandoned(_) | RunStatus::Cancelled => (SpanMeaning::Bad, "✗"),
        RunStatus::Replaced => (SpanMeaning::Dim, "-"),
    };
    span(meaning, format!("{mark} {status}"))
}

/// The first line about a run: its name, and where and how it is sent.
pub(super) fn run_heading<'p>(name: &str, parts: impl IntoIterator<Item = &'p str>) -> Vec<Span> {
    join_spans([vec![strong(name)]].into_iter().chain(parts.into_iter().map(|part| vec![plain(part)])), " · ")
}

#[cfg(test)]
mod tests {
    use super::super::text::{StyledLine, StyledText};
    use super::*;

    fn render_spans(spans: Vec<Span>, color: bool) -> String {
        StyledText::from(StyledLine::new(spans)).render(None, color)
    }

    #[test]
    fn finished_run_is_marked_if_rows_are_in_doubt() {
        let mut sent = StateCounts::default();
        sent.add(RowState::Accepted, 2);
        let mark = |counts: &StateCounts| render_spans(vec![run_status_span(&RunStatus::Finished, counts)], false);
        assert!(mark(&sent).starts_with('✓'));
        sent.add(RowState::InDoubt, 1);
        assert!(mark(&sent).starts_with('!'));
    }

    #[test]
    fn every_state_has_a_word_and_a_colour() {
        let mut all = StateCounts::default();
        RowState::ALL.into_iter().for_each(|state| all.add(state, 1));
        let (bare, coloured) = (render_spans(count_spans(&all, 0), false), render_spans(count_spans(&all, 0), true));
        assert_eq!(console::strip_ansi_codes(&coloured), bare);
        for words in ["1 accepted by the gateway", "1 rejected", "1 in doubt", "1 failed"] {
            assert!(bare.contains(words), "{bare}");
        }
        for words in ["\u{1b}[32m1 accepted", "\u{1b}[1m\u{1b}[31m1 rejected", "\u{1b}[33m1 in doubt"] {
            assert!(coloured.contains(words), "{coloured:?}");
        }
    }
}
