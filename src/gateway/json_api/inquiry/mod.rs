//! Typed questions and orders about the account: one file per kind, each with its operation and the
//! reading of its answer.
//!
//! They go to the synchronous endpoint, because the asynchronous one answers with a `request_id`
//! alone (contract 4.2). Reading is tolerant where the contract is silent and strict where a guess
//! could mislead. Whether to ask again is decided elsewhere.

mod ask;
mod balance;
mod failure;
mod senders;
mod sms_templates;
mod status;
mod viber_templates;

use serde_json::value::RawValue;

use super::RedactingReader;

pub use balance::{AskBalance, Balance, CheckKey};
pub use failure::{FailureCause, InquiryFailure};
pub use senders::{AskSenders, SenderName};
pub use sms_templates::{CreateSmsTemplate, DeleteSmsTemplate, ListSmsTemplates, SmsTemplate};
pub use status::{AskStatus, MessageRecord};
pub use viber_templates::{CreateViberTemplate, DeleteViberTemplate, ListViberTemplates, ViberTemplate};

/// One operation about the account, and what its answer means.
pub trait Inquiry {
    /// What a good answer tells.
    type Answer;

    /// Whether it only reads, so that asking twice changes nothing.
    const READS_ONLY: bool;

    /// The operation as it stands in `data[]` (contract 4.3).
    fn to_operation(&self) -> serde_json::Value;

    /// Reads the payload of an item whose `success` is true.
    ///
    /// # Errors
    /// What the payload is instead of the contract's, as a fragment that reads after "the answer".
    fn read_answer(
        &self,
        payload: Option<&RawValue>,
        words: &RedactingReader<'_>,
    ) -> Result<Self::Answer, &'static str>;
}
