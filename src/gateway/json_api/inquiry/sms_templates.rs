//! SMS templates (contract 2.5 and 4.3 `template/…`).

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Inquiry;
use crate::domain::GatewayMessageId;
use crate::gateway::json_api::loose::read_whole_number;
use crate::gateway::json_api::words::{RedactingReader, read_record, read_records};

/// An SMS template; members that the gateway does not tell are nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SmsTemplate {
    /// The gateway's identifier of the template.
    pub id: Option<GatewayMessageId>,
    /// Its name.
    pub name: Option<String>,
    /// Its text.
    pub text: Option<String>,
    /// Two numbers separated by a slash, as the gateway writes them (contract 2.5).
    pub count: Option<String>,
    /// When it was made, in the gateway's text (ISO 8601 with offset).
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

/// Deletes an SMS template. The contract shows no fields; they are those of a Viber template.
#[derive(Clone, Copy, Debug)]
pub struct DeleteSmsTemplate {
    /// The gateway's identifier of the template.
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

/// How many templates a deletion took away (contract 2.5); a gateway may leave it out.
#[derive(Deserialize)]
pub(super) struct Deletion<'a> {
    #[serde(borrow)]
    deleted: Option<&'a RawValue>,
}

impl Deletion<'_> {
    /// Reads the payload of a deletion that succeeded; nothing where it tells no number.
    ///
    /// # Errors
    /// When the payload is no object, and so proves nothing.
    pub(super) fn read(payload: Option<&RawValue>) -> Result<Option<u64>, &'static str> {
        Ok(read_record::<Deletion<'_>>(payload)?.deleted.and_then(read_whole_number))
    }
}

fn to_template(record: &SmsTemplatePayload<'_>, words: &RedactingReader<'_>) -> SmsTemplate {
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
        Ok(records.iter().map(|record| to_template(record, words)).collect())
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
        let created = to_template(&read_record(payload)?, words);
        if created.id.is_some() { Ok(created) } else { Err("has no identifier") }
    }
}

impl Inquiry for DeleteSmsTemplate {
    /// How many were deleted; nothing where the gateway does not tell.
    type Answer = Option<u64>;
    const READS_ONLY: bool = false;

    fn to_operation(&self) -> Value {
        json!({ "type": "template/delete", "id": self.id })
    }

    fn read_answer(&self, payload: Option<&RawValue>, _: &RedactingReader<'_>) -> Result<Option<u64>, &'static str> {
        Deletion::read(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::read_payload;
    use super::*;

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
    fn deletion_reports_its_number_or_nothing() {
        for (data, expected) in [(r#"{"deleted":1}"#, Some(1)), (r#"{"deleted":"0"}"#, Some(0)), ("{}", None)] {
            assert_eq!(read_payload(&DeleteSmsTemplate { id: 5 }, data).unwrap(), expected, "{data}");
        }
        for nothing in ["[]", "null", "1"] {
            assert!(read_payload(&DeleteSmsTemplate { id: 5 }, nothing).is_err(), "{nothing}");
        }
    }
}
