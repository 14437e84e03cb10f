//! The reading of an answer: one pure function from what was seen to what it proves.
//!
//! Only what is proven is called accepted, rejected or not sent. Everything else is doubt.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::exchange::HttpExchange;
use super::loose::{SuccessFlag, read_text};
use super::members::AnswerBody;
use super::read_items::read_items;
use super::search::has_key;
use crate::domain::{Endpoint, OperationKind, OperationOutcome};
use crate::gateway::{ContractDeviation, Envelope, GatewayReply, Signal, StopCause};

/// What a profile says about the meaning of answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerRules {
    /// HTTP statuses that the provider confirmed to mean "not executed".
    pub trust_status: Vec<u16>,
    /// Item errors after which a run must stop.
    pub fatal_errors: Vec<String>,
}

/// The longest wait that a gateway can ask for; more than that stops the run.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(600);

/// Reads the end of an exchange in which `envelope` was sent to `endpoint`.
pub(crate) fn read_reply(
    rules: &AnswerRules,
    endpoint: Endpoint,
    envelope: &Envelope,
    seen: &HttpExchange,
) -> GatewayReply {
    let count = envelope.operations().len();
    match seen {
        HttpExchange::NotConnected(why) => all_not_sent(count, why, Signal::Unreachable(why.clone())),
        HttpExchange::Handshake(why) => all_not_sent(count, why, Signal::Stop(StopCause::Connection, why.clone())),
        HttpExchange::TimedOut(after) => {
            let why = format!("no answer within {} s", after.as_secs_f64());
            all_in_doubt(count, &why, Signal::Broken(why.clone()))
        }
        HttpExchange::Broken(why) => all_in_doubt(count, why, Signal::Broken(why.clone())),
        HttpExchange::TooLong { status } => {
            let why = format!("HTTP {status}: the response is too long");
            all_in_doubt(count, &why, Signal::Strange(why.clone()))
        }
        HttpExchange::Answer { status: 200, body, .. } => read_answer(rules, endpoint, envelope, body),
        HttpExchange::Answer { status, retry_after, body } => {
            let mut reply = read_status(rules, count, *status, *retry_after);
            reply.evidence = Some(excerpt(body));
            reply
        }
    }
}

/// Every HTTP status but 200, which is the only one that the contract knows (contract 4.1 and 7).
fn read_status(rules: &AnswerRules, count: usize, status: u16, retry_after: Option<Duration>) -> GatewayReply {
    let trusted = rules.trust_status.contains(&status);
    let why = format!("HTTP {status}");
    let signal = match status {
        300..=399 => {
            let why = format!("HTTP {status}: campaign does not follow redirects");
            Signal::Stop(StopCause::Connection, why)
        }
        429 | 503 if retry_after.is_some_and(|wait| wait > MAX_WAIT) => {
            let wait = retry_after.unwrap_or_default().as_secs();
            let why = format!("HTTP {status}: the gateway asks campaign to wait {wait} s, which is too long for a run");
            Signal::Stop(StopCause::OffContract, why)
        }
        429 | 503 => Signal::Slow { reason: why.clone(), retry_after },
        _ if trusted => Signal::Unreachable(why.clone()),
        _ => Signal::Strange(why.clone()),
    };
    if trusted {
        return all_not_sent(count, &why, signal);
    }
    let slows = matches!(signal, Signal::Slow { .. });
    let mut reply = all_in_doubt(count, &why, signal);
    if slows {
        reply.deviations = vec![ContractDeviation::UntrustedStatus(status); count];
    }
    reply
}

fn read_answer(rules: &AnswerRules, endpoint: Endpoint, envelope: &Envelope, body: &[u8]) -> GatewayReply {
    let count = envelope.operations().len();
    let Some(top) = AnswerBody::read(body) else {
        let what = if body.is_empty() { "the response is empty" } else { "the response is not the expected JSON" };
        let mut reply = all_in_doubt(count, what, Signal::Strange(what.to_owned()));
        reply.evidence = Some(excerpt(body));
        return reply;
    };
    let mut reply = match SuccessFlag::read(top.success) {
        SuccessFlag::False => read_rejection(envelope, &top, body),
        SuccessFlag::Unclear => {
            let why = "`success` in the response is neither true nor false";
            all_in_doubt(count, why, Signal::Warn(why.to_owned()))
        }
        SuccessFlag::True => match endpoint {
            Endpoint::Sync => read_items(rules, envelope, top.data),
            Endpoint::Async => read_queued(count, top.request_id),
        },
    };
    if reply.signal != Signal::Go {
        reply.evidence = Some(excerpt(body));
    }
    reply
}

/// A top-level failure: proof that nothing was sent, if it tells an error and no `msg_id` anywhere.
fn read_rejection(envelope: &Envelope, top: &AnswerBody<'_>, body: &[u8]) -> GatewayReply {
    let count = envelope.operations().len();
    if has_key(body, "msg_id") {
        let why = "the response reports a failure but contains a `msg_id`";
        return all_in_doubt(count, why, Signal::Stop(StopCause::OffContract, why.to_owned()));
    }
    // Words, not a number or a list: what is no text by the contract proves nothing.
    let words = top.error.filter(|raw| raw.get().starts_with('"'));
    let Some(error) = read_text(words) else {
        let why = "the response reports a failure without an error";
        return all_in_doubt(count, why, Signal::Stop(StopCause::OffContract, why.to_owned()));
    };
    match error.trim() {
        "Access denied" => {
            let why = "the gateway refused the API key: `Access denied`".to_owned();
            all_not_sent(count, &error, Signal::Stop(StopCause::KeyRefused, why))
        }
        "Operator not supported" if envelope.kind() == OperationKind::CallOtp => {
            if count == 1 {
                return GatewayReply::for_all(1, &OperationOutcome::Rejected { error }, Signal::Go);
            }
            all_not_sent(count, &error, Signal::Split(error.clone()))
        }
        _ => {
            let why = format!("the gateway rejected the whole request: `{error}`");
            all_not_sent(count, &error, Signal::Stop(StopCause::EnvelopeRefused, why))
        }
    }
}

/// The asynchronous answer (contract 2.3).
fn read_queued(count: usize, request_id: Option<&RawValue>) -> GatewayReply {
    // A string by the contract; a number names a request as well, anything else names nothing.
    let named = request_id.filter(|raw| raw.get().starts_with(|first: char| first == '"' || first.is_ascii_digit()));
    match read_text(named) {
        Some(request_id) => {
            let mut reply =
                GatewayReply::for_all(count, &OperationOutcome::Queued { request_id: request_id.into() }, Signal::Go);
            let is_text = named.is_some_and(|raw| raw.get().starts_with('"'));
            reply.deviations.extend((!is_text).then_some(ContractDeviation::NumericRequestId));
            reply
        }
        None => {
            let why = "the response has no `request_id`";
            all_in_doubt(count, why, Signal::Warn(why.to_owned()))
        }
    }
}

pub(super) fn all_not_sent(count: usize, why: &str, signal: Signal) -> GatewayReply {
    GatewayReply::for_all(count, &OperationOutcome::NotSent { reason: Arc::from(why) }, signal)
}

pub(super) fn all_in_doubt(count: usize, why: &str, signal: Signal) -> GatewayReply {
    GatewayReply::for_all(count, &OperationOutcome::InDoubt { reason: Arc::from(why) }, signal)
}

/// The beginning of a body, for a person to look at.
fn excerpt(body: &[u8]) -> String {
    const LIMIT: usize = 64 * 1024;
    String::from_utf8_lossy(&body[..body.len().min(LIMIT)]).into_owned()
}
