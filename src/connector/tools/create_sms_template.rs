//! `create_sms_template` (contract 4.3 `template/create`, 4.4).

use serde_json::{Map, Value, json};

use super::{object_schema, saying, sms_templates};
use crate::connector::confirmation::CallPreview;
use crate::connector::tool::{McpTool, ToolAnnotations};
use crate::domain::measure_sms;
use crate::gateway::CreateSmsTemplate;

pub(super) const TOOL: McpTool = McpTool {
    name: "create_sms_template",
    title: "Create an SMS template",
    description: "Adds an SMS template to the account for later use. Sends no message. Without `confirm: true` \
                  nothing is created and the result is a preview: show it to the person you work for first.",
    annotations: ToolAnnotations::ADDING,
    input: || {
        let named =
            |description| json!({ "type": "string", "minLength": 1, "maxLength": 4_096, "description": description });
        object_schema(
            json!({
                "name": named("The name of the template."),
                "text": named("The text of the template."),
                "confirm": saying::confirm_schema(),
            }),
            &["name", "text"],
        )
    },
    output: || {
        let record = sms_templates::item_schema();
        saying::action_result_schema(record["properties"].clone(), &["template"])
    },
    preview: Some(preview_template),
    call: |caller, arguments| {
        Box::pin(async move {
            let (name, text) = (arguments.text("name"), arguments.text("text"));
            let template = CreateSmsTemplate { name: name.trim().to_owned(), text: text.clone() };
            let mut record = match caller.create_sms_template(template).await? {
                Ok(template) => sms_templates::template_item(template),
                Err(pending) => return Ok(pending),
            };
            if record.get("template").is_none() {
                record["template"] = Value::String(text);
            }
            Ok(record)
        })
    },
};

/// What would be created.
fn preview_template(arguments: &Map<String, Value>) -> CallPreview {
    let said = |key: &str| arguments.get(key).and_then(Value::as_str);
    let shown = super::object_of_known([
        ("name", said("name").map(|name| json!(name.trim()))),
        ("text", said("text").map(|text| json!(text))),
        ("parts", said("text").map(|text| json!(measure_sms(text).parts))),
    ]);
    let is_blank = |text: &str| !text.is_empty() && text.trim().is_empty();
    let blank = ["name", "text"].into_iter().filter(|key| said(key).is_some_and(is_blank));
    let problems = blank.map(|key| format!("`{key}` is empty; fill it in")).collect();
    CallPreview { shown, problems, ..CallPreview::default() }
}
