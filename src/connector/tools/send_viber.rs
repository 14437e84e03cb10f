//! `send_viber` (contract 4.3 `viber`, 4.4).

use serde_json::{Map, Value, json};

use super::{drafted, renamed, saying};
use crate::connector::draft::Draft;
use crate::connector::tool::{Annotations, Tool};
use crate::domain::Channel;

pub(super) const TOOL: Tool = Tool {
    name: "send_viber",
    title: "Send a Viber message",
    description: "Sends one Viber message to one recipient: text, an image, text with a button, text with an \
                  image and a button, or a carousel of cards. If `viber_type` is omitted, it is derived from the \
                  other arguments. This costs money and cannot be undone. Without `confirm: true` nothing is sent and \
                  the result is a preview: show it to the person you work for first. An accepted message is not yet \
                  delivered: call message_status later.",
    annotations: Annotations::SENDING,
    input: || {
        let said = |key| saying::said(Channel::Viber, key);
        saying::sending(
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
    output: saying::sent,
    preview: Some(|arguments| drafted(&draft(arguments), arguments)),
    call: |caller, arguments| Box::pin(async move { caller.send(&draft(arguments.members()), &arguments).await }),
};

fn draft(arguments: &Map<String, Value>) -> Draft {
    Draft::of(vec![(Channel::Viber, renamed(Channel::Viber, arguments))])
}
