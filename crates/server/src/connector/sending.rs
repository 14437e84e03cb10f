//! Sending of messages that a user has confirmed to an assistant: within the operator's limits, and without duplicates.
//!
//! The same message to the same number is sent at most once a minute, across all connectors of a ledger. The ledger
//! stores a keyed hash of each message. If the ledger still has the previous version's tables, this process keeps the
//! hashes in memory.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher as _, Hash};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use secrecy::SecretString;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use unicode_normalization::UnicodeNormalization as _;

use super::approval::{ApprovalOutcome, Approvals};
use super::arguments::ToolArguments;
use super::draft::{CallPreview, MessageDraft};
use super::error::ToolError;
use super::methods::Caller;
use campaign_core::domain::{MessageContent, MessageId, OperationKind, OperationOutcome, Phone, is_invisible};
use campaign_engine::delivery::{Interrupt, Stop};
use campaign_engine::report::render_message_preview;
use campaign_ledger::{
    CAPPED, Ledger, LedgerError, REPEAT_WINDOW, RepeatCheck, RepeatRequest, RepeatReservation, RowState, StopKind,
};
use campaign_manifest::{Destination, Profile};
use campaign_runs::{Adapters, EndedOperation, Error, SingleMessage, SingleOperation, return_approval};

/// The operator's rules for sending.
#[derive(Debug)]
pub struct SendPolicy {
    /// The maximum number of messages per hour.
    per_hour: NonZeroU32,
    /// The only numbers to which messages may be sent; `None` for any number.
    only_to: Option<BTreeSet<Phone>>,
    /// The calls that wait for an approval; `None` if the operator need not approve each confirmed call.
    pub(super) approvals: Option<Approvals>,
    recent: RecentMessages,
    /// Tasks of messages in flight. A client that disconnects does not interrupt them.
    in_progress: TaskTracker,
}

impl SendPolicy {
    /// A policy with a limit per hour, an optional allowlist of numbers, and optional operator approvals.
    pub fn new(per_hour: NonZeroU32, only_to: Option<BTreeSet<Phone>>, approvals: Option<Approvals>) -> Self {
        Self { per_hour, only_to, approvals, recent: RecentMessages::default(), in_progress: TaskTracker::new() }
    }

    /// Waits until no message is being sent.
    pub(super) async fn wait_for_sends(&self) {
        self.in_progress.close();
        self.in_progress.wait().await;
    }

    fn check_recipient(&self, phone: Phone) -> Result<(), ToolError> {
        match &self.only_to {
            Some(numbers) if !numbers.contains(&phone) => {
                let error = "the operator of this connector does not allow messages to this number";
                Err(ToolError::new("not_allowed", error)
                    .with_how_to("nothing was sent; tell the user, and do not try another way"))
            }
            _ => Ok(()),
        }
    }
}

impl Caller<'_> {
    /// Adds to a preview every reason why the confirmed call would be refused, without using up any limit.
    ///
    /// The operator's rules are checked only for keys that the gateway accepts, because the rules reveal who opted out.
    pub(super) async fn check_preview(&self, mut preview: CallPreview, arguments: &Map<String, Value>) -> CallPreview {
        if let (Some(sending), Some(phone)) = (self.sending, preview.recipient) {
            if let Err(error) = self.verify_key().await {
                if !error.is_key_refused() {
                    let problem = format!("the API key sent with the call could not be checked: {}", error.message());
                    return preview.with_unchecked_rules(&problem);
                }
                preview.problems.push(error.message());
                return preview.with_unchecked_rules("the gateway does not accept the API key sent with the call");
            }
            let id = arguments.get("id").and_then(Value::as_u64).and_then(MessageId::new);
            let again = arguments.get("repeat") == Some(&Value::Bool(true));
            let refusals = self.collect_refusals(sending, phone, id, preview.content.as_ref().filter(|_| !again)).await;
            preview.problems.extend(refusals.iter().map(ToolError::message));
        }
        preview
    }

    /// Collects all reasons to refuse a message now. The guard against repeats checks `content`, if it is given.
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
        refusals.extend(
            single.list_refusals(self.adapters).await.into_iter().map(|error| refused_message_error(error, id)),
        );
        if let Some(content) = content {
            let identity = message_identity(phone, content, profile.is_loopback());
            let elapsed = sending.recent.time_since_sent(self.adapters.ledger.as_ref(), identity).await;
            match elapsed {
                Ok(None) => {}
                Ok(Some(elapsed)) => refusals.push(ToolError::repeated_message(elapsed.as_secs())),
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
        // The key is verified before anything else: a caller with a rejected key must neither learn nor change
        // anything.
        self.verify_key().await?;
        let again = arguments.is_set("repeat");
        let refusals = self.collect_refusals(sending, phone, id, Some(&content).filter(|_| !again)).await;
        // The hourly limit alone is not a reason to refuse the message here: it applies when the message gets its row,
        // after any approval.
        if refusals.iter().any(|refusal| !refusal.is_rate_limit())
            && let Some(first_refusal) = ToolError::first_of(refusals)
        {
            return Err(first_refusal);
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
        let id = id.map(MessageId::get);
        let destination = Destination::Live(Box::new(profile.clone()));
        let single = SingleOperation::for_message(key.clone(), message.clone(), destination, sending.per_hour.get());
        let (ledger, identity) =
            (Arc::clone(&adapters.ledger), message_identity(*phone, content, profile.is_loopback()));
        let reservation = sending.recent.reserve(ledger.as_ref(), identity, again).await;
        let reservation =
            reservation.map_err(Error::from)?.map_err(|elapsed| ToolError::repeated_message(elapsed.as_secs()))?;
        let approval = match &sending.approvals {
            Some(approvals) => {
                let call = json!({ "to": phone.to_u64(), "message": content, "id": id, "repeat": again });
                let mut preview = render_message_preview(*phone, content);
                if again {
                    preview.push_str("  repeat: sent even if the same message was sent less than a minute ago\n");
                }
                approvals.request_approval(&adapters, &key, &profile.name, &call, preview).await.map(Some)
            }
            None => Ok(None),
        };
        let used_approval = match approval {
            Ok(Some(ApprovalOutcome::Approved(approval))) => Some(approval),
            Ok(None) => None,
            Ok(Some(ApprovalOutcome::Pending(pending))) => {
                sending.recent.release(ledger.as_ref(), reservation).await;
                return Ok(pending);
            }
            Err(error) => {
                sending.recent.release(ledger.as_ref(), reservation).await;
                return Err(error);
            }
        };
        let send = async { single.confirm_in_advance(adapters).await?.send(interrupt).await };
        let result =
            send.await.map_or_else(|error| Err(refused_message_error(error, id)), |ended| render_outcome(&ended));
        if result.as_ref().is_err_and(|error| !error.might_have_been_sent()) {
            sending.recent.release(ledger.as_ref(), reservation).await;
            if let Some(approval) = used_approval {
                return_approval(ledger.as_ref(), approval).await?;
            }
        }
        result
    }
}

/// The error for a message that was refused before it was sent.
fn refused_message_error(error: Error, id: Option<u64>) -> ToolError {
    let tool_error = match error {
        Error::IdTaken => ToolError::new("id_taken", "an earlier call has already used this `id`").with_how_to(
            "nothing was sent; check the result of the earlier call, or call message_status. Send again without `id` \
             only if you are certain that the earlier message was not sent",
        ),
        Error::TooManyThisHour { next } => ToolError::too_many_sends(next),
        error => error.into(),
    };
    tool_error.with_id(id)
}

/// Renders the outcome of a message for the caller.
fn render_outcome(
    EndedOperation { id, state, skipped, outcome, stop, .. }: &EndedOperation,
) -> Result<Value, ToolError> {
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

/// The error for a message that was certainly not sent.
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

/// The identity of a message: its recipient and its content.
///
/// Words, letters and punctuation distinguish texts. Surrounding spaces, the number and kind of spaces and line breaks
/// between words, invisible characters and the encoding of letters do not, nor does the tool that sends the message.
/// Messages through a gateway on loopback have separate identities.
fn message_identity(phone: Phone, content: &MessageContent<Cow<'_, str>>, loopback: bool) -> Vec<u8> {
    let content = content.map_texts(|text| normalize_text(text));
    let content = serde_json::to_string(&content.stages).unwrap_or_default();
    format!("{loopback}\n{phone}\n{content}").into_bytes()
}

/// Normalizes a text: Unicode NFC, trimmed, without invisible characters, and one space for any spaces or line breaks.
fn normalize_text(text: &str) -> String {
    let is_control = |character: char| character.is_control() && !character.is_whitespace();
    let is_visible = |character: &char| !is_control(*character) && !is_invisible(*character);
    let composed: String = text.nfc().filter(is_visible).collect();
    composed.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The reservation for a message in the guard against repeats.
enum SendReservation {
    /// It is in the ledger, which all connectors share.
    Shared(RepeatReservation),
    /// It is in the memory of this process.
    Own(OwnReservation),
}

/// Recently sent messages of this process.
#[derive(Debug, Default)]
struct RecentMessages {
    hasher: RandomState,
    sent: Mutex<HashMap<u64, Instant>>,
}

/// The reservation for a message among those that this process sent recently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OwnReservation {
    /// The hash of the message.
    message: u64,
    /// The time at which the same message was last sent, if it was sent recently.
    previous: Option<Instant>,
}

impl RecentMessages {
    /// Makes a reservation in the guard against repeats for a message that is about to be sent. If the same message was
    /// sent less than a minute ago and `again` is not set, returns the time since then instead.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    async fn reserve(
        &self,
        ledger: &dyn Ledger,
        message: Vec<u8>,
        again: bool,
    ) -> Result<Result<SendReservation, Duration>, LedgerError> {
        let request = RepeatRequest::Reserve { message: message.clone(), again };
        Ok(match ledger.check_repeat(request).await? {
            RepeatCheck::Reserved(reservation) => Ok(SendReservation::Shared(reservation)),
            RepeatCheck::Repeated(elapsed) => Err(elapsed),
            RepeatCheck::Free | RepeatCheck::Unavailable => {
                self.reserve_in_process(message, again, Instant::now()).map(SendReservation::Own)
            }
        })
    }

    /// Returns the time since the same message was sent; `None` if it was not sent recently. Reserves nothing.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    async fn time_since_sent(&self, ledger: &dyn Ledger, message: Vec<u8>) -> Result<Option<Duration>, LedgerError> {
        let own_time = self.own_time_since_sent(&message, Instant::now());
        Ok(match ledger.check_repeat(RepeatRequest::Look(message)).await? {
            RepeatCheck::Repeated(elapsed) => Some(elapsed),
            RepeatCheck::Free | RepeatCheck::Reserved(_) | RepeatCheck::Unavailable => own_time,
        })
    }

    fn own_time_since_sent(&self, message: impl Hash, now: Instant) -> Option<Duration> {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = now.saturating_duration_since(*sent.get(&self.hasher.hash_one(message))?);
        Some(elapsed).filter(|elapsed| *elapsed < REPEAT_WINDOW)
    }

    /// Releases the reservation for a message that certainly was not sent. If this fails, it expires within a minute.
    async fn release(&self, ledger: &dyn Ledger, reservation: SendReservation) {
        match reservation {
            SendReservation::Own(reservation) => self.release_in_process(reservation),
            SendReservation::Shared(reservation) => {
                if let Err(error) = ledger.check_repeat(RepeatRequest::Release(reservation)).await {
                    tracing::warn!(
                        "a message was not sent, but its record could not be removed, so the same message will be \
                         rejected for a minute: {error}"
                    );
                }
            }
        }
    }

    /// Makes a reservation for a message in this process.
    ///
    /// # Errors
    /// The time since the same message was sent, if that is less than a minute and `again` is not set.
    fn reserve_in_process(&self, message: impl Hash, again: bool, now: Instant) -> Result<OwnReservation, Duration> {
        let message = self.hasher.hash_one(message);
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.retain(|_, at| now.saturating_duration_since(*at) < REPEAT_WINDOW);
        let previous = sent.get(&message).copied();
        match previous.filter(|_| !again) {
            Some(at) => Err(now.saturating_duration_since(at)),
            None => {
                sent.insert(message, now);
                Ok(OwnReservation { message, previous })
            }
        }
    }

    /// Releases a reservation in this process.
    fn release_in_process(&self, OwnReservation { message, previous }: OwnReservation) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        match previous {
            Some(at) => sent.insert(message, at),
            None => sent.remove(&message),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_core::domain::{Channel, ExtraProperties, FieldValue, OperationKind, Stage, StageValues};

    #[test]
    fn message_can_be_repeated_after_a_minute_or_if_not_sent() {
        let (recent, now) = (RecentMessages::default(), Instant::now());
        let later = |seconds| now + Duration::from_secs(seconds);
        let reservation = recent.reserve_in_process(("Hi", 380), false, now).unwrap();
        assert_eq!(recent.reserve_in_process(("Hi", 380), false, later(59)), Err(Duration::from_secs(59)));
        assert!(
            recent.reserve_in_process(("Hi", 381), false, now).is_ok()
                && recent.reserve_in_process(("Ho", 380), false, now).is_ok()
        );
        // A second message that was not sent does not affect the first.
        let second_reservation = recent.reserve_in_process(("Hi", 380), true, later(1)).unwrap();
        recent.release_in_process(second_reservation);
        assert_eq!(recent.reserve_in_process(("Hi", 380), false, later(2)), Err(Duration::from_secs(2)));
        recent.release_in_process(reservation);
        assert_eq!(recent.reserve_in_process(("Hi", 380), false, later(3)), Ok(reservation));
        assert_eq!(recent.reserve_in_process(("Hi", 380), false, later(63)), Ok(reservation));
        assert!(recent.sent.lock().unwrap().len() == 1, "older messages are removed");
    }

    #[test]
    fn normalization_removes_only_insignificant_differences() {
        for same in ["hi", "hi ", " hi", "\thi\r\n", "\u{a0}hi\u{2003}"] {
            assert_eq!(normalize_text(same), "hi", "{same:?}");
        }
        for invisible in
            ["h\u{200b}i", "hi\u{2060}", "\u{feff}hi", "h\u{ad}i\u{0}", "hi\u{e0041}", "\u{3164}hi\u{2800}"]
        {
            assert_eq!(normalize_text(invisible), "hi", "{invisible:?}");
        }
        assert_eq!(normalize_text("Two  words\r\nand\n\nlines"), "Two words and lines");
        assert_eq!(normalize_text("Киї\u{432}"), normalize_text("Киі\u{308}в"));
        for (first, second) in [("hi", "Hi"), ("hi", "h i"), ("hi", "hi!"), ("1 000", "1000"), ("i", "і")] {
            assert_ne!(normalize_text(first), normalize_text(second));
        }
    }

    #[test]
    fn message_identity_covers_recipient_content_and_loopback() {
        let content = |text: &'static str, signature: &'static str| {
            let mut values = StageValues::new(ExtraProperties::new());
            for field in Channel::Viber.facts().fields {
                match field.key {
                    "message" => values.set_value(field, FieldValue::Text(Cow::Borrowed(text))),
                    "signature" => values.set_value(field, FieldValue::Text(Cow::Borrowed(signature))),
                    "type" => values.set_value(field, FieldValue::Word("text")),
                    _ => {}
                }
            }
            let stage = Stage::of(Channel::Viber, values).unwrap();
            MessageContent { kind: OperationKind::Viber, stages: vec![stage] }
        };
        let phone = |last: u64| Phone::new(380_501_234_560 + last).unwrap();
        let identity = message_identity(phone(7), &content("hi", "OlenaCo"), false);
        assert_eq!(identity, message_identity(phone(7), &content(" hi\n", "OlenaCo"), false));
        for other in [
            message_identity(phone(8), &content("hi", "OlenaCo"), false),
            message_identity(phone(7), &content("ho", "OlenaCo"), false),
            message_identity(phone(7), &content("hi", "Olena"), false),
            message_identity(phone(7), &content("hi", "OlenaCo"), true),
        ] {
            assert_ne!(identity, other);
        }
    }
}
