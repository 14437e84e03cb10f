//! Delivery-status webhooks (contract 2.4 and 6): which are due, what they say, and when they are tried again.
//!
//! Nothing here sends; `doors/posting.rs` does.

pub(crate) mod outbox;

pub(crate) use outbox::{Outbox, WebhookOutcome, WebhookPost};
