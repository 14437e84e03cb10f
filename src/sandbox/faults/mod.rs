//! What goes wrong, as a scenario says it.
//!
//! - `decision`: which faults apply to an envelope, to a message, to a webhook;
//! - `spoil`: they are done to operations and to the items of an answer;
//! - `wire`: they are done to the answer as a whole (a page with a 429, a delay, a cut) and at the door, by `doors`.

pub(crate) mod decision;
pub(crate) mod spoil;
pub(crate) mod wire;

pub(crate) use decision::EnvelopeFaults;
pub(crate) use wire::{ErrorPage, PortBehaviour, ResponseLoss, ResponsePlan, WireFaults};
