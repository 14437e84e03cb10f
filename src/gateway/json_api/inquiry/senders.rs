//! The account's sender names (contract 2.5 and 4.3 `sender`).

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Inquiry;
use crate::gateway::json_api::words::{RedactingReader, read_records};

/// A sender name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderName {
    /// The name.
    pub name: String,
    /// The gateway's word for its state; empty when it tells none. The set is open (contract 2.5).
    pub status: String,
}

/// Asks for the sender names.
#[derive(Clone, Copy, Debug)]
pub struct AskSenders;

#[derive(Deserialize)]
struct SenderPayload<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

impl Inquiry for AskSenders {
    type Answer = Vec<SenderName>;
    const READS_ONLY: bool = true;

    fn to_operation(&self) -> Value {
        json!({ "type": "sender" })
    }

    fn read_answer(
        &self,
        payload: Option<&RawValue>,
        words: &RedactingReader<'_>,
    ) -> Result<Vec<SenderName>, &'static str> {
        let records: Vec<SenderPayload<'_>> = read_records(payload)?;
        let text = |raw| words.read_text(raw).unwrap_or_default();
        Ok(records.iter().map(|record| SenderName { name: text(record.name), status: text(record.status) }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::read_payload;
    use super::*;

    #[test]
    fn sender_names_have_states_and_missing_members_are_empty() {
        let data = r#"[{"name":"OlenaCo","status":"Checked"},{"name":"New Shop"},{"name":365,"status":null}]"#;
        let told: Vec<(String, String)> =
            read_payload(&AskSenders, data).unwrap().into_iter().map(|sender| (sender.name, sender.status)).collect();
        let expected = [("OlenaCo", "Checked"), ("New Shop", ""), ("365", "")];
        assert_eq!(told, expected.map(|(name, status)| (name.to_owned(), status.to_owned())));
        assert_eq!(read_payload(&AskSenders, "[]").unwrap(), []);
    }

    #[test]
    fn only_a_list_of_records_is_a_list_of_senders() {
        for data in ["null", "{}", r#"["OlenaCo"]"#, r#"[["OlenaCo","Checked"]]"#, r#""OlenaCo""#] {
            assert!(read_payload(&AskSenders, data).is_err(), "{data}");
        }
    }
}
