//! Compiled messages: what all rows share.

use std::collections::BTreeSet;
use std::fmt;

use tera::{Context, Tera};

use super::cells::TemplateCells;
use super::filled::FilledText;
use super::metered_text::MeteredTexts;
use super::render::Renderer;
use super::segments::TextSegments;
use crate::domain::{ChannelField, MessageContent, NamedTemplate, TextSource};

/// The messages of a campaign, ready to be filled row by row.
#[derive(Clone)]
pub struct CompiledMessages {
    pub(super) tera: Tera,
    /// What a message says, with the place of each text among `texts`.
    pub(super) content: MessageContent<usize>,
    /// The texts by their places.
    pub(super) texts: Vec<MessageText>,
    pub(super) metered: MeteredTexts,
    /// What is the same for all rows.
    pub(super) context: Context,
    pub(super) cells: TemplateCells,
    pub(super) includes: Vec<(String, String)>,
}

/// A text of a message.
#[derive(Clone, Debug)]
pub(super) struct MessageText {
    /// The stage that it is of, counted from 0.
    pub(super) stage: usize,
    /// Its key.
    pub(super) field: &'static ChannelField,
    pub(super) piece: MessagePiece,
}

/// What becomes a text.
#[derive(Clone, Debug)]
pub(super) enum MessagePiece {
    /// It has no tags: everybody gets it.
    Constant(FilledText),
    /// Tera's name of the template, and the author's of the text; its segments where it is words and names alone.
    Template { key: String, name: String, segments: Option<TextSegments> },
}

impl fmt::Debug for CompiledMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages").field("content", &self.content).field("cells", &self.cells).finish_non_exhaustive()
    }
}

impl CompiledMessages {
    /// A renderer with buffers of its own; make one for a run, not one for a row.
    #[must_use]
    pub fn renderer(&self) -> Renderer<'_> {
        Renderer::new(self)
    }

    /// What a message says, with what everybody gets of its texts as it leaves.
    #[must_use]
    pub fn sources(&self) -> MessageContent<TextSource<'_>> {
        self.content.map_texts(|&place| match self.texts.get(place).map(|text| &text.piece) {
            Some(MessagePiece::Constant(text)) => TextSource::Same(text.sent_text()),
            Some(MessagePiece::Template { .. }) | None => TextSource::Filled(place),
        })
    }

    /// The columns whose cells the texts use.
    #[must_use]
    pub fn used_columns(&self) -> BTreeSet<usize> {
        self.cells.columns().collect()
    }

    /// The column that texts call by that bare name, if one of them uses it.
    #[must_use]
    pub fn find_column(&self, name: &str) -> Option<usize> {
        self.cells.by_name.iter().find(|(_, known)| *known == name).map(|(column, _)| *column)
    }

    /// The texts that were loaded for `include` and `extends`: name and source, by name.
    #[must_use]
    pub fn includes(&self) -> &[(String, String)] {
        &self.includes
    }
}

/// A content with the place of each text, and what becomes them by their places.
pub(super) fn number_texts(
    content: &MessageContent<NamedTemplate>,
    piece: impl Fn(&NamedTemplate) -> MessagePiece,
) -> (MessageContent<usize>, Vec<MessageText>) {
    let mut pieces = Vec::new();
    let content = content.map_texts(|text| {
        pieces.push(Some(piece(text)));
        pieces.len() - 1
    });
    let mut texts = Vec::with_capacity(pieces.len());
    let stages = content.stages.iter().enumerate();
    for (stage, (field, &place)) in stages.flat_map(|(index, stage)| stage.texts().map(move |text| (index, text))) {
        let Some(mut piece) = pieces.get_mut(place).and_then(Option::take) else { continue };
        if let MessagePiece::Constant(constant) = &mut piece {
            constant.make_plain(&content.stages[stage], field);
        }
        texts.push((place, MessageText { stage, field, piece }));
    }
    texts.sort_by_key(|(place, _)| *place);
    let texts = texts.into_iter().map(|(_, text)| text).collect();
    (content, texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_can_be_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<CompiledMessages>();
        shared::<Renderer<'static>>();
    }
}
