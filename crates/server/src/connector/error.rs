//! Tool errors: gateway errors, business rules and invalid arguments.
//!
//! Errors of a tool call are results of the tool, not protocol errors, so that a model can read them and react.

use std::time::Duration;

use jiff::{Timestamp, Zoned};
use serde_json::{Value, json};

use campaign_core::finding::escape_to_one_line;
use campaign_gateway::{FailureCause, InquiryFailure};
use campaign_runs::{Error, PolicyRefusal};

/// An error of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolError {
    /// The message, on one line.
    error: String,
    /// The machine-readable error code.
    code: &'static str,
    /// Whether the same call might succeed later.
    retryable: bool,
    /// The hint for the caller.
    how_to: Option<String>,
    /// The identifier of the message.
    id: Option<u64>,
    /// The time at which the sending window opens.
    opens_at: Option<Box<Zoned>>,
    /// All reasons, if there are several.
    problems: Vec<String>,
}

impl ToolError {
    /// A permanent error.
    pub(super) fn new(code: &'static str, error: impl AsRef<str>) -> Self {
        // A gateway's text must stay on one line, so that it cannot imitate other output.
        Self {
            error: escape_to_one_line(error.as_ref()),
            code,
            retryable: false,
            how_to: None,
            id: None,
            opens_at: None,
            problems: Vec::new(),
        }
    }

    /// Adds advice on what to do about the error.
    pub(super) fn with_how_to(self, how_to: impl Into<String>) -> Self {
        Self { how_to: Some(how_to.into()), ..self }
    }

    /// The first error, which lists the messages of all errors if there are several; `None` if there are no errors.
    pub(super) fn first_of(errors: Vec<Self>) -> Option<Self> {
        let problems: Vec<String> = errors.iter().map(Self::message).collect();
        let first = errors.into_iter().next()?;
        Some(if problems.len() > 1 { Self { problems, ..first } } else { first })
    }

    /// The error message, on one line.
    pub(super) fn message(&self) -> String {
        self.error.clone()
    }

    /// Whether the error only reports an exhausted rate limit.
    pub(super) fn is_rate_limit(&self) -> bool {
        self.code == "rate_limited"
    }

    /// The error for a call without a key.
    pub(super) fn missing_key() -> Self {
        let how_to = "send the header `Authorization: Bearer API_KEY` with each call";
        Self::new("no_api_key", "Access denied").with_how_to(how_to)
    }

    /// The error for an invalid argument.
    pub(super) fn invalid_argument(reason: impl AsRef<str>) -> Self {
        Self::new("invalid_argument", reason).with_how_to("check the tool's input schema, then call it again")
    }

    /// The error for a caller who exceeds the rate limit.
    pub(super) fn rate_limited(wait: Option<Duration>) -> Self {
        let seconds = wait.map_or(1, |wait| wait.as_secs() + 1);
        let error = format!("too many calls; wait {seconds} s");
        Self { retryable: true, ..Self::new("rate_limited", error) }
            .with_how_to(format!("call the tool again after {seconds} s"))
    }

    /// The error for a key that the gateway does not accept.
    pub(super) fn key_refused() -> Self {
        Self::new("access_denied", "Access denied")
            .with_how_to("the gateway does not accept this API key; ask the person who set up the key")
    }

    /// Whether the gateway rejected the key.
    pub(super) fn is_key_refused(&self) -> bool {
        self.code == "access_denied"
    }

    /// The error for a message that repeats a message sent to the same phone number this many seconds ago.
    pub(super) fn repeated_message(seconds: u64) -> Self {
        let error = format!("the same message was sent to this number {seconds} s ago");
        Self::new("repeated", error).with_how_to(
            "nothing was sent; if the user wants a second message, call the tool again \
             with `repeat: true`",
        )
    }

    /// The error for a message that exceeds the hourly limit; the next message is allowed at `allowed_at`.
    pub(super) fn too_many_sends(allowed_at: Timestamp) -> Self {
        let wait = Duration::try_from(allowed_at.duration_since(Timestamp::now())).unwrap_or_default().as_secs() + 1;
        let error = format!("the hourly message limit has been reached; wait {wait} s");
        Self { retryable: true, ..Self::new("rate_limited", error) }
            .with_how_to(format!("nothing was sent; try again after {wait} s"))
    }

    /// The error for a lookup that exceeds the hourly limit; the next lookup is allowed at `allowed_at`.
    pub(super) fn too_many_lookups(allowed_at: Timestamp) -> Self {
        let wait = Duration::try_from(allowed_at.duration_since(Timestamp::now())).unwrap_or_default().as_secs() + 1;
        let error = format!("the hourly lookup limit has been reached; wait {wait} s");
        Self { retryable: true, ..Self::new("rate_limited", error) }.with_how_to(format!(
            "no number was looked up; try again after {wait} s, or ask the person who set up the connector"
        ))
    }

    /// The error for a message while the sending window is closed.
    pub(super) fn outside_window(opens: Option<&Zoned>) -> Self {
        let Some(opens) = opens else {
            let error = "the sending window is closed and does not open within a year";
            return Self::new("outside_window", error).with_how_to("nothing was sent; tell the user");
        };
        let zone = opens.time_zone().iana_name().map_or_else(|| opens.offset().to_string(), str::to_owned);
        let time = format!("{} ({zone})", opens.strftime("%Y-%m-%d %H:%M"));
        let error = format!("the sending window is closed; it opens at {time}");
        Self { retryable: true, opens_at: Some(Box::new(opens.clone())), ..Self::new("outside_window", error) }
            .with_how_to(format!("nothing was sent; tell the user, and call this tool again at {time} or later"))
    }

    /// The error for a message to a recipient who opted out.
    pub(super) fn opted_out() -> Self {
        Self::new("opted_out", "this number is on the suppression list or in a `suppress` file")
            .with_how_to("nothing was sent; tell the user, and do not try another way")
    }

    /// The error for a single message, which has no recorded consent, if the operator requires consent.
    pub(super) fn no_consent() -> Self {
        let error = "the operator requires the recipient's consent, but single messages have no recorded consent";
        Self::new("no_consent", error)
            .with_how_to("nothing was sent; tell the user: only a campaign with `consent` can send it")
    }

    /// The error for a message to a recipient who has reached a message cap.
    pub(super) fn cap_reached() -> Self {
        let error = "this number has reached the operator's message cap";
        Self::new("cap_reached", error)
            .with_how_to("nothing was sent; tell the user, and do not retry now: the cap resets later")
    }

    /// The error for a message that might have been sent, but whose outcome is unknown.
    pub(super) fn unknown_outcome(id: Option<u64>) -> Self {
        let error = "the message was passed to the gateway, but its outcome is unknown: it might have been sent";
        let with_id = id.map_or_else(String::new, |id| format!(" with id {id}"));
        Self::new("unknown_outcome", error)
            .with_how_to(format!(
                "do not send it again; call message_status{with_id} first, or ask the person who runs the connector"
            ))
            .with_id(id)
    }

    /// Adds another hint to the advice.
    pub(super) fn with_more_how_to(self, more: &str) -> Self {
        let how_to = self.how_to.as_ref().map_or_else(|| more.to_owned(), |how_to| format!("{how_to}; {more}"));
        self.with_how_to(how_to)
    }

    /// Adds the identifier of the message.
    pub(super) fn with_id(self, id: Option<u64>) -> Self {
        Self { id, ..self }
    }

    /// Whether the action might have been carried out anyway.
    pub(super) fn might_have_been_sent(&self) -> bool {
        self.code == "unknown_outcome"
    }

    /// A temporary error.
    pub(super) fn retryable(code: &'static str, error: &str) -> Self {
        Self { retryable: true, ..Self::new(code, error) }.with_how_to("call it again later")
    }

    /// The machine-readable error code.
    pub(super) fn code(&self) -> &'static str {
        self.code
    }

    /// The error as JSON.
    pub(super) fn to_json(&self) -> Value {
        let mut body = json!({ "error": self.error, "code": self.code, "retryable": self.retryable });
        if let Some(how_to) = &self.how_to {
            body["how_to"] = json!(how_to);
        }
        if let Some(id) = self.id {
            body["id"] = json!(id);
        }
        if !self.problems.is_empty() {
            body["problems"] = json!(self.problems);
        }
        if let Some(opens) = &self.opens_at {
            body["opens_at"] = json!(opens.to_string());
        }
        body
    }
}

impl From<InquiryFailure> for ToolError {
    /// Converts a failed inquiry, which is retryable unless the gateway rejected the inquiry or its key.
    fn from(failure: InquiryFailure) -> Self {
        let reason = failure.gateway_text.as_deref().unwrap_or(&failure.reason);
        match failure.cause {
            FailureCause::KeyRefused => Self::key_refused(),
            FailureCause::Refused => Self::new("platform_error", reason),
            FailureCause::NotConnected => Self::retryable("unreachable", &failure.reason),
            FailureCause::SlowDown(wait) => Self::rate_limited(wait),
            FailureCause::TimedOut => Self::retryable("timeout", &failure.reason),
            FailureCause::Unclear => Self::retryable("no_answer", &failure.reason),
        }
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        match error {
            Error::Unanswered { failure, .. } => failure.into(),
            Error::TooManyInquiries { wait } => Self::rate_limited(Some(wait)),
            Error::HostChanged { .. } => {
                Self::new("gateway_changed", "the gateway's address has changed since it was trusted")
                    .with_how_to("the connector's operator must trust the new address first")
            }
            Error::WeakerApproval(_) => Self::new(
                "gateway_changed",
                "the gateway's `approval` is weaker than the rule in the ledger for its account",
            )
            .with_how_to("the connector's operator must restore the rule, or accept the change in a terminal"),
            Error::Input(why) => Self::invalid_argument(why),
            Error::Policy(refusal) => match refusal {
                PolicyRefusal::OutsideWindow { opens } => Self::outside_window(opens.as_ref()),
                PolicyRefusal::Suppressed(..) => Self::opted_out(),
                PolicyRefusal::NoConsent(_) => Self::no_consent(),
                PolicyRefusal::Capped => Self::cap_reached(),
                PolicyRefusal::Mandatory { .. } => Self::new("not_allowed", "the profile forbids mandatory messages"),
                PolicyRefusal::OutsideCountries { allowed, .. } => Self::new(
                    "country",
                    format!("the gateway profile allows messages only to these countries: {allowed}"),
                )
                .with_how_to("check the number; nothing can be sent to it through this gateway"),
                PolicyRefusal::TooManyTests { .. } | PolicyRefusal::UnapprovedTests { .. } => {
                    Self::new("not_allowed", "assistants cannot send test messages")
                }
            },
            Error::Ledger(error) => {
                tracing::error!("the ledger cannot be used: {error}; repair it, then restart the connector");
                Self::new(
                    "internal",
                    "the connector cannot use its ledger; its operator must repair the ledger and restart the \
                     connector",
                )
            }
            other => {
                tracing::error!("a tool call failed: {other}");
                Self::new("internal", "the connector failed; its operator can find the cause in the log")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inquiry_failure_says_whether_it_is_retryable() {
        let failed = |cause| InquiryFailure { cause, reason: "why".into(), gateway_text: None, not_executed: true };
        for (cause, code, retryable) in [
            (FailureCause::KeyRefused, "access_denied", false),
            (FailureCause::Refused, "platform_error", false),
            (FailureCause::NotConnected, "unreachable", true),
            (FailureCause::TimedOut, "timeout", true),
            (FailureCause::SlowDown(Some(Duration::from_secs(3))), "rate_limited", true),
            (FailureCause::Unclear, "no_answer", true),
        ] {
            let error = ToolError::from(failed(cause));
            assert_eq!((error.code, error.retryable), (code, retryable), "{cause:?}");
        }
    }
}
