//! What goes wrong in a scenario, and when.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::domain::Endpoint;
use crate::manifest::Share;

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// When.
    pub when: When,
    /// What.
    pub effect: Effect,
}

/// Which messages or envelopes something applies to: all that every given condition holds for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct When {
    /// Numbers that end in these digits; an envelope, if one of its numbers does.
    pub suffix: Option<String>,
    /// A part of all, drawn by number for messages and by envelope for envelopes.
    pub share: Option<Share>,
    /// Envelopes that hold at least one send, counted from 1 over both endpoints.
    pub envelope: Option<RangeInclusive<u64>>,
    /// The endpoint that they came to.
    pub endpoint: Option<Endpoint>,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A send is refused with this error; the rest of its envelope is executed.
    ItemError(String),
    /// The whole envelope is refused with this error; nothing of it is executed.
    TopError(String),
    /// The envelope is executed at once, and the answer comes so much later.
    Delay(Duration),
    /// For so long before the envelope nobody listens: connections are refused.
    Refused(Duration),
    /// The connection that brings the envelope is closed before anything of it is read.
    Closed,
    /// The envelope is executed and the connection closed without an answer.
    Dropped,
    /// The envelope is executed and the connection closed in the middle of the answer.
    Truncated,
    /// An answer with this HTTP status and an HTML page.
    Http {
        /// The HTTP status.
        status: u16,
        /// The header `Retry-After`, in whole seconds.
        retry_after: Option<Duration>,
        /// Whether the envelope is executed nevertheless.
        executed: bool,
    },
    /// The items of the answer come in another order (the last first).
    Reordered,
    /// The last item of the answer is missing.
    Missing,
    /// The answer's first item is about a message that nobody sent.
    Foreign,
    /// A webhook of the message goes wrong.
    Webhook(WebhookFault),
}

/// What goes wrong with a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookFault {
    /// It is sent twice.
    Twice,
    /// It is sent so much later.
    Late(Duration),
    /// It is never sent.
    Lost,
}

/// What a `status` that cannot see answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blindness {
    /// That there is no such message, whatever is asked.
    Denies,
    /// That it is queued, whatever is asked.
    Affirms,
}
