//! Inputs and results of sending: conditions, context, events, stops, and the state of a run's rows.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use roaring::RoaringBitmap;
use tokio::sync::watch;

use super::breaker::BreakerLimits;
use super::sending_hours::SendingPasses;
use super::shared_run::SharedPace;
use super::tally::{DeviationCounts, ErrorCounts};
use campaign_core::domain::{Endpoint, IdRange, OperationOutcome, Row};
use campaign_gateway::Gateway;
use campaign_ledger::{
    Allowance, BilledParts, Bounds, EnvelopeReader, ExcludedRows, Lease, Ledger, LedgerError, ReceiptReader,
    RowActivities, RowEvents, RowState, RowStates, Run, StateCounts,
};

pub use campaign_ledger::StopKind;

/// The context of sending: ledger, gateway, observer and interrupts.
#[derive(Clone)]
pub struct SendContext {
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    /// The gateway.
    pub gateway: Arc<dyn Gateway>,
    /// Receives events.
    pub observer: DeliveryObserver,
    /// Receives interrupts.
    pub interrupt: watch::Receiver<Interrupt>,
    /// When rows may leave, and further passes. `None` if they may leave at any time.
    pub passes: Option<Arc<SendingPasses>>,
}

/// The conditions of sending a run.
#[derive(Clone, Debug)]
pub struct SendConditions {
    /// The lease of the run.
    pub lease: Lease,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// Rows whose message was in doubt and is resent, so that it may have been sent before.
    pub repeated: RoaringBitmap,
    /// The campaign's operations per second. `None` means no limit.
    pub rate: Option<f64>,
    /// The account and its rate limit.
    pub account: Allowance,
    /// The bounds that each envelope must keep, if any.
    pub bounds: Option<Arc<Bounds>>,
    /// Whether the run waits at a bound instead of stopping.
    pub waits_at_bounds: bool,
    /// The maximum number of operations in an envelope.
    pub batch: usize,
    /// The maximum number of envelopes in flight.
    pub in_flight: usize,
    /// The timeout of a request.
    pub timeout: Duration,
    /// When to stop.
    pub limits: BreakerLimits,
    /// Whether the gateway has already accepted messages of the run, or these are resends. Then a first rejection says
    /// nothing about the others.
    pub proven: bool,
    /// The time for asking about the first messages of an asynchronous run. Zero in a rehearsal.
    pub first_messages: Duration,
    /// How several workers send the run. `None` if this process sends alone.
    pub sharing: Option<SharedPace>,
    /// Whether a person waits for the end: warnings before it are suppressed, a long silence is announced, and the time
    /// for an unreachable gateway counts from the start.
    pub is_attended: bool,
}

impl SendEnding {
    /// The sum of this ending and the next one.
    #[must_use]
    pub fn merge(self, next: Self) -> Self {
        let mut errors = self.errors;
        errors.merge(next.errors);
        Self {
            sent: self.sent + next.sent,
            opted_out: self.opted_out + next.opted_out,
            parts: self.parts.plus(next.parts),
            errors,
            oddities: self.oddities.merge(next.oddities),
            lag: self.lag.max(next.lag),
            expired: self.expired || next.expired,
            ..next
        }
    }
}

/// How sending ended.
#[derive(Clone, Debug, Default)]
pub struct SendEnding {
    /// Why sending stopped before the last row. `None` if all rows were tried.
    pub stopped: Option<Stop>,
    /// The stored counts by state of the whole run.
    pub counts: StateCounts,
    /// Messages of this start that were or may have been sent.
    pub sent: u64,
    /// Rows of this start whose recipients opted out meanwhile.
    pub opted_out: u64,
    /// The billed parts of this start, as far as reported.
    pub parts: BilledParts,
    /// The errors of this start.
    pub errors: ErrorCounts,
    /// Deviations from the contract in the answers of this start.
    pub oddities: DeviationCounts,
    /// The observed delay until the gateway knew a message.
    pub lag: Option<Duration>,
    /// Whether the remaining rows can no longer leave in time.
    pub expired: bool,
    /// The stored outcome of the last operation. `None` while it is on its way.
    pub outcome: Option<OperationOutcome>,
}

/// An event of sending. Counts are reported only after their commit.
#[derive(Clone, Debug)]
pub enum DeliveryEvent {
    /// An envelope was settled; these are the counts of the whole run.
    Settled {
        /// Counts by state.
        counts: StateCounts,
    },
    /// A warning; the run continues.
    Warning(String),
    /// Sending is paused.
    Waiting {
        /// Why.
        reason: String,
        /// How long.
        time: Duration,
        /// What leaves after the pause.
        next: AfterWait,
    },
    /// An answer is late: the time waited so far, and the maximum.
    Slow {
        /// The time waited so far.
        waited: Duration,
        /// The maximum wait.
        at_most: Duration,
    },
    /// Before sending more, the gateway is asked about the first messages.
    Asking {
        /// How long at most.
        at_most: Duration,
    },
    /// No further envelope begins; those in flight are waited for.
    Stopping {
        /// Why.
        reason: String,
        /// Operations in flight.
        in_flight: usize,
        /// The maximum time.
        at_most: Duration,
    },
}

/// What leaves after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterWait {
    /// Unsent messages are resent.
    Retry,
    /// The next messages leave.
    Next {
        /// The number of messages of the last request in doubt. They are not resent.
        in_doubt: usize,
    },
}

impl AfterWait {
    /// The next messages leave, and none is in doubt.
    pub const NEXT: Self = Self::Next { in_doubt: 0 };
}

/// A receiver of events.
pub type DeliveryObserver = Arc<dyn Fn(DeliveryEvent) + Send + Sync>;

/// A stop with its reason in plain words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Its kind.
    pub kind: StopKind,
    /// The reason.
    pub reason: String,
}

impl Stop {
    /// A stop of that kind.
    pub fn new(kind: StopKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into() }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// An interrupt of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interrupt {
    /// No interrupt.
    #[default]
    None,
    /// The first signal, with its number: begin nothing new, wait for what is in flight.
    Graceful(u8),
    /// The second signal, with its number: exit at once. What is in flight stays in doubt.
    Immediate(u8),
}

/// A snapshot of the rows of a run.
#[derive(Debug)]
pub struct Snapshot {
    /// Counts by state.
    pub counts: StateCounts,
    /// The billed parts, as far as reported.
    pub parts: BilledParts,
    /// Rows that are never sent.
    pub left_out: ExcludedRows,
    /// Rows that need no sending: skipped, or with a final envelope.
    pub settled: RoaringBitmap,
    /// The hashes of rows that are resent as the same message.
    pub digests: HashMap<Row, [u8; 8]>,
    /// Resent rows whose message was in doubt, so that it may have been sent before.
    pub repeated: RoaringBitmap,
    /// Rows that are sent with the identifiers of a retry order, with these.
    pub renumbered: Vec<(RoaringBitmap, IdRange)>,
    /// The state of each row with an envelope, including decisions.
    pub states: RowStates,
}

impl Snapshot {
    /// Reads the state of `run`. `owned` means that a process is sending it.
    ///
    /// # Errors
    /// If the ledger cannot be read, or the run was purged.
    pub async fn load(ledger: &dyn Ledger, run: &Run, owned: bool) -> Result<Self, LedgerError> {
        LedgerError::refuse_purged(run)?;
        let left_out = ledger.load_excluded_rows(run.key).await?;
        let events = RowEvents::from(ledger.load_events(run.key).await?).with_excluded_rows(&left_out);
        let mut states = RowStates::new(RowActivities::load(ledger, run, owned).await?, events);
        let mut settled = left_out.rows();
        let mut digests = HashMap::new();
        let mut envelopes = EnvelopeReader::new(ledger, run.key);
        while let Some(envelope) = envelopes.next_envelope().await? {
            states.add_envelope(&envelope);
            for sent in &envelope.rows {
                if states.recorded_state(sent.row) == Some(RowState::Planned) {
                    settled.remove(sent.row.get());
                    digests.insert(sent.row, sent.digest);
                } else {
                    settled.insert(sent.row.get());
                    digests.remove(&sent.row);
                }
            }
        }
        let mut receipts = ReceiptReader::new(ledger, run.key, run.last_row());
        while let Some(told) = receipts.next_receipts().await? {
            for (row, receipts) in told {
                states.add_receipts(row, &receipts);
                match states.recorded_state(row) {
                    // It failed by its receipt, and a retry was ordered.
                    Some(RowState::Planned) => drop(settled.remove(row.get())),
                    // A message that was sent after all is not resent.
                    Some(_) => {
                        settled.insert(row.get());
                        digests.remove(&row);
                    }
                    None => {}
                }
            }
        }
        let counts = states.count_states(run.recipients, &left_out);
        let renumbered = find_renumbered(run, &states, &mut digests);
        let planned = states.events().rows().filter(|row| states.recorded_state(*row) == Some(RowState::Planned));
        let repeated = planned.filter(|row| states.events().repeats_doubt(*row)).map(Row::get).collect();
        let parts = states.billed_parts();
        Ok(Self { counts, parts, left_out, settled, digests, repeated, renumbered, states })
    }

    /// Whether the gateway has accepted a message of the run.
    #[must_use]
    pub fn has_accepted(&self) -> bool {
        let taken = [RowState::Accepted, RowState::Queued, RowState::Delivered, RowState::Read];
        taken.into_iter().any(|state| self.counts.get(state) > 0)
    }

    /// The state of a row.
    #[must_use]
    pub fn row_state(&self, row: Row) -> RowState {
        self.states.row_state(row, &self.left_out)
    }
}

/// The rows with other identifiers than the run's. New messages have no hash to compare.
fn find_renumbered(
    run: &Run,
    states: &RowStates,
    digests: &mut HashMap<Row, [u8; 8]>,
) -> Vec<(RoaringBitmap, IdRange)> {
    let mut orders: BTreeMap<u32, RoaringBitmap> = BTreeMap::new();
    let events = states.events();
    for row in events.rows().filter(|row| states.recorded_state(*row) == Some(RowState::Planned)) {
        let Some(order) = events.next_order(row) else { continue };
        orders.entry(order).or_default().insert(row.get());
        if states.last_attempt(row).is_none_or(|last| events.find_order(row, last.envelope) != Some(order)) {
            digests.remove(&row);
        }
    }
    let ids = |order: u32| run.orders.get(usize::try_from(order).ok()?.checked_sub(1)?).copied();
    orders.into_iter().filter_map(|(order, rows)| Some((rows, ids(order)?))).collect()
}
