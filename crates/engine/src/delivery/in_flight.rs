//! Operations in flight: waiting for an envelope, on their way, or being recorded.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tracing::Instrument as _;

use super::feed::Feed;
use super::retry_policy::ResendBatch;
use super::submission::{SubmissionEnd, Submitter, WatchedEnvelope};
use super::tally::{Stop, StopKind};
use campaign_gateway::{EncodedOperation, Envelope, GatewayReply};
use campaign_ledger::LedgerError;

/// A returned envelope, with its result.
pub(super) struct ReturnedEnvelope {
    pub(super) envelope: Envelope,
    /// Whether the envelope is part of an envelope that was split.
    pub(super) is_piece: bool,
    pub(super) submission: Result<SubmissionEnd, LedgerError>,
}

/// An envelope with the result to record.
pub(super) struct EnvelopeResult {
    pub(super) number: u32,
    pub(super) envelope: Envelope,
    pub(super) is_piece: bool,
    /// The reply. If the envelope was withdrawn, it does not come from the gateway.
    pub(super) reply: GatewayReply,
    pub(super) is_withdrawn: bool,
}

/// An event for the engine.
pub(super) enum FlightEvent {
    /// An envelope returned.
    Returned(ReturnedEnvelope),
    /// An outcome was recorded, or could not be.
    Recorded(EnvelopeResult, Result<(), LedgerError>),
    /// More operations arrived, or the feed ended.
    Fed,
    /// A part of the engine failed.
    Failed(Stop),
}

/// The operations in flight.
pub(super) struct InFlight {
    submitter: Arc<Submitter>,
    /// Rendered operations in the order of the list. `None` after the last operation.
    feed: Option<Feed>,
    ready: VecDeque<EncodedOperation>,
    /// The number of ready operations of each complete shard. The last envelope of such a shard does not wait for rows
    /// of the next shard.
    shard_sizes: VecDeque<usize>,
    /// Operations that are proven unsent, in the envelopes that resend them.
    resends: VecDeque<ResendBatch>,
    submissions: JoinSet<ReturnedEnvelope>,
    settling: JoinSet<(EnvelopeResult, Result<(), LedgerError>)>,
    /// Recalls waiting envelopes. Counts the recalls.
    recalls: watch::Sender<u64>,
}

impl InFlight {
    pub(super) fn new(submitter: Arc<Submitter>, feed: Feed) -> Self {
        Self {
            submitter,
            feed: Some(feed),
            ready: VecDeque::new(),
            shard_sizes: VecDeque::new(),
            resends: VecDeque::new(),
            submissions: JoinSet::new(),
            settling: JoinSet::new(),
            recalls: watch::Sender::new(0),
        }
    }

    /// Continues with another feed after the previous one ended.
    pub(super) fn set_feed(&mut self, feed: Feed) {
        self.feed = Some(feed);
    }

    /// The number of envelopes in flight.
    pub(super) fn count_in_flight(&self) -> usize {
        self.submissions.len()
    }

    /// The number of envelopes whose outcome is being recorded.
    pub(super) fn count_settling(&self) -> usize {
        self.settling.len()
    }

    /// Whether nothing is in flight or being recorded.
    pub(super) fn is_empty(&self) -> bool {
        self.submissions.is_empty() && self.settling.is_empty()
    }

    /// Whether all operations are done.
    pub(super) fn is_finished(&self) -> bool {
        self.is_empty() && self.feed.is_none() && self.ready.is_empty() && self.resends.is_empty()
    }

    /// Begins an envelope: a batch to resend, or at most `size` further operations. Returns the number of operations in
    /// the envelope, or `None` if no operations are ready.
    pub(super) fn begin_envelope(&mut self, size: usize) -> Option<usize> {
        let ResendBatch { operations, is_piece } = self.take_next_operations(size)?;
        let envelope = Envelope::new(operations)?;
        let count = envelope.operations().len();
        let (submitter, recalls) = (Arc::clone(&self.submitter), self.recalls.subscribe());
        let flight = async move {
            let submission = submitter.send_envelope(&envelope, recalls).await;
            ReturnedEnvelope { envelope, is_piece, submission }
        };
        self.submissions.spawn(flight.instrument(tracing::info_span!("envelope", number = tracing::field::Empty)));
        Some(count)
    }

    /// Takes the operations of the next envelope: resends first, then the next rows.
    fn take_next_operations(&mut self, size: usize) -> Option<ResendBatch> {
        if let Some(resend) = self.resends.pop_front() {
            return Some(resend);
        }
        let shard_size = self.shard_sizes.front().copied();
        // Fewer than `size` operations wait for more, unless their shard or the list has ended.
        if self.ready.is_empty() || (shard_size.is_none() && self.ready.len() < size && self.feed.is_some()) {
            return None;
        }
        let kind = self.ready.front()?.kind;
        let limit = shard_size.map_or(size, |shard_size| size.min(shard_size));
        let size = self.ready.iter().take(limit).take_while(|operation| operation.kind == kind).count();
        if let Some(shard_size) = shard_size {
            self.shard_sizes.pop_front();
            if shard_size > size {
                self.shard_sizes.push_front(shard_size - size);
            }
        }
        Some(ResendBatch { operations: self.ready.drain(..size).collect(), is_piece: false })
    }

    /// Keeps unsent operations for the next envelopes, in the order of the list.
    pub(super) fn put_back(&mut self, resend: ResendBatch) {
        let first_row = |batch: &ResendBatch| batch.operations.first().map(|operation| operation.row);
        let index = self.resends.partition_point(|waiting| first_row(waiting) < first_row(&resend));
        self.resends.insert(index, resend);
    }

    /// Recalls waiting envelopes.
    pub(super) fn recall_waiting(&self) {
        self.recalls.send_modify(|recalls| *recalls += 1);
    }

    /// Records an outcome in the background.
    pub(super) fn record_result(&mut self, record: EnvelopeResult) {
        self.submitter.watchdog.remove(WatchedEnvelope::Envelope(record.number));
        let submitter = Arc::clone(&self.submitter);
        self.settling.spawn(async move {
            let recorded = submitter.record_outcome(record.number, &record.envelope, &record.reply).await;
            submitter.watchdog.remove(WatchedEnvelope::Envelope(record.number));
            (record, recorded)
        });
    }

    /// Waits for the next event. Reads more operations only if `wants_more` is true. If nothing is pending, waits
    /// forever.
    pub(super) async fn next_event(&mut self, wants_more: bool) -> FlightEvent {
        let wants_more = wants_more && self.feed.is_some() && self.ready.len() < self.submitter.options.batch;
        tokio::select! {
            biased;
            Some(recorded) = self.settling.join_next() => {
                recorded.map_or_else(task_failure, |(record, recorded)| FlightEvent::Recorded(record, recorded))
            }
            Some(returned) = self.submissions.join_next() => returned.map_or_else(task_failure, FlightEvent::Returned),
            group = next_group(&mut self.feed), if wants_more => self.add_group(group),
            else => std::future::pending().await,
        }
    }

    /// Adds a group from the feed to the ready operations. An empty group ends a shard, and `None` ends the feed.
    fn add_group(&mut self, group: Option<Result<Vec<EncodedOperation>, Stop>>) -> FlightEvent {
        match group {
            Some(Ok(operations)) if operations.is_empty() => {
                let shard_size = self.ready.len() - self.shard_sizes.iter().sum::<usize>();
                self.shard_sizes.extend((shard_size > 0).then_some(shard_size));
            }
            Some(Ok(operations)) => self.ready.extend(operations),
            Some(Err(stop)) => return FlightEvent::Failed(stop),
            None => self.feed = None,
        }
        FlightEvent::Fed
    }

    /// Aborts all envelopes that are in flight or being recorded.
    pub(super) fn abandon(&mut self) {
        self.submissions.abort_all();
        self.settling.abort_all();
    }
}

async fn next_group(feed: &mut Option<Feed>) -> Option<Result<Vec<EncodedOperation>, Stop>> {
    feed.as_mut()?.next_group().await
}

fn task_failure(_: JoinError) -> FlightEvent {
    FlightEvent::Failed(Stop::new(StopKind::Internal, "an engine task ended early; this is a bug"))
}
