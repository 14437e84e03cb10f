//! The journal of the sandbox, which shows what a gateway received, independently of the ledger.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use serde::Deserialize;

/// The messages that a gateway accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReceivedMessages {
    /// The number of messages.
    pub(super) sent: u64,
    /// How many of them went to a number that already had one.
    pub(super) duplicates: u64,
}

/// The members of a line that matter here.
#[derive(Deserialize)]
struct JournalLine<'l> {
    event: &'l str,
    phone: Option<&'l str>,
    #[serde(default)]
    success: bool,
}

/// Counts the messages in a journal.
///
/// # Errors
/// If it cannot be read.
pub(super) fn count_messages(journal: &Path) -> io::Result<ReceivedMessages> {
    let mut by_phone: BTreeMap<String, u64> = BTreeMap::new();
    for line in BufReader::new(File::open(journal)?).lines() {
        let line = line?;
        let JournalLine { event, phone, success } = serde_json::from_str(&line)?;
        if let ("operation", Some(phone), true) = (event, phone, success) {
            *by_phone.entry(phone.to_owned()).or_default() += 1;
        }
    }
    let sent = by_phone.values().sum();
    Ok(ReceivedMessages { sent, duplicates: sent - by_phone.len() as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_messages_and_duplicate_numbers_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal.jsonl");
        let operation = |phone: &str, success: bool| {
            format!("{{\"event\":\"operation\",\"type\":\"sms\",\"phone\":\"{phone}\",\"success\":{success}}}\n")
        };
        let asked = "{\"event\":\"operation\",\"type\":\"status\",\"success\":true}\n".to_owned();
        let lines = ["{\"event\":\"envelope\",\"operations\":3}\n".to_owned(), asked, operation("380500000001", true)];
        std::fs::write(&journal, lines.concat() + &operation("380500000002", false)).unwrap();
        assert_eq!(count_messages(&journal).unwrap(), ReceivedMessages { sent: 1, duplicates: 0 });
        let text = std::fs::read_to_string(&journal).unwrap() + &operation("380500000001", true);
        std::fs::write(&journal, text).unwrap();
        assert_eq!(count_messages(&journal).unwrap(), ReceivedMessages { sent: 2, duplicates: 1 });
    }
}
