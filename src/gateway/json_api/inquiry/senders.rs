//! The account's sender names (contract 2.5 and 4.3 `sender`).

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Inquiry;
use crate::gateway::json_api::words::{Words, records};

/// A sender name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The name.
    pub name: String,
    /// The gateway's word for its state; empty when it tells none. The set is open (contract 2.5).
    pub status: String,
}

/// Asks for the sender names.
#[derive(Clone, Copy, Debug)]
pub struct AskSenders;

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

impl Inquiry for AskSenders {
    type Answer = Vec<Sender>;
    const READS_ONLY: bool = true;

    fn operation(&self) -> Value {
        json!({ "type": "sender" })
    }

    fn read(&self, payload: Option<&RawValue>, words: &Words<'_>) -> Result<Vec<Sender>, &'static str> {
        let records: Vec<Record<'_>> = records(payload)?;
        let text = |raw| words.text(raw).unwrap_or_default();
        Ok(records.iter().map(|record| Sender { name: text(record.name), status: text(record.status) }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::answer;
    use super::*;

    #[test]
    fn names_come_with_their_states_and_a_missing_member_is_empty() {
        let data = r#"[{"name":"OlenaCo","status":"Checked"},{"name":"New Shop"},{"name":365,"status":null}]"#;
        let told: Vec<(String, String)> =
            answer(&AskSenders, data).unwrap().into_iter().map(|sender| (sender.name, sender.status)).collect();
        let expected = [("OlenaCo", "Checked"), ("New Shop", ""), ("365", "")];
        assert_eq!(told, expected.map(|(name, status)| (name.to_owned(), status.to_owned())));
        assert_eq!(answer(&AskSenders, "[]").unwrap(), []);
    }

    #[test]
    fn anything_but_a_list_of_records_is_no_list_of_names() {
        for data in ["null", "{}", r#"["OlenaCo"]"#, r#"[["OlenaCo","Checked"]]"#, r#""OlenaCo""#] {
            assert!(answer(&AskSenders, data).is_err(), "{data}");
        }
    }
}
