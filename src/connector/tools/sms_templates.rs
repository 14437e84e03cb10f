//! `sms_templates` (contract 4.3 `template/list`, 2.5).

use serde_json::{Value, json};

use super::{answer, answered, known, object, page, page_from, page_of, text};
use crate::connector::tool::{Annotations, Tool};
use crate::gateway::{ListSmsTemplates, SmsTemplate};

pub(super) const TOOL: Tool = Tool {
    name: "sms_templates",
    title: "SMS templates",
    description: "Lists the account's SMS templates, which are reusable message texts. Costs nothing and sends nothing.",
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
            "id": answered("The gateway's identifier of the template."),
            "name": text("The name of the template."),
            "template": text("The text of the template."),
            "count": text("Two numbers separated by a slash, as the gateway returns them."),
            "datetime": text("When the template was created, as the gateway returns it."),
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
