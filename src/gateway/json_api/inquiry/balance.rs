//! The account's balance (contract 2.5 and 4.3 `balance`).

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Inquiry;
use crate::domain::Amount;
use crate::gateway::json_api::words::{Words, record};

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

    fn operation(&self) -> Value {
        AskBalance.operation()
    }

    fn read(&self, _payload: Option<&RawValue>, _words: &Words<'_>) -> Result<(), &'static str> {
        Ok(())
    }
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    amount: Option<&'a RawValue>,
    #[serde(borrow)]
    currency: Option<&'a RawValue>,
}

impl Inquiry for AskBalance {
    type Answer = Balance;
    const READS_ONLY: bool = true;

    fn operation(&self) -> Value {
        json!({ "type": "balance" })
    }

    fn read(&self, payload: Option<&RawValue>, words: &Words<'_>) -> Result<Balance, &'static str> {
        let record: Record<'_> = record(payload)?;
        // The number's own text: a float would round it. A string is read the same way.
        let amount = record.amount.and_then(|raw| raw.get().trim_matches('"').trim().parse().ok());
        let amount = amount.ok_or("has no numeric `amount`")?;
        Ok(Balance { amount, currency: words.text(record.currency).unwrap_or_default() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::answer;
    use super::*;

    #[test]
    fn the_amount_keeps_the_digits_of_the_gateway() {
        let table = [
            (r#"{"amount":1234.10,"currency":"UAH"}"#, "1234.10", "UAH"),
            (r#"{"amount":"0.30","currency":"EUR"}"#, "0.30", "EUR"),
            (r#"{"amount":100000000.123456789,"x":1}"#, "100000000.123456789", ""),
            (r#"{"amount":-5,"currency":null}"#, "-5", ""),
        ];
        for (data, digits, currency) in table {
            let balance = answer(&AskBalance, data).unwrap();
            assert_eq!((balance.amount.digits().as_str(), balance.currency.as_str()), (digits, currency), "{data}");
        }
    }

    #[test]
    fn a_balance_without_a_number_is_no_balance() {
        for data in ["{}", "[]", "null", "5", r#"{"amount":null}"#, r#"{"amount":"much"}"#, r#"{"amount":[1]}"#] {
            assert!(!answer(&AskBalance, data).unwrap_err().undone, "{data}");
        }
    }
}
