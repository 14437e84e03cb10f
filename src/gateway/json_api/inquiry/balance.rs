//! The account's balance (contract 2.5 and 4.3 `balance`).

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Inquiry;
use crate::domain::Amount;
use crate::gateway::json_api::words::{RedactingReader, read_record};

/// What is left on the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balance {
    /// The amount, with the gateway's digits.
    pub amount: Amount,
    /// The currency's code; empty when the gateway tells none.
    pub currency: String,
}

/// Asks for the balance.
#[derive(Clone, Copy, Debug)]
pub struct AskBalance;

/// Asks for the balance to learn whether the gateway accepts the key; any answer to the question will do.
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
        // The number's own text: a float would round it. A string is read the same way.
        let amount = record.amount.and_then(|raw| raw.get().trim_matches('"').trim().parse().ok());
        let amount = amount.ok_or("has no numeric `amount`")?;
        Ok(Balance { amount, currency: words.read_text(record.currency).unwrap_or_default() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::read_payload;
    use super::*;

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
