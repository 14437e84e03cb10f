//! Messages of errors that are made of several parts. Pure.

use std::fmt;

use jiff::Timestamp;

use super::RunPhase;
use crate::delivery::SingleKind;
use crate::domain::{LOOPBACK, format_count};
use crate::finding::{Finding, join_alternatives};
use crate::gateway::{FailureCause, InquiryFailure};
use crate::report::{LossSign, format_local_minute};

/// How many problems there are.
pub(super) fn count_problems(findings: &[Finding]) -> String {
    let errors = findings.iter().filter(|finding| finding.is_error()).count() as u64;
    let what =
        if errors > 0 { format_count(errors, "problem") + " found" } else { "the check is incomplete".to_owned() };
    format!("{what}; nothing was sent")
}

/// An inquiry without a good answer.
pub(super) fn describe_unanswered(gateway: &str, key: &str, failure: &InquiryFailure) -> String {
    let reason = &failure.reason;
    match failure.cause {
        FailureCause::KeyRefused => format!("{reason}; the profile `{gateway}` reads the key from {key}"),
        FailureCause::Refused => reason.clone(),
        FailureCause::NotConnected => format!("{reason}; no request was sent"),
        FailureCause::SlowDown(Some(wait)) => format!("{reason} for {} s", wait.as_secs()),
        FailureCause::SlowDown(None) => reason.clone(),
        FailureCause::TimedOut | FailureCause::Unclear => {
            format!("`{gateway}` gave no usable response: {reason}")
        }
    }
}

/// Names in a sentence.
pub(super) fn list_names(names: &[String]) -> String {
    join_alternatives(names.iter().map(String::as_str))
}

/// A campaign that another process has. Lookups and code calls are not campaigns.
pub(super) fn describe_busy(campaign: &str, gateway: &str, since: Option<Timestamp>) -> String {
    let since = since.map(|since| format!(" (started {})", format_local_minute(since))).unwrap_or_default();
    match SingleKind::from_name(campaign) {
        Some(_) => format!("another process is working on `{campaign}`{since}"),
        None => format!("another process is sending `{campaign}` through `{gateway}`{since}"),
    }
}

/// A run of single operations, which is never repeated as a whole.
pub(super) fn describe_single_run(run: &str) -> String {
    match SingleKind::from_name(run) {
        Some(SingleKind::Message) => {
            format!(
                "{run} contains messages from AI assistants; their contents are not stored, so they cannot be sent \
                 again"
            )
        }
        Some(SingleKind::Test) => format!("{run} contains test messages, which are not sent again"),
        _ => format!("{run} contains lookups or verification calls, which are not repeated"),
    }
}

/// Where a host is, for a sentence such as "the gateway was …".
#[must_use]
pub fn describe_host(host: &str) -> String {
    match host {
        LOOPBACK => "on this machine (loopback)".to_owned(),
        host => format!("at {host}"),
    }
}

/// Signs of a lost ledger.
pub(super) fn list_signs(signs: &[LossSign]) -> String {
    signs.iter().map(LossSign::to_string).collect::<Vec<_>>().join("; ")
}

impl fmt::Display for RunPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Preparing => f.write_str("interrupted; nothing was sent"),
            Self::Sending(messages) => write!(
                f,
                "interrupted twice while {} {} being sent; messages in flight are now in doubt and will not be sent \
                 again automatically; the results were not written",
                format_count(*messages, "message"),
                crate::domain::choose_plural(*messages, "was", "were")
            ),
            Self::Ending => f.write_str("interrupted twice after sending ended; the results might be incomplete"),
        }
    }
}
