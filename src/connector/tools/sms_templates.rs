//! `sms_templates` (contract 4.3 `template/list`, 2.5).

use serde_json::{Value, json};

use super::{answer, answered, known, object, page, page_from, page_of, text};
use crate::connector::tool::{Annotations, Tool};
use crate::gateway::{ListSmsTemplates, SmsTemplate};

pub(super) const TOOL: Tool = Tool {
    name: "sms_templates",
    title: "SMS templates",
    description: "The SMS templates of the account: texts that somebody prepared. Costs nothing and sends nothing.",
    annotations: Annotations::READING,
    input: page,
    output: || page_of(&item_schema()),
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let items = caller.ask(&ListSmsTemplates).await?.into_iter().map(item).collect();
            Ok(page_from(items, &arguments))
        })
    },
};

pub(super) fn item_schema() -> Value {
    object(
        json!({
            "id": answered("The platform's identifier of the template."),
            "name": text("Its name."),
            "template": text("Its text."),
            "count": text("Two numbers with a slash between them, as the platform writes them."),
            "datetime": text("When it was made, as the platform writes it."),
        }),
        &[],
    )
}

pub(super) fn item(SmsTemplate { id, name, text, count, created }: SmsTemplate) -> Value {
    known([
        ("id", id.map(answer)),
        ("name", name.map(Value::String)),
        ("template", text.map(Value::String)),
        ("count", count.map(Value::String)),
        ("datetime", created.map(Value::String)),
    ])
}
