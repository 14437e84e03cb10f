//! What becomes of an envelope: by its answer, by a late one, or because its process ended.

use std::sync::Arc;

use crate::domain::OperationOutcome;
use crate::ledger::{ENDED_EARLY, RowState};

/// What an intent of so many rows is when another process takes the run.
pub(in crate::ledger) fn in_doubt_outcomes(rows: usize) -> Vec<OperationOutcome> {
    let reason: Arc<str> = ENDED_EARLY.into();
    vec![OperationOutcome::InDoubt { reason }; rows]
}

/// What is known of an envelope that was settled before, once an answer tells this: what is proven now takes the place
/// of doubt, and of nothing else.
pub(in crate::ledger) fn merge_outcomes(
    known: Vec<OperationOutcome>,
    answer: Vec<OperationOutcome>,
) -> Vec<OperationOutcome> {
    let mut answer = answer.into_iter();
    known
        .into_iter()
        .map(|known| match answer.next() {
            Some(later) if is_new_proof(&known, &later) => later,
            _ => known,
        })
        .collect()
}

/// Whether an answer that came after its envelope was settled says more than what is known.
///
/// Proof that nothing was sent came too late: the row may have been decided on since.
fn is_new_proof(known: &OperationOutcome, later: &OperationOutcome) -> bool {
    RowState::from_outcome(later) != RowState::Planned
        && RowState::from_outcome(known).can_become(RowState::from_outcome(later))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_answer_keeps_the_outcomes_of_the_other_rows() {
        let rejected = OperationOutcome::Rejected { error: "No route".into() };
        assert_eq!(
            merge_outcomes(in_doubt_outcomes(2), vec![rejected.clone()]),
            [rejected, in_doubt_outcomes(1).remove(0)]
        );
    }
}
