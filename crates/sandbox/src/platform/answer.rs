//! The shapes of the gateway's answers (contract 2.2, 2.3 and 4.3).

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::WireTime;
use crate::request::ClientId;
use campaign_core::domain::Amount;

/// The answer to a request, on either endpoint.
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
    /// The answer to a request that was not executed.
    pub(crate) fn rejected(error: impl Into<Cow<'static, str>>) -> Self {
        Self { success: false, error: Some(error.into()), request_id: None, data: None }
    }

    /// The answer to operations that were executed, with a result for each operation.
    pub(crate) fn from_results(data: Vec<ResultItem>) -> Self {
        Self { success: true, error: None, request_id: None, data: Some(data) }
    }

    /// The answer to operations that were queued.
    pub(crate) fn queued(request_id: String) -> Self {
        Self { success: true, error: None, request_id: Some(request_id), data: None }
    }

    /// The answer as JSON.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        // Serializing strings, numbers and arrays cannot fail.
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
    /// The result of an operation. A rejection repeats the identifier (contract 7).
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

/// The data of a result. Its format follows from the operation, so it has no tag on the wire.
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
    /// Any other record: it contains no amounts and is requested rarely.
    Record(Value),
}

/// A message was accepted.
#[derive(Serialize)]
pub(crate) struct SendResult {
    pub(crate) id: ClientId,
    pub(crate) msg_id: u64,
    /// Always 1, the platform's code for "received".
    pub(crate) data: u8,
    pub(crate) parts: u64,
}

/// The status of a message (contract 2.5); its identifiers are strings.
#[derive(Serialize)]
pub(crate) struct StatusRecord {
    pub(crate) id: String,
    pub(crate) msg_id: String,
    #[serde(rename = "type")]
    pub(crate) channel: &'static str,
    pub(crate) status: String,
    pub(crate) updated: WireTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replies: Option<[ReplyRecord; 1]>,
}

/// A reply to a message (contract 2.4); the sandbox has no replies with media.
#[derive(Serialize)]
pub(crate) struct ReplyRecord {
    pub(crate) datetime: WireTime,
    pub(crate) message: String,
}

/// The account's balance (contract 2.5).
#[derive(Serialize)]
pub(crate) struct BalanceRecord {
    pub(crate) amount: Amount,
    pub(crate) currency: String,
}

/// The result of a verification call (contract 4.3 `call/otp`).
#[derive(Serialize)]
pub(crate) struct CodeCall {
    /// Four digits.
    pub(crate) code: String,
    /// The fee in the account's currency.
    pub(crate) price: Amount,
}

/// The error of a rejected operation, the `error` of its item (contract 7).
///
/// Texts with a field's name are the sandbox's own, the others are the platform's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperationError(Cow<'static, str>);

impl OperationError {
    /// The sender name is missing or malformed.
    pub(crate) const ALPHA_NAME: OperationError = OperationError(Cow::Borrowed("Error in Alpha-name"));
    /// The text of an SMS is missing or blank.
    pub(crate) const SMS_TEXT: OperationError = OperationError(Cow::Borrowed("Please enter SMS text"));
    /// The phone number is missing or invalid.
    pub(crate) const PHONE: OperationError = OperationError(Cow::Borrowed("Please enter valid receiver phone number"));
    /// No message has this identifier.
    pub(crate) const NOT_FOUND: OperationError = OperationError(Cow::Borrowed("Message not found"));
    /// The account has no WhatsApp route.
    pub(crate) const NO_ROUTE: OperationError = OperationError(Cow::Borrowed("No route"));
    /// The balance is below the amount to reserve.
    pub(crate) const NO_MONEY: OperationError = OperationError(Cow::Borrowed("Not enough money"));
    /// The account has reached its limit of templates.
    pub(crate) const TOO_MANY_TEMPLATES: OperationError = OperationError(Cow::Borrowed("Too many templates"));

    /// An error with a text from the scenario.
    pub(crate) fn custom(error: &str) -> Self {
        OperationError(error.to_owned().into())
    }

    /// The error for a required field that is missing or blank.
    pub(crate) fn missing_field(field: &str) -> Self {
        OperationError(format!("Please enter {field}").into())
    }

    /// The error for a field with an invalid value.
    pub(crate) fn invalid_field(field: &str) -> Self {
        OperationError(format!("Error in {field}").into())
    }

    /// The text of the error.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Converts the error into its text.
    pub(crate) fn into_message(self) -> Cow<'static, str> {
        self.0
    }
}
