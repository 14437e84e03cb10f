//! The reading of an answer: one pure function from what was seen to what it proves.
//!
//! Only what is proven is called accepted, rejected or not sent. Everything else is doubt.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::exchange::Exchange;
use super::loose::{Success, text};
use super::members::Top;
use super::read_items::read_items;
use super::search::has_key;
use crate::domain::{Endpoint, OperationKind, Outcome};
use crate::gateway::{Envelope, Oddity, Reply, Signal, StopCause};

/// What a profile says about the meaning of answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// HTTP statuses that the provider confirmed to mean "not executed".
    pub trust_status: Vec<u16>,
    /// Item errors after which a run must stop.
    pub fatal_errors: Vec<String>,
}

/// The longest wait that a gateway can ask for; more than that stops the run.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Reads the end of an exchange in which `envelope` was sent to `endpoint`.
pub(crate) fn read(rules: &Rules, endpoint: Endpoint, envelope: &Envelope, seen: &Exchange) -> Reply {
    let count = envelope.operations().len();
    match seen {
        Exchange::NotConnected(why) => not_sent(count, why, Signal::Unreachable(why.clone())),
        Exchange::Handshake(why) => not_sent(count, why, Signal::Stop(StopCause::Connection, why.clone())),
        Exchange::TimedOut(after) => {
            let why = format!("no answer within {} s", after.as_secs_f64());
            doubt(count, &why, Signal::Broken(why.clone()))
        }
        Exchange::Broken(why) => doubt(count, why, Signal::Broken(why.clone())),
        Exchange::TooLong { status } => {
            let why = format!("HTTP {status}: the response is too long");
            doubt(count, &why, Signal::Strange(why.clone()))
        }
        Exchange::Answer { status: 200, body, .. } => read_body(rules, endpoint, envelope, body),
        Exchange::Answer { status, retry_after, body } => {
            let mut reply = read_status(rules, count, *status, *retry_after);
            reply.evidence = Some(excerpt(body));
            reply
        }
    }
}

/// Every HTTP status but 200, which is the only one that the contract knows (contract 4.1 and 7).
fn read_status(rules: &Rules, count: usize, status: u16, retry_after: Option<Duration>) -> Reply {
    let trusted = rules.trust_status.contains(&status);
    let why = format!("HTTP {status}");
    let signal = match status {
        300..=399 => {
            let why = format!("HTTP {status}: campaign does not follow redirects");
            Signal::Stop(StopCause::Connection, why)
        }
        429 | 503 if retry_after.is_some_and(|wait| wait > LONGEST_WAIT) => {
            let wait = retry_after.unwrap_or_default().as_secs();
            let why = format!("HTTP {status}: the gateway asks campaign to wait {wait} s, which is too long for a run");
            Signal::Stop(StopCause::OffContract, why)
        }
        429 | 503 => Signal::Slow { reason: why.clone(), retry_after },
        _ if trusted => Signal::Unreachable(why.clone()),
        _ => Signal::Strange(why.clone()),
    };
    if trusted {
        return not_sent(count, &why, signal);
    }
    let slows = matches!(signal, Signal::Slow { .. });
    let mut reply = doubt(count, &why, signal);
    if slows {
        reply.oddities = vec![Oddity::UntrustedStatus(status); count];
    }
    reply
}

fn read_body(rules: &Rules, endpoint: Endpoint, envelope: &Envelope, body: &[u8]) -> Reply {
    let count = envelope.operations().len();
    let Some(top) = Top::read(body) else {
        let what = if body.is_empty() { "the response is empty" } else { "the response is not the expected JSON" };
        let mut reply = doubt(count, what, Signal::Strange(what.to_owned()));
        reply.evidence = Some(excerpt(body));
        return reply;
    };
    let mut reply = match Success::of(top.success) {
        Success::False => read_refusal(envelope, &top, body),
        Success::Unclear => {
            let why = "`success` in the response is neither true nor false";
            doubt(count, why, Signal::Warn(why.to_owned()))
        }
        Success::True => match endpoint {
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
fn read_refusal(envelope: &Envelope, top: &Top<'_>, body: &[u8]) -> Reply {
    let count = envelope.operations().len();
    if has_key(body, "msg_id") {
        let why = "the response reports a failure but contains a `msg_id`";
        return doubt(count, why, Signal::Stop(StopCause::OffContract, why.to_owned()));
    }
    // Words, not a number or a list: what is no text by the contract proves nothing.
    let words = top.error.filter(|raw| raw.get().starts_with('"'));
    let Some(error) = text(words) else {
        let why = "the response reports a failure without an error";
        return doubt(count, why, Signal::Stop(StopCause::OffContract, why.to_owned()));
    };
    match error.trim() {
        "Access denied" => {
            let why = "the gateway refused the API key: `Access denied`".to_owned();
            not_sent(count, &error, Signal::Stop(StopCause::KeyRefused, why))
        }
        "Operator not supported" if envelope.kind() == OperationKind::CallOtp => {
            if count == 1 {
                return Reply::all(1, &Outcome::Rejected { error }, Signal::Go);
            }
            not_sent(count, &error, Signal::Split(error.clone()))
        }
        _ => {
            let why = format!("the gateway rejected the whole request: `{error}`");
            not_sent(count, &error, Signal::Stop(StopCause::EnvelopeRefused, why))
        }
    }
}

/// The asynchronous answer (contract 2.3).
fn read_queued(count: usize, request_id: Option<&RawValue>) -> Reply {
    // A string by the contract; a number names a request as well, anything else names nothing.
    let named = request_id.filter(|raw| raw.get().starts_with(|first: char| first == '"' || first.is_ascii_digit()));
    match text(named) {
        Some(request_id) => {
            let mut reply = Reply::all(count, &Outcome::Queued { request_id: request_id.into() }, Signal::Go);
            let is_text = named.is_some_and(|raw| raw.get().starts_with('"'));
            reply.oddities.extend((!is_text).then_some(Oddity::NumericRequestId));
            reply
        }
        None => {
            let why = "the response has no `request_id`";
            doubt(count, why, Signal::Warn(why.to_owned()))
        }
    }
}

pub(super) fn not_sent(count: usize, why: &str, signal: Signal) -> Reply {
    Reply::all(count, &Outcome::NotSent { reason: Arc::from(why) }, signal)
}

pub(super) fn doubt(count: usize, why: &str, signal: Signal) -> Reply {
    Reply::all(count, &Outcome::InDoubt { reason: Arc::from(why) }, signal)
}

/// The beginning of a body, for a person to look at.
fn excerpt(body: &[u8]) -> String {
    const LIMIT: usize = 64 * 1024;
    String::from_utf8_lossy(&body[..body.len().min(LIMIT)]).into_owned()
}
