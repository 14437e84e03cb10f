//! The reading of answers, judged by a second reader that shares nothing with the first.
//!
//! `reference` is the promise as it is written, over plain JSON values and without regard for speed. Hundreds of named
//! answers, answers cut at every byte, and answers that chance made are read by both.

mod combinations;
mod cuts;
mod noise;
mod reference;

use super::exchange::Exchange;
use super::read::read;
use super::read_tests::{envelope, letters, rules, word};
use crate::domain::{Endpoint, OperationKind};

/// What was sent, and where to.
#[derive(Clone, Copy, Debug)]
struct Sent {
    endpoint: Endpoint,
    kind: OperationKind,
    count: u32,
}

impl Sent {
    /// Messages to the synchronous endpoint.
    fn messages(count: u32) -> Self {
        Self { endpoint: Endpoint::Sync, kind: OperationKind::Sms, count }
    }

    /// A letter per outcome, and the word of the signal, by the reader that the product uses.
    fn read(self, status: u16, body: &[u8]) -> (String, &'static str) {
        let seen = Exchange::Answer { status, retry_after: None, body: body.to_vec() };
        let reply = read(&rules(), self.endpoint, &envelope(self.kind, self.count), &seen);
        (letters(&reply), word(&reply))
    }
}
