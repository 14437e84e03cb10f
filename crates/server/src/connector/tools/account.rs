//! Tools for the account: balance, sender names, message status, lookups and templates.

use serde_json::{Map, Value, json};

use super::{
    Caller, McpTool, ToolAnnotations, ToolArguments, empty_schema, gateway_id_json, gateway_id_schema,
    message_id_schema, object_schema, object_without_nulls, page_arguments_schema, page_of_items, page_schema,
    phone_schema, send, text_schema,
};
use crate::connector::draft::CallPreview;
use crate::connector::error::ToolError;
use campaign_core::domain::{OperationOutcome, measure_sms};
use campaign_gateway::{
    AskBalance, AskSenders, AskStatus, ListTemplates, MessageTemplate, SenderName, TemplateChannel,
};

pub(super) const BALANCE: McpTool = McpTool {
    name: "balance",
    title: "Account balance",
    description: "Returns the balance of the messaging account and its currency. Costs nothing and sends nothing.",
    annotations: ToolAnnotations::READING,
    input: empty_schema,
    output: || {
        object_schema(
            json!({
                "amount": { "type": "number", "description": "The balance." },
                "currency": text_schema("The currency code; empty if the gateway does not return one."),
            }),
            &["amount", "currency"],
        )
    },
    preview: None,
    call: |caller, _| {
        Box::pin(async move {
            let balance = caller.ask_gateway(&AskBalance).await?;
            Ok(json!({ "amount": balance.amount, "currency": balance.currency }))
        })
    },
};

pub(super) const SENDERS: McpTool = McpTool {
    name: "senders",
    title: "Sender names",
    description: "Lists the messaging account's sender names and their states. Messages can be sent only under a \
                  sender name that the gateway has verified. Costs nothing and sends nothing.",
    annotations: ToolAnnotations::READING,
    input: empty_schema,
    output: || {
        let item = object_schema(
            json!({ "name": text_schema("The sender name."), "status": text_schema("The state of the sender name, as \
                the gateway reports it.") }),
            &["name", "status"],
        );
        object_schema(
            json!({ "items": { "type": "array", "items": item }, "count": { "type": "integer", "description": "The number of sender names." } }),
            &["items", "count"],
        )
    },
    preview: None,
    call: |caller, _| {
        Box::pin(async move {
            let item = |SenderName { name, status }: &SenderName| json!({ "name": name, "status": status });
            let items: Vec<Value> = caller.ask_gateway(&AskSenders).await?.iter().map(item).collect();
            Ok(json!({ "count": items.len(), "items": items }))
        })
    },
};

pub(super) const MESSAGE_STATUS: McpTool = McpTool {
    name: "message_status",
    title: "Status of a message",
    description: "Returns the delivery status of a message, as the gateway reports it (such as QUEUED, DELIVERED, \
                  READ or EXPIRED), and when it last changed. `id` is the identifier returned by a sending tool. \
                  Costs nothing and sends nothing.",
    annotations: ToolAnnotations::READING,
    input: || object_schema(json!({ "id": message_id_schema("The `id` returned by a sending tool.") }), &["id"]),
    output: || {
        object_schema(
            json!({
                "id": gateway_id_schema("The identifier of the message, as the gateway returns it."),
                "msg_id": gateway_id_schema("The gateway's identifier for the message."),
                "type": text_schema("The channel."),
                "status": text_schema("The delivery status, as the gateway reports it."),
                "updated": text_schema("When the status last changed, as the gateway returns it."),
            }),
            &["id", "status"],
        )
    },
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let id = arguments.parse_id()?;
            let status = caller.ask_gateway(&AskStatus::Id(id)).await?;
            Ok(object_without_nulls([
                ("id", Some(status.id.map_or_else(|| json!(id.get()), gateway_id_json))),
                ("msg_id", status.msg_id.map(gateway_id_json)),
                ("type", status.channel.map(Value::String)),
                ("status", Some(Value::String(status.status.to_string()))),
                ("updated", status.updated.map(Value::String)),
            ]))
        })
    },
};

pub(super) const LOOKUP_NUMBER: McpTool = McpTool {
    name: "lookup_number",
    title: "Look up a number",
    description: "Returns whether a phone number exists and which network it belongs to. The subscriber is not \
                  notified. EACH LOOKUP COSTS MONEY, EVEN IF THE NUMBER WAS LOOKED UP BEFORE: look up only numbers \
                  that the person you work for asked about. The operator limits lookups per hour.",
    annotations: ToolAnnotations::CHARGING,
    input: || object_schema(json!({ "phone": phone_schema() }), &["phone"]),
    output: || {
        object_schema(
            json!({
                "phone": text_schema("The phone number, digits only."),
                "result": { "type": "object", "description": "The data about the number, as the gateway returns it." },
            }),
            &["phone", "result"],
        )
    },
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let phone = arguments.parse_phone()?;
            match caller.look_up_number(phone).await?.outcome {
                Some(OperationOutcome::Accepted { answer, .. }) => {
                    let parsed = answer.as_deref().and_then(|answer| serde_json::from_str::<Value>(answer).ok());
                    let result = match parsed {
                        Some(Value::Object(members)) => Value::Object(members),
                        Some(other) if !other.is_null() => json!({ "value": other }),
                        _ => json!({}),
                    };
                    Ok(json!({ "phone": phone.to_string(), "result": result }))
                }
                Some(OperationOutcome::Rejected { error, .. }) => Err(ToolError::new("platform_error", error)),
                Some(
                    OperationOutcome::Queued { .. }
                    | OperationOutcome::NotSent { .. }
                    | OperationOutcome::InDoubt { .. },
                )
                | None => Err(ToolError::new("unknown_outcome", "the gateway did not return the lookup result")
                    .with_how_to(
                        "the lookup might have been charged; repeat it only if the user asks \
                             you to",
                    )),
            }
        })
    },
};

pub(super) const SMS_TEMPLATES: McpTool = McpTool {
    name: "sms_templates",
    title: "SMS templates",
    description: "Lists the account's SMS templates, which are reusable message texts. Costs nothing and sends \
        nothing.",
    annotations: ToolAnnotations::READING,
    input: page_arguments_schema,
    output: || page_schema(&sms_template_schema()),
    preview: None,
    call: |caller, arguments| Box::pin(list_templates(caller, TemplateChannel::Sms, arguments)),
};

/// Lists a page of the templates of a channel.
async fn list_templates(
    caller: &Caller<'_>,
    channel: TemplateChannel,
    arguments: ToolArguments,
) -> Result<Value, ToolError> {
    let templates = caller.ask_gateway(&ListTemplates { channel }).await?;
    Ok(page_of_items(templates.iter().map(template_item).collect(), &arguments))
}

/// Converts a template to a result with those of the gateway's members that have a value.
fn template_item(template: &MessageTemplate) -> Value {
    let members = template.members().into_iter().map(|(key, value)| (key, value.map(Value::from)));
    object_without_nulls(members.chain([("id", template.id.clone().map(gateway_id_json))]))
}

fn sms_template_schema() -> Value {
    object_schema(
        json!({
            "id": gateway_id_schema("The gateway's identifier for the template."),
            "name": text_schema("The name of the template."),
            "template": text_schema("The text of the template."),
            "count": text_schema("Two numbers separated by a slash, as the gateway returns them."),
            "datetime": text_schema("When the template was created, as the gateway returns it."),
        }),
        &[],
    )
}

pub(super) const VIBER_TEMPLATES: McpTool = McpTool {
    name: "viber_templates",
    title: "Viber templates",
    description: "Lists the account's Viber templates and their states. Costs nothing and sends nothing.",
    annotations: ToolAnnotations::READING,
    input: page_arguments_schema,
    output: || page_schema(&viber_template_schema()),
    preview: None,
    call: |caller, arguments| Box::pin(list_templates(caller, TemplateChannel::Viber, arguments)),
};

fn viber_template_schema() -> Value {
    object_schema(
        json!({
            "id": gateway_id_schema("The gateway's identifier for the template."),
            "signature": text_schema("The sender name of the template."),
            "template": text_schema("The text of the template."),
            "status": text_schema("The state of the template, as the gateway reports it."),
        }),
        &[],
    )
}

pub(super) const CREATE_SMS_TEMPLATE: McpTool = McpTool {
    name: "create_sms_template",
    title: "Create an SMS template",
    description: "Adds an SMS template to the account for later use. Sends no message. Without `confirm: true`, \
                  nothing is created and a preview is returned: show it to the user first.",
    annotations: ToolAnnotations::ADDING,
    input: || {
        let text_argument =
            |description| json!({ "type": "string", "minLength": 1, "maxLength": 4_096, "description": description });
        object_schema(
            json!({
                "name": text_argument("The name of the template."),
                "text": text_argument("The text of the template."),
                "confirm": send::confirm_schema(),
            }),
            &["name", "text"],
        )
    },
    output: || {
        let record = sms_template_schema();
        send::action_result_schema(record["properties"].clone(), &["template"])
    },
    preview: Some(preview_template),
    call: |caller, arguments| {
        Box::pin(async move {
            let (name, text) = (arguments.text("name"), arguments.text("text"));
            let mut record = match caller.create_sms_template(name.trim().to_owned(), text.clone()).await? {
                Ok(template) => template_item(&template),
                Err(pending) => return Ok(pending),
            };
            if record.get("template").is_none() {
                record["template"] = Value::String(text);
            }
            Ok(record)
        })
    },
};

/// Previews the SMS template that a call would create.
fn preview_template(arguments: &Map<String, Value>) -> CallPreview {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let effect = super::object_without_nulls([
        ("name", text("name").map(|name| json!(name.trim()))),
        ("text", text("text").map(|text| json!(text))),
        ("parts", text("text").map(|text| json!(measure_sms(text).parts))),
    ]);
    let is_blank = |text: &str| !text.is_empty() && text.trim().is_empty();
    let blank = ["name", "text"].into_iter().filter(|key| text(key).is_some_and(is_blank));
    let problems = blank.map(|key| format!("`{key}` is empty; fill it in")).collect();
    CallPreview { effect, problems, ..CallPreview::default() }
}
