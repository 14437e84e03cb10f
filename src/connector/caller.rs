//! Who calls a tool: the account that the key of the call opens, for as long as the call takes.

use std::num::NonZeroU32;
use std::sync::Arc;

use secrecy::SecretString;
use serde_json::Value;
use tokio::sync::watch;

use super::access::KeyAccess;
use super::approval::ApprovalOutcome;
use super::campaigns::{Campaigns, OpenFolder};
use super::error::ToolError;
use super::sending::{SendPolicy, not_sent_error};
use crate::delivery::Interrupt;
use crate::domain::{OperationOutcome, Phone};
use crate::gateway::{CheckKey, CreateSmsTemplate, Inquiry, SmsTemplate};
use crate::manifest::Destination;
use crate::runs::{Adapters, EndedSingle, Error, GatewayAccount, SingleOperation, return_approval};

/// Who calls a tool.
pub(super) struct Caller<'a> {
    pub(super) account: GatewayAccount,
    pub(super) key: SecretString,
    pub(super) access: &'a Arc<KeyAccess>,
    pub(super) adapters: &'a Adapters,
    /// The most lookups that go through the profile within an hour.
    pub(super) lookups_per_hour: NonZeroU32,
    pub(super) campaigns: Option<&'a Arc<Campaigns>>,
    pub(super) interrupt: watch::Receiver<Interrupt>,
    /// What may be sent; nothing unless the operator switched it on.
    pub(super) sending: Option<&'a Arc<SendPolicy>>,
}

impl Caller<'_> {
    /// Asks the platform.
    pub(super) async fn ask_gateway<I: Inquiry>(&self, inquiry: &I) -> Result<I::Answer, ToolError> {
        self.access.ask_with_key(&self.key, &self.account.profile, self.account.ask(inquiry)).await
    }

    /// Has the platform accept the key before anything is written, asked or used up for this call.
    pub(super) async fn prove_key(&self) -> Result<(), ToolError> {
        self.access.prove_key(&self.key, &self.account.profile, self.account.ask(&CheckKey)).await
    }

    /// Creates an SMS template that was confirmed.
    ///
    /// Where the operator's yes is wanted and not there yet, it waits for that, and whoever called is told so.
    pub(super) async fn create_sms_template(
        &self,
        template: CreateSmsTemplate,
    ) -> Result<Result<SmsTemplate, Value>, ToolError> {
        self.prove_key().await?;
        let mut used = None;
        if let Some(approvals) = self.sending.and_then(|sending| sending.approvals.as_ref()) {
            let CreateSmsTemplate { name, text } = &template;
            let (what, shown) = (format!("template\n{name}\n{text}"), format!("the SMS template {name}\n  {text}\n"));
            let caller = (&self.key, self.account.profile.name.as_str());
            match approvals.request_approval(self.adapters, caller, (&what, shown)).await? {
                ApprovalOutcome::Approved(approval) => used = Some(approval),
                ApprovalOutcome::Pending(pending) => return Ok(Err(pending)),
            }
        }
        let error = match self.account.ask(&template).await {
            Ok(template) => return Ok(Ok(template)),
            Err(Error::Unanswered { failure, .. }) if !failure.undone => {
                let error = "the gateway did not confirm that the template was created";
                return Err(ToolError::new("unknown_outcome", error)
                    .with_how_to("call sms_templates to see whether it exists before you try again"));
            }
            Err(error) => ToolError::from(error),
        };
        self.access.record_key_refusal(&self.key, &error);
        if let Some(used) = used {
            return_approval(self.adapters.ledger.as_ref(), used).await?;
        }
        Err(error)
    }

    /// The folder of campaigns, if the caller may see it.
    pub(super) fn open_campaigns(&self) -> Result<OpenFolder<'_>, ToolError> {
        let none = || ToolError::new("internal", "this connector has no campaigns folder");
        self.campaigns.ok_or_else(none)?.open_for(self)
    }

    /// Looks a number up, as a row of the run that all lookups share.
    pub(super) async fn look_up_number(&self, phone: Phone) -> Result<EndedSingle, ToolError> {
        self.prove_key().await?;
        let destination = Destination::Live(Box::new(self.account.profile.clone()));
        let single = SingleOperation::for_lookup(self.key.clone(), phone, destination, self.lookups_per_hour.get());
        // That lookups may be asked for was the operator's decision.
        let ordered = single.confirm_by_order(self.adapters.clone()).await?;
        let ended = ordered.send(self.interrupt.clone()).await.map_err(|error| match error {
            Error::TooManyThisHour { next } => ToolError::too_many_lookups(next),
            error => error.into(),
        })?;
        if let Some(OperationOutcome::NotSent { reason }) = &ended.outcome {
            let error = not_sent_error(reason, ended.stop.as_ref());
            self.access.record_key_refusal(&self.key, &error);
            return Err(error);
        }
        Ok(ended)
    }
}
