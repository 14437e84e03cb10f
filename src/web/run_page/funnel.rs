//! The funnel: from the list to who read it. Every row stands in it once, so it adds up.

use super::{RunPage, share};
use crate::ledger::State;
use crate::web::charts::{Bar, bars};
use crate::web::words::Words;

/// The states of rows that the gateway took.
pub(super) const TAKEN: [State; 5] = [State::Accepted, State::Queued, State::Failed, State::Delivered, State::Read];
/// The states of rows that the gateway took, and of whose delivery it told nothing yet.
pub(super) const NO_WORD: [State; 2] = [State::Accepted, State::Queued];
/// The states of rows that are meant, and of which the gateway has not taken a message as far as anybody knows.
const NOT_TAKEN: [State; 7] = [
    State::Planned,
    State::Sending,
    State::Rejected,
    State::NotSent,
    State::InDoubt,
    State::Unresolved,
    State::AssumedSent,
];
/// How many reasons for leaving somebody out are named.
const NAMED: usize = 8;

impl RunPage<'_> {
    pub(super) fn funnel(&self, words: &Words) -> Vec<Bar> {
        let rows = self.run().recipients;
        let left_out = self.sum(&[State::Skipped, State::Invalid]);
        let (taken, delivered) = (self.sum(&TAKEN), self.counts().delivered());
        let meant = rows.saturating_sub(left_out);
        let mut funnel = vec![Bar::new(words.say("run.list"), rows, "whole")];
        funnel.extend(self.left_out(words, left_out));
        funnel.push(Bar::new(words.say("run.meant"), meant, "whole").noted(self.of_list(words, meant)));
        funnel.extend(self.states(words, &NOT_TAKEN));
        funnel.push(Bar::new(words.say("run.taken"), taken, "whole").noted(self.of_list(words, taken)));
        funnel.extend(self.no_word(words));
        funnel.extend(self.states(words, &[State::Failed]));
        let in_part = self.standing.in_part();
        let in_part = (in_part > 0).then(|| words.count("run.in-part-of", in_part, &[]));
        let notes: Vec<String> = self.of_taken(words, delivered).into_iter().chain(in_part).collect();
        let note = (!notes.is_empty()).then(|| notes.join(" · "));
        funnel.push(Bar::new(words.say("run.delivered"), delivered, "good").noted(note));
        let read = self.counts().get(State::Read);
        if read > 0 {
            funnel.push(Bar::new(words.say("run.read"), read, "read").noted(self.of_taken(words, read)));
        }
        bars(funnel, Some(rows))
    }

    fn of_list(&self, words: &Words, part: u64) -> Option<String> {
        let share = share(words, part, self.run().recipients)?;
        Some(words.say_with("run.of-list", &[("share", &share)]))
    }

    fn of_taken(&self, words: &Words, part: u64) -> Option<String> {
        let share = share(words, part, self.sum(&TAKEN))?;
        Some(words.say_with("run.of-taken", &[("share", &share)]))
    }

    /// What the gateway took and told nothing more of.
    fn no_word(&self, words: &Words) -> Option<Bar> {
        let rows = self.sum(&NO_WORD);
        (rows > 0).then(|| Bar::new(words.say("run.waiting"), rows, class(State::Accepted)).below(1))
    }

    /// The states among these that occur.
    fn states(&self, words: &Words, states: &[State]) -> Vec<Bar> {
        let there = states.iter().map(|state| (*state, self.counts().get(*state))).filter(|(_, rows)| *rows > 0);
        let word = |state: State| words.kind("state", state.name()).unwrap_or_default().to_owned();
        there.map(|(state, rows)| Bar::new(word(state), rows, class(state)).below(1)).collect()
    }

    /// Who is left out, by reason; whatever the reasons do not tell stands below them as others.
    fn left_out(&self, words: &Words, all: u64) -> Vec<Bar> {
        if all == 0 {
            return Vec::new();
        }
        let reasons = self.figures().map(|figures| figures.left_out.most()).unwrap_or_default();
        let bar = |why: &str, rows| match words.kind("reason", why) {
            Some(known) => Bar::new(known, rows, "out").below(1),
            None if why.is_empty() => Bar::new(words.say("run.no-reason"), rows, "out").below(1),
            None => Bar::new(why, rows, "out").below(1).in_foreign_words(),
        };
        let named: Vec<Bar> = reasons.iter().take(NAMED).map(|reason| bar(reason.words, reason.rows)).collect();
        let others = all.saturating_sub(named.iter().map(|bar| bar.value).sum());
        let word = if named.is_empty() { words.say("run.left-out") } else { words.say("left-out.others") };
        let others = (others > 0).then(|| Bar::new(word, others, "out").below(1));
        named.into_iter().chain(others).collect()
    }
}

/// The class of a state.
pub(super) fn class(state: State) -> &'static str {
    match state {
        State::Planned | State::Sending | State::Accepted | State::Queued => "waiting",
        State::Rejected | State::Failed | State::NotSent | State::Invalid => "bad",
        State::InDoubt | State::Unresolved | State::AssumedSent => "doubtful",
        State::Delivered => "good",
        State::Read => "read",
        State::Skipped => "out",
    }
}
