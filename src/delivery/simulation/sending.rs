//! What a start sends, on what conditions, and who hears of it.

use std::sync::Arc;
use std::time::Duration;

use super::judge::{phone, took};
use super::life::Life;
use super::mistake::Mistake;
use super::story::World;
use crate::delivery::{Conditions, DeliveryEvent, Limits, Observer, Snapshot};
use crate::domain::{Endpoint, MessageId, OperationKind, Phone, Row};
use crate::gateway::EncodedOperation;
use crate::ledger::{Allowance, Lease, Run};

impl World {
    /// The operations that are still to be sent, as the feed brings them.
    pub(super) fn rendered(&self, run: &Run, snapshot: &Snapshot) -> Vec<Vec<EncodedOperation>> {
        let rows = (2..=self.plan.rows + 1).filter(|row| !snapshot.settled.contains(*row)).map(Row::new);
        let operations: Vec<EncodedOperation> = rows
            .filter_map(|row| {
                let order = snapshot.renumbered.iter().find(|(rows, _)| rows.contains(row.get()));
                let ids = order.map_or(run.ids, |(_, ids)| *ids);
                let fresh = self.mistake == Some(Mistake::FreshIdentifier) && snapshot.digests.contains_key(&row);
                let id = if fresh {
                    MessageId::new(run.ids.first + run.ids.len + u64::from(row.get()))
                } else {
                    ids.id(row)
                };
                let repeats = order.is_some() || snapshot.digests.contains_key(&row);
                Some(encoded(row, id?, self.plan.kind).repeating(repeats))
            })
            .collect();
        operations.chunks(7).map(<[EncodedOperation]>::to_vec).collect()
    }

    pub(super) fn conditions(&self, lease: Lease, snapshot: &Snapshot) -> Conditions {
        let plan = &self.plan;
        let limits = Limits {
            doubtful_envelopes: 3,
            same_error_in_a_row: 50,
            rejected: 0.2,
            unreachable: Duration::from_secs(20),
            keep_going: plan.unsupported.is_some() || plan.seed.is_multiple_of(2),
        };
        Conditions {
            lease,
            endpoint: plan.endpoint,
            repeated: snapshot.repeated.clone(),
            rate: plan.rate,
            bounds: None,
            waits: true,
            account: Allowance::new("account", plan.account_rate),
            batch: plan.batch,
            in_flight: plan.in_flight,
            timeout: plan.timeout,
            limits,
            proven: took(snapshot) || self.mistake == Some(Mistake::NoCanary),
            first_messages: if plan.endpoint == Endpoint::Async { Duration::from_secs(10) } else { Duration::ZERO },
            together: None,
            attended: false,
        }
    }

    pub(super) fn observer(self: &Arc<Self>, life: &Arc<Life>) -> Observer {
        let (world, life) = (Arc::clone(self), Arc::clone(life));
        Arc::new(move |event| {
            if let DeliveryEvent::Settled { counts } = event
                && !life.is_over()
            {
                world.judge.shown(&counts, &world.disk.lock().unwrap().counts(world.run()));
            }
        })
    }
}

/// An operation of a kind; its hash is as good as one that is slower to compute.
fn encoded(row: Row, id: MessageId, kind: OperationKind) -> EncodedOperation {
    let json = format!(r#"{{"type":"sms","id":{id},"phone":{}}}"#, phone(row)).into_bytes();
    EncodedOperation {
        row,
        id,
        phone: Phone::new(phone(row)).unwrap(),
        kind,
        chain: kind.into(),
        digest: id.get().to_le_bytes(),
        json,
        cost: None,
        leave_by: None,
        repeats: false,
    }
}
