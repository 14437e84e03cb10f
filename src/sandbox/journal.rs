//! The journal: every envelope, every operation and what became of them, in the order in which it happened.
//!
//! It is what a test judges "sent twice" by, so an envelope stands in it before its answer leaves,
//! and it survives the end of the process by a signal. It holds whole phone numbers.
//!
//! Each line is a JSON object. `"event":"envelope"` has `at`, `envelope` (its number, from 1),
//! `endpoint`, `remote`, `operations` (how many), `accepted`, and `error` or `request_id`. After an
//! accepted envelope comes a line `"event":"operation"` for each recipient of each operation, or
//! for the operation if it has none: `at`, `envelope`, `index` (in `data`, from 0), `type`, `id`
//! (as sent), `phone` (digits), `msg_id`, `parts`, `success` and `error`.
//!
//! `"event":"fault"` has `at`, `envelope` and `fault`, its name in a scenario, and stands behind the envelope
//! whose answer it spoils. `refused` and `closed` stand behind the one after whose answer the door acts, and
//! under the number 0 if it acts before the first. Errors of items and faults of webhooks show in their own lines.
//!
//! The other events have `at` and `msg_id` and are about one message:
//!
//! - `"event":"status"`: `id` (as sent), `type` (the channel) and `status`, for each change after the intake, and
//!   for each channel of a fallback that fails before the next one is tried (which no `status` operation tells);
//! - `"event":"charge"`: `reason`, `amount` and `balance` (what the account has left). `reserved` is the price
//!   of the dearest stage, at the intake; `returned` what was reserved and not used, below zero; `charged` the
//!   price of a lookup or a code call. A message's amounts add up to what it cost;
//! - `"event":"webhook"`: `url`, `status` (the one that it tells), `attempt` (from 1) and `result`, the
//!   receiver's HTTP status or a text that says why there was none.
//!
//! What does not apply is absent.

use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::domain::{Amount, Phone};
use crate::private::{self, ExistingFile};
use crate::sandbox::platform::VirtualTime;
use crate::sandbox::request::ClientId;
use crate::sandbox::webhooks::WebhookOutcome;

/// Where the journal goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Journal {
    /// Nowhere.
    #[default]
    Nowhere,
    /// Into memory, to be read from the running sandbox.
    Memory,
    /// Behind what is already in this file, which is readable by its owner alone.
    File(PathBuf),
}

/// An envelope that was received.
#[derive(Serialize)]
pub(super) struct EnvelopeLine<'a> {
    pub at: VirtualTime,
    pub envelope: u64,
    pub endpoint: &'static str,
    pub remote: SocketAddr,
    pub operations: usize,
    pub accepted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a str>,
}

/// Why a balance changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ChargeReason {
    /// The price of the dearest stage, at the intake.
    Reserved,
    /// What was reserved and not used.
    Returned,
    /// The price of what is known at once.
    Charged,
}

/// A line of the journal; the module says what its members mean.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum JournalLine<'a> {
    /// An envelope was received.
    Envelope(EnvelopeLine<'a>),
    /// An operation was executed or refused, for one recipient.
    Operation {
        at: VirtualTime,
        envelope: u64,
        index: usize,
        #[serde(rename = "type")]
        kind: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a ClientId>,
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "digits")]
        phone: Option<Phone>,
        #[serde(skip_serializing_if = "Option::is_none")]
        msg_id: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parts: Option<u32>,
        success: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    },
    /// A fault of the scenario was played.
    Fault { at: VirtualTime, envelope: u64, fault: &'static str },
    /// A message's status changed.
    Status {
        at: VirtualTime,
        msg_id: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a ClientId>,
        #[serde(rename = "type")]
        channel: &'static str,
        status: &'a str,
    },
    /// An account's balance changed.
    Charge { at: VirtualTime, msg_id: u64, reason: ChargeReason, amount: Amount, balance: Amount },
    /// A try to send a webhook ended.
    Webhook {
        at: VirtualTime,
        msg_id: u64,
        url: &'a str,
        status: &'a str,
        attempt: usize,
        #[serde(serialize_with = "posted")]
        result: &'a WebhookOutcome,
    },
}

impl JournalLine<'_> {
    /// A balance changed by `amount`, and is `balance` now.
    pub(super) fn charge(at: VirtualTime, msg_id: u64, reason: ChargeReason, amount: Amount, balance: Amount) -> Self {
        JournalLine::Charge { at, msg_id, reason, amount: amount.trim_decimals(), balance: balance.trim_decimals() }
    }
}

fn posted<S: Serializer>(outcome: &WebhookOutcome, serializer: S) -> Result<S::Ok, S::Error> {
    match outcome {
        WebhookOutcome::Answered(status) => serializer.serialize_u16(*status),
        WebhookOutcome::Failed(reason) | WebhookOutcome::Refused(reason) => serializer.serialize_str(reason),
    }
}

fn digits<S: Serializer>(phone: &Option<Phone>, serializer: S) -> Result<S::Ok, S::Error> {
    phone.as_ref().map(Phone::to_string).serialize(serializer)
}

/// The lines of one envelope or of a stretch of time; none if nobody reads them.
pub(super) struct JournalLines(pub Option<Vec<u8>>);

impl JournalLines {
    /// Adds a line.
    pub(super) fn push_line(&mut self, line: &JournalLine) {
        if let Some(bytes) = &mut self.0 {
            serde_json::to_writer(&mut *bytes, line).expect("a line without maps is always JSON");
            bytes.push(b'\n');
        }
    }
}

/// The open journal.
pub(super) enum JournalSink {
    Nowhere,
    Memory(Vec<u8>),
    File {
        file: File,
        path: PathBuf,
    },
    /// A write failed; a journal with a hole proves nothing, so it stays closed.
    Broken,
}

impl JournalSink {
    /// Opens the journal.
    pub(super) fn open(journal: &Journal) -> io::Result<Self> {
        match journal {
            Journal::Nowhere => Ok(JournalSink::Nowhere),
            Journal::Memory => Ok(JournalSink::Memory(Vec::new())),
            Journal::File(path) => {
                let file = open_private(path).map_err(|error| {
                    io::Error::new(error.kind(), format!("cannot open the journal `{}`: {error}", path.display()))
                })?;
                Ok(JournalSink::File { file, path: path.clone() })
            }
        }
    }

    /// Lines for the next envelope; nothing if the journal is broken and it cannot be executed.
    pub(super) fn start_lines(&self) -> Option<JournalLines> {
        match self {
            JournalSink::Nowhere => Some(JournalLines(None)),
            JournalSink::Memory(_) | JournalSink::File { .. } => Some(JournalLines(Some(Vec::new()))),
            JournalSink::Broken => None,
        }
    }

    /// Keeps the lines of an envelope, out of this process's reach; tells whether it could.
    pub(super) fn write_lines(&mut self, lines: &JournalLines) -> bool {
        let bytes = lines.0.as_deref().unwrap_or_default();
        match self {
            JournalSink::Nowhere => true,
            JournalSink::Memory(kept) => {
                kept.extend_from_slice(bytes);
                true
            }
            JournalSink::File { file, path } => {
                // One write into the system's cache: it outlives this process, though not the machine.
                let written = file.write_all(bytes);
                if let Err(error) = &written {
                    tracing::error!(
                        "cannot write the journal `{}`: {error}; free up disk space and restart the sandbox; until \
                         then, it does not respond",
                        path.display()
                    );
                    *self = JournalSink::Broken;
                }
                written.is_ok()
            }
            JournalSink::Broken => false,
        }
    }

    /// The lines of a journal in memory; empty for any other.
    pub(super) fn memory_text(&self) -> String {
        match self {
            JournalSink::Memory(kept) => String::from_utf8_lossy(kept).into_owned(),
            JournalSink::Nowhere | JournalSink::File { .. } | JournalSink::Broken => String::new(),
        }
    }
}

fn open_private(path: &Path) -> io::Result<File> {
    let file = private::open_file(path, ExistingFile::Append)?;
    // It may have been there already, and open to others.
    private::restrict_to_owner(&file)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn journal_is_appended_and_private() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal.jsonl");
        std::fs::write(&path, "before\n").expect("a file");
        let mut sink = JournalSink::open(&Journal::File(path.clone())).expect("open");
        assert!(sink.write_lines(&JournalLines(Some(b"after\n".to_vec()))));
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "before\nafter\n");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn journal_open_error_names_the_path() {
        let error = JournalSink::open(&Journal::File("/no/such/folder/journal".into())).err().expect("refused");
        assert!(error.to_string().starts_with("cannot open the journal `/no/such/folder/journal`: "), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn journal_is_not_written_after_a_failed_write() {
        let mut sink = JournalSink::open(&Journal::File("/dev/full".into())).expect("open");
        assert!(sink.start_lines().is_some());
        assert!(!sink.write_lines(&JournalLines(Some(b"line\n".to_vec()))));
        assert!(sink.start_lines().is_none());
        assert!(!sink.write_lines(&JournalLines(None)));
    }
}
