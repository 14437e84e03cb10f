//! What the engine does about rows that may not leave yet: it goes through the list again when they may.

use jiff::Timestamp;

use super::{Engine, LOOK, changed};
use crate::delivery::event::{AfterWait, DeliveryEvent};
use crate::delivery::hours::{Look, Passes};
use crate::delivery::retry::Parcel;
use crate::delivery::stop::{Interrupt, Stop, StopKind};
use crate::gateway::Envelope;
use crate::ledger::State;

impl Engine {
    /// Puts back what of an envelope may still leave at a moment; the rest stays planned, and comes again.
    pub(super) fn too_late(&mut self, envelope: Envelope, piece: bool, at: Timestamp) {
        let mut operations = envelope.into_operations();
        self.tally.shift(State::Sending, State::Planned, operations.len());
        let ends = operations.iter().filter_map(|operation| operation.leave_by).filter(|by| *by <= at).min();
        operations.retain(|operation| operation.leave_by.is_none_or(|by| by > at));
        if let Some((passes, ends)) = self.passes.as_ref().zip(ends) {
            passes.hours.closes(ends);
        }
        if !operations.is_empty() {
            self.flight.put_back(Parcel { operations, piece });
        }
    }

    /// Waits until rows may leave that could not, and has them come again; tells whether any do, or whether it stops.
    pub(super) async fn another_pass(&mut self) -> bool {
        let Some(passes) = self.passes.clone() else { return false };
        let left = self.tally.counts().get(State::Planned);
        let begun = self.planned.saturating_sub(left);
        if left == 0 || passes.limit.is_some_and(|limit| begun >= limit) {
            return false;
        }
        match passes.hours.next_look() {
            Look::Opens(at) if at > passes.hours.now() => {
                let until = passes.hours.words(at);
                let reason =
                    format!("the sending window is closed for all remaining recipients; sending continues {until}");
                if !passes.waits {
                    self.halt(Stop::new(StopKind::Window, reason));
                    return true;
                }
                let time = passes.hours.time_until(at);
                (self.route.observer)(DeliveryEvent::Waiting { reason, time, next: AfterWait::NEXT });
                self.wait_until(&passes, at).await;
            }
            // A person waits for the end of this start.
            Look::Closes(_) if self.attended => {
                self.halt(Stop::new(StopKind::Window, "the sending window closes before the message can be sent"));
                return true;
            }
            // What its turn would have let leave too late is waited for as for a turn.
            Look::Closes(at) => self.wait_until(&passes, at).await,
            Look::Opens(_) => {}
            Look::Over => {
                self.expired = true;
                return false;
            }
            Look::NeverOpens => {
                self.halt(Stop::new(StopKind::Window, "the sending window does not open within a year"));
                return true;
            }
            Look::Nothing => return false,
        }
        if self.course.stopped().is_none() {
            match (passes.anew)(begun).await {
                Ok(feed) => self.flight.feed_from(feed),
                Err(stop) => self.halt(stop),
            }
        }
        true
    }

    /// Waits until a moment of the wall clock, or until something stops the start.
    async fn wait_until(&mut self, passes: &Passes, at: Timestamp) {
        while self.course.stopped().is_none() && passes.hours.now() < at {
            tokio::select! {
                biased;
                interrupt = changed(&mut self.interrupt) => match interrupt {
                    Interrupt::AtOnce(signal) | Interrupt::Gently(signal) => {
                        self.halt(Stop::new(StopKind::Interrupted(signal), "interrupted"));
                    }
                    Interrupt::None => {}
                },
                () = tokio::time::sleep(passes.hours.time_until(at).min(LOOK)) => self.look().await,
            }
        }
    }
}
