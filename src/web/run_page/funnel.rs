//! The funnel: from the list to who read it. Every row stands in it once, so it adds up.

use super::{RunPage, format_share};
use crate::ledger::RowState;
use crate::web::charts::{Bar, scale_bars};
use crate::web::words::PageWords;

/// The states of rows that the gateway took.
pub(super) const ACCEPTED_STATES: [RowState; 5] =
    [RowState::Accepted, RowState::Queued, RowState::Failed, RowState::Delivered, RowState::Read];
/// The states of rows that the gateway took, and of whose delivery it told nothing yet.
pub(super) const WAITING_STATES: [RowState; 2] = [RowState::Accepted, RowState::Queued];
/// The states of rows that are meant, and of which the gateway has not taken a message as far as anybody knows.
const NOT_ACCEPTED_STATES: [RowState; 7] = [
    RowState::Planned,
    RowState::Sending,
    RowState::Rejected,
    RowState::NotSent,
    RowState::InDoubt,
    RowState::Unresolved,
    RowState::AssumedSent,
];
/// How many reasons for leaving somebody out are named.
const MAX_REASONS: usize = 8;

impl RunPage<'_> {
    pub(super) fn funnel_bars(&self, words: &PageWords) -> Vec<Bar> {
        let rows = self.run().recipients;
        let left_out = self.sum_states(&[RowState::Skipped, RowState::Invalid]);
        let (taken, delivered) = (self.sum_states(&ACCEPTED_STATES), self.counts().count_delivered());
        let meant = rows.saturating_sub(left_out);
        let mut funnel = vec![Bar::new(words.say("run.list"), rows, "whole")];
        funnel.extend(self.left_out_bars(words, left_out));
        funnel.push(
            Bar::new(words.say("run.meant"), meant, "whole").with_note(self.describe_share_of_list(words, meant)),
        );
        funnel.extend(self.state_bars(words, &NOT_ACCEPTED_STATES));
        funnel.push(
            Bar::new(words.say("run.taken"), taken, "whole").with_note(self.describe_share_of_list(words, taken)),
        );
        funnel.extend(self.waiting_bar(words));
        funnel.extend(self.state_bars(words, &[RowState::Failed]));
        let in_part = self.standing.count_partial();
        let in_part = (in_part > 0).then(|| words.count("run.in-part-of", in_part, &[]));
        let notes: Vec<String> = self.describe_share_of_accepted(words, delivered).into_iter().chain(in_part).collect();
        let note = (!notes.is_empty()).then(|| notes.join(" · "));
        funnel.push(Bar::new(words.say("run.delivered"), delivered, "good").with_note(note));
        let read = self.counts().get(RowState::Read);
        if read > 0 {
            funnel.push(
                Bar::new(words.say("run.read"), read, "read").with_note(self.describe_share_of_accepted(words, read)),
            );
        }
        scale_bars(funnel, Some(rows))
    }

    fn describe_share_of_list(&self, words: &PageWords, part: u64) -> Option<String> {
        let share = format_share(words, part, self.run().recipients)?;
        Some(words.say_with("run.of-list", &[("share", &share)]))
    }

    fn describe_share_of_accepted(&self, words: &PageWords, part: u64) -> Option<String> {
        let share = format_share(words, part, self.sum_states(&ACCEPTED_STATES))?;
        Some(words.say_with("run.of-taken", &[("share", &share)]))
    }

    /// What the gateway took and told nothing more of.
    fn waiting_bar(&self, words: &PageWords) -> Option<Bar> {
        let rows = self.sum_states(&WAITING_STATES);
        (rows > 0).then(|| Bar::new(words.say("run.waiting"), rows, state_class(RowState::Accepted)).with_depth(1))
    }

    /// The states among these that occur.
    fn state_bars(&self, words: &PageWords, states: &[RowState]) -> Vec<Bar> {
        let there = states.iter().map(|state| (*state, self.counts().get(*state))).filter(|(_, rows)| *rows > 0);
        let word = |state: RowState| words.kind("state", state.name()).unwrap_or_default().to_owned();
        there.map(|(state, rows)| Bar::new(word(state), rows, state_class(state)).with_depth(1)).collect()
    }

    /// Who is left out, by reason; whatever the reasons do not tell stands below them as others.
    fn left_out_bars(&self, words: &PageWords, all: u64) -> Vec<Bar> {
        if all == 0 {
            return Vec::new();
        }
        let reasons = self.figures().map(|figures| figures.left_out.most_frequent()).unwrap_or_default();
        let bar = |why: &str, rows| match words.kind("reason", why) {
            Some(known) => Bar::new(known, rows, "out").with_depth(1),
            None if why.is_empty() => Bar::new(words.say("run.no-reason"), rows, "out").with_depth(1),
            None => Bar::new(why, rows, "out").with_depth(1).with_foreign_label(),
        };
        let named: Vec<Bar> = reasons.iter().take(MAX_REASONS).map(|reason| bar(reason.text, reason.rows)).collect();
        let others = all.saturating_sub(named.iter().map(|bar| bar.value).sum());
        let word = if named.is_empty() { words.say("run.left-out") } else { words.say("left-out.others") };
        let others = (others > 0).then(|| Bar::new(word, others, "out").with_depth(1));
        named.into_iter().chain(others).collect()
    }
}

/// The class of a state.
pub(super) fn state_class(state: RowState) -> &'static str {
    match state {
        RowState::Planned | RowState::Sending | RowState::Accepted | RowState::Queued => "waiting",
        RowState::Rejected | RowState::Failed | RowState::NotSent | RowState::Invalid => "bad",
        RowState::InDoubt | RowState::Unresolved | RowState::AssumedSent => "doubtful",
        RowState::Delivered => "good",
        RowState::Read => "read",
        RowState::Skipped => "out",
    }
}
