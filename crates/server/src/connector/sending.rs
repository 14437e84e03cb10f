//! Sending an assistant's confirmed message: within the operator's limits, once, and as other single messages are sent.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use secrecy::SecretString;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::approval::{ApprovalOutcome, Approvals};
use super::arguments::ToolArguments;
use super::draft::{CallPreview, MessageDraft};
use super::error::ToolError;
use super::methods::Caller;
use super::repeat_guard::{RecentMessages, message_identity};
use campaign_core::domain::{MessageContent, MessageId, OperationKind, OperationOutcome, Phone};
use campaign_engine::delivery::{Interrupt, Stop};
use campaign_engine::report::render_message_preview;
use campaign_ledger::{CAPPED, RowState, StopKind};
use campaign_manifest::{Destination, Profile};
use campaign_runs::{Adapters, EndedSingle, Error, SingleMessage, SingleOperation, return_approval};

/// The operator's rules for sending.
#[derive(Debug)]
pub struct SendPolicy {
    per_hour: NonZeroU32,
    only_to: Option<BTreeSet<Phone>>,
    /// The pending approvals of confirmed messages, if the operator must approve each.
    pub(super) approvals: Option<Approvals>,
    recent: RecentMessages,
    /// Tasks of messages in flight. A client that disconnects does not interrupt them.
    in_progress: TaskTracker,
}

impl SendPolicy {
    /// A policy with a limit per hour, an optional allowlist of numbers, and optional operator approvals.
    #[must_use]
    pub fn new(per_hour: NonZeroU32, only_to: Option<BTreeSet<Phone>>, approvals: Option<Approvals>) -> Self {
        Self { per_hour, only_to, approvals, recent: RecentMessages::default(), in_progress: TaskTracker::new() }
    }

    /// Waits until no message is being sent.
    pub(super) async fn wait_until_sent(&self) {
        self.in_progress.close();
        self.in_progress.wait().await;
    }

    fn check_recipient(&self, phone: Phone) -> Result<(), ToolError> {
        match &self.only_to {
            Some(numbers) if !numbers.contains(&phone) => {
                let error = "the operator of this connector does not allow messages to this number";
                Err(ToolError::new("not_allowed", error)
                    .with_how_to("nothing was sent; tell the person you work for, and do not try another way"))
            }
            _ => Ok(()),
        }
    }
}

impl Caller<'_> {
    /// Adds everything that would reject the confirmed call to a preview, without using up any limit.
    ///
    /// The operator's rules are checked only for keys that the gateway accepts, because they reveal who opted out.
    pub(super) async fn check_preview(&self, mut preview: CallPreview, arguments: &Map<String, Value>) -> CallPreview {
        if let (Some(sending), Some(phone)) = (self.sending, preview.recipient) {
            if let Err(unproven) = self.prove_key().await {
                if !unproven.is_key_refused() {
                    let why = format!("the API key sent with the call could not be checked: {}", unproven.sentence());
                    return preview.with_unchecked_rules(&why);
                }
                preview.problems.push(unproven.sentence());
                return preview.with_unchecked_rules("the gateway does not accept the API key sent with the call");
            }
            let id = arguments.get("id").and_then(Value::as_u64).and_then(MessageId::new);
            let again = arguments.get("repeat") == Some(&Value::Bool(true));
            let refusals = self.collect_refusals(sending, phone, id, preview.content.as_ref().filter(|_| !again)).await;
            preview.problems.extend(refusals.iter().map(ToolError::sentence));
        }
        preview
    }

    /// All reasons to refuse a message now. The guard against repeats checks `content`, if it is given.
    async fn collect_refusals(
        &self,
        sending: &SendPolicy,
        phone: Phone,
        id: Option<MessageId>,
        content: Option<&MessageContent<Cow<'static, str>>>,
    ) -> Vec<ToolError> {
        let mut refusals: Vec<ToolError> = sending.check_recipient(phone).err().into_iter().collect();
        let profile = &self.account.profile;
        let empty = MessageContent { kind: OperationKind::Pipeline, stages: Vec::new() };
        let message = SingleMessage { content: content.cloned().unwrap_or(empty), phone, id };
        let destination = Destination::Live(Box::new(profile.clone()));
        let single = SingleOperation::for_message(self.key.clone(), message, destination, sending.per_hour.get());
        let id = id.map(MessageId::get);
        refusals.extend(single.list_refusals(self.adapters).await.into_iter().map(|error| refuse_message(error, id)));
        if let Some(content) = content {
            let identity = message_identity(phone, content, profile.is_loopback());
            let ago = sending.recent.time_since_sent(self.adapters.ledger.as_ref(), identity).await;
            match ago {
                Ok(None) => {}
                Ok(Some(ago)) => refusals.push(ToolError::repeated_message(ago.as_secs())),
                Err(error) => refusals.push(Error::from(error).into()),
            }
        }
        // The hourly limit comes last: waiting does not remove the other reasons.
        refusals.sort_by_key(ToolError::is_rate_limit);
        refusals
    }

    /// Sends a confirmed message and returns its identifier for status requests.
    pub(super) async fn send_draft(&self, draft: &MessageDraft, arguments: &ToolArguments) -> Result<Value, ToolError> {
        let Some(sending) = self.sending else {
            return Err(ToolError::new("not_allowed", "the operator has not allowed this connector to send messages"));
        };
        let (phone, id) = (arguments.parse_phone()?, arguments.parse_optional_id()?);
        let content = draft.to_content().map_err(|problems| ToolError::invalid_argument(problems.join("; ")))?;
        // This comes before every lookup, record and limit: a caller with a rejected key must learn and change nothing.
        self.prove_key().await?;
        let again = arguments.is_set("repeat");
        let refusals = self.collect_refusals(sending, phone, id, Some(&content).filter(|_| !again)).await;
        // The hourly limit alone refuses nothing here: it applies when the message gets its row, after any approval.
        if refusals.iter().any(|refusal| !refusal.is_rate_limit())
            && let Some(refused) = ToolError::first_of(refusals)
        {
            return Err(refused);
        }
        let confirmed = ConfirmedMessage {
            sending: Arc::clone(sending),
            adapters: self.adapters.clone(),
            profile: self.account.profile.clone(),
            key: self.key.clone(),
            interrupt: self.interrupt.clone(),
            message: SingleMessage { content, phone, id },
            again,
        };
        let (access, key) = (Arc::clone(self.access), self.key.clone());
        let result = sending.in_progress.spawn(async move {
            let result = confirmed.send_confirmed().await;
            result.inspect_err(|error| access.record_key_refusal(&key, error))
        });
        let result = result.await;
        result.unwrap_or_else(|_| Err(ToolError::unknown_outcome(id.map(MessageId::get))))
    }
}

/// A confirmed message with everything that sending it requires.
struct ConfirmedMessage {
    sending: Arc<SendPolicy>,
    adapters: Adapters,
    profile: Profile,
    key: SecretString,
    interrupt: watch::Receiver<Interrupt>,
    message: SingleMessage,
    /// Whether the caller wants to send the message a second time.
    again: bool,
}

impl ConfirmedMessage {
    async fn send_confirmed(self) -> Result<Value, ToolError> {
        let Self { sending, adapters, profile, key, interrupt, message, again } = self;
        let SingleMessage { content, phone, id } = &message;
        let (id, content_json) = (id.map(MessageId::get), serde_json::to_string(content).unwrap_or_default());
        let destination = Destination::Live(Box::new(profile.clone()));
        let single = SingleOperation::for_message(key.clone(), message.clone(), destination, sending.per_hour.get());
        let (ledger, identity) =
            (Arc::clone(&adapters.ledger), message_identity(*phone, content, profile.is_loopback()));
        let place = sending.recent.take_place(ledger.as_ref(), identity, again).await;
        let place = place.map_err(Error::from)?.map_err(|ago| ToolError::repeated_message(ago.as_secs()))?;
        let admission = match &sending.approvals {
            Some(approvals) => {
                let mut what = format!("{phone}\n{content_json}\n{}", id.unwrap_or_default());
                let mut shown = render_message_preview(*phone, content);
                if again {
                    what.push_str("\nrepeat");
                    shown.push_str("  repeat: sent even if the same message was sent less than a minute ago\n");
                }
                approvals.request_approval(&adapters, &key, &profile.name, &what, shown).await.map(Some)
            }
            None => Ok(None),
        };
        let used = match admission {
            Ok(Some(ApprovalOutcome::Approved(used))) => Some(used),
            Ok(None) => None,
            Ok(Some(ApprovalOutcome::Pending(pending))) => {
                sending.recent.release_place(ledger.as_ref(), place).await;
                return Ok(pending);
            }
            Err(error) => {
                sending.recent.release_place(ledger.as_ref(), place).await;
                return Err(error);
            }
        };
        let sent = async { single.confirm_by_order(adapters).await?.send(interrupt).await };
        let result = sent.await.map_or_else(|error| Err(refuse_message(error, id)), |ended| render_outcome(&ended));
        if result.as_ref().is_err_and(|error| !error.may_have_been_sent()) {
            sending.recent.release_place(ledger.as_ref(), place).await;
            if let Some(used) = used {
                return_approval(ledger.as_ref(), used).await?;
            }
        }
        result
    }
}

/// The error of a message that was refused before it was sent.
fn refuse_message(error: Error, id: Option<u64>) -> ToolError {
    let refused = match error {
        Error::IdTaken => ToolError::new("id_taken", "an earlier call has already used this `id`").with_how_to(
            "nothing was sent; check the result of the earlier call, or call message_status. Send again without `id` \
             only if it is certain that the earlier message was not sent",
        ),
        Error::TooManyThisHour { next } => ToolError::too_many_sends(next),
        error => error.into(),
    };
    refused.with_id(id)
}

/// The outcome of a message for the caller.
fn render_outcome(EndedSingle { id, state, skipped, outcome, stop, .. }: &EndedSingle) -> Result<Value, ToolError> {
    let id = id.get();
    let accepted = |request_id: Option<Value>| {
        let mut accepted = json!({
            "accepted": true,
            "id": id,
            "next": format!("the gateway accepted the message, which does not mean that it was delivered; call \
                             message_status with id {id} for its delivery status"),
        });
        if let Some(request_id) = request_id {
            accepted["request_id"] = request_id;
        }
        Ok(accepted)
    };
    let error = match outcome {
        Some(OperationOutcome::Queued { request_id }) => return accepted(Some(json!(&**request_id))),
        Some(OperationOutcome::Accepted { .. }) => return accepted(None),
        _ if *skipped == Some(CAPPED) => ToolError::cap_reached(),
        _ if *state == RowState::Skipped => ToolError::opted_out(),
        Some(OperationOutcome::Rejected { error }) => ToolError::new("platform_error", error),
        Some(OperationOutcome::NotSent { reason }) => not_sent_error(reason, stop.as_ref())
            .with_more_how_to("its `id` cannot be used again: omit `id`, or choose another one"),
        Some(OperationOutcome::InDoubt { .. }) | None => ToolError::unknown_outcome(Some(id)),
    };
    Err(error.with_id(Some(id)))
}

/// The error of a message that was certainly not sent.
pub(super) fn not_sent_error(reason: &str, stop: Option<&Stop>) -> ToolError {
    match stop.map(|stop| stop.kind) {
        Some(StopKind::KeyRefused) => ToolError::key_refused(),
        // The gateway rejected the message and gave a reason.
        Some(StopKind::Breaker | StopKind::Credit) => ToolError::new("platform_error", reason),
        Some(StopKind::Unreachable) => ToolError::retryable("unreachable", reason),
        Some(StopKind::Interrupted(_)) => {
            ToolError::retryable("stopping", "the connector is stopping, so nothing was sent")
        }
        _ => ToolError::new("not_sent", reason),
    }
}
