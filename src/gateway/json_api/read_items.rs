//! The reading of the items of a synchronous answer (contract 2.2 and 4.3).

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::cut::answer;
use super::loose::{Success, msg_id, present, text, whole};
use super::members::Item;
use super::read::{Rules, doubt};
use crate::domain::{MsgId, Outcome, plural};
use crate::gateway::{EncodedOperation, Envelope, Oddity, Reply, Signal, StopCause};

/// The members of a payload that are looked at.
#[derive(Default, Deserialize)]
struct Payload<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    msg_id: Option<&'a RawValue>,
    #[serde(borrow)]
    parts: Option<&'a RawValue>,
    #[serde(borrow)]
    phone: Option<&'a RawValue>,
}

/// One result item as far as it can be understood.
struct Result<'a> {
    success: Success,
    error: Option<String>,
    /// The identifier in the payload; `Some(None)` for one that is no whole number.
    id: Option<Option<u64>>,
    msg_id: Option<MsgId>,
    /// Whether the `msg_id` is a negative number.
    negative: bool,
    parts: Option<u32>,
    phone: Option<Option<u64>>,
    /// The payload, when it is an object.
    object: Option<&'a RawValue>,
}

impl<'a> Result<'a> {
    /// Reads an item; nothing when it, or its payload, names a member twice.
    fn of(raw: &'a RawValue) -> Option<Self> {
        let item: Item<'a> = record(Some(raw))?;
        let object = item.data.filter(|data| data.get().starts_with('{'));
        let payload: Payload<'a> = record(object)?;
        Some(Self {
            success: Success::of(item.success),
            error: text(item.error),
            id: present(payload.id).map(whole),
            msg_id: msg_id(payload.msg_id),
            negative: payload.msg_id.is_some_and(|raw| raw.get().starts_with('-')),
            parts: payload.parts.and_then(whole).and_then(|parts| u32::try_from(parts).ok()),
            phone: present(payload.phone).map(whole),
            object,
        })
    }
}

/// The members of a record, which are all absent from what is no record; nothing when one is named twice.
fn record<'a, T: Default + Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    match raw {
        Some(raw) if raw.get().starts_with('{') => serde_json::from_str(raw.get()).ok(),
        _ => Some(T::default()),
    }
}

/// The items of a list; nothing when it is none, or when one of them contradicts itself: it may be about anybody.
fn results(data: &RawValue, inquiry: bool) -> Option<Vec<Result<'_>>> {
    // A list within the list may be a record to the library, though never to the contract.
    let flat = !data.get().get(1..)?.contains('[');
    if flat
        && !inquiry
        && let Ok(plain) = serde_json::from_str::<Vec<PlainItem>>(data.get())
    {
        return Some(plain.into_iter().map(PlainItem::into_result).collect());
    }
    let items: Vec<&RawValue> = serde_json::from_str(data.get()).ok()?;
    items.into_iter().map(Result::of).collect()
}

/// An item as nearly all are: a message that was taken, with whole numbers and nothing unusual.
///
/// It is read four times faster than by [`Result::of`], and to the same result.
#[derive(Deserialize)]
struct PlainItem {
    #[serde(deserialize_with = "only_true")]
    #[expect(dead_code, reason = "reading it is what makes sure that it is true")]
    success: (),
    data: PlainPayload,
}

#[derive(Deserialize)]
struct PlainPayload {
    id: u64,
    msg_id: u64,
    parts: u32,
    #[serde(default, deserialize_with = "never")]
    #[expect(dead_code, reason = "a payload with a phone is not plain")]
    phone: (),
}

fn only_true<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<(), D::Error> {
    if bool::deserialize(deserializer)? { Ok(()) } else { Err(serde::de::Error::custom("not true")) }
}

fn never<'de, D: serde::Deserializer<'de>>(_: D) -> std::result::Result<(), D::Error> {
    Err(serde::de::Error::custom("not plain"))
}

impl PlainItem {
    fn into_result<'a>(self) -> Result<'a> {
        let PlainPayload { id, msg_id, parts, .. } = self.data;
        Result {
            success: Success::True,
            error: None,
            id: Some(Some(id)),
            msg_id: Some(MsgId::Number(msg_id)),
            negative: false,
            parts: Some(parts),
            phone: None,
            object: None,
        }
    }
}

/// How the items belong to the operations.
enum Match {
    /// Each by its position.
    Positions,
    /// Each by its identifier: for each operation the item that names it.
    Ids(Vec<Option<usize>>),
    /// An identifier that was not sent, or one that came twice: the same, and something is wrong.
    Foreign(Vec<Option<usize>>),
}

/// Reads the `data` of an answer whose top level says true.
pub(super) fn read_items(rules: &Rules, envelope: &Envelope, data: Option<&RawValue>) -> Reply {
    let count = envelope.operations().len();
    let Some(results) = data.and_then(|data| results(data, envelope.kind().is_single())) else {
        let why = "the response reports success without a readable list in `data`";
        return doubt(count, why, Signal::Stop(StopCause::OffContract, why.to_owned()));
    };
    if results.len() != count {
        return miscounted(envelope, &results);
    }
    let mut reply = match belonging(envelope, &results) {
        Match::Positions => {
            let outcomes = results.iter().map(|result| outcome(envelope, result)).collect();
            judged(rules, outcomes)
        }
        Match::Ids(items) => {
            let mut reply = judged(rules, by_id(envelope, &results, &items));
            if reply.signal == Signal::Go {
                reply.signal = Signal::Warn("the items in the response are in a different order".to_owned());
            }
            reply
        }
        Match::Foreign(items) => {
            let why = "the response contains an `id` that was not sent, or the same `id` twice";
            let outcomes = by_id(envelope, &results, &items);
            Reply::new(outcomes, Signal::Stop(StopCause::OffContract, why.to_owned()))
        }
    };
    reply.oddities = results.iter().filter(|result| result.negative).map(|_| Oddity::NegativeMsgId).collect();
    reply
}

/// Finds out how the items, as many as the operations, belong to them.
fn belonging(envelope: &Envelope, results: &[Result<'_>]) -> Match {
    let operations = envelope.operations();
    let agrees = |(operation, result): (&EncodedOperation, &Result<'_>)| {
        result.id.is_none_or(|id| id == Some(operation.id.get())) && phone_agrees(envelope, operation, result)
    };
    if operations.iter().zip(results).all(agrees) {
        return Match::Positions;
    }
    let (items, foreign) = index(envelope, results);
    if foreign { Match::Foreign(items) } else { Match::Ids(items) }
}

/// For each operation the item with its identifier, and whether any identifier was foreign or repeated.
///
/// An identifier that came twice names neither item.
fn index(envelope: &Envelope, results: &[Result<'_>]) -> (Vec<Option<usize>>, bool) {
    let operations = envelope.operations();
    let positions: HashMap<u64, usize> =
        operations.iter().enumerate().map(|(position, operation)| (operation.id.get(), position)).collect();
    let mut found: Vec<Vec<usize>> = vec![Vec::new(); operations.len()];
    let mut foreign = false;
    for (item, result) in results.iter().enumerate() {
        match result.id {
            None => foreign |= result.phone.is_some() && envelope.kind().is_single(),
            Some(id) => match id.and_then(|id| positions.get(&id)) {
                Some(&position) => found[position].push(item),
                None => foreign = true,
            },
        }
    }
    let items: Vec<Option<usize>> = operations
        .iter()
        .zip(&found)
        .map(|(operation, items)| match items[..] {
            [item] if phone_agrees(envelope, operation, &results[item]) => Some(item),
            _ => None,
        })
        .collect();
    // Whoever was named, and yet is not known.
    foreign |= items.iter().zip(&found).any(|(item, named)| item.is_none() && !named.is_empty());
    (items, foreign)
}

/// Whether a lookup or a code call is about this number, as far as the item tells (contract 4.3 names no `id` in it).
fn phone_agrees(envelope: &Envelope, operation: &EncodedOperation, result: &Result<'_>) -> bool {
    !envelope.kind().is_single() || result.phone.is_none_or(|phone| phone == Some(operation.phone.get()))
}

fn by_id(envelope: &Envelope, results: &[Result<'_>], items: &[Option<usize>]) -> Vec<Outcome> {
    let unmatched = || Outcome::InDoubt { reason: Arc::from("no item in the response refers to this message") };
    items.iter().map(|item| item.map_or_else(unmatched, |item| outcome(envelope, &results[item]))).collect()
}

/// Too few or too many items: only what names itself and has a `msg_id` is proven.
fn miscounted(envelope: &Envelope, results: &[Result<'_>]) -> Reply {
    let (items, _) = index(envelope, results);
    let outcomes = by_id(envelope, results, &items)
        .into_iter()
        .map(|outcome| match outcome {
            Outcome::Accepted { msg_id: Some(_), .. } | Outcome::InDoubt { .. } => outcome,
            _ => {
                Outcome::InDoubt { reason: Arc::from("the response has a different number of items than the request") }
            }
        })
        .collect();
    let items = plural(results.len() as u64, "item");
    let why = format!("the response has {items} for {}", plural(envelope.operations().len() as u64, "operation"));
    Reply::new(outcomes, Signal::Stop(StopCause::OffContract, why))
}

/// What one item proves of the operation that it belongs to.
fn outcome(envelope: &Envelope, result: &Result<'_>) -> Outcome {
    let doubt = |reason: &str| Outcome::InDoubt { reason: Arc::from(reason) };
    match result.success {
        Success::True if envelope.kind().is_single() => match result.object {
            Some(object) => {
                Outcome::Accepted { msg_id: result.msg_id.clone(), parts: result.parts, answer: Some(answer(object)) }
            }
            None => doubt("an item reports success but contains no result"),
        },
        Success::True => match &result.msg_id {
            Some(msg_id) => Outcome::Accepted { msg_id: Some(msg_id.clone()), parts: result.parts, answer: None },
            None => doubt("an item reports success without a `msg_id`"),
        },
        Success::False if result.msg_id.is_some() => doubt("an item reports a failure but contains a `msg_id`"),
        Success::False => Outcome::Rejected {
            error: result.error.clone().unwrap_or_else(|| "rejected without an error message".to_owned()),
        },
        Success::Unclear => doubt("an item in the response has a `success` that is neither true nor false"),
    }
}

/// The reply of outcomes that belong to their operations: go on, unless an error is fatal or something is unclear.
fn judged(rules: &Rules, outcomes: Vec<Outcome>) -> Reply {
    let fatal = outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Rejected { error } if rules.fatal_errors.iter().any(|fatal| fatal == error.trim()) => Some(error),
        _ => None,
    });
    let unclear = outcomes.iter().find_map(|outcome| match outcome {
        Outcome::InDoubt { reason } => Some(reason),
        _ => None,
    });
    let signal = match (fatal, unclear) {
        (Some(error), _) => {
            Signal::Stop(StopCause::FatalError, format!("the gateway rejected a message with `{error}`"))
        }
        (None, Some(reason)) => Signal::Warn(reason.to_string()),
        (None, None) => Signal::Go,
    };
    Reply::new(outcomes, signal)
}
