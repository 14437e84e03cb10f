//! What the engine does about rows that may not leave yet: it goes through the list again when they may.

use jiff::Timestamp;

use super::{CHECK_INTERVAL, Engine, next_interrupt};
use crate::delivery::event::{AfterWait, DeliveryEvent};
use crate::delivery::hours::{NextCheck, SendingPasses};
use crate::delivery::retry::ResendBatch;
use crate::delivery::stop::{Interrupt, Stop, StopKind};
use crate::gateway::Envelope;
use crate::ledger::RowState;

impl Engine {
    /// Puts back what of an envelope may still leave at a moment; the rest stays planned, and comes again.
    pub(super) fn put_back_late(&mut self, envelope: Envelope, piece: bool, at: Timestamp) {
        let mut operations = envelope.into_operations();
        self.tally.shift_state(RowState::Sending, RowState::Planned, operations.len());
        let ends = operations.iter().filter_map(|operation| operation.leave_before).filter(|by| *by <= at).min();
        operations.retain(|operation| operation.leave_before.is_none_or(|by| by > at));
        if let Some((passes, ends)) = self.passes.as_ref().zip(ends) {
            passes.hours.note_closing(ends);
        }
        if !operations.is_empty() {
            self.flight.put_back(ResendBatch { operations, is_piece: piece });
        }
    }

    /// Waits until rows may leave that could not, and has them come again; tells whether any do, or whether it stops.
    pub(super) async fn begin_next_pass(&mut self) -> bool {
        let Some(passes) = self.passes.clone() else { return false };
        let left = self.tally.counts().get(RowState::Planned);
        let begun = self.planned.saturating_sub(left);
        if left == 0 || passes.limit.is_some_and(|limit| begun >= limit) {
            return false;
        }
        match passes.hours.take_next_check() {
            NextCheck::AtOpening(at) if at > passes.hours.now() => {
                let until = passes.hours.format_time(at);
                let reason =
                    format!("the sending window is closed for all remaining recipients; sending continues {until}");
                if !passes.waits {
                    self.stop_sending(Stop::new(StopKind::Window, reason));
                    return true;
                }
                let time = passes.hours.time_until(at);
                (self.route.observer)(DeliveryEvent::Waiting { reason, time, next: AfterWait::NEXT });
                self.wait_until(&passes, at).await;
            }
            // A person waits for the end of this start.
            NextCheck::AtClosing(_) if self.attended => {
                self.stop_sending(Stop::new(
                    StopKind::Window,
                    "the sending window closes before the message can be sent",
                ));
                return true;
            }
            // What its turn would have let leave too late is waited for as for a turn.
            NextCheck::AtClosing(at) => self.wait_until(&passes, at).await,
            NextCheck::AtOpening(_) => {}
            NextCheck::Ended => {
                self.is_expired = true;
                return false;
            }
            NextCheck::NeverOpens => {
                self.stop_sending(Stop::new(StopKind::Window, "the sending window does not open within a year"));
                return true;
            }
            NextCheck::Nothing => return false,
        }
        if self.course.stop_reason().is_none() {
            match (passes.restart_feed)(begun).await {
                Ok(feed) => self.flight.set_feed(feed),
                Err(stop) => self.stop_sending(stop),
            }
        }
        true
    }

    /// Waits until a moment of the wall clock, or until something stops the start.
    async fn wait_until(&mut self, passes: &SendingPasses, at: Timestamp) {
        while self.course.stop_reason().is_none() && passes.hours.now() < at {
            tokio::select! {
                biased;
                interrupt = next_interrupt(&mut self.interrupt) => match interrupt {
                    Interrupt::Immediate(signal) | Interrupt::Graceful(signal) => {
                        self.stop_sending(Stop::new(StopKind::Interrupted(signal), "interrupted"));
                    }
                    Interrupt::None => {}
                },
                () = tokio::time::sleep(passes.hours.time_until(at).min(CHECK_INTERVAL)) => self.check_stop_request().await,
            }
        }
    }
}
