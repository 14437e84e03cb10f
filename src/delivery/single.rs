//! Sending one operation that a person waits for: a feed of one, on the engine's way.

use std::sync::Arc;
use std::time::Duration;

use roaring::RoaringBitmap;

use super::breaker::BreakerLimits;
use super::engine::send_operations;
use super::feed::Feed;
use super::start::{SendConditions, SendContext, SendEnding};
use super::stop::{Stop, StopKind};
use crate::domain::{Endpoint, OperationOutcome};
use crate::gateway::EncodedOperation;
use crate::ledger::{Allowance, Bounds, CAPPED, Lease, OPTED_OUT, RowState, StateCounts};

/// The conditions of a single operation.
#[derive(Clone, Debug)]
pub struct SingleConditions {
    /// The run, and by what right it is sent.
    pub lease: Lease,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The account whose pace it takes from.
    pub account: Allowance,
    /// What the intent has to keep within; nothing where there are no bounds.
    pub bounds: Option<Arc<Bounds>>,
    /// The longest time of one request.
    pub timeout: Duration,
    /// How long a gateway that cannot be reached is tried.
    pub patience: Duration,
}

/// What became of a single operation.
#[derive(Clone, Debug)]
pub struct SingleEnding {
    /// What the gateway said, or did not; it is on the disk. Nothing when the intent was left as it is.
    pub outcome: Option<OperationOutcome>,
    /// Why it was not sent, or was left.
    pub stopped: Option<Stop>,
    /// Why the ledger skipped its recipient: [`OPTED_OUT`] or [`CAPPED`]; nothing if it did not.
    pub skipped: Option<&'static str>,
}

/// Sends one operation, and tries again only what is proven not sent.
pub async fn send_single(
    conditions: SingleConditions,
    edges: SendContext,
    operation: EncodedOperation,
) -> SingleEnding {
    let mut counts = StateCounts::default();
    counts.add(RowState::Planned, 1);
    to_single_ending(send_operations(conditions.into(), edges, Feed::from_groups(vec![vec![operation]]), counts).await)
}

/// The end of a start that sent one operation; only what was not sent has a reason besides somebody's will.
fn to_single_ending(SendEnding { outcome, stopped, counts, opted_out, .. }: SendEnding) -> SingleEnding {
    let unsent = || OperationOutcome::NotSent { reason: stopped.as_ref().map_or("", |stop| &stop.reason).into() };
    // No intent was recorded, or it was held back, so nothing was sent.
    let outcome = outcome.or_else(|| (counts.get(RowState::Planned) > 0).then(unsent));
    let left = |stop: &Stop| match stop.kind {
        StopKind::Interrupted(_) | StopKind::Ledger | StopKind::ResultsUnwritten | StopKind::LeaseLost => true,
        StopKind::KeyRefused
        | StopKind::StopRequested
        | StopKind::Breaker
        | StopKind::Unreachable
        | StopKind::OffContract
        | StopKind::Credit
        | StopKind::Budget
        | StopKind::Window
        | StopKind::Halted
        | StopKind::DeadlineReached
        | StopKind::Limit
        | StopKind::Inconsistent
        | StopKind::Internal => matches!(outcome, None | Some(OperationOutcome::NotSent { .. })),
    };
    let stopped = stopped.clone().filter(left);
    let skipped = if opted_out > 0 { OPTED_OUT } else { CAPPED };
    let skipped = (counts.get(RowState::Skipped) > 0).then_some(skipped);
    SingleEnding { outcome, stopped, skipped }
}

impl From<SingleConditions> for SendConditions {
    fn from(single: SingleConditions) -> Self {
        let SingleConditions { lease, endpoint, account, bounds, timeout, patience } = single;
        Self {
            lease,
            endpoint,
            repeated: RoaringBitmap::new(),
            rate: None,
            account,
            bounds,
            waits_at_bounds: true,
            batch: 1,
            in_flight: 1,
            timeout,
            // There is nothing that one answer could stop.
            proven: false,
            limits: BreakerLimits {
                doubtful_envelopes: u32::MAX,
                same_error_in_a_row: u32::MAX,
                rejected: 1.0,
                unreachable: patience,
                keep_going: true,
            },
            first_messages: Duration::ZERO,
            sharing: None,
            is_attended: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::fixtures::outcome;

    #[test]
    fn unsent_operation_has_a_reason() {
        let stop = |kind| Some(Stop::new(kind, "why"));
        let unsent = Some(OperationOutcome::NotSent { reason: "why".into() });
        let (accepted, refused, doubt, told_unsent) =
            (Some(outcome(0)), Some(outcome(2)), Some(outcome(4)), Some(outcome(3)));
        let (planned, sending) = (RowState::Planned, RowState::Sending);
        for (known, state, stopped, expected, keeps) in [
            (&accepted, RowState::Accepted, None, &accepted, false),
            (&accepted, RowState::Accepted, stop(StopKind::Interrupted(2)), &accepted, true),
            (&refused, RowState::Rejected, stop(StopKind::OffContract), &refused, false),
            (&doubt, RowState::InDoubt, stop(StopKind::OffContract), &doubt, false),
            (&told_unsent, planned, stop(StopKind::KeyRefused), &told_unsent, true),
            (&told_unsent, planned, stop(StopKind::OffContract), &told_unsent, true),
            // It was called back before its intent, or another process took the run.
            (&None, planned, stop(StopKind::Interrupted(2)), &unsent, true),
            (&None, planned, stop(StopKind::LeaseLost), &unsent, true),
            // Its intent was left as it is.
            (&None, sending, stop(StopKind::Interrupted(2)), &None, true),
            (&None, RowState::InDoubt, stop(StopKind::OffContract), &None, true),
        ] {
            let mut counts = StateCounts::default();
            counts.add(state, 1);
            let case = format!("{known:?} {state} {stopped:?}");
            let told = to_single_ending(SendEnding {
                stopped: stopped.clone(),
                counts,
                outcome: known.clone(),
                ..SendEnding::default()
            });
            assert_eq!(&told.outcome, expected, "{case}");
            assert_eq!(told.stopped, stopped.filter(|_| keeps), "{case}");
        }
    }
}
