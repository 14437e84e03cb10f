//! What was seen on the wire, before anybody reads a meaning into it.

use std::time::Duration;

/// The end of one HTTP exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HttpExchange {
    /// No connection was made: refused, name not found, or the connect time-out. No byte was sent.
    NotConnected(String),
    /// The TLS handshake failed. No byte of the request was sent.
    Handshake(String),
    /// The whole exchange took too long; how far it came is unknown.
    TimedOut(Duration),
    /// The connection broke after it was made, before the whole answer was read.
    Broken(String),
    /// An answer whose body went over the limit.
    TooLong {
        /// The HTTP status.
        status: u16,
    },
    /// A whole answer.
    Answer {
        /// The HTTP status.
        status: u16,
        /// The header `Retry-After`, when it is a number of seconds.
        retry_after: Option<Duration>,
        /// The body.
        body: Vec<u8>,
    },
}
