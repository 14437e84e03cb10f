//! Inquiries about the account and changes to it: each kind defines its operation and reads its answer.
//!
//! Inquiries use the synchronous endpoint, because the asynchronous one returns only a `request_id` (contract 4.2).
//! Each inquiry sends one envelope, once, and reads its answer item by item. Reading is tolerant where the contract is
//! silent, and strict where a guess could mislead. Callers decide whether to ask again.

mod account;
pub(super) mod status;

use std::time::Duration;

use secrecy::ExposeSecret as _;
use serde_json::value::RawValue;

use super::{HttpExchange, JsonApi, RedactingReader};
use crate::json_api::members::{AnswerBody, AnswerItem, SuccessFlag, non_null};

pub use account::{
    AskBalance, AskSenders, Balance, CheckKey, CreateTemplate, DeleteTemplate, ListTemplates, MessageTemplate,
    SenderName, TemplateChannel,
};
pub use status::{AskStatus, MessageRecord};

/// An operation about the account, with the rules for reading its answer.
pub trait Inquiry {
    /// The content of a successful answer.
    type Answer;

    /// Whether the inquiry only reads, so that it can be repeated.
    const READS_ONLY: bool;

    /// The operation as an item of `data[]` (contract 4.3).
    fn to_operation(&self) -> serde_json::Value;

    /// Reads the payload of an item whose `success` is true.
    ///
    /// # Errors
    /// The deviation from the contract, as a fragment that follows "the response".
    fn read_answer(
        &self,
        payload: Option<&RawValue>,
        reader: &RedactingReader<'_>,
    ) -> Result<Self::Answer, &'static str>;
}

/// A failed inquiry, or one without a usable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct InquiryFailure {
    /// The cause of the failure.
    pub cause: FailureCause,
    /// The reason, as a lowercase fragment in plain words.
    pub reason: String,
    /// The gateway's text, if there is one.
    pub gateway_text: Option<String>,
    /// Whether it is proven that the gateway did not execute the operation.
    pub not_executed: bool,
}

/// The kinds of failures of an inquiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// The gateway rejected the key (contract 5 and 7).
    KeyRefused,
    /// The gateway rejected the operation; the reason contains its text.
    Refused,
    /// No connection.
    NotConnected,
    /// The gateway asks to slow down, and possibly to wait for the given time.
    SlowDown(Option<Duration>),
    /// No answer came in time.
    TimedOut,
    /// The connection ended without an answer, or the answer is outside the contract.
    Unclear,
}

impl InquiryFailure {
    /// A failure that proves that nothing was done.
    fn without_effect(cause: FailureCause, reason: impl Into<String>) -> Self {
        Self { cause, reason: reason.into(), gateway_text: None, not_executed: true }
    }

    /// A failure that leaves open whether anything was done.
    fn unclear(reason: impl Into<String>) -> Self {
        Self { cause: FailureCause::Unclear, reason: reason.into(), gateway_text: None, not_executed: false }
    }
}

/// The payload of a successful item, if it has one.
type InquiryPayload = Option<Box<RawValue>>;

impl JsonApi {
    /// Sends one inquiry.
    ///
    /// # Errors
    /// The reason for a missing or unusable answer, and whether it is proven that nothing was done.
    pub async fn ask<I: Inquiry>(&self, inquiry: &I) -> Result<I::Answer, InquiryFailure> {
        let mut answers = self.ask_all(std::slice::from_ref(inquiry)).await?;
        answers.pop().unwrap_or_else(|| Err(InquiryFailure::unclear("the response has no items")))
    }

    /// Sends several inquiries of one kind in one envelope. The answers are in the order of the inquiries.
    ///
    /// # Errors
    /// The reason why the envelope as a whole has no valid answer.
    pub async fn ask_all<I: Inquiry>(
        &self,
        inquiries: &[I],
    ) -> Result<Vec<Result<I::Answer, InquiryFailure>>, InquiryFailure> {
        let items = self.ask_items(inquiries.iter().map(Inquiry::to_operation).collect()).await?;
        let reader = self.text_reader();
        Ok(inquiries.iter().zip(items).map(|(inquiry, item)| read_answer(inquiry, item, &reader)).collect())
    }

    /// Sends two inquiries of different kinds in one envelope.
    ///
    /// # Errors
    /// The reason why the envelope as a whole has no valid answer.
    pub async fn ask_both<A: Inquiry, B: Inquiry>(
        &self,
        first: &A,
        second: &B,
    ) -> Result<(Result<A::Answer, InquiryFailure>, Result<B::Answer, InquiryFailure>), InquiryFailure> {
        let items = self.ask_items(vec![first.to_operation(), second.to_operation()]).await?;
        let Ok([first_item, second_item]) = <[_; 2]>::try_from(items) else {
            return Err(InquiryFailure::unclear("the number of results differs from the number of queries"));
        };
        let reader = self.text_reader();
        Ok((read_answer(first, first_item, &reader), read_answer(second, second_item, &reader)))
    }

    async fn ask_items(
        &self,
        operations: Vec<serde_json::Value>,
    ) -> Result<Vec<Result<InquiryPayload, InquiryFailure>>, InquiryFailure> {
        let operations: Vec<Vec<u8>> = operations.iter().map(|operation| operation.to_string().into_bytes()).collect();
        let exchange = self.post_operations(&self.sync_url, operations.iter().map(Vec::as_slice)).await;
        read_exchange(&self.rules.trust_status, operations.len(), &exchange, &self.text_reader())
    }

    fn text_reader(&self) -> RedactingReader<'_> {
        RedactingReader::new(self.key.expose_secret())
    }
}

fn read_answer<I: Inquiry>(
    inquiry: &I,
    item: Result<InquiryPayload, InquiryFailure>,
    reader: &RedactingReader<'_>,
) -> Result<I::Answer, InquiryFailure> {
    let payload = item?;
    inquiry
        .read_answer(payload.as_deref(), reader)
        .map_err(|deviation| InquiryFailure::unclear(format!("the response {deviation}")))
}

/// Reads the answer to `count` operations, which must have one item for each operation (contract 2.2).
fn read_exchange(
    trust_status: &[u16],
    count: usize,
    exchange: &HttpExchange,
    reader: &RedactingReader<'_>,
) -> Result<Vec<Result<InquiryPayload, InquiryFailure>>, InquiryFailure> {
    match exchange {
        HttpExchange::NotConnected(reason) => Err(InquiryFailure::without_effect(FailureCause::NotConnected, reason)),
        HttpExchange::Handshake(reason) => Err(InquiryFailure::without_effect(FailureCause::Unclear, reason)),
        HttpExchange::TimedOut(after) => {
            let unclear = InquiryFailure::unclear(format!("no answer within {} s", after.as_secs_f64()));
            Err(InquiryFailure { cause: FailureCause::TimedOut, ..unclear })
        }
        HttpExchange::Broken(reason) => Err(InquiryFailure::unclear(reason)),
        HttpExchange::TooLong { .. } => Err(InquiryFailure::unclear("the response is too long")),
        HttpExchange::Answer { status: 200, body, .. } => read_body(count, body, reader),
        HttpExchange::Answer { status, retry_after, .. } => {
            Err(InquiryFailure { not_executed: trust_status.contains(status), ..status_failure(*status, *retry_after) })
        }
    }
}

/// Converts an HTTP status other than 200 to a failure. The contract allows only 200 (contract 4.1 and 7).
fn status_failure(status: u16, retry_after: Option<Duration>) -> InquiryFailure {
    match status {
        300..=399 => InquiryFailure::unclear(format!("HTTP {status}: campaign does not follow redirects")),
        429 | 503 => InquiryFailure {
            cause: FailureCause::SlowDown(retry_after),
            ..InquiryFailure::unclear(format!("HTTP {status}: the gateway is asking you to slow down"))
        },
        _ => InquiryFailure::unclear(format!("HTTP {status}")),
    }
}

fn read_body(
    count: usize,
    body: &[u8],
    reader: &RedactingReader<'_>,
) -> Result<Vec<Result<InquiryPayload, InquiryFailure>>, InquiryFailure> {
    let Some(top) = AnswerBody::read(body) else { return Err(InquiryFailure::unclear(explain_body(body))) };
    match (SuccessFlag::read(top.success), reader.read_text(top.error)) {
        (SuccessFlag::True, _) => {}
        (SuccessFlag::False, Some(error)) if error.trim() == "Access denied" => {
            let reason = "the gateway refused the API key: `Access denied`";
            return Err(InquiryFailure::without_effect(FailureCause::KeyRefused, reason));
        }
        (SuccessFlag::False, Some(error)) => return Err(rejected_failure(&error)),
        (SuccessFlag::False, None) => {
            return Err(InquiryFailure::unclear("the response reports a failure without an error message"));
        }
        (SuccessFlag::Unclear, _) => {
            return Err(InquiryFailure::unclear("`success` in the response is neither true nor false"));
        }
    }
    let items: Option<Vec<&RawValue>> = top.data.and_then(|data| serde_json::from_str(data.get()).ok());
    match items {
        Some(items) if items.len() == count => Ok(items.into_iter().map(|item| read_item(item, reader)).collect()),
        Some(_) => Err(InquiryFailure::unclear("the number of results differs from the number of queries")),
        None => Err(InquiryFailure::unclear("the response contains no list of items")),
    }
}

fn read_item(item: &RawValue, reader: &RedactingReader<'_>) -> Result<InquiryPayload, InquiryFailure> {
    let Some(item) = AnswerItem::read(item) else {
        return Err(InquiryFailure::unclear("an item in the response is not an object"));
    };
    match SuccessFlag::read(item.success) {
        SuccessFlag::True => Ok(non_null(item.data).map(ToOwned::to_owned)),
        SuccessFlag::False => {
            Err(rejected_failure(&reader.read_text(item.error).unwrap_or_else(|| "no reason given".to_owned())))
        }
        SuccessFlag::Unclear => {
            Err(InquiryFailure::unclear("an item in the response has a `success` value that is neither true nor false"))
        }
    }
}

fn rejected_failure(error: &str) -> InquiryFailure {
    let (gateway_text, reason) =
        (Some(error.trim().to_owned()), format!("the gateway rejected the request: `{}`", error.trim()));
    InquiryFailure { gateway_text, ..InquiryFailure::without_effect(FailureCause::Refused, reason) }
}

/// Describes a body that is not the JSON of the contract.
fn explain_body(body: &[u8]) -> &'static str {
    match body.trim_ascii_start().first() {
        None => "the response is empty",
        Some(b'<') => "the gateway returned a web page instead of JSON",
        Some(_) => "the response is not the expected JSON",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_api::inquiry::{AskBalance, AskSenders};

    const KEY: &str = "s3cret/key";

    fn answer_exchange(body: &str) -> HttpExchange {
        HttpExchange::Answer { status: 200, retry_after: None, body: body.as_bytes().to_vec() }
    }

    fn read_test_items(
        count: usize,
        exchange: &HttpExchange,
    ) -> Result<Vec<Result<InquiryPayload, InquiryFailure>>, InquiryFailure> {
        read_exchange(&[429], count, exchange, &RedactingReader::new(KEY))
    }

    /// Reads a payload as the answer to an inquiry, for the tests of each kind.
    pub(in crate::json_api::inquiry) fn read_payload<I: Inquiry>(
        inquiry: &I,
        payload: &str,
    ) -> Result<I::Answer, InquiryFailure> {
        let body = format!(r#"{{"success":true,"data":[{{"success":true,"data":{payload}}}]}}"#);
        let item = read_test_items(1, &answer_exchange(&body))?.remove(0);
        read_answer(inquiry, item, &RedactingReader::new(KEY))
    }

    #[test]
    fn failure_states_its_cause_and_whether_anything_was_done() {
        use FailureCause::{KeyRefused, NotConnected, Refused, SlowDown, TimedOut, Unclear};
        let http = |status, wait| HttpExchange::Answer { status, retry_after: wait, body: b"<html>".to_vec() };
        let minute = Some(Duration::from_secs(60));
        let table = [
            (HttpExchange::NotConnected("refused".into()), NotConnected, true),
            (HttpExchange::Handshake("no certificate".into()), Unclear, true),
            (HttpExchange::TimedOut(Duration::from_secs(30)), TimedOut, false),
            (HttpExchange::Broken("reset".into()), Unclear, false),
            (HttpExchange::TooLong { status: 200 }, Unclear, false),
            (http(302, None), Unclear, false),
            (http(503, minute), SlowDown(minute), false),
            (http(429, None), SlowDown(None), true),
            (http(500, None), Unclear, false),
            (http(200, None), Unclear, false),
            (answer_exchange(""), Unclear, false),
            (answer_exchange("[]"), Unclear, false),
            (answer_exchange("{}"), Unclear, false),
            (answer_exchange(r#"{"success":1,"data":[]}"#), Unclear, false),
            (answer_exchange(r#"{"success":true}"#), Unclear, false),
            (answer_exchange(r#"{"success":true,"data":[]}"#), Unclear, false),
            (answer_exchange(r#"{"success":true,"data":[{},{}]}"#), Unclear, false),
            (answer_exchange(r#"{"success":false}"#), Unclear, false),
            (answer_exchange(r#"{"success":false,"error":"Access denied"}"#), KeyRefused, true),
            (answer_exchange(r#"{"success":false,"error":"Invalid message type"}"#), Refused, true),
        ];
        for (exchange, cause, not_executed) in table {
            let failure = read_test_items(1, &exchange).unwrap_err();
            assert_eq!((failure.cause, failure.not_executed), (cause, not_executed), "{exchange:?}");
        }
    }

    #[test]
    fn failed_item_does_not_hide_others() {
        let body = r#"{"success":true,"data":[{"success":false,"error":"No route"},{"success":"yes"},
            {"success":true,"data":null},{"success":true,"data":[]}]}"#;
        let items = read_test_items(4, &answer_exchange(body)).unwrap();
        let failure = items[0].as_ref().unwrap_err();
        assert_eq!((failure.cause, failure.not_executed), (FailureCause::Refused, true));
        assert_eq!(failure.reason, "the gateway rejected the request: `No route`");
        assert_eq!(items[1].as_ref().unwrap_err().cause, FailureCause::Unclear);
        assert!(items[2].as_ref().unwrap().is_none() && items[3].as_ref().unwrap().is_some());
    }

    #[test]
    fn gateway_texts_never_contain_the_key() {
        for spelling in ["s3cret/key", r"s3cret\/key"] {
            let top = format!(r#"{{"success":false,"error":"wrong `{spelling}`"}}"#);
            let item = format!(r#"{{"success":true,"data":[{{"success":false,"error":{{"auth":"{spelling}"}}}}]}}"#);
            let failures = [
                read_test_items(1, &answer_exchange(&top)).unwrap_err(),
                read_test_items(1, &answer_exchange(&item)).unwrap().remove(0).unwrap_err(),
            ];
            let balance = read_payload(&AskBalance, &format!(r#"{{"amount":1,"currency":"{spelling}"}}"#)).unwrap();
            let senders =
                read_payload(&AskSenders, &format!(r#"[{{"name":"{spelling}","status":["{spelling}"]}}]"#)).unwrap();
            let output = format!("{failures:?} {balance:?} {senders:?}");
            assert!(!output.contains("s3cret"), "{output}");
            assert_eq!(output.matches("[key]").count(), 7, "{output}");
        }
    }
}
