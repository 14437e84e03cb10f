//! What is in the air: operations that wait for an envelope, envelopes on their way, and those whose outcome is being
//! recorded.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tracing::Instrument as _;

use super::feed::Feed;
use super::retry::ResendBatch;
use super::stop::{Stop, StopKind};
use super::submission::{SubmissionEnd, Submitter};
use super::watchdog::WatchedEnvelope;
use crate::gateway::{EncodedOperation, Envelope, GatewayReply};
use crate::ledger::LedgerError;

/// An envelope that came back, and what came with it.
pub(super) struct ReturnedEnvelope {
    pub(super) envelope: Envelope,
    pub(super) is_piece: bool,
    pub(super) submission: Result<SubmissionEnd, LedgerError>,
}

/// An envelope and what is recorded of it.
pub(super) struct EnvelopeResult {
    pub(super) number: u32,
    pub(super) envelope: Envelope,
    pub(super) is_piece: bool,
    /// What came back; nothing from the gateway when the envelope was held back.
    pub(super) reply: GatewayReply,
    pub(super) is_held_back: bool,
}

/// Something that was waited for.
pub(super) enum FlightEvent {
    /// An envelope came back.
    Returned(ReturnedEnvelope),
    /// An outcome was recorded, or could not be.
    Recorded(EnvelopeResult, Result<(), LedgerError>),
    /// More operations are there, or it is known that no more come.
    Fed,
    /// A part of the engine cannot go on.
    Failed(Stop),
}

/// What is in the air.
pub(super) struct InFlight {
    route: Arc<Submitter>,
    /// The most operations that are kept ready.
    batch: usize,
    /// Rendered operations in the order of the file; nothing more comes when there is no feed.
    feed: Option<Feed>,
    ready: VecDeque<EncodedOperation>,
    /// How many of those that are ready are of one share, share by share: its last envelope waits for no other's.
    shares: VecDeque<usize>,
    /// Operations that are proven not sent, by the envelopes in which they go out again.
    resends: VecDeque<ResendBatch>,
    flying: JoinSet<ReturnedEnvelope>,
    settling: JoinSet<(EnvelopeResult, Result<(), LedgerError>)>,
    /// Calls back the envelopes that still wait to leave; counts how often.
    recalls: watch::Sender<u64>,
}

impl InFlight {
    pub(super) fn new(route: Arc<Submitter>, batch: usize, feed: Feed) -> Self {
        Self {
            route,
            batch,
            feed: Some(feed),
            ready: VecDeque::new(),
            shares: VecDeque::new(),
            resends: VecDeque::new(),
            flying: JoinSet::new(),
            settling: JoinSet::new(),
            recalls: watch::Sender::new(0),
        }
    }

    /// Takes what is to be sent from another feed; the one before is through.
    pub(super) fn set_feed(&mut self, feed: Feed) {
        self.feed = Some(feed);
    }

    /// Envelopes on their way.
    pub(super) fn count_flying(&self) -> usize {
        self.flying.len()
    }

    /// Envelopes whose outcome is being recorded.
    pub(super) fn count_settling(&self) -> usize {
        self.settling.len()
    }

    /// Whether nothing is on its way or being recorded.
    pub(super) fn is_empty(&self) -> bool {
        self.flying.is_empty() && self.settling.is_empty()
    }

    /// Whether every operation that was to be sent is through.
    pub(super) fn is_through(&self) -> bool {
        self.is_empty() && self.feed.is_none() && self.ready.is_empty() && self.resends.is_empty()
    }

    /// Begins an envelope of at most `size` operations, and tells how many it has; nothing when there are none for it now.
    pub(super) fn begin_envelope(&mut self, size: usize) -> Option<usize> {
        let ResendBatch { operations, is_piece: piece } = self.next_operations(size)?;
        let envelope = Envelope::new(operations)?;
        let count = envelope.operations().len();
        let (route, recalls) = (Arc::clone(&self.route), self.recalls.subscribe());
        let flight = async move {
            let submission = route.send_envelope(&envelope, recalls).await;
            ReturnedEnvelope { envelope, is_piece: piece, submission }
        };
        self.flying.spawn(flight.instrument(tracing::info_span!("envelope", number = tracing::field::Empty)));
        Some(count)
    }

    /// The operations of the next envelope: first what goes out again, then the next rows.
    fn next_operations(&mut self, size: usize) -> Option<ResendBatch> {
        if let Some(parcel) = self.resends.pop_front() {
            return Some(parcel);
        }
        let share = self.shares.front().copied();
        // A short envelope goes out only when nothing more comes.
        if self.ready.is_empty() || (share.is_none() && self.ready.len() < size && self.feed.is_some()) {
            return None;
        }
        let kind = self.ready.front()?.kind;
        let most = share.map_or(size, |share| size.min(share));
        let size = self.ready.iter().take(most).take_while(|operation| operation.kind == kind).count();
        if let Some(share) = share {
            self.shares.pop_front();
            if share > size {
                self.shares.push_front(share - size);
            }
        }
        Some(ResendBatch { operations: self.ready.drain(..size).collect(), is_piece: false })
    }

    /// Keeps operations that were not sent for the next envelopes, in the order of the file.
    pub(super) fn put_back(&mut self, parcel: ResendBatch) {
        let first = |parcel: &ResendBatch| parcel.operations.first().map(|operation| operation.row);
        let place = self.resends.partition_point(|known| first(known) < first(&parcel));
        self.resends.insert(place, parcel);
    }

    /// Calls back what waits to leave.
    pub(super) fn recall_waiting(&self) {
        self.recalls.send_modify(|recalls| *recalls += 1);
    }

    /// Has an outcome recorded.
    pub(super) fn record_result(&mut self, record: EnvelopeResult) {
        self.route.watchdog.remove(WatchedEnvelope::Envelope(record.number));
        let route = Arc::clone(&self.route);
        self.settling.spawn(async move {
            let recorded = route.record_outcome(record.number, &record.reply).await;
            route.watchdog.remove(WatchedEnvelope::Envelope(record.number));
            (record, recorded)
        });
    }

    /// Waits for the next thing, for more operations only if it is hungry; waits for ever where there is nothing.
    pub(super) async fn next_event(&mut self, hungry: bool) -> FlightEvent {
        let hungry = hungry && self.feed.is_some() && self.ready.len() < self.batch;
        tokio::select! {
            biased;
            Some(recorded) = self.settling.join_next() => {
                recorded.map_or_else(task_failure, |(record, recorded)| FlightEvent::Recorded(record, recorded))
            }
            Some(landing) = self.flying.join_next() => landing.map_or_else(task_failure, FlightEvent::Returned),
            more = next_group(&mut self.feed), if hungry => self.take_group(more),
            else => std::future::pending().await,
        }
    }

    fn take_group(&mut self, more: Option<Result<Vec<EncodedOperation>, Stop>>) -> FlightEvent {
        match more {
            Some(Ok(operations)) if operations.is_empty() => {
                let rest = self.ready.len() - self.shares.iter().sum::<usize>();
                self.shares.extend((rest > 0).then_some(rest));
            }
            Some(Ok(operations)) => self.ready.extend(operations),
            Some(Err(stop)) => return FlightEvent::Failed(stop),
            None => self.feed = None,
        }
        FlightEvent::Fed
    }

    /// Waits for nothing any more.
    pub(super) fn abandon(&mut self) {
        self.flying.abort_all();
        self.settling.abort_all();
    }
}

async fn next_group(feed: &mut Option<Feed>) -> Option<Result<Vec<EncodedOperation>, Stop>> {
    feed.as_mut()?.next_group().await
}

fn task_failure(_: JoinError) -> FlightEvent {
    FlightEvent::Failed(Stop::new(StopKind::Internal, "an engine task ended early; this is a bug"))
}
