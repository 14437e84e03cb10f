//! Questions about messages by our identifiers (contract 4.3 `status`).

use serde::Deserialize;
use serde_json::value::RawValue;

use super::exchange::Exchange;
use super::loose::{Success, msg_id, text, whole};
use crate::domain::{MessageId, Status};
use crate::gateway::StatusAnswer;

/// The operation that asks about one message.
pub(super) fn question(id: MessageId) -> Vec<u8> {
    format!(r#"{{"type":"status","id":{id}}}"#).into_bytes()
}

#[derive(Deserialize)]
struct Top<'a> {
    #[serde(borrow)]
    success: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    success: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    msg_id: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

/// Reads the answers, one per question.
pub(super) fn answers(ids: &[MessageId], seen: &Exchange) -> Vec<StatusAnswer> {
    let unclear = |why: &str| vec![StatusAnswer::Unclear(why.to_owned()); ids.len()];
    let body = match seen {
        Exchange::Answer { status: 200, body, .. } => body,
        Exchange::Answer { status, .. } | Exchange::TooLong { status } => return unclear(&format!("HTTP {status}")),
        Exchange::NotConnected(why) | Exchange::Handshake(why) | Exchange::Broken(why) => return unclear(why),
        Exchange::TimedOut(_) => return unclear("no answer in time"),
    };
    let Ok(top) = serde_json::from_slice::<Top<'_>>(body) else {
        return unclear("an answer that is not the contract's JSON");
    };
    if Success::of(top.success) != Success::True {
        return unclear(&text(top.error).unwrap_or_else(|| "refused without an error text".to_owned()));
    }
    if top.data.len() != ids.len() {
        return unclear("another number of answers than questions");
    }
    ids.iter().zip(top.data).map(|(&id, item)| answer(id, item)).collect()
}

fn answer(id: MessageId, item: &RawValue) -> StatusAnswer {
    let unclear = || StatusAnswer::Unclear("an answer that names another message, or no status".to_owned());
    let Ok(item) = serde_json::from_str::<Item<'_>>(item.get()) else { return unclear() };
    match Success::of(item.success) {
        Success::False => StatusAnswer::Denied(text(item.error).unwrap_or_default()),
        Success::Unclear => unclear(),
        Success::True => {
            let Some(record) = item.data.and_then(|data| serde_json::from_str::<Record<'_>>(data.get()).ok()) else {
                return unclear();
            };
            match (record.id.and_then(whole), text(record.status)) {
                (Some(named), Some(status)) if named == id.get() => {
                    StatusAnswer::Known { status: Status::from_name(&status), msg_id: msg_id(record.msg_id) }
                }
                _ => unclear(),
            }
        }
    }
}
