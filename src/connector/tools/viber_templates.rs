//! `viber_templates` (contract 4.3 `template/viber/list`, 2.5).

use serde_json::{Value, json};

use super::{
    gateway_id_json, gateway_id_schema, object_of_known, object_schema, page_arguments_schema, page_of_items,
    page_schema, text_schema,
};
use crate::connector::tool::{McpTool, ToolAnnotations};
use crate::gateway::{ListViberTemplates, ViberTemplate};

pub(super) const TOOL: McpTool = McpTool {
    name: "viber_templates",
    title: "Viber templates",
    description: "Lists the Viber templates of the account and their states. Costs nothing and sends nothing.",
    annotations: ToolAnnotations::READING,
    input: page_arguments_schema,
    output: || page_schema(&item_schema()),
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let items = caller.ask_gateway(&ListViberTemplates).await?.into_iter().map(template_item).collect();
            Ok(page_of_items(items, &arguments))
        })
    },
};

fn item_schema() -> Value {
    object_schema(
        json!({
            "id": gateway_id_schema("The gateway's identifier of the template."),
            "signature": text_schema("The sender name of the template."),
            "template": text_schema("The text of the template."),
            "status": text_schema("The state of the template, as the gateway names it."),
        }),
        &[],
    )
}

fn template_item(ViberTemplate { id, signature, text, status }: ViberTemplate) -> Value {
    object_of_known([
        ("id", id.map(gateway_id_json)),
        ("signature", signature.map(Value::String)),
        ("template", text.map(Value::String)),
        ("status", status.map(Value::String)),
    ])
}
