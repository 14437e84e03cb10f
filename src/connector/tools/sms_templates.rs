//! `sms_templates` (contract 4.3 `template/list`, 2.5).

use serde_json::{Value, json};

use super::{
    gateway_id_json, gateway_id_schema, object_of_known, object_schema, page_arguments_schema, page_of_items,
    page_schema, text_schema,
};
use crate::connector::tool::{McpTool, ToolAnnotations};
use crate::gateway::{ListSmsTemplates, SmsTemplate};

pub(super) const TOOL: McpTool = McpTool {
    name: "sms_templates",
    title: "SMS templates",
    description: "Lists the account's SMS templates, which are reusable message texts. Costs nothing and sends nothing.",
    annotations: ToolAnnotations::READING,
    input: page_arguments_schema,
    output: || page_schema(&item_schema()),
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let items = caller.ask_gateway(&ListSmsTemplates).await?.into_iter().map(template_item).collect();
            Ok(page_of_items(items, &arguments))
        })
    },
};

pub(super) fn item_schema() -> Value {
    object_schema(
        json!({
            "id": gateway_id_schema("The gateway's identifier of the template."),
            "name": text_schema("The name of the template."),
            "template": text_schema("The text of the template."),
            "count": text_schema("Two numbers separated by a slash, as the gateway returns them."),
            "datetime": text_schema("When the template was created, as the gateway returns it."),
        }),
        &[],
    )
}

pub(super) fn template_item(SmsTemplate { id, name, text, count, created }: SmsTemplate) -> Value {
    object_of_known([
        ("id", id.map(gateway_id_json)),
        ("name", name.map(Value::String)),
        ("template", text.map(Value::String)),
        ("count", count.map(Value::String)),
        ("datetime", created.map(Value::String)),
    ])
}
