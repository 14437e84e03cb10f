//! What was seen in a world, and what came of it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::judge::Breaches;
use super::plan::{StatusOracle, WorldFault};

/// What was seen in a world, to know that a test saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sighting {
    Fault(WorldFault),
    Oracle(StatusOracle),
    Killed,
    Suspended,
    TakenOver,
    Found,
    ResentByRule,
    SentAgain,
    CountedAsSent,
    CountedAsNotSent,
    Retried,
    Unresolved,
    BegunAnew,
    OptedOut,
    LeftOut,
    /// A webhook came before the answer to its envelope.
    ToldEarly,
    ToldAgain,
    DoubtProven,
    SharedOut,
    /// Somebody went on with a share whose process was gone.
    ShareTakenOver,
    WorkerKilled,
    /// A process that was at a place lost it while it slept.
    SuspendedPastItsLease,
    /// Who stopped a run did so while others had shares of it.
    HaltedForAll,
    /// The wall clock was set, forward or back.
    ClockSet,
    /// A message was delivered, or is to be, although a channel of it failed.
    FellBack,
    /// No channel of a message delivered it.
    FailedOnEveryChannel,
    /// A message that seemed to have failed was not sent again, by the platform's own word.
    RetryLeftOut,
}

/// What came of a world.
#[derive(Debug, Default)]
pub(super) struct WorldReport {
    pub(super) broken: Breaches,
    pub(super) seen: BTreeMap<Sighting, u64>,
    /// When its last process ended, by its own clock.
    pub(super) ended: Duration,
}
