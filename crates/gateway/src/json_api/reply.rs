//! Interpretation of the gateway's answer to an envelope, as a pure function of the HTTP exchange (contract 2.2, 2.3
//! and 4.3).
//!
//! Only what is proven counts as accepted, rejected or not sent. Everything else is in doubt.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::HttpExchange;
use super::members::{
    AnswerBody, AnswerItem, SuccessFlag, has_key, non_null, read_msg_id, read_object, read_text, read_whole_number,
    truncate_answer,
};
use crate::{ContractDeviation, EncodedOperation, Envelope, GatewayReply, Signal, StopCause};
use campaign_core::domain::{Endpoint, GatewayMessageId, OperationKind, OperationOutcome, format_count};

/// A profile's rules for the meaning of answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerRules {
    /// HTTP statuses that the provider confirmed to mean "not executed".
    pub trust_status: Vec<u16>,
    /// Errors of items after which a run must stop.
    pub fatal_errors: Vec<String>,
}

/// The maximum wait that a gateway can request. A longer one stops the run.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(600);

/// Reads the result of sending `envelope` to `endpoint`.
pub fn read_reply(
    rules: &AnswerRules,
    endpoint: Endpoint,
    envelope: &Envelope,
    exchange: &HttpExchange,
) -> GatewayReply {
    let count = envelope.operations().len();
    match exchange {
        HttpExchange::NotConnected(reason) => all_not_sent(count, reason, Signal::Unreachable(reason.clone())),
        HttpExchange::Handshake(reason) => {
            all_not_sent(count, reason, Signal::Stop(StopCause::Connection, reason.clone()))
        }
        HttpExchange::TimedOut(after) => {
            let reason = format!("no answer within {} s", after.as_secs_f64());
            all_in_doubt(count, &reason, Signal::Broken(reason.clone()))
        }
        HttpExchange::Broken(reason) => all_in_doubt(count, reason, Signal::Broken(reason.clone())),
        HttpExchange::TooLong { status } => {
            let reason = format!("HTTP {status}: the response is too long");
            all_in_doubt(count, &reason, Signal::Strange(reason.clone()))
        }
        HttpExchange::Answer { status: 200, body, .. } => read_answer(rules, endpoint, envelope, body),
        HttpExchange::Answer { status, retry_after, body } => {
            let mut reply = read_status(rules, count, *status, *retry_after);
            reply.evidence = Some(excerpt(body));
            reply
        }
    }
}

/// Reads an answer with an HTTP status other than 200. The contract allows only 200 (contract 4.1 and 7).
fn read_status(rules: &AnswerRules, count: usize, status: u16, retry_after: Option<Duration>) -> GatewayReply {
    let is_trusted = rules.trust_status.contains(&status);
    let reason = format!("HTTP {status}");
    let signal = match status {
        300..=399 => {
            let reason = format!("HTTP {status}: campaign does not follow redirects");
            Signal::Stop(StopCause::Connection, reason)
        }
        429 | 503 if retry_after.is_some_and(|wait| wait > MAX_WAIT) => {
            let wait = retry_after.unwrap_or_default().as_secs();
            let reason =
                format!("HTTP {status}: the gateway asks campaign to wait {wait} s, which is too long for a run");
            Signal::Stop(StopCause::OffContract, reason)
        }
        429 | 503 => Signal::Slow { reason: reason.clone(), retry_after },
        _ if is_trusted => Signal::Unreachable(reason.clone()),
        _ => Signal::Strange(reason.clone()),
    };
    if is_trusted {
        return all_not_sent(count, &reason, signal);
    }
    let asks_to_slow_down = matches!(signal, Signal::Slow { .. });
    let mut reply = all_in_doubt(count, &reason, signal);
    if asks_to_slow_down {
        reply.deviations = vec![ContractDeviation::UntrustedStatus(status); count];
    }
    reply
}

/// Reads an answer with HTTP status 200, if possible by the fast path for plain bodies.
fn read_answer(rules: &AnswerRules, endpoint: Endpoint, envelope: &Envelope, body: &[u8]) -> GatewayReply {
    let can_be_plain = endpoint == Endpoint::Sync && !envelope.kind().is_single();
    let plain = if can_be_plain { read_plain_results(body) } else { None };
    let mut reply = match plain {
        Some(results) => read_results(rules, envelope, &results),
        None => read_general_answer(rules, endpoint, envelope, body),
    };
    if reply.signal != Signal::Go {
        reply.evidence = Some(excerpt(body));
    }
    reply
}

/// Reads an answer with HTTP status 200 and any body.
fn read_general_answer(rules: &AnswerRules, endpoint: Endpoint, envelope: &Envelope, body: &[u8]) -> GatewayReply {
    let count = envelope.operations().len();
    let Some(top) = AnswerBody::read(body) else {
        let problem = if body.is_empty() { "the response is empty" } else { "the response is not the expected JSON" };
        return all_in_doubt(count, problem, Signal::Strange(problem.to_owned()));
    };
    match SuccessFlag::read(top.success) {
        SuccessFlag::False => read_rejection(envelope, &top, body),
        SuccessFlag::Unclear => {
            let reason = "`success` in the response is neither true nor false";
            all_in_doubt(count, reason, Signal::Warn(reason.to_owned()))
        }
        SuccessFlag::True => match endpoint {
            Endpoint::Sync => read_items(rules, envelope, top.data),
            Endpoint::Async => read_queued(count, top.request_id),
        },
    }
}

/// Reads a top-level failure. The failure proves that nothing was sent if the answer contains an error and no `msg_id`
/// anywhere.
fn read_rejection(envelope: &Envelope, top: &AnswerBody<'_>, body: &[u8]) -> GatewayReply {
    let count = envelope.operations().len();
    if has_key(body, "msg_id") {
        let reason = "the response reports a failure but contains a `msg_id`";
        return all_in_doubt(count, reason, Signal::Stop(StopCause::OffContract, reason.to_owned()));
    }
    // Only a string counts: other types are outside the contract and prove nothing.
    let text = top.error.filter(|raw| raw.get().starts_with('"'));
    let Some(error) = read_text(text) else {
        let reason = "the response reports a failure without an error";
        return all_in_doubt(count, reason, Signal::Stop(StopCause::OffContract, reason.to_owned()));
    };
    match error.trim() {
        "Access denied" => {
            let reason = "the gateway refused the API key: `Access denied`".to_owned();
            all_not_sent(count, &error, Signal::Stop(StopCause::KeyRefused, reason))
        }
        "Operator not supported" if envelope.kind() == OperationKind::CallOtp => {
            if count == 1 {
                return GatewayReply::for_all(1, &OperationOutcome::Rejected { error }, Signal::Go);
            }
            all_not_sent(count, &error, Signal::Split(error.clone()))
        }
        _ => {
            let reason = format!("the gateway rejected the whole request: `{error}`");
            all_not_sent(count, &error, Signal::Stop(StopCause::EnvelopeRefused, reason))
        }
    }
}

/// Reads the asynchronous answer (contract 2.3).
fn read_queued(count: usize, request_id: Option<&RawValue>) -> GatewayReply {
    // The contract requires a string. A number also identifies a request; other values do not.
    let valid_id = request_id.filter(|raw| raw.get().starts_with(|first: char| first == '"' || first.is_ascii_digit()));
    match read_text(valid_id) {
        Some(request_id) => {
            let mut reply =
                GatewayReply::for_all(count, &OperationOutcome::Queued { request_id: request_id.into() }, Signal::Go);
            let is_text = valid_id.is_some_and(|raw| raw.get().starts_with('"'));
            reply.deviations.extend((!is_text).then_some(ContractDeviation::NumericRequestId));
            reply
        }
        None => {
            let reason = "the response has no `request_id`";
            all_in_doubt(count, reason, Signal::Warn(reason.to_owned()))
        }
    }
}

pub(super) fn all_not_sent(count: usize, reason: &str, signal: Signal) -> GatewayReply {
    GatewayReply::for_all(count, &OperationOutcome::NotSent { reason: Arc::from(reason) }, signal)
}

pub(super) fn all_in_doubt(count: usize, reason: &str, signal: Signal) -> GatewayReply {
    GatewayReply::for_all(count, &OperationOutcome::InDoubt { reason: Arc::from(reason) }, signal)
}

/// The beginning of a body, as evidence for a manual review.
fn excerpt(body: &[u8]) -> String {
    const LIMIT: usize = 64 * 1024;
    String::from_utf8_lossy(&body[..body.len().min(LIMIT)]).into_owned()
}

/// The relevant members of a payload.
#[derive(Default, Deserialize)]
struct ItemPayload<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    msg_id: Option<&'a RawValue>,
    #[serde(borrow)]
    parts: Option<&'a RawValue>,
    #[serde(borrow)]
    phone: Option<&'a RawValue>,
}

/// The valid members of a result item.
struct ItemResult<'a> {
    success: SuccessFlag,
    error: Option<String>,
    /// The identifier in the payload; `Some(None)` if it is not a whole number.
    id: Option<Option<u64>>,
    msg_id: Option<GatewayMessageId>,
    /// Whether the `msg_id` is a negative number.
    has_negative_msg_id: bool,
    parts: Option<u32>,
    /// The phone number in the payload; `Some(None)` if it is not a whole number.
    phone: Option<Option<u64>>,
    /// The payload, if it is an object.
    object: Option<&'a RawValue>,
}

impl<'a> ItemResult<'a> {
    /// Reads an item. `None` if the item or its payload repeats a member.
    fn read(raw: &'a RawValue) -> Option<Self> {
        let item: AnswerItem<'a> = read_members(Some(raw))?;
        let object = item.data.filter(|data| data.get().starts_with('{'));
        let payload: ItemPayload<'a> = read_members(object)?;
        Some(Self {
            success: SuccessFlag::read(item.success),
            error: read_text(item.error),
            id: non_null(payload.id).map(read_whole_number),
            msg_id: read_msg_id(payload.msg_id),
            has_negative_msg_id: payload.msg_id.is_some_and(|raw| raw.get().starts_with('-')),
            parts: payload.parts.and_then(read_whole_number).and_then(|parts| u32::try_from(parts).ok()),
            phone: non_null(payload.phone).map(read_whole_number),
            object,
        })
    }
}

/// Reads the members of a record. All members are absent if the value is not a record; `None` if a member is repeated.
fn read_members<'a, T: Default + Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    match raw {
        Some(raw) if raw.get().starts_with('{') => serde_json::from_str(raw.get()).ok(),
        _ => Some(T::default()),
    }
}

/// Reads the items of a list. `None` if `data` is not a list, or if an item repeats a member and so could refer to any
/// message.
fn read_listed_items(data: &RawValue) -> Option<Vec<ItemResult<'_>>> {
    let items: Vec<&RawValue> = serde_json::from_str(data.get()).ok()?;
    items.into_iter().map(ItemResult::read).collect()
}

/// Reads the items of a body in which all messages were accepted, in a single pass. `None` for any other body, and for
/// unusual notations.
///
/// This is faster than reading members of any type, with the same result.
fn read_plain_results(body: &[u8]) -> Option<Vec<ItemResult<'static>>> {
    // The library would accept a list as a record, but the contract does not.
    let has_one_list = body.iter().filter(|&&byte| byte == b'[').count() == 1;
    let text = std::str::from_utf8(body).ok().filter(|_| has_one_list)?;
    let body: PlainBody = read_object(text)?;
    Some(body.data.into_iter().map(PlainItem::into_result).collect())
}

/// The most common body: all messages were accepted.
#[derive(Deserialize)]
struct PlainBody {
    #[serde(deserialize_with = "deserialize_true")]
    #[expect(dead_code, reason = "deserializing the field checks that it is true")]
    success: (),
    data: Vec<PlainItem>,
    #[serde(default, deserialize_with = "reject_value")]
    #[expect(dead_code, reason = "a plain body has no error")]
    error: (),
    #[serde(default, deserialize_with = "reject_value")]
    #[expect(dead_code, reason = "a plain body has no request")]
    request_id: (),
}

/// The most common item: an accepted message with whole numbers.
#[derive(Deserialize)]
struct PlainItem {
    #[serde(deserialize_with = "deserialize_true")]
    #[expect(dead_code, reason = "deserializing the field checks that it is true")]
    success: (),
    data: PlainPayload,
    #[serde(default, deserialize_with = "reject_value")]
    #[expect(dead_code, reason = "a plain item has no error")]
    error: (),
}

#[derive(Deserialize)]
struct PlainPayload {
    id: u64,
    msg_id: u64,
    parts: u32,
    #[serde(default, deserialize_with = "reject_value")]
    #[expect(dead_code, reason = "a plain payload has no phone number")]
    phone: (),
}

fn deserialize_true<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<(), D::Error> {
    if bool::deserialize(deserializer)? { Ok(()) } else { Err(serde::de::Error::custom("not true")) }
}

fn reject_value<'de, D: serde::Deserializer<'de>>(_: D) -> std::result::Result<(), D::Error> {
    Err(serde::de::Error::custom("not plain"))
}

impl PlainItem {
    fn into_result<'a>(self) -> ItemResult<'a> {
        let PlainPayload { id, msg_id, parts, .. } = self.data;
        ItemResult {
            success: SuccessFlag::True,
            error: None,
            id: Some(Some(id)),
            msg_id: Some(GatewayMessageId::Number(msg_id)),
            has_negative_msg_id: false,
            parts: Some(parts),
            phone: None,
            object: None,
        }
    }
}

/// The match between items and operations.
enum ItemMatch {
    Positions,
    /// By identifier: for each operation, the item with its identifier.
    Ids(Vec<Option<usize>>),
    /// By identifier, although an identifier was foreign or repeated.
    Foreign(Vec<Option<usize>>),
}

/// Reads the `data` of an answer with top-level success.
fn read_items(rules: &AnswerRules, envelope: &Envelope, data: Option<&RawValue>) -> GatewayReply {
    match data.and_then(read_listed_items) {
        Some(results) => read_results(rules, envelope, &results),
        None => {
            let reason = "the response reports success without a readable list in `data`";
            let signal = Signal::Stop(StopCause::OffContract, reason.to_owned());
            all_in_doubt(envelope.operations().len(), reason, signal)
        }
    }
}

/// Reads the results of an envelope's messages.
fn read_results(rules: &AnswerRules, envelope: &Envelope, results: &[ItemResult<'_>]) -> GatewayReply {
    if results.len() != envelope.operations().len() {
        return read_miscounted_items(envelope, results);
    }
    let mut reply = match match_items(envelope, results) {
        ItemMatch::Positions => {
            let outcomes = results.iter().map(|result| read_outcome(envelope, result)).collect();
            build_reply(rules, outcomes)
        }
        ItemMatch::Ids(items) => {
            let mut reply = build_reply(rules, outcomes_by_id(envelope, results, &items));
            if reply.signal == Signal::Go {
                reply.signal = Signal::Warn("the items in the response are in a different order".to_owned());
            }
            reply
        }
        ItemMatch::Foreign(items) => {
            let reason = "the response contains an `id` that was not sent, or the same `id` twice";
            let outcomes = outcomes_by_id(envelope, results, &items);
            GatewayReply::new(outcomes, Signal::Stop(StopCause::OffContract, reason.to_owned()))
        }
    };
    reply.deviations =
        results.iter().filter(|result| result.has_negative_msg_id).map(|_| ContractDeviation::NegativeMsgId).collect();
    reply
}

/// Matches items to operations. There must be as many items as operations.
fn match_items(envelope: &Envelope, results: &[ItemResult<'_>]) -> ItemMatch {
    let operations = envelope.operations();
    let agrees = |(operation, result): (&EncodedOperation, &ItemResult<'_>)| {
        result.id.is_none_or(|id| id == Some(operation.id.get())) && phone_agrees(envelope, operation, result)
    };
    if operations.iter().zip(results).all(agrees) {
        return ItemMatch::Positions;
    }
    let (items, has_foreign_id) = index_items(envelope, results);
    if has_foreign_id { ItemMatch::Foreign(items) } else { ItemMatch::Ids(items) }
}

/// Finds the item of each operation by identifier. Also returns whether any identifier is foreign or repeated.
///
/// An operation whose identifier is repeated gets no item.
fn index_items(envelope: &Envelope, results: &[ItemResult<'_>]) -> (Vec<Option<usize>>, bool) {
    let operations = envelope.operations();
    let positions: HashMap<u64, usize> =
        operations.iter().enumerate().map(|(position, operation)| (operation.id.get(), position)).collect();
    let mut candidates: Vec<Vec<usize>> = vec![Vec::new(); operations.len()];
    let mut has_foreign_id = false;
    for (item, result) in results.iter().enumerate() {
        match result.id {
            None => has_foreign_id |= result.phone.is_some() && envelope.kind().is_single(),
            Some(id) => match id.and_then(|id| positions.get(&id)) {
                Some(&position) => candidates[position].push(item),
                None => has_foreign_id = true,
            },
        }
    }
    let items: Vec<Option<usize>> = operations
        .iter()
        .zip(&candidates)
        .map(|(operation, candidates)| match candidates[..] {
            [item] if phone_agrees(envelope, operation, &results[item]) => Some(item),
            _ => None,
        })
        .collect();
    // An identifier also counts as foreign if it is repeated or has the phone number of another operation.
    has_foreign_id |= items.iter().zip(&candidates).any(|(item, candidates)| item.is_none() && !candidates.is_empty());
    (items, has_foreign_id)
}

/// Whether the item has the phone number of its operation, or none. Only lookups and verification calls are compared,
/// because contract 4.3 shows no `id` for them.
fn phone_agrees(envelope: &Envelope, operation: &EncodedOperation, result: &ItemResult<'_>) -> bool {
    !envelope.kind().is_single() || result.phone.is_none_or(|phone| phone == Some(operation.phone.to_u64()))
}

/// The outcomes of the operations in order. `items` contains the index of each operation's item, if there is one.
fn outcomes_by_id(envelope: &Envelope, results: &[ItemResult<'_>], items: &[Option<usize>]) -> Vec<OperationOutcome> {
    let unmatched =
        || OperationOutcome::InDoubt { reason: Arc::from("no item in the response refers to this message") };
    items.iter().map(|item| item.map_or_else(unmatched, |item| read_outcome(envelope, &results[item]))).collect()
}

/// Reads an answer with too few or too many items. Such an answer only proves that identified items with a `msg_id`
/// were accepted.
fn read_miscounted_items(envelope: &Envelope, results: &[ItemResult<'_>]) -> GatewayReply {
    let (items, _) = index_items(envelope, results);
    let outcomes = outcomes_by_id(envelope, results, &items)
        .into_iter()
        .map(|outcome| match outcome {
            OperationOutcome::Accepted { msg_id: Some(_), .. } | OperationOutcome::InDoubt { .. } => outcome,
            _ => OperationOutcome::InDoubt {
                reason: Arc::from("the response has a different number of items than the request"),
            },
        })
        .collect();
    let items = format_count(results.len() as u64, "item");
    let reason =
        format!("the response has {items} for {}", format_count(envelope.operations().len() as u64, "operation"));
    GatewayReply::new(outcomes, Signal::Stop(StopCause::OffContract, reason))
}

/// The outcome that an item proves for its operation.
fn read_outcome(envelope: &Envelope, result: &ItemResult<'_>) -> OperationOutcome {
    let doubt = |reason: &str| OperationOutcome::InDoubt { reason: Arc::from(reason) };
    match result.success {
        SuccessFlag::True if envelope.kind().is_single() => match result.object {
            Some(object) => OperationOutcome::Accepted {
                msg_id: result.msg_id.clone(),
                parts: result.parts,
                answer: Some(truncate_answer(object)),
            },
            None => doubt("an item reports success but contains no result"),
        },
        SuccessFlag::True => match &result.msg_id {
            Some(msg_id) => {
                OperationOutcome::Accepted { msg_id: Some(msg_id.clone()), parts: result.parts, answer: None }
            }
            None => doubt("an item reports success without a `msg_id`"),
        },
        SuccessFlag::False if result.msg_id.is_some() => doubt("an item reports a failure but contains a `msg_id`"),
        SuccessFlag::False => OperationOutcome::Rejected {
            error: result.error.clone().unwrap_or_else(|| "rejected without an error message".to_owned()),
        },
        SuccessFlag::Unclear => doubt("an item in the response has a `success` value that is neither true nor false"),
    }
}

/// Builds the reply for matched outcomes. The signal is to continue, unless an error is fatal or an outcome is in
/// doubt.
fn build_reply(rules: &AnswerRules, outcomes: Vec<OperationOutcome>) -> GatewayReply {
    let fatal = outcomes.iter().find_map(|outcome| match outcome {
        OperationOutcome::Rejected { error } if rules.fatal_errors.iter().any(|fatal| fatal == error.trim()) => {
            Some(error)
        }
        _ => None,
    });
    let unclear = outcomes.iter().find_map(|outcome| match outcome {
        OperationOutcome::InDoubt { reason } => Some(reason),
        _ => None,
    });
    let signal = match (fatal, unclear) {
        (Some(error), _) => {
            Signal::Stop(StopCause::FatalError, format!("the gateway rejected a message with `{error}`"))
        }
        (None, Some(reason)) => Signal::Warn(reason.to_string()),
        (None, None) => Signal::Go,
    };
    GatewayReply::new(outcomes, signal)
}
