//! `send_rcs` (contract 4.3 `rcs`, `rcs+sms`, 4.4).

use serde_json::{Map, Value, json};

use super::{channel_arguments, preview_draft, saying};
use crate::connector::draft::MessageDraft;
use crate::connector::tool::{McpTool, ToolAnnotations};
use crate::domain::Channel;

pub(super) const TOOL: McpTool = McpTool {
    name: "send_rcs",
    title: "Send an RCS message",
    description: "Sends one RCS message with an image and a button to one recipient. With `sms_text` and \
                  `sms_sender`, a recipient who cannot receive RCS gets that SMS instead. This costs money and cannot \
                  be undone. Without `confirm: true` nothing is sent and the result is a preview: show it to the \
                  person you work for first. An accepted message is not yet delivered: call message_status later.",
    annotations: ToolAnnotations::SENDING,
    input: || {
        let said = |key| saying::key_schema(Channel::Rcs, key);
        let mut input = saying::send_arguments_schema(
            json!({
                "sender": said("signature"),
                "text": said("message"),
                "image": said("image"),
                "button": said("button"),
                "link": said("link"),
                "lifetime": said("lifetime"),
                "sms_text": saying::key_schema(Channel::Sms, "message"),
                "sms_sender": saying::key_schema(Channel::Sms, "signature"),
                "short_link": said("short_link"),
            }),
            &["phone", "sender", "text", "image", "button", "link"],
        );
        input["dependentRequired"] = json!({ "sms_text": ["sms_sender"], "sms_sender": ["sms_text"] });
        input
    },
    output: saying::send_result_schema,
    preview: Some(|arguments| preview_draft(&read_draft(arguments), arguments)),
    call: |caller, arguments| {
        Box::pin(async move { caller.send_draft(&read_draft(arguments.members()), &arguments).await })
    },
};

fn read_draft(arguments: &Map<String, Value>) -> MessageDraft {
    let mut stages = vec![(Channel::Rcs, channel_arguments(Channel::Rcs, arguments))];
    let sms = [("message", "sms_text"), ("signature", "sms_sender")];
    let sms = sms.into_iter().filter_map(|(key, name)| Some((key.to_owned(), arguments.get(name)?.clone())));
    let sms: Map<String, Value> = sms.collect();
    if !sms.is_empty() {
        stages.push((Channel::Sms, sms));
    }
    MessageDraft::from_stages(stages)
}
