//! The gateway's JSON API (sections 2, 4 and 7 of the contract): encoding requests, HTTP, and reading answers.

mod encode;
mod http;
mod inquiry;
mod members;
#[cfg(test)]
mod read_tests;
mod receipt;
mod reply;
#[cfg(test)]
mod tests;

pub use encode::{OperationForm, encode_operation};
pub use http::HttpExchange;
pub use http::{GatewayAddress, JsonApi, JsonApiError};
pub(super) use http::{innermost_cause, is_handshake};
pub use inquiry::status::read_status_answers;
pub use inquiry::{
    AskBalance, AskSenders, AskStatus, Balance, CheckKey, CreateSmsTemplate, CreateViberTemplate, DeleteSmsTemplate,
    DeleteViberTemplate, FailureCause, Inquiry, InquiryFailure, ListSmsTemplates, ListViberTemplates, MessageRecord,
    SenderName, SmsTemplate, ViberTemplate,
};
pub use members::RedactingReader;
pub use receipt::{IdentifiedReceipt, UnreadableReceipt, read_receipts};
pub use reply::AnswerRules;
pub use reply::read_reply;
