//! The messaging platform as a port, and its JSON API as the one adapter.
//!
//! The port takes encoded operations and answers with an outcome for each and a signal for the
//! run. What a reply means is decided here, in pure functions; whether to try again is not.

mod envelope;
mod hook;
mod hook_test;
mod json_api;
mod operation_form;
mod reply;

pub use envelope::{EncodedOperation, Envelope};
pub use hook::{RunWebhookUrls, WebhookSecretError, WebhookSecrets, WebhookUrls};
pub use hook_test::{WEBHOOK_TEST_HEADER, WebhookTestAnswer, test_webhook};
pub use json_api::{
    AnswerRules, AskBalance, AskSenders, AskStatus, Balance, CheckKey, CreateSmsTemplate, CreateViberTemplate,
    DeleteSmsTemplate, DeleteViberTemplate, FailureCause, GatewayAddress, IdentifiedReceipt, Inquiry, InquiryFailure,
    JsonApi, JsonApiError, ListSmsTemplates, ListViberTemplates, MessageRecord, RedactingReader, SenderName,
    SmsTemplate, UnreadableReceipt, ViberTemplate, encode_operation, read_receipts,
};
#[cfg(test)]
pub(crate) use json_api::{HttpExchange, read_reply, read_status_answers};
pub use operation_form::OperationForm;
pub use reply::{ContractDeviation, GatewayReply, Signal, StatusAnswer, StopCause};

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::domain::MessageId;

/// A boxed future: the network is an edge where one indirection does not matter.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whether an envelope may still leave, asked as late as possible.
pub type MayLeave = Arc<dyn Fn() -> bool + Send + Sync>;

/// The gateway as the engine sees it.
pub trait Gateway: Send + Sync {
    /// Sends one envelope once and tells what became of each operation; nothing if it may not leave any more when its first
    /// byte would, and then none did.
    ///
    /// The reply always has exactly one outcome per operation, in order.
    fn submit<'a>(&'a self, envelope: &'a Envelope, may_leave: MayLeave) -> BoxFuture<'a, Option<GatewayReply>>;

    /// Asks for the status of messages by our identifiers (contract 4.3 `status`), one answer each.
    fn ask_statuses<'a>(&'a self, ids: &'a [MessageId]) -> BoxFuture<'a, Vec<StatusAnswer>>;
}
