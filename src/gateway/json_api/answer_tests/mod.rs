//! The reading of answers, judged by a second reader that shares nothing with the first.
//!
//! `reference` is the promise as it is written, over plain JSON values and without regard for speed. Hundreds of named
//! answers, answers cut at every byte, and answers that chance made are read by both.

mod combinations;
mod cuts;
mod noise;
mod reference;

use super::exchange::HttpExchange;
use super::read::read_reply;
use super::read_tests::{envelope, outcome_letters, rules, signal_word};
use crate::domain::{Endpoint, OperationKind};

/// What was sent, and where to.
#[derive(Clone, Copy, Debug)]
struct SentRequest {
    endpoint: Endpoint,
    kind: OperationKind,
    count: u32,
}

impl SentRequest {
    /// Messages to the synchronous endpoint.
    fn messages(count: u32) -> Self {
        Self { endpoint: Endpoint::Sync, kind: OperationKind::Sms, count }
    }

    /// A letter per outcome, and the word of the signal, by the reader that the product uses.
    fn read_answer(self, status: u16, body: &[u8]) -> (String, &'static str) {
        let seen = HttpExchange::Answer { status, retry_after: None, body: body.to_vec() };
        let reply = read_reply(&rules(), self.endpoint, &envelope(self.kind, self.count), &seen);
        (outcome_letters(&reply), signal_word(&reply))
    }
}
