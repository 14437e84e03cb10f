//! Inquiries about the account: balance, sender names, and templates for SMS and Viber (contract 2.5 and 4.3).

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Inquiry;
use crate::json_api::members::{RedactingReader, read_record, read_records, read_whole_number};
use campaign_core::domain::{Amount, GatewayMessageId};

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

/// An SMS template. Members that are not reported are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SmsTemplate {
    /// The gateway's identifier for the template.
    pub id: Option<GatewayMessageId>,
    /// Its name.
    pub name: Option<String>,
    /// Its text.
    pub text: Option<String>,
    /// Two numbers separated by a slash, as the gateway writes them (contract 2.5).
    pub count: Option<String>,
    /// The time of creation, in the gateway's text (ISO 8601 with offset).
    pub created: Option<String>,
}

/// Lists the SMS templates.
#[derive(Clone, Copy, Debug)]
pub struct ListSmsTemplates;

/// Creates an SMS template.
#[derive(Clone, Debug)]
pub struct CreateSmsTemplate {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Deletes an SMS template. The contract shows no fields; these are the fields of a Viber template.
#[derive(Clone, Copy, Debug)]
pub struct DeleteSmsTemplate {
    /// The gateway's identifier for the template.
    pub id: u64,
}

#[derive(Deserialize)]
struct SmsTemplatePayload<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    template: Option<&'a RawValue>,
    #[serde(borrow)]
    count: Option<&'a RawValue>,
    #[serde(borrow)]
    datetime: Option<&'a RawValue>,
}

/// The number of deleted templates (contract 2.5), which a gateway can omit.
#[derive(Deserialize)]
pub(super) struct Deletion<'a> {
    #[serde(borrow)]
    deleted: Option<&'a RawValue>,
}

impl Deletion<'_> {
    /// Reads from the payload of a successful deletion how many records were deleted. `None` if the payload reports no
    /// count.
    ///
    /// # Errors
    /// If the payload is not an object and therefore proves nothing.
    pub(super) fn read(payload: Option<&RawValue>) -> Result<Option<u64>, &'static str> {
        Ok(read_record::<Deletion<'_>>(payload)?.deleted.and_then(read_whole_number))
    }
}

fn to_sms_template(record: &SmsTemplatePayload<'_>, words: &RedactingReader<'_>) -> SmsTemplate {
    SmsTemplate {
        id: words.read_id(record.id),
        name: words.read_text(record.name),
        text: words.read_whole_text(record.template),
        count: words.read_text(record.count),
        created: words.read_text(record.datetime),
    }
}

impl Inquiry for ListSmsTemplates {
    type Answer = Vec<SmsTemplate>;
    const READS_ONLY: bool = true;

    fn to_operation(&self) -> Value {
        json!({ "type": "template/list" })
    }

    fn read_answer(
        &self,
        payload: Option<&RawValue>,
        words: &RedactingReader<'_>,
    ) -> Result<Vec<SmsTemplate>, &'static str> {
        let records: Vec<SmsTemplatePayload<'_>> = read_records(payload)?;
        Ok(records.iter().map(|record| to_sms_template(record, words)).collect())
    }
}

impl Inquiry for CreateSmsTemplate {
    type Answer = SmsTemplate;
    const READS_ONLY: bool = false;

    fn to_operation(&self) -> Value {
        json!({ "type": "template/create", "name": self.name, "template": self.text })
    }

    fn read_answer(
        &self,
        payload: Option<&RawValue>,
        words: &RedactingReader<'_>,
    ) -> Result<SmsTemplate, &'static str> {
        let created = to_sms_template(&read_record(payload)?, words);
        if created.id.is_some() { Ok(created) } else { Err("has no identifier") }
    }
}

impl Inquiry for DeleteSmsTemplate {
    /// The number of deleted templates. `None` if not reported.
    type Answer = Option<u64>;
    const READS_ONLY: bool = false;

    fn to_operation(&self) -> Value {
        json!({ "type": "template/delete", "id": self.id })
    }

    fn read_answer(&self, payload: Option<&RawValue>, _: &RedactingReader<'_>) -> Result<Option<u64>, &'static str> {
        Deletion::read(payload)
    }
}

/// A Viber template. Members that are not reported are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViberTemplate {
    /// The gateway's identifier for the template.
    pub id: Option<GatewayMessageId>,
    /// The sender name that it is for.
    pub signature: Option<String>,
    /// Its text.
    pub text: Option<String>,
    /// The gateway's name of its state. The set is open (contract 2.5).
    pub status: Option<String>,
}

/// Lists the Viber templates.
#[derive(Clone, Copy, Debug)]
pub struct ListViberTemplates;

/// Creates a Viber template. The contract shows no fields; these are the fields of the list.
#[derive(Clone, Debug)]
pub struct CreateViberTemplate {
    /// The sender name that it is for.
    pub signature: String,
    /// Its text.
    pub text: String,
}

/// Deletes a Viber template, which needs its identifier and its text (contract 4.3).
#[derive(Clone, Debug)]
pub struct DeleteViberTemplate {
    /// The gateway's identifier for the template.
    pub id: u64,
    /// Its text.
    pub text: String,
}

#[derive(Deserialize)]
struct ViberTemplatePayload<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    signature: Option<&'a RawValue>,
    #[serde(borrow)]
    template: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

fn to_viber_template(record: &ViberTemplatePayload<'_>, words: &RedactingReader<'_>) -> ViberTemplate {
    ViberTemplate {
        id: words.read_id(record.id),
        signature: words.read_text(record.signature),
        text: words.read_whole_text(record.template),
        status: words.read_text(record.status),
    }
}

impl Inquiry for ListViberTemplates {
    type Answer = Vec<ViberTemplate>;
    const READS_ONLY: bool = true;

    fn to_operation(&self) -> Value {
        json!({ "type": "template/viber/list" })
    }

    fn read_answer(
        &self,
        payload: Option<&RawValue>,
        words: &RedactingReader<'_>,
    ) -> Result<Vec<ViberTemplate>, &'static str> {
        let records: Vec<ViberTemplatePayload<'_>> = read_records(payload)?;
        Ok(records.iter().map(|record| to_viber_template(record, words)).collect())
    }
}

impl Inquiry for CreateViberTemplate {
    type Answer = ViberTemplate;
    const READS_ONLY: bool = false;

    fn to_operation(&self) -> Value {
        json!({ "type": "template/viber/create", "signature": self.signature, "template": self.text })
    }

    fn read_answer(
        &self,
        payload: Option<&RawValue>,
        words: &RedactingReader<'_>,
    ) -> Result<ViberTemplate, &'static str> {
        let created = to_viber_template(&read_record(payload)?, words);
        if created.id.is_some() { Ok(created) } else { Err("has no identifier") }
    }
}

impl Inquiry for DeleteViberTemplate {
    /// The number of deleted templates. `None` if not reported.
    type Answer = Option<u64>;
    const READS_ONLY: bool = false;

    fn to_operation(&self) -> Value {
        json!({ "type": "template/viber/delete", "id": self.id, "template": self.text })
    }

    fn read_answer(&self, payload: Option<&RawValue>, _: &RedactingReader<'_>) -> Result<Option<u64>, &'static str> {
        Deletion::read(payload)
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

#[cfg(test)]
mod sms_templates_tests {
    use super::*;
    use crate::json_api::inquiry::tests::read_payload;

    #[test]
    fn templates_are_read_with_the_reported_members() {
        let data = r#"[{"id":5,"name":"Sale","template":"Hi, %name%","count":"8 / 1",
            "datetime":"2026-11-21T10:00:00+02:00"},{"id":"6","template":"Bye"}]"#;
        let templates = read_payload(&ListSmsTemplates, data).unwrap();
        assert_eq!(
            (templates[0].id.clone(), templates[0].count.as_deref()),
            (Some(GatewayMessageId::Number(5)), Some("8 / 1"))
        );
        assert_eq!((templates[1].name.as_deref(), templates[1].text.as_deref()), (None, Some("Bye")));
        let create = CreateSmsTemplate { name: "Sale".into(), text: "Hi".into() };
        assert_eq!(read_payload(&create, r#"{"id":7,"count":"2 / 1"}"#).unwrap().id, Some(GatewayMessageId::Number(7)));
        for nothing in ["[]", "null", "{}", "7", r#"{"id":""}"#] {
            assert!(read_payload(&create, nothing).is_err(), "{nothing} names no template");
        }
    }

    #[test]
    fn deletion_reports_the_deleted_count_if_present() {
        for (data, expected) in [(r#"{"deleted":1}"#, Some(1)), (r#"{"deleted":"0"}"#, Some(0)), ("{}", None)] {
            assert_eq!(read_payload(&DeleteSmsTemplate { id: 5 }, data).unwrap(), expected, "{data}");
        }
        for nothing in ["[]", "null", "1"] {
            assert!(read_payload(&DeleteSmsTemplate { id: 5 }, nothing).is_err(), "{nothing}");
        }
    }
}

#[cfg(test)]
mod viber_templates_tests {
    use super::*;
    use crate::json_api::inquiry::tests::read_payload;

    #[test]
    fn templates_are_read_with_the_reported_members() {
        let data = r#"[{"id":"3","template":"Hi","signature":"OlenaCo","status":"approved"},{"id":4}]"#;
        let templates = read_payload(&ListViberTemplates, data).unwrap();
        let template = |at: usize| (templates[at].signature.as_deref(), templates[at].status.as_deref());
        assert_eq!((template(0), template(1)), ((Some("OlenaCo"), Some("approved")), (None, None)));
        let create = CreateViberTemplate { signature: "OlenaCo".into(), text: "Hi".into() };
        assert_eq!(read_payload(&create, r#"{"id":5,"status":"new"}"#).unwrap().status.as_deref(), Some("new"));
    }

    #[test]
    fn template_is_deleted_by_id_and_text() {
        let delete = DeleteViberTemplate { id: 3, text: "Hi".into() };
        assert_eq!(delete.to_operation(), json!({ "type": "template/viber/delete", "id": 3, "template": "Hi" }));
        assert_eq!(read_payload(&delete, r#"{"deleted":1}"#).unwrap(), Some(1));
    }
}
