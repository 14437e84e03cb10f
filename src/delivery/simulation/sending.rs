//! What a start sends, on what conditions, and who hears of it.

use std::sync::Arc;
use std::time::Duration;

use super::judge::{has_accepted, row_phone};
use super::life::ProcessLife;
use super::mistake::Mistake;
use super::story::SimulatedWorld;
use crate::delivery::{BreakerLimits, DeliveryEvent, DeliveryObserver, SendConditions, Snapshot};
use crate::domain::{Endpoint, MessageId, OperationKind, Phone, Row};
use crate::gateway::EncodedOperation;
use crate::ledger::{Allowance, Lease, Run};

impl SimulatedWorld {
    /// The operations that are still to be sent, as the feed brings them.
    pub(super) fn rendered_operations(&self, run: &Run, snapshot: &Snapshot) -> Vec<Vec<EncodedOperation>> {
        let rows = (2..=self.plan.rows + 1).filter(|row| !snapshot.settled.contains(*row)).map(Row::new);
        let operations: Vec<EncodedOperation> = rows
            .filter_map(|row| {
                let order = snapshot.renumbered.iter().find(|(rows, _)| rows.contains(row.get()));
                let ids = order.map_or(run.ids, |(_, ids)| *ids);
                let fresh = self.mistake == Some(Mistake::FreshIdentifier) && snapshot.digests.contains_key(&row);
                let id = if fresh {
                    MessageId::new(run.ids.first + run.ids.len + u64::from(row.get()))
                } else {
                    ids.id_for_row(row)
                };
                let repeats = order.is_some() || snapshot.digests.contains_key(&row);
                Some(encode_row(row, id?, self.plan.kind).with_repeats(repeats))
            })
            .collect();
        operations.chunks(7).map(<[EncodedOperation]>::to_vec).collect()
    }

    pub(super) fn conditions(&self, lease: Lease, snapshot: &Snapshot) -> SendConditions {
        let plan = &self.plan;
        let limits = BreakerLimits {
            doubtful_envelopes: 3,
            same_error_in_a_row: 50,
            rejected: 0.2,
            unreachable: Duration::from_secs(20),
            keep_going: plan.unsupported.is_some() || plan.seed.is_multiple_of(2),
        };
        SendConditions {
            lease,
            endpoint: plan.endpoint,
            repeated: snapshot.repeated.clone(),
            rate: plan.rate,
            bounds: None,
            waits_at_bounds: true,
            account: Allowance::new("account", plan.account_rate),
            batch: plan.batch,
            in_flight: plan.in_flight,
            timeout: plan.timeout,
            limits,
            proven: has_accepted(snapshot) || self.mistake == Some(Mistake::NoCanary),
            first_messages: if plan.endpoint == Endpoint::Async { Duration::from_secs(10) } else { Duration::ZERO },
            sharing: None,
            is_attended: false,
        }
    }

    pub(super) fn observer(self: &Arc<Self>, life: &Arc<ProcessLife>) -> DeliveryObserver {
        let (world, life) = (Arc::clone(self), Arc::clone(life));
        Arc::new(move |event| {
            if let DeliveryEvent::Settled { counts } = event
                && !life.is_over()
            {
                world.judge.check_shown_counts(&counts, &world.disk.lock().unwrap().count_states(world.current_run()));
            }
        })
    }
}

/// An operation of a kind; its hash is as good as one that is slower to compute.
fn encode_row(row: Row, id: MessageId, kind: OperationKind) -> EncodedOperation {
    let json = format!(r#"{{"type":"sms","id":{id},"phone":{}}}"#, row_phone(row)).into_bytes();
    EncodedOperation {
        row,
        id,
        phone: Phone::new(row_phone(row)).unwrap(),
        kind,
        chain: kind.into(),
        digest: id.get().to_le_bytes(),
        json,
        cost: None,
        leave_before: None,
        repeats: false,
    }
}
