//! Tests of reading answers against a second reader that shares no code with the first.
//!
//! `reference` implements the promise literally over plain JSON values, without regard for speed. Both read hundreds of
//! constructed answers, answers cut at every byte, and random answers.

mod combinations;
mod noise;
mod reference;

use super::http::HttpExchange;
use super::read_tests::{envelope, outcome_letters, rules, signal_word};
use super::reply::read_reply;
use campaign_core::domain::{Endpoint, OperationKind};

/// A request: what was sent, and to which endpoint.
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

    /// A letter per outcome, and the name of the signal, by the real reader.
    fn read_answer(self, status: u16, body: &[u8]) -> (String, &'static str) {
        let seen = HttpExchange::Answer { status, retry_after: None, body: body.to_vec() };
        let reply = read_reply(&rules(), self.endpoint, &envelope(self.kind, self.count), &seen);
        (outcome_letters(&reply), signal_word(&reply))
    }
}
