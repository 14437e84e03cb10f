//! What runs have used of their edition's budget, and what of an envelope is within what is left.

use crate::domain::{Amount, Budget, Chain, OperationOutcome, Spending, Status};
use crate::ledger::{Bound, EnvelopeRecord, RowChange, RowEvents, Run};

/// Whose runs use one budget: those of an edition, whatever profile they go through. What goes through loopback uses nothing
/// of what goes to people.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::ledger) struct BudgetScope<'r> {
    pub(in crate::ledger) campaign: &'r str,
    pub(in crate::ledger) edition: &'r str,
    pub(in crate::ledger) loopback: bool,
}

impl<'r> BudgetScope<'r> {
    /// Whose budget a run uses; a rehearsal and single messages use only their own.
    pub(in crate::ledger) fn for_run(run: &'r Run) -> Option<Self> {
        let Run { campaign, edition, suppression: heed, .. } = run;
        (run.live && !run.shared).then_some(Self { campaign, edition, loopback: heed.loopback })
    }
}

/// Whether two runs use one budget.
#[must_use]
pub fn share_budget(one: &Run, other: &Run) -> bool {
    one.key == other.key || BudgetScope::for_run(one).is_some_and(|scope| BudgetScope::for_run(other) == Some(scope))
}

/// How many of the first messages with these costs keep within a budget of which so much is used, and what holds back
/// the next one; nothing where all do.
pub(in crate::ledger) fn find_exceeded_budget(
    budget: &Budget,
    used: Spending,
    rows: usize,
    costs: &[Amount],
) -> Option<(usize, Bound)> {
    let mut used = used;
    for row in 0..rows {
        let next = used.add_spending(row_spending(costs, row));
        if let Some(limit) = budget.recipients.filter(|limit| next.recipients > *limit) {
            return Some((row, Bound::Recipients { limit }));
        }
        if let Some(limit) = budget.cost.filter(|limit| next.cost > *limit) {
            return Some((row, Bound::Cost { limit, used: used.cost }));
        }
        used = next;
    }
    None
}

/// What an intent of so many messages with these costs uses.
pub(in crate::ledger) fn intended_spending(rows: usize, costs: &[Amount]) -> Spending {
    (0..rows).map(|row| row_spending(costs, row)).fold(Spending::default(), Spending::add_spending)
}

/// What an answer gives back of what its intent used: what was refused and what was not sent costs nothing.
pub(in crate::ledger) fn refunded_spending(outcomes: &[OperationOutcome], costs: &[Amount]) -> Spending {
    let back = outcomes.iter().enumerate().filter(|(_, outcome)| !may_have_been_sent(outcome));
    back.map(|(row, _)| row_spending(costs, row)).fold(Spending::default(), Spending::add_spending)
}

/// What an envelope has used, as far as it is known what became of it.
pub(in crate::ledger) fn envelope_spending(envelope: &EnvelopeRecord, events: &RowEvents) -> Spending {
    let rows = (0..envelope.rows.len()).filter(|index| is_used(envelope, *index, events));
    rows.map(|row| row_spending(&envelope.costs, row)).fold(Spending::default(), Spending::add_spending)
}

impl EnvelopeRecord {
    /// What it has used of a budget, as far as it is known what became of it; `events` are those of the run's rows.
    #[must_use]
    pub fn spending(&self, events: &RowEvents) -> Spending {
        envelope_spending(self, events)
    }
}

/// Whether a message of an envelope uses something, as far as it is known what became of it: it went out, or may have.
pub(super) fn is_used(envelope: &EnvelopeRecord, index: usize, events: &RowEvents) -> bool {
    let outcome = envelope.settled.as_ref().and_then(|(_, outcomes)| outcomes.get(index));
    let about = envelope.rows.get(index).map_or(&[][..], |sent| events.for_row(sent.row));
    let about = about.iter().filter(|event| event.envelope == envelope.envelope);
    // One that is on its way may have gone out.
    let chain = envelope.rows.get(index).map_or(Chain::UNKNOWN, |sent| envelope.chain(sent));
    about.fold(outcome.is_none_or(may_have_been_sent), |used, event| uses_after(used, &event.change, chain))
}

/// Whether a message with this outcome went out, or may have.
pub(in crate::ledger) fn may_have_been_sent(outcome: &OperationOutcome) -> bool {
    !matches!(outcome, OperationOutcome::Rejected { .. } | OperationOutcome::NotSent { .. })
}

/// Whether a message uses something after something was learnt or decided about it.
fn uses_after(used: bool, change: &RowChange, chain: Chain) -> bool {
    match change {
        // The gateway only queued it, and then rejected it. A rejection by an earlier channel is not a rejection of the message.
        RowChange::Found { status, channel, .. } => {
            status != Status::Rejected.name() || !chain.ends_with(channel.as_ref())
        }
        RowChange::AssumedSent { .. } => true,
        RowChange::NotSent { .. } => false,
        RowChange::NotFound { .. }
        | RowChange::Unresolved { .. }
        | RowChange::SendAgain { .. }
        | RowChange::Retry { .. } => used,
    }
}

fn row_spending(costs: &[Amount], row: usize) -> Spending {
    Spending { recipients: 1, cost: costs.get(row).copied().unwrap_or_default() }
}
