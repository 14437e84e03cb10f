//! What a campaign says.
//!
//! Every type is generic over its texts: `Content<Text>` is what an author wrote, a compiled
//! form holds templates, and `Content<Cow<str>>` is what one recipient gets.

use std::borrow::Cow;
use std::convert::Infallible;

use serde::{Deserialize, Serialize};

use super::{Chain, OperationKind, Purpose, Stage};

/// A text as its author wrote it: a template, and the name by which messages about it call it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedTemplate {
    /// Where the text stands: a path of keys in the campaign file (`channels[0].sms.message`)
    /// or the name of a text file (`welcome.sms.txt`).
    pub name: String,
    /// The template's source.
    pub source: String,
}

/// The name of stand-ins for missing texts; no key and no file has it.
const STAND_IN: &str = "\0";

impl NamedTemplate {
    /// A stand-in for a missing or wrong text, so that the rest of a campaign can be checked.
    #[must_use]
    pub fn stand_in() -> Self {
        Self { name: STAND_IN.to_owned(), source: "…".to_owned() }
    }

    /// Whether that name is the name of a stand-in.
    #[must_use]
    pub fn is_stand_in(name: &str) -> bool {
        name == STAND_IN
    }
}

/// A text of a message as all its recipients share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSource<'m> {
    /// Everybody gets this one.
    Same(&'m str),
    /// Everybody gets one of their own: that at this place among the texts of the message.
    Filled(usize),
}

/// Extra properties of a channel that are sent as they are.
pub type ExtraProperties = serde_json::Map<String, serde_json::Value>;

/// What a campaign says: the operation that carries it and a stage per channel, in the order of trying.
///
/// `stages` is not empty and repeats no channel; `kind` can carry them. The manifest makes sure of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageContent<T> {
    /// The operation that each recipient becomes.
    pub kind: OperationKind,
    /// The channels in the order in which they are tried.
    pub stages: Vec<Stage<T>>,
}

impl MessageContent<Cow<'_, str>> {
    /// The same with texts of its own.
    #[must_use]
    pub fn to_owned_texts(&self) -> MessageContent<Cow<'static, str>> {
        self.map_texts(|text| Cow::Owned(text.to_string()))
    }
}

impl<T> MessageContent<T> {
    /// Its channels, in the order in which they are tried.
    #[must_use]
    pub fn channel_chain(&self) -> Chain {
        Chain::from_channels(self.stages.iter().map(Stage::channel))
    }

    /// Whether a second message does no harm beyond being a second one: a repeated code or call confuses or costs a person.
    #[must_use]
    pub fn may_repeat(&self) -> bool {
        !self.stages.iter().any(|stage| stage.channel().facts().personal)
    }

    /// What it is for where nobody says: a service on a number is asked for, the rest sells or tells.
    #[must_use]
    pub fn default_purpose(&self) -> Purpose {
        let service = self.stages.iter().any(|stage| stage.channel().facts().single);
        if service { Purpose::Service } else { Purpose::Marketing }
    }

    /// The same content with each text turned into another form by `f`.
    pub fn map_texts<'a, U>(&'a self, mut f: impl FnMut(&'a T) -> U) -> MessageContent<U> {
        match self.try_map_texts(|text| Ok::<_, Infallible>(f(text))) {
            Ok(content) => content,
            Err(never) => match never {},
        }
    }

    /// The same, as long as `f` can.
    ///
    /// # Errors
    /// The first error of `f`.
    pub fn try_map_texts<'a, U, E>(&'a self, mut f: impl FnMut(&'a T) -> Result<U, E>) -> Result<MessageContent<U>, E> {
        let stages = self.stages.iter().map(|stage| stage.try_map(&mut f)).collect::<Result<_, E>>()?;
        Ok(MessageContent { kind: self.kind, stages })
    }
}
