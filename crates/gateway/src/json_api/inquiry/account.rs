//! Inquiries about the account: balance, sender names, and message templates for SMS and Viber (contract 2.5 and 4.3).

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Inquiry;
use crate::json_api::members::{RedactingReader, read_record, read_records, read_whole_number};
use campaign_core::domain::{Amount, Channel, GatewayMessageId};

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

/// Asks for the balance only to check the key. The content of the answer is ignored.
#[derive(Clone, Copy, Debug)]
pub struct CheckKey;

impl Inquiry for CheckKey {
    type Answer = ();
    const READS_ONLY: bool = true;

    fn to_operation(&self) -> Value {
        AskBalance.to_operation()
    }

    fn read_answer(&self, _payload: Option<&RawValue>, _reader: &RedactingReader<'_>) -> Result<(), &'static str> {
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

    fn read_answer(&self, payload: Option<&RawValue>, reader: &RedactingReader<'_>) -> Result<Balance, &'static str> {
        let record: BalancePayload<'_> = read_record(payload)?;
        // The amount is parsed from the number's own text, because a float would round it. A string is read the same
        // way.
        let amount = record.amount.and_then(|raw| raw.get().trim_matches('"').trim().parse().ok());
        let amount = amount.ok_or("has no numeric `amount`")?;
        Ok(Balance { amount, currency: reader.read_text(record.currency).unwrap_or_default() })
    }
}

/// A sender name that the gateway lists for the account, approved or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderName {
    /// The name, or empty if not reported.
    pub name: String,
    /// The status in the gateway's words, or empty if not reported. Any value is possible (contract 2.5).
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
        reader: &RedactingReader<'_>,
    ) -> Result<Vec<SenderName>, &'static str> {
        let records: Vec<SenderPayload<'_>> = read_records(payload)?;
        let text = |raw| reader.read_text(raw).unwrap_or_default();
        Ok(records.iter().map(|record| SenderName { name: text(record.name), status: text(record.status) }).collect())
    }
}

/// A channel for which an account has message templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateChannel {
    /// SMS, whose templates are labelled with a name.
    Sms,
    /// Viber, whose templates are labelled with a sender name.
    Viber,
}

impl TemplateChannel {
    /// The `type` of an operation on templates of the channel. The action is `list`, `create` or `delete`.
    fn operation_type(self, action: &str) -> String {
        match self {
            Self::Sms => format!("template/{action}"),
            Self::Viber => format!("template/viber/{action}"),
        }
    }

    /// The gateway's key for the label of a template.
    pub const fn label_key(self) -> &'static str {
        match self {
            Self::Sms => "name",
            Self::Viber => "signature",
        }
    }

    /// Whether a deletion requires the text of the template in addition to its identifier.
    pub const fn requires_text_to_delete(self) -> bool {
        matches!(self, Self::Viber)
    }
}

impl fmt::Display for TemplateChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let channel = match self {
            Self::Sms => Channel::Sms,
            Self::Viber => Channel::Viber,
        };
        f.write_str(channel.facts().title)
    }
}

/// A message template of the account. Members that are not reported are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageTemplate {
    /// The channel of the template.
    pub channel: TemplateChannel,
    /// The gateway's identifier for the template.
    pub id: Option<GatewayMessageId>,
    /// The name of an SMS template, or the sender name that a Viber template is for.
    pub label: Option<String>,
    /// The text of the template.
    pub text: Option<String>,
    /// A text such as `8 / 1`, probably the numbers of characters and SMS parts (contract 2.5). Only for SMS.
    pub count: Option<String>,
    /// The time of creation, in the gateway's text (ISO 8601 with offset). Only for SMS.
    pub created: Option<String>,
    /// The status in the gateway's words. Any value is possible (contract 2.5). Only for Viber.
    pub status: Option<String>,
}

/// The members of template records of all channels.
#[derive(Deserialize)]
struct TemplatePayload<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    signature: Option<&'a RawValue>,
    #[serde(borrow)]
    template: Option<&'a RawValue>,
    #[serde(borrow)]
    count: Option<&'a RawValue>,
    #[serde(borrow)]
    datetime: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

impl MessageTemplate {
    fn from_record(channel: TemplateChannel, record: &TemplatePayload<'_>, reader: &RedactingReader<'_>) -> Self {
        let (label, count, created, status) = match channel {
            TemplateChannel::Sms => (record.name, record.count, record.datetime, None),
            TemplateChannel::Viber => (record.signature, None, None, record.status),
        };
        Self {
            channel,
            id: reader.read_id(record.id),
            label: reader.read_text(label),
            text: reader.read_whole_text(record.template),
            count: reader.read_text(count),
            created: reader.read_text(created),
            status: reader.read_text(status),
        }
    }

    /// The members of the gateway's record, as names and values, without the identifier.
    pub fn members(&self) -> Vec<(&'static str, Option<&str>)> {
        let mut members = vec![(self.channel.label_key(), self.label.as_deref()), ("template", self.text.as_deref())];
        match self.channel {
            TemplateChannel::Sms => {
                members.extend([("count", self.count.as_deref()), ("datetime", self.created.as_deref())]);
            }
            TemplateChannel::Viber => members.push(("status", self.status.as_deref())),
        }
        members
    }
}

/// Lists the templates of a channel.
#[derive(Clone, Copy, Debug)]
pub struct ListTemplates {
    /// The channel, which decides the members of the records.
    pub channel: TemplateChannel,
}

impl Inquiry for ListTemplates {
    type Answer = Vec<MessageTemplate>;
    const READS_ONLY: bool = true;

    fn to_operation(&self) -> Value {
        json!({ "type": self.channel.operation_type("list") })
    }

    fn read_answer(
        &self,
        payload: Option<&RawValue>,
        reader: &RedactingReader<'_>,
    ) -> Result<Vec<MessageTemplate>, &'static str> {
        let records: Vec<TemplatePayload<'_>> = read_records(payload)?;
        Ok(records.iter().map(|record| MessageTemplate::from_record(self.channel, record, reader)).collect())
    }
}

/// Creates a template. The contract shows no fields for Viber, so they are named as in the list of templates.
#[derive(Clone, Debug)]
pub struct CreateTemplate {
    /// The channel, which decides the meaning of `label`.
    pub channel: TemplateChannel,
    /// The name of an SMS template, or the sender name that a Viber template is for.
    pub label: String,
    /// The text of the template.
    pub text: String,
}

impl Inquiry for CreateTemplate {
    type Answer = MessageTemplate;
    const READS_ONLY: bool = false;

    fn to_operation(&self) -> Value {
        let Self { channel, label, text } = self;
        json!({ "type": channel.operation_type("create"), channel.label_key(): label, "template": text })
    }

    fn read_answer(
        &self,
        payload: Option<&RawValue>,
        reader: &RedactingReader<'_>,
    ) -> Result<MessageTemplate, &'static str> {
        let created = MessageTemplate::from_record(self.channel, &read_record(payload)?, reader);
        if created.id.is_some() { Ok(created) } else { Err("has no identifier") }
    }
}

/// Deletes a template. The contract shows no fields for SMS; the identifier is the one that Viber requires.
#[derive(Clone, Debug)]
pub struct DeleteTemplate {
    /// The channel, which decides the type of the operation.
    pub channel: TemplateChannel,
    /// The gateway's identifier for the template.
    pub id: u64,
    /// The text of the template, which the gateway requires for Viber (contract 4.3).
    pub text: Option<String>,
}

/// The number of deleted templates (contract 2.5), which a gateway can omit.
#[derive(Deserialize)]
struct DeletionPayload<'a> {
    #[serde(borrow)]
    deleted: Option<&'a RawValue>,
}

impl Inquiry for DeleteTemplate {
    /// The number of deleted templates. `None` if not reported.
    type Answer = Option<u64>;
    const READS_ONLY: bool = false;

    fn to_operation(&self) -> Value {
        let mut operation = json!({ "type": self.channel.operation_type("delete"), "id": self.id });
        if let Some(text) = &self.text {
            operation["template"] = text.as_str().into();
        }
        operation
    }

    fn read_answer(&self, payload: Option<&RawValue>, _: &RedactingReader<'_>) -> Result<Option<u64>, &'static str> {
        Ok(read_record::<DeletionPayload<'_>>(payload)?.deleted.and_then(read_whole_number))
    }
}

#[cfg(test)]
mod balance_tests {
    use super::*;
    use crate::json_api::inquiry::tests::read_payload;

    #[test]
    fn balance_amount_keeps_the_digits_of_the_gateway() {
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
            assert!(!read_payload(&AskBalance, data).unwrap_err().not_executed, "{data}");
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
mod templates_tests {
    use super::*;
    use crate::json_api::inquiry::tests::read_payload;

    #[test]
    fn sms_templates_are_read_with_the_reported_members() {
        let channel = TemplateChannel::Sms;
        let data = r#"[{"id":5,"name":"Sale","template":"Hi, %name%","count":"8 / 1",
            "datetime":"2026-11-21T10:00:00+02:00"},{"id":"6","template":"Bye"}]"#;
        let templates = read_payload(&ListTemplates { channel }, data).unwrap();
        assert_eq!(
            (templates[0].id.clone(), templates[0].count.as_deref()),
            (Some(GatewayMessageId::Number(5)), Some("8 / 1"))
        );
        assert_eq!((templates[1].label.as_deref(), templates[1].text.as_deref()), (None, Some("Bye")));
        let create = CreateTemplate { channel, label: "Sale".into(), text: "Hi".into() };
        assert_eq!(read_payload(&create, r#"{"id":7,"count":"2 / 1"}"#).unwrap().id, Some(GatewayMessageId::Number(7)));
        for payload in ["[]", "null", "{}", "7", r#"{"id":""}"#] {
            assert!(read_payload(&create, payload).is_err(), "{payload} names no template");
        }
    }

    #[test]
    fn viber_templates_are_read_with_the_reported_members() {
        let channel = TemplateChannel::Viber;
        let data = r#"[{"id":"3","template":"Hi","signature":"OlenaCo","status":"approved"},{"id":4}]"#;
        let templates = read_payload(&ListTemplates { channel }, data).unwrap();
        let template = |at: usize| (templates[at].label.as_deref(), templates[at].status.as_deref());
        assert_eq!((template(0), template(1)), ((Some("OlenaCo"), Some("approved")), (None, None)));
        let create = CreateTemplate { channel, label: "OlenaCo".into(), text: "Hi".into() };
        assert_eq!(read_payload(&create, r#"{"id":5,"status":"new"}"#).unwrap().status.as_deref(), Some("new"));
    }

    #[test]
    fn template_members_of_the_other_channel_are_ignored() {
        let data = r#"[{"id":1,"name":"Sale","signature":"OlenaCo","template":"Hi","count":"2 / 1",
            "datetime":"2026-11-21T10:00:00+02:00","status":"approved"}]"#;
        let list = |channel| read_payload(&ListTemplates { channel }, data).unwrap().remove(0);
        let (sms, viber) = (list(TemplateChannel::Sms), list(TemplateChannel::Viber));
        let time = Some("2026-11-21T10:00:00+02:00");
        let expected = [("name", Some("Sale")), ("template", Some("Hi")), ("count", Some("2 / 1")), ("datetime", time)];
        assert_eq!((sms.members(), sms.status.as_deref()), (expected.to_vec(), None));
        let expected = [("signature", Some("OlenaCo")), ("template", Some("Hi")), ("status", Some("approved"))];
        assert_eq!((viber.members(), viber.count.as_deref()), (expected.to_vec(), None));
    }

    #[test]
    fn deletion_reports_the_deleted_count_if_present() {
        let delete = DeleteTemplate { channel: TemplateChannel::Sms, id: 5, text: None };
        for (data, expected) in [(r#"{"deleted":1}"#, Some(1)), (r#"{"deleted":"0"}"#, Some(0)), ("{}", None)] {
            assert_eq!(read_payload(&delete, data).unwrap(), expected, "{data}");
        }
        for payload in ["[]", "null", "1"] {
            assert!(read_payload(&delete, payload).is_err(), "{payload}");
        }
    }

    #[test]
    fn viber_template_is_deleted_by_id_and_text() {
        let delete = DeleteTemplate { channel: TemplateChannel::Viber, id: 3, text: Some("Hi".into()) };
        assert_eq!(delete.to_operation(), json!({ "type": "template/viber/delete", "id": 3, "template": "Hi" }));
        assert_eq!(read_payload(&delete, r#"{"deleted":1}"#).unwrap(), Some(1));
    }
}
