//! How an assistant's message is sent: past the operator's limits, once, on the way of every single message.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use secrecy::SecretString;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::approval::{Admission, Approvals};
use super::arguments::Arguments;
use super::caller::Caller;
use super::confirmation::Preview;
use super::draft::Draft;
use super::error::ToolError;
use super::recent::{Recent, identity};
use crate::delivery::{Interrupt, Stop};
use crate::domain::{Content, MessageId, OperationKind, Outcome, Phone};
use crate::ledger::{CAPPED, State, StopKind};
use crate::manifest::{Destination, Profile};
use crate::report::message_preview;
use crate::runs::{Adapters, EndedSingle, Error, Single, SingleMessage, give_approval_back};

/// What the operator allows to be sent.
#[derive(Debug)]
pub struct Sending {
    per_hour: NonZeroU32,
    only_to: Option<BTreeSet<Phone>>,
    /// Where what was confirmed waits for the operator's yes, if they want that.
    pub(super) approvals: Option<Approvals>,
    recent: Recent,
    /// The messages that are on their way, each a task of its own: a client that hangs up leaves none of them half done.
    on_their_way: TaskTracker,
}

impl Sending {
    /// So many messages an hour, to these numbers alone if any are named, and each after the operator's yes if that is wanted.
    #[must_use]
    pub fn new(per_hour: NonZeroU32, only_to: Option<BTreeSet<Phone>>, approvals: Option<Approvals>) -> Self {
        Self { per_hour, only_to, approvals, recent: Recent::default(), on_their_way: TaskTracker::new() }
    }

    /// Waits until no message is on its way.
    pub(super) async fn at_rest(&self) {
        self.on_their_way.close();
        self.on_their_way.wait().await;
    }

    fn allows(&self, phone: Phone) -> Result<(), ToolError> {
        match &self.only_to {
            Some(numbers) if !numbers.contains(&phone) => {
                let error = "the operator of this connector does not allow messages to this number";
                Err(ToolError::new("not_allowed", error)
                    .how_to("nothing was sent; tell the person you work for, and do not try another way"))
            }
            _ => Ok(()),
        }
    }
}

impl Caller<'_> {
    /// Adds everything that would refuse the confirmed call to a preview. Nothing is used up.
    ///
    /// The operator's rules are only for callers whose key the gateway accepts, since they tell who opted out.
    pub(super) async fn foresee(&self, mut preview: Preview, arguments: &Map<String, Value>) -> Preview {
        if let (Some(sending), Some(phone)) = (self.sending, preview.recipient) {
            if let Err(unproven) = self.prove_key().await {
                if !unproven.is_refused_key() {
                    let why = format!("the API key of the call could not be checked: {}", unproven.sentence());
                    return preview.unforeseen(&why);
                }
                preview.problems.push(unproven.sentence());
                return preview.unforeseen("the gateway does not accept the API key of the call");
            }
            let id = arguments.get("id").and_then(Value::as_u64).and_then(MessageId::new);
            let again = arguments.get("repeat") == Some(&Value::Bool(true));
            let refusals = self.refusals(sending, (phone, id), preview.content.as_ref().filter(|_| !again)).await;
            preview.problems.extend(refusals.iter().map(ToolError::sentence));
        }
        preview
    }

    /// Everything that refuses a message now. The guard against repeats checks `content`, if it is there.
    async fn refusals(
        &self,
        sending: &Sending,
        (phone, id): (Phone, Option<MessageId>),
        content: Option<&Content<Cow<'static, str>>>,
    ) -> Vec<ToolError> {
        let mut refusals: Vec<ToolError> = sending.allows(phone).err().into_iter().collect();
        let profile = &self.account.profile;
        let empty = Content { kind: OperationKind::Pipeline, stages: Vec::new() };
        let message = SingleMessage { content: content.cloned().unwrap_or(empty), phone, id };
        let destination = Destination::Live(Box::new(profile.clone()));
        let single = Single::message(self.key.clone(), message, destination, sending.per_hour.get());
        let id = id.map(MessageId::get);
        refusals.extend(single.refusals(self.adapters).await.into_iter().map(|error| refused(error, id)));
        if let Some(content) = content {
            let identity = identity(phone, content, profile.is_loopback());
            let ago = sending.recent.sent_ago(self.adapters.ledger.as_ref(), identity).await;
            match ago {
                Ok(None) => {}
                Ok(Some(ago)) => refusals.push(ToolError::repeated(ago.as_secs())),
                Err(error) => refusals.push(Error::from(error).into()),
            }
        }
        // The hour's limit comes last: waiting for it does not remove the other reasons.
        refusals.sort_by_key(ToolError::is_limit);
        refusals
    }

    /// Sends a message that was confirmed, and tells by which identifier it can be asked about.
    pub(super) async fn send(&self, draft: &Draft, arguments: &Arguments) -> Result<Value, ToolError> {
        let Some(sending) = self.sending else {
            return Err(ToolError::new("not_allowed", "the operator has not allowed this connector to send messages"));
        };
        let (phone, id) = (arguments.phone()?, arguments.optional_id()?);
        let content = draft.content().map_err(|problems| ToolError::argument(problems.join("; ")))?;
        // Before anything is looked up, kept or used up: a key that is not accepted learns and changes nothing.
        self.prove_key().await?;
        let again = arguments.flag("repeat");
        let refusals = self.refusals(sending, (phone, id), Some(&content).filter(|_| !again)).await;
        // The hour's limit alone refuses nothing here: it is applied when the message gets its row, after any approval.
        if refusals.iter().any(|refusal| !refusal.is_limit())
            && let Some(refused) = ToolError::of_all(refusals)
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
        let told = sending.on_their_way.spawn(async move {
            let told = confirmed.send().await;
            told.inspect_err(|error| access.note_refusal(&key, error))
        });
        let told = told.await;
        told.unwrap_or_else(|_| Err(ToolError::unknown_outcome(id.map(MessageId::get))))
    }
}

/// A message that was confirmed, with all that its way takes.
struct ConfirmedMessage {
    sending: Arc<Sending>,
    adapters: Adapters,
    profile: Profile,
    key: SecretString,
    interrupt: watch::Receiver<Interrupt>,
    message: SingleMessage,
    /// Whether it is meant to be sent once more.
    again: bool,
}

impl ConfirmedMessage {
    async fn send(self) -> Result<Value, ToolError> {
        let Self { sending, adapters, profile, key, interrupt, message, again } = self;
        let SingleMessage { content, phone, id } = &message;
        let (id, said) = (id.map(MessageId::get), serde_json::to_string(content).unwrap_or_default());
        let destination = Destination::Live(Box::new(profile.clone()));
        let single = Single::message(key.clone(), message.clone(), destination, sending.per_hour.get());
        let (ledger, identity) = (Arc::clone(&adapters.ledger), identity(*phone, content, profile.is_loopback()));
        let place = sending.recent.take(ledger.as_ref(), identity, again).await;
        let place = place.map_err(Error::from)?.map_err(|ago| ToolError::repeated(ago.as_secs()))?;
        let admission = match &sending.approvals {
            Some(approvals) => {
                let mut what = format!("{phone}\n{said}\n{}", id.unwrap_or_default());
                let mut shown = message_preview(*phone, content);
                if again {
                    what.push_str("\nrepeat");
                    shown.push_str("  repeat: sent even if the same message was sent less than a minute ago\n");
                }
                approvals.admit(&adapters, (&key, &profile.name), (&what, shown)).await.map(Some)
            }
            None => Ok(None),
        };
        let used = match admission {
            Ok(Some(Admission::Admitted(used))) => Some(used),
            Ok(None) => None,
            Ok(Some(Admission::Waits(pending))) => {
                sending.recent.give_back(ledger.as_ref(), place).await;
                return Ok(pending);
            }
            Err(error) => {
                sending.recent.give_back(ledger.as_ref(), place).await;
                return Err(error);
            }
        };
        let sent = async { single.ordered(adapters).await?.send(interrupt).await };
        let told = sent.await.map_or_else(|error| Err(refused(error, id)), |ended| told(&ended));
        if told.as_ref().is_err_and(|error| !error.may_have_left()) {
            sending.recent.give_back(ledger.as_ref(), place).await;
            if let Some(used) = used {
                give_approval_back(ledger.as_ref(), used).await?;
            }
        }
        told
    }
}

/// Why nothing was begun.
fn refused(error: Error, id: Option<u64>) -> ToolError {
    let refused = match error {
        Error::IdTaken => ToolError::new("id_taken", "an earlier call used this `id`").how_to(
            "nothing was sent; check the result of the earlier call, or call message_status. Send again without `id` \
             only if that message was certainly not sent",
        ),
        Error::TooManyThisHour { next } => ToolError::too_many_sends(next),
        error => error.into(),
    };
    refused.about(id)
}

/// What came of a message, for whoever had it sent.
fn told(EndedSingle { id, state, skipped, outcome, stop, .. }: &EndedSingle) -> Result<Value, ToolError> {
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
        Some(Outcome::Queued { request_id }) => return accepted(Some(json!(&**request_id))),
        Some(Outcome::Accepted { .. }) => return accepted(None),
        _ if *skipped == Some(CAPPED) => ToolError::cap_reached(),
        _ if *state == State::Skipped => ToolError::opted_out(),
        Some(Outcome::Rejected { error }) => ToolError::new("platform_error", error),
        Some(Outcome::NotSent { reason }) => {
            unsent(reason, stop.as_ref()).also("its `id` is used up: omit `id`, or choose another one")
        }
        Some(Outcome::InDoubt { .. }) | None => ToolError::unknown_outcome(Some(id)),
    };
    Err(error.about(Some(id)))
}

/// Why a message surely did not leave.
pub(super) fn unsent(reason: &str, stop: Option<&Stop>) -> ToolError {
    match stop.map(|stop| stop.kind) {
        Some(StopKind::KeyRefused) => ToolError::key_refused(),
        // The platform took none of it, and said why.
        Some(StopKind::Breaker | StopKind::Credit) => ToolError::new("platform_error", reason),
        Some(StopKind::Unreachable) => ToolError::retryable("unreachable", reason),
        Some(StopKind::Interrupted(_)) => {
            ToolError::retryable("stopping", "the connector is stopping, so nothing was sent")
        }
        _ => ToolError::new("not_sent", reason),
    }
}
