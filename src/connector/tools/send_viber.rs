//! `send_viber` (contract 4.3 `viber`, 4.4).

use serde_json::{Map, Value, json};

use super::{channel_arguments, preview_draft, saying};
use crate::connector::draft::MessageDraft;
use crate::connector::tool::{McpTool, ToolAnnotations};
use crate::domain::Channel;

pub(super) const TOOL: McpTool = McpTool {
    name: "send_viber",
    title: "Send a Viber message",
    description: "Sends one Viber message to one recipient: text, an image, text with a button, text with an \
                  image and a button, or a carousel of cards. If `viber_type` is omitted, it is derived from the \
                  other arguments. This costs money and cannot be undone. Without `confirm: true` nothing is sent and \
                  the result is a preview: show it to the person you work for first. An accepted message is not yet \
                  delivered: call message_status later.",
    annotations: ToolAnnotations::SENDING,
    input: || {
        let said = |key| saying::key_schema(Channel::Viber, key);
        saying::send_arguments_schema(
            json!({
                "sender": said("signature"),
                "viber_type": said("type"),
                "text": said("message"),
                "image": said("image"),
                "link": said("link"),
                "button": said("button"),
                "carousel": said("carousel"),
                "lifetime": said("lifetime"),
                "short_link": said("short_link"),
            }),
            &["phone", "sender"],
        )
    },
    output: saying::send_result_schema,
    preview: Some(|arguments| preview_draft(&read_draft(arguments), arguments)),
    call: |caller, arguments| {
        Box::pin(async move { caller.send_draft(&read_draft(arguments.members()), &arguments).await })
    },
};

fn read_draft(arguments: &Map<String, Value>) -> MessageDraft {
    MessageDraft::from_stages(vec![(Channel::Viber, channel_arguments(Channel::Viber, arguments))])
}
