//! The journal: every envelope and operation with its results, in order of execution.
//!
//! Tests use it to detect duplicate messages. An envelope is therefore written before its answer is sent, and survives
//! if a signal ends the process. The journal contains whole phone numbers.
//!
//! Each line is a JSON object. `"event":"envelope"` has `at`, `envelope` (its number, from 1), `endpoint`, `remote`,
//! `operations` (how many), `accepted`, and `error` or `request_id`. An accepted envelope is followed by a line
//! `"event":"operation"` for each recipient of each operation, or for the operation if it has none: `at`, `envelope`,
//! `index` (in `data`, from 0), `type`, `id` (as sent), `phone` (digits), `msg_id`, `parts`, `success` and `error`.
//!
//! `"event":"fault"` has `at`, `envelope` and `fault` (its name in a scenario), and follows the envelope whose answer
//! it changes. `refused` and `closed` follow the envelope after which the port acts, or have envelope number 0 if it
//! acts before the first one. Errors of items and faults of webhooks appear in their own lines.
//!
//! The other events have `at` and `msg_id` and are about one message:
//!
//! - `"event":"status"`: `id` (as sent), `type` (the channel) and `status`, for each change after acceptance, and for
//!   each channel of a fallback that fails before the next one is tried (which no `status` operation reports);
//! - `"event":"charge"`: `reason`, `amount` and `balance` (of the account, afterwards). `reserved` is the price of the
//!   most expensive stage on acceptance; `returned` is the unused part of the reservation, as a negative amount;
//!   `charged` is the price of a lookup or a verification call. The amounts of a message add up to its cost;
//! - `"event":"webhook"`: `url`, `status`, `attempt` (from 1) and `result`, the receiver's HTTP status or the reason
//!   why it did not respond.
//!
//! Members that do not apply are omitted.

use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::webhooks::WebhookOutcome;
use crate::platform::VirtualTime;
use crate::request::ClientId;
use campaign_core::domain::{Amount, Phone};
use campaign_core::private::{self, ExistingFile};

/// The destination of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Journal {
    /// No journal.
    #[default]
    Nowhere,
    /// In memory, readable from the running sandbox.
    Memory,
    /// Appended to this file, which only its owner can read.
    File(PathBuf),
}

/// An envelope that was received.
#[derive(Serialize)]
pub(super) struct EnvelopeLine<'a> {
    pub(super) at: VirtualTime,
    pub(super) envelope: u64,
    pub(super) endpoint: &'static str,
    pub(super) remote: SocketAddr,
    pub(super) operations: usize,
    pub(super) accepted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request_id: Option<&'a str>,
}

/// The reason for a change to a balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ChargeReason {
    /// The price of the most expensive stage, on acceptance.
    Reserved,
    /// The unused part of a reservation.
    Returned,
    /// The price of an operation that is answered at once.
    Charged,
}

/// A line of the journal. The module documentation describes its members.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum JournalLine<'a> {
    /// An envelope was received.
    Envelope(EnvelopeLine<'a>),
    /// An operation was executed or rejected, for one recipient.
    Operation {
        at: VirtualTime,
        envelope: u64,
        index: usize,
        #[serde(rename = "type")]
        kind: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a ClientId>,
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "serialize_phone")]
        phone: Option<Phone>,
        #[serde(skip_serializing_if = "Option::is_none")]
        msg_id: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parts: Option<u32>,
        success: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    },
    /// A fault of the scenario occurred.
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
    /// An attempt to send a webhook ended.
    Webhook {
        at: VirtualTime,
        msg_id: u64,
        url: &'a str,
        status: &'a str,
        attempt: usize,
        #[serde(serialize_with = "serialize_outcome")]
        result: &'a WebhookOutcome,
    },
}

impl JournalLine<'_> {
    /// A journal line for a charge of `amount`, after which the balance is `balance`.
    pub(super) fn charge(at: VirtualTime, msg_id: u64, reason: ChargeReason, amount: Amount, balance: Amount) -> Self {
        JournalLine::Charge { at, msg_id, reason, amount: amount.trim_decimals(), balance: balance.trim_decimals() }
    }
}

fn serialize_outcome<S: Serializer>(outcome: &WebhookOutcome, serializer: S) -> Result<S::Ok, S::Error> {
    match outcome {
        WebhookOutcome::Answered(status) => serializer.serialize_u16(*status),
        WebhookOutcome::Failed(reason) | WebhookOutcome::Refused(reason) => serializer.serialize_str(reason),
    }
}

fn serialize_phone<S: Serializer>(phone: &Option<Phone>, serializer: S) -> Result<S::Ok, S::Error> {
    phone.as_ref().map(Phone::to_string).serialize(serializer)
}

/// The lines of one envelope or one period; `None` without a journal.
pub(super) struct JournalLines(pub(super) Option<Vec<u8>>);

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
    /// A write failed. An incomplete journal proves nothing, so the journal stays closed.
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

    /// Starts the lines of the next envelope. Returns `None` if the journal is broken, in which case the caller must
    /// not execute the envelope.
    pub(super) fn start_lines(&self) -> Option<JournalLines> {
        match self {
            JournalSink::Nowhere => Some(JournalLines(None)),
            JournalSink::Memory(_) | JournalSink::File { .. } => Some(JournalLines(Some(Vec::new()))),
            JournalSink::Broken => None,
        }
    }

    /// Writes lines so that they survive this process. Returns whether the lines were written.
    pub(super) fn write_lines(&mut self, lines: &JournalLines) -> bool {
        let bytes = lines.0.as_deref().unwrap_or_default();
        match self {
            JournalSink::Nowhere => true,
            JournalSink::Memory(memory) => {
                memory.extend_from_slice(bytes);
                true
            }
            JournalSink::File { file, path } => {
                // Without `fsync`, the written bytes survive a crash of this process, but not of the machine.
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

    /// The lines of a journal in memory; the text is empty for any other journal.
    pub(super) fn memory_text(&self) -> String {
        match self {
            JournalSink::Memory(memory) => String::from_utf8_lossy(memory).into_owned(),
            JournalSink::Nowhere | JournalSink::File { .. } | JournalSink::Broken => String::new(),
        }
    }
}

fn open_private(path: &Path) -> io::Result<File> {
    let file = private::open_file(path, ExistingFile::Append)?;
    // The file might have existed with other permissions.
    private::restrict_to_owner(&file)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn journal_is_private_and_keeps_its_earlier_lines() {
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
