//! `send_sms` (contract 4.3 `sms`, 4.4).

use serde_json::{Map, Value, json};

use super::{drafted, renamed, saying};
use crate::connector::draft::Draft;
use crate::connector::tool::{Annotations, Tool};
use crate::domain::Channel;

pub(super) const TOOL: Tool = Tool {
    name: "send_sms",
    title: "Send an SMS",
    description: "Sends one SMS to one recipient. This costs money and cannot be undone. Without `confirm: true` \
                  nothing is sent and the result is a preview: show it to the person you work for first. An accepted \
                  message is not yet delivered: call message_status later.",
    annotations: Annotations::SENDING,
    input: || {
        saying::sending(
            json!({ "text": saying::said(Channel::Sms, "message"), "sender": saying::said(Channel::Sms, "signature") }),
            &["phone", "text", "sender"],
        )
    },
    output: saying::sent,
    preview: Some(|arguments| drafted(&draft(arguments), arguments)),
    call: |caller, arguments| Box::pin(async move { caller.send(&draft(arguments.members()), &arguments).await }),
};

fn draft(arguments: &Map<String, Value>) -> Draft {
    Draft::of(vec![(Channel::Sms, renamed(Channel::Sms, arguments))])
}
