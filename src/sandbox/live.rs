//! The platform in time: with its clock and its journal under one lock.
//!
//! Everything that happens to the platform happens here: requests, what is due by itself, and what
//! became of webhooks. The lock is held for a slice of work at a time, so that a million things
//! that are due at once keep nobody waiting for long.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Notify;

use super::clock::Clock;
use super::counts::Counts;
use super::envelope::{self, Request};
use super::faults;
use super::journal::{FaultLine, Line, Sink};
use super::moment::Moment;
use super::platform::{Arrival, Platform};
use super::reaction::{Door, Post, Posted, Reaction};
use super::scenario::Scenario;
use crate::domain::Endpoint;

/// How many things that are due happen before the lock is let go.
const SLICE: usize = 2_000;

/// The platform, which all connections share.
pub(super) struct Live {
    keys: Vec<SecretString>,
    core: Mutex<Core>,
    /// Something happened: something may be due earlier than it was.
    stirred: Notify,
    /// What was due happened, and webhooks that could leave have left.
    kept_up: Notify,
}

/// Together, so that the journal's order is the order of execution.
struct Core {
    platform: Platform,
    sink: Sink,
    clock: Clock,
    /// Webhooks that left and of which nothing was heard yet.
    under_way: usize,
}

/// What is to be done after a look at the clock.
pub(super) struct Due {
    /// Webhooks that leave now.
    pub posts: Vec<Post>,
    /// How long until the next thing is due: no time at all if there is more than fitted into a slice.
    pub next: Option<Duration>,
}

/// How far everything has run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunOut {
    /// There is more.
    Going,
    /// There are only webhooks whose receivers have not answered yet.
    Waiting,
    /// Nothing is left.
    Done,
}
