//! `send_viber` (contract 4.3 `viber`, 4.4).

use serde_json::{Map, Value, json};

use super::{drafted, renamed, saying};
use crate::connector::draft::Draft;
use crate::connector::tool::{Annotations, Tool};
use crate::domain::Channel;

pub(super) const TOOL: Tool = Tool {
    name: "send_viber",
    title: "Send a Viber message",
    description: "Sends one Viber message to one person: a text, an image, both with a button, or a carousel of cards; \
                  `viber_type` follows from what is given. It costs money and cannot be taken back. Without `confirm: true` \
                  it sends nothing and returns a preview: show that to the person you work for first. The answer is an \
                  identifier and no delivery: ask message_status later.",
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
