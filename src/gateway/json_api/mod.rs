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

pub use encode::encode;
pub(in crate::gateway) use encode::write;
#[cfg(test)]
pub(crate) use exchange::Exchange;
pub use http::{Address, JsonApi, JsonApiError};
pub(super) use http::{cause, is_handshake};
pub use inquiry::{
    AskBalance, AskSenders, AskStatus, Balance, CheckKey, CreateSmsTemplate, CreateViberTemplate, DeleteSmsTemplate,
    DeleteViberTemplate, FailureCause, Inquiry, InquiryFailure, ListSmsTemplates, ListViberTemplates, MessageRecord,
    Sender, SmsTemplate, ViberTemplate,
};
pub use read::Rules;
#[cfg(test)]
pub(crate) use read::read;
pub use receipt::{ToldReceipt, UnreadableReceipt, read_receipts};
#[cfg(test)]
pub(crate) use status_answer::answers;
pub use words::Words;
