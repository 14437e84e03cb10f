//! `viber_templates` (contract 4.3 `template/viber/list`, 2.5).

use serde_json::{Value, json};

use super::{answer, answered, known, object, page, page_from, page_of, text};
use crate::connector::tool::{Annotations, Tool};
use crate::gateway::{ListViberTemplates, ViberTemplate};

pub(super) const TOOL: Tool = Tool {
    name: "viber_templates",
    title: "Viber templates",
    description: "Lists the Viber templates of the account and their states. Costs nothing and sends nothing.",
    annotations: Annotations::READING,
    input: page,
    output: || page_of(&item_schema()),
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let items = caller.ask(&ListViberTemplates).await?.into_iter().map(item).collect();
            Ok(page_from(items, &arguments))
        })
    },
};

fn item_schema() -> Value {
    object(
        json!({
            "id": answered("The gateway's identifier of the template."),
            "signature": text("The sender name of the template."),
            "template": text("The text of the template."),
            "status": text("The state of the template, as the gateway names it."),
        }),
        &[],
    )
}

fn item(ViberTemplate { id, signature, text, status }: ViberTemplate) -> Value {
    known([
        ("id", id.map(answer)),
        ("signature", signature.map(Value::String)),
        ("template", text.map(Value::String)),
        ("status", status.map(Value::String)),
    ])
}
