//! Inquiries about the account: balance and sender names (contract 2.5 and 4.3).

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Inquiry;
use crate::json_api::members::{RedactingReader, read_record, read_records};
use campaign_core::domain::Amount;

/// The balance of the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balance {
    /// The amount, with the gateway's digits.
    pub amount: Amount,
    /// The currency code, or empty if not reported.
    pub currency: String,
}

/// The amount, followed by the currency if it was reported.
impl fmt::Display for Balance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(format!("{} {}", self.amount, self.currency).trim_end())
    }
}

/// Asks for the balance.
#[derive(Clone, Copy, Debug)]
pub struct AskBalance;

/// Asks for the balance to check the key; any answer will do.
#[derive(Clone, Copy, Debug)]
pub struct CheckKey;

impl Inquiry for CheckKey {
    type Answer = ();
    const READS_ONLY: bool = true;

    fn to_operation(&self) -> Value {
        AskBalance.to_operation()
    }

    fn read_answer(&self, _payload: Option<&RawValue>, _words: &RedactingReader<'_>) -> Result<(), &'static str> {
        Ok(())
    }
}

#[derive(Deserialize)]
struct BalancePayload<'a> {
    #[serde(borrow)]
    amount: Option<&'a RawValue>,
    #[serde(borrow)]
    currency: Option<&'a RawValue>,
}

impl Inquiry for AskBalance {
    type Answer = Balance;
    const READS_ONLY: bool = true;

    fn to_operation(&self) -> Value {
        json!({ "type": "balance" })
    }

    fn read_answer(&self, payload: Option<&RawValue>, words: &RedactingReader<'_>) -> Result<Balance, &'static str> {
        let record: BalancePayload<'_> = read_record(payload)?;
        // Parsed from the number's own text, because a float would round it. A string is read the same way.
        let amount = record.amount.and_then(|raw| raw.get().trim_matches('"').trim().parse().ok());
        let amount = amount.ok_or("has no numeric `amount`")?;
        Ok(Balance { amount, currency: words.read_text(record.currency).unwrap_or_default() })
    }
}

/// A sender name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderName {
    /// The name.
    pub name: String,
    /// The gateway's name of its state, or empty if not reported. The set is open (contract 2.5).
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
mod balance_tests {
    use super::*;
    use crate::json_api::inquiry::tests::read_payload;

    #[test]
    fn amount_keeps_the_digits_of_the_gateway() {
        let table = [
            (r#"{"amount":1234.10,"currency":"UAH"}"#, "1234.10", "UAH"),
            (r#"{"amount":"0.30","currency":"EUR"}"#, "0.30", "EUR"),
            (r#"{"amount":100000000.123456789,"x":1}"#, "100000000.123456789", ""),
            (r#"{"amount":-5,"currency":null}"#, "-5", ""),
        ];
        for (data, digits, currency) in table {
            let balance = read_payload(&AskBalance, data).unwrap();
            assert_eq!(
                (balance.amount.to_json_digits().as_str(), balance.currency.as_str()),
                (digits, currency),
                "{data}"
            );
        }
    }

    #[test]
    fn balance_without_a_number_is_rejected() {
        for data in ["{}", "[]", "null", "5", r#"{"amount":null}"#, r#"{"amount":"much"}"#, r#"{"amount":[1]}"#] {
            assert!(!read_payload(&AskBalance, data).unwrap_err().undone, "{data}");
        }
    }
}

#[cfg(test)]
mod senders_tests {
    use super::*;
    use crate::json_api::inquiry::tests::read_payload;

    #[test]
    fn senders_are_read_with_statuses_and_missing_members_are_empty() {
        let data = r#"[{"name":"OlenaCo","status":"Checked"},{"name":"New Shop"},{"name":365,"status":null}]"#;
        let senders_and_states: Vec<(String, String)> =
            read_payload(&AskSenders, data).unwrap().into_iter().map(|sender| (sender.name, sender.status)).collect();
        let expected = [("OlenaCo", "Checked"), ("New Shop", ""), ("365", "")];
        assert_eq!(senders_and_states, expected.map(|(name, status)| (name.to_owned(), status.to_owned())));
        assert_eq!(read_payload(&AskSenders, "[]").unwrap(), []);
    }

    #[test]
    fn sender_list_must_be_an_array_of_objects() {
        for data in ["null", "{}", r#"["OlenaCo"]"#, r#"[["OlenaCo","Checked"]]"#, r#""OlenaCo""#] {
            assert!(read_payload(&AskSenders, data).is_err(), "{data}");
        }
    }
}
