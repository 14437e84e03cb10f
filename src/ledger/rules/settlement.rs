//! What becomes of an envelope: by its answer, by a late one, or because its process ended.

use std::sync::Arc;

use crate::domain::Outcome;
use crate::ledger::{ENDED_EARLY, State};

/// What an intent of so many rows is when another process takes the run.
pub(in crate::ledger) fn doubt(rows: usize) -> Vec<Outcome> {
    let reason: Arc<str> = ENDED_EARLY.into();
    vec![Outcome::InDoubt { reason }; rows]
}

/// What is known of an envelope that was settled before, once an answer tells this: what is proven now takes the place
/// of doubt, and of nothing else.
pub(in crate::ledger) fn merge(known: Vec<Outcome>, answer: Vec<Outcome>) -> Vec<Outcome> {
    let mut answer = answer.into_iter();
    known
        .into_iter()
        .map(|known| match answer.next() {
            Some(later) if proves(&known, &later) => later,
            _ => known,
        })
        .collect()
}

/// Whether an answer that came after its envelope was settled says more than what is known.
///
/// Proof that nothing was sent came too late: the row may have been decided on since.
fn proves(known: &Outcome, later: &Outcome) -> bool {
    State::of(later) != State::Planned && State::of(known).can_become(State::of(later))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_about_fewer_rows_takes_nothing_from_the_others() {
        let rejected = Outcome::Rejected { error: "No route".into() };
        assert_eq!(merge(doubt(2), vec![rejected.clone()]), [rejected, doubt(1).remove(0)]);
    }
}
