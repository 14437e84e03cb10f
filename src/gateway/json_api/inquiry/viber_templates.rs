//! Viber templates (contract 2.5 and 4.3 `template/viber/…`).

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Inquiry;
use super::sms_templates::Deletion;
use crate::domain::GatewayMessageId;
use crate::gateway::json_api::words::{RedactingReader, read_record, read_records};

/// A Viber template; members that the gateway does not tell are nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViberTemplate {
    /// The gateway's identifier of the template.
    pub id: Option<GatewayMessageId>,
    /// The sender name that it is for.
    pub signature: Option<String>,
    /// Its text.
    pub text: Option<String>,
    /// The gateway's word for its state; the set is open (contract 2.5).
    pub status: Option<String>,
}

/// Lists the Viber templates.
#[derive(Clone, Copy, Debug)]
pub struct ListViberTemplates;

/// Creates a Viber template. The contract shows no fields; they are those of the list.
#[derive(Clone, Debug)]
pub struct CreateViberTemplate {
    /// The sender name that it is for.
    pub signature: String,
    /// Its text.
    pub text: String,
}

/// Deletes a Viber template, which takes its identifier and its text (contract 4.3).
#[derive(Clone, Debug)]
pub struct DeleteViberTemplate {
    /// The gateway's identifier of the template.
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

fn to_template(record: &ViberTemplatePayload<'_>, words: &RedactingReader<'_>) -> ViberTemplate {
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
        Ok(records.iter().map(|record| to_template(record, words)).collect())
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
        let created = to_template(&read_record(payload)?, words);
        if created.id.is_some() { Ok(created) } else { Err("has no identifier") }
    }
}

impl Inquiry for DeleteViberTemplate {
    /// How many were deleted; nothing where the gateway does not tell.
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
mod tests {
    use super::super::ask::tests::read_payload;
    use super::*;

    #[test]
    fn templates_are_read_with_the_reported_members() {
        let data = r#"[{"id":"3","template":"Hi","signature":"OlenaCo","status":"approved"},{"id":4}]"#;
        let templates = read_payload(&ListViberTemplates, data).unwrap();
        let told = |at: usize| (templates[at].signature.as_deref(), templates[at].status.as_deref());
        assert_eq!((told(0), told(1)), ((Some("OlenaCo"), Some("approved")), (None, None)));
        let create = CreateViberTemplate { signature: "OlenaCo".into(), text: "Hi".into() };
        assert_eq!(read_payload(&create, r#"{"id":5,"status":"new"}"#).unwrap().status.as_deref(), Some("new"));
    }

    #[test]
    fn template_is_deleted_by_number_and_text() {
        let delete = DeleteViberTemplate { id: 3, text: "Hi".into() };
        assert_eq!(delete.to_operation(), json!({ "type": "template/viber/delete", "id": 3, "template": "Hi" }));
        assert_eq!(read_payload(&delete, r#"{"deleted":1}"#).unwrap(), Some(1));
    }
}
