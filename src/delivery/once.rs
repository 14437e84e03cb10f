//! Sending one operation that a person waits for: intent, slot, request, settlement.
//!
//! It makes the same promise as the engine: an intent is on the disk before the first byte, an
//! outcome after the answer, and doubt is never sent again. It has no list, no ramp and no breaker.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::backoff;
use super::engine::changed;
use super::event::{Event, Observer};
use super::gate::Gate;
use super::stop::{Interrupt, Stop, StopKind};
use super::submission::{Route, Sent};
use super::watchdog::Watchdog;
use crate::domain::{OperationKind, Outcome};
use crate::gateway::{Encoded, Envelope, Gateway, Reply, Signal, StopCause};
use crate::ledger::{Allowance, Begun, Ledger, LedgerError, Owner, RunId};

/// How long nothing is said of an operation that waits.
const SILENCE: Duration = Duration::from_secs(3);

/// The conditions of a single operation.
#[derive(Clone, Debug)]
pub struct Once {
    /// The run and who sends it.
    pub run: RunId,
    /// The owner token that was claimed.
    pub owner: Owner,
    /// The kind of the operation.
    pub kind: OperationKind,
    /// The account whose pace it takes from.
    pub account: Allowance,
    /// The longest time of one request.
    pub timeout: Duration,
    /// How long a gateway that cannot be reached is tried.
    pub patience: Duration,
}

/// What became of a single operation.
#[derive(Clone, Debug)]
pub struct Single {
    /// What the gateway said, or did not; it is on the disk. Nothing when a second signal left the intent as it is.
    pub outcome: Option<Outcome>,
    /// Why it was not sent, or was left.
    pub stopped: Option<Stop>,
}

/// Sends one operation, and tries again only while it is proven that no connection was made.
///
/// # Errors
/// When the ledger cannot be written. An intent that it holds then is doubt.
pub async fn send_once(
    once: Once,
    (ledger, gateway): (Arc<dyn Ledger>, Arc<dyn Gateway>),
    operation: Encoded,
    (observer, interrupt): (Observer, watch::Receiver<Interrupt>),
) -> Result<Single, LedgerError> {
    let (recall, recalls) = watch::channel(0);
    let route = Route {
        recalls,
        ledger,
        gateway,
        run: once.run,
        owner: once.owner,
        account: once.account,
        gate: Gate::new(None),
        last_envelope: AtomicU32::new(0),
        timeout: once.timeout,
        watchdog: Watchdog::new(once.timeout),
        observer: Arc::clone(&observer),
    };
    let envelope = Envelope::single(once.kind, operation);
    let attempts = Attempts { route, envelope, observer, recall, interrupt, stop: None };
    attempts.run(Instant::now() + once.patience).await
}

struct Attempts {
    route: Route,
    envelope: Envelope,
    observer: Observer,
    /// Calls the envelope back while it waits for the account's turn.
    recall: watch::Sender<u64>,
    interrupt: watch::Receiver<Interrupt>,
    stop: Option<Stop>,
}

/// How one attempt ended.
enum Attempt {
    Ended(Sent),
    /// A second signal of this number came before the answer.
    Left(u8),
}

impl Attempts {
    async fn run(mut self, deadline: Instant) -> Result<Single, LedgerError> {
        loop {
            let (number, reply) = match self.attempt().await? {
                Attempt::Ended(Sent::Replied(number, reply) | Sent::HeldBack(number, reply)) => (number, reply),
                Attempt::Ended(Sent::Recalled) => return Ok(unsent(self.stop.unwrap_or_else(asked_to_stop))),
                Attempt::Ended(Sent::Refused(Begun::NotOwner)) => {
                    return Ok(unsent(Stop::new(StopKind::NotOwner, "another process took the run")));
                }
                Attempt::Ended(Sent::Refused(Begun::StopRequested | Begun::After(_))) => {
                    return Ok(unsent(asked_to_stop()));
                }
                Attempt::Left(signal) => {
                    let stop = Stop::new(StopKind::Interrupted(signal), "interrupted twice");
                    return Ok(Single { outcome: None, stopped: Some(stop) });
                }
            };
            self.route.settle(number, &reply).await?;
            if let Signal::Slow { retry_after, .. } = &reply.signal {
                self.route.ledger.slow_down(&self.route.account.name, *retry_after).await?;
            }
            if !self.tries_again(&reply, number, deadline).await {
                return Ok(self.ended(reply));
            }
        }
    }

    /// Sends once. A first signal holds it back while it waits for its turn, and else waits for the answer.
    async fn attempt(&mut self) -> Result<Attempt, LedgerError> {
        let sending = self.route.send(&self.envelope, self.route.recalls.clone());
        tokio::pin!(sending);
        let silence = sleep(SILENCE);
        tokio::pin!(silence);
        let mut told = false;
        loop {
            tokio::select! {
                biased;
                interrupt = changed(&mut self.interrupt) => match interrupt {
                    Interrupt::None => {}
                    Interrupt::Gently(signal) => {
                        let stop = Stop::new(StopKind::Interrupted(signal), "interrupted");
                        let (reason, at_most) = (stop.reason.clone(), self.route.timeout);
                        (self.observer)(Event::Stopping { reason, in_flight: 1, at_most });
                        self.stop = Some(stop);
                        self.recall.send_modify(|recalls| *recalls += 1);
                    }
                    Interrupt::AtOnce(signal) => return Ok(Attempt::Left(signal)),
                },
                sent = &mut sending => return sent.map(Attempt::Ended),
                () = &mut silence, if !told => {
                    told = true;
                    let what = "still waiting for the account's turn or for the gateway's answer";
                    (self.observer)(Event::Warning(what.to_owned()));
                }
            }
        }
    }

    /// Waits before another attempt, if nothing was sent for want of a connection and there is time for one.
    async fn tries_again(&mut self, reply: &Reply, attempts: u32, deadline: Instant) -> bool {
        let Signal::Unreachable(reason) = &reply.signal else { return false };
        let left = deadline.saturating_duration_since(Instant::now());
        if self.stop.is_some() || left.is_zero() || !reply.is_unsent() {
            return false;
        }
        let time = backoff::wait(attempts, backoff::share(self.route.owner, attempts)).min(left);
        (self.observer)(Event::Waiting { reason: reason.clone(), time });
        tokio::select! {
            biased;
            interrupt = self.interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => match interrupt.map(|told| *told) {
                Ok(Interrupt::Gently(signal) | Interrupt::AtOnce(signal)) => {
                    self.stop = Some(Stop::new(StopKind::Interrupted(signal), "interrupted"));
                    false
                }
                Ok(Interrupt::None) | Err(_) => true,
            },
            () = sleep(time) => true,
        }
    }

    /// The end after a reply that was recorded; only what was not sent has a reason besides a signal.
    fn ended(self, reply: Reply) -> Single {
        let outcome = reply.outcomes.into_iter().next();
        let unsent = match (&outcome, reply.signal) {
            (Some(Outcome::NotSent { .. }), Signal::Stop(StopCause::KeyRefused, reason)) => {
                Some(Stop::new(StopKind::KeyRefused, reason))
            }
            (Some(Outcome::NotSent { .. }), Signal::Stop(_, reason)) => Some(Stop::new(StopKind::Halted, reason)),
            (Some(Outcome::NotSent { reason }), _) => Some(Stop::new(StopKind::Halted, reason.to_string())),
            _ => None,
        };
        Single { outcome, stopped: self.stop.or(unsent) }
    }
}

fn asked_to_stop() -> Stop {
    Stop::new(StopKind::Halted, "asked to stop")
}

/// No intent was recorded, so nothing was sent.
fn unsent(stop: Stop) -> Single {
    Single { outcome: Some(Outcome::NotSent { reason: stop.reason.as_str().into() }), stopped: Some(stop) }
}
