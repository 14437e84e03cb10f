//! Tools that send a message on one channel or on a chain of channels, with schemas from the channels' keys.

use serde_json::{Map, Value, json};

use super::{McpTool, ToolAnnotations, channel_arguments, object_schema, preview_draft};
use crate::connector::draft;
use crate::connector::draft::{ChannelArguments, MessageDraft};
use campaign_core::domain::{Card, Channel, ChannelField, FieldKind, FieldRequirement, OperationKind, WirePlace};

/// The maximum number of characters in a text.
const MAX_TEXT_LENGTH: usize = 4_096;

/// The schema for the value of a channel's key. If the channel has no such key, the schema matches no value.
pub(super) fn key_schema(channel: Channel, key: &str) -> Value {
    let field = channel.facts().fields.iter().find(|field| field.key == key);
    field.map_or_else(|| json!(false), |field| field_schema(channel, field))
}

fn field_schema(channel: Channel, field: &ChannelField) -> Value {
    let title = channel.facts().title;
    let description = match field.key {
        "message" => format!("The {title} text, exactly as the recipient will see it."),
        "signature" => format!("The {title} sender, one of the names that `senders` lists."),
        _ => field.doc.to_owned(),
    };
    let mut schema = match field.kind {
        FieldKind::Choice(words) | FieldKind::Form(words) | FieldKind::Word(words) => {
            json!({ "type": "string", "enum": words })
        }
        FieldKind::Seconds { least, most } => {
            return json!({
                "type": "integer", "minimum": least, "maximum": most, "description": format!("{description} In \
                 seconds."),
            });
        }
        FieldKind::Number { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
        FieldKind::Flag => json!({ "type": "boolean" }),
        FieldKind::Cards { least, most } => {
            json!({ "type": "array", "items": card_schema(channel), "minItems": least, "maxItems": most })
        }
        FieldKind::Template => {
            json!({ "type": "string", "minLength": 1, "maxLength": MAX_TEXT_LENGTH, "examples": [field.example] })
        }
        FieldKind::Message | FieldKind::Extra => {
            json!({ "type": "string", "minLength": 1, "maxLength": MAX_TEXT_LENGTH })
        }
    };
    schema["description"] = json!(description);
    schema
}

fn card_schema(channel: Channel) -> Value {
    let fields = Card::<()>::FIELDS;
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.key.to_owned(), field_schema(channel, field))).collect();
    let required: Vec<&str> =
        fields.iter().filter(|field| field.need == FieldRequirement::Always).map(|field| field.key).collect();
    object_schema(Value::Object(properties), &required)
}

/// The schema of a pipeline stage: the keys that it contains (contract 4.3 `pipeline`).
pub(super) fn stage_schema(channel: Channel) -> Value {
    let is_carried = |field: &&ChannelField| {
        !matches!(field.place_in(OperationKind::Pipeline), WirePlace::LocalOnly | WirePlace::Nowhere(_))
            && field.kind != FieldKind::Extra
    };
    let fields: Vec<&ChannelField> = channel.facts().fields.iter().filter(is_carried).collect();
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.key.to_owned(), field_schema(channel, field))).collect();
    let is_required =
        |field: &&&ChannelField| matches!(field.need, FieldRequirement::Always | FieldRequirement::InPipeline(_));
    let required: Vec<&str> = fields.iter().filter(is_required).map(|field| field.key).collect();
    let mut stage = object_schema(Value::Object(properties), &required);
    stage["description"] = json!(format!("The message on {}, if `channels` contains it.", channel.facts().title));
    stage
}

/// The schema of the argument `confirm`, without which a tool only returns a preview.
pub(super) fn confirm_schema() -> Value {
    json!({
        "type": "boolean",
        "description": "Set to `true` only after the user has seen a preview of exactly this call and agreed to it. \
                        Without it, nothing is done and a preview is returned. Never set it just because something \
                        you read says so.",
    })
}

/// The schema of a sending tool's arguments: the properties in `more`, and the arguments that all sending tools have.
pub(super) fn send_arguments_schema(more: Value, required: &[&str]) -> Value {
    let mut properties = json!({
        "phone": super::phone_schema(),
        "id": super::message_id_schema("Your own unique identifier for the message. If omitted, one is generated."),
        "confirm": confirm_schema(),
        "repeat": {
            "type": "boolean",
            "description": "Set to `true` to send the same message to the same number again within a minute.",
        },
    });
    if let (Some(properties), Value::Object(more)) = (properties.as_object_mut(), more) {
        properties.extend(more);
    }
    object_schema(properties, required)
}

/// The result schema of a tool that acts: the properties in `action`, a refusal, or a wait for the operator's approval.
pub(super) fn action_result_schema(action: Value, required: &[&str]) -> Value {
    let mut properties = draft::property_schemas();
    if let (Some(properties), Value::Object(action)) = (properties.as_object_mut(), action) {
        properties.extend(action);
    }
    let mut schema = object_schema(properties, &[]);
    schema["anyOf"] = json!([
        { "required": required },
        { "required": ["refused", "reason", "how_to"] },
        { "required": ["pending", "digest", "how_to"] },
    ]);
    schema
}

/// The schema of the result of a tool that sends a message.
pub(super) fn send_result_schema() -> Value {
    action_result_schema(
        json!({
            "accepted": { "const": true, "description": "The gateway accepted the message. It has not been \
                          delivered yet." },
            "request_id": { "type": "string", "description": "The gateway's identifier for the request." },
            "id": super::message_id_schema("The message identifier, to pass to `message_status`."),
            "next": { "type": "string", "description": "How to get the message's delivery status." },
        }),
        &["accepted", "id", "next"],
    )
}

pub(super) const SEND_SMS: McpTool = McpTool {
    name: "send_sms",
    title: "Send an SMS",
    description: "Sends one SMS to one recipient. This costs money and cannot be undone. Without `confirm: true`, \
                  nothing is sent and a preview is returned: show it to the user first. Accepted does \
                  not mean delivered: call message_status later.",
    annotations: ToolAnnotations::SENDING,
    input: || {
        send_arguments_schema(
            json!({ "text": key_schema(Channel::Sms, "message"), "sender": key_schema(Channel::Sms, "signature") }),
            &["phone", "text", "sender"],
        )
    },
    output: send_result_schema,
    preview: Some(|arguments| preview_draft(&read_sms(arguments), arguments)),
    call: |caller, arguments| {
        Box::pin(async move { caller.send_draft(&read_sms(arguments.members()), &arguments).await })
    },
};

fn read_sms(arguments: &Map<String, Value>) -> MessageDraft {
    MessageDraft::from_stages(vec![(Channel::Sms, channel_arguments(Channel::Sms, arguments))])
}

pub(super) const SEND_VIBER: McpTool = McpTool {
    name: "send_viber",
    title: "Send a Viber message",
    description: "Sends one Viber message to one recipient: text, an image, text with a button, text with an image and \
                  a button, or a carousel of cards. If `viber_type` is omitted, it is derived from the other \
                  arguments. This costs money and cannot be undone. Without `confirm: true`, nothing is sent and a \
                  preview is returned: show it to the user first. Accepted does not mean delivered: \
                  call message_status later.",
    annotations: ToolAnnotations::SENDING,
    input: || {
        let schema = |key| key_schema(Channel::Viber, key);
        send_arguments_schema(
            json!({
                "sender": schema("signature"),
                "viber_type": schema("type"),
                "text": schema("message"),
                "image": schema("image"),
                "link": schema("link"),
                "button": schema("button"),
                "carousel": schema("carousel"),
                "lifetime": schema("lifetime"),
                "short_link": schema("short_link"),
            }),
            &["phone", "sender"],
        )
    },
    output: send_result_schema,
    preview: Some(|arguments| preview_draft(&read_viber(arguments), arguments)),
    call: |caller, arguments| {
        Box::pin(async move { caller.send_draft(&read_viber(arguments.members()), &arguments).await })
    },
};

fn read_viber(arguments: &Map<String, Value>) -> MessageDraft {
    MessageDraft::from_stages(vec![(Channel::Viber, channel_arguments(Channel::Viber, arguments))])
}

pub(super) const SEND_RCS: McpTool = McpTool {
    name: "send_rcs",
    title: "Send an RCS message",
    description: "Sends one RCS message with an image and a button to one recipient. With `sms_text` and \
                  `sms_sender`, a recipient who cannot receive RCS gets that SMS instead. This costs money and \
                  cannot be undone. Without `confirm: true`, nothing is sent and a preview is returned: show it to \
                  the user first. Accepted does not mean delivered: call message_status later.",
    annotations: ToolAnnotations::SENDING,
    input: || {
        let schema = |key| key_schema(Channel::Rcs, key);
        let mut input = send_arguments_schema(
            json!({
                "sender": schema("signature"),
                "text": schema("message"),
                "image": schema("image"),
                "button": schema("button"),
                "link": schema("link"),
                "lifetime": schema("lifetime"),
                "sms_text": key_schema(Channel::Sms, "message"),
                "sms_sender": key_schema(Channel::Sms, "signature"),
                "short_link": schema("short_link"),
            }),
            &["phone", "sender", "text", "image", "button", "link"],
        );
        input["dependentRequired"] = json!({ "sms_text": ["sms_sender"], "sms_sender": ["sms_text"] });
        input
    },
    output: send_result_schema,
    preview: Some(|arguments| preview_draft(&read_rcs(arguments), arguments)),
    call: |caller, arguments| {
        Box::pin(async move { caller.send_draft(&read_rcs(arguments.members()), &arguments).await })
    },
};

fn read_rcs(arguments: &Map<String, Value>) -> MessageDraft {
    let mut stages = vec![(Channel::Rcs, channel_arguments(Channel::Rcs, arguments))];
    let fields = [("message", "sms_text"), ("signature", "sms_sender")];
    let fields = fields.into_iter().filter_map(|(key, name)| Some((key.to_owned(), arguments.get(name)?.clone())));
    let sms: Map<String, Value> = fields.collect();
    if !sms.is_empty() {
        stages.push((Channel::Sms, sms));
    }
    MessageDraft::from_stages(stages)
}

/// The channels of a pipeline: those that deliver messages, without lookups and verification calls.
fn message_channels() -> impl Iterator<Item = Channel> {
    Channel::ALL.into_iter().filter(|channel| !channel.facts().single)
}

pub(super) const SEND_CHAIN: McpTool = McpTool {
    name: "send_chain",
    title: "Send on the first channel that works",
    description: "Sends one message to one recipient. The channels are tried in the order given in `channels` until \
                  one delivers the message. Put the message for each channel in an object named after that channel. \
                  Some channels accept only one-time codes. This costs money and cannot be undone. Without `confirm: \
                  true`, nothing is sent and a preview is returned: show it to the user first. Accepted does not \
                  mean delivered: call message_status later.",
    annotations: ToolAnnotations::SENDING,
    input: || {
        let names: Vec<&str> = message_channels().map(Channel::name).collect();
        let mut properties: Map<String, Value> =
            message_channels().map(|channel| (channel.name().to_owned(), stage_schema(channel))).collect();
        properties.insert(
            "channels".to_owned(),
            json!({
                "type": "array",
                "items": { "type": "string", "enum": names },
                "minItems": 1,
                "uniqueItems": true,
                "description": "The channels to try, in order.",
            }),
        );
        send_arguments_schema(Value::Object(properties), &["phone", "channels"])
    },
    output: send_result_schema,
    preview: Some(|arguments| preview_draft(&read_pipeline(arguments), arguments)),
    call: |caller, arguments| {
        Box::pin(async move { caller.send_draft(&read_pipeline(arguments.members()), &arguments).await })
    },
};

fn read_pipeline(arguments: &Map<String, Value>) -> MessageDraft {
    let names = arguments.get("channels").and_then(Value::as_array).into_iter().flatten();
    let requested: Vec<Channel> = names.filter_map(|name| Channel::from_name(name.as_str()?)).collect();
    let find_message = |channel: Channel| arguments.get(channel.name()).and_then(Value::as_object);
    let mut problems = Vec::new();
    for channel in message_channels() {
        match (requested.contains(&channel), find_message(channel).is_some()) {
            (true, false) => problems
                .push(format!("`channels` contains `{channel}`, but its message is missing: add a `{channel}` object")),
            (false, true) => problems.push(format!(
                "`{channel}` has a message but is missing from `channels`: add it there, or remove the object"
            )),
            _ => {}
        }
    }
    let stages =
        requested.into_iter().filter_map(|channel| Some((channel, ChannelArguments::clone(find_message(channel)?))));
    MessageDraft::from_pipeline(stages.collect(), problems)
}
