//! The shapes of the gateway's answers (contract 2.2, 2.3 and 4.3).

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::{OperationError, WireTime};
use crate::domain::Amount;
use crate::sandbox::request::ClientId;

/// The answer to a whole request, of either endpoint.
#[derive(Serialize)]
pub(crate) struct ApiResponse {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Vec<ResultItem>>,
}

impl ApiResponse {
    /// Nothing of the request was executed.
    pub(crate) fn rejected(error: impl Into<Cow<'static, str>>) -> Self {
        Self { success: false, error: Some(error.into()), request_id: None, data: None }
    }

    /// The operations were executed; each answers for itself.
    pub(crate) fn from_results(data: Vec<ResultItem>) -> Self {
        Self { success: true, error: None, request_id: None, data: Some(data) }
    }

    /// The operations were taken into the queue.
    pub(crate) fn queued(request_id: String) -> Self {
        Self { success: true, error: None, request_id: Some(request_id), data: None }
    }

    /// The answer as JSON.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        // It consists of strings, numbers and arrays; none of them can fail to be written.
        serde_json::to_vec(self).expect("an answer without maps is always JSON")
    }
}

/// The result of one operation.
#[derive(Serialize)]
pub(crate) struct ResultItem {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<ResultData>,
}

impl ResultItem {
    /// The result of the operation with that identifier; a refusal repeats it (contract 7).
    pub(crate) fn new(id: Option<ClientId>, result: Result<ResultData, OperationError>) -> Self {
        match result {
            Ok(payload) => Self { success: true, error: None, data: Some(payload) },
            Err(refusal) => {
                let data = id.map(|id| ResultData::Refused { id });
                Self { success: false, error: Some(refusal.into_message()), data }
            }
        }
    }
}

/// What a result tells; its form follows from the operation, so on the wire it carries no tag.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum ResultData {
    Sent(SendResult),
    Refused {
        id: ClientId,
    },
    Status(StatusRecord),
    Balance(BalanceRecord),
    CodeCall(CodeCall),
    /// Whatever holds no amount and is not asked for a million times.
    Record(Value),
}

/// A message was taken.
#[derive(Serialize)]
pub(crate) struct SendResult {
    pub id: ClientId,
    pub msg_id: u64,
    /// Always 1, the platform's code for "received".
    pub data: u8,
    pub parts: u64,
}

/// What became of a message (contract 2.5); its identifiers are strings.
#[derive(Serialize)]
pub(crate) struct StatusRecord {
    pub id: String,
    pub msg_id: String,
    #[serde(rename = "type")]
    pub channel: &'static str,
    pub status: String,
    pub updated: WireTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replies: Option<[ReplyRecord; 1]>,
}

/// A reply to a message (contract 2.4); nobody replies with media here.
#[derive(Serialize)]
pub(crate) struct ReplyRecord {
    pub datetime: WireTime,
    pub message: String,
}

/// The account's balance (contract 2.5).
#[derive(Serialize)]
pub(crate) struct BalanceRecord {
    pub amount: Amount,
    pub currency: String,
}

/// A code call was made (contract 4.3 `call/otp`).
#[derive(Serialize)]
pub(crate) struct CodeCall {
    /// Four digits.
    pub code: String,
    /// The fee in the account's currency.
    pub price: Amount,
}
