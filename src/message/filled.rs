//! A message whose texts are filled for one row.

use std::borrow::Cow;

use super::messages::CompiledMessages;
use crate::domain::{Channel, ChannelField, MessageContent, Stage};

/// The message of one row, as long as its renderer fills no other.
///
/// It holds the row's cells, so it has no `Debug`.
#[derive(Clone, Copy)]
pub struct FilledMessage<'r> {
    pub(super) messages: &'r CompiledMessages,
    /// The texts by their places.
    pub(super) texts: &'r [FilledText],
}

/// A text, and what it leaves as where something of it is replaced.
#[derive(Clone, Debug, Default)]
pub(super) struct FilledText {
    pub(super) filled: String,
    pub(super) plain: Option<String>,
}

impl FilledText {
    /// It as it leaves.
    pub(super) fn sent_text(&self) -> &str {
        self.plain.as_deref().unwrap_or(&self.filled)
    }

    /// Replaces what its author wants replaced of the text of that key.
    pub(super) fn make_plain<T>(&mut self, stage: &Stage<T>, field: &ChannelField) {
        self.plain = match stage.outgoing_text(field, &self.filled) {
            Cow::Owned(plain) => Some(plain),
            Cow::Borrowed(_) => None,
        };
    }
}

impl<'r> FilledMessage<'r> {
    /// The text at that place as it leaves; empty where there is none.
    #[must_use]
    pub fn text(self, place: usize) -> &'r str {
        self.texts.get(place).map_or("", FilledText::sent_text)
    }

    /// The texts with their keys, as they leave.
    pub fn texts(self) -> impl Iterator<Item = (&'static ChannelField, &'r str)> {
        self.messages.texts.iter().zip(self.texts).map(|(text, filled)| (text.field, filled.sent_text()))
    }

    /// The text that is billed by its parts, where one is.
    #[must_use]
    pub fn billed_text(self) -> Option<&'r str> {
        let place = self.messages.content.stages.iter().find_map(Stage::billed_text)?;
        Some(self.text(*place))
    }

    /// The channels, in the order in which they are tried.
    pub fn channels(self) -> impl Iterator<Item = Channel> {
        self.messages.content.stages.iter().map(Stage::channel)
    }

    /// What it says on each channel.
    #[must_use]
    pub fn content(self) -> MessageContent<Cow<'r, str>> {
        let text = |place: &usize| self.texts.get(*place).map_or("", |text| text.filled.as_str());
        let mut content = self.messages.content.map_texts(|place| Cow::Borrowed(text(place)));
        content.stages.iter_mut().for_each(Stage::make_plain);
        content
    }
}
