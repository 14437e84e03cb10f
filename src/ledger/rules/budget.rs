//! What runs have used of their edition's budget, and what of an envelope is within what is left.

use crate::domain::{Amount, Budget, Chain, Outcome, Spending, Status};
use crate::ledger::{Bound, Change, EnvelopeRecord, RowEvents, Run};

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
    pub(in crate::ledger) fn of(run: &'r Run) -> Option<Self> {
        let Run { campaign, edition, heed, .. } = run;
        (run.live && !run.shared).then_some(Self { campaign, edition, loopback: heed.loopback })
    }
}

/// Whether two runs use one budget.
#[must_use]
pub fn share_budget(one: &Run, other: &Run) -> bool {
    one.key == other.key || BudgetScope::of(one).is_some_and(|scope| BudgetScope::of(other) == Some(scope))
}

/// How many of the first messages with these costs keep within a budget of which so much is used, and what holds back
/// the next one; nothing where all do.
pub(in crate::ledger) fn over(
    budget: &Budget,
    used: Spending,
    rows: usize,
    costs: &[Amount],
) -> Option<(usize, Bound)> {
    let mut used = used;
    for row in 0..rows {
        let next = used.plus(one(costs, row));
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
pub(in crate::ledger) fn taken(rows: usize, costs: &[Amount]) -> Spending {
    (0..rows).map(|row| one(costs, row)).fold(Spending::default(), Spending::plus)
}

/// What an answer gives back of what its intent used: what was refused and what was not sent costs nothing.
pub(in crate::ledger) fn given_back(outcomes: &[Outcome], costs: &[Amount]) -> Spending {
    let back = outcomes.iter().enumerate().filter(|(_, outcome)| !is_out(outcome));
    back.map(|(row, _)| one(costs, row)).fold(Spending::default(), Spending::plus)
}

/// What an envelope has used, as far as it is known what became of it.
pub(in crate::ledger) fn spent(envelope: &EnvelopeRecord, events: &RowEvents) -> Spending {
    let rows = (0..envelope.rows.len()).filter(|index| is_used(envelope, *index, events));
    rows.map(|row| one(&envelope.costs, row)).fold(Spending::default(), Spending::plus)
}

impl EnvelopeRecord {
    /// What it has used of a budget, as far as it is known what became of it; `events` are those of the run's rows.
    #[must_use]
    pub fn spent(&self, events: &RowEvents) -> Spending {
        spent(self, events)
    }
}

/// Whether a message of an envelope uses something, as far as it is known what became of it: it went out, or may have.
pub(super) fn is_used(envelope: &EnvelopeRecord, index: usize, events: &RowEvents) -> bool {
    let outcome = envelope.settled.as_ref().and_then(|(_, outcomes)| outcomes.get(index));
    let about = envelope.rows.get(index).map_or(&[][..], |sent| events.of(sent.row));
    let about = about.iter().filter(|event| event.envelope == envelope.envelope);
    // One that is on its way may have gone out.
    let chain = envelope.rows.get(index).map_or(Chain::UNKNOWN, |sent| envelope.chain(sent));
    about.fold(outcome.is_none_or(is_out), |used, event| uses_after(used, &event.change, chain))
}

/// Whether a message with this outcome went out, or may have.
pub(in crate::ledger) fn is_out(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Rejected { .. } | Outcome::NotSent { .. })
}

/// Whether a message uses something after something was learnt or decided about it.
fn uses_after(used: bool, change: &Change, chain: Chain) -> bool {
    match change {
        // The gateway only queued it, and then rejected it. A rejection by an earlier channel is not a rejection of the message.
        Change::Found { status, channel, .. } => {
            status != Status::Rejected.name() || !chain.ends_with(channel.as_ref())
        }
        Change::AssumedSent { .. } => true,
        Change::NotSent { .. } => false,
        Change::NotFound { .. } | Change::Unresolved { .. } | Change::SendAgain { .. } | Change::Retry { .. } => used,
    }
}

fn one(costs: &[Amount], row: usize) -> Spending {
    Spending { recipients: 1, cost: costs.get(row).copied().unwrap_or_default() }
}
