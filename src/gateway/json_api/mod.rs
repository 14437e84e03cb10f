//! The gateway's JSON API (contract 2, 4 and 7): encoding, HTTP, and the reading of answers.

#[cfg(test)]
mod answer_tests;
mod conceal;
mod cut;
mod encode;
mod exchange;
mod held_body;
mod http;
mod inquiry;
mod loose;
mod members;
mod read;
mod read_items;
#[cfg(test)]
mod read_tests;
mod receipt;
mod search;
mod status_answer;
mod words;

pub use encode::encode_operation;
pub(in crate::gateway) use encode::write_operation;
#[cfg(test)]
pub(crate) use exchange::HttpExchange;
pub use http::{GatewayAddress, JsonApi, JsonApiError};
pub(super) use http::{innermost_cause, is_handshake};
pub use inquiry::{
    AskBalance, AskSenders, AskStatus, Balance, CheckKey, CreateSmsTemplate, CreateViberTemplate, DeleteSmsTemplate,
    DeleteViberTemplate, FailureCause, Inquiry, InquiryFailure, ListSmsTemplates, ListViberTemplates, MessageRecord,
    SenderName, SmsTemplate, ViberTemplate,
};
pub use read::AnswerRules;
#[cfg(test)]
pub(crate) use read::read_reply;
pub use receipt::{IdentifiedReceipt, UnreadableReceipt, read_receipts};
#[cfg(test)]
pub(crate) use status_answer::read_status_answers;
pub use words::RedactingReader;
