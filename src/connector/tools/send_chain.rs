//! `send_chain` (contract 4.3 `pipeline`, 4.4).

use serde_json::{Map, Value, json};

use super::{preview_draft, saying};
use crate::connector::draft::{ChannelArguments, MessageDraft};
use crate::connector::tool::{McpTool, ToolAnnotations};
use crate::domain::Channel;

/// The channels of a pipeline: those that bring a message, and no service on a number.
fn message_channels() -> impl Iterator<Item = Channel> {
    Channel::ALL.into_iter().filter(|channel| !channel.facts().single)
}

pub(super) const TOOL: McpTool = McpTool {
    name: "send_chain",
    title: "Send on the first channel that works",
    description: "Sends one message to one recipient. The channels are tried in the order of `channels` until one \
                  delivers. Add an object with the message for each channel, named like the channel. Some channels \
                  accept one-time codes only. This costs money and cannot be undone. Without `confirm: true` nothing \
                  is sent and the result is a preview: show it to the person you work for first. An accepted message \
                  is not yet delivered: call message_status later.",
    annotations: ToolAnnotations::SENDING,
    input: || {
        let names: Vec<&str> = message_channels().map(Channel::name).collect();
        let mut said: Map<String, Value> =
            message_channels().map(|channel| (channel.name().to_owned(), saying::stage_schema(channel))).collect();
        said.insert(
            "channels".to_owned(),
            json!({
                "type": "array",
                "items": { "type": "string", "enum": names },
                "minItems": 1,
                "uniqueItems": true,
                "description": "The channels in the order in which they are tried.",
            }),
        );
        saying::send_arguments_schema(Value::Object(said), &["phone", "channels"])
    },
    output: saying::send_result_schema,
    preview: Some(|arguments| preview_draft(&read_draft(arguments), arguments)),
    call: |caller, arguments| {
        Box::pin(async move { caller.send_draft(&read_draft(arguments.members()), &arguments).await })
    },
};

fn read_draft(arguments: &Map<String, Value>) -> MessageDraft {
    let named = arguments.get("channels").and_then(Value::as_array).into_iter().flatten();
    let tried: Vec<Channel> = named.filter_map(|name| Channel::from_name(name.as_str()?)).collect();
    let said = |channel: Channel| arguments.get(channel.name()).and_then(Value::as_object);
    let mut problems = Vec::new();
    for channel in message_channels() {
        match (tried.contains(&channel), said(channel).is_some()) {
            (true, false) => problems
                .push(format!("`channels` has `{channel}`, but its message is missing: add an object `{channel}`")),
            (false, true) => problems.push(format!(
                "`{channel}` has a message but is missing in `channels`: add it there, or remove the object"
            )),
            _ => {}
        }
    }
    let stages = tried.into_iter().filter_map(|channel| Some((channel, ChannelArguments::clone(said(channel)?))));
    MessageDraft::from_pipeline(stages.collect(), problems)
}
