//! `send_sms` (contract 4.3 `sms`, 4.4).

use serde_json::{Map, Value, json};

use super::{channel_arguments, preview_draft, saying};
use crate::connector::draft::MessageDraft;
use crate::connector::tool::{McpTool, ToolAnnotations};
use crate::domain::Channel;

pub(super) const TOOL: McpTool = McpTool {
    name: "send_sms",
    title: "Send an SMS",
    description: "Sends one SMS to one recipient. This costs money and cannot be undone. Without `confirm: true` \
                  nothing is sent and the result is a preview: show it to the person you work for first. An accepted \
                  message is not yet delivered: call message_status later.",
    annotations: ToolAnnotations::SENDING,
    input: || {
        saying::send_arguments_schema(
            json!({ "text": saying::key_schema(Channel::Sms, "message"), "sender": saying::key_schema(Channel::Sms, "signature") }),
            &["phone", "text", "sender"],
        )
    },
    output: saying::send_result_schema,
    preview: Some(|arguments| preview_draft(&read_draft(arguments), arguments)),
    call: |caller, arguments| {
        Box::pin(async move { caller.send_draft(&read_draft(arguments.members()), &arguments).await })
    },
};

fn read_draft(arguments: &Map<String, Value>) -> MessageDraft {
    MessageDraft::from_stages(vec![(Channel::Sms, channel_arguments(Channel::Sms, arguments))])
}
